// Atomics of every kind, libcu++ orders and scopes, fences, cache operators.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void classic(int* i, unsigned* u, unsigned long long* l, float* f, double* d,
                                   __half2* h, __nv_bfloat162* b, unsigned short* s) {
  __shared__ int si[4];
  __shared__ float sf[4];
  __shared__ unsigned long long sl[4];
  si[threadIdx.x & 3] = 0;
  sf[threadIdx.x & 3] = 0;
  sl[threadIdx.x & 3] = 0;
  __syncthreads();
  atomicAdd(i, 1); i[9] = atomicSub(i + 1, 2); i[8] = atomicMin(i + 2, 3); atomicMax(i + 3, 4);
  atomicAnd(u, 1); u[9] = atomicOr(u + 1, 2); atomicXor(u + 2, 3);
  u[8] = atomicInc(u + 3, 4); u[7] = atomicDec(u + 4, 5);
  u[6] = atomicExch(u + 5, 6); u[10] = atomicCAS(u + 6, 7, 8);
  atomicAdd(l, 1ULL); l[9] = atomicCAS(l + 1, 2ULL, 3ULL); atomicMax(l + 2, 4ULL);
  f[9] = atomicAdd(f, 1.0f); atomicAdd(d, 2.0); f[8] = atomicExch(f + 1, 3.0f);
  h[1] = atomicAdd(h, h[2]); b[1] = atomicAdd(b, b[2]);
  s[1] = atomicCAS(s, 1, 2);
  atomicAdd(si, 1); si[1] = atomicMax(si + 2, 5); atomicAdd(sf, 2.0f); atomicMin(sl, 6ULL);
  atomicAdd_block(i + 4, 1); atomicAdd_system(i + 5, 1);
  __syncthreads();
  i[7] = si[1] + sf[0] + sl[0];
}

extern "C" __global__ void ordered(int* x, unsigned* y) {
  cuda::atomic_ref<int, cuda::thread_scope_device> a(x[0]);
  cuda::atomic_ref<int, cuda::thread_scope_block> b(x[1]);
  cuda::atomic_ref<unsigned, cuda::thread_scope_system> c(y[0]);
  a.store(1, cuda::memory_order_release);
  b.store(2, cuda::memory_order_relaxed);
  c.store(3, cuda::memory_order_seq_cst);
  int old = a.fetch_add(2, cuda::memory_order_acq_rel) + b.load(cuda::memory_order_acquire);
  unsigned expected = 4;
  c.compare_exchange_strong(expected, 7u);
  old += a.exchange(9) + c.fetch_xor(5u, cuda::memory_order_acquire) + expected;
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_block);
  __threadfence(); __threadfence_block(); __threadfence_system();
  x[2] = old;
}

extern "C" __global__ void cached(const float4* x, float4* y, volatile int* v, const short2* s) {
  float4 t = __ldg(x), u = __ldcg(x + 1), w = __ldcs(x + 2), z = __ldlu(x + 3), q = __ldcv(x + 4);
  float4 c = __ldca(x + 5);
  __stcg(y, t); __stcs(y + 1, u); __stwb(y + 2, w); __stwt(y + 3, z);
  y[4] = q; y[5] = c;
  v[0] = v[1] + __ldg(s).x;
  float r; unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;"
               : "=l"(policy));
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.L2::128B.f32 %0, [%1], %2;"
               : "=f"(r) : "l"(x), "l"(policy));
  asm volatile("prefetch.global.L2 [%0];" :: "l"(x));
  asm volatile("discard.global.L2 [%0], 128;" :: "l"(y));
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;" :: "l"(y));
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" :: "l"(y), "f"(r));
  asm volatile("{ .reg .pred p; isspacep.shared p, %0; @p trap; }" :: "l"(y));
}
