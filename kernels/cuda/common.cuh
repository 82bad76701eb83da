// What the suite's kernels share: wide loads and stores with guarded ends, and reductions over a
// warp and over a block.
//
// A thread owns the same few neighbouring elements of every tile whether it moves them in one wide
// access or one by one, so the order of a sum depends on the shape alone, never on an alignment.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "faults.cuh"

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// Elements in one 16-byte access.
template <typename T>
constexpr unsigned kWide = 16 / sizeof(T);

// N neighbouring elements, widened to fp32.
template <unsigned N>
struct Pack {
    float at[N];
};

__device__ inline float negative_infinity() { return __int_as_float(0xff800000); }

// NaN if either side is NaN; fmaxf would drop it.
__device__ inline float max_nan(float a, float b) {
    if constexpr (fault("fmax_for_max")) return fmaxf(a, b);
#ifdef __HIP__
    return max_or_nan(a, b);
#else
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
#endif
}

__device__ inline unsigned lane_index() { return threadIdx.x % kWarp; }
__device__ inline unsigned warp_index() { return threadIdx.x / kWarp; }

// Row `row` of a matrix of `cols` columns; the product may pass 2^31. In the fault it wraps as an
// int32 does, at 2^16 in place of 2^32, so that shapes of everyday size show it.
template <typename T>
__device__ inline T* row_start(T* matrix, unsigned row, unsigned cols) {
    if constexpr (fault("offset_overflow")) return matrix + static_cast<uint16_t>(row * cols);
    return matrix + static_cast<int64_t>(row) * cols;
}

// Whether packs of N elements can move in wide accesses in every row of `cols` elements.
template <unsigned N, typename T>
__device__ inline bool rows_aligned(const T* matrix, unsigned cols) {
    constexpr unsigned kBytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
    return reinterpret_cast<uintptr_t>(matrix) % kBytes == 0 && cols % N == 0;
}

__device__ inline float widen(float value) { return value; }
__device__ inline float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float widen(__half value) { return __half2float(value); }

__device__ inline void narrow(float value, float* to) { *to = value; }
__device__ inline void narrow(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }
__device__ inline void narrow(float value, __half* to) { *to = __float2half_rn(value); }

// The nearest value that a T holds: a rounding point between two steps in fp32.
template <typename T>
__device__ inline float rounded(float value) {
    T narrowed;
    narrow(value, &narrowed);
    return widen(narrowed);
}

__device__ inline Pack<4> load_wide(const float* from) {
    const float4 raw = *reinterpret_cast<const float4*>(from);
    return {raw.x, raw.y, raw.z, raw.w};
}

__device__ inline Pack<8> load_wide(const __nv_bfloat16* from) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
    Pack<8> pack;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        pack.at[2 * i] = __uint_as_float(words[i] << 16);
        pack.at[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
    return pack;
}

__device__ inline Pack<8> load_wide(const __half* from) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
    Pack<8> pack;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const float2 two = __half22float2(reinterpret_cast<const __half2&>(words[i]));
        pack.at[2 * i] = two.x;
        pack.at[2 * i + 1] = two.y;
    }
    return pack;
}

// Elements `first` up to `first + N` of a row; those past its end read as `fill`.
template <unsigned N, typename T>
__device__ inline Pack<N> load_guarded(const T* row, unsigned first, unsigned cols, float fill) {
    Pack<N> pack;
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
        pack.at[i] = first + i < cols ? widen(row[first + i]) : fill;
    }
    return pack;
}

// As load_guarded, in wide accesses where the rows are aligned: `cols` is then a multiple of N, so
// that a pack which starts inside the row ends inside it.
template <unsigned N, typename T>
__device__ inline Pack<N> load(const T* row, unsigned first, unsigned cols, bool aligned,
                               float fill) {
    constexpr unsigned kStep = kWide<T>;
    static_assert(N % kStep == 0, "a pack is a whole number of wide accesses");
    if (!aligned) return load_guarded<N>(row, first, cols, fill);
    Pack<N> pack;
#pragma unroll
    for (unsigned i = 0; i < N; i += kStep) {
        const Pack<kStep> part = load_wide(row + first + i);
#pragma unroll
        for (unsigned j = 0; j < kStep; ++j) pack.at[i + j] = part.at[j];
    }
    return pack;
}

