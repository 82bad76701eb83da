// The demonstration of stamps: the sums of the tiles of x, in stages. Without ASSAY_STAMPS it must
// compile to what staged_plain.cu does.

#include <cstdint>

#include "stamps.cuh"

constexpr int THREADS = 128;
constexpr int PER_THREAD = 8;

// out[block] is the sum of the block's 1024 elements of x, after `rounds` steps of a recurrence on
// each that only take time. Blocks of THREADS.
extern "C" __global__ void staged_sum(const float* x, float* out,
                                      uint32_t rounds ASSAY_STAMPS_PARAMETER) {
    __shared__ float tile[THREADS * PER_THREAD];
    __shared__ float partial[THREADS / 32];
    ASSAY_LANE_OF_WARP(lane);
    ASSAY_STAMP(lane, 0);
    const float* from = x + (uint64_t)blockIdx.x * THREADS * PER_THREAD;
    for (int i = 0; i < PER_THREAD; ++i) {
        tile[threadIdx.x + i * THREADS] = from[threadIdx.x + i * THREADS];
    }
    ASSAY_STAMP(lane, 1);
    __syncthreads();
    ASSAY_STAMP(lane, 2);
    float sum = 0.0f;
    for (int i = 0; i < PER_THREAD; ++i) {
        float value = tile[threadIdx.x * PER_THREAD + i];
        float turned = value;
        for (uint32_t round = 0; round < rounds; ++round) {
            turned = __fmaf_rn(turned, -0.5f, 1.0f);
        }
        // Never true, which the compiler cannot know.
        sum += turned == 12345.0f ? turned : value;
    }
    ASSAY_STAMP(lane, 3);
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    ASSAY_STAMP(lane, 4);
    if (threadIdx.x == 0) {
        out[blockIdx.x] = partial[0] + partial[1] + partial[2] + partial[3];
    }
    ASSAY_STAMP_END(lane);
}
