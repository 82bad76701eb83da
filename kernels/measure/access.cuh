// Loads and stores of 16 bytes with each way of asking the caches for nothing.

#pragma once

#include <cstdint>

// Way 0: as the compiler likes. 1: evicted first.
template <int WAY>
__device__ __forceinline__ uint4 load(const uint4* at) {
    return WAY == 0 ? __ldg(at) : __ldcs(at);
}

template <int WAY>
__device__ __forceinline__ void store(uint4* at, uint4 v) {
    if (WAY == 0) {
        *at = v;
    } else {
        __stcs(at, v);
    }
}
