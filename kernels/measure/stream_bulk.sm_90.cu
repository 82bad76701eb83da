// Streams through device memory by bulk copies into shared memory and out of it, several tiles in
// flight, so that no register waits for a byte.
//
// Dynamic shared memory is `stages` tiles of `tile_bytes`; blocks take tiles in turn. The number of
// vectors of 16 bytes is a multiple of a tile's.

#include "random.cuh"

#define STAGES_MAX 16

__device__ __forceinline__ uint32_t shared_address(const void* at) {
    return (uint32_t)__cvta_generic_to_shared(at);
}

__device__ __forceinline__ void barrier_init(uint64_t* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

// The copy of a tile into shared memory, which ends the phase of its barrier.
__device__ __forceinline__ void fetch(void* to, const void* from, uint32_t bytes,
                                      uint64_t* barrier) {
    uint32_t at = shared_address(barrier);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
                 "[%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(at)
                 : "memory");
}

// The copy of a tile out of shared memory, as a group of its own.
__device__ __forceinline__ void put(void* to, const void* from, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
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

// One thread moves tiles in and out; half of them wait to leave while the others come in.
STREAM(copy_bulk) {
    barriers_init(stages);
    if (threadIdx.x != 0) {
        return;
    }
    uint64_t tiles = vectors * 16 / tile_bytes, grid = gridDim.x;
    const uint8_t* in = (const uint8_t*)a;
    uint32_t ahead = stages / 2;
    for (uint32_t i = 0; i < ahead && blockIdx.x + i * grid < tiles; i++) {
        fetch(held + i * tile_bytes, in + (blockIdx.x + i * grid) * tile_bytes, tile_bytes, full + i);
    }
    uint32_t stage = 0, parity = 0, far = ahead;
    for (uint64_t tile = blockIdx.x; tile < tiles; tile += grid) {
        await(full + stage, parity);
        put((uint8_t*)out + tile * tile_bytes, held + stage * tile_bytes, tile_bytes);
        uint64_t next = tile + ahead * grid;
        if (next < tiles) {
            // The stage to fill left so many stores ago: all but the last few must have been read.
            switch (ahead) {
            case 1: asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); break;
            case 2: asm volatile("cp.async.bulk.wait_group.read 2;" ::: "memory"); break;
            case 4: asm volatile("cp.async.bulk.wait_group.read 4;" ::: "memory"); break;
            default: asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            }
            fetch(held + far * tile_bytes, in + next * tile_bytes, tile_bytes, full + far);
        }
        far = far + 1 == stages ? 0 : far + 1;
        if (++stage == stages) {
            stage = 0, parity ^= 1;
        }
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Threads make a tile in shared memory, and thread 0 sends it off.
STREAM(write_bulk) {
    uint64_t tiles = vectors * 16 / tile_bytes;
    uint32_t stage = 0, each = tile_bytes / 16;
    for (uint64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        if (threadIdx.x == 0) {
            switch (stages) {
            case 2: asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); break;
            case 4: asm volatile("cp.async.bulk.wait_group.read 3;" ::: "memory"); break;
            default: asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            }
        }
        __syncthreads();
        uint4* made = (uint4*)(held + stage * tile_bytes);
        for (uint32_t i = threadIdx.x; i < each; i += blockDim.x) {
            made[i] = contents((uint32_t)(tile * each + i), bits, seed);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) {
            put((uint8_t*)out + tile * tile_bytes, made, tile_bytes);
        }
        stage = stage + 1 == stages ? 0 : stage + 1;
    }
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
