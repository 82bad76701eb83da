// The contents of work buffers: words that look random, whose sum is known without reading them.

#pragma once

#include <cstdint>

// One-to-one on the numbers below 2^bits (bits from 4 to 31), so that over all of them its sum is
// the sum of all of them, whatever the order.
__device__ __forceinline__ uint32_t scramble(uint32_t index, uint32_t bits, uint32_t seed) {
    uint32_t mask = (1u << bits) - 1, half = bits >> 1;
    uint32_t x = (index + seed) & mask;
    x = (x * 0x9E3779B1u) & mask;
    x ^= x >> half;
    x = (x * 0x85EBCA77u) & mask;
    return x ^ (x >> half);
}

// The four words of the vector of 16 bytes at `index` in a buffer of 2^bits vectors.
__device__ __forceinline__ uint4 contents(uint32_t index, uint32_t bits, uint32_t seed) {
    uint32_t x = scramble(index, bits, seed);
    return make_uint4(x * 0xC2B2AE3Du + 1, x * 0x27D4EB2Fu + 2, x * 0x165667B1u + 3,
                      x * 0x9E3779B1u + 4);
}

// The sum of a vector's words, modulo 2^32.
__device__ __forceinline__ uint32_t total(uint4 v) {
    return v.x + v.y + v.z + v.w;
}

// Adds what every thread of a block holds to one sum in memory, modulo 2^32.
__device__ __forceinline__ void add_up(uint32_t sum, uint32_t* out) {
    for (int lane = 16; lane > 0; lane >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    }
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(out, sum);
    }
}
