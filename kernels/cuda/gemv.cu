// A dense matrix times a vector, y = W x: one warp a row of W, fp32 sums, fp32 or bf16 weights.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr int kRowsPerBlock = kThreads / kWarp;

// A lane loads as many weights as fit one wide access, and the inputs that they multiply.
template <typename Weight>
__device__ static void gemv(const Weight* w, const float* x, float* y, unsigned rows,
                            unsigned cols) {
    constexpr unsigned kPack = kWide<Weight>;
    const unsigned row = blockIdx.x * kRowsPerBlock + warp_index();
    if (row >= rows) return;  // A whole warp leaves.
    const unsigned source = fault("off_by_one_row") && row > 0 ? row - 1 : row;
    const Weight* weights = row_start(w, source, cols);
    const bool aligned = rows_aligned<kPack>(w, cols) && rows_aligned<kPack>(x, cols);

    const unsigned end = fault("dropped_tail") ? cols / kPack * kPack : cols;
    float sum = 0.0f;
    for (unsigned c = lane_index() * kPack; c < end; c += kWarp * kPack) {
        const Pack<kPack> p = load<kPack>(weights, c, cols, aligned, 0.0f);
        const Pack<kPack> q = load<kPack>(x, c, cols, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) sum = carried(fmaf(p.at[i], q.at[i], sum));
    }
    sum = lanes_reduce<fault("short_tree") ? kWarp / 2 : kWarp>(sum, Sum());
    if (fault("unwritten_element") && row + 1 == rows && row % kRowsPerBlock != 0) return;
    if (lane_index() == 0) y[row] = sum;
}

extern "C" __global__ void __launch_bounds__(kThreads)
gemv_f32(const float* __restrict__ w, const float* __restrict__ x, float* __restrict__ y,
         unsigned rows, unsigned cols) {
    gemv(w, x, y, rows, cols);
}

extern "C" __global__ void __launch_bounds__(kThreads)
gemv_bf16(const __nv_bfloat16* __restrict__ w, const float* __restrict__ x, float* __restrict__ y,
          unsigned rows, unsigned cols) {
    gemv(w, x, y, rows, cols);
}