// Two values rounded to the type that `to` points at, the first in the low half.
__device__ inline unsigned narrow_two(float low, float high, const __nv_bfloat16*) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const unsigned&>(two);
}

__device__ inline unsigned narrow_two(float low, float high, const __half*) {
    const __half2 two = __floats2half2_rn(low, high);
    return reinterpret_cast<const unsigned&>(two);
}

__device__ inline void store_wide(const Pack<4>& pack, float* to) {
    *reinterpret_cast<float4*>(to) =
        make_float4(pack.at[0], pack.at[1], pack.at[2], pack.at[3]);
}

template <typename T>
__device__ inline void store_wide(const Pack<4>& pack, T* to) {
    *reinterpret_cast<uint2*>(to) = make_uint2(narrow_two(pack.at[0], pack.at[1], to),
                                               narrow_two(pack.at[2], pack.at[3], to));
}

__device__ inline void store_wide(const Pack<8>& pack, float* to) {
    store_wide(Pack<4>{pack.at[0], pack.at[1], pack.at[2], pack.at[3]}, to);
    store_wide(Pack<4>{pack.at[4], pack.at[5], pack.at[6], pack.at[7]}, to + 4);
}

template <typename T>
__device__ inline void store_wide(const Pack<8>& pack, T* to) {
    *reinterpret_cast<uint4*>(to) = make_uint4(
        narrow_two(pack.at[0], pack.at[1], to), narrow_two(pack.at[2], pack.at[3], to),
        narrow_two(pack.at[4], pack.at[5], to), narrow_two(pack.at[6], pack.at[7], to));
}

// N elements of a row, in one access where the rows are aligned; none past its end.
template <unsigned N, typename T>
__device__ inline void store(const Pack<N>& pack, T* row, unsigned first, unsigned cols,
                             bool aligned) {
    if (aligned) {
        store_wide(pack, row + first);
        return;
    }
#pragma unroll
    for (unsigned i = 0; i < N; ++i) {
        if (first + i < cols) narrow(pack.at[i], row + first + i);
    }
}

// A sum as one thread carries it: in fp32, and rounded to half precision in two of the faults.
__device__ inline float carried(float sum) {
    if constexpr (fault("half_accumulation") || fault("half_partials")) {
        sum = __half2float(__float2half_rn(sum));
    }
    return sum;
}

struct Sum {
    __device__ float operator()(float a, float b) const {
        if constexpr (fault("half_accumulation")) return carried(a + b);
        return a + b;
    }
};

struct Max {
    __device__ float operator()(float a, float b) const { return max_nan(a, b); }
    __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};

// Folds a value over groups of `Width` lanes; every lane of a group gets the group's result.
template <int Width, typename T, typename Op>
__device__ inline T lanes_reduce(T value, Op op) {
#pragma unroll
    for (int offset = Width / 2; offset > 0; offset /= 2) {
        value = op(value, __shfl_xor_sync(kAllLanes, value, offset));
    }
    return value;
}

// Folds a value over a block of `Threads`; every thread gets the result. May be called repeatedly.
template <int Threads, typename T, typename Op>
__device__ inline T block_reduce(T value, Op op) {
    constexpr int kWarps = Threads / kWarp;
    __shared__ T partial[kWarps];
    value = lanes_reduce<kWarp>(value, op);
    if (lane_index() == 0) partial[warp_index()] = value;
    if constexpr (!fault("missing_barrier")) __syncthreads();
    value = lanes_reduce<kWarps>(partial[lane_index() % kWarps], op);
    // Before the next call overwrites the partials.
    if constexpr (!fault("stale_shared")) __syncthreads();
    return value;
}
