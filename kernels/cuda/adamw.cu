// One step of AdamW in place: fp32 parameters and moments, bf16 gradients, and the bf16 weights
// that the next forward pass reads, rounded from the new parameters.
//
//   m' = m + (1 - beta1) (g - m)            v' = beta2 |v| + (1 - beta2) g g
//   p' = p - rate (decay p + (m' / bias1) / (sqrt(v' / bias2) + eps))
//
// The decay is decoupled: it does not pass through the moments. bias1 = 1 - beta1^t and
// bias2 = 1 - beta2^t are the caller's, who knows the step t. Divisions and roots are IEEE's. The
// magnitude of v costs nothing, and keeps a damaged variance from making its parameter a NaN.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kPack = 8;

// The hyperparameters of one step; `keep` is 1 - beta.
struct Step {
    float rate;
    float keep1;
    float beta2;
    float keep2;
    float bias1;
    float bias2;
    float eps;
    float decay;
};

// Neighbouring parameters with their moments.
struct State {
    Pack<kPack> p;
    Pack<kPack> m;
    Pack<kPack> v;
};

// What the gradient moves a parameter by, over the rate.
__device__ static float direction(float m, float v, const Step& step) {
    const float momentum = fault("bias_dropped") ? m : m / step.bias1;
    const float variance = v / step.bias2;
    if constexpr (fault("eps_inside")) return momentum / sqrtf(variance + step.eps);
    return momentum / (sqrtf(variance) + step.eps);
}

__device__ static void advance(State& state, const Pack<kPack>& gradients, const Step& step) {
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i) {
        const float p = state.p.at[i];
        const float g = fault("coupled_decay") ? fmaf(step.decay, p, gradients.at[i])
                                               : gradients.at[i];
        const float before = state.m.at[i];
        state.m.at[i] = fmaf(step.keep1, g - before, before);
        state.v.at[i] = fmaf(step.beta2, fabsf(state.v.at[i]), step.keep2 * (g * g));
        const float m = fault("old_moment") ? before : state.m.at[i];
        const float decay = fault("coupled_decay") ? 0.0f : step.decay;
        const float change = fmaf(decay, p, direction(m, state.v.at[i], step));
        state.p.at[i] = fmaf(-step.rate, change, p);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
adamw_bf16(float* __restrict__ p, float* __restrict__ m, float* __restrict__ v,
           const __nv_bfloat16* __restrict__ gradient, __nv_bfloat16* __restrict__ weights,
           unsigned count, float rate, float keep1, float beta2, float keep2, float bias1,
           float bias2, float eps, float decay) {
    const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * kPack;
    if (first >= count) return;
    // Only the last eight can be cut short; all others are a row of eight.
    const bool whole = count - first >= kPack;
    if (fault("dropped_tail") && !whole) return;
    const bool aligned = whole && rows_aligned<kPack>(p, kPack) && rows_aligned<kPack>(m, kPack) &&
                         rows_aligned<kPack>(v, kPack) && rows_aligned<kPack>(gradient, kPack) &&
                         rows_aligned<kPack>(weights, kPack);
    State state = {load<kPack>(p, first, count, aligned, 0.0f),
                   load<kPack>(m, first, count, aligned, 0.0f),
                   load<kPack>(v, first, count, aligned, 0.0f)};
    const Pack<kPack> old = state.p;
    advance(state, load<kPack>(gradient, first, count, aligned, 0.0f),
            {rate, keep1, beta2, keep2, bias1, bias2, eps, decay});
    store(state.p, p, first, count, aligned);
    store(state.m, m, first, count, aligned);
    if constexpr (!fault("unwritten_element")) store(state.v, v, first, count, aligned);
    store(fault("stale_weights") ? old : state.p, weights, first, count, aligned);
}
