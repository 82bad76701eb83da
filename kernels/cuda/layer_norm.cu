// Layer norm of each row: y = (x - mean) * rsqrt(variance + eps) * w + b. One block a row.
//
// The variance is taken in a second pass, from differences to the mean: mean(x^2) - mean^2 would
// cancel wherever the mean is large beside the spread.
#include "common.cuh"

constexpr int kThreads = 256;

__device__ static float row_mean(const float* values, unsigned cols, bool aligned) {
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * 4; c < cols; c += kThreads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += pack.at[i];
    }
    return block_reduce<kThreads>(sum, Sum()) / static_cast<float>(cols);
}

__device__ static float row_variance(const float* values, float mean, unsigned cols, bool aligned) {
    float sum = 0.0f;
    for (unsigned c = threadIdx.x * 4; c < cols; c += kThreads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float difference = pack.at[i] - mean;
            if (c + i < cols) sum = fmaf(difference, difference, sum);
        }
    }
    return block_reduce<kThreads>(sum, Sum()) / static_cast<float>(cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
layer_norm_f32(const float* __restrict__ x, const float* __restrict__ w,
               const float* __restrict__ b, float* __restrict__ y, unsigned rows, unsigned cols,
               float eps) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    float* outputs = row_start(y, row, cols);
    const bool aligned = rows_aligned<4>(x, cols) && rows_aligned<4>(w, cols) &&
                         rows_aligned<4>(b, cols) && rows_aligned<4>(y, cols);

    const float mean = row_mean(values, cols, aligned);
    const float inverse = rsqrtf(row_variance(values, mean, cols, aligned) + eps);
    for (unsigned c = threadIdx.x * 4; c < cols; c += kThreads * 4) {
        const Pack<4> weights = load<4>(w, c, cols, aligned, 0.0f);
        const Pack<4> biases = load<4>(b, c, cols, aligned, 0.0f);
        Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            pack.at[i] = (pack.at[i] - mean) * inverse * weights.at[i] + biases.at[i];
        }
        store(pack, outputs, c, cols, aligned);
    }
}
