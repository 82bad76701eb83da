// Matrix products: plain, through wmma, and through mma with ldmatrix and cp.async by hand.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

// C = A B for row-major 64-multiples; a tile of 32 x 32 a block, 4 values a thread.
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[32][33], tb[32][33];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32, column = blockIdx.x * 32;
  float sum[4] = {};
  for (int t = 0; t < k; t += 32) {
    for (int i = 0; i < 4; i++) {
      ta[y + 8 * i][x] = a[(row + y + 8 * i) * k + t + x];
      tb[y + 8 * i][x] = b[(t + y + 8 * i) * n + column + x];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 32; j++)
      for (int i = 0; i < 4; i++) sum[i] += ta[y + 8 * i][j] * tb[j][x];
    __syncthreads();
  }
  for (int i = 0; i < 4; i++) c[(row + y + 8 * i) * n + column + x] = sum[i];
}

// One warp, a 16 x 16 tile of C.
template <typename T>
__device__ void wmma_tile(const T* a, const T* b, float* c, int n, int k) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.f);
  for (int t = 0; t < k; t += 16) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + t, k);
    wmma::load_matrix_sync(fb, b + t * n + blockIdx.x * 16, n);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 2;
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void wmma_f16(const __half* a, const __half* b, float* c, int n, int k) {
  wmma_tile(a, b, c, n, k);
}

extern "C" __global__ void wmma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c,
                                     int n, int k) {
  wmma_tile(a, b, c, n, k);
}

// The other shapes, layouts and types: 8-bit integers, tf32, f64; tiles staged in shared memory.
extern "C" __global__ void wmma_s8(const signed char* a, const signed char* b, int* c) {
  __shared__ alignas(16) signed char stage[32 * 16];
  __pipeline_memcpy_async(stage + threadIdx.x * 16, a + threadIdx.x * 16, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, int> sum;
  wmma::fill_fragment(sum, 5);
  wmma::load_matrix_sync(fa, stage, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(sum, fa, fb, sum);
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(fa, a, 8);
  wmma::load_matrix_sync(fb, b, 16);
  for (int i = 0; i < fa.num_elements; i++) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
  for (int i = 0; i < fb.num_elements; i++) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
  wmma::mma_sync(sum, fa, fb, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_f64(const double* a, const double* b, double* c) {
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
  wmma::fill_fragment(sum, 0.0);
  wmma::load_matrix_sync(fa, a, 4);
  wmma::load_matrix_sync(fb, b, 4);
  wmma::mma_sync(sum, fa, fb, sum);
  wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return unsigned(__cvta_generic_to_shared(p));
}

// 4 warps, a 32 x 32 tile of C a block, two stages of cp.async, ldmatrix, mma on bf16.
extern "C" __global__ void mma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c,
                                    int n, int k) {
  __shared__ alignas(16) __nv_bfloat16 ta[2][32][24], tb[2][16][40];
  int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  int row = blockIdx.y * 32, column = blockIdx.x * 32, wr = warp / 2 * 16, wc = warp % 2 * 16;
  float sum[2][4] = {};
  auto fetch = [&](int stage, int t) {
    if (tid < 64)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                       shared_address(&ta[stage][tid / 2][tid % 2 * 8])),
                   "l"(a + (row + tid / 2) * k + t + tid % 2 * 8));
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(
                       shared_address(&tb[stage][(tid - 64) / 4][tid % 4 * 8])),
                   "l"(b + (t + (tid - 64) / 4) * n + column + tid % 4 * 8), "r"(16));
    asm volatile("cp.async.commit_group;");
  };
  fetch(0, 0);
  for (int t = 0, s = 0; t < k; t += 16, s ^= 1) {
    if (t + 16 < k) {
      fetch(s ^ 1, t + 16);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    unsigned fa[4], fb[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(shared_address(&ta[s][wr + lane % 16][lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                 : "r"(shared_address(&tb[s][lane % 16][wc + lane / 16 * 8])));
    for (int j = 0; j < 2; j++)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                   "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(sum[j][0]), "+f"(sum[j][1]), "+f"(sum[j][2]), "+f"(sum[j][3])
                   : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * j]),
                     "r"(fb[2 * j + 1]));
    __syncthreads();
  }
  for (int j = 0; j < 2; j++)
    for (int i = 0; i < 4; i++)
      c[(row + wr + lane / 4 + i / 2 * 8) * n + column + wc + 8 * j + lane % 4 * 2 + i % 2] =
          sum[j][i];
}

// One instruction a kernel: registers of A (16 x k), B (k x 8, by columns) and C, as words lie.
#define MMA(name, shape, types, acc, accs)                                                        \
  extern "C" __global__ void name(const unsigned* a, const unsigned* b, acc* c) {                \
    int g = threadIdx.x / 4, t = threadIdx.x % 4;                                                \
    unsigned fa[4] = {a[g * 8 + t], a[(g + 8) * 8 + t],                          \
                      a[g * 8 + t + 4],                                      \
                      a[(g + 8) * 8 + t + 4]};                               \
    unsigned fb[2] = {b[g * 8 + t], b[g * 8 + t + 4]};               \
    acc d[4];                                                                                    \
    for (int i = 0; i < 4; i++) d[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];                   \
    asm volatile("mma.sync.aligned." shape ".row.col." types                                     \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"              \
                 : "+" accs(d[0]), "+" accs(d[1]), "+" accs(d[2]), "+" accs(d[3])                \
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));      \
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];                   \
  }

MMA(mma_f16, "m16n8k16", "f32.f16.f16.f32", float, "f")
MMA(mma_tf32, "m16n8k8", "f32.tf32.tf32.f32", float, "f")
MMA(mma_s8, "m16n8k32", "s32.s8.s8.s32", int, "r")
MMA(mma_u8s8, "m16n8k32", "s32.u8.s8.s32", int, "r")
#if __CUDA_ARCH__ >= 890
MMA(mma_e4m3, "m16n8k32", "f32.e4m3.e4m3.f32", float, "f")
MMA(mma_e5m2, "m16n8k32", "f32.e5m2.e4m3.f32", float, "f")
#endif

// f16 accumulators: two to a word.
extern "C" __global__ void mma_f16_acc(const unsigned* a, const unsigned* b, unsigned* c) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned d[2] = {c[g * 4 + t], c[(g + 8) * 4 + t]};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, "
               "{%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[g * 4 + t]), "r"(a[(g + 8) * 4 + t]), "r"(b[g * 4 + t]));
  c[g * 4 + t] = d[0], c[(g + 8) * 4 + t] = d[1];
}
