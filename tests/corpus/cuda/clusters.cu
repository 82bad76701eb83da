// Thread block clusters: distributed shared memory, split cluster barriers, stores that complete at
// an mbarrier of another block.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda/std/utility>
namespace cg = cooperative_groups;

// The sum of each cluster's part of x, reduced over the blocks' shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sum(const float *x, float *y, int n) {
    __shared__ float parts[4];
    __shared__ float total;
    auto cluster = cg::this_cluster();
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int blocks = gridDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int i = first; i < n; i += blocks * blockDim.x) sum += x[i];
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0) parts[tile.meta_group_rank()] = sum;
    __syncthreads();
    if (threadIdx.x == 0) total = parts[0] + parts[1] + parts[2] + parts[3];
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x < cluster.num_blocks()) {
        parts[threadIdx.x] = *cluster.map_shared_rank(&total, threadIdx.x);
    }
    __syncthreads();
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        float all = 0;
        for (int rank = 0; rank < cluster.num_blocks(); rank++) all += parts[rank];
        y[blockIdx.x / cluster.num_blocks()] = all;
    }
    cluster.sync();
}

// A histogram whose bins are spread over the blocks of a cluster.
extern "C" __global__ void cluster_histogram(const int *x, int *y, int n, int bins_per_block) {
    extern __shared__ int bins[];
    auto cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) bins[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = x[i];
        atomicAdd(cluster.map_shared_rank(bins, bin / bins_per_block) + bin % bins_per_block, 1);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x) {
        atomicAdd(&y[cluster.block_rank() * bins_per_block + i], bins[i]);
    }
}

// Every block passes its row on around the ring of its cluster, `steps` times.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster_ring(const int *x, int *y, int steps) {
    __shared__ int rows[2][64];
    auto cluster = cg::this_cluster();
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    rows[0][threadIdx.x] = x[block * 64 + threadIdx.x];
    cluster.sync();
    int next = (cluster.block_rank() + 1) % cluster.num_blocks();
    for (int step = 0; step < steps; step++) {
        int *there = cluster.map_shared_rank(rows[(step + 1) & 1], next);
        there[(threadIdx.x + 1) % 64] = rows[step & 1][threadIdx.x] + 1;
        auto token = cluster.barrier_arrive();
        cluster.barrier_wait(std::move(token));
    }
    y[block * 64 + threadIdx.x] = rows[steps & 1][threadIdx.x];
}

// Block 1 stores into block 0 asynchronously; block 0 waits for the bytes at its mbarrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_push(const int *x, int *y) {
    namespace ptx = cuda::ptx;
    __shared__ alignas(16) int row[128];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    auto cluster = cg::this_cluster();
    int pair = blockIdx.x / 2;
    if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
    cluster.sync();
    if (cluster.block_rank() == 1) {
        int *there = cluster.map_shared_rank(&row[threadIdx.x], 0);
        auto *signal = cluster.map_shared_rank(&bar, 0);
        ptx::st_async(there, x[pair * 128 + threadIdx.x], signal);
    } else {
        if (threadIdx.x == 0) {
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared,
                                           &bar, sizeof(row));
        }
        while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
        y[pair * 128 + threadIdx.x] = row[127 - threadIdx.x];
    }
    cluster.sync();
}

// All blocks arrive at an mbarrier of block 0, and their words are there when it is complete.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_gather(const int *x, int *y) {
    __shared__ int words[4 * 32];
    __shared__ alignas(8) cuda::std::uint64_t bar;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank();
    if (threadIdx.x == 0) cuda::ptx::mbarrier_init(&bar, 4 * 32);
    cluster.sync();
    *cluster.map_shared_rank(&words[rank * 32 + threadIdx.x], 0) = x[blockIdx.x * 32 + threadIdx.x];
    cuda::ptx::mbarrier_arrive(cuda::ptx::sem_release, cuda::ptx::scope_cluster,
                               cuda::ptx::space_cluster, cluster.map_shared_rank(&bar, 0));
    if (rank == 0) {
        while (!cuda::ptx::mbarrier_try_wait_parity(cuda::ptx::sem_acquire,
                                                    cuda::ptx::scope_cluster, &bar, 0)) {}
        for (int i = threadIdx.x; i < 128; i += 32) {
            y[blockIdx.x / 4 * 128 + i] = words[i] * 2;
        }
    }
    cluster.sync();
}
