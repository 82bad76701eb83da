// Layer norm of each row: y = (x - mean) * rsqrt(variance + eps) * w + b. One block a row, fp32
// inside, one rounding at the end.
//
// The variance is taken in a second pass, from differences to the mean: mean(x^2) - mean^2 would
// cancel wherever the mean is large beside the spread.
#include "common.cuh"

constexpr int kThreads = 256;

template <unsigned N, typename T>
__device__ static float row_mean(const T* values, unsigned cols, bool aligned) {
    const unsigned end = fault("dropped_tail") ? cols - cols % N : cols;
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * N; c < end; c += kThreads * N) {
        const Pack<N> pack = load<N>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < N; ++i) sum = carried(sum + pack.at[i]);
    }
    return block_reduce<kThreads>(sum, Sum()) / static_cast<float>(cols);
}

template <unsigned N, typename T>
__device__ static float row_variance(const T* values, float mean, unsigned cols, bool aligned) {
    // Whole tiles only, in the fault that loses the last.
    const unsigned end = fault("last_tile_dropped") ? cols - cols % (kThreads * N) : cols;
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * N; c < end; c += kThreads * N) {
        const Pack<N> pack = load<N>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
            const float difference = pack.at[i] - mean;
            // Elements past the end read as 0, which is no difference only in the fault.
            if (c + i < cols || fault("unmasked_tail")) {
                sum = carried(fmaf(difference, difference, sum));
            }
        }
    }
    return block_reduce<kThreads>(sum, Sum()) / static_cast<float>(cols);
}

// What a row is scaled by, from its variance.
__device__ static float inverse_root(float variance, float eps) {
    if constexpr (fault("eps_outside")) return 1.0f / (sqrtf(variance) + eps);
    return rsqrtf(variance + eps);
}

template <typename T>
__device__ static float normed(float value, float mean, float inverse, const T*) {
    float result = (value - mean) * inverse;
    if constexpr (fault("rounding_added")) {
        T rounded;
        narrow(result, &rounded);
        result = widen(rounded);
    }
    return result;
}

// Writes N outputs, or those of them that lie inside the row.
template <unsigned N, typename T>
__device__ static void write(const Pack<N>& pack, T* outputs, unsigned c, unsigned cols,
                             bool aligned) {
    unsigned end = cols;
    if constexpr (fault("past_the_end")) end = c + N;
    if constexpr (fault("unwritten_element")) end = cols - 1;
    store(pack, outputs, c, end, aligned && !fault("unwritten_element"));
}

template <unsigned N, typename T, typename Weight>
__device__ static void norm_row(const T* x, const Weight* w, const Weight* b, T* y, unsigned rows,
                                unsigned cols, float eps) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const T* values = row_start(x, row, cols);
    T* outputs = row_start(y, row, cols);
    const bool aligned = rows_aligned<N>(x, cols) && rows_aligned<N>(w, cols) &&
                         rows_aligned<N>(b, cols) && rows_aligned<N>(y, cols);

    const float mean = row_mean<N>(values, cols, aligned);
    const float inverse = inverse_root(row_variance<N>(values, mean, cols, aligned), eps);
    for (unsigned c = threadIdx.x * N; c < cols; c += kThreads * N) {
        const Pack<N> weights = load<N>(w, c, cols, aligned, 0.0f);
        const Pack<N> biases = load<N>(b, c, cols, aligned, 0.0f);
        Pack<N> pack = load<N>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
            pack.at[i] = normed(pack.at[i], mean, inverse, outputs) * weights.at[i] + biases.at[i];
        }
        if constexpr (fault("input_written")) store(pack, const_cast<T*>(values), c, cols, aligned);
        write(pack, outputs, c, cols, aligned);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
layer_norm_f32(const float* __restrict__ x, const float* __restrict__ w,
               const float* __restrict__ b, float* __restrict__ y, unsigned rows, unsigned cols,
               float eps) {
    norm_row<4>(x, w, b, y, rows, cols, eps);
}

extern "C" __global__ void __launch_bounds__(kThreads)
layer_norm_f16(const __half* __restrict__ x, const __half* __restrict__ w,
               const __half* __restrict__ b, __half* __restrict__ y, unsigned rows, unsigned cols,
               float eps) {
    norm_row<8>(x, w, b, y, rows, cols, eps);
}

// Rows in bf16 with the weights that training keeps in fp32.
extern "C" __global__ void __launch_bounds__(kThreads)
layer_norm_bf16(const __nv_bfloat16* __restrict__ x, const float* __restrict__ w,
                const float* __restrict__ b, __nv_bfloat16* __restrict__ y, unsigned rows,
                unsigned cols, float eps) {
    norm_row<8>(x, w, b, y, rows, cols, eps);
}
