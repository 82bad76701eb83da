// What attention does to a layer's queries and keys before it uses them: RMS norm of every head's
// row, then a rotation of each pair (i, i + width/2) of its elements by the angle of the token's
// position. One launch for queries and keys, one warp a row.
//
// Two ways to round. In steps, as array libraries do that run one operation after the other in
// bf16: the normed value, the weighted value, both products and their sum. Once: everything in fp32
// and one rounding at the end. The cosines and sines come in tables with a row for each position;
// the tokens of a launch are at positions `past` and on.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kRowsPerBlock = kThreads / kWarp;
// Heads of up to 256 elements: a lane keeps two pairs of neighbours from each half.
constexpr unsigned kMostWidth = 256;
constexpr unsigned kPairs = kMostWidth / (4 * kWarp);

using Bf16 = __nv_bfloat16;

enum class Rounds { kOnce, kInSteps };

// Elements that a lane holds of a row: neighbours i and i + 1 of the first half, with those that
// they rotate with.
struct Pair {
    float low[2];
    float high[2];
};

// A value that is rounded between two steps, but for a fault, and kept in fp32 in the other form.
template <Rounds Mode>
__device__ static float point(float value, bool dropped) {
    return Mode == Rounds::kInSteps && !dropped ? rounded<Bf16>(value) : value;
}

// Rows start on 4 bytes, since a head's width is a multiple of four.
__device__ static void load_two(const Bf16* from, float* to) {
    const unsigned raw = *reinterpret_cast<const unsigned*>(from);
    to[0] = __uint_as_float(raw << 16);
    to[1] = __uint_as_float(raw & 0xffff0000u);
}

__device__ static void load_two(const float* from, float* to) {
    const float2 raw = *reinterpret_cast<const float2*>(from);
    to[0] = raw.x;
    to[1] = raw.y;
}

__device__ static void store_two(const float* from, Bf16* to) {
    *reinterpret_cast<unsigned*>(to) = narrow_two(from[0], from[1], to);
}

__device__ static float square(float sum, float value) { return carried(fmaf(value, value, sum)); }

// The place in its half of a lane's pair number `pair`.
__device__ static unsigned place(unsigned pair) { return 2 * (lane_index() + pair * kWarp); }

// Reads a row, and returns what its norm scales it by.
__device__ static float load_row(const Bf16* row, unsigned width, float eps, Pair* held) {
    const unsigned half = width / 2;
    float squares = 0.0f;
#pragma unroll
    for (unsigned pair = 0; pair < kPairs; ++pair) {
        const unsigned i = place(pair);
        if (i >= half) break;
        load_two(row + i, held[pair].low);
        load_two(row + half + i, held[pair].high);
        if (fault("last_tile_dropped") && pair > 0) break;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            squares = square(square(squares, held[pair].low[k]), held[pair].high[k]);
        }
    }
    squares = lanes_reduce<kWarp>(squares, Sum());
    const float mean = squares / static_cast<float>(width);
    if constexpr (fault("eps_outside")) return 1.0f / (sqrtf(mean) + eps);
    const float inverse = rsqrtf(mean + eps);
    return fault("inverse_rounded") ? rounded<Bf16>(inverse) : inverse;
}

template <Rounds Mode>
__device__ static float normed(float value, float inverse, float weight) {
    float scaled = point<Mode>(value * inverse, fault("norm_unrounded"));
    if constexpr (Mode == Rounds::kOnce && fault("norm_rounded")) scaled = rounded<Bf16>(scaled);
    return point<Mode>(scaled * weight, fault("weighted_unrounded"));
}

// a cos + b sin.
template <Rounds Mode>
__device__ static float turned(float a, float cos, float b, float sin) {
    return point<Mode>(a * cos, fault("cos_unrounded")) +
           point<Mode>(b * sin, fault("sin_unrounded"));
}

