// The stamped demonstration, and what a stamp costs.

#define ASSAY_STAMPS 1
#include "staged_sum.cuh"

// Stamps with nothing between them: the cycles from one to the next are what one costs. Fills the
// lane's buffer up to its end mark.
extern "C" __global__ void stamp_cost(AssayStamps assay_stamps) {
    ASSAY_LANE_OF_WARP(lane);
#pragma unroll 8
    for (uint32_t i = 1; i < assay_stamps.capacity; ++i) {
        ASSAY_STAMP(lane, i & 1);
    }
    ASSAY_STAMP_END(lane);
}
