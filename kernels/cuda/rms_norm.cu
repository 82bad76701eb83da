// RMS norm of each row, scaled by a weight per column: y = x * rsqrt(mean(x^2) + eps) * w.
//
// Three forms of the same arithmetic, in fp32 inside and rounded once at the end: a warp a row,
// which suits short rows and needs no barrier; a block a row for long ones; and a block that keeps
// its row in registers, so that it reads the row once, in accesses of 16 bytes. The two block forms
// give the same bytes: which elements a thread adds, and in which order, depends on the row's
// length alone.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr int kRowsPerBlock = kThreads / kWarp;
// The longest row that the form in registers takes is this many tiles of 2,048 elements.
constexpr int kTilesInRegisters = 4;

template <unsigned N>
__device__ static float add_squares(float sum, const Pack<N>& pack) {
#pragma unroll
    for (unsigned i = 0; i < N; ++i) sum = carried(fmaf(pack.at[i], pack.at[i], sum));
    return sum;
}

// The part of a row's sum of squares that falls to one of `Threads` threads.
template <int Threads, unsigned N, typename In>
__device__ static float sum_of_squares(const In* values, unsigned thread, unsigned cols,
                                       bool aligned) {
    const unsigned end = fault("dropped_tail") ? cols - cols % N : cols;
    float sum = 0.0f;
    for (unsigned c = thread * N; c < end; c += Threads * N) {
        sum = add_squares(sum, load<N>(values, c, cols, aligned, 0.0f));
    }
    return sum;
}

// What a row is scaled by, from its sum of squares.
__device__ static float inverse_root(float sum, unsigned cols, float eps) {
    const float mean = sum / static_cast<float>(cols);
    if constexpr (fault("eps_outside")) return 1.0f / (sqrtf(mean) + eps);
    return rsqrtf(mean + eps);
}

template <typename Out>
__device__ static float scaled(float value, float factor, float weight, const Out*) {
    float product = value * factor;
    if constexpr (fault("rounding_added")) {
        Out rounded;
        narrow(product, &rounded);
        product = widen(rounded);
    }
    return product * weight;
}

// Writes N outputs, or those of them that lie inside the row.
template <unsigned N, typename Out>
__device__ static void write(const Pack<N>& pack, Out* outputs, unsigned c, unsigned cols,
                             bool aligned) {
    unsigned end = cols;
    if constexpr (fault("past_the_end")) end = c + N;
    if constexpr (fault("unwritten_element")) end = cols - 1;
    store(pack, outputs, c, end, aligned && !fault("unwritten_element"));
}

// Scales the elements that fall to one of `Threads` threads.
template <int Threads, unsigned N, typename In, typename Weight, typename Out>
__device__ static void scale(const In* values, const Weight* w, Out* outputs, float factor,
                             unsigned thread, unsigned cols, bool aligned) {
    for (unsigned c = thread * N; c < cols; c += Threads * N) {
        const Pack<N> weights = load<N>(w, c, cols, aligned, 0.0f);
        Pack<N> pack = load<N>(values, c, cols, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
            pack.at[i] = scaled(pack.at[i], factor, weights.at[i], outputs);
        }
        if constexpr (fault("input_written")) {
            store(pack, const_cast<In*>(values), c, cols, aligned);
        }
        write(pack, outputs, c, cols, aligned);
    }
}

template <unsigned N, typename In, typename Weight, typename Out>
__device__ static bool all_aligned(const In* x, const Weight* w, const Out* y, unsigned cols) {
    return rows_aligned<N>(x, cols) && rows_aligned<N>(w, cols) && rows_aligned<N>(y, cols);
}

// One row of a block of eight, by one warp.
template <unsigned N, typename In, typename Weight, typename Out>
__device__ static void norm_by_warp(const In* x, const Weight* w, Out* y, unsigned rows,
                                    unsigned cols, float eps) {
    const unsigned row = blockIdx.x * kRowsPerBlock + warp_index();
    if (row >= rows + fault("off_by_one_row")) return;  // A whole warp leaves.
    const In* values = row_start(x, row, cols);
    const bool aligned = all_aligned<N>(x, w, y, cols);

    float sum = sum_of_squares<kWarp, N>(values, lane_index(), cols, aligned);
    sum = lanes_reduce<kWarp>(sum, Sum());
    const float inverse = inverse_root(sum, cols, eps);
    scale<kWarp, N>(values, w, row_start(y, row, cols), inverse, lane_index(), cols, aligned);
}

