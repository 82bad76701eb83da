// Rates of wgmma, 2:4 sparse: of every four elements of A the second and the fourth are kept, of
// every two of tf32 the second.

#include "wgmma.cuh"

namespace {

WGMMA_SPARSE_SHARED(f16_shared, "m64n256k32", "f32.f16.f16", 0xddddddddu,
                    ", 1, 1, 0, 0")
WGMMA_SPARSE_REGISTERS(f16_registers, "m64n256k32", "f32.f16.f16", 0xddddddddu,
                       ", 1, 1, 0")
WGMMA_SPARSE_SHARED(bf16_shared, "m64n256k32", "f32.bf16.bf16", 0xddddddddu,
                    ", 1, 1, 0, 0")
WGMMA_SPARSE_REGISTERS(bf16_registers, "m64n256k32", "f32.bf16.bf16", 0xddddddddu,
                       ", 1, 1, 0")
WGMMA_SPARSE_SHARED(tf32_shared, "m64n256k16", "f32.tf32.tf32", 0xeeeeeeeeu,
                    ", 1, 1")
WGMMA_SPARSE_REGISTERS(tf32_registers, "m64n256k16", "f32.tf32.tf32", 0xeeeeeeeeu,
                       ", 1, 1")
WGMMA_SPARSE_SHARED(s8_shared, "m64n256k64", "s32.s8.s8", 0xddddddddu,
                    "")
WGMMA_SPARSE_REGISTERS(s8_registers, "m64n256k64", "s32.s8.s8", 0xddddddddu,
                       "")
WGMMA_SPARSE_SHARED(e4m3_shared, "m64n256k64", "f32.e4m3.e4m3", 0xddddddddu,
                    ", 1, 1")
WGMMA_SPARSE_REGISTERS(e4m3_registers, "m64n256k64", "f32.e4m3.e4m3", 0xddddddddu,
                       ", 1, 1")

}  // namespace

WGMMA_SPARSE_KERNEL(f16_shared)
WGMMA_SPARSE_KERNEL(f16_registers)
WGMMA_SPARSE_KERNEL(bf16_shared)
WGMMA_SPARSE_KERNEL(bf16_registers)
WGMMA_SPARSE_KERNEL(tf32_shared)
WGMMA_SPARSE_KERNEL(tf32_registers)
WGMMA_SPARSE_KERNEL(s8_shared)
WGMMA_SPARSE_KERNEL(s8_registers)
WGMMA_SPARSE_KERNEL(e4m3_shared)
WGMMA_SPARSE_KERNEL(e4m3_registers)
