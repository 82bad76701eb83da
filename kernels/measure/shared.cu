// Shared memory, read as fast as it goes: every thread of a block loads 16 bytes beside its
// neighbour's, so that no bank is asked twice.

#include "random.cuh"

// Vectors of 16 bytes that a thread loads before it goes around: 16 at most in 48 KiB.
#define AROUND 2
#define FLIGHT 8

// A block's shared memory holds the first blockDim * 2 vectors of the contents. Each thread reads
// `rounds` times 8 vectors of them. cycles[block] is how long the block took.
extern "C" __global__ void __launch_bounds__(1024)
    shared_read(uint32_t rounds, uint32_t bits, uint32_t seed, uint32_t* sum, uint64_t* cycles) {
    extern __shared__ uint4 held[];
    for (int i = 0; i < AROUND; i++) {
        uint32_t index = i * blockDim.x + threadIdx.x;
        held[index] = contents(index, bits, seed);
    }
    uint32_t base = (uint32_t)__cvta_generic_to_shared(held + threadIdx.x);
    uint32_t stride = blockDim.x * 16, mine = 0;
    // Before the barrier, so that no warp has begun by then.
    uint64_t start = clock64();
    __syncthreads();
    for (uint32_t round = 0; round < rounds; round++) {
        uint4 v[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(v[i].x), "=r"(v[i].y), "=r"(v[i].z), "=r"(v[i].w)
                         : "r"(base + (i % AROUND) * stride)
                         : "memory");
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            mine += total(v[i]);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        cycles[blockIdx.x] = clock64() - start;
    }
    add_up(mine, sum);
}
