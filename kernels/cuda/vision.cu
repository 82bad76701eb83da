// The epilogue of a vision tower's projection: bias, GELU (the erf form) and residual.
//
//   y[r, c] = T(T(gelu(x[r, c] + bias[c])) + residual[r, c])
//
// Two forms of the same bytes: one fused launch, and a pair of launches with the activations in a
// buffer between them, where they are rounded to T. The fused form keeps that rounding.
#include "common.cuh"

constexpr int kThreads = 256;

// The elements of one row that fall to a thread.
template <typename T>
struct Share {
    unsigned row;
    unsigned first;
    bool inside;
};

template <typename T>
__device__ static Share<T> share(unsigned rows, unsigned cols) {
    const unsigned first = (blockIdx.y * kThreads + threadIdx.x) * kWide<T>;
    return {blockIdx.x, first, blockIdx.x < rows && first < cols};
}

__device__ static float gelu(float x) {
    if constexpr (fault("tanh_gelu")) {
        const float inner = 0.7978845608f * fmaf(0.044715f * x * x, x, x);
        return 0.5f * x * (1.0f + tanhf(inner));
    }
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

template <typename T>
__device__ static Pack<kWide<T>> activate(const T* x, const T* bias, const Share<T>& at,
                                          unsigned cols) {
    constexpr unsigned kPack = kWide<T>;
    const bool aligned = rows_aligned<kPack>(x, cols) && rows_aligned<kPack>(bias, cols);
    Pack<kPack> pack = load<kPack>(row_start(x, at.row, cols), at.first, cols, aligned, 0.0f);
    const unsigned group = fault("wrong_group") ? at.first / 32 * 32 : at.first;
    const Pack<kPack> biases = load<kPack>(bias, group, cols, aligned, 0.0f);
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i) {
        float biased = pack.at[i] + biases.at[i];
        if constexpr (fault("rounding_added")) biased = rounded<__nv_bfloat16>(biased);
        pack.at[i] = gelu(biased);
    }
    return pack;
}

template <typename T>
__device__ static void add_residual(Pack<kWide<T>>& pack, const T* residual, const Share<T>& at,
                                    unsigned cols) {
    constexpr unsigned kPack = kWide<T>;
    const unsigned row = fault("off_by_one_row") && at.row > 0 ? at.row - 1 : at.row;
    const Pack<kPack> others = load<kPack>(row_start(residual, row, cols), at.first, cols,
                                           rows_aligned<kPack>(residual, cols), 0.0f);
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i) pack.at[i] += others.at[i];
}

template <typename T>
__device__ static void put(const Pack<kWide<T>>& pack, T* y, const Share<T>& at, unsigned cols) {
    if (fault("dropped_tail") && cols - at.first < kWide<T>) return;
    const bool aligned = rows_aligned<kWide<T>>(y, cols);
    if constexpr (fault("past_the_end")) cols = (cols + 1) / 2 * 2;
    store(pack, row_start(y, at.row, cols), at.first, cols, aligned);
}

template <typename T>
__device__ static void fused(const T* x, const T* bias, const T* residual, T* y, unsigned rows,
                             unsigned cols) {
    const Share<T> at = share<T>(rows, cols);
    if (!at.inside) return;
    Pack<kWide<T>> pack = activate(x, bias, at, cols);
    if constexpr (!fault("rounding_dropped")) {
#pragma unroll
        for (float& value : pack.at) value = rounded<T>(value);
    }
    add_residual(pack, residual, at, cols);
    put(pack, y, at, cols);
}

template <typename T>
__device__ static void bias_gelu(const T* x, const T* bias, T* y, unsigned rows, unsigned cols) {
    const Share<T> at = share<T>(rows, cols);
    if (at.inside) put(activate(x, bias, at, cols), y, at, cols);
}

template <typename T>
__device__ static void residual_sum(const T* x, const T* residual, T* y, unsigned rows,
                                    unsigned cols) {
    const Share<T> at = share<T>(rows, cols);
    if (!at.inside) return;
    const bool aligned = rows_aligned<kWide<T>>(x, cols);
    Pack<kWide<T>> pack =
        load<kWide<T>>(row_start(x, at.row, cols), at.first, cols, aligned, 0.0f);
    add_residual(pack, residual, at, cols);
    put(pack, y, at, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
vision_fused_f32(const float* __restrict__ x, const float* __restrict__ bias,
                 const float* __restrict__ residual, float* __restrict__ y, unsigned rows,
                 unsigned cols) {
    fused(x, bias, residual, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
vision_fused_bf16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ bias,
                  const __nv_bfloat16* __restrict__ residual, __nv_bfloat16* __restrict__ y,
                  unsigned rows, unsigned cols) {
    fused(x, bias, residual, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
vision_bias_gelu_f32(const float* __restrict__ x, const float* __restrict__ bias,
                     float* __restrict__ y, unsigned rows, unsigned cols) {
    bias_gelu(x, bias, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
vision_bias_gelu_bf16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ bias,
                      __nv_bfloat16* __restrict__ y, unsigned rows, unsigned cols) {
    bias_gelu(x, bias, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
vision_residual_f32(const float* __restrict__ x, const float* __restrict__ residual,
                    float* __restrict__ y, unsigned rows, unsigned cols) {
    residual_sum(x, residual, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
vision_residual_bf16(const __nv_bfloat16* __restrict__ x,
                     const __nv_bfloat16* __restrict__ residual, __nv_bfloat16* __restrict__ y,
                     unsigned rows, unsigned cols) {
    residual_sum(x, residual, y, rows, cols);
}
