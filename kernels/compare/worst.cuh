// Finds the worst elements: the blocks that hold them, then the elements in these blocks.
//
// Whatever is among the worst N elements by a measure lies in one of the N blocks whose largest
// measures are the largest, of equals the first. So many are chosen, and one group looks through
// each of them for its worst N. Either time the threads of a group hold what they look at, and the
// first of all is taken out N times. The host merges the lists.

#pragma once

#include "compare.cuh"

#include <type_traits>

// Threads of a group that looks through a block, and elements for each.
constexpr int LOOKERS = 1024, LOOKS = BLOCK / LOOKERS;

// A measure, and one more than where it is: larger measures come first, of equals the earlier
// place. A measure of zero is none.
template <typename Key> struct Best {
    Key key;
    uint32_t place;

    static __device__ __forceinline__ Best none() { return Best{0, ~0u}; }
    // Before any other.
    static __device__ __forceinline__ Best limit() { return Best{Key(~Key(0)), 0}; }
    __device__ __forceinline__ bool before(const Best& other) const {
        return key > other.key || (key == other.key && place < other.place);
    }
    // Takes another one, from a later place, where it is larger and lies behind a last one.
    __device__ __forceinline__ void take(const Best& other, const Best& last) {
        if (other.key > key && last.before(other)) *this = other;
    }
};

static __device__ __forceinline__ uint32_t largest_of_warp(uint32_t key) {
    return __reduce_max_sync(~0u, key);
}
static __device__ __forceinline__ uint64_t largest_of_warp(uint64_t key) {
    uint32_t high = __reduce_max_sync(~0u, uint32_t(key >> 32));
    uint32_t low = __reduce_max_sync(~0u, uint32_t(key >> 32) == high ? uint32_t(key) : 0);
    return uint64_t(high) << 32 | low;
}
template <typename Key> __device__ __forceinline__ Best<Key> first_of_warp(const Best<Key>& mine) {
    Key key = largest_of_warp(mine.key);
    return Best<Key>{key, __reduce_min_sync(~0u, mine.key == key ? mine.place : ~0u)};
}

// The first `count` of what the threads of `WARPS` warps hold, each to the thread of its number.
// `next` gives a thread's first behind another one. All threads of the group come here.
template <int WARPS, typename Key, typename Next>
__device__ __forceinline__ Best<Key> choose(Best<Key> (*room)[WARPS], uint32_t count, Next next) {
    int thread = threadIdx.x % (32 * WARPS), lane = thread % 32;
    auto mine = Best<Key>::none(), chosen = Best<Key>::none(), first = Best<Key>::limit();
#pragma unroll 1
    for (int at = 0; at < count; at++) {
        // Where the last one was this thread's.
        if (at == 0 || (first.key != 0 && mine.place == first.place)) mine = next(first);
        first = first_of_warp(mine);
        if (lane == 0) room[at % 2][thread / 32] = first;
        __syncthreads();
        first = first_of_warp(lane < WARPS ? room[at % 2][lane] : Best<Key>::none());
        if (thread == at) chosen = first;
    }
    return chosen;
}

// How bad an element is, by its error or by its distance.
template <typename Format, typename Key>
__device__ __forceinline__ Key measure(const Format& format, typename Format::Word one,
                                       typename Format::Word other, bool by_error,
                                       uint32_t equal_nan) {
    auto ours = format.number(one), theirs = format.number(other);
    auto r = format.value(ours), c = format.value(theirs);
    auto steps = format.distance(ours, theirs);
    if (is_finite(r) && is_finite(c))
        return by_error ? Key(bits_of_magnitude(format.error(r, c, steps))) : Key(steps);
    // Of the same class are equal infinities, and two that are no numbers.
    bool may_be = r == c || (equal_nan && r != r && c != c);
    return may_be || by_error ? 0 : Key(~Key(0));
}

// The worst elements of one of the chosen blocks by one measure: the measure, the index and both
// words. Group g has the g-th.
template <typename Format>
__device__ __forceinline__ void look(const Arrays& arrays, uint32_t equal_nan, uint32_t worst,
                                     const uint64_t* chosen, uint64_t* found) {
    using Key = std::conditional_t<sizeof(typename Format::Float) == 4, uint32_t, uint64_t>;
    __shared__ typename Format::Room room;
    __shared__ Best<Key> lists[2][LOOKERS / 32];
    bool by_error = blockIdx.x >= worst;
    uint64_t block = chosen[blockIdx.x];
    found += 4 * (uint64_t(worst) * blockIdx.x + threadIdx.x);
    if (block == 0) {
        if (threadIdx.x < worst) found[0] = 0;
        return;
    }
    Format format(arrays.table, arrays.bits, room);
    __syncthreads();
    uint64_t from = (block - 1) * BLOCK;
    uint32_t present = uint32_t(min(arrays.elements - from, BLOCK));
    Key keys[LOOKS];
#pragma unroll
    for (int at = 0; at < LOOKS; at++) {
        uint64_t index = from + threadIdx.x + at * LOOKERS;
        keys[at] = 0;
        if (at * LOOKERS + threadIdx.x < present)
            keys[at] = measure<Format, Key>(format, format.load(arrays.reference, index),
                                            format.load(arrays.candidate, index), by_error,
                                            equal_nan);
    }
    auto next = [&](Best<Key> last) {
        auto mine = Best<Key>::none();
#pragma unroll
        for (int at = 0; at < LOOKS; at++)
            mine.take({keys[at], at * LOOKERS + threadIdx.x + 1}, last);
        return mine;
    };
    Best<Key> mine = choose<LOOKERS / 32, Key>(lists, worst, next);
    if (threadIdx.x >= worst) return;
    found[0] = mine.key;
    if (mine.key == 0) return;
    uint64_t index = from + mine.place - 1;
    found[1] = index;
    found[2] = format.stored(format.load(arrays.reference, index));
    found[3] = format.stored(format.load(arrays.candidate, index));
}
