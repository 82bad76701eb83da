// Rates of mma.sync in the types that sm_80 has, dense and 2:4 sparse.

#include "mma.cuh"

namespace {

MMA_DENSE(f16, "m16n8k16", "f32.f16.f16.f32")
MMA_DENSE(bf16, "m16n8k16", "f32.bf16.bf16.f32")
MMA_DENSE(tf32, "m16n8k8", "f32.tf32.tf32.f32")
MMA_DENSE(s8, "m16n8k32", "s32.s8.s8.s32")
// Of every four elements the second and the fourth are kept; of every two of tf32 the second.
MMA_SPARSE(f16_sparse, "m16n8k32", "f32.f16.f16.f32", 0xddddddddu)
MMA_SPARSE(bf16_sparse, "m16n8k32", "f32.bf16.bf16.f32", 0xddddddddu)
MMA_SPARSE(tf32_sparse, "m16n8k16", "f32.tf32.tf32.f32", 0xeeeeeeeeu)
MMA_SPARSE(s8_sparse, "m16n8k64", "s32.s8.s8.s32", 0xddddddddu)

}  // namespace

MMA_KERNEL(f16, 4, 4)
MMA_KERNEL(bf16, 4, 4)
MMA_KERNEL(tf32, 4, 4)
MMA_KERNEL(s8, 4, 4)
MMA_KERNEL(f16_sparse, 4, 4)
MMA_KERNEL(bf16_sparse, 4, 4)
MMA_KERNEL(tf32_sparse, 4, 4)
MMA_KERNEL(s8_sparse, 4, 4)
