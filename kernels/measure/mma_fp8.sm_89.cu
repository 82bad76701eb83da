// Rates of mma.sync in e4m3, which sm_89 and newer have.

#include "mma.cuh"

namespace {

MMA_DENSE(e4m3, "m16n8k32", "f32.e4m3.e4m3.f32")
MMA_SPARSE(e4m3_sparse, "m16n8k64", "f32.e4m3.e4m3.f32", 0xddddddddu)

}  // namespace

MMA_KERNEL(e4m3, 2, 4)
MMA_KERNEL(e4m3_sparse, 2, 2)
