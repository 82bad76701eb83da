// What sm_90 added: clusters, bulk copies through cuda::ptx, warpgroup products.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

// Four blocks of a cluster add up one row: each its part, then the first reads the others' sums.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    cluster_sum(const float* x, float* y, int n) {
  __shared__ float part[32];
  __shared__ float total;
  auto cluster = cg::this_cluster();
  auto block = cg::this_thread_block();
  int row = blockIdx.x / 4;
  float v = 0;
  for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) v += x[row * n + i];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  block.sync();
  if (threadIdx.x == 0) {
    total = 0;
    for (int i = 0; i < blockDim.x / 32; i++) total += part[i];
  }
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    float all = 0;
    for (int r = 0; r < cluster.num_blocks(); r++) all += *cluster.map_shared_rank(&total, r);
    y[row] = all;
  }
  cluster.sync();
}

// A histogram spread over the shared memory of two blocks.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_histogram(const int* x, int* bins, int n) {
  __shared__ int local[64];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < 64) local[threadIdx.x] = 0;
  cluster.sync();
  for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) {
    int bin = x[i];
    atomicAdd(cluster.map_shared_rank(local, bin / 64) + bin % 64, 1);
  }
  cluster.sync();
  if (threadIdx.x < 64) bins[cluster.block_rank() * 64 + threadIdx.x] = local[threadIdx.x];
}

// In with one bulk copy that an mbarrier counts, out with another that a group counts.
extern "C" __global__ void bulk_scale(const float* x, float* y, float by) {
  __shared__ alignas(128) float in[256];
  __shared__ alignas(128) float out[256];
  __shared__ uint64_t bar;
  int i = threadIdx.x;
  if (i == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, in, x + blockIdx.x * 256, 1024, &bar);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 1024);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  out[i] = in[i] * by;
  out[i + 128] = in[i + 128] * by;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (i == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + blockIdx.x * 256, out, 1024);
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add,
                              (int*)y + gridDim.x * 256, (const int*)out, 16);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>{});
  }
}

__device__ uint64_t descriptor(const void* p, unsigned leading, unsigned stride) {
  uint64_t address = __cvta_generic_to_shared(p);
  return (address & 0x3ffff) >> 4 | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32;
}

// C (64 x 8) = A (64 x 32) B (32 x 8), both in shared memory in core matrices of 8 x 16 bytes.
extern "C" __global__ void wgmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  __shared__ alignas(128) __nv_bfloat16 ta[64 * 32], tb[8 * 32];
  int t = threadIdx.x;
  for (int i = t; i < 64 * 32; i += 128) {
    int r = i / 32, k = i % 32;
    ta[(k / 8) * 512 + (r / 8) * 64 + r % 8 * 8 + k % 8] = a[i];
  }
  for (int i = t; i < 8 * 32; i += 128) {
    int k = i / 8, n = i % 8;
    tb[(k / 8) * 64 + n * 8 + k % 8] = b[i];
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  float d[4] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int k = 0; k < 2; k++) {
    uint64_t da = descriptor(ta + k * 1024, 1024, 128), db = descriptor(tb + k * 128, 128, 128);
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %6, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, "
        "0, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(da), "l"(db), "r"(k));
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  int row = t / 32 * 16 + t % 32 / 4, column = t % 4 * 2;
  c[row * 8 + column] = d[0], c[row * 8 + column + 1] = d[1];
  c[(row + 8) * 8 + column] = d[2], c[(row + 8) * 8 + column + 1] = d[3];
}

// One lane of a warp is elected; matrices leave through stmatrix.
extern "C" __global__ void elected(const __half* x, __half* y, int* lanes) {
  __shared__ alignas(16) __half tile[8][8];
  unsigned v = ((const unsigned*)x)[threadIdx.x];
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(
                   unsigned(__cvta_generic_to_shared(&tile[threadIdx.x % 8][0]))),
               "r"(v)
               : "memory");
  __syncwarp();
  ((unsigned*)y)[threadIdx.x] = ((unsigned*)tile)[threadIdx.x];
  unsigned chosen;
  asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
               : "=r"(chosen));
  if (chosen) atomicAdd(lanes, 1);
}

// A ring of blocks: each sends its value to the next one's shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(const int* x, int* y) {
  __shared__ alignas(16) int box[4];
  __shared__ uint64_t bar;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  cluster.sync();
  int next = (cluster.block_rank() + 1) % 4;
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &bar,
                                   16);
    int v = x[blockIdx.x];
    int32_t values[4] = {v, v + 1, v + 2, v + 3};
    ptx::st_async(cluster.map_shared_rank(box, next), values, cluster.map_shared_rank(&bar, next));
  }
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {
  }
  if (threadIdx.x < 4) y[blockIdx.x * 4 + threadIdx.x] = box[threadIdx.x];
  cluster.sync();
}
