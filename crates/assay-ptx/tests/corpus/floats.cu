// Scalar arithmetic: f64, f32 with every rounding, library functions, half and bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void doubles(const double* x, double* y, long long* z) {
  double a = x[0], b = x[1], c = x[2];
  y[0] = a + b * c;
  y[1] = __dadd_rz(a, b) + __dmul_ru(b, c) + __fma_rd(a, b, c);
  y[2] = a / b + sqrt(c) + 1.0 / c + __drcp_rd(c) + __dsqrt_ru(b);
  y[3] = fmax(a, b) - fmin(b, c) + fabs(a) + copysign(a, b);
  y[4] = floor(a) + rint(b) + trunc(c) + ceil(a);
  y[5] = exp(a) + log(b);
  y[6] = rsqrt(a);
  z[0] = __double2ll_rn(a) + __double2int_rz(b) + __double_as_longlong(c);
  y[7] = z[1] + __hiloint2double(3, 4) + float(a) + (isnan(b) ? 1 : 2);
}

extern "C" __global__ void floats(const float* x, float* y, int* z, unsigned long long* w) {
  float a = x[0], b = x[1], c = x[2];
  y[0] = __fadd_rn(a, b) + __fmul_rz(b, c) + __fmaf_ru(a, b, c) + __fsub_rd(a, c);
  y[1] = a / b + sqrtf(c) + __frcp_rn(a) + __fsqrt_rz(b) + __fdiv_ru(a, b);
  y[2] = __fdividef(a, b) + __expf(a) + __logf(b) + __sinf(c) + __cosf(a) + __powf(b, c);
  y[3] = rsqrtf(a) + __frsqrt_rn(b) + tanhf(c) + expf(a) + logf(b) + erff(c);
  y[4] = fmaxf(a, b) + fminf(b, c) + __saturatef(a) + fabsf(b) + copysignf(a, c);
  y[5] = sinf(a);
  z[0] = __float2int_rn(a) + __float2int_rd(b) + __float2uint_ru(c) + __float2int_rz(a);
  w[0] = __float2ull_rn(a) + __float2ll_rz(b);
  y[6] = __int2float_rz(z[1]) + __uint2float_rn(z[2]) + __ull2float_rn(w[1]);
  z[3] = isinf(a) || isnan(b) || a != b || !(b <= c) || signbit(c);
  float t, u;
  asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(a));
  asm("{ .reg .pred p0; testp.subnormal.f32 p0, %1; selp.f32 %0, 0f3f800000, 0f00000000, p0; }"
      : "=f"(u) : "f"(a));
  y[7] = t + u;
}

extern "C" __global__ void halves(const __half2* x, __half2* y, const __nv_bfloat162* p,
                                  __nv_bfloat162* q, __half* s, __nv_bfloat16* t) {
  __half2 a = x[0], b = x[1], c = x[2];
  y[0] = __hfma2(a, b, c);
  y[1] = __hadd2(a, b) * c - a;
  y[2] = __hmax2_nan(a, b) / __hmin2(b, c);
  y[3] = h2exp2(a) + h2sqrt(b) + __habs2(c) + __hneg2(a) + h2tanh(c);
  y[4] = __hfma2_relu(a, b, c) + __hfma2_sat(a, b, c) + __hgt2(a, b) + __heq2(b, c);
  s[0] = s[1] + s[2] * s[3] - __hmax(s[4], s[5]) + hrcp(s[6]) + hlog2(s[7]);
  s[8] = __float2half_rz(__half2float(s[9])) + __int2half_rn(int(s[10]));
  s[11] = __hlt(s[1], s[2]) ? s[3] : __hadd_rn(s[4], s[5]);
  __nv_bfloat162 d = p[0], e = p[1], f = p[2];
  q[0] = __hfma2(d, e, f);
  q[1] = __hadd2(d, e) * f - d;
  q[2] = __hmax2(d, e) / __hmin2_nan(e, f);
  q[3] = h2exp(d) + h2rsqrt(e) + __habs2(f) + __hneg2(d);
  q[4] = __floats2bfloat162_rn(1.0f, float(t[0]));
  q[5] = __hfma2_relu(d, e, f) + __hle2(d, e);
  t[1] = t[2] + t[3] * t[4] - __hmin(t[5], t[6]);
  t[7] = __hge(t[1], t[2]) ? __float2bfloat16_ru(float(t[3])) : __ushort_as_bfloat16(3);
}
