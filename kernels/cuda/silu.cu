// SiLU of every element: y = x / (1 + exp(-x)).
#include "common.cuh"

constexpr int kThreads = 256;

__device__ static float silu(float x) { return x / (1.0f + expf(-x)); }

extern "C" __global__ void __launch_bounds__(kThreads)
silu_f32(const float* __restrict__ x, float* __restrict__ y, unsigned count) {
    const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * 4;
    if (first >= count) return;
    const bool aligned = rows_aligned<4>(x, count) && rows_aligned<4>(y, count);
    Pack<4> pack = load<4>(x, first, count, aligned, 0.0f);
#pragma unroll
    for (int i = 0; i < 4; ++i) pack.at[i] = silu(pack.at[i]);
    store(pack, y, first, count, aligned);
}
