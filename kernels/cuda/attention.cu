// Decode attention over a contiguous cache [length, kv_heads, Dim].
//
// Over the last `window` keys: one block a head of the cache, whose group of query heads share its
// keys and values. Over all keys in splits, for caches too long for one block a head: each block
// takes kSplitKeys of them into scratch, and a second launch merges the splits in order.
#include "attention.cuh"

// A cache whose keys follow one another.
struct Contiguous {
    const __nv_bfloat16* keys;
    const __nv_bfloat16* values;
    int length;
    int64_t stride;
    int64_t offset;

    __device__ int64_t row(int key) const { return key * stride + offset; }
};

template <int Dim, int Group>
__device__ void attention_window(const __nv_bfloat16* q, const __nv_bfloat16* keys,
                                        const __nv_bfloat16* values, __nv_bfloat16* out,
                                        int kv_heads, int length, int window, float scale) {
    __shared__ attention::Shared<Dim, Group> shared;
    const int head = static_cast<int>(blockIdx.x);
    if (head >= kv_heads) return;
    const Contiguous cache = {keys, values, length, static_cast<int64_t>(kv_heads) * Dim,
                              static_cast<int64_t>(head) * Dim};
    const int early = fault("window_off_by_one") ? 1 : 0;
    const attention::Range range = {max(0, length - window - early), length};
    const int64_t group = static_cast<int64_t>(head) * Group * Dim;
    const auto outcome = attention::attend<Dim, Group>(q + group, cache, range, scale, shared);
    attention::finish(outcome, out + group, shared);
}

extern "C" __global__ void __launch_bounds__(attention::kThreads)
attention_window_d64(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ keys,
                     const __nv_bfloat16* __restrict__ values, __nv_bfloat16* __restrict__ out,
                     int kv_heads, int length, int window, float scale) {
    attention_window<64, 8>(q, keys, values, out, kv_heads, length, window, scale);
}

extern "C" __global__ void __launch_bounds__(attention::kThreads)
attention_window_d128(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ keys,
                      const __nv_bfloat16* __restrict__ values, __nv_bfloat16* __restrict__ out,
                      int kv_heads, int length, int window, float scale) {
    attention_window<128, 4>(q, keys, values, out, kv_heads, length, window, scale);
}

constexpr int kSplitKeys = 2 * attention::kTileKeys;

template <int Dim, int Group>
__device__ void attention_split(const __nv_bfloat16* q, const __nv_bfloat16* keys,
                                       const __nv_bfloat16* values, float* sums,
                                       float2* statistics, int kv_heads, int length, float scale) {
    __shared__ attention::Shared<Dim, Group> shared;
    const int head = static_cast<int>(blockIdx.x);
    const int split = static_cast<int>(blockIdx.y);
    if (head >= kv_heads) return;
    const Contiguous cache = {keys, values, length, static_cast<int64_t>(kv_heads) * Dim,
                              static_cast<int64_t>(head) * Dim};
    const int first = split * kSplitKeys;
    // The key at the seam of two splits, in both.
    const int overlap = fault("split_overlap") && first + kSplitKeys < length ? 1 : 0;
    const attention::Range range = {first, min(first + kSplitKeys + overlap, length)};
    const int64_t group = static_cast<int64_t>(head) * Group;
    const auto outcome =
        attention::attend<Dim, Group>(q + group * Dim, cache, range, scale, shared);
    const int64_t saved = (static_cast<int64_t>(split) * kv_heads + head) * Group;
    attention::save(outcome, sums + saved * Dim, statistics + saved);
}

// One block a head: what each split's sums are worth follows from the largest score of all.
template <int Dim>
__device__ void attention_merge(const float* sums, const float2* statistics, float* out,
                                       int heads, int splits) {
    const int head = static_cast<int>(blockIdx.x);
    if (head >= heads) return;
    float largest = negative_infinity();
    for (int split = 0; split < splits; ++split) {
        largest = max_nan(largest, statistics[static_cast<int64_t>(split) * heads + head].x);
    }
    const float zero = attention::reference(largest);
    float sum = 0.0f;
    float denominator = 0.0f;
    for (int split = 0; split < splits; ++split) {
        const int64_t at = static_cast<int64_t>(split) * heads + head;
        const float2 part = statistics[at];
        const float worth = fault("missing_rescale") ? 1.0f : __expf(part.x - zero);
        sum = fmaf(worth, sums[at * Dim + threadIdx.x], sum);
        const bool skip = fault("last_split_dropped") && split > 0 && split + 1 == splits;
        if (!skip) denominator = fmaf(worth, part.y, denominator);
    }
    out[static_cast<int64_t>(head) * Dim + threadIdx.x] = sum / denominator;
}

extern "C" __global__ void __launch_bounds__(attention::kThreads)
attention_split_d64(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ keys,
                    const __nv_bfloat16* __restrict__ values, float* __restrict__ sums,
                    float2* __restrict__ statistics, int kv_heads, int length, float scale) {
    attention_split<64, 8>(q, keys, values, sums, statistics, kv_heads, length, scale);
}

extern "C" __global__ void __launch_bounds__(64)
attention_merge_d64(const float* __restrict__ sums, const float2* __restrict__ statistics,
                    float* __restrict__ out, int heads, int splits) {
    attention_merge<64>(sums, statistics, out, heads, splits);
}
