// Chases: every load gives the address of the next, so that a step takes as long as a load.

#include <cstdint>

__device__ __forceinline__ uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

// Lays a cycle out in memory: the word at base + place[i] holds the address base + place[next[i]],
// for i below `nodes`.
extern "C" __global__ void lay_chase(uint8_t* base, const uint64_t* place, const uint32_t* next,
                                     uint32_t nodes) {
    uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < nodes; i += stride) {
        *(uint64_t*)(base + place[i]) = (uint64_t)(base + place[next[i]]);
    }
}

// The start of a timed stretch is pinned to a value, and its end too, so that no load moves out.
#define CHASE(name, word, constraint, instruction)                                                 \
    __device__ __forceinline__ word name##_step(word at) {                                         \
        word next;                                                                                 \
        asm volatile(instruction " %0, [%1];" : "=" constraint(next) : constraint(at) : "memory"); \
        return next;                                                                               \
    }                                                                                              \
    __device__ __forceinline__ word name##_steps(word at, uint32_t steps) {                        \
        for (uint32_t i = 0; i < steps; i += 16) {                                                 \
            _Pragma("unroll") for (int j = 0; j < 16; j++) at = name##_step(at);                   \
        }                                                                                          \
        return at;                                                                                 \
    }

CHASE(l1, uint64_t, "l", "ld.global.ca.u64")
CHASE(l2, uint64_t, "l", "ld.global.cg.u64")
CHASE(shared, uint32_t, "r", "ld.shared.u32")

// out[0] is where the chase ended, out[1] cycles, out[2] nanoseconds, of `steps` steps after `warm`
// untimed ones. Both are multiples of 16. One thread.
#define TIMED(name)                                                                                \
    uint64_t ns = nanoseconds(), cycles = clock64();                                               \
    at = name##_steps(at, steps);                                                                  \
    cycles = clock64() - cycles;                                                                   \
    ns = nanoseconds() - ns;                                                                       \
    out[0] = at, out[1] = cycles, out[2] = ns;

extern "C" __global__ void chase_l1(uint64_t at, uint32_t warm, uint32_t steps, uint64_t* out) {
    at = l1_steps(at, warm);
    TIMED(l1)
}

extern "C" __global__ void chase_l2(uint64_t at, uint32_t warm, uint32_t steps, uint64_t* out) {
    at = l2_steps(at, warm);
    TIMED(l2)
}

// The same in shared memory: node i is the word i of the block's, next[i] the node after it.
// out[0] is the node where the chase ended.
extern "C" __global__ void chase_shared(const uint32_t* next, uint32_t nodes, uint32_t warm,
                                        uint32_t steps, uint64_t* out) {
    extern __shared__ uint32_t words[];
    uint32_t base = (uint32_t)__cvta_generic_to_shared(words);
    for (uint32_t i = 0; i < nodes; i++) {
        words[i] = base + 4 * next[i];
    }
    __syncthreads();
    uint32_t at = shared_steps(base, warm);
    TIMED(shared)
    out[0] = (at - base) / 4;
}

// Each step of a chase by itself: cycles[i] is what step i took, and what reading the clock takes.
// One thread.
extern "C" __global__ void chase_each(uint64_t at, uint32_t warm, uint32_t steps, uint64_t* out,
                                      uint32_t* cycles) {
    __shared__ volatile uint64_t here;
    at = l2_steps(at, warm);
    for (uint32_t i = 0; i < steps; i++) {
        uint32_t start = (uint32_t)clock64();
        at = l2_step(at);
        // Instructions issue in order: once this store has the address, the clock is read.
        here = at;
        cycles[i] = (uint32_t)clock64() - start;
    }
    out[0] = at, out[1] = 0, out[2] = 0;
}
