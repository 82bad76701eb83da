// Decode attention: the queries of one position, `Group` heads for each head of the cache, attend
// to a range of keys. One block takes all heads that share a head of the cache.
//
// The softmax is online over tiles of keys, in fp32; the weights P of a tile are rounded to bf16,
// relative to the largest score so far, before they meet the values, as tensor-core kernels do. The
// denominator sums them unrounded. A key outside the range is never loaded: whatever the cache
// holds there has no effect. A row whose scores hold a NaN or +Inf, or nothing but -Inf, is all
// NaN.
#pragma once

#include "common.cuh"
#include "faults.cuh"

namespace attention {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kTileKeys = 64;
// Keeps the 16-byte loads of neighbouring threads, a key each, in different banks.
constexpr int kPad = 8;

// Keys `first` up to `last` of a cache; `row` says where the elements of one key start.
struct Range {
    int first;
    int last;
};

template <int Dim, int Group>
struct Shared {
    alignas(16) __nv_bfloat16 keys[kTileKeys][Dim + kPad];
    alignas(16) __nv_bfloat16 values[kTileKeys][Dim + kPad];
    alignas(16) float queries[Group][Dim];
    float scores[Group][kTileKeys];
    __nv_bfloat16 weights[Group][kTileKeys];
    // What the sums so far are worth relative to the largest score of this tile too.
    float rescale[Group];
    float denominator[Group];
};

// What a block knows of its heads after all tiles: in registers, spread over the threads.
template <int Dim, int Group>
struct Outcome {
    // Each thread owns two neighbouring dims of every kStride-th head.
    static constexpr int kPairs = Dim / 2;
    static constexpr int kStride = kThreads / kPairs;
    static constexpr int kOwned = (Group + kStride - 1) / kStride;
    // The largest scores and the denominators belong to whole warps: head `warp + i * kWarps`.
    static constexpr int kHeads = (Group + kWarps - 1) / kWarps;

    float sums[kOwned][2];
    float largest[kHeads];
    float denominator[kHeads];

