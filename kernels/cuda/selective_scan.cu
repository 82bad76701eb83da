// A selective scan over a short window of time, as Mamba layers compute it:
//
//   h[t, d, n] = exp(dt[t, d] * a[d, n]) * h[t - 1, d, n] + dt[t, d] * x[t, d] * b[t, n]
//   y[t, d] = sum over n of h[t, d, n] * c[t, n], plus skip[d] * x[t, d]
//
// A thread keeps the 16 states of one channel in registers, in fp32, and walks time in order; the
// rows of b and c, which all channels share, come into shared memory a chunk of time at a time.
// Every operation is a plain fp32 one, the exponential included, so that a host can repeat it to
// the bit.
#include "common.cuh"

constexpr int kThreads = 64;
constexpr int kStates = 16;
constexpr int kChunk = 16;

// exp(z) by fused multiply-adds: z = k ln 2 + r with |r| <= ln 2 / 2, then a polynomial in r.
// Within two units in the last place; scaled in two steps, so that subnormal results round once.
__device__ static float exp_fma(float z) {
    if (z != z) return z;
    if (z > 89.0f) return __int_as_float(0x7f800000);
    if (z < -104.0f) return 0.0f;
    const float k = rintf(z * 1.44269504f);
    float r = fmaf(k, -0.693145752f, z);
    r = fmaf(k, -1.42860677e-6f, r);
    float p = 1.98412701e-4f;
    p = fmaf(p, r, 1.38888892e-3f);
    p = fmaf(p, r, 8.33333377e-3f);
    p = fmaf(p, r, 4.16666679e-2f);
    p = fmaf(p, r, 0.166666672f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    const int exponent = static_cast<int>(k);
    const int half = exponent >> 1;
    p = __fmul_rn(p, __int_as_float((half + 127) << 23));
    return __fmul_rn(p, __int_as_float((exponent - half + 127) << 23));
}

struct Rows {
    float b[kChunk][kStates];
    float c[kChunk][kStates];
};

// Loads the rows of one chunk of time.
__device__ static void load_rows(const float* b, const float* c, int first, int time, Rows& rows) {
    for (int i = static_cast<int>(threadIdx.x); i < kChunk * kStates; i += kThreads) {
        const int step = first + i / kStates;
        if (step >= time) break;
        const int64_t from = static_cast<int64_t>(step) * kStates + i % kStates;
        rows.b[i / kStates][i % kStates] = b[from];
        rows.c[i / kStates][i % kStates] = c[from];
    }
}

// What passes for a state between two steps.
__device__ static float kept(float state) {
    if constexpr (fault("half_accumulation")) return __half2float(__float2half_rn(state));
    if (fault("nan_dropped") && state != state) return 0.0f;
    return state;
}

extern "C" __global__ void __launch_bounds__(kThreads)
selective_scan_f32(const float* __restrict__ x, const float* __restrict__ dt,
                   const float* __restrict__ a, const float* __restrict__ b,
                   const float* __restrict__ c, const float* __restrict__ skip,
                   const float* __restrict__ h0, float* __restrict__ y,
                   float* __restrict__ state, int time, int channels) {
    __shared__ Rows rows;
    const int channel = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
    const bool is_inside = channel < channels;
    const int64_t own = static_cast<int64_t>(is_inside ? channel : 0) * kStates;
    float decay_rates[kStates];
    float h[kStates];
#pragma unroll
    for (int n = 0; n < kStates; ++n) {
        decay_rates[n] = a[own + n];
        h[n] = h0[fault("wrong_stride") ? own / kStates * (kStates - 1) + n : own + n];
    }
    const float through = skip[is_inside ? channel : 0];
    const int steps = fault("last_step_dropped") && time > 1 ? time - 1 : time;

    for (int first = 0; first < time; first += kChunk) {
        load_rows(b, c, first, time, rows);
        if constexpr (!fault("missing_barrier")) __syncthreads();
        const int last = min(first + kChunk, time);
        for (int t = first; t < last && is_inside; ++t) {
            const int64_t at = static_cast<int64_t>(t) * channels + channel;
            const float step = dt[at];
            const float input = __fmul_rn(step, x[at]);
            float out = 0.0f;
#pragma unroll
            for (int n = 0; n < kStates; ++n) {
                const float added = __fmul_rn(input, rows.b[t - first][n]);
                const float decay = exp_fma(__fmul_rn(step, decay_rates[n]));
                if (t < steps) h[n] = kept(fmaf(decay, h[n], added));
                out = fmaf(h[n], rows.c[t - first][n], out);
            }
            // Last, so that one rounding is all that the skip passes.
            y[at] = fmaf(through, x[at], out);
        }
        if constexpr (!fault("stale_shared")) __syncthreads();  // Before the next chunk's rows.
    }
#pragma unroll
    for (int n = 0; n < kStates; ++n) {
        if (is_inside) state[own + n] = h[n];
    }
}
