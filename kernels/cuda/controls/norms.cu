// Norms, each broken in one way on purpose.
#include "../common.cuh"

constexpr int kThreads = 256;

// The sums of a row's values and of their squares, in every thread.
__device__ static float2 row_sums(const float* values, unsigned cols) {
    float sum = 0.0f;
    float squares = 0.0f;
    for (unsigned c = threadIdx.x; c < cols; c += kThreads) {
        sum += values[c];
        squares = fmaf(values[c], values[c], squares);
    }
    sum = block_reduce<kThreads>(sum, Sum());
    return make_float2(sum, block_reduce<kThreads>(squares, Sum()));
}

// Fault: eps is added to the root, not under it. It shows in rows whose mean square is near eps.
extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_eps_outside_f32(const float* __restrict__ x, const float* __restrict__ w,
                         float* __restrict__ y, unsigned rows, unsigned cols, float eps) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    float* outputs = row_start(y, row, cols);
    const float mean_square = row_sums(values, cols).y / static_cast<float>(cols);
    const float inverse = 1.0f / (sqrtf(mean_square) + eps);
    for (unsigned c = threadIdx.x; c < cols; c += kThreads) {
        outputs[c] = values[c] * inverse * w[c];
    }
}

// Fault: the variance is mean(x^2) - mean^2, which cancels where the mean is large beside the
// spread.
extern "C" __global__ void __launch_bounds__(kThreads)
layer_norm_one_pass_f32(const float* __restrict__ x, const float* __restrict__ w,
                        const float* __restrict__ b, float* __restrict__ y, unsigned rows,
                        unsigned cols, float eps) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    float* outputs = row_start(y, row, cols);
    const float2 sums = row_sums(values, cols);
    const float mean = sums.x / static_cast<float>(cols);
    const float variance = sums.y / static_cast<float>(cols) - mean * mean;
    const float inverse = rsqrtf(fmaxf(variance, 0.0f) + eps);
    for (unsigned c = threadIdx.x; c < cols; c += kThreads) {
        outputs[c] = (values[c] - mean) * inverse * w[c] + b[c];
    }
}
