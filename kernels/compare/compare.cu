// The comparison of the formats that are compared most, and what ends every comparison.

#include "worst.cuh"

COMPARE(f32, F32, 5)
COMPARE(f16, F16, 5)
COMPARE(bf16, Bf16, 5)
COMPARE(f64, F64, 4)

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
#pragma unroll 1
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

// The sum of a group's parts, for every thread of it. Not static: the PTX would name its shared
// variable by a number that changes with every compile.
__device__ __forceinline__ Part add_in_group(Part part) {
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

// The first blocks of a part of the results, or of lists, by distance or by error.
using Block = Best<uint64_t>;
constexpr int SIDE = FINISHERS / 2;

// Adds the blocks' results, and chooses the blocks to look through: each group of its own blocks,
// then the one that came last of what all groups found. In either case one half of the group's
// warps lists the first by distance, the other by error. The last group also sends the counts and
// leaves zeros for the next comparison.
extern "C" __global__ void __launch_bounds__(FINISHERS, 1)
    compare_finish(const BlockResult* results, uint64_t blocks, uint32_t worst, Part* parts,
                   Block* lists, uint64_t* totals, uint64_t* chosen, uint64_t* answer) {
    __shared__ bool is_last;
    __shared__ Block room[2][2][SIDE / 32];
    uint64_t from = uint64_t(blockIdx.x) * FINISHERS, block = from + threadIdx.x;
    uint64_t of_lists = uint64_t(gridDim.x) * worst;
    int measure = threadIdx.x / SIDE, at = threadIdx.x % SIDE;
    Part part = nothing();
    if (block < blocks) {
        BlockResult result = results[block];
        for (int which = 0; which < 3; which++) part.sums[which] = result.sums[which];
        part.max_error = result.max_error;
    }
    uint64_t keys[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint64_t one = from + half * SIDE + at;
        keys[half] = one >= blocks  ? 0
                     : measure == 0 ? results[one].max_key
                                    : bits_of_magnitude(results[one].max_error);
    }
    Block mine = choose<SIDE / 32, uint64_t>(room[measure], worst, [&](Block last) {
        Block first = Block::none();
#pragma unroll
        for (int half = 0; half < 2; half++)
            first.take({keys[half], uint32_t(from + half * SIDE + at + 1)}, last);
        return first;
    });
    Block* list = lists + measure * of_lists;
    if (at < worst) {
        list[uint64_t(blockIdx.x) * worst + at] = mine;
        __threadfence();
    }
    part = add_in_group(part);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
        __threadfence();
        is_last = add_one(totals, TICKET) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    mine = choose<SIDE / 32, uint64_t>(room[measure], worst, [&](Block last) {
        Block first = Block::none();
        for (uint64_t one = at; one < of_lists; one += SIDE) first.take(list[one], last);
        return first;
    });
    if (at < worst) chosen[measure * worst + at] = mine.key == 0 ? 0 : mine.place;
    for (int word = threadIdx.x; word < SUMS; word += FINISHERS) {
        answer[word] = totals[word];
        totals[word] = 0;
    }
    Part all = add_parts(parts, gridDim.x);
    if (threadIdx.x != 0) return;
    for (int which = 0; which < 3; which++)
        answer[SUMS + which] = bits_of_magnitude(all.sums[which]);
    answer[MAX_ERROR] = bits_of_magnitude(all.max_error);
}
