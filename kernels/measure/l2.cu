// Tiles of a region that fits the L2 cache, read or written again and again.
//
// Blocks share passes over the region: block b takes tile b and then every gridDim-th, around the
// end of the region, `count` of them, a multiple of 4. A tile is blockDim * 4 vectors of 16 bytes.
// At any time every tile is one block's, so that no two multiprocessors ask for the same line at
// once: where they do, one answer serves several, and the bytes are not those of the L2 cache.

#include "random.cuh"

#define FLIGHT 4

#define PASS(name)                                                                                 \
    extern "C" __global__ void __launch_bounds__(1024)                                             \
        name(uint4* region, uint32_t tiles, uint32_t count, uint32_t bits, uint32_t seed,          \
             uint32_t* sum)

// Past the L1 cache.
__device__ __forceinline__ uint4 load_l2(const uint4* at) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

// The block's next tile, after `tile`.
__device__ __forceinline__ uint32_t next_tile(uint32_t tile, uint32_t step, uint32_t tiles) {
    tile += step;
    return tile >= tiles ? tile - tiles : tile;
}

template <int TILES>
__device__ __forceinline__ void read(const uint4* region, uint32_t tiles, uint32_t count,
                                     uint32_t* sum) {
    uint32_t mine = 0, tile = blockIdx.x % tiles, step = gridDim.x % tiles;
    for (uint32_t k = 0; k < count; k += TILES) {
        uint4 v[FLIGHT * TILES];
#pragma unroll
        for (int m = 0; m < TILES; m++) {
            const uint4* at = region + (uint64_t)tile * blockDim.x * FLIGHT + threadIdx.x;
#pragma unroll
            for (int i = 0; i < FLIGHT; i++) {
                v[m * FLIGHT + i] = load_l2(at + i * blockDim.x);
            }
            tile = next_tile(tile, step, tiles);
        }
#pragma unroll
        for (int i = 0; i < FLIGHT * TILES; i++) {
            mine += total(v[i]);
        }
    }
    add_up(mine, sum);
}

PASS(l2_read_4) { read<1>(region, tiles, count, sum); }
PASS(l2_read_8) { read<2>(region, tiles, count, sum); }
PASS(l2_read_16) { read<4>(region, tiles, count, sum); }

PASS(l2_write) {
    uint32_t tile = blockIdx.x % tiles, step = gridDim.x % tiles;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t at = tile * blockDim.x * FLIGHT + threadIdx.x;
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            uint32_t index = at + i * blockDim.x;
            __stcg(region + index, contents(index, bits, seed));
        }
        tile = next_tile(tile, step, tiles);
    }
}
