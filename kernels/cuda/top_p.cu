// Top-p sampling from the logits of a row of candidates: one block a row, no sort.
//
// Candidates in the order of ranking.cuh have masses before them; the nucleus is every one before
// which there is less mass than top_p. The draw u = bits / 2^32 takes the first candidate at which
// the mass passes u times the nucleus's. Both are found by a search over the bits of a rank: the
// mass at or above a rank falls as the rank rises, and every such mass is added in the same order,
// so that rounding cannot turn it around. A row without a distribution (a NaN or a +Inf among its
// logits, or nothing but -Inf) draws its first candidate, with a chance of NaN.
#include "ranking.cuh"

constexpr int kThreads = 128;
// Candidates of one thread, in registers: neighbours, so that threads are in order of index.
constexpr int kOwned = 8;
constexpr int kMostColumns = kThreads * kOwned;

struct AddCounts {
    __device__ unsigned operator()(unsigned a, unsigned b) const { return a + b; }
};

// A thread's candidates.
struct Candidates {
    uint32_t rank[kOwned];
    float chance[kOwned];
};

// The chances, all NaN where the row has no distribution.
__device__ static Candidates load_candidates(const float* logits, unsigned cols, bool aligned) {
    const unsigned first = threadIdx.x * kOwned;
    const bool is_inside = first < cols;
    Pack<kOwned> pack = is_inside ? load<kOwned>(logits, first, cols, aligned, negative_infinity())
                                  : load_guarded<kOwned>(logits, first, 0, negative_infinity());
    Candidates mine;
    float largest = negative_infinity();
    const unsigned last = fault("dropped_tail") ? cols / kOwned * kOwned : cols;
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
        const bool exists = first + i < last;
        if (fault("nan_dropped") && pack.at[i] != pack.at[i]) pack.at[i] = negative_infinity();
        // Nothing ranks below every candidate, so that no search stops at it.
        mine.rank[i] = exists ? ranking::value_rank(pack.at[i]) : 0;
        largest = fault("fmax_for_max") ? fmaxf(largest, pack.at[i]) : max_nan(largest, pack.at[i]);
    }
    largest = block_reduce<kThreads>(largest, Max());
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
        mine.chance[i] = mine.rank[i] == 0 ? 0.0f : __expf(pack.at[i] - largest);
        sum = carried(sum + mine.chance[i]);
    }
    const float total = block_reduce<kThreads>(sum, Sum());
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
        if (mine.rank[i] != 0) mine.chance[i] /= total;
    }
    return mine;
}

// The mass of the candidates whose rank is at least `rank`, in every thread.
__device__ static float mass_from(const Candidates& mine, uint32_t rank) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kOwned; ++i) sum += mine.rank[i] >= rank ? mine.chance[i] : 0.0f;
    return block_reduce<kThreads>(sum, Sum());
}

// The largest rank from which on there is enough mass; 0 if there never is.
template <typename Enough>
__device__ static uint32_t last_rank(const Candidates& mine, Enough enough) {
    uint32_t found = 0;
    for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
        if (enough(mass_from(mine, found | bit))) found |= bit;
    }
    return found;
}

// Candidates of one rank, which all have one chance.
struct Ties {
    float chance;
    unsigned count;
    // The mass of those that rank higher.
    float above;
};

__device__ static Ties ties_at(const Candidates& mine, uint32_t rank) {
    float chance = 0.0f;
    unsigned count = 0;
#pragma unroll
    for (int i = 0; i < kOwned; ++i) {
        if (mine.rank[i] != rank) continue;
        chance = mine.chance[i];
        ++count;
    }
    const float above = rank == 0xffffffffu ? 0.0f : mass_from(mine, rank + 1);
    return {block_reduce<kThreads>(chance, Max()), block_reduce<kThreads>(count, AddCounts()),
            above};
}

// The index of candidate number `place` among those of one rank, in order of index.
__device__ static unsigned tied_index(const Candidates& mine, uint32_t rank, unsigned place) {
    unsigned found = 0;
    for (unsigned bit = kMostColumns / 2; bit != 0; bit >>= 1) {
        unsigned before = 0;
#pragma unroll
        for (int i = 0; i < kOwned; ++i) {
            const bool is_before = threadIdx.x * kOwned + i < (found | bit);
            before += mine.rank[i] == rank && is_before ? 1 : 0;
        }
        if (block_reduce<kThreads>(before, AddCounts()) <= place) found |= bit;
    }
    return found;
}

// The candidate that `u` in [0, 1) draws.
__device__ static unsigned draw(const Candidates& mine, float u, float top_p) {
    const uint32_t cut = last_rank(mine, [&](float mass) { return mass >= top_p; });
    const Ties edge = ties_at(mine, cut);
    // How many of the candidates at the edge it takes to reach top_p.
    unsigned kept = edge.count;
    if (edge.above + edge.chance * static_cast<float>(edge.count) > top_p) {
        const float needed = ceilf((top_p - edge.above) / edge.chance);
        kept = min(edge.count, max(1u, static_cast<unsigned>(needed)));
    }
    // The candidate that reaches top_p, or one more.
    if (fault("short_prefix") && edge.above > 0.0f) --kept;
    if (fault("long_prefix")) ++kept;
    float nucleus = fmaf(edge.chance, static_cast<float>(kept), edge.above);
    if (fault("unnormalised")) nucleus = 1.0f;
    const float target = u * nucleus;
    const uint32_t found = last_rank(mine, [&](float mass) { return mass > target; });
    const uint32_t rank = max(found, cut);
    const Ties here = rank == cut ? edge : ties_at(mine, rank);
    const unsigned last = (rank == cut ? max(kept, 1u) : here.count) - 1;
    const float places = fmaxf(0.0f, floorf((target - here.above) / here.chance));
    const unsigned place = places < static_cast<float>(last) ? static_cast<unsigned>(places) : last;
    return tied_index(mine, rank, fault("tie_order") ? here.count - 1 - place : place);
}

extern "C" __global__ void __launch_bounds__(kThreads)
top_p_f32(const float* __restrict__ logits, const unsigned* __restrict__ bits,
          int* __restrict__ token, float* __restrict__ chance, unsigned rows, unsigned cols,
          float top_p) {
    const unsigned row = blockIdx.x;
    if (row >= rows || cols > kMostColumns) return;
    const bool aligned = rows_aligned<kOwned>(logits, cols);
    const Candidates mine = load_candidates(row_start(logits, row, cols), cols, aligned);
    const float total = mass_from(mine, 0);
    // Rounded towards zero, so that u stays below 1.
    const float u = __uint2float_rz(bits[row]) * 0x1p-32f;
    const unsigned chosen = total == total ? draw(mine, u, top_p) : 0;
    if (threadIdx.x == chosen / kOwned) {
        token[row] = static_cast<int>(chosen);
#pragma unroll
        for (int i = 0; i < kOwned; ++i) {
            if (i == chosen % kOwned) chance[row] = mine.chance[i];
        }
    }
}
