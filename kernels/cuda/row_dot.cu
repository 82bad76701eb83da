// The dot product of two matrices, row by row: one block a row, fp32 throughout.
#include "common.cuh"

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
row_dot_f32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ y,
            unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* left = row_start(a, row, cols);
    const unsigned other = fault("off_by_one_row") && row > 0 ? row - 1 : row;
    const float* right = row_start(b, other, cols);
    const bool aligned = rows_aligned<4>(a, cols) && rows_aligned<4>(b, cols);

    const unsigned end = fault("dropped_tail") ? cols / 4 * 4 : cols;
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * 4; c < end; c += kThreads * 4) {
        const Pack<4> p = load<4>(left, c, cols, aligned, 0.0f);
        const Pack<4> q = load<4>(right, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum = carried(fmaf(p.at[i], q.at[i], sum));
    }
    sum = block_reduce<kThreads>(sum, Sum());
    if (threadIdx.x == 0) y[row] = sum;
}
