// Adds a layer's output to the residual stream in place, and writes the RMS norm of the sum:
// residual += x; y = residual * rsqrt(mean(residual^2) + eps) * w. One block a row.
//
// Two ways to round. In steps, as array libraries do that run one operation after the other in
// bf16: the sum, the normed value and the product are each rounded. Once: the norm takes the sum in
// fp32 and is rounded at the end, and the stream keeps the sum in its own type. A row is read twice
// and the stream written in the second pass, so that both passes see the same addends.
#include "common.cuh"

constexpr int kThreads = 256;

using Bf16 = __nv_bfloat16;

enum class Rounds { kOnce, kInSteps };

// The sum of the addends as the norm takes it.
template <Rounds Mode>
__device__ static float add(float x, float residual) {
    if constexpr (fault("stale_residual")) return residual;
    constexpr bool kRounds = Mode == Rounds::kInSteps ? !fault("sum_unrounded")
                                                      : fault("sum_rounded");
    return kRounds ? rounded<Bf16>(x + residual) : x + residual;
}

// The normed value as the weight takes it.
template <Rounds Mode>
__device__ static float normed(float sum, float inverse) {
    constexpr bool kRounds = Mode == Rounds::kInSteps ? !fault("norm_unrounded")
                                                      : fault("norm_rounded");
    return kRounds ? rounded<Bf16>(sum * inverse) : sum * inverse;
}

// What a row is scaled by, from its sum of squares.
__device__ static float inverse_root(float squares, unsigned cols, float eps) {
    const float mean = squares / static_cast<float>(cols);
    if constexpr (fault("eps_outside")) return 1.0f / (sqrtf(mean) + eps);
    const float inverse = rsqrtf(mean + eps);
    return fault("inverse_rounded") ? rounded<Bf16>(inverse) : inverse;
}

// Writes N elements, or those of them that lie inside the row.
template <unsigned N, typename T>
__device__ static void write(const Pack<N>& pack, T* row, unsigned c, unsigned cols,
                             bool aligned) {
    store(pack, row, c, fault("past_the_end") ? c + N : cols, aligned);
}

// The residual rows are read and written through one pointer, each element by one thread.
template <Rounds Mode, unsigned N, typename Stream>
__device__ static void norm_row(const Bf16* __restrict__ x, Stream* residual,
                                const Bf16* __restrict__ w, Bf16* __restrict__ y, unsigned rows,
                                unsigned cols, float eps) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const Bf16* addends = row_start(x, row, cols);
    Stream* stream = row_start(residual, row, cols);
    const bool aligned = rows_aligned<N>(x, cols) && rows_aligned<N>(residual, cols) &&
                         rows_aligned<N>(w, cols) && rows_aligned<N>(y, cols);

    const unsigned end = fault("dropped_tail") ? cols - cols % N : cols;
    float squares = 0.0f;
    for (unsigned c = threadIdx.x * N; c < end; c += kThreads * N) {
        const Pack<N> added = load<N>(addends, c, cols, aligned, 0.0f);
        const Pack<N> held = load<N>(stream, c, cols, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
            const float sum = add<Mode>(added.at[i], held.at[i]);
            squares = carried(fmaf(sum, sum, squares));
        }
    }
    squares = block_reduce<kThreads>(squares, Sum());
    const float inverse = inverse_root(squares, cols, eps);

    Bf16* outputs = row_start(y, row, cols);
    for (unsigned c = threadIdx.x * N; c < cols; c += kThreads * N) {
        const Pack<N> added = load<N>(addends, c, cols, aligned, 0.0f);
        const Pack<N> weights = load<N>(w, c, cols, aligned, 0.0f);
        Pack<N> held = load<N>(stream, c, cols, aligned, 0.0f);
        Pack<N> scaled;
#pragma unroll
        for (unsigned i = 0; i < N; ++i) {
            const float sum = add<Mode>(added.at[i], held.at[i]);
            scaled.at[i] = normed<Mode>(sum, inverse) * weights.at[i];
            held.at[i] = added.at[i] + held.at[i];
        }
        if constexpr (!fault("residual_kept")) write(held, stream, c, cols, aligned);
        write(scaled, outputs, c, cols, aligned);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
residual_norm_steps_bf16(const Bf16* x, Bf16* residual, const Bf16* w, Bf16* y, unsigned rows,
                         unsigned cols, float eps) {
    norm_row<Rounds::kInSteps, 8>(x, residual, w, y, rows, cols, eps);
}

extern "C" __global__ void __launch_bounds__(kThreads)
residual_norm_once_bf16(const Bf16* x, Bf16* residual, const Bf16* w, Bf16* y, unsigned rows,
                        unsigned cols, float eps) {
    norm_row<Rounds::kOnce, 8>(x, residual, w, y, rows, cols, eps);
}

// A stream that is kept in fp32 between layers that compute in bf16.
extern "C" __global__ void __launch_bounds__(kThreads)
residual_norm_once_f32(const Bf16* x, float* residual, const Bf16* w, Bf16* y, unsigned rows,
                       unsigned cols, float eps) {
    norm_row<Rounds::kOnce, 8>(x, residual, w, y, rows, cols, eps);
}
