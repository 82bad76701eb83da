// The cost of one barrier of the whole grid, and whether it holds.

#include <cooperative_groups.h>

#include <cstdint>

#include "span.cuh"

// Passes `steps` barriers.
extern "C" __global__ void grid_barrier(uint64_t* spans, uint32_t steps) {
    const auto grid = cooperative_groups::this_grid();
    assay::span_begin(spans);
#pragma unroll 1
    for (uint32_t step = 0; step < steps; ++step) grid.sync();
    assay::span_end(spans);
}

// Every block writes the step's number, passes a barrier, and looks whether its neighbour has
// written it too; then all pass a second barrier. `late` counts neighbours that had not.
extern "C" __global__ void grid_barrier_holds(uint32_t* posts, uint32_t* late, uint32_t steps) {
    const auto grid = cooperative_groups::this_grid();
    volatile uint32_t* all = posts;
    const uint32_t neighbour = (blockIdx.x + 1) % gridDim.x;
    for (uint32_t step = 1; step <= steps; ++step) {
        if (threadIdx.x == 0) all[blockIdx.x] = step;
        grid.sync();
        if (threadIdx.x == blockDim.x - 1 && all[neighbour] != step) atomicAdd(late, 1);
        grid.sync();
    }
}