// Norms and rotates one row, with its position's row of the tables.
template <Rounds Mode, typename Table>
__device__ static void rotate_row(const Bf16* row, const Bf16* w, const Table* cos,
                                  const Table* sin, Bf16* out, unsigned width, float eps) {
    const unsigned half = width / 2;
    Pair held[kPairs];
    const float inverse = load_row(row, width, eps, held);
#pragma unroll
    for (unsigned pair = 0; pair < kPairs; ++pair) {
        const unsigned i = place(pair);
        if (i >= half) break;
        Pair weights;
        load_two(w + i, weights.low);
        load_two(w + half + i, weights.high);
        float cosines[2];
        float sines[2];
        load_two(cos + i, cosines);
        load_two(sin + i, sines);
        Pair result;
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            float low = normed<Mode>(held[pair].low[k], inverse, weights.low[k]);
            float high = normed<Mode>(held[pair].high[k], inverse, weights.high[k]);
            if constexpr (fault("swapped_halves")) {
                const float other = low;
                low = high;
                high = other;
            }
            result.low[k] = turned<Mode>(low, cosines[k], -high, sines[k]);
            result.high[k] = turned<Mode>(high, cosines[k], low, sines[k]);
        }
        store_two(result.low, out + i);
        if (!fault("unwritten_element") || i + 2 < half) store_two(result.high, out + half + i);
    }
}

// One row a warp: for every token its rows of queries, then its rows of keys.
template <Rounds Mode, typename Table>
__device__ static void rotate(const Bf16* q, const Bf16* k, const Bf16* q_weight,
                              const Bf16* k_weight, const Table* cos, const Table* sin,
                              Bf16* yq, Bf16* yk, unsigned tokens, unsigned heads,
                              unsigned kv_heads, unsigned width, unsigned past, float eps) {
    const unsigned row = blockIdx.x * kRowsPerBlock + warp_index();
    const unsigned token = row / (heads + kv_heads);
    if (token >= tokens + fault("past_the_end")) return;  // A whole warp leaves.
    const unsigned head = row % (heads + kv_heads);
    const unsigned position = past + token - fault("off_by_one_row");
    const Table* cosines = row_start(cos, position, width / 2);
    const Table* sines = row_start(sin, position, width / 2);
    if (head < heads) {
        const unsigned at = token * heads + head;
        rotate_row<Mode>(row_start(q, at, width), q_weight, cosines, sines,
                         row_start(yq, at, width), width, eps);
    } else {
        const unsigned at = token * kv_heads + head - heads;
        rotate_row<Mode>(row_start(k, at, width), fault("wrong_group") ? q_weight : k_weight,
                         cosines, sines, row_start(yk, at, width), width, eps);
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
qk_rotary_steps_bf16(const Bf16* __restrict__ q, const Bf16* __restrict__ k,
                     const Bf16* __restrict__ q_weight, const Bf16* __restrict__ k_weight,
                     const Bf16* __restrict__ cos, const Bf16* __restrict__ sin,
                     Bf16* __restrict__ yq, Bf16* __restrict__ yk, unsigned tokens,
                     unsigned heads, unsigned kv_heads, unsigned width, unsigned past, float eps) {
    rotate<Rounds::kInSteps>(q, k, q_weight, k_weight, cos, sin, yq, yk, tokens, heads,
                             kv_heads, width, past, eps);
}

extern "C" __global__ void __launch_bounds__(kThreads)
qk_rotary_once_bf16(const Bf16* __restrict__ q, const Bf16* __restrict__ k,
                    const Bf16* __restrict__ q_weight, const Bf16* __restrict__ k_weight,
                    const float* __restrict__ cos, const float* __restrict__ sin,
                    Bf16* __restrict__ yq, Bf16* __restrict__ yk, unsigned tokens,
                    unsigned heads, unsigned kv_heads, unsigned width, unsigned past, float eps) {
    rotate<Rounds::kOnce>(q, k, q_weight, k_weight, cos, sin, yq, yk, tokens, heads,
                          kv_heads, width, past, eps);
}
