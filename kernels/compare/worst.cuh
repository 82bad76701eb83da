// Finds the worst elements: the blocks that hold them, then the elements in these blocks.
//
// Whatever is among the worst N elements by a measure lies in one of the N blocks whose largest
// measures are the largest, of equals the first. So many are chosen, and one group looks through
// each of them for its worst N: first every thread for its worst element, then those threads that
// had one of the N for what else they have. The host merges the lists.

#pragma once

#include "compare.cuh"

// The longest list: one entry for each lane of a warp.
constexpr int LONGEST = 32;

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

static __device__ __forceinline__ Best none() { return Best{0, NONE}; }

// Exchanges with the lane that is `stride` away and keeps the first of both, or the last.
static __device__ __forceinline__ void exchange(Best& mine, int stride, bool keep_first) {
    Best theirs = {__shfl_xor_sync(~0u, mine.key, stride),
                   __shfl_xor_sync(~0u, mine.place, stride)};
    if (before(theirs, mine) == keep_first) mine = theirs;
}

// Sorts a warp's, one to a lane, if each half of it is sorted towards the middle.
static __device__ __forceinline__ void sort_halves(Best& mine) {
#pragma unroll 1
    for (int stride = LONGEST / 2; stride > 0; stride /= 2)
        exchange(mine, stride, (threadIdx.x & stride) == 0);
}

// Sorts a warp's, one to a lane.
static __device__ __forceinline__ void sort(Best& mine) {
#pragma unroll 1
    for (int size = 2; size < LONGEST; size *= 2)
#pragma unroll 1
        for (int stride = size / 2; stride > 0; stride /= 2)
            exchange(mine, stride, ((threadIdx.x & stride) == 0) == ((threadIdx.x & size) == 0));
    sort_halves(mine);
}

// The first of what the lanes have so far, sorted, and of one more each.
static __device__ __forceinline__ void take_in(Best& mine, Best more) {
    sort(more);
    Best theirs = {__shfl_sync(~0u, more.key, LONGEST - 1 - threadIdx.x % LONGEST),
                   __shfl_sync(~0u, more.place, LONGEST - 1 - threadIdx.x % LONGEST)};
    if (before(theirs, mine)) mine = theirs;
    sort_halves(mine);
}

// Merges the sorted lists of `WARPS` warps; the first warp of them has the result. All threads of
// the group come here, each with the list of its own warps.
template <int WARPS>
__device__ __forceinline__ void merge(Best& mine, Best (*lists)[LONGEST]) {
    int warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32;
    lists[warp][lane] = mine;
#pragma unroll 1
    for (int half = WARPS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (warp >= half) continue;
        Best theirs = lists[warp + half][LONGEST - 1 - lane];
        if (before(theirs, mine)) mine = theirs;
        sort_halves(mine);
        lists[warp][lane] = mine;
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
    if (is_finite(r) && is_finite(c))
        return by_error ? bits_of_magnitude(format.error(r, c, steps)) : uint64_t(steps);
    bool both_nan = r != r && c != c;
    bool wrong = class_of(r) != class_of(c) || (both_nan && !equal_nan);
    return wrong && !by_error ? NONE : 0;
}

// The worst elements of one of the chosen blocks by one measure. Group g has the g-th.
template <typename Format>
__device__ __forceinline__ void look(const Arrays& arrays, uint32_t equal_nan, uint32_t worst,
                                     uint64_t* report) {
    __shared__ typename Format::Room room;
    __shared__ Best lists[LOOKERS / 32][LONGEST];
    bool by_error = blockIdx.x >= worst;
    uint64_t chosen = report[CHOSEN + blockIdx.x];
    uint64_t* found = report + CHOSEN + 2 * worst + 3 * uint64_t(worst) * blockIdx.x;
    if (chosen == 0) {
        for (uint32_t at = threadIdx.x; at < worst; at += LOOKERS) found[3 * at] = NONE;
        return;
    }
    Format format(arrays.table, arrays.bits, room);
    __syncthreads();
    uint64_t from = (chosen - 1) * BLOCK;
    auto element = [&](uint64_t index) {
        if (index >= arrays.elements) return none();
        uint64_t key = measure_at(format, arrays, index, by_error, equal_nan);
        return key == 0 ? none() : Best{key, index + 1};
    };
    Best mine;
    // First every thread looks at its own elements. Then, at what else the threads have that the
    // list came from: each of the LOOKS threads of one of its entries takes one element.
    uint64_t index = from + threadIdx.x;
    int looks = LOOKS;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        mine = none();
#pragma unroll 4
        for (int at = 0; at < LOOKS; at++) {
            Best one = at < looks ? element(index + at * LOOKERS) : none();
            if (before(one, mine)) mine = one;
        }
        sort(mine);
        merge<LOOKERS / 32>(mine, lists);
        Best entry = lists[0][threadIdx.x / LOOKS % LONGEST];
        uint64_t thread = (entry.place - 1 - from) % LOOKERS;
        index = from + threadIdx.x % LOOKS * LOOKERS + thread;
        looks = threadIdx.x < LOOKS * worst && entry.key != 0;
        if (pass == 0) __syncthreads();
    }
    if (threadIdx.x >= worst) return;
    found[3 * threadIdx.x] = mine.key == 0 ? NONE : mine.place - 1;
    if (mine.key == 0) return;
    found[3 * threadIdx.x + 1] = format.load(arrays.reference, mine.place - 1);
    found[3 * threadIdx.x + 2] = format.load(arrays.candidate, mine.place - 1);
}
