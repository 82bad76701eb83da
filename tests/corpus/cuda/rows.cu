// One row a block or a warp: softmax, norms, reductions, in the ways people write them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>

#define FULL 0xffffffffu

__device__ __forceinline__ float warp_sum(float v) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(FULL, v, d);
  return v;
}

__device__ __forceinline__ float warp_max(float v) {
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(FULL, v, d));
  return v;
}

// The value of `fold` over a block, in every thread.
template <typename F>
__device__ float block_fold(float v, float start, F fold) {
  __shared__ float parts[32];
  v = fold(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : start;
  return fold(v);
}

extern "C" __global__ void softmax_f32(const float* x, float* y, int n) {
  const float* row = x + blockIdx.x * n;
  float top = -CUDART_INF_F;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, row[i]);
  top = block_fold(top, -CUDART_INF_F, [](float v) { return warp_max(v); });
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(row[i] - top);
  sum = block_fold(sum, 0, [](float v) { return warp_sum(v); });
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[blockIdx.x * n + i] = expf(row[i] - top) / sum;
}

// Two values a thread, vectorised; n is even.
extern "C" __global__ void softmax_bf16(const __nv_bfloat162* x, __nv_bfloat162* y, int n) {
  const __nv_bfloat162* row = x + blockIdx.x * n / 2;
  float top = -CUDART_INF_F;
  for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
    float2 v = __bfloat1622float2(row[i]);
    top = fmaxf(top, fmaxf(v.x, v.y));
  }
  top = block_fold(top, -CUDART_INF_F, [](float v) { return warp_max(v); });
  float sum = 0;
  for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
    float2 v = __bfloat1622float2(row[i]);
    sum += __expf(v.x - top) + __expf(v.y - top);
  }
  sum = block_fold(sum, 0, [](float v) { return warp_sum(v); });
  float scale = __frcp_rn(sum);
  for (int i = threadIdx.x; i < n / 2; i += blockDim.x) {
    float2 v = __bfloat1622float2(row[i]);
    y[blockIdx.x * n / 2 + i] =
        __floats2bfloat162_rn(__expf(v.x - top) * scale, __expf(v.y - top) * scale);
  }
}

// One pass: a running maximum and a sum that is scaled when the maximum moves; one warp a row.
extern "C" __global__ void softmax_online(const float* x, float* y, int rows, int n) {
  int r = blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  float m = -CUDART_INF_F, s = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    float v = x[r * n + i], next = fmaxf(m, v);
    s = s * exp2f((m - next) * 1.44269504f) + exp2f((v - next) * 1.44269504f);
    m = next;
  }
  for (int d = 16; d > 0; d >>= 1) {
    float other_m = __shfl_xor_sync(FULL, m, d), other_s = __shfl_xor_sync(FULL, s, d);
    float next = fmaxf(m, other_m);
    s = s * exp2f((m - next) * 1.44269504f) + other_s * exp2f((other_m - next) * 1.44269504f);
    m = next;
  }
  for (int i = threadIdx.x; i < n; i += 32)
    y[r * n + i] = exp2f((x[r * n + i] - m) * 1.44269504f) / s;
}

