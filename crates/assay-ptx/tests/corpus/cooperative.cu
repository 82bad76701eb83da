// Grid, tile and coalesced groups; libcu++ barriers and pipelines.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;

extern "C" __global__ void grid_sync(float* x, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < 3; step++) {
    for (int i = grid.thread_rank(); i < n; i += grid.size()) x[i] = x[i] * 2 + step;
    grid.sync();
  }
}

extern "C" __global__ void tiles(const float* x, float* y, int* counter) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  float v = cg::reduce(tile, x[block.thread_rank()], cg::plus<float>());
  int w = cg::reduce(tile, int(v), cg::plus<int>());
  unsigned z = cg::reduce(cg::tiled_partition<32>(block), unsigned(w), cg::bit_xor<unsigned>());
  int s = cg::inclusive_scan(tile, w);
  if (v > 3) {
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(counter, active.size());
    y[0] = active.shfl(v, 0);
  }
  block.sync();
  y[block.thread_rank()] = v + w + z + s;
}

extern "C" __global__ void split_barrier(float* x) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ float buffer[256];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(cg::this_thread_block(), buffer, x, sizeof(float) * 256, bar);
  bar.arrive_and_wait();
  x[threadIdx.x] = buffer[255 - threadIdx.x];
}

extern "C" __global__ void pipelined(const float* x, float* y, int tiles) {
  __shared__ alignas(16) float stage[2][128];
  auto pipe = cuda::make_pipeline();
  float total = 0;
  for (int t = 0; t < tiles + 1; t++) {
    if (t < tiles) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[t & 1][threadIdx.x * 4], &x[t * 128 + threadIdx.x * 4],
                         cuda::aligned_size_t<16>(16), pipe);
      pipe.producer_commit();
    }
    if (t > 0) {
      cuda::pipeline_consumer_wait_prior<1>(pipe);
      __syncthreads();
      total += stage[(t - 1) & 1][threadIdx.x];
      pipe.consumer_release();
    }
  }
  y[threadIdx.x] = total;
}
