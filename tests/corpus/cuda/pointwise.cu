// Element by element: activations, rotary embedding, packed halves, the math library.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void activations(const float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float v = x[i];
    y[i] = fmaxf(v, 0.f);
    y[n + i] = v / (1 + expf(-v));
    y[2 * n + i] = 0.5f * v * (1 + erff(v * 0.70710678f));
    y[3 * n + i] = 0.5f * v * (1 + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    y[4 * n + i] = v > 20 ? v : log1pf(expf(v));
    y[5 * n + i] = v > 0 ? v : expm1f(v);
  }
}

// Pairs (i, i + half) of a head turn by position * base^(-2 i / dim).
extern "C" __global__ void rope(const float* x, const int* position, float* y, int dim) {
  int half = dim / 2, row = blockIdx.x, i = threadIdx.x;
  if (i >= half) return;
  float angle = position[row] * powf(10000.f, -2.f * i / dim), s, c;
  sincosf(angle, &s, &c);
  float a = x[row * dim + i], b = x[row * dim + half + i];
  y[row * dim + i] = a * c - b * s;
  y[row * dim + half + i] = b * c + a * s;
}

extern "C" __global__ void half2_ops(const __half2* a, const __half2* b, __half2* y) {
  int i = threadIdx.x, n = blockDim.x;
  __half2 u = a[i], v = b[i];
  y[i] = __hadd2(u, v);
  y[n + i] = __hmul2(u, v);
  y[2 * n + i] = __hfma2(u, v, u);
  y[3 * n + i] = __hmax2(u, v);
  y[4 * n + i] = __hmin2(u, v);
  y[5 * n + i] = __hneg2(__habs2(__hsub2(u, v)));
  y[6 * n + i] = __hfma2_relu(u, v, v);
  y[7 * n + i] = __lows2half2(u, v);
  y[8 * n + i] = __hadd2_sat(u, v);
  y[9 * n + i] = __h2div(u, v);
  y[10 * n + i] = __hgt2(u, v);
  y[11 * n + i] = __float22half2_rn(__half22float2(u));
}

extern "C" __global__ void bf162_ops(const __nv_bfloat162* a, const __nv_bfloat162* b,
                                     __nv_bfloat162* y) {
  int i = threadIdx.x, n = blockDim.x;
  __nv_bfloat162 u = a[i], v = b[i];
  y[i] = __hadd2(u, v);
  y[n + i] = __hmul2(u, v);
  y[2 * n + i] = __hfma2(u, v, u);
  y[3 * n + i] = __hmax2(u, v);
  y[4 * n + i] = __hmin2(u, v);
  y[5 * n + i] = __hneg2(__habs2(__hsub2(u, v)));
  y[6 * n + i] = __hfma2_relu(u, v, v);
  y[7 * n + i] = __highs2bfloat162(u, v);
  y[8 * n + i] = __hmax2_nan(u, v);
}

extern "C" __global__ void half_math(const __half* x, __half* y) {
  int i = threadIdx.x, n = blockDim.x;
  __half v = x[i];
  y[i] = hexp(v);
  y[n + i] = hlog(v);
  y[2 * n + i] = hsqrt(v);
  y[3 * n + i] = hrsqrt(v);
  y[4 * n + i] = hsin(v);
  y[5 * n + i] = hrint(v);
  y[6 * n + i] = htrunc(v);
  y[7 * n + i] = __ushort2half_rn(__half2ushort_rz(v));
}

extern "C" __global__ void float_math(const float* x, float* y) {
  int i = threadIdx.x, n = blockDim.x;
  float v = x[i];
  y[i] = logf(v);
  y[n + i] = sqrtf(v);
  y[2 * n + i] = cbrtf(v);
  y[3 * n + i] = sinf(v);
  y[4 * n + i] = cosf(v);
  y[5 * n + i] = atan2f(v, 0.5f);
  y[6 * n + i] = powf(v, 1.7f);
  y[7 * n + i] = fmodf(v, 0.3f);
  y[8 * n + i] = 1 / v;
  y[9 * n + i] = hypotf(v, 2);
  y[10 * n + i] = ldexpf(v, 5) + rintf(v);
}

extern "C" __global__ void double_math(const double* x, double* y) {
  int i = threadIdx.x, n = blockDim.x;
  double v = x[i];
  y[i] = exp(v);
  y[n + i] = log(v);
  y[2 * n + i] = sqrt(v);
  y[3 * n + i] = sin(v);
  y[4 * n + i] = pow(v, 2.5);
  y[5 * n + i] = 1 / v;
  y[6 * n + i] = fma(v, v, -v);
  y[7 * n + i] = tgamma(v);
  y[8 * n + i] = double(int(v * 100)) + floor(v) + (unsigned long long)(v * 1e10);
  y[9 * n + i] = erf(v);
}

extern "C" __global__ void conversions(const float* x, int* y) {
  int i = threadIdx.x, n = blockDim.x;
  float v = x[i];
  y[i] = __float2int_rn(v);
  y[n + i] = __float2int_rz(v);
  y[2 * n + i] = __float2int_ru(v);
  y[3 * n + i] = __float2int_rd(v);
  y[4 * n + i] = int(__float2uint_rz(v));
  y[5 * n + i] = __float2half_rn(v) > __half(1) ? 1 : 0;
  y[6 * n + i] = (signed char)(int(v));
  y[7 * n + i] = int((long long)(v) >> 3);
  y[8 * n + i] = __float_as_int(__saturatef(v));
  y[9 * n + i] = __float_as_int(__int2float_rd(y[i] * 16777217));
}
