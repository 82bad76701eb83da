// Decode attention over the last `window` keys of a contiguous cache [length, kv_heads, Dim]: one
// block a head of the cache, whose group of query heads share its keys and values.
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
__device__ static void attention_window(const __nv_bfloat16* q, const __nv_bfloat16* keys,
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
