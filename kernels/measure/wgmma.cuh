// Rates of wgmma with 256 columns, A and B in shared memory or A in registers. Every warpgroup of
// a block multiplies the same matrices: two stages of A0, A1 and B. A round starts its
// accumulators at zero, adds A0*B and A1*B of both stages `pairs` times, and takes every
// accumulator into a checksum; the last round's are written out in full. The inputs are integers
// so chosen that every sum on the way is exact: what is read back must be
// pairs * (sum over stages of (A0 + A1) * B).

#pragma once

#include <cstdint>

#include "span.cuh"

// Outside the unnamed namespace, whose names in PTX change with every compile.
extern __shared__ __align__(1024) uint4 image_copy[];

namespace {

constexpr int STAGES = 2;
constexpr int ACCUMULATORS = 128;

// The matrices in shared memory: descriptors of the first stage of A0 and of B as if the image lay
// at address 0, and the bytes from there to the next stage and from A0 to A1.
struct Places {
    uint64_t a, b;
    uint32_t a_stage, a_half, b_stage;
};

__device__ uint64_t moved(uint64_t descriptor, uint32_t bytes) {
    return descriptor + (bytes >> 4);
}

__device__ void copy_image(uint4* to, const uint4* from, uint32_t bytes) {
    for (uint32_t i = threadIdx.x; i < bytes / 16; i += blockDim.x) to[i] = from[i];
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
}

// The two ways to hand over A: a descriptor, or four registers.
struct Shared {
    uint64_t a[2][STAGES];
    __device__ void load(const uint32_t*, const Places& places, uint32_t base) {
        for (int half = 0; half < 2; ++half)
            for (int s = 0; s < STAGES; ++s)
                a[half][s] = moved(places.a, base + half * places.a_half + s * places.a_stage);
    }
};

struct Registers {
    uint32_t a[2][STAGES][4];
    // `fragments` holds registers lane by lane: for each half and stage those of four warps.
    __device__ void load(const uint32_t* fragments, const Places&, uint32_t) {
        fragments += threadIdx.x / 32 % 4 * 128 + threadIdx.x % 32;
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int s = 0; s < STAGES; ++s, fragments += 512)
#pragma unroll
                for (int r = 0; r < 4; ++r) a[half][s][r] = fragments[32 * r];
    }
};

// `sums` gets one checksum for each thread of the grid, `accumulators` all its registers.
template <typename Kind>
__device__ void products(uint32_t* accumulators, uint32_t* sums, uint64_t* spans,
                         const uint4* image, uint32_t image_bytes, const uint32_t* fragments,
                         const Places& places, uint32_t rounds, uint32_t pairs) {
    copy_image(image_copy, image, image_bytes);
    const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(image_copy));
    typename Kind::Source source;
    source.load(fragments, places, base);
    uint64_t b[STAGES];
#pragma unroll
    for (int s = 0; s < STAGES; ++s) b[s] = moved(places.b, base + s * places.b_stage);
    uint32_t d[ACCUMULATORS];
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; ++i) d[i] = 0;
    uint32_t sum = 0;
    assay::span_begin(spans);
#pragma unroll 1
    for (uint32_t round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; ++i) d[i] = 0;
#pragma unroll 1
        for (uint32_t pair = 0; pair < pairs; ++pair) {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int s = 0; s < STAGES; ++s) Kind::multiply(d, source.a[half][s], b[s]);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
        for (int i = 0; i < ACCUMULATORS; ++i) sum = sum * 31 + d[i];
    }
    assay::span_end(spans);
    const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    sums[thread] = sum;
#pragma unroll
    for (int i = 0; i < ACCUMULATORS; ++i) accumulators[thread * ACCUMULATORS + i] = d[i];
}

}  // namespace

#define FOUR(d, i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define SIXTEEN(d, i) FOUR(d, i), FOUR(d, i + 4), FOUR(d, i + 8), FOUR(d, i + 12)
#define ALL(d)                                                                                 \
    SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48), SIXTEEN(d, 64),             \
        SIXTEEN(d, 80), SIXTEEN(d, 96), SIXTEEN(d, 112)
#define NAMES \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// `shape` such as "m64n256k16", `types` such as "f32.bf16.bf16", `tail` what follows scale-d.
#define WGMMA_SHARED(kind, shape, types, tail)                                                 \
    struct kind {                                                                              \
        using Source = Shared;                                                                 \
        __device__ static void multiply(uint32_t* d, uint64_t a, uint64_t b) {                 \
            asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0;"                                 \
                         "wgmma.mma_async.sync.aligned." shape "." types                       \
                         " {" NAMES "}, %128, %129, p" tail ";}"                               \
                         : ALL(d)                                                              \
                         : "l"(a), "l"(b));                                                    \
        }                                                                                      \
    };

#define WGMMA_REGISTERS(kind, shape, types, tail)                                              \
    struct kind {                                                                              \
        using Source = Registers;                                                              \
        __device__ static void multiply(uint32_t* d, const uint32_t* a, uint64_t b) {          \
            asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0;"                                 \
                         "wgmma.mma_async.sync.aligned." shape "." types                       \
                         " {" NAMES "}, {%128, %129, %130, %131}, %132, p" tail ";}"           \
                         : ALL(d)                                                              \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                \
        }                                                                                      \
    };

// A keeps half of its elements, the same ones everywhere: `kept` is the metadata of every lane.
#define WGMMA_SPARSE_SHARED(kind, shape, types, kept, tail)                                    \
    struct kind {                                                                              \
        using Source = Shared;                                                                 \
        __device__ static void multiply(uint32_t* d, uint64_t a, uint64_t b) {                 \
            asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0;"                                 \
                         "wgmma.mma_async.sp.sync.aligned." shape "." types                    \
                         " {" NAMES "}, %128, %129, %130, 0, p" tail ";}"                      \
                         : ALL(d)                                                              \
                         : "l"(a), "l"(b), "r"(kept));                                         \
        }                                                                                      \
    };

#define WGMMA_SPARSE_REGISTERS(kind, shape, types, kept, tail)                                 \
    struct kind {                                                                              \
        using Source = Registers;                                                              \
        __device__ static void multiply(uint32_t* d, const uint32_t* a, uint64_t b) {          \
            asm volatile("{.reg .pred p; setp.eq.u32 p, 0, 0;"                                 \
                         "wgmma.mma_async.sp.sync.aligned." shape "." types                    \
                         " {" NAMES "}, {%128, %129, %130, %131}, %132, %133, 0, p" tail ";}"  \
                         : ALL(d)                                                              \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(kept));     \
        }                                                                                      \
    };

#define WGMMA_NAMED(name, kind)                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                          \
        name(uint32_t* accumulators, uint32_t* sums, uint64_t* spans, const uint4* image,      \
             uint32_t image_bytes, const uint32_t* fragments, Places places, uint32_t rounds,  \
             uint32_t pairs) {                                                                 \
        products<kind>(accumulators, sums, spans, image, image_bytes, fragments, places,       \
                       rounds, pairs);                                                         \
    }
#define WGMMA_KERNEL(kind) WGMMA_NAMED(wgmma_##kind, kind)
#define WGMMA_SPARSE_KERNEL(kind) WGMMA_NAMED(wgmma_sparse_##kind, kind)
