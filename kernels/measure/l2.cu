// Tiles of a region that fits the L2 cache, read or written again and again.
//
// Block b takes `count` tiles: the first is b * shift, each next one `step` further, around the end
// of the region. A tile is blockDim * 4 vectors of 16 bytes.

#include "access.cuh"
#include "random.cuh"

#define FLIGHT 4

__device__ __forceinline__ uint32_t first_tile(uint32_t tiles, uint32_t shift) {
    return (uint32_t)((uint64_t)blockIdx.x * shift % tiles);
}

// From the L2 cache only.
__device__ __forceinline__ uint4 load_l2(const uint4* at) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

__device__ __forceinline__ uint4 load_once(const uint4* at) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

template <int MORE, bool CG>
__device__ __forceinline__ void read(const uint4* in, uint32_t tiles, uint32_t shift, uint32_t step,
                                     uint32_t count, uint32_t* sum) {
    uint32_t mine = 0, tile = first_tile(tiles, shift);
    for (uint32_t k = 0; k < count; k += MORE) {
        uint4 v[FLIGHT * MORE];
#pragma unroll
        for (int m = 0; m < MORE; m++) {
            const uint4* at = in + (uint64_t)tile * blockDim.x * FLIGHT + threadIdx.x;
#pragma unroll
            for (int i = 0; i < FLIGHT; i++) {
                const uint4* from = at + i * blockDim.x;
                v[m * FLIGHT + i] = CG ? load_l2(from) : load_once(from);
            }
            tile += step;
            tile -= tile >= tiles ? tiles : 0;
        }
#pragma unroll
        for (int i = 0; i < FLIGHT * MORE; i++) {
            mine += total(v[i]);
        }
    }
    add_up(mine, sum);
}

#define READ(name, more, cg)                                                                       \
    extern "C" __global__ void __launch_bounds__(1024)                                             \
        name(const uint4* in, uint4* out, uint32_t tiles, uint32_t shift, uint32_t step,           \
             uint32_t count, uint32_t bits, uint32_t seed, uint32_t* sum) {                        \
        read<more, cg>(in, tiles, shift, step, count, sum);                                        \
    }

READ(l2_read_4_cg, 1, true)
READ(l2_read_8_cg, 2, true)
READ(l2_read_16_cg, 4, true)
READ(l2_read_4_once, 1, false)
READ(l2_read_8_once, 2, false)
READ(l2_read_16_once, 4, false)

extern "C" __global__ void __launch_bounds__(1024)
    l2_write(const uint4* in, uint4* out, uint32_t tiles, uint32_t shift, uint32_t step,
             uint32_t count, uint32_t bits, uint32_t seed, uint32_t* sum) {
    uint32_t tile = first_tile(tiles, shift);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t at = tile * blockDim.x * FLIGHT + threadIdx.x;
#pragma unroll
        for (int i = 0; i < FLIGHT; i++) {
            uint32_t index = at + i * blockDim.x;
            __stcg(out + index, contents(index, bits, seed));
        }
        tile += step;
        tile -= tile >= tiles ? tiles : 0;
    }
}
