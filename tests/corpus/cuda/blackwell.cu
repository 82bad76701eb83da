// What sm_120a adds: products of blocks with scales, pairs of f32, float reductions over a warp.
#include <cuda_fp16.h>

// C (16 x 8) += A B, registers as the words lie; `k` and scales differ by kind.
#define SCALED(name, instruction, SCALE)                                                        \
  extern "C" __global__ void name(const unsigned* a, const unsigned* b, float* c, unsigned sa,    \
                                  unsigned sb) {                                                  \
    int g = threadIdx.x / 4, t = threadIdx.x % 4;                                                 \
    unsigned fa[4] = {a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4]}; \
    unsigned fb[2] = {b[g * 8 + t], b[g * 8 + t + 4]};                                            \
    float d[4];                                                                                   \
    for (int i = 0; i < 4; i++) d[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];                    \
    asm volatile("mma.sync.aligned." instruction                                                  \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}" SCALE ";"      \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                 \
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]),        \
                   "r"(sa), "r"(sb), "h"((short)0));                                              \
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];                    \
  }

SCALED(mma_f8f6f4, "m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e5m2.f32", "")
SCALED(mma_mxf8,
       "kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0",
       ", {%10}, {%12, %12}, {%11}, {%12, %12}")
SCALED(mma_nvf4,
       "kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
       ", {%10}, {%12, %12}, {%11}, {%12, %12}")

extern "C" __global__ void pairs(const float2* a, const float2* b, float2* y) {
  int i = threadIdx.x;
  y[i] = __ffma2_rn(a[i], b[i], make_float2(1, -1));
  y[i + blockDim.x] = __fadd2_rn(a[i], b[i]);
  y[i + 2 * blockDim.x] = __fmul2_rn(a[i], b[i]);
}
