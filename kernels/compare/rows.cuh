// How the rows of a block come to a thread: four elements of each array at a time.

#pragma once

#include "add_if.cuh"
#include "formats.cuh"

constexpr int LANES = 512, ROWS = 32, GROUP = 128;

// The two arrays and how to read them.
struct Arrays {
    const void *reference, *candidate;
    uint64_t elements;
    // Whether four elements may not be read at once, or not be judged by `Rules`' first looks.
    uint32_t careful;
    // Of formats with a table this and their bits; of integers whether they have a sign.
    const void* table;
    uint32_t bits;
};

// Words that are not aligned: the next row is on its way to registers while one is counted.
template <typename Format, bool IS_ALIGNED = Format::IS_ALIGNED> struct Rows {
    using Word = typename Format::Word;
    struct Room {};
    const Format& format;
    const Arrays& arrays;
    uint64_t begin;
    typename Format::Raw one, other;

    __device__ __forceinline__ Rows(const Format& format, const Arrays& arrays, Room&)
        : format(format), arrays(arrays) {}

    __device__ __forceinline__ void fetch(uint32_t row) {
        one = format.four(arrays.reference, begin + row * LANES);
        other = format.four(arrays.candidate, begin + row * LANES);
    }
    __device__ __forceinline__ void start(uint64_t index) {
        begin = index;
        fetch(0);
    }
    __device__ __forceinline__ void take(uint32_t row, Word* these, Word* those) {
        format.words(one, these);
        format.words(other, those);
        if (row + 1 < ROWS) fetch(row + 1);
    }
};

// Aligned ones: some rows ahead are on their way to shared memory, each thread's to its own places.
template <typename Format> struct Rows<Format, true> {
    using Word = typename Format::Word;
    using Raw = typename Format::Raw;
    static constexpr uint32_t DEPTH = sizeof(Raw) <= 16 ? 4 : 2;
    struct Room {
        Raw rows[DEPTH][2][GROUP];
    };
    const Format& format;
    const Arrays& arrays;
    Room& room;
    // Where the next row that is fetched lies.
    const Raw *reference, *candidate;

    __device__ __forceinline__ Rows(const Format& format, const Arrays& arrays, Room& room)
        : format(format), arrays(arrays), room(room) {}

    static __device__ __forceinline__ void copy(Raw& to, const Raw* from) {
        uint32_t place = shared_address(&to);
        if (sizeof(Raw) < 16)
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                         :
                         : "r"(place), "l"(from), "n"(sizeof(Raw) < 16 ? sizeof(Raw) : 8));
#pragma unroll
        for (uint32_t at = 0; at + 16 <= sizeof(Raw); at += 16)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         :
                         : "r"(place + at), "l"(reinterpret_cast<const char*>(from) + at));
    }
    __device__ __forceinline__ void fetch(uint32_t row) {
        if (row < ROWS) {
            copy(room.rows[row % DEPTH][0][threadIdx.x], reference);
            copy(room.rows[row % DEPTH][1][threadIdx.x], candidate);
            reference += LANES / PER_THREAD;
            candidate += LANES / PER_THREAD;
        }
        asm volatile("cp.async.commit_group;");
    }
    __device__ __forceinline__ void start(uint64_t index) {
        reference = static_cast<const Raw*>(arrays.reference) + index / PER_THREAD;
        candidate = static_cast<const Raw*>(arrays.candidate) + index / PER_THREAD;
#pragma unroll
        for (uint32_t row = 0; row < DEPTH - 1; row++) fetch(row);
    }
    __device__ __forceinline__ void take(uint32_t row, Word* these, Word* those) {
        fetch(row + DEPTH - 1);
        asm volatile("cp.async.wait_group %0;" ::"n"(DEPTH - 1) : "memory");
        format.words(room.rows[row % DEPTH][0][threadIdx.x], these);
        format.words(room.rows[row % DEPTH][1][threadIdx.x], those);
    }
};
