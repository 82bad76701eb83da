// A dense matrix times a vector with its columns cut into slices, y = W x: a first launch sums each
// row over each slice, a second adds a row's partial sums from the first slice to the last. The
// place of every addition is fixed by the shape, so the bytes repeat, and equal a host twin's.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kRowsPerBlock = kThreads / kWarp;
constexpr unsigned kPack = kWide<__nv_bfloat16>;
constexpr unsigned kTile = kWarp * kPack;
constexpr unsigned kSlice = 2 * kTile;
static_assert(kTile == kThreads, "a thread stages one input of every tile");

// Input `own` of a row, 0 past its end. The fault multiplies the last by 0, which keeps its NaN.
__device__ static float input(const float* x, unsigned own, unsigned cols) {
    if constexpr (fault("mask_by_multiplication")) {
        return x[min(own, cols - 1)] * (own < cols ? 1.0f : 0.0f);
    }
    return own < cols ? x[own] : 0.0f;
}

__device__ static const __nv_bfloat16* row_weights(const __nv_bfloat16* w, unsigned row,
                                                   unsigned cols) {
    if constexpr (fault("offset_overflow")) return w + static_cast<uint16_t>(row * cols);
    return row_start(w, row, cols);
}

// Eight neighbouring products on top of `sum`, first to last.
__device__ static float add_products(const Pack<kPack>& w, const float* x, float sum) {
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i) {
        sum = fmaf(w.at[i], x[i], sum);
        if constexpr (fault("half_accumulation")) sum = carried(sum);
    }
    return sum;
}

// One warp a row, one block eight rows and one slice. The block stages the inputs that its rows
// share, a tile at a time in two buffers: while a warp still reads one tile, another may already
// write the next, and the barrier between keeps it from writing the one after.
extern "C" __global__ void __launch_bounds__(kThreads)
split_k_gemv_slices(const __nv_bfloat16* __restrict__ w, const float* __restrict__ x,
                    float* __restrict__ partials, unsigned rows, unsigned cols) {
    __shared__ __align__(16) float staged[2][kTile];
    const unsigned row = blockIdx.x * kRowsPerBlock + warp_index();
    const unsigned first = blockIdx.y * kSlice;
    const unsigned end = min(first + kSlice, cols);
    const __nv_bfloat16* weights = row_weights(w, row, cols);
    const bool aligned = rows_aligned<kPack>(w, cols);

    float sum = 0.0f;
    for (unsigned tile = first; tile < end; tile += kTile) {
        float* inputs = staged[fault("stale_shared") ? 0 : tile / kTile % 2];
        inputs[threadIdx.x] = input(x, tile + threadIdx.x, cols);
        if constexpr (!fault("missing_barrier")) __syncthreads();
        const unsigned c = tile + lane_index() * kPack;
        if (row < rows && c < end) {
            const Pack<kPack> p = load<kPack>(weights, c, cols, aligned, 0.0f);
            sum = add_products(p, inputs + lane_index() * kPack, sum);
        }
    }
    sum = lanes_reduce<kWarp>(sum, Sum());
    sum = carried(sum);
    const bool writes = fault("past_the_end") ? row <= rows : row < rows;
    if (writes && lane_index() == 0) row_start(partials, blockIdx.y, rows)[row] = sum;
}

// The fault of a merge whose warps take slices and meet in shared atomics, in any order.
__device__ static void merge_unordered(const float* partials, float* y, unsigned rows,
                                       unsigned slices) {
    __shared__ float sums[kThreads];
    const unsigned first = blockIdx.x * kThreads;
    sums[threadIdx.x] = 0.0f;
    __syncthreads();
    for (unsigned s = warp_index(); s < slices; s += kThreads / kWarp) {
        for (unsigned i = lane_index(); i < kThreads && first + i < rows; i += kWarp) {
            atomicAdd(&sums[i], row_start(partials, s, rows)[first + i]);
        }
    }
    __syncthreads();
    if (first + threadIdx.x < rows) y[first + threadIdx.x] = sums[threadIdx.x];
}

// A row's partial sum that is added at turn `s`.
__device__ static float partial(const float* partials, unsigned row, unsigned s, unsigned rows,
                                unsigned slices) {
    return row_start(partials, fault("slices_reversed") ? slices - 1 - s : s, rows)[row];
}

// One thread a row.
extern "C" __global__ void __launch_bounds__(kThreads)
split_k_gemv_merge(const float* __restrict__ partials, float* __restrict__ y, unsigned rows,
                   unsigned slices) {
    if constexpr (fault("unordered_atomics")) {
        merge_unordered(partials, y, rows, slices);
    } else {
        const unsigned row = blockIdx.x * kThreads + threadIdx.x;
        if (row >= rows) return;
        const unsigned last = fault("last_slice_dropped") && slices > 1 ? slices - 1 : slices;
        float sum = partial(partials, row, 0, rows, last);
        for (unsigned s = 1; s < last; ++s) sum += partial(partials, row, s, rows, last);
        y[row] = sum;
    }
}
