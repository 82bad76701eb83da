// The sum of each row: one block a row, fp32 throughout.
#include "common.cuh"

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    const bool aligned = rows_aligned<4>(x, cols);

    float sum = 0.0f;
    for (unsigned c = threadIdx.x * 4; c < cols; c += kThreads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += pack.at[i];
    }
    sum = block_reduce<kThreads>(sum, Sum());
    if (threadIdx.x == 0) y[row] = sum;
}
