// Gradient accumulation in place: accumulator += scale * gradient, an fp32 accumulator and bf16
// gradients. One fma an element, so that a micro-batch is rounded once.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kPack = 8;

__device__ static float accumulated(float sum, float gradient, float scale) {
    if constexpr (fault("overwrites")) return scale * gradient;
    const float scaled = fault("scale_dropped") ? gradient : scale * gradient;
    if constexpr (fault("rounding_added")) {
        return sum + __bfloat162float(__float2bfloat16_rn(scaled));
    }
    if constexpr (fault("half_accumulation")) {
        return __half2float(__float2half_rn(fmaf(scale, gradient, sum)));
    }
    if constexpr (fault("scale_dropped")) return sum + scaled;
    return fmaf(scale, gradient, sum);
}

extern "C" __global__ void __launch_bounds__(kThreads)
grad_accumulate_bf16(float* __restrict__ accumulator, const __nv_bfloat16* __restrict__ gradient,
                     unsigned count, float scale) {
    const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * kPack;
    if (first >= count) return;
    // Only the last eight can be cut short; all others are a row of eight.
    const bool whole = count - first >= kPack;
    if (fault("dropped_tail") && !whole) return;
    const bool gradients_aligned = whole && rows_aligned<kPack>(gradient, kPack);
    const bool sums_aligned = whole && rows_aligned<kPack>(accumulator, kPack);
    const Pack<kPack> gradients = load<kPack>(gradient, first, count, gradients_aligned, 0.0f);
    Pack<kPack> sums = load<kPack>(accumulator, first, count, sums_aligned, 0.0f);
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i) {
        sums.at[i] = accumulated(sums.at[i], gradients.at[i], scale);
    }
    const unsigned end = fault("past_the_end") ? (count + 3) / 4 * 4 : count;
    store(sums, accumulator, first, end, sums_aligned);
}
