// Row softmax in two passes over the input: one block a row, fp32 inside, fp32 or bf16 out.
//
// The first pass is online: each thread keeps the maximum of its values so far and the sum of their
// exponentials relative to it, and rescales the sum when the maximum grows. A row of nothing but
// -Inf, or one with a +Inf or a NaN, has no softmax: all of its outputs are NaN.
#include "common.cuh"

constexpr int kThreads = 256;

// The maximum of some values and the sum of exp(value - maximum) over them.
struct Running {
    float maximum;
    float sum;
};

// What exponents are taken relative to. A maximum of -Inf would turn every difference into a NaN,
// although values of -Inf only add nothing yet; relative to zero they add nothing.
__device__ static float reference(float maximum) {
    if constexpr (fault("unguarded_tile")) return maximum;
    return maximum == negative_infinity() ? 0.0f : maximum;
}

__device__ static void include(Running& running, const Pack<4>& pack) {
    float maximum = running.maximum;
#pragma unroll
    for (int i = 0; i < 4; ++i) maximum = max_nan(maximum, pack.at[i]);
    const float zero = reference(maximum);
    if constexpr (!fault("rescale_dropped")) running.sum *= expf(running.maximum - zero);
#pragma unroll
    for (int i = 0; i < 4; ++i) running.sum = carried(running.sum + expf(pack.at[i] - zero));
    running.maximum = maximum;
}

// The row's maximum and sum, in every thread.
__device__ static Running row_statistics(const float* values, unsigned cols, bool aligned) {
    constexpr unsigned kTile = kThreads * 4;
    const unsigned end = fault("last_tile_dropped") && cols > kTile ? cols - cols % kTile : cols;
    Running running = {fault("max_from_zero") ? 0.0f : negative_infinity(), 0.0f};
    for (unsigned c = threadIdx.x * 4; c < end; c += kTile) {
        include(running, load<4>(values, c, cols, aligned, negative_infinity()));
    }
    const float maximum = block_reduce<kThreads>(running.maximum, Max());
    running.sum *= expf(running.maximum - reference(maximum));
    return {maximum, block_reduce<kThreads>(running.sum, Sum())};
}

template <typename Out>
__device__ static void softmax_row(const float* x, Out* y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    Out* outputs = row_start(y, row, cols);
    const bool loads_aligned = rows_aligned<4>(x, cols);
    const bool stores_aligned = rows_aligned<4>(y, cols);

    const Running statistics = row_statistics(values, cols, loads_aligned);
    // In the fault only the first pass knows where rows start that are no multiple of 4 long.
    const float* again =
        fault("stride_in_one_pass") ? row_start(x, row, (cols + 3) / 4 * 4) : values;
    for (unsigned c = threadIdx.x * 4; c < cols; c += kThreads * 4) {
        Pack<4> pack = load<4>(again, c, cols, loads_aligned, negative_infinity());
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            pack.at[i] = expf(pack.at[i] - statistics.maximum) / statistics.sum;
        }
        if (fault("dropped_tail") && cols - c < 4) continue;
        store(pack, outputs, c, cols, stores_aligned);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows, unsigned cols) {
    softmax_row(x, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_bf16(const float* __restrict__ x, __nv_bfloat16* __restrict__ y, unsigned rows,
             unsigned cols) {
    softmax_row(x, y, rows, cols);
}
