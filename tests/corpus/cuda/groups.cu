// Cooperative groups, and the barriers and pipelines of libcu++.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;

// Every step reads what another block wrote in the step before.
extern "C" __global__ void grid_steps(int* a, int* b, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < steps; step++) {
    for (int i = grid.thread_rank(); i < n; i += grid.size())
      b[i] = a[(i + n - 37) % n] + step;
    grid.sync();
    int* t = a;
    a = b, b = t;
  }
}

extern "C" __global__ void tiles(const int* x, int* y) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  int v = x[block.thread_rank()];
  int* out = y + block.thread_rank() * 8;
  out[0] = cg::reduce(tile, v, cg::plus<int>());
  out[1] = cg::reduce(warp, v, cg::greater<int>());
  out[2] = cg::inclusive_scan(tile, v);
  out[3] = cg::exclusive_scan(warp, v, cg::bit_xor<int>());
  out[4] = tile.shfl_down(v, 1);
  out[5] = tile.any(v > 90);
  auto labels = cg::labeled_partition(warp, v & 3);
  out[6] = cg::reduce(labels, v, cg::less<int>());
  auto odd = cg::binary_partition(tile, v & 1);
  out[7] = odd.num_threads() * 16 + odd.thread_rank();
}

// Compaction: each group of lanes that meet reserves room at once.
extern "C" __global__ void coalesced(const int* x, int* kept, unsigned* count) {
  int v = x[threadIdx.x + blockIdx.x * blockDim.x];
  if (v % 3 != 0) return;
  auto active = cg::coalesced_threads();
  unsigned start = 0;
  if (active.thread_rank() == 0) start = atomicAdd(count, active.size());
  kept[active.shfl(start, 0) + active.thread_rank()] = v;
}

extern "C" __global__ void block_barrier(const float* x, float* y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) float buffer[256];
  auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&bar, block.size());
  block.sync();
  cuda::memcpy_async(block, buffer, x + blockIdx.x * 256, cuda::aligned_size_t<16>(1024), bar);
  bar.arrive_and_wait();
  float v = buffer[255 - threadIdx.x];
  auto token = bar.arrive();
  v *= 2;
  bar.wait(std::move(token));
  buffer[threadIdx.x] = v;
  bar.arrive_and_wait();
  y[blockIdx.x * 256 + threadIdx.x] = buffer[threadIdx.x ^ 64];
}

// Half of the warps produce, half consume.
extern "C" __global__ void producer_consumer(const float* x, float* y, int rounds) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ alignas(16) float stage[2][64];
  auto block = cg::this_thread_block();
  bool produces = threadIdx.x < 64;
  auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  float total = 0;
  for (int round = 0; round < rounds; round++) {
    if (produces) {
      pipe.producer_acquire();
      cuda::memcpy_async(&stage[round & 1][threadIdx.x], &x[round * 64 + threadIdx.x], 4, pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      total += stage[round & 1][127 - threadIdx.x];
      pipe.consumer_release();
    }
  }
  if (!produces) y[threadIdx.x - 64] = total;
}

extern "C" __global__ void staged(const float* x, float* y, int rounds) {
  __shared__ alignas(16) float stage[2][128];
  auto block = cg::this_thread_block();
  float total = 0;
  cg::memcpy_async(block, stage[0], x, sizeof(stage[0]));
  for (int round = 0; round < rounds; round++) {
    if (round + 1 < rounds) {
      cg::memcpy_async(block, stage[(round + 1) & 1], x + (round + 1) * 128, sizeof(stage[0]));
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    total += stage[round & 1][threadIdx.x ^ 1];
    block.sync();
  }
  y[threadIdx.x] = total;
}
