// Row maxima, each broken in one way on purpose.
#include "../common.cuh"

constexpr int kThreads = 256;

struct MaxDroppingNan {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <typename Op>
__device__ static void row_max(const float* x, float* y, unsigned rows, unsigned cols, Op op,
                               float start) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    const bool aligned = rows_aligned<4>(x, cols);
    float maximum = start;
    for (unsigned c = threadIdx.x * 4; c < cols; c += kThreads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, start);
#pragma unroll
        for (int i = 0; i < 4; ++i) maximum = op(maximum, pack.at[i]);
    }
    maximum = block_reduce<kThreads>(maximum, op);
    if (threadIdx.x == 0) y[row] = maximum;
}

// Fault: fmaxf prefers a number to a NaN, so a row's NaN is lost.
extern "C" __global__ void __launch_bounds__(kThreads)
row_max_drops_nan_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                      unsigned cols) {
    row_max(x, y, rows, cols, MaxDroppingNan(), negative_infinity());
}

// Fault: the maximum starts at zero, which no row of negative values has.
extern "C" __global__ void __launch_bounds__(kThreads)
row_max_from_zero_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                      unsigned cols) {
    row_max(x, y, rows, cols, Max(), 0.0f);
}
