// The cost of one barrier of a cluster, and whether it holds.

#include <cstdint>

#include "span.cuh"

namespace {

__device__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace

// Passes `steps` barriers.
extern "C" __global__ void cluster_barrier(uint64_t* spans, uint32_t steps) {
    cluster_sync();
    assay::span_begin(spans);
#pragma unroll 1
    for (uint32_t step = 0; step < steps; ++step) cluster_sync();
    assay::span_end(spans);
}

// Every block writes the step's number, passes a barrier, and looks whether the next block of its
// cluster has written it too; then all pass a second barrier. `late` counts those that had not.
extern "C" __global__ void cluster_barrier_holds(uint32_t* posts, uint32_t* late,
                                                 uint32_t steps) {
    uint32_t rank, size;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    volatile uint32_t* all = posts + (blockIdx.x - rank);
    for (uint32_t step = 1; step <= steps; ++step) {
        if (threadIdx.x == 0) all[rank] = step;
        cluster_sync();
        if (threadIdx.x == blockDim.x - 1 && all[(rank + 1) % size] != step) atomicAdd(late, 1);
        cluster_sync();
    }
}
