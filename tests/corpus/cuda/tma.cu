// Tensor maps: boxes in and out of a matrix with ragged edges, and a swizzled one.
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_fp16.h>
namespace ptx = cuda::ptx;

__device__ void fetch(void* to, const CUtensorMap* map, const int32_t (&at)[2], unsigned bytes,
                      uint64_t* bar) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, bytes);
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, map, at, bar);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(bar, 0)) {
  }
}

// y = 2 x + 1 in boxes of 16 x 32: past the edges zeros come in and nothing goes out.
extern "C" __global__ void boxes(const __grid_constant__ CUtensorMap in,
                                 const __grid_constant__ CUtensorMap out) {
  __shared__ alignas(128) float tile[16][32];
  __shared__ uint64_t bar;
  int32_t at[2] = {int32_t(blockIdx.x * 32), int32_t(blockIdx.y * 16)};
  fetch(tile, &in, at, sizeof(tile), &bar);
  for (int i = threadIdx.x; i < 512; i += blockDim.x)
    tile[i / 32][i % 32] = 2 * tile[i / 32][i % 32] + 1;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
  }
}

// A tile of 64 x 64 halves in 128-byte swizzled rows, read by columns without bank conflicts.
extern "C" __global__ void swizzled(const __grid_constant__ CUtensorMap in, __half* y) {
  __shared__ alignas(1024) __half tile[64 * 64];
  __shared__ uint64_t bar;
  fetch(tile, &in, {0, 0}, sizeof(tile), &bar);
  for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
    int row = i % 64, column = i / 64;
    y[i] = tile[row * 64 + ((column / 8) ^ (row % 8)) * 8 + column % 8];
  }
}
