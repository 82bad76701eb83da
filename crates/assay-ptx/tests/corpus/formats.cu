// Narrow float formats as the CUDA headers convert them.
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

extern "C" __global__ void fp8(const float2* x, const __half2* h, __nv_fp8x2_storage_t* y,
                               __half2_raw* back) {
  y[0] = __nv_cvt_float2_to_fp8x2(x[0], __NV_SATFINITE, __NV_E4M3);
  y[1] = __nv_cvt_float2_to_fp8x2(x[1], __NV_SATFINITE, __NV_E5M2);
  y[2] = __nv_cvt_halfraw2_to_fp8x2(h[0], __NV_SATFINITE, __NV_E4M3);
  back[0] = __nv_cvt_fp8x2_to_halfraw2(y[3], __NV_E4M3);
  back[1] = __nv_cvt_fp8x2_to_halfraw2(y[4], __NV_E5M2);
}

extern "C" __global__ void fp4(const float2* x, __nv_fp4x2_storage_t* y, __half2_raw* back,
                               __nv_fp8x2_storage_t* scale, __nv_fp6x2_storage_t* six) {
  y[0] = __nv_cvt_float2_to_fp4x2(x[0], __NV_E2M1, cudaRoundNearest);
  back[0] = __nv_cvt_fp4x2_to_halfraw2(y[1], __NV_E2M1);
  six[0] = __nv_cvt_float2_to_fp6x2(x[2], __NV_E2M3, cudaRoundNearest);
  scale[0] = __nv_cvt_float2_to_e8m0x2(x[1], __NV_SATFINITE, cudaRoundPosInf);
}
