// The comparison of the formats that are compared most, and what ends every comparison.

#include "worst.cuh"

COMPARE(f32, F32, 4)
COMPARE(f16, F16, 4)
COMPARE(bf16, Bf16, 4)
COMPARE(f64, F64, 3)

// Threads of a group that ends a comparison: each takes one block's result.
constexpr int FINISHERS = 512;

// Three sums and the largest error, of neighbours in the order of the tree. Where there is no right
// neighbour a zero stands, which changes no bit of a sum of squares.
struct Part {
    double sums[3], max_error;
};

static __device__ __forceinline__ Part add(const Part& one, const Part& other) {
    Part both;
#pragma unroll
    for (int which = 0; which < 3; which++)
        both.sums[which] = __dadd_rn(one.sums[which], other.sums[which]);
    both.max_error = fmax(one.max_error, other.max_error);
    return both;
}

static __device__ __forceinline__ Part nothing() { return Part{{0, 0, 0}, 0}; }

static __device__ __forceinline__ Part add_in_warp(Part part) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        Part other;
#pragma unroll
        for (int which = 0; which < 3; which++)
            other.sums[which] = __shfl_xor_sync(~0u, part.sums[which], step);
        other.max_error = __shfl_xor_sync(~0u, part.max_error, step);
        part = add(part, other);
    }
    return part;
}

// The sum of a group's parts, for every thread of it.
static __device__ __forceinline__ Part add_in_group(Part part) {
    __shared__ Part parts[32];
    int lane = threadIdx.x % 32;
    part = add_in_warp(part);
    __syncthreads();
    if (lane == 0) parts[threadIdx.x / 32] = part;
    __syncthreads();
    return add_in_warp(lane < FINISHERS / 32 ? parts[lane] : nothing());
}

// The sum of the groups' parts, by the group that came last.
static __device__ __forceinline__ Part add_parts(Part* parts, uint64_t count) {
    uint64_t stride = 1;
    // In place, as long as there are more than threads.
    for (; (count + stride - 1) / stride > FINISHERS; stride *= 2) {
        for (uint64_t at = 2 * stride * threadIdx.x; at + stride < count;
             at += 2 * stride * FINISHERS)
            parts[at] = add(parts[at], parts[at + stride]);
        __syncthreads();
    }
    uint64_t at = stride * threadIdx.x;
    return add_in_group(at < count ? parts[at] : nothing());
}

// Adds the blocks' results, and chooses the blocks to look through: each group of its own blocks,
// then the one that came last of what all groups found.
extern "C" __global__ void __launch_bounds__(FINISHERS, 1)
    compare_finish(const BlockResult* results, uint64_t blocks, uint32_t worst, Part* parts,
                   Best* lists, uint64_t* report) {
    __shared__ bool is_last;
    uint64_t block = uint64_t(blockIdx.x) * FINISHERS + threadIdx.x;
    uint64_t of_lists = uint64_t(gridDim.x) * worst;
    Part part = nothing();
    uint64_t keys[2] = {0, 0};
    if (block < blocks) {
        BlockResult result = results[block];
        for (int which = 0; which < 3; which++) part.sums[which] = result.sums[which];
        part.max_error = result.max_error;
        keys[0] = result.max_key;
        keys[1] = uint64_t(__double_as_longlong(result.max_error));
    }
    part = add_in_group(part);
    choose<FINISHERS, 2>(
        worst,
        [&](int measure, const Best& last) {
            Best mine = {keys[measure], block + 1};
            return mine.key != 0 && before(last, mine) ? mine : none();
        },
        [&](int measure, uint32_t at, const Best& best) {
            lists[measure * of_lists + uint64_t(blockIdx.x) * worst + at] = best;
        });
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
        __threadfence();
        is_last = atomicAdd((unsigned long long*)&report[TICKET], 1ull) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    Part all = add_parts(parts, gridDim.x);
    if (threadIdx.x == 0) {
        for (int which = 0; which < 3; which++)
            report[SUMS + which] = uint64_t(__double_as_longlong(all.sums[which]));
        report[MAX_ERROR] = uint64_t(__double_as_longlong(all.max_error));
    }
    choose<FINISHERS, 2>(
        worst,
        [&](int measure, const Best& last) {
            Best first = none();
            for (uint64_t at = threadIdx.x; at < of_lists; at += FINISHERS) {
                Best one = lists[measure * of_lists + at];
                if (one.key != 0 && before(last, one) && before(one, first)) first = one;
            }
            return first;
        },
        [&](int measure, uint32_t at, const Best& best) {
            report[CHOSEN + measure * worst + at] = best.key == 0 ? 0 : best.place;
        });
}
