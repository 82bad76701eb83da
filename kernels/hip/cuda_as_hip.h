// What the suite's CUDA sources use of CUDA, in HIP, so that the same sources compile for AMD GPUs
// with clang alone: no ROCm headers, no device library.
//
// It is there for the limits: registers, LDS and bounds from the real compiler. Lanes stay in
// groups of 32 as CUDA's do; on chips whose waves have 64 lanes, a wave is two such groups.
#pragma once

#include <stdint.h>

#define __constant__ __attribute__((constant))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))

#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

// As HIP's own header spells it. For AMD GPUs clang ignores CUDA's attribute without a word, and
// the kernel then has the bound 1,024.
#define ASSAY_BOUND_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define ASSAY_BOUND_2(threads, blocks) \
    __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(blocks)))
#define ASSAY_BOUND(first, second, chosen, ...) chosen
#define __launch_bounds__(...) \
    ASSAY_BOUND(__VA_ARGS__, ASSAY_BOUND_2, ASSAY_BOUND_1, )(__VA_ARGS__)

#define ASSAY_DEVICE __device__ inline

// `threadIdx.x` is a property: reading it calls a builtin, and the variable itself is never there.
#define ASSAY_INDEX(type, variable, builtin)                                    \
    struct type {                                                               \
        __declspec(property(get = get_x)) unsigned x;                           \
        __declspec(property(get = get_y)) unsigned y;                           \
        __declspec(property(get = get_z)) unsigned z;                           \
        __device__ static unsigned get_x() { return builtin##_x(); }            \
        __device__ static unsigned get_y() { return builtin##_y(); }            \
        __device__ static unsigned get_z() { return builtin##_z(); }            \
    };                                                                          \
    extern const __device__ __attribute__((weak)) type variable;

#define ASSAY_GRID_SIZE(axis)                                                       \
    ASSAY_DEVICE unsigned assay_blocks_##axis() {                                   \
        return __builtin_amdgcn_grid_size_##axis() / __builtin_amdgcn_workgroup_size_##axis(); \
    }
ASSAY_GRID_SIZE(x)
ASSAY_GRID_SIZE(y)
ASSAY_GRID_SIZE(z)

ASSAY_INDEX(AssayThreadIndex, threadIdx, __builtin_amdgcn_workitem_id)
ASSAY_INDEX(AssayBlockIndex, blockIdx, __builtin_amdgcn_workgroup_id)
ASSAY_INDEX(AssayBlockSize, blockDim, __builtin_amdgcn_workgroup_size)
ASSAY_INDEX(AssayGridSize, gridDim, assay_blocks)

// Vectors, with the alignment that CUDA gives them.
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

ASSAY_DEVICE float2 make_float2(float x, float y) { return {x, y}; }
ASSAY_DEVICE float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
ASSAY_DEVICE uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
ASSAY_DEVICE uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

ASSAY_DEVICE float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
ASSAY_DEVICE float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
ASSAY_DEVICE unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
ASSAY_DEVICE int __float_as_int(float value) { return __builtin_bit_cast(int, value); }

// Half precision. A bf16 is kept as its bits, as no instruction of most chips takes one.
using __half = _Float16;
struct __half2 { __half x, y; };
struct __nv_bfloat16 { uint16_t bits; };
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };

ASSAY_DEVICE float __half2float(__half value) { return value; }
ASSAY_DEVICE __half __float2half_rn(float value) { return static_cast<__half>(value); }
ASSAY_DEVICE float2 __half22float2(__half2 two) { return {two.x, two.y}; }
ASSAY_DEVICE __half2 __floats2half2_rn(float low, float high) {
    return {__float2half_rn(low), __float2half_rn(high)};
}

ASSAY_DEVICE uint16_t __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
ASSAY_DEVICE __nv_bfloat16 __ushort_as_bfloat16(uint16_t bits) { return {bits}; }
ASSAY_DEVICE float __bfloat162float(__nv_bfloat16 value) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
ASSAY_DEVICE __nv_bfloat16 __float2bfloat16_rn(float value) {
    const unsigned bits = __float_as_uint(value);
    const unsigned nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return {static_cast<uint16_t>(value != value ? 0x7fffu : nearest)};
}
ASSAY_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
    return {__float2bfloat16_rn(low), __float2bfloat16_rn(high)};
}

ASSAY_DEVICE __half __hadd(__half a, __half b) { return a + b; }
ASSAY_DEVICE __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __float2bfloat16_rn(__bfloat162float(a) + __bfloat162float(b));
}

