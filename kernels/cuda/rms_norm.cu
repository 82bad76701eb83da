// RMS norm of each row, scaled by a weight per column: y = x * rsqrt(mean(x^2) + eps) * w.
//
// Two launches of the same arithmetic: a warp a row, which suits short rows and needs no barrier,
// and a block a row for long ones.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr int kRowsPerBlock = kThreads / kWarp;

// The part of a row's sum of squares that falls to one of `Threads` threads.
template <int Threads>
__device__ static float sum_of_squares(const float* values, unsigned thread, unsigned cols,
                                       bool aligned) {
    float sum = 0.0f;
    for (unsigned c = thread * 4; c < cols; c += Threads * 4) {
        const Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) sum = fmaf(pack.at[i], pack.at[i], sum);
    }
    return sum;
}

// Scales the elements that fall to one of `Threads` threads.
template <int Threads>
__device__ static void scale(const float* values, const float* w, float* outputs, float factor,
                             unsigned thread, unsigned cols, bool aligned) {
    for (unsigned c = thread * 4; c < cols; c += Threads * 4) {
        const Pack<4> weights = load<4>(w, c, cols, aligned, 0.0f);
        Pack<4> pack = load<4>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (int i = 0; i < 4; ++i) pack.at[i] = pack.at[i] * factor * weights.at[i];
        store(pack, outputs, c, cols, aligned);
    }
}

__device__ static bool all_aligned(const float* x, const float* w, const float* y, unsigned cols) {
    return rows_aligned<4>(x, cols) && rows_aligned<4>(w, cols) && rows_aligned<4>(y, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_warp_f32(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
                  unsigned rows, unsigned cols, float eps) {
    const unsigned row = blockIdx.x * kRowsPerBlock + warp_index();
    if (row >= rows) return;  // A whole warp leaves.
    const float* values = row_start(x, row, cols);
    const bool aligned = all_aligned(x, w, y, cols);

    float sum = sum_of_squares<kWarp>(values, lane_index(), cols, aligned);
    sum = lanes_reduce<kWarp>(sum, Sum());
    const float inverse = rsqrtf(sum / static_cast<float>(cols) + eps);
    scale<kWarp>(values, w, row_start(y, row, cols), inverse, lane_index(), cols, aligned);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_block_f32(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
                   unsigned rows, unsigned cols, float eps) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    const bool aligned = all_aligned(x, w, y, cols);

    float sum = sum_of_squares<kThreads>(values, threadIdx.x, cols, aligned);
    sum = block_reduce<kThreads>(sum, Sum());
    const float inverse = rsqrtf(sum / static_cast<float>(cols) + eps);
    scale<kThreads>(values, w, row_start(y, row, cols), inverse, threadIdx.x, cols, aligned);
}
