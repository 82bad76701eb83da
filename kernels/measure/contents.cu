// Fills work buffers with random words, and says whether they hold what they should. Plain on
// purpose: these kernels are what the fast ones are held against.

#include "random.cuh"

// Vectors of 16 bytes from `first` on.
extern "C" __global__ void fill_random(uint4* out, uint64_t first, uint64_t vectors, uint32_t bits,
                                       uint32_t seed) {
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += stride) {
        out[i] = contents((uint32_t)(first + i), bits, seed);
    }
}

// wrong[0] grows by the vectors that differ, in any word, from `times` times the contents of `seed`
// plus `more_times` times those of `more_seed`.
extern "C" __global__ void count_wrong(const uint4* in, uint64_t vectors, uint32_t bits,
                                       uint32_t seed, uint32_t times, uint32_t more_seed,
                                       uint32_t more_times, uint32_t* wrong) {
    uint32_t count = 0;
    uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += stride) {
        uint4 v = in[i];
        uint4 a = contents((uint32_t)i, bits, seed), b = contents((uint32_t)i, bits, more_seed);
        count += v.x != a.x * times + b.x * more_times || v.y != a.y * times + b.y * more_times ||
                 v.z != a.z * times + b.z * more_times || v.w != a.w * times + b.w * more_times;
    }
    add_up(count, wrong);
}
