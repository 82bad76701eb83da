// The k largest elements of each row and where they are: one block a row.
//
// The rule: a row's elements are ordered by value, descending. A NaN, of whatever sign and payload,
// comes before every number; -0 and +0 are equal; of equal elements, two NaNs among them, the one
// with the lower index comes first. Place j of a row gets the j-th element in that order, bits
// unchanged, and its index. Where k passes the number of columns, the places left over get -Inf and
// the index -1.
#include "common.cuh"

constexpr int kThreads = 128;

// Smaller than the key of every element.
constexpr uint64_t kNone = 0;

// Larger for a larger value, and never zero: NaNs are the largest, the two zeros are equal.
__device__ static uint32_t value_rank(uint32_t bits) {
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude > 0x7f80u) return fault("nan_smallest") ? 0x0001u : 0xffffu;
    if constexpr (fault("sign_ignored")) return 0x8000u + magnitude;
    const bool negative = (bits & 0x8000u) != 0 && (magnitude != 0 || fault("zeros_ordered"));
    if (fault("zeros_ordered") && negative) return 0x7fffu - magnitude;
    return negative ? 0x8000u - magnitude : 0x8000u + magnitude;
}

// A key for each element that puts the row in order: by rank, then by the lower index.
__device__ static uint64_t element_key(__nv_bfloat16 value, unsigned index) {
    const uint32_t rank = value_rank(__bfloat16_as_ushort(value));
    const uint32_t place = fault("last_of_equals") ? index + 1 : ~index;
    return static_cast<uint64_t>(rank) << 32 | place;
}

__device__ static unsigned key_index(uint64_t key) {
    if constexpr (fault("last_of_equals")) return static_cast<uint32_t>(key) - 1;
    return ~static_cast<uint32_t>(key);
}

// The largest key under `limit` among the elements that fall to this thread.
__device__ static uint64_t best_below(const __nv_bfloat16* values, unsigned cols, uint64_t limit) {
    const unsigned end = fault("dropped_tail") ? cols / kThreads * kThreads : cols;
    uint64_t best = kNone;
    for (unsigned c = threadIdx.x; c < end; c += kThreads) {
        const uint64_t key = element_key(values[c], c);
        if (key < limit && key > best) best = key;
    }
    return best;
}

// Each round elects the block's largest candidate; only the thread that held it looks for another.
extern "C" __global__ void __launch_bounds__(kThreads)
top_k_bf16(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ values,
           int* __restrict__ indices, unsigned rows, unsigned cols, unsigned k) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const __nv_bfloat16* elements = row_start(x, row, cols);
    __nv_bfloat16* row_values = row_start(values, row, k);
    int* row_indices = row_start(indices, row, k);

    uint64_t candidate = best_below(elements, cols, ~kNone);
    for (unsigned place = 0; place < k; ++place) {
        const uint64_t winner = block_reduce<kThreads>(candidate, Max());
        if (threadIdx.x == 0) {
            const bool found = winner != kNone;
            const unsigned index = key_index(winner);
            row_values[place] = found ? elements[index] : __ushort_as_bfloat16(0xff80u);
            row_indices[place] = found ? static_cast<int>(index) : -1;
        }
        if (candidate == winner) candidate = best_below(elements, cols, winner);
    }
}
