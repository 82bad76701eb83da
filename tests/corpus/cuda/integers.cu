// Histogram, scan, sorting and selection; dot products of packed integers.
#include <cuda_fp16.h>

extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (local[i]) atomicAdd(&bins[i], local[i]);
}

// Blelloch's exclusive scan of 256 values by 128 threads.
extern "C" __global__ void scan(const int* x, int* y) {
  __shared__ int t[256];
  int i = threadIdx.x, step = 1;
  t[2 * i] = x[2 * i], t[2 * i + 1] = x[2 * i + 1];
  for (int d = 128; d > 0; d >>= 1, step *= 2) {
    __syncthreads();
    if (i < d) t[step * (2 * i + 2) - 1] += t[step * (2 * i + 1) - 1];
  }
  if (i == 0) t[255] = 0;
  for (int d = 1; d < 256; d *= 2) {
    step >>= 1;
    __syncthreads();
    if (i < d) {
      int a = step * (2 * i + 1) - 1, b = step * (2 * i + 2) - 1, v = t[a];
      t[a] = t[b], t[b] += v;
    }
  }
  __syncthreads();
  y[2 * i] = t[2 * i], y[2 * i + 1] = t[2 * i + 1];
}

extern "C" __global__ void bitonic(unsigned long long* keys) {
  __shared__ unsigned long long t[256];
  t[threadIdx.x] = keys[threadIdx.x];
  for (int k = 2; k <= 256; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      int other = threadIdx.x ^ j;
      if (other > threadIdx.x) {
        unsigned long long a = t[threadIdx.x], b = t[other];
        if ((a > b) == ((threadIdx.x & k) == 0)) t[threadIdx.x] = b, t[other] = a;
      }
    }
  __syncthreads();
  keys[threadIdx.x] = t[threadIdx.x];
}

// The k-th largest key, eight bits at a time from the top.
extern "C" __global__ void radix_select(const unsigned* x, unsigned* kth, int n, int k) {
  __shared__ unsigned bins[256], prefix, left;
  if (threadIdx.x == 0) prefix = 0, left = k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bins[threadIdx.x] = 0;
    __syncthreads();
    unsigned mask = shift == 24 ? 0 : ~0u << (shift + 8);
    for (int i = threadIdx.x; i < n; i += 256)
      if ((x[i] & mask) == prefix) atomicAdd(&bins[x[i] >> shift & 255], 1u);
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = 255;
      while (bins[digit] < left) left -= bins[digit--];
      prefix |= unsigned(digit) << shift;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *kth = prefix;
}

// y = W x with W = scale * q + bias a group of 64, eight 4-bit codes a word; one warp a row.
extern "C" __global__ void int4_gemv(const unsigned* codes, const float* scale, const float* bias,
                                     const float* x, float* y, int columns) {
  int row = blockIdx.x, groups = columns / 64;
  float sum = 0;
  for (int w = threadIdx.x; w < columns / 8; w += 32) {
    unsigned word = codes[row * columns / 8 + w];
    float s = scale[row * groups + w / 8], b = bias[row * groups + w / 8];
#pragma unroll
    for (int i = 0; i < 8; i++) sum += (s * (word >> 4 * i & 15) + b) * x[w * 8 + i];
  }
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
  if (threadIdx.x == 0) y[row] = sum;
}

__device__ __forceinline__ unsigned lop(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// The codes become halves by their bits: 0x6400 | q is 1024 + q.
extern "C" __global__ void int4_lop3(const unsigned* codes, __half2* y) {
  unsigned word = codes[threadIdx.x];
  __half2* out = y + 4 * threadIdx.x;
  const __half2 low = __float2half2_rn(1032), shrink = __float2half2_rn(1 / 16.f);
  const __half2 high = __float2half2_rn(-72);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    unsigned a = lop(word, 0x000f000f, 0x64006400), b = lop(word, 0x00f000f0, 0x64006400);
    out[2 * i] = __hsub2(*(__half2*)&a, low);
    out[2 * i + 1] = __hfma2(*(__half2*)&b, shrink, high);
    word >>= 8;
  }
}

extern "C" __global__ void q8_dp4a(const int* a, const int* b, const float* scale, float* y,
                                   int n) {
  int sum = 0, row = blockIdx.x;
  for (int i = threadIdx.x; i < n / 4; i += 32) sum = __dp4a(a[row * n / 4 + i], b[i], sum);
  sum = __reduce_add_sync(~0u, sum);
  if (threadIdx.x == 0) y[row] = sum * scale[row];
}

extern "C" __global__ void bits(const unsigned* x, unsigned* y) {
  int i = threadIdx.x, n = blockDim.x;
  unsigned v = x[i], w = x[(i + 1) % n];
  y[i] = __popc(v) | __clz(v) << 8 | __ffs(v) << 16;
  y[n + i] = __brev(v);
  y[2 * n + i] = __byte_perm(v, w, 0x5140);
  y[3 * n + i] = __funnelshift_l(v, w, w & 31);
  y[4 * n + i] = __umulhi(v, w);
  y[5 * n + i] = __mulhi(int(v), int(w));
  y[6 * n + i] = __vadd4(v, w);
  y[7 * n + i] = __vmaxs2(v, w);
  y[8 * n + i] = __vabsdiffu4(v, w);
  y[9 * n + i] = __usad(v, w, 5);
  y[10 * n + i] = v / (w | 1) + v % 10 + unsigned(int(v) / 7) + unsigned(int(v) % -3);
  unsigned long long wide = (unsigned long long)v << 32 | w;
  y[11 * n + i] = unsigned(wide / (v | 1)) ^ unsigned(__umul64hi(wide, wide)) ^ __popcll(wide);
  __int128 huge = (__int128)wide * (long long)int(w);
  y[12 * n + i] = unsigned(huge >> 70);
}
