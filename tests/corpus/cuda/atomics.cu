// Atomics of every type, in the spellings of CUDA, libcu++ and the scoped builtins.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// One cell an operation, in global memory and again in shared.
extern "C" __global__ void integers(const int* x, int* out, unsigned long long* wide) {
  __shared__ int cells[10];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 10; i++) cells[i] = 0;
    cells[5] = -1;
  }
  __syncthreads();
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int where = 0; where < 2; where++) {
    int* c = where ? cells : out;
    atomicAdd(&c[0], v);
    atomicSub(&c[1], v);
    atomicMin(&c[2], v);
    atomicMax(&c[3], v);
    atomicOr(&c[4], v);
    atomicAnd(&c[5], v | 0xff);
    atomicXor(&c[6], v);
    atomicInc((unsigned*)&c[7], 40);
    atomicDec((unsigned*)&c[8], 40);
    int seen = c[9], wanted;
    do {
      wanted = seen;
      seen = atomicCAS(&c[9], wanted, wanted + 3);
    } while (seen != wanted);
  }
  atomicAdd(&wide[0], (unsigned long long)v << 20);
  atomicMax((long long*)&wide[1], (long long)v << 33);
  atomicOr(&wide[2], 1ull << (v & 63));
  __syncthreads();
  if (threadIdx.x < 10) out[10 + blockIdx.x * 10 + threadIdx.x] = cells[threadIdx.x];
}

// Sums of small whole numbers, so that every order gives the same bits.
extern "C" __global__ void floats(const float* x, float* f, double* d, __half2* h,
                                  __nv_bfloat162* b, __half* lone, __nv_bfloat16* lone_b) {
  __shared__ float cell;
  __shared__ double wide;
  if (threadIdx.x == 0) cell = 0, wide = 0;
  __syncthreads();
  float v = x[threadIdx.x];
  atomicAdd(&f[0], v);
  atomicAdd(&cell, v);
  atomicAdd(&d[0], double(v) * 0.5);
  atomicAdd(&wide, double(v) * 0.25);
  atomicAdd(h, __floats2half2_rn(v, -v));
  atomicAdd(b, __floats2bfloat162_rn(v, 2 * v));
  atomicAdd(lone, __float2half(v));
  atomicAdd(lone_b, __float2bfloat16(v));
  __syncthreads();
  if (threadIdx.x == 0) f[1] = cell, d[1] = wide, f[2] = atomicExch(&f[3], 9.f);
}

// A ticket lock, a reference to plain memory, and a fence that publishes.
extern "C" __global__ void library(cuda::atomic<int, cuda::thread_scope_device>* lock,
                                   unsigned* data, long long* refs) {
  if (threadIdx.x == 0) {
    int expected = 0;
    while (!lock->compare_exchange_weak(expected, 1, cuda::memory_order_acquire)) {
      expected = 0;
      __nanosleep(20);
    }
    data[0] = data[0] * 3 + 1;
    lock->store(0, cuda::memory_order_release);
  }
  cuda::atomic_ref<long long, cuda::thread_scope_device> sum(refs[0]), top(refs[1]);
  sum.fetch_add(threadIdx.x + 1, cuda::memory_order_relaxed);
  top.fetch_max(long(blockIdx.x * 100 + threadIdx.x), cuda::memory_order_acq_rel);
  cuda::atomic_ref<unsigned, cuda::thread_scope_block> small(data[1 + blockIdx.x]);
  small.fetch_xor(1u << threadIdx.x % 32, cuda::memory_order_seq_cst);
}

// The last block to arrive adds up what the others left: threadfence reduction.
extern "C" __global__ void last_block(const int* x, int* parts, unsigned* arrived, int* total) {
  __shared__ int sum;
  __shared__ bool last;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd_block(&sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int all = 0;
    for (int i = 0; i < gridDim.x; i++) all += ((volatile int*)parts)[i];
    *total = all;
  }
}