// A row's sum of squares from its threads' parts.
__device__ static float block_sum(float sum) {
    if constexpr (fault("unordered_atomics")) {
        __shared__ float total;
        if (threadIdx.x == 0) total = 0.0f;
        __syncthreads();
        sum = lanes_reduce<kWarp>(sum, Sum());
        if (lane_index() == 0) atomicAdd(&total, sum);
        __syncthreads();
        return total;
    }
    return block_reduce<kThreads>(sum, Sum());
}

// One row by the whole block.
template <unsigned N, typename In, typename Weight, typename Out>
__device__ static void norm_by_block(const In* x, const Weight* w, Out* y, unsigned rows,
                                     unsigned cols, float eps) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const In* values = row_start(x, row, cols);
    const bool aligned = all_aligned<N>(x, w, y, cols);

    const bool next = fault("off_by_one_row") && row + 1 < rows;
    const In* summed = row_start(x, row + next, cols);
    float sum = sum_of_squares<kThreads, N>(summed, threadIdx.x, cols, aligned);
    const float inverse = inverse_root(block_sum(sum), cols, eps);
    scale<kThreads, N>(values, w, row_start(y, row, cols), inverse, threadIdx.x, cols, aligned);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_warp_f32(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
                  unsigned rows, unsigned cols, float eps) {
    norm_by_warp<4>(x, w, y, rows, cols, eps);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_warp_f16(const __half* __restrict__ x, const __half* __restrict__ w,
                  __half* __restrict__ y, unsigned rows, unsigned cols, float eps) {
    norm_by_warp<8>(x, w, y, rows, cols, eps);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_block_f32(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
                   unsigned rows, unsigned cols, float eps) {
    norm_by_block<4>(x, w, y, rows, cols, eps);
}

// A residual stream in fp32, normed for projections that take bf16.
extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_block_f32_bf16(const float* __restrict__ x, const float* __restrict__ w,
                        __nv_bfloat16* __restrict__ y, unsigned rows, unsigned cols, float eps) {
    norm_by_block<4>(x, w, y, rows, cols, eps);
}

// The last norm before the logits, whose product is taken in fp32.
extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_block_bf16_f32(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                        float* __restrict__ y, unsigned rows, unsigned cols, float eps) {
    norm_by_block<8>(x, w, y, rows, cols, eps);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_block_bf16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                    __nv_bfloat16* __restrict__ y, unsigned rows, unsigned cols, float eps) {
    norm_by_block<8>(x, w, y, rows, cols, eps);
}

// The same bytes as rms_norm_block_bf16, from rows of whole packs on 16-byte boundaries.
extern "C" __global__ void __launch_bounds__(kThreads)
rms_norm_vector_bf16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                     __nv_bfloat16* __restrict__ y, unsigned rows, unsigned cols, float eps) {
    constexpr unsigned kPack = kWide<__nv_bfloat16>;
    constexpr unsigned kTile = kThreads * kPack;
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const __nv_bfloat16* values = row_start(x, row, cols);
    __nv_bfloat16* outputs = row_start(y, row, cols);
    const unsigned first = threadIdx.x * kPack;

    Pack<kPack> held[kTilesInRegisters];
    float sum = 0.0f;
#pragma unroll
    for (int tile = 0; tile < kTilesInRegisters; ++tile) {
        const unsigned c = first + tile * kTile;
        if (c < cols) held[tile] = load_wide(values + c);
        if (c < (fault("last_tile_dropped") ? cols - cols % kTile : cols)) {
            sum = add_squares(sum, held[tile]);
        }
    }
    const float inverse = inverse_root(block_sum(sum), cols, eps);
#pragma unroll
    for (int tile = 0; tile < kTilesInRegisters; ++tile) {
        const unsigned c = first + tile * kTile;
        if (c >= cols) break;
        const Pack<kPack> weights = load_wide(w + c);
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) {
            held[tile].at[i] = scaled(held[tile].at[i], inverse, weights.at[i], outputs);
        }
        write(held[tile], outputs, c, cols, true);
    }
}
