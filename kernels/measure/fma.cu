// Rates of fused multiply-add: every thread runs CHAINS orbits of x -> x*x + c, one operation a
// step. Near c = -2 an orbit is chaotic, so its last value tells how many steps were really taken,
// and a host that rounds as IEEE 754 does computes the same value.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "span.cuh"

namespace {

constexpr int CHAINS = 8;
constexpr int STEPS = 32;

__device__ double step(double x, double c) { return __fma_rn(x, x, c); }
__device__ float step(float x, float c) { return __fmaf_rn(x, x, c); }
__device__ __half2 step(__half2 x, __half2 c) { return __hfma2(x, x, c); }
__device__ __nv_bfloat162 step(__nv_bfloat162 x, __nv_bfloat162 c) { return __hfma2(x, x, c); }

// `starts` holds CHAINS values for each thread of a block, then one constant for each chain.
// `ends` gets CHAINS values for each thread of the grid. STEPS * `rounds` steps are taken.
template <typename T>
__device__ void orbits(T* ends, uint64_t* spans, const T* starts, uint32_t rounds) {
    T x[CHAINS], c[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) {
        x[i] = starts[threadIdx.x * CHAINS + i];
        c[i] = starts[blockDim.x * CHAINS + i];
    }
    assay::span_begin(spans);
#pragma unroll 1
    for (uint32_t round = 0; round < rounds; ++round) {
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
#pragma unroll
            for (int i = 0; i < CHAINS; ++i) x[i] = step(x[i], c[i]);
        }
    }
    assay::span_end(spans);
    T* mine = ends + (static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * CHAINS;
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) mine[i] = x[i];
}

}  // namespace

#define KERNEL(name, T)                                                                        \
    extern "C" __global__ void __launch_bounds__(1024)                                         \
        name(T* ends, uint64_t* spans, const T* starts, uint32_t rounds) {                     \
        orbits<T>(ends, spans, starts, rounds);                                                \
    }

KERNEL(fma_f64, double)
KERNEL(fma_f32, float)
KERNEL(fma_f16, __half2)
KERNEL(fma_bf16, __nv_bfloat162)
