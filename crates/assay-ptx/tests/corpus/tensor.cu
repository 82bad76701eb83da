// Tensor cores of sm_80: wmma, mma, ldmatrix, and the copies that feed them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void wmma_half(const __half* a, const __half* b, float* d) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fd;
  wmma::fill_fragment(fd, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fd, fa, fb, fd);
  wmma::store_matrix_sync(d, fd, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_others(const __nv_bfloat16* a, const signed char* b, float* d,
                                       int* e, const double* g, double* h) {
  wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> fd;
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, a, 16);
  wmma::load_matrix_sync(fd, d, 16, wmma::mem_col_major);
  wmma::mma_sync(fd, fa, fb, fd);
  wmma::store_matrix_sync(d, fd, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::col_major> ga;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> gb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> gd;
  wmma::fill_fragment(gd, 1);
  wmma::load_matrix_sync(ga, b, 16);
  wmma::load_matrix_sync(gb, b, 16);
  wmma::mma_sync(gd, ga, gb, gd, true);
  wmma::store_matrix_sync(e, gd, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> da;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> db;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> dd;
  wmma::fill_fragment(dd, 0.0);
  wmma::load_matrix_sync(da, g, 4);
  wmma::load_matrix_sync(db, g, 4);
  wmma::mma_sync(dd, da, db, dd);
  wmma::store_matrix_sync(h, dd, 8, wmma::mem_row_major);
}

extern "C" __global__ void mma_all(const uint4* in, float4* out, const uint4* global) {
  __shared__ uint4 tile[64];
  unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(global));
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;"
               :: "r"(at), "l"(global), "r"(4));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 0x4;" :: "r"(at), "l"(global));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  uint4 a = in[0], b = in[1];
  float4 c = out[0];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a.x), "=r"(a.y), "=r"(a.z), "=r"(a.w) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(b.x), "=r"(b.y) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(b.z) : "r"(at));
#define MMA(NAME) asm volatile(NAME " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
    : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w) \
    : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y))
  MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
  MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
               "{%0,%1,%2,%3};" : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
               : "r"(a.x), "r"(a.y), "r"(b.x));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, "
               "{%6,%7}, {%0,%1};" : "+r"(b.z), "+r"(b.w)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
  asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, "
               "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(b.x), "+r"(b.y), "+r"(b.z), "+r"(b.w)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(a.x), "r"(a.y));
  asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, "
               "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(b.x), "+r"(b.y), "+r"(b.z), "+r"(b.w)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(a.x), "r"(a.y));
  asm volatile("mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, "
               "{%6,%7}, {%0,%1,%2,%3}, %8, 0x0;"
               : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
               : "r"(a.x), "r"(a.y), "r"(b.x), "r"(b.y), "r"(a.z));
  double d0 = c.x, d1 = c.y;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(d0), "+d"(d1) : "d"(d0), "d"(d1));
  unsigned t;
  asm volatile("cvt.rna.tf32.f32 %0, %1;" : "=r"(t) : "f"(c.z));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(t));
  out[0] = make_float4(c.x + d0, c.y + d1 + b.x, c.z + b.z + b.w, c.w + t + b.y);
}
