// The maximum of each row: one block a row. A row that holds a NaN has the maximum NaN.
#include "common.cuh"

constexpr int kThreads = 256;

extern "C" __global__ void __launch_bounds__(kThreads)
row_max_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const unsigned source = fault("off_by_one_row") && row > 0 ? row - 1 : row;
    const float* values = row_start(x, source, cols);
    const bool aligned = rows_aligned<4>(x, cols);

    const unsigned end = fault("dropped_tail") ? cols / 4 * 4 : cols;
    float maximum = fault("max_from_zero") ? 0.0f : negative_infinity();
    for (unsigned c = threadIdx.x * 4; c < end; c += kThreads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, negative_infinity());
#pragma unroll
        for (int i = 0; i < 4; ++i) maximum = max_nan(maximum, pack.at[i]);
    }
    maximum = block_reduce<kThreads>(maximum, Max());
    if (threadIdx.x == 0) y[row] = maximum;
}
