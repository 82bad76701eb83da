// SiLU, broken on purpose.
#include "../common.cuh"

constexpr int kThreads = 256;

// Fault: x e / (1 + e) with e = exp(x) is the same function of real numbers, but at +Inf, and
// wherever exp(x) overflows, it divides an infinity by an infinity.
extern "C" __global__ void __launch_bounds__(kThreads)
silu_overflows_f32(const float* __restrict__ x, float* __restrict__ y, unsigned count) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const float e = expf(x[i]);
    y[i] = x[i] * e / (1.0f + e);
}