// Arithmetic. What clang calls a builtin it expands without a library on AMD GPUs.
ASSAY_DEVICE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
ASSAY_DEVICE float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
ASSAY_DEVICE float fminf(float a, float b) { return __builtin_fminf(a, b); }
ASSAY_DEVICE float fabsf(float value) { return __builtin_fabsf(value); }
ASSAY_DEVICE float floorf(float value) { return __builtin_floorf(value); }
ASSAY_DEVICE float ceilf(float value) { return __builtin_ceilf(value); }
ASSAY_DEVICE float rintf(float value) { return __builtin_rintf(value); }
ASSAY_DEVICE float sqrtf(float value) { return __builtin_sqrtf(value); }
ASSAY_DEVICE float rsqrtf(float value) { return __builtin_amdgcn_rsqf(value); }
ASSAY_DEVICE float expf(float value) { return __builtin_expf(value); }
ASSAY_DEVICE float __expf(float value) {
    return __builtin_amdgcn_exp2f(value * 1.44269504088896340736f);
}

// Not contracted with an addition, as CUDA promises of it.
ASSAY_DEVICE float __fmul_rn(float a, float b) {
#pragma clang fp contract(off)
    return a * b;
}

ASSAY_DEVICE float __uint2float_rz(unsigned value) {
    const int spare = 8 - (value == 0 ? 8 : __builtin_clz(value));
    return static_cast<float>(spare > 0 ? value >> spare << spare : value);
}

// tanh by an exponential, or near zero, where that would cancel, by its series.
ASSAY_DEVICE float tanhf(float value) {
    const float size = fabsf(value);
    const float square = value * value;
    const float series = fmaf(fmaf(0.133333333f, square, -0.333333333f) * square, value, value);
    const float large = 1.0f - 2.0f / (expf(2.0f * size) + 1.0f);
    return size < 0.125f ? series : __builtin_copysignf(large, value);
}

// erf to 1.5e-7: formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions.
ASSAY_DEVICE float erff(float value) {
    const float size = fabsf(value);
    const float t = 1.0f / fmaf(0.3275911f, size, 1.0f);
    float sum = fmaf(1.061405429f, t, -1.453152027f);
    sum = fmaf(sum, t, 1.421413741f);
    sum = fmaf(sum, t, -0.284496736f);
    sum = fmaf(sum, t, 0.254829592f) * t;
    return __builtin_copysignf(1.0f - sum * expf(-size * size), value);
}

// NaN if either side is NaN, as PTX's max.NaN.f32.
ASSAY_DEVICE float max_or_nan(float a, float b) {
    return a != a || b != b ? __uint_as_float(0x7fffffffu) : __builtin_fmaxf(a, b);
}

ASSAY_DEVICE int max(int a, int b) { return a > b ? a : b; }
ASSAY_DEVICE int min(int a, int b) { return a < b ? a : b; }
ASSAY_DEVICE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
ASSAY_DEVICE unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

// A barrier of the block orders its memory too.
ASSAY_DEVICE void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

ASSAY_DEVICE float atomicAdd(float* to, float value) {
    return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
ASSAY_DEVICE unsigned atomicAdd(unsigned* to, unsigned value) {
    return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// This lane's index in its wave, of 32 or of 64 lanes.
ASSAY_DEVICE unsigned assay_wave_lane() {
    const unsigned low = __builtin_amdgcn_mbcnt_lo(~0u, 0);
    return __builtin_amdgcn_wavefrontsize() == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}

// The value that another lane of the wave holds, a word at a time.
template <typename T>
ASSAY_DEVICE T assay_from_lane(T value, unsigned lane) {
    constexpr unsigned kWords = (sizeof(T) + 3) / 4;
    struct Words { unsigned at[kWords]; } words = {};
    __builtin_memcpy(&words, &value, sizeof(T));
#pragma unroll
    for (unsigned i = 0; i < kWords; ++i) {
        words.at[i] = __builtin_amdgcn_ds_bpermute(static_cast<int>(lane * 4), words.at[i]);
    }
    __builtin_memcpy(&value, &words, sizeof(T));
    return value;
}

// Shuffles stay in the lane's own group of 32; `all` must name every lane of it.
template <typename T>
ASSAY_DEVICE T __shfl_xor_sync(unsigned all, T value, int offset) {
    (void)all;
    return assay_from_lane(value, assay_wave_lane() ^ (static_cast<unsigned>(offset) % 32));
}
template <typename T>
ASSAY_DEVICE T __shfl_sync(unsigned all, T value, int source) {
    (void)all;
    const unsigned group = assay_wave_lane() / 32 * 32;
    return assay_from_lane(value, group + static_cast<unsigned>(source) % 32);
}
