// The sum of each row: one block a row, fp32 throughout.
#include "common.cuh"

constexpr int kThreads = 256;

// A fault's sum over the block: warps add to it in the order in which they arrive.
__device__ inline float unordered_sum(float value) {
    __shared__ float total;
    if (threadIdx.x == 0) total = 0.0f;
    __syncthreads();
    value = lanes_reduce<kWarp>(value, Sum());
    if (lane_index() == 0) atomicAdd(&total, value);
    __syncthreads();
    return total;
}

extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const unsigned source = fault("off_by_one_row") && row > 0 ? row - 1 : row;
    const float* values = row_start(x, source, cols);
    const bool aligned = rows_aligned<4>(x, cols);

    const unsigned end = fault("dropped_tail") ? cols / 4 * 4 : cols;
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * 4; c < end; c += kThreads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum = carried(sum + pack.at[i]);
    }
    if constexpr (fault("unordered_atomics")) {
        sum = unordered_sum(sum);
    } else {
        sum = block_reduce<kThreads>(sum, Sum());
    }
    if (threadIdx.x == 0) y[row] = sum;
    if (fault("past_the_end") && threadIdx.x == 1) y[row + 1] = 0.0f;
}
