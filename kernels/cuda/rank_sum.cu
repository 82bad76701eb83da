// The sum of the shards that a number of ranks hold, in the order of the ranks: fp32 sums, fp32 or
// bf16 shards. Every rank that adds the same shards gets the same bytes.
//
// A plain form, one element a thread, and the form that is served: a wide access a thread, four
// shards loaded before they are added. Both add in the same order to the same bytes.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kAhead = 4;

// A sum after a rank is added: as it is, but in the faults that round it.
__device__ static float after_rank(float sum) {
    if constexpr (fault("rounding_added")) sum = __bfloat162float(__float2bfloat16_rn(sum));
    return carried(sum);
}

template <typename T>
__device__ static void plain(const T* shards, T* y, unsigned ranks, unsigned count) {
    const unsigned i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    // The last block that is not whole.
    if (fault("dropped_tail") && blockIdx.x * kThreads + kThreads > count) return;
    const unsigned added = fault("off_by_one_row") ? ranks - 1 : ranks;
    float sum = widen(shards[i]);
#pragma unroll 4
    for (unsigned s = 1; s < added; ++s) {
        sum = after_rank(sum + widen(row_start(shards, s, count)[i]));
    }
    if constexpr (fault("input_written")) narrow(sum, const_cast<T*>(shards) + i);
    narrow(sum, y + i);
}

// Adds `terms` to `sums`.
template <unsigned N>
__device__ static void add(Pack<N>& sums, const Pack<N>& terms) {
#pragma unroll
    for (unsigned i = 0; i < N; ++i) sums.at[i] = after_rank(sums.at[i] + terms.at[i]);
}

template <typename T>
__device__ static void wide(const T* shards, T* y, unsigned ranks, unsigned count) {
    constexpr unsigned kPack = kWide<T>;
    const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * kPack;
    if (first >= count) return;
    if (fault("dropped_tail") && count - first < kPack) return;
    const bool aligned = rows_aligned<kPack>(shards, count);
    // In the fault the ranks are added from the last to the first.
    const auto shard = [&](unsigned s) {
        const unsigned rank = fault("reversed_ranks") ? ranks - 1 - s : s;
        return load<kPack>(row_start(shards, rank, count), first, count, aligned, 0.0f);
    };

    const unsigned added = fault("off_by_one_row") ? ranks - 1 : ranks;
    Pack<kPack> sums = shard(0);
    unsigned s = 1;
    for (; s + kAhead <= added; s += kAhead) {
        Pack<kPack> terms[kAhead];
#pragma unroll
        for (unsigned k = 0; k < kAhead; ++k) terms[k] = shard(s + k);
        if constexpr (fault("pairwise_ranks")) {
            add(terms[0], terms[1]);
            add(terms[2], terms[3]);
            add(terms[0], terms[2]);
            add(sums, terms[0]);
        } else {
#pragma unroll
            for (unsigned k = 0; k < kAhead; ++k) add(sums, terms[k]);
        }
    }
    for (; s < added; ++s) add(sums, shard(s));
    if constexpr (fault("input_written")) {
        store(sums, const_cast<T*>(shards), first, count, aligned);
    }
    store(sums, y, first, count, rows_aligned<kPack>(y, count));
}

extern "C" __global__ void __launch_bounds__(kThreads)
rank_sum_plain_f32(const float* __restrict__ shards, float* __restrict__ y, unsigned ranks,
                   unsigned count) {
    plain(shards, y, ranks, count);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rank_sum_plain_bf16(const __nv_bfloat16* __restrict__ shards, __nv_bfloat16* __restrict__ y,
                    unsigned ranks, unsigned count) {
    plain(shards, y, ranks, count);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rank_sum_f32(const float* __restrict__ shards, float* __restrict__ y, unsigned ranks,
             unsigned count) {
    wide(shards, y, ranks, count);
}

extern "C" __global__ void __launch_bounds__(kThreads)
rank_sum_bf16(const __nv_bfloat16* __restrict__ shards, __nv_bfloat16* __restrict__ y,
              unsigned ranks, unsigned count) {
    wide(shards, y, ranks, count);
}
