// The softmax of rows, one block a row: an example of a kernel with phases to stamp. Whoever
// defines ASSAY_STAMPS before including it gets the stamped build of the same kernel.

#include "stamps.cuh"

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

// The larger; NaN where either is.
__device__ static float larger(float a, float b) {
    return a > b || a != a ? a : b;
}

__device__ static float sum(float a, float b) {
    return a + b;
}

// All threads' values joined, in every thread. `partial` is free again after the next barrier.
template <float (*JOIN)(float, float)>
__device__ static float joined(float value, float* partial) {
    for (int lane = 16; lane > 0; lane /= 2) {
        value = JOIN(value, __shfl_xor_sync(0xffffffffu, value, lane));
    }
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = partial[0];
    for (int warp = 1; warp < WARPS; ++warp) {
        value = JOIN(value, partial[warp]);
    }
    return value;
}

// y[row, c] = exp(x[row, c] - m) / s. Blocks of THREADS, one a row.
extern "C" __global__ void __launch_bounds__(THREADS)
    row_softmax(const float* x, float* y, int cols ASSAY_STAMPS_PARAMETER) {
    __shared__ float maxima[WARPS];
    __shared__ float sums[WARPS];
    const float* from = x + (long long)blockIdx.x * cols;
    float* to = y + (long long)blockIdx.x * cols;
    ASSAY_LANE_OF_WARP(lane);
    ASSAY_STAMP(lane, 0);
    float most = -__int_as_float(0x7f800000);
    for (int c = threadIdx.x; c < cols; c += THREADS) {
        most = larger(most, from[c]);
    }
    ASSAY_STAMP(lane, 1);
    most = joined<larger>(most, maxima);
    ASSAY_STAMP(lane, 2);
    float total = 0.0f;
    for (int c = threadIdx.x; c < cols; c += THREADS) {
        total += expf(from[c] - most);
    }
    total = joined<sum>(total, sums);
    ASSAY_STAMP(lane, 3);
    for (int c = threadIdx.x; c < cols; c += THREADS) {
        to[c] = expf(from[c] - most) / total;
    }
    ASSAY_STAMP_END(lane);
}
