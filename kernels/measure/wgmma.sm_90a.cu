// Rates of wgmma, dense.

#include "wgmma.cuh"

namespace {

WGMMA_SHARED(f16_shared, "m64n256k16", "f32.f16.f16", ", 1, 1, 0, 0")
WGMMA_REGISTERS(f16_registers, "m64n256k16", "f32.f16.f16", ", 1, 1, 0")
WGMMA_SHARED(bf16_shared, "m64n256k16", "f32.bf16.bf16", ", 1, 1, 0, 0")
WGMMA_REGISTERS(bf16_registers, "m64n256k16", "f32.bf16.bf16", ", 1, 1, 0")
WGMMA_SHARED(tf32_shared, "m64n256k8", "f32.tf32.tf32", ", 1, 1")
WGMMA_REGISTERS(tf32_registers, "m64n256k8", "f32.tf32.tf32", ", 1, 1")
WGMMA_SHARED(s8_shared, "m64n256k32", "s32.s8.s8", "")
WGMMA_REGISTERS(s8_registers, "m64n256k32", "s32.s8.s8", "")
WGMMA_SHARED(e4m3_shared, "m64n256k32", "f32.e4m3.e4m3", ", 1, 1")
WGMMA_REGISTERS(e4m3_registers, "m64n256k32", "f32.e4m3.e4m3", ", 1, 1")

}  // namespace

WGMMA_KERNEL(f16_shared)
WGMMA_KERNEL(f16_registers)
WGMMA_KERNEL(bf16_shared)
WGMMA_KERNEL(bf16_registers)
WGMMA_KERNEL(tf32_shared)
WGMMA_KERNEL(tf32_registers)
WGMMA_KERNEL(s8_shared)
WGMMA_KERNEL(s8_registers)
WGMMA_KERNEL(e4m3_shared)
WGMMA_KERNEL(e4m3_registers)
