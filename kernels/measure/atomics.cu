// Atomics on few and on many addresses: every thread of the grid works on one word of a field, the
// words taken in turn by consecutive threads.

#include <cstdint>

#include "span.cuh"

namespace {

__device__ uint64_t thread_of_grid() {
    return static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace

// Adds 1 `steps` times; the words then hold how often they were met.
extern "C" __global__ void atomic_add_u32(uint32_t* words, uint64_t* spans, uint32_t addresses,
                                          uint32_t steps) {
    uint32_t* word = words + thread_of_grid() % addresses;
    assay::span_begin(spans);
#pragma unroll 4
    for (uint32_t step = 0; step < steps; ++step)
        asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(word) : "memory");
    __threadfence();
    assay::span_end(spans);
}

extern "C" __global__ void atomic_add_f32(float* words, uint64_t* spans, uint32_t addresses,
                                          uint32_t steps) {
    float* word = words + thread_of_grid() % addresses;
    assay::span_begin(spans);
#pragma unroll 4
    for (uint32_t step = 0; step < steps; ++step)
        asm volatile("red.relaxed.gpu.global.add.f32 [%0], 0f3f800000;" ::"l"(word) : "memory");
    __threadfence();
    assay::span_end(spans);
}

// Tries to count a word up by one `steps` times, each try from what the last one saw; `won` gets
// how many tries of each thread were its word's next value. A word ends as the sum of them.
extern "C" __global__ void atomic_cas(uint32_t* words, uint64_t* spans, uint32_t* won,
                                      uint32_t addresses, uint32_t steps) {
    uint32_t* word = words + thread_of_grid() % addresses;
    uint32_t expected = 0, wins = 0;
    assay::span_begin(spans);
#pragma unroll 4
    for (uint32_t step = 0; step < steps; ++step) {
        const uint32_t seen = atomicCAS(word, expected, expected + 1);
        const bool win = seen == expected;
        wins += win;
        expected = seen + win;
    }
    assay::span_end(spans);
    won[thread_of_grid()] = wins;
}