    __device__ static int dim() { return static_cast<int>(threadIdx.x) % kPairs * 2; }
    __device__ static int head(int i) {
        return static_cast<int>(threadIdx.x) / kPairs + i * kStride;
    }
    __device__ static int warp_head(int i) { return static_cast<int>(warp_index()) + i * kWarps; }
};

// What exponents are taken relative to: relative to -Inf every difference would be a NaN.
__device__ inline float reference(float largest) {
    return largest == negative_infinity() ? 0.0f : largest;
}

template <int Dim, int Group>
__device__ inline void load_queries(const __nv_bfloat16* queries, Shared<Dim, Group>& shared) {
    for (int i = static_cast<int>(threadIdx.x); i < Group * Dim; i += kThreads) {
        shared.queries[i / Dim][i % Dim] = widen(queries[i]);
    }
}

// Loads the keys and values of one tile, a 16-byte vector at a time; zeros stand for keys outside
// the range.
template <int Dim, int Group, typename Cache>
__device__ inline void load_tile(const Cache& cache, int tile, Range range,
                                 Shared<Dim, Group>& shared) {
    constexpr int kVectors = Dim / 8;
    const int first = fault("mask_by_multiplication") ? 0 : range.first;
    const int last = fault("mask_by_multiplication") ? cache.length : range.last;
    for (int i = static_cast<int>(threadIdx.x); i < kTileKeys * kVectors; i += kThreads) {
        const int place = i / kVectors;
        const int dim = i % kVectors * 8;
        const int key = tile + place;
        uint4 keys = make_uint4(0, 0, 0, 0);
        uint4 values = keys;
        if (key >= first && key < last) {
            const int64_t start = cache.row(key) + dim;
            keys = *reinterpret_cast<const uint4*>(cache.keys + start);
            values = *reinterpret_cast<const uint4*>(cache.values + start);
        }
        *reinterpret_cast<uint4*>(&shared.keys[place][dim]) = keys;
        *reinterpret_cast<uint4*>(&shared.values[place][dim]) = values;
    }
}

// The scores of one tile: a thread takes one key and every second head.
template <int Dim, int Group>
__device__ inline void score_tile(int tile, Range range, float scale,
                                  Shared<Dim, Group>& shared) {
    constexpr int kSides = kThreads / kTileKeys;
    constexpr int kHeads = Group / kSides;
    const int place = static_cast<int>(threadIdx.x) % kTileKeys;
    const int side = static_cast<int>(threadIdx.x) / kTileKeys;
    float dots[kHeads] = {};
#pragma unroll 2
    for (int d = 0; d < Dim; d += 8) {
        const Pack<8> key = load_wide(&shared.keys[place][d]);
#pragma unroll
        for (int i = 0; i < kHeads; ++i) {
            const float* query = &shared.queries[side + i * kSides][d];
            const Pack<4> low = load_wide(query);
            const Pack<4> high = load_wide(query + 4);
#pragma unroll
            for (int j = 0; j < 4; ++j) dots[i] = fmaf(low.at[j], key.at[j], dots[i]);
#pragma unroll
            for (int j = 0; j < 4; ++j) dots[i] = fmaf(high.at[j], key.at[j + 4], dots[i]);
        }
    }
    const bool visible = tile + place >= range.first && tile + place < range.last;
#pragma unroll
    for (int i = 0; i < kHeads; ++i) {
        float score = visible ? dots[i] * scale : negative_infinity();
        // An additive mask of finite size, which no NaN or infinity obeys.
        if constexpr (fault("mask_by_multiplication")) {
            score = dots[i] * scale * (visible ? 1.0f : 0.0f) - (visible ? 0.0f : 1e30f);
        }
        shared.scores[side + i * kSides][place] = score;
    }
}

// Turns the scores of a tile into weights, relative to the largest score so far.
template <int Dim, int Group>
__device__ inline void weigh_tile(Outcome<Dim, Group>& outcome, bool is_last,
                                  Shared<Dim, Group>& shared) {
    using Owner = Outcome<Dim, Group>;
    const int lane = static_cast<int>(lane_index());
#pragma unroll
    for (int i = 0; i < Owner::kHeads; ++i) {
        const int head = Owner::warp_head(i);
        if (head >= Group) break;  // The whole warp.
        const float low = shared.scores[head][lane];
        const float high = shared.scores[head][lane + kWarp];
        const float tile_largest = lanes_reduce<kWarp>(max_nan(low, high), Max());
        const float largest = max_nan(outcome.largest[i], tile_largest);
        const float zero = reference(largest);
        const float rescale = __expf(outcome.largest[i] - zero);
        const float weights[2] = {__expf(low - zero), __expf(high - zero)};
        const float sum = lanes_reduce<kWarp>(weights[0] + weights[1], Sum());
        shared.weights[head][lane] = __float2bfloat16_rn(weights[0]);
        shared.weights[head][lane + kWarp] = __float2bfloat16_rn(weights[1]);
        const bool skip = fault("last_tile_dropped") && is_last && outcome.denominator[i] != 0.0f;
        if (!skip) outcome.denominator[i] = outcome.denominator[i] * rescale + sum;
        // Stale: written in the first tile alone, as where a kernel takes its maximum to be final.
        const bool stale = fault("stale_shared") && outcome.largest[i] != negative_infinity();
        if (lane == 0 && !stale) shared.rescale[head] = rescale;
        outcome.largest[i] = largest;
    }
}

// Adds one tile's weighted values to the sums.
template <int Dim, int Group>
__device__ inline void add_tile(Outcome<Dim, Group>& outcome, Shared<Dim, Group>& shared) {
    using Owner = Outcome<Dim, Group>;
    const int dim = Owner::dim();
#pragma unroll
    for (int i = 0; i < Owner::kOwned; ++i) {
        if constexpr (fault("missing_rescale")) break;
        if (Owner::head(i) >= Group) break;
        const float rescale = shared.rescale[Owner::head(i)];
        outcome.sums[i][0] *= rescale;
        outcome.sums[i][1] *= rescale;
    }
#pragma unroll 4
    for (int place = 0; place < kTileKeys; ++place) {
        const unsigned pair = *reinterpret_cast<const unsigned*>(&shared.values[place][dim]);
        const float low = __uint_as_float(pair << 16);
        const float high = __uint_as_float(pair & 0xffff0000u);
#pragma unroll
        for (int i = 0; i < Owner::kOwned; ++i) {
            if (Owner::head(i) >= Group) break;
            const float weight = widen(shared.weights[Owner::head(i)][place]);
            outcome.sums[i][0] = fmaf(weight, low, outcome.sums[i][0]);
            outcome.sums[i][1] = fmaf(weight, high, outcome.sums[i][1]);
        }
    }
}

// Attends to every tile that the range touches; tiles start at multiples of kTileKeys. Afterwards
// the denominators are in shared memory as well, for the threads that divide by them.
template <int Dim, int Group, typename Cache>
__device__ inline Outcome<Dim, Group> attend(const __nv_bfloat16* queries, const Cache& cache,
                                             Range range, float scale,
                                             Shared<Dim, Group>& shared) {
    static_assert(Dim % 8 == 0 && kThreads % (Dim / 2) == 0 && Group % 2 == 0, "thread ownership");
    using Owner = Outcome<Dim, Group>;
    if constexpr (fault("last_key_dropped")) range.last -= 1;
    Owner outcome = {};
#pragma unroll
    for (int i = 0; i < Owner::kHeads; ++i) {
        outcome.largest[i] = fault("max_from_zero") ? 0.0f : negative_infinity();
    }
    load_queries(queries, shared);
    for (int tile = range.first / kTileKeys * kTileKeys; tile < range.last; tile += kTileKeys) {
        load_tile(cache, tile, range, shared);
        if constexpr (!fault("missing_load_barrier")) __syncthreads();
        score_tile(tile, range, scale, shared);
        __syncthreads();
        weigh_tile(outcome, tile + kTileKeys >= range.last, shared);
        if constexpr (!fault("missing_barrier")) __syncthreads();
        add_tile(outcome, shared);
        __syncthreads();  // Before the next tile's loads.
    }
#pragma unroll
    for (int i = 0; i < Owner::kHeads; ++i) {
        const int head = Owner::warp_head(i);
        if (head < Group && lane_index() == 0) shared.denominator[head] = outcome.denominator[i];
    }
    __syncthreads();
    return outcome;
}

// Writes the outputs of a block's heads, `Dim` elements each.
template <int Dim, int Group, typename Out>
__device__ inline void finish(const Outcome<Dim, Group>& outcome, Out* outputs,
                              const Shared<Dim, Group>& shared) {
    using Owner = Outcome<Dim, Group>;
#pragma unroll
    for (int i = 0; i < Owner::kOwned; ++i) {
        const int head = Owner::head(i);
        if (head >= Group) break;
        Out* to = outputs + head * Dim + Owner::dim();
        narrow(outcome.sums[i][0] / shared.denominator[head], to);
        narrow(outcome.sums[i][1] / shared.denominator[head], to + 1);
    }
}

// Writes what a block knows of its heads where a second launch merges it with the other blocks':
// the weighted sums, `Dim` elements a head, and per head the largest score and the denominator.
template <int Dim, int Group>
__device__ inline void save(const Outcome<Dim, Group>& outcome, float* sums, float2* statistics) {
    using Owner = Outcome<Dim, Group>;
#pragma unroll
    for (int i = 0; i < Owner::kOwned; ++i) {
        const int head = Owner::head(i);
        if (head >= Group) break;
        float2* to = reinterpret_cast<float2*>(sums + head * Dim + Owner::dim());
        *to = make_float2(carried(outcome.sums[i][0]), carried(outcome.sums[i][1]));
    }
#pragma unroll
    for (int i = 0; i < Owner::kHeads; ++i) {
        const int head = Owner::warp_head(i);
        if (head >= Group || lane_index() != 0) continue;
        statistics[head] = make_float2(outcome.largest[i], outcome.denominator[i]);
    }
}

}  // namespace attention
