// Streams through device memory: read, write, copy, triad and gather, each with so many vectors of
// 16 bytes in flight in a thread (the number in the name) and one way of asking the caches (the
// letter).
//
// A tile is one vector for each thread and each of the vectors in flight; blocks take tiles in
// turn, so that a grid of one block a tile and a grid that just fills the device both work. The
// number of vectors is a multiple of a tile.

#pragma once

#include "access.cuh"
#include "random.cuh"

#define STREAM(name)                                                                               \
    extern "C" __global__ void __launch_bounds__(1024) name(                                       \
        const uint4* __restrict__ a, const uint4* __restrict__ b, uint4* __restrict__ out,         \
        uint64_t vectors, uint32_t bits, uint32_t seed, uint32_t* sum)

template <int FLIGHT, int WAY>
__device__ __forceinline__ void read(const uint4* a, uint64_t vectors, uint32_t* sum) {
    uint64_t tile = (uint64_t)blockDim.x * FLIGHT;
    uint32_t mine = 0;
    for (uint64_t at = blockIdx.x * tile; at < vectors; at += gridDim.x * tile) {
        uint4 v[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            v[i] = load<WAY>(a + at + i * blockDim.x + threadIdx.x);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            mine += total(v[i]);
        }
    }
    add_up(mine, sum);
}

template <int FLIGHT, int WAY>
__device__ __forceinline__ void write(uint4* out, uint64_t vectors, uint32_t bits, uint32_t seed) {
    uint64_t tile = (uint64_t)blockDim.x * FLIGHT;
    for (uint64_t at = blockIdx.x * tile; at < vectors; at += gridDim.x * tile) {
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            uint64_t index = at + i * blockDim.x + threadIdx.x;
            store<WAY>(out + index, contents((uint32_t)index, bits, seed));
        }
    }
}

template <int FLIGHT, int WAY>
__device__ __forceinline__ void copy(const uint4* a, uint4* out, uint64_t vectors) {
    uint64_t tile = (uint64_t)blockDim.x * FLIGHT;
    for (uint64_t at = blockIdx.x * tile; at < vectors; at += gridDim.x * tile) {
        uint4 v[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            v[i] = load<WAY>(a + at + i * blockDim.x + threadIdx.x);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            store<WAY>(out + at + i * blockDim.x + threadIdx.x, v[i]);
        }
    }
}

// out = a + 3 b, on words.
template <int FLIGHT, int WAY>
__device__ __forceinline__ void triad(const uint4* a, const uint4* b, uint4* out,
                                      uint64_t vectors) {
    uint64_t tile = (uint64_t)blockDim.x * FLIGHT;
    for (uint64_t at = blockIdx.x * tile; at < vectors; at += gridDim.x * tile) {
        uint4 v[FLIGHT], w[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            v[i] = load<WAY>(a + at + i * blockDim.x + threadIdx.x);
            w[i] = load<WAY>(b + at + i * blockDim.x + threadIdx.x);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            uint4 r = make_uint4(v[i].x + 3 * w[i].x, v[i].y + 3 * w[i].y, v[i].z + 3 * w[i].z,
                                 v[i].w + 3 * w[i].w);
            store<WAY>(out + at + i * blockDim.x + threadIdx.x, r);
        }
    }
}

// Vectors at places that jump all over the buffer, each of them once.
template <int FLIGHT, int WAY>
__device__ __forceinline__ void gather(const uint4* a, uint64_t vectors, uint32_t bits,
                                       uint32_t seed, uint32_t* sum) {
    uint64_t tile = (uint64_t)blockDim.x * FLIGHT;
    uint32_t mine = 0;
    for (uint64_t at = blockIdx.x * tile; at < vectors; at += gridDim.x * tile) {
        uint4 v[FLIGHT];
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            uint32_t index = (uint32_t)(at + i * blockDim.x + threadIdx.x);
            v[i] = load<WAY>(a + scramble(index, bits, ~seed));
        }
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            mine += total(v[i]);
        }
    }
    add_up(mine, sum);
}

#define READ(flight, way, letter)                                                                  \
    STREAM(read_##flight##letter) { read<flight, way>(a, vectors, sum); }
#define WRITE(flight, way, letter)                                                                 \
    STREAM(write_##flight##letter) { write<flight, way>(out, vectors, bits, seed); }
#define COPY(flight, way, letter)                                                                  \
    STREAM(copy_##flight##letter) { copy<flight, way>(a, out, vectors); }
#define TRIAD(flight, way, letter)                                                                 \
    STREAM(triad_##flight##letter) { triad<flight, way>(a, b, out, vectors); }
#define GATHER(flight, way, letter)                                                                \
    STREAM(gather_##flight##letter) { gather<flight, way>(a, vectors, bits, seed, sum); }
