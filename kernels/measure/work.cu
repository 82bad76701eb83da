// Work of known size: what the stopwatch is tried on.

#include <cstdint>

// A chain of `rounds` dependent multiply-adds in every thread: its time is proportional to
// `rounds`, whatever the memory does.
extern "C" __global__ void chain(float* out, uint32_t rounds) {
    float value = threadIdx.x;
    for (uint32_t i = 0; i < rounds; ++i) {
        value = fmaf(value, 0.5f, 1.0f);
    }
    out[(uint64_t)blockIdx.x * blockDim.x + threadIdx.x] = value;
}

namespace {

// A chain of so many multiply-adds that ends where it began: it takes time and changes nothing.
__device__ float later(float value, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; ++i) {
        value = fmaf(value, 1.0f, 0.0f);
    }
    return value;
}

}  // namespace

// Copies `count` times 16 bytes. Every thread dallies for so many rounds at its end.
extern "C" __global__ void stream_copy(uint4* to, const uint4* from, uint64_t count,
                                       uint32_t rounds) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint4 word = make_uint4(0, 0, 0, 0);
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t last = i;
    for (; i < count; i += stride) {
        word = from[i];
        to[i] = word;
        last = i;
    }
    if (rounds > 0 && last < count) {
        word.x = __float_as_uint(later(__uint_as_float(word.x), rounds));
        to[last] = word;
    }
}

// Sums `count` times 4 floats in steps of the grid; out[thread] is one thread's sum. Every thread
// dallies for so many rounds at its end.
extern "C" __global__ void stream_sum(float* out, const float4* from, uint64_t count,
                                      uint32_t rounds) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (uint64_t i = thread; i < count; i += stride) {
        float4 word = from[i];
        sum += (word.x + word.y) + (word.z + word.w);
    }
    out[thread] = later(sum, rounds);
}

// Waits until `nanoseconds` have passed on the global timer; out[0] says how many did.
extern "C" __global__ void wait_for(uint64_t* out, uint64_t nanoseconds) {
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
    out[0] = now - start;
}
