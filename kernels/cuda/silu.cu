// SiLU of every element: y = x / (1 + exp(-x)).
#include "common.cuh"

constexpr int kThreads = 256;

__device__ static float silu(float x) {
    if constexpr (fault("growing_exponential")) return x * expf(x) / (1.0f + expf(x));
    if constexpr (fault("rounding_added")) x = rounded<__nv_bfloat16>(x);
    const float y = x / (1.0f + expf(-x));
    return fault("half_output") ? rounded<__half>(y) : y;
}

extern "C" __global__ void __launch_bounds__(kThreads)
silu_f32(const float* __restrict__ x, float* __restrict__ y, unsigned count) {
    const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * 4;
    if (first >= count) return;
    // Only the last four can be cut short; all others are a row of four.
    const bool whole = count - first >= 4;
    if (fault("dropped_tail") && !whole) return;
    const bool aligned = whole && rows_aligned<4>(x, 4) && rows_aligned<4>(y, 4);
    Pack<4> pack = load<4>(x, first, count, aligned, 0.0f);
#pragma unroll
    for (int i = 0; i < 4; ++i) pack.at[i] = silu(pack.at[i]);
    const unsigned end = fault("past_the_end") ? first + 4 : count;
    store(pack, y, first, end, aligned);
}
