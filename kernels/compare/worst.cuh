// Finds the worst elements: the blocks that hold them, then the elements in these blocks.
//
// Whatever is among the worst N elements by a measure lies in one of the N blocks whose largest
// measures are the largest, of equals the first. So many are chosen, and one group looks through
// each of them for its worst N. The host merges the lists.

#pragma once

#include "compare.cuh"

// Threads of a group that looks through a block, and elements for each.
constexpr int LOOKERS = 1024, LOOKS = BLOCK / LOOKERS;

// A measure, and one more than where it is: larger measures come first, of equals the earlier
// place. A measure of zero is none.
struct Best {
    uint64_t key, place;
};

static __device__ __forceinline__ bool before(const Best& one, const Best& other) {
    return one.key > other.key || (one.key == other.key && one.place < other.place);
}

// What comes before everything.
static __device__ __forceinline__ Best start() { return Best{NONE, 0}; }

static __device__ __forceinline__ Best none() { return Best{0, NONE}; }

// The first of a warp's.
static __device__ __forceinline__ Best best_of_warp(Best mine) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        Best theirs = {__shfl_xor_sync(~0u, mine.key, step),
                       __shfl_xor_sync(~0u, mine.place, step)};
        if (before(theirs, mine)) mine = theirs;
    }
    return mine;
}

// Gives a group's first `count` by each of `MEASURES`: `next(measure, last)` is this thread's first
// behind `last`, and `take(measure, at, best)` is called by one thread.
template <int THREADS, int MEASURES, typename Next, typename Take>
__device__ __forceinline__ void choose(uint32_t count, Next next, Take take) {
    // In turns, so that one barrier a round is enough.
    __shared__ Best bests[2][MEASURES][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Best mine[MEASURES], last[MEASURES];
#pragma unroll
    for (int measure = 0; measure < MEASURES; measure++) mine[measure] = last[measure] = start();
#pragma unroll 1
    for (uint32_t at = 0; at < count; at++) {
#pragma unroll
        for (int measure = 0; measure < MEASURES; measure++) {
            // Only whose own was taken looks again.
            if (mine[measure].place == last[measure].place)
                mine[measure] = next(measure, last[measure]);
            Best best = best_of_warp(mine[measure]);
            if (lane == 0) bests[at % 2][measure][warp] = best;
        }
        __syncthreads();
#pragma unroll
        for (int measure = 0; measure < MEASURES; measure++) {
            Best best = lane < THREADS / 32 ? bests[at % 2][measure][lane] : none();
            last[measure] = best_of_warp(best);
            if (threadIdx.x == 0) take(measure, at, last[measure]);
        }
    }
    __syncthreads();
}

// How bad an element is, by its error or by its distance.
template <typename Format>
__device__ __forceinline__ uint64_t measure_at(const Format& format, const Arrays& arrays,
                                               uint64_t index, bool by_error, uint32_t equal_nan) {
    auto ours = format.number(format.load(arrays.reference, index));
    auto theirs = format.number(format.load(arrays.candidate, index));
    auto r = format.value(ours), c = format.value(theirs);
    auto steps = format.distance(ours, theirs);
    if (is_finite(r) && is_finite(c)) {
        double error = fabs(double(format.error(r, c, steps)));
        return by_error ? uint64_t(__double_as_longlong(error)) : uint64_t(steps);
    }
    bool both_nan = r != r && c != c;
    bool wrong = class_of(r) != class_of(c) || (both_nan && !equal_nan);
    return wrong && !by_error ? NONE : 0;
}

// The worst elements of one of the chosen blocks by one measure. Group g has the g-th.
template <typename Format>
__device__ __forceinline__ void look(const Arrays& arrays, uint32_t equal_nan, uint32_t worst,
                                     uint64_t* report) {
    __shared__ typename Format::Room room;
    bool by_error = blockIdx.x >= worst;
    uint64_t chosen = report[CHOSEN + blockIdx.x];
    uint64_t* found = report + CHOSEN + 2 * worst + 3 * uint64_t(worst) * blockIdx.x;
    if (chosen == 0) {
        for (uint32_t at = threadIdx.x; at < worst; at += LOOKERS) found[3 * at] = NONE;
        return;
    }
    Format format(arrays.table, arrays.bits, room);
    __syncthreads();
    uint64_t from = (chosen - 1) * BLOCK + threadIdx.x;
    // Looked at anew where the last one found was this thread's; they lie in the cache then.
    auto next = [&](int, const Best& last) {
        Best best = none();
#pragma unroll 4
        for (int at = 0; at < LOOKS; at++) {
            Best one = {0, from + at * LOOKERS + 1};
            if (one.place <= arrays.elements)
                one.key = measure_at(format, arrays, one.place - 1, by_error, equal_nan);
            if (one.key != 0 && before(last, one) && before(one, best)) best = one;
        }
        return best;
    };
    auto take = [&](int, uint32_t at, const Best& best) {
        uint64_t index = best.place - 1;
        found[3 * at] = best.key == 0 ? NONE : index;
        if (best.key == 0) return;
        found[3 * at + 1] = format.load(arrays.reference, index);
        found[3 * at + 2] = format.load(arrays.candidate, index);
    };
    choose<LOOKERS, 1>(worst, next, take);
}
