// Phase stamps: when each warp or block of a kernel was where. An author includes this one header,
// gives the kernel the parameter ASSAY_STAMPS_PARAMETER behind its last one, and marks phases:
//
//     #define ASSAY_STAMPS 1          // leave it out, and not one instruction is left of this
//     #include "stamps.cuh"
//     extern "C" __global__ void kernel(float* y ASSAY_STAMPS_PARAMETER) {
//         ASSAY_LANE_OF_WARP(lane);   // or ASSAY_LANE_OF_BLOCK(lane)
//         ASSAY_STAMP(lane, 0);       // phase 0 begins
//         ...
//         ASSAY_STAMP(lane, 1);       // phase 1 begins, phase 0 has ended
//         ...
//         ASSAY_STAMP_END(lane);      // the last phase has ended
//     }
//
// A stamp is one read of clock64 and, by one thread of the lane, one store of 16 bytes. The first
// stamp and the end also read globaltimer, which places the lane among those of other
// multiprocessors. Stamps past the buffer's capacity are counted and not stored. A load that is
// not used yet has not arrived: its wait belongs to the phase that first needs it.

#pragma once

#ifdef ASSAY_STAMPS

#include <cstdint>

// The buffer: for each lane a count and a multiprocessor (with bit 32 set), then `capacity` marks
// of two words: cycles in the low 48 bits with the phase above them, and nanoseconds or 0.
struct AssayStamps {
    unsigned long long* words;
    uint32_t lanes;
    uint32_t capacity;
};

struct AssayLane {
    static constexpr uint32_t END = 0xffff;

    unsigned long long* words;
    uint32_t capacity;
    uint32_t count;
    bool writes;

    __device__ __forceinline__ AssayLane(const AssayStamps& stamps, uint32_t lane, bool leader)
        : words(stamps.words + (2ull + 2ull * stamps.capacity) * lane),
          capacity(stamps.capacity),
          count(0),
          writes(leader && lane < stamps.lanes) {
        uint32_t multiprocessor;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        if (writes) {
            words[1] = 1ull << 32 | multiprocessor;
        }
    }

    __device__ __forceinline__ void stamp(uint32_t phase) {
        uint64_t nanoseconds = 0;
        if (count == 0 || phase == END) {
            asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
        }
        uint64_t cycles;
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
        if (writes && count < capacity) {
            uint64_t mark = (cycles & 0xffffffffffffull) | (uint64_t)phase << 48;
            auto at = reinterpret_cast<ulonglong2*>(words + 2) + count;
            *at = make_ulonglong2(mark, nanoseconds);
        }
        count += 1;
    }

    __device__ __forceinline__ void end() {
        stamp(END);
        if (writes) {
            words[0] = count;
        }
    }
};

#define ASSAY_STAMPS_PARAMETER , AssayStamps assay_stamps
#define ASSAY_LANE_OF_WARP(name)                                                              \
    AssayLane name(assay_stamps, (blockIdx.x * blockDim.x + threadIdx.x) / 32,                \
                   threadIdx.x % 32 == 0)
#define ASSAY_LANE_OF_BLOCK(name) AssayLane name(assay_stamps, blockIdx.x, threadIdx.x == 0)
#define ASSAY_STAMP(name, phase) name.stamp(phase)
#define ASSAY_STAMP_END(name) name.end()

#else

#define ASSAY_STAMPS_PARAMETER
#define ASSAY_LANE_OF_WARP(name)
#define ASSAY_LANE_OF_BLOCK(name)
#define ASSAY_STAMP(name, phase)
#define ASSAY_STAMP_END(name)

#endif
