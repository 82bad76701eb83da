// Row softmax for rows that one block would be too slow for: fp32 inside, fp32 or bf16 in and out.
//
// The first launch gives every block a chunk of a row: it leaves the chunk's maximum, and the sum
// of its exponentials relative to that, in scratch. In the second launch each warp merges the
// statistics of its row's chunks, in the same order wherever it runs, and the block scales its own
// chunk. A row of nothing but -Inf, or one with a +Inf or a NaN, has no softmax: all of its outputs
// are NaN.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kChunk = 4096;

// The maximum of some values and the sum of exp(value - maximum) over them.
struct Statistics {
    float maximum;
    float sum;
};

// The values of one chunk that fall to this thread; those past the row's end are -Inf.
template <typename T>
struct Held {
    static constexpr unsigned kPack = kWide<T>;
    static constexpr unsigned kStride = kThreads * kPack;
    static constexpr unsigned kPacks = kChunk / kStride;
    Pack<kPack> packs[kPacks];

    // The column of the first value of pack `p`, for a chunk that starts at column `begin`.
    __device__ static unsigned column(unsigned begin, unsigned p) {
        return begin + p * kStride + threadIdx.x * kPack;
    }
};

// What exponents are taken relative to. A maximum of -Inf would turn every difference into a NaN,
// although values of -Inf only add nothing; relative to zero they add nothing.
__device__ static float reference(float maximum) {
    if constexpr (fault("unguarded_chunk")) return maximum;
    return maximum == negative_infinity() ? 0.0f : maximum;
}

__device__ static unsigned chunks_of(unsigned cols) { return (cols - 1) / kChunk + 1; }

template <typename T>
__device__ static Held<T> load_chunk(const T* values, unsigned begin, unsigned cols, bool aligned) {
    constexpr unsigned kPack = Held<T>::kPack;
    Held<T> held;
#pragma unroll
    for (unsigned p = 0; p < Held<T>::kPacks; ++p) {
        const unsigned c = Held<T>::column(begin, p);
        held.packs[p] = load<kPack>(values, c, cols, aligned && c < cols, negative_infinity());
    }
    return held;
}

// The chunk's statistics, in every thread.
template <typename T>
__device__ static Statistics chunk_statistics(const Held<T>& held) {
    constexpr unsigned kPack = Held<T>::kPack;
    float maximum = fault("max_from_zero") ? 0.0f : negative_infinity();
#pragma unroll
    for (const Pack<kPack>& pack : held.packs) {
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) maximum = max_nan(maximum, pack.at[i]);
    }
    maximum = block_reduce<kThreads>(maximum, Max());

    const float zero = reference(maximum);
    float sum = 0.0f;
#pragma unroll
    for (const Pack<kPack>& pack : held.packs) {
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) sum = carried(sum + expf(pack.at[i] - zero));
    }
    return {maximum, block_reduce<kThreads>(sum, Sum())};
}

// The statistics of a row from those of its chunks: each lane takes every 32nd chunk.
__device__ static Statistics merge(const float* maxima, const float* sums, unsigned chunks) {
    const unsigned merged = fault("last_tile_dropped") && chunks > 1 ? chunks - 1 : chunks;
    float maximum = negative_infinity();
    for (unsigned k = lane_index(); k < chunks; k += kWarp) maximum = max_nan(maximum, maxima[k]);
    maximum = lanes_reduce<kWarp>(maximum, Max());

    const float zero = reference(maximum);
    float sum = 0.0f;
    for (unsigned k = lane_index(); k < merged; k += kWarp) {
        const float scale = fault("rescale_dropped") ? 1.0f : expf(maxima[k] - zero);
        sum = fmaf(sums[k], scale, sum);
    }
    return {maximum, lanes_reduce<kWarp>(sum, Sum())};
}

// A block's statistics, to place `row * chunks + chunk` of each array.
template <typename T>
__device__ static void statistics_block(const T* x, float* maxima, float* sums, unsigned rows,
                                        unsigned cols) {
    const unsigned chunks = chunks_of(cols);
    const unsigned row = blockIdx.x / chunks;
    if (row >= rows) return;
    const unsigned begin = blockIdx.x % chunks * kChunk;
    const bool aligned = rows_aligned<kWide<T>>(x, cols);
    const Statistics statistics =
        chunk_statistics(load_chunk(row_start(x, row, cols), begin, cols, aligned));
    if (threadIdx.x == 0) {
        maxima[blockIdx.x] = statistics.maximum;
        sums[blockIdx.x] = statistics.sum;
    }
}

template <typename T>
__device__ static void scale_block(const T* x, const float* maxima, const float* sums, T* y,
                                   unsigned rows, unsigned cols) {
    constexpr unsigned kPack = Held<T>::kPack;
    const unsigned chunks = chunks_of(cols);
    const unsigned row = blockIdx.x / chunks;
    if (row >= rows) return;
    const unsigned begin = blockIdx.x % chunks * kChunk;
    const bool loads_aligned = rows_aligned<kPack>(x, cols);
    const bool stores_aligned = rows_aligned<kPack>(y, cols);
    // In the fault only the first launch knows where rows start that are no multiple of 8 long.
    const unsigned stride = fault("stride_in_one_pass") ? (cols + 7) / 8 * 8 : cols;
    Held<T> held = load_chunk(row_start(x, row, stride), begin, cols, loads_aligned);

    const unsigned source = fault("off_by_one_row") && row > 0 ? row - 1 : row;
    const Statistics statistics =
        merge(row_start(maxima, source, chunks), row_start(sums, row, chunks), chunks);
#pragma unroll
    for (unsigned p = 0; p < Held<T>::kPacks; ++p) {
        const unsigned c = Held<T>::column(begin, p);
        if (c >= cols) continue;
        Pack<kPack>& pack = held.packs[p];
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) {
            pack.at[i] = expf(pack.at[i] - statistics.maximum) / statistics.sum;
        }
        store(pack, row_start(y, row, cols), c, cols, stores_aligned);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_split_statistics_f32(const float* __restrict__ x, float* __restrict__ maxima,
                             float* __restrict__ sums, unsigned rows, unsigned cols) {
    statistics_block(x, maxima, sums, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_split_scale_f32(const float* __restrict__ x, const float* __restrict__ maxima,
                        const float* __restrict__ sums, float* __restrict__ y, unsigned rows,
                        unsigned cols) {
    scale_block(x, maxima, sums, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_split_statistics_bf16(const __nv_bfloat16* __restrict__ x, float* __restrict__ maxima,
                              float* __restrict__ sums, unsigned rows, unsigned cols) {
    statistics_block(x, maxima, sums, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
softmax_split_scale_bf16(const __nv_bfloat16* __restrict__ x, const float* __restrict__ maxima,
                         const float* __restrict__ sums, __nv_bfloat16* __restrict__ y,
                         unsigned rows, unsigned cols) {
    scale_block(x, maxima, sums, y, rows, cols);
}
