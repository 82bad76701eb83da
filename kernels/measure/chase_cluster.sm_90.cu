// A chase through the shared memory of another block of the cluster.

#include <cstdint>

__device__ __forceinline__ uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

__device__ __forceinline__ uint32_t steps_through(uint32_t at, uint32_t steps) {
    for (uint32_t i = 0; i < steps; i += 16) {
#pragma unroll
        for (int j = 0; j < 16; j++) {
            asm volatile("ld.shared::cluster.u32 %0, [%0];" : "+r"(at)::"memory");
        }
    }
    return at;
}

// Block 0 chases through the words of block `rank`: node i is word i, next[i] the node after it.
// out[0] is the node where it ended, out[1] cycles, out[2] nanoseconds, of `steps` steps after
// `warm` untimed ones, both multiples of 16. Blocks of one thread, one cluster.
extern "C" __global__ void chase_cluster(const uint32_t* next, uint32_t nodes, uint32_t rank,
                                         uint32_t warm, uint32_t steps, uint64_t* out) {
    extern __shared__ uint32_t words[];
    uint32_t here = (uint32_t)__cvta_generic_to_shared(words), there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(rank));
    // The other block must have started before its memory is there.
    cluster_barrier();
    if (blockIdx.x == 0) {
        for (uint32_t i = 0; i < nodes; i++) {
            asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there + 4 * i),
                         "r"(there + 4 * next[i])
                         : "memory");
        }
    }
    cluster_barrier();
    if (blockIdx.x == 0) {
        uint32_t at = steps_through(there, warm);
        uint64_t ns = nanoseconds(), cycles = clock64();
        at = steps_through(at, steps);
        cycles = clock64() - cycles;
        ns = nanoseconds() - ns;
        out[0] = (at - there) / 4, out[1] = cycles, out[2] = ns;
    }
    cluster_barrier();
}
