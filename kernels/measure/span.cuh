// When a block began and ended, on the clock of its multiprocessor and on the device's.

#pragma once

#include <cstdint>

namespace assay {

// Five words of 64 bits a block: cycles at the start and the end, nanoseconds at the start and the
// end, the multiprocessor.
constexpr int SPAN_WORDS = 5;

__device__ inline uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

// Waits for the whole block, then stamps the start.
__device__ inline void span_begin(uint64_t* spans) {
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t* span = spans + SPAN_WORDS * blockIdx.x;
        uint32_t multiprocessor;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        span[4] = multiprocessor;
        span[2] = nanoseconds();
        span[0] = clock64();
    }
    __syncthreads();
}

// Waits for the whole block, then stamps the end.
__device__ inline void span_end(uint64_t* spans) {
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t* span = spans + SPAN_WORDS * blockIdx.x;
        span[1] = clock64();
        span[3] = nanoseconds();
    }
}

}  // namespace assay
