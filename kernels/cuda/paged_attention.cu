// Decode attention over a paged cache [pages, kPage, kv_heads, Dim]: one block a sequence and head
// of the cache. Key k of sequence b lies in page table[b, k / kPage]; a sequence has lengths[b]
// keys, and what its last page holds beyond them is of no effect.
#include "attention.cuh"

constexpr int kPage = 16;

// A sequence's keys, by way of its row of the page table.
struct Paged {
    const __nv_bfloat16* keys;
    const __nv_bfloat16* values;
    const int* pages;
    int length;
    int64_t stride;
    int64_t offset;

    __device__ int64_t row(int key) const {
        // The page after the right one, where there is one.
        const int shift = fault("wrong_page") && key + kPage < length ? 1 : 0;
        const int64_t page = pages[key / kPage + shift];
        return (page * kPage + key % kPage) * stride + offset;
    }
};

template <int Dim, int Group>
__device__ void paged_attention(const __nv_bfloat16* q, const __nv_bfloat16* keys,
                                       const __nv_bfloat16* values, const int* table,
                                       const int* lengths, __nv_bfloat16* out, int kv_heads,
                                       int most_pages, float scale) {
    __shared__ attention::Shared<Dim, Group> shared;
    const int head = static_cast<int>(blockIdx.x);
    const int sequence = static_cast<int>(blockIdx.y);
    const int row = fault("off_by_one_row") && sequence > 0 ? sequence - 1 : sequence;
    const int length = lengths[row];
    // Past the sequence's end a mask that multiplies would still read its last page.
    const int pages = (length + kPage - 1) / kPage;
    const int held = fault("mask_by_multiplication") ? pages * kPage : length;
    const Paged cache = {keys, values, table + static_cast<int64_t>(sequence) * most_pages, held,
                         static_cast<int64_t>(kv_heads) * Dim, static_cast<int64_t>(head) * Dim};
    const int64_t group = (static_cast<int64_t>(sequence) * kv_heads + head) * Group * Dim;
    const attention::Range range = {0, length};
    const auto outcome = attention::attend<Dim, Group>(q + group, cache, range, scale, shared);
    attention::finish(outcome, out + group, shared);
}

extern "C" __global__ void __launch_bounds__(attention::kThreads)
paged_attention_d128(const __nv_bfloat16* __restrict__ q, const __nv_bfloat16* __restrict__ keys,
                     const __nv_bfloat16* __restrict__ values, const int* __restrict__ table,
                     const int* __restrict__ lengths, __nv_bfloat16* __restrict__ out,
                     int kv_heads, int most_pages, float scale) {
    paged_attention<128, 4>(q, keys, values, table, lengths, out, kv_heads, most_pages, scale);
}
