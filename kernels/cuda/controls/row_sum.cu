// Row sums, each broken in one way on purpose: the gates must report every one of them.
#include "../common.cuh"

constexpr int kThreads = 256;

// The suite's row sum up to its last step, for the controls that break something else.
__device__ static float sum_of_row(const float* values, unsigned cols, bool aligned) {
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * 4; c < cols; c += kThreads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += pack.at[i];
    }
    return block_reduce<kThreads>(sum, Sum());
}

extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_atomic_clear_f32(float* __restrict__ y, unsigned rows) {
    const unsigned row = blockIdx.x * kThreads + threadIdx.x;
    if (row < rows) y[row] = 0.0f;
}

// Fault: the blocks of a row add their parts in the order in which they happen to finish.
extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_atomic_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                   unsigned cols) {
    const unsigned row = blockIdx.y;
    if (row >= rows) return;
    const unsigned c = blockIdx.x * kThreads + threadIdx.x;
    const float sum = block_reduce<kThreads>(c < cols ? row_start(x, row, cols)[c] : 0.0f, Sum());
    if (threadIdx.x == 0) atomicAdd(y + row, sum);
}

// Fault: the row's sum is left in the row's first element too.
extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_writes_input_f32(float* x, float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    float* values = row_start(x, row, cols);
    const float sum = sum_of_row(values, cols, rows_aligned<4>(x, cols));
    if (threadIdx.x == 0) y[row] = values[0] = sum;
}

// Fault: the last row's sum is never written.
extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_unwritten_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                      unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float sum = sum_of_row(row_start(x, row, cols), cols, rows_aligned<4>(x, cols));
    if (threadIdx.x == 0 && row + 1 < rows) y[row] = sum;
}

// Fault: the last row's sum is written once more, one past the end.
extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_past_end_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                     unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float sum = sum_of_row(row_start(x, row, cols), cols, rows_aligned<4>(x, cols));
    if (threadIdx.x != 0) return;
    y[row] = sum;
    if (row + 1 == rows) y[rows] = sum;
}

// Fault: a partial tile loses its last input. Right wherever the tiles are whole.
extern "C" __global__ void __launch_bounds__(kThreads)
row_sum_short_tail_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                       unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    constexpr unsigned kTile = kThreads * 4;
    const unsigned end = cols % kTile == 0 ? cols : cols - 1;
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * 4; c < end; c += kTile) {
        const Pack<4> pack = load_guarded<4>(values, c, end, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += pack.at[i];
    }
    sum = block_reduce<kThreads>(sum, Sum());
    if (threadIdx.x == 0) y[row] = sum;
}
