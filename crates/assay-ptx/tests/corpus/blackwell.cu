// sm_120a: block-scaled mma, packed f32, narrow conversions in hardware.
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

extern "C" __global__ void scaled(const uint4* in, float4* out, unsigned sa, unsigned sb) {
  uint4 a = in[0], b = in[1];
  float4 c = out[0];
#define SCALED(NAME) asm volatile(NAME " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, " \
    "%10, {0, 0}, %11, {0, 0};" : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w) \
    : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y), "r"(sa), "r"(sb))
  SCALED("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
         ".f32.e4m3.e4m3.f32.ue8m0");
  SCALED("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X"
         ".f32.e2m1.e2m1.f32.ue4m3");
  asm volatile("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32 {%0,%1,%2,%3}, "
               "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)
               : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
  out[0] = c;
}

extern "C" __global__ void packed(const float2* x, float2* y, __nv_fp4x2_storage_t* four,
                                  __nv_fp8x2_storage_t* scale, __half2_raw* back) {
  unsigned long long a = *(const unsigned long long*)x, b = *(const unsigned long long*)(x + 1), c;
  asm("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(c) : "l"(a), "l"(b));
  asm("add.rn.f32x2 %0, %1, %2;" : "=l"(c) : "l"(a), "l"(c));
  *(unsigned long long*)y = c;
  four[0] = __nv_cvt_float2_to_fp4x2(x[0], __NV_E2M1, cudaRoundNearest);
  back[0] = __nv_cvt_fp4x2_to_halfraw2(four[1], __NV_E2M1);
  scale[0] = __nv_cvt_float2_to_e8m0x2(x[1], __NV_SATFINITE, cudaRoundPosInf);
}