extern "C" __global__ void rms_norm(const float4* x, const float4* w, float4* y, int n, float eps) {
  const float4* row = x + blockIdx.x * (n / 4);
  float sum = 0;
  for (int i = threadIdx.x; i < n / 4; i += blockDim.x) {
    float4 v = row[i];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  sum = block_fold(sum, 0, [](float v) { return warp_sum(v); });
  float scale = rsqrtf(sum / n + eps);
  for (int i = threadIdx.x; i < n / 4; i += blockDim.x) {
    float4 v = row[i], g = __ldg(&w[i]);
    y[blockIdx.x * (n / 4) + i] =
        make_float4(v.x * scale * g.x, v.y * scale * g.y, v.z * scale * g.z, v.w * scale * g.w);
  }
}

// Welford's mean and variance, merged over the warp.
extern "C" __global__ void layer_norm(const __half* x, const float* w, const float* b, __half* y,
                                      int n) {
  float mean = 0, m2 = 0, count = 0;
  for (int i = threadIdx.x; i < n; i += 32) {
    float v = __half2float(x[blockIdx.x * n + i]), d = v - mean;
    count += 1;
    mean += d / count;
    m2 += d * (v - mean);
  }
  for (int d = 16; d > 0; d >>= 1) {
    float om = __shfl_down_sync(FULL, mean, d), oq = __shfl_down_sync(FULL, m2, d);
    float oc = __shfl_down_sync(FULL, count, d), all = count + oc, delta = om - mean;
    if (all > 0) {
      mean += delta * oc / all;
      m2 += oq + delta * delta * count * oc / all;
    }
    count = all;
  }
  mean = __shfl_sync(FULL, mean, 0);
  float scale = rsqrtf(__shfl_sync(FULL, m2, 0) / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += 32) {
    float v = (__half2float(x[blockIdx.x * n + i]) - mean) * scale;
    y[blockIdx.x * n + i] = __float2half_rn(v * w[i] + b[i]);
  }
}

// Compensated: each thread carries what its sum lost.
extern "C" __global__ void kahan_sum(const float* x, float* y, int n) {
  float sum = 0, lost = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float v = __fsub_rn(x[blockIdx.x * n + i], lost), t = __fadd_rn(sum, v);
    lost = __fsub_rn(__fsub_rn(t, sum), v);
    sum = t;
  }
  __shared__ double parts[1024];
  parts[threadIdx.x] = double(sum) - double(lost);
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = float(parts[0]);
}

// The first place of the largest value, packed with it into one 64-bit key.
extern "C" __global__ void argmax(const float* x, int* where, int n) {
  unsigned long long best = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned bits = __float_as_uint(x[blockIdx.x * n + i]);
    bits ^= (bits >> 31) ? 0xffffffffu : 0x80000000u;
    unsigned long long key = (unsigned long long)bits << 32 | (0xffffffffu - i);
    best = best > key ? best : key;
  }
  __shared__ unsigned long long shared_best;
  if (threadIdx.x == 0) shared_best = 0;
  __syncthreads();
  atomicMax(&shared_best, best);
  __syncthreads();
  if (threadIdx.x == 0) where[blockIdx.x] = int(0xffffffffu - unsigned(shared_best));
}

extern "C" __global__ void warp_reductions(const int* x, int* y) {
  int v = x[threadIdx.x], lane = threadIdx.x % 32, w = threadIdx.x / 32;
  int sum = __reduce_add_sync(FULL, v), low = __reduce_min_sync(FULL, v);
  int high = __reduce_max_sync(FULL, v);
  unsigned all = __reduce_and_sync(FULL, unsigned(v)), any = __reduce_or_sync(FULL, unsigned(v));
  unsigned odd = __reduce_xor_sync(FULL, unsigned(v));
  unsigned votes = __ballot_sync(FULL, v > 0);
  int both = __all_sync(FULL, v > -1000) + 2 * __any_sync(FULL, v == 7);
  unsigned same = __match_any_sync(FULL, v & 3);
  int uniform;
  unsigned matched = __match_all_sync(FULL, w, &uniform);
  int scan = v;
  for (int d = 1; d < 32; d *= 2) {
    int below = __shfl_up_sync(FULL, scan, d);
    if (lane >= d) scan += below;
  }
  int* out = y + threadIdx.x * 12;
  out[0] = sum, out[1] = low, out[2] = high, out[3] = all, out[4] = any, out[5] = odd;
  out[6] = votes, out[7] = both, out[8] = same, out[9] = matched == FULL && uniform;
  out[10] = scan, out[11] = __popc(votes & ((1u << lane) - 1));
}
