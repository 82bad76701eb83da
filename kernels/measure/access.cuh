// Loads and stores of 16 bytes with each way of asking the caches for nothing.

#pragma once

#include <cstdint>

// Way 0: as the compiler likes. 1: evicted first. 2: kept out of the L1 cache, L2 lines in pairs.
template <int WAY>
__device__ __forceinline__ uint4 load(const uint4* at) {
    if (WAY == 0) {
        return __ldg(at);
    }
    if (WAY == 1) {
        return __ldcs(at);
    }
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

// Way 0: written back. 1: evicted first. 2: kept out of the L1 cache.
template <int WAY>
__device__ __forceinline__ void store(uint4* at, uint4 v) {
    if (WAY == 0) {
        *at = v;
    } else if (WAY == 1) {
        __stcs(at, v);
    } else {
        __stcg(at, v);
    }
}
