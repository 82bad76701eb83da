// Small number formats through the headers: fp8 rows, MXFP4 and NVFP4 blocks, and back.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

__device__ float warp_top(float v, int width) {
  for (int d = width / 2; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
  return v;
}

// One warp a row of 64: the row's scale and its codes, four a lane pair.
extern "C" __global__ void fp8_rows(const float2* x, __nv_fp8x2_storage_t* codes, float* scale) {
  float2 v = x[blockIdx.x * 32 + threadIdx.x];
  float top = warp_top(fmaxf(fabsf(v.x), fabsf(v.y)), 32), s = top / 448.f;
  codes[blockIdx.x * 32 + threadIdx.x] =
      __nv_cvt_float2_to_fp8x2(make_float2(v.x / s, v.y / s), __NV_SATFINITE, __NV_E4M3);
  if (threadIdx.x == 0) scale[blockIdx.x] = s;
}

extern "C" __global__ void fp8_back(const __nv_fp8x2_storage_t* codes, __half2* y, float* z) {
  int i = threadIdx.x;
  y[i] = __half2(__nv_cvt_fp8x2_to_halfraw2(codes[i], __NV_E4M3));
  __nv_fp8_e5m2 small;
  small.__x = codes[i] & 0xff;
  z[i] = float(small);
}

extern "C" __global__ void fp8_codes(const float* x, __nv_fp8_e4m3* a, __nv_fp8_e5m2* b) {
  int i = threadIdx.x;
  a[i] = __nv_fp8_e4m3(x[i]);
  b[i] = __nv_fp8_e5m2(x[i]);
}

// Blocks of 32 with a power of two: MXFP4. A lane has one value; pairs pack a byte.
extern "C" __global__ void mxfp4(const float* x, unsigned char* codes, unsigned char* scale) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float v = x[i], top = warp_top(fabsf(v), 32);
  __nv_fp8_storage_t s = __nv_cvt_float_to_e8m0(top / 6.f, __NV_SATFINITE, cudaRoundPosInf);
  float by = __uint_as_float(unsigned(s) << 23);
  float w = v / by, next = __shfl_down_sync(~0u, w, 1);
  if (threadIdx.x % 2 == 0)
    codes[i / 2] = __nv_cvt_float2_to_fp4x2(make_float2(w, next), __NV_E2M1, cudaRoundNearest);
  if (threadIdx.x == 0) scale[blockIdx.x] = s;
}

// Blocks of 16 with an e4m3 scale: NVFP4.
extern "C" __global__ void nvfp4(const float* x, unsigned char* codes, unsigned char* scale) {
  int i = blockIdx.x * 32 + threadIdx.x;
  float v = x[i], top = warp_top(fabsf(v), 16);
  __nv_fp8_e4m3 s = __nv_fp8_e4m3(top / 6.f);
  float by = float(s), w = by == 0 ? 0.f : v / by, next = __shfl_down_sync(~0u, w, 1);
  if (threadIdx.x % 2 == 0)
    codes[i / 2] = __nv_cvt_float2_to_fp4x2(make_float2(w, next), __NV_E2M1, cudaRoundNearest);
  if (threadIdx.x % 16 == 0) scale[i / 16] = s.__x;
}

extern "C" __global__ void fp4_back(const unsigned char* codes, __half2* y) {
  y[threadIdx.x] = __half2(__nv_cvt_fp4x2_to_halfraw2(codes[threadIdx.x], __NV_E2M1));
}
