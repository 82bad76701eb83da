// Rates of mma.sync from registers. A warp holds a tile of ROWS x COLUMNS products: ROWS pairs of
// fragments of A, COLUMNS fragments of B, one accumulator for each pair. A round starts its
// accumulators at zero, adds A0*B and A1*B `pairs` times, and takes every accumulator into a
// checksum; the last round's are written out in full. The inputs are integers so chosen that every
// sum on the way is exact: what is read back must be pairs * (A0 + A1) * B.

#pragma once

#include <cstdint>

#include "span.cuh"

namespace {

// One kind of product. A, B and C say how many registers of 32 bits a fragment takes.
template <typename Kind, int ROWS, int COLUMNS>
struct Tile {
    uint32_t a[2][ROWS][Kind::A];
    uint32_t b[COLUMNS][Kind::B];
    uint32_t c[ROWS][COLUMNS][Kind::C];

    // `fragments` holds registers lane by lane: of every row A0, then A1, of every column B.
    __device__ void load(const uint32_t* fragments) {
        fragments += threadIdx.x % 32;
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int r = 0; r < Kind::A; ++r, fragments += 32) a[half][i][r] = *fragments;
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
            for (int r = 0; r < Kind::B; ++r, fragments += 32) b[j][r] = *fragments;
    }

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                for (int r = 0; r < Kind::C; ++r) c[i][j][r] = 0;
    }

    __device__ void multiply() {
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j) Kind::multiply(c[i][j], a[half][i], b[j]);
    }

    __device__ uint32_t checksum(uint32_t sum) const {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                for (int r = 0; r < Kind::C; ++r) sum = sum * 31 + c[i][j][r];
        return sum;
    }

    // All registers of a thread lie together.
    __device__ void store(uint32_t* out) const {
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
                for (int r = 0; r < Kind::C; ++r) *out++ = c[i][j][r];
    }
};

// `sums` gets one checksum for each thread of the grid, `accumulators` all its registers.
template <typename Kind, int ROWS, int COLUMNS>
__device__ void products(uint32_t* accumulators, uint32_t* sums, uint64_t* spans,
                         const uint32_t* fragments, uint32_t rounds, uint32_t pairs) {
    Tile<Kind, ROWS, COLUMNS> tile;
    tile.load(fragments);
    uint32_t sum = 0;
    tile.clear();
    assay::span_begin(spans);
#pragma unroll 1
    for (uint32_t round = 0; round < rounds; ++round) {
        tile.clear();
#pragma unroll 1
        for (uint32_t pair = 0; pair < pairs; ++pair) tile.multiply();
        sum = tile.checksum(sum);
    }
    assay::span_end(spans);
    const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    sums[thread] = sum;
    tile.store(accumulators + thread * (ROWS * COLUMNS * Kind::C));
}

}  // namespace

#define MMA_KERNEL(kind, rows, columns)                                                        \
    extern "C" __global__ void __launch_bounds__(32 * WARPS_FOR(rows, columns))                \
        mma_##kind##_##rows##x##columns(uint32_t* accumulators, uint32_t* sums,                \
                                        uint64_t* spans, const uint32_t* fragments,            \
                                        uint32_t rounds, uint32_t pairs) {                     \
        products<kind, rows, columns>(accumulators, sums, spans, fragments, rounds, pairs);    \
    }

// The most warps of a block that leave a thread the registers its tile needs.
#define WARPS_FOR(rows, columns) ((rows) * (columns) > 16 ? 8 : 16)

// A kind of dense product with fragments of 4, 2 and 4 registers.
#define MMA_DENSE(kind, shape, types)                                                          \
    struct kind {                                                                              \
        static constexpr int A = 4, B = 2, C = 4;                                              \
        __device__ static void multiply(uint32_t* c, const uint32_t* a, const uint32_t* b) {   \
            asm volatile("mma.sync.aligned." shape ".row.col." types                           \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"    \
                         : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                      \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));  \
        }                                                                                      \
    };

// A kind of product whose A keeps half of its elements, the same ones everywhere: `kept` is the
// metadata of every lane.
#define MMA_SPARSE(kind, shape, types, kept)                                                   \
    struct kind {                                                                              \
        static constexpr int A = 4, B = 4, C = 4;                                              \
        __device__ static void multiply(uint32_t* c, const uint32_t* a, const uint32_t* b) {   \
            asm volatile("mma.sp::ordered_metadata.sync.aligned." shape ".row.col." types      \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11},"            \
                         " {%0, %1, %2, %3}, %12, 0x0;"                                        \
                         : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                      \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),   \
                           "r"(b[2]), "r"(b[3]), "r"(kept));                                   \
        }                                                                                      \
    };
