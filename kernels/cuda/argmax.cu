// The index of the largest element of each row, in the order of ranking.cuh: one block a row.
#include "ranking.cuh"

constexpr int kThreads = 256;

template <typename T>
__device__ static void argmax(const T* x, int* indices, unsigned rows, unsigned cols) {
    constexpr unsigned kPack = kWide<T>;
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const T* elements = row_start(x, row, cols);
    const bool aligned = rows_aligned<kPack>(x, cols);
    const unsigned end = fault("dropped_tail") ? cols / kPack * kPack : cols;

    uint64_t best = ranking::kNone;
    for (unsigned c = threadIdx.x * kPack; c < end; c += kThreads * kPack) {
        const Pack<kPack> pack = load<kPack>(elements, c, cols, aligned, negative_infinity());
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) {
            // Past the end of a row there is nothing, not even a -Inf.
            if (c + i >= cols) break;
            const uint64_t key = ranking::element_key(pack.at[i], c + i);
            best = best > key ? best : key;
        }
    }
    best = block_reduce<kThreads>(best, Max());
    const bool skipped = fault("unwritten_element") && row + 1 == rows && rows > 1;
    if (threadIdx.x == 0 && !skipped) indices[row] = static_cast<int>(ranking::key_index(best));
}

extern "C" __global__ void __launch_bounds__(kThreads)
argmax_f32(const float* __restrict__ x, int* __restrict__ indices, unsigned rows, unsigned cols) {
    argmax(x, indices, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
argmax_bf16(const __nv_bfloat16* __restrict__ x, int* __restrict__ indices, unsigned rows,
            unsigned cols) {
    argmax(x, indices, rows, cols);
}
