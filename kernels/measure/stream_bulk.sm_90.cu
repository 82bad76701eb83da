// Reads device memory by bulk copies into shared memory, several tiles in flight, so that no
// register waits for a byte. (Copies and writes by bulk copies were tried on an H200 and are 5 % to
// 7 % slower than plain loads and stores.)
//
// Dynamic shared memory is `stages` tiles of `tile_bytes`; blocks take tiles in turn. The number of
// vectors of 16 bytes is a multiple of a tile's.

#include "random.cuh"

#define STAGES_MAX 16

__device__ __forceinline__ uint32_t shared_address(const void* at) {
    return (uint32_t)__cvta_generic_to_shared(at);
}

__device__ __forceinline__ void barrier_init(uint64_t* barrier) {
    uint32_t at = shared_address(barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
}

// The copy of a tile into shared memory, which ends the phase of its barrier.
__device__ __forceinline__ void fetch(void* to, const void* from, uint32_t bytes,
                                      uint64_t* barrier) {
    uint32_t at = shared_address(barrier);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(at)
                 : "memory");
}

__device__ __forceinline__ void await(uint64_t* barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done) {
        asm volatile("{ .reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    }
}

#define STREAM(name)                                                                               \
    extern "C" __global__ void __launch_bounds__(1024) name(                                       \
        const uint4* __restrict__ a, const uint4* __restrict__ b, uint4* __restrict__ out,         \
        uint64_t vectors, uint32_t bits, uint32_t seed, uint32_t* sum, uint32_t tile_bytes,        \
        uint32_t stages)

extern __shared__ __align__(128) uint8_t held[];
__shared__ uint64_t full[STAGES_MAX];

__device__ __forceinline__ void barriers_init(uint32_t stages) {
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < stages; i++) {
            barrier_init(full + i);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}

// Every thread adds what it finds in the tiles that thread 0 has fetched.
STREAM(read_bulk) {
    barriers_init(stages);
    uint64_t tiles = vectors * 16 / tile_bytes;
    const uint8_t* in = (const uint8_t*)a;
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < stages && blockIdx.x + (uint64_t)i * gridDim.x < tiles; i++) {
            uint64_t tile = blockIdx.x + (uint64_t)i * gridDim.x;
            fetch(held + i * tile_bytes, in + tile * tile_bytes, tile_bytes, full + i);
        }
    }
    uint32_t mine = 0, stage = 0, parity = 0;
    for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        await(full + stage, parity);
        const uint4* found = (const uint4*)(held + stage * tile_bytes);
        for (uint32_t i = threadIdx.x; i < tile_bytes / 16; i += blockDim.x) {
            mine += total(found[i]);
        }
        __syncthreads();
        uint64_t next = tile + (uint64_t)stages * gridDim.x;
        if (threadIdx.x == 0 && next < tiles) {
            fetch(held + stage * tile_bytes, in + next * tile_bytes, tile_bytes, full + stage);
        }
        if (++stage == stages) {
            stage = 0, parity ^= 1;
        }
    }
    add_up(mine, sum);
}
