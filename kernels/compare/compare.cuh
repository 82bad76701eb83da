// Compares two arrays in one reading of both: counts, and sums in the tree of the CPU's path.
//
// A group of 128 threads takes a block of 16384 elements as 32 rows of 512. Thread t holds the
// lanes 4t to 4t + 3 of every row and adds down its lanes; the lanes are then added as neighbours,
// pairs of neighbours and so on. No product is fused with a sum: every operation rounds as on the
// CPU, so that the sums have the same bits too.
//
// Errors of floats of up to 32 bits are differences rounded once to fp32, whose squares fp64 holds
// exactly. Four elements are counted together where all of them are finite and their distance is
// that of their bits and short; others are counted one by one. Whether they are within the
// tolerance is first asked of one comparison in fp32 with what lies surely below it, then of one
// with what lies surely above.
//
// A histogram of distances lies in shared memory, two counters of 16 bits to a word, each of them
// of one thread alone. Half octaves of errors are counted in one table.
//
// Wide words are copied into shared memory some rows ahead, each thread its own, without registers
// and barriers: a multiprocessor must have about 27 kB on their way to read as fast as an H200 can.

#pragma once

#include "add_if.cuh"
#include "formats.cuh"
#include "rows.cuh"

constexpr uint64_t BLOCK = uint64_t(LANES) * ROWS;
constexpr int HALVES = 256, FIRST_HALF = 2 * (1023 - 100);
// A thread counts 128 elements of a block: after so many blocks 16 bits may be full.
constexpr int BLOCKS_BEFORE_FLUSH = 65535 / (ROWS * PER_THREAD);
constexpr uint64_t NONE = ~uint64_t(0);

// The places of the totals' words, and of the report's in front of the worst elements; the host has
// the same list. All begin as zeros, so that the first indices are kept as their complements.
enum Place {
    CLASSES = 0,
    HISTOGRAM = 16,
    HALF = HISTOGRAM + 65,
    ABOVE = HALF + HALVES,
    ZERO_SIGNS,
    ZEROED,
    OUTSIDE,
    WOULD_FAIL,
    STEPS_LOW,
    STEPS_HIGH,
    ABOVE_LOW,
    ABOVE_HIGH,
    MAX_STEPS,
    NOT_FIRST_DIFFERENT,
    NOT_FIRST_OUTSIDE,
    // Blocks that were begun beyond the first of each group, and groups that have finished their
    // part of the last sums.
    BEGUN,
    TICKET,
    // Three sums and the largest error, as bits.
    SUMS,
    MAX_ERROR = SUMS + 3,
};

struct BlockResult {
    double sums[3];
    uint64_t max_key;
    double max_error;
};

struct Rules {
    double atol, rtol, zero_atol;
    uint64_t max_steps;
    uint32_t equal_nan;
    // Just below and above the tolerance, for a first look; and the least magnitude that a zero
    // cannot stand for.
    float low_atol, low_rtol, high_atol, high_rtol, no_zero;
    // Whether nothing but equality is allowed: then whatever lies apart is outside, and the host
    // knows how many do from the histogram.
    uint32_t exact;
};

static __device__ __forceinline__ bool is_finite(float value) {
    return fabsf(value) <= 0x1.fffffep127f;
}
static __device__ __forceinline__ bool is_finite(double value) {
    return fabs(value) <= 0x1.fffffffffffffp1023;
}

// The bits of a magnitude, which are in the order of the magnitudes.
static __device__ __forceinline__ uint64_t bits_of_magnitude(float value) {
    return __float_as_uint(fabsf(value));
}
static __device__ __forceinline__ uint64_t bits_of_magnitude(double value) {
    return uint64_t(__double_as_longlong(fabs(value)));
}

// The place of an error in a group's table, in bytes: of fp32 its exponent and first bit, of fp64
// the same counted from the first bin of the result.
constexpr int TABLE = 512;
static __device__ __forceinline__ uint32_t table_place(float error) {
    return (__float_as_uint(error) & 0x7fc00000) >> 20;
}
static __device__ __forceinline__ uint32_t table_place(double error) {
    int half = int((uint32_t(__double2hiint(error)) & 0x7fffffff) >> 19) - FIRST_HALF;
    return 4 * min(max(half, 0), HALVES - 1);
}
// The bin of the result that a place of the table counts for.
static __device__ __forceinline__ int bin_of(int place, float) {
    return min(max(place + 2 * (1023 - 127) - FIRST_HALF, 0), HALVES - 1);
}
static __device__ __forceinline__ int bin_of(int place, double) { return min(place, HALVES - 1); }

// The place of a distance's highest bit, -1 for none.
static __device__ __forceinline__ int highest_bit(uint32_t steps) {
    int highest;
    asm("bfind.u32 %0, %1;" : "=r"(highest) : "r"(steps));
    return highest;
}
static __device__ __forceinline__ int highest_bit(uint64_t steps) {
    int highest;
    asm("bfind.u64 %0, %1;" : "=r"(highest) : "l"(steps));
    return highest;
}

// 0 finite, 1 NaN, 2 +Inf, 3 -Inf.
static __device__ __forceinline__ int class_of(double value) {
    if (value != value) return 1;
    if (isinf(value)) return value > 0 ? 2 : 3;
    return 0;
}

// What a group shares.
template <typename Format> struct Shared {
    uint32_t halves[TABLE];
    // Thread t and thread t + 64 have the halves of one word.
    uint32_t histogram[Format::BINS][GROUP / 2];
    typename Rows<Format>::Room rows;
    uint32_t classes[16];
    double sums[3][4];
    uint64_t max_key[4];
    double max_error[4];
};

// What a thread counts by itself until the end.
template <typename Steps> struct Counters {
    uint32_t above = 0, zero_signs = 0, zeroed = 0, outside = 0, would_fail = 0;
    // Which first places four elements at once have not found yet: bit 0 of those that differ, bit
    // 1 of those outside where nothing is allowed.
    uint32_t sought = 1;
    uint64_t steps_low = 0, steps_high = 0, above_low = 0, above_high = 0;
    uint64_t first_different = NONE, first_outside = NONE;
    Steps max_steps = 0;
};

static __device__ __forceinline__ void first(uint64_t& mine, uint64_t index) {
    mine = index < mine ? index : mine;
}

template <typename Format> struct Scan {
    using Word = typename Format::Word;
    using Number = typename Format::Number;
    using Steps = typename Format::Steps;
    using Float = typename Format::Float;
    const Format& format;
    const Rules& rules;
    Shared<Format>& shared;
    Counters<Steps> counters;
    // One in this thread's half of a word, and where its counters begin: distances of one bit.
    uint32_t one_here, column, halves;
    // The largest distance that the tolerance forgives.
    Steps forgiven;
    // Of the block at hand.
    uint64_t begin;
    double errors[PER_THREAD], references[PER_THREAD], zeroed[PER_THREAD];
    Float max_error;
    Steps max_steps, near_steps, near_above;
    bool other_class;
    // Whether four elements at once have found the first outside.
    bool outside_found = false;

    __device__ __forceinline__ Scan(const Format& format, const Rules& rules,
                                    Shared<Format>& shared)
        : format(format), rules(rules), shared(shared),
          one_here(threadIdx.x < GROUP / 2 ? 1 : 0x10000),
          column(shared_address(&shared.histogram[1][threadIdx.x % (GROUP / 2)])),
          halves(shared_address(shared.halves)),
          forgiven(Steps(min(rules.max_steps, uint64_t(Steps(~Steps(0)))))) {
        counters.sought = rules.exact ? 3 : 1;
    }

    __device__ __forceinline__ void begin_block(uint64_t block) {
        begin = block * BLOCK + PER_THREAD * threadIdx.x;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++)
            errors[lane] = references[lane] = zeroed[lane] = 0;
        max_error = 0;
        max_steps = near_steps = near_above = 0;
        other_class = false;
    }

    __device__ __forceinline__ void count(Steps steps, Float error) {
        count_shared(column + 4 * (GROUP / 2) * highest_bit(steps), one_here);
        count_shared(halves + table_place(error), 1);
    }

    __device__ __forceinline__ double allowed(double r) {
        return r == 0 ? rules.zero_atol : __dadd_rn(rules.atol, __dmul_rn(rules.rtol, fabs(r)));
    }

    // Whether an error is surely within the tolerance, or surely beyond, and whether a zero would
    // be.
    __device__ __forceinline__ bool within(float r, float magnitude) {
        return magnitude <= __fmaf_rd(rules.low_rtol, fabsf(r), rules.low_atol);
    }
    __device__ __forceinline__ bool within(double r, double magnitude) {
        return magnitude <= allowed(r);
    }
    __device__ __forceinline__ bool beyond(float r, float magnitude) {
        return magnitude > __fmaf_ru(rules.high_rtol, fabsf(r), rules.high_atol);
    }
    __device__ __forceinline__ bool beyond(double r, double magnitude) {
        return magnitude > allowed(r);
    }
    __device__ __forceinline__ bool zero_fails(float r) { return fabsf(r) >= rules.no_zero; }
    __device__ __forceinline__ bool zero_fails(double r) { return fabs(r) > allowed(r); }

    // Four elements of a row, where nothing is special about them; false, and nothing counted,
    // otherwise.
    __device__ __forceinline__ bool four(const Word* one, const Word* other, uint32_t row) {
        Float reference[PER_THREAD], error[PER_THREAD];
        Steps steps[PER_THREAD], far = 0;
        Word changes = 0;
        bool plain = true, sure = true;
        Zeros<Float> zeros;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) {
            Number ours = format.number(one[lane]), theirs = format.number(other[lane]);
            Float r = format.value(ours), c = format.value(theirs);
            steps[lane] = format.near(ours, theirs);
            error[lane] = format.error(r, c, steps[lane]);
            reference[lane] = r;
            plain &= is_finite(error[lane]);
            zeros.look(c, one[lane] != other[lane]);
            sure &= within(r, fabs(error[lane]));
            far = steps[lane] > far ? steps[lane] : far;
            changes |= one[lane] ^ other[lane];
        }
        if (!plain || far >= Format::FAR || format.crosses(changes)) return false;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) {
            add(lane, error[lane], reference[lane]);
            count(steps[lane], error[lane]);
            near_steps += steps[lane];
            add_if_positive(error[lane], counters.above, near_above, steps[lane]);
            add_if(zero_fails(reference[lane]), counters.would_fail);
            max_error = larger(max_error, error[lane]);
        }
        max_steps = far > max_steps ? far : max_steps;
        if (changes != 0 && counters.sought != 0) seek(one, other, steps, row);
        if (zeros.any()) {
#pragma unroll
            for (int lane = 0; lane < PER_THREAD; lane++)
                if (format.value(format.number(other[lane])) == 0 && one[lane] != other[lane])
                    zero(one[lane], other[lane], reference[lane], zeroed[lane]);
        }
        if (!sure && !rules.exact) judge(reference, error, steps, row);
        return true;
    }

    // The first of four elements that differs, and that is outside where nothing is allowed.
    __device__ __forceinline__ void seek(const Word* one, const Word* other, const Steps* steps,
                                         uint32_t row) {
        uint32_t differ = 0, apart = 0;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) {
            differ |= uint32_t(one[lane] != other[lane]) << lane;
            apart |= uint32_t(steps[lane] != 0) << lane;
        }
        uint64_t index = begin + row * LANES;
        if (counters.sought & 1) first(counters.first_different, index + __ffs(differ) - 1);
        if ((counters.sought & 2) && apart != 0) {
            first(counters.first_outside, index + __ffs(apart) - 1);
            counters.sought &= ~2u;
        }
        counters.sought &= ~1u;
    }

    // Which of four elements are outside the tolerance.
    __device__ __forceinline__ void judge(const Float* reference, const Float* error,
                                          const Steps* steps, uint32_t row) {
        uint32_t before = counters.outside;
        bool sure = true;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) {
            Float r = reference[lane], magnitude = fabs(error[lane]);
            bool out = beyond(r, magnitude);
            sure &= out | within(r, magnitude);
            add_if(out & (steps[lane] > forgiven), counters.outside);
        }
        if (sure && (counters.outside == before || outside_found)) return;
        uint32_t outside = 0;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) {
            bool out = double(fabs(error[lane])) > allowed(reference[lane]);
            outside |= uint32_t(out & (steps[lane] > forgiven)) << lane;
        }
        counters.outside = before + __popc(outside);
        if (outside == 0 || outside_found) return;
        first(counters.first_outside, begin + row * LANES + __ffs(outside) - 1);
        outside_found = true;
    }

    __device__ __forceinline__ void add(int lane, float error, float r) {
        // The products are exact: fused or not, the sum is rounded once.
        errors[lane] = __fma_rn(double(error), double(error), errors[lane]);
        references[lane] = __fma_rn(double(r), double(r), references[lane]);
    }
    __device__ __forceinline__ void add(int lane, double error, double r) {
        errors[lane] = __dadd_rn(errors[lane], __dmul_rn(error, error));
        references[lane] = __dadd_rn(references[lane], __dmul_rn(r, r));
    }

    // Any elements, one by one, as far as there are any.
    __device__ __forceinline__ void each(const Arrays& arrays, uint64_t index) {
#pragma unroll 1
        for (int lane = 0; lane < PER_THREAD && index + lane < arrays.elements; lane++) {
            Word one = format.load(arrays.reference, index + lane);
            Word other = format.load(arrays.candidate, index + lane);
            Float r = format.value(format.number(one)), c = format.value(format.number(other));
            if (is_finite(r) && is_finite(c))
                any(one, other, lane, index + lane);
            else
                set_apart(r, c, index + lane);
        }
    }

    __device__ __forceinline__ void any(Word one, Word other, int lane, uint64_t index) {
        Number ours = format.number(one), theirs = format.number(other);
        Float reference = format.value(ours), candidate = format.value(theirs);
        Steps steps = format.distance(ours, theirs);
        Float error = format.error(reference, candidate, steps);
        double r = reference, wide = error;
        count(steps, error);
        max_steps = steps > max_steps ? steps : max_steps;
        counters.steps_low += uint32_t(steps);
        counters.steps_high += uint64_t(steps) >> 32;
        if (error > 0) {
            counters.above++;
            counters.above_low += uint32_t(steps);
            counters.above_high += uint64_t(steps) >> 32;
        }
        counters.would_fail += fabs(r) > allowed(r);
        max_error = fabs(wide) > max_error ? Float(fabs(wide)) : max_error;
        add_at(errors, lane, __dmul_rn(wide, wide));
        add_at(references, lane, __dmul_rn(r, r));
        if (fabs(wide) > allowed(r) && steps > forgiven) {
            counters.outside++;
            first(counters.first_outside, index);
        }
        if (steps != 0) first(counters.first_different, index);
        if (candidate != 0) return;
        double none = 0;
        zero(one, other, r, none);
        add_at(zeroed, lane, none);
        if (one != other) first(counters.first_different, index);
    }

    // A candidate of zero.
    __device__ __forceinline__ void zero(Word one, Word other, double r, double& energy) {
        counters.zeroed += r != 0;
        counters.zero_signs += r == 0 && one != other;
        energy = __dadd_rn(energy, __dmul_rn(r, r));
    }

    __device__ __forceinline__ void set_apart(Float r, Float c, uint64_t index) {
        int of_r = class_of(r), of_c = class_of(c);
        atomicAdd(&shared.classes[4 * of_r + of_c], 1u);
        bool nan = of_r == 1 && of_c == 1;
        if (of_r != of_c || (nan && !rules.equal_nan)) {
            first(counters.first_outside, index);
            other_class = true;
        }
        if (of_r != of_c || nan) first(counters.first_different, index);
    }

    // Adds to a lane that is known only now, without an array in memory.
    static __device__ __forceinline__ void add_at(double* lanes, int at, double value) {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++)
            if (lane == at) lanes[lane] = __dadd_rn(lanes[lane], value);
    }

    // Gives the word of the group's that says which block is next.
    __device__ __forceinline__ uint64_t end_block(BlockResult* result, const uint64_t& next) {
        int thread = threadIdx.x, warp = thread / 32;
        double sums[3] = {tree(errors), tree(references), tree(zeroed)};
        uint64_t key = other_class ? NONE : uint64_t(max_steps);
        if (max_steps > counters.max_steps) counters.max_steps = max_steps;
        counters.steps_low += uint32_t(near_steps);
        counters.steps_high += uint64_t(near_steps) >> 32;
        counters.above_low += uint32_t(near_above);
        counters.above_high += uint64_t(near_above) >> 32;
        double largest = max_error;
#pragma unroll 1
        for (int step = 16; step > 0; step /= 2) {
            uint64_t their_key = __shfl_xor_sync(~0u, key, step);
            double theirs = __shfl_xor_sync(~0u, largest, step);
            key = their_key > key ? their_key : key;
            largest = theirs > largest ? theirs : largest;
        }
        if (thread % 32 == 0) {
            for (int which = 0; which < 3; which++) shared.sums[which][warp] = sums[which];
            shared.max_key[warp] = key;
            shared.max_error[warp] = largest;
        }
        __syncthreads();
        uint64_t next_block = next;
        if (thread < 3) {
            const double* all = shared.sums[thread];
            result->sums[thread] = __dadd_rn(__dadd_rn(all[0], all[1]), __dadd_rn(all[2], all[3]));
        } else if (thread == 3) {
            const uint64_t* all = shared.max_key;
            result->max_key = max(max(all[0], all[1]), max(all[2], all[3]));
        } else if (thread == 4) {
            const double* all = shared.max_error;
            result->max_error = fmax(fmax(all[0], all[1]), fmax(all[2], all[3]));
        }
        __syncthreads();
        return next_block;
    }

    static __device__ __forceinline__ double tree(const double* lanes) {
        double sum = __dadd_rn(__dadd_rn(lanes[0], lanes[1]), __dadd_rn(lanes[2], lanes[3]));
#pragma unroll 1
        for (int step = 1; step < 32; step *= 2)
            sum = __dadd_rn(sum, __shfl_xor_sync(~0u, sum, step));
        return sum;
    }
};

static __device__ __forceinline__ void add(uint64_t* totals, int place, uint64_t value) {
    if (value != 0) atomicAdd((unsigned long long*)&totals[place], (unsigned long long)value);
}

static __device__ __forceinline__ uint64_t add_one(uint64_t* totals, int place) {
    return atomicAdd((unsigned long long*)&totals[place], 1ull);
}

// Adds a group's histograms to the totals and clears them.
template <typename Format>
__device__ __forceinline__ void flush(Shared<Format>& shared, uint64_t* totals) {
    int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    __syncthreads();
#pragma unroll 1
    for (int bin = warp; bin < Format::BINS; bin += GROUP / 32) {
        uint32_t sum = 0;
#pragma unroll 1
        for (int column = lane; column < GROUP / 2; column += 32) {
            uint32_t both = shared.histogram[bin][column];
            sum += (both & 0xffff) + (both >> 16);
            shared.histogram[bin][column] = 0;
        }
        sum = __reduce_add_sync(~0u, sum);
        if (lane == 0) add(totals, HISTOGRAM + bin, sum);
    }
#pragma unroll 1
    for (int place = thread; place < TABLE; place += GROUP) {
        add(totals, HALF + bin_of(place, typename Format::Float(0)), shared.halves[place]);
        shared.halves[place] = 0;
    }
    if (thread < 16) {
        add(totals, CLASSES + thread, shared.classes[thread]);
        shared.classes[thread] = 0;
    }
    __syncthreads();
}

static __device__ __forceinline__ uint64_t sum_of_warp(uint64_t value) {
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

static __device__ __forceinline__ uint64_t max_of_warp(uint64_t value) {
#pragma unroll 1
    for (int step = 16; step > 0; step /= 2) {
        uint64_t other = __shfl_xor_sync(~0u, value, step);
        value = other > value ? other : value;
    }
    return value;
}

template <typename Steps>
__device__ __forceinline__ void give(const Counters<Steps>& counters, uint64_t* totals) {
    uint64_t sums[9] = {counters.above,      counters.zero_signs, counters.zeroed,
                        counters.outside,    counters.would_fail, counters.steps_low,
                        counters.steps_high, counters.above_low,  counters.above_high};
    for (int at = 0; at < 9; at++) {
        uint64_t sum = sum_of_warp(sums[at]);
        if (threadIdx.x % 32 == 0) add(totals, ABOVE + at, sum);
    }
    uint64_t largest[3] = {counters.max_steps, ~counters.first_different, ~counters.first_outside};
    for (int at = 0; at < 3; at++) {
        uint64_t most = max_of_warp(largest[at]);
        if (threadIdx.x % 32 == 0)
            atomicMax((unsigned long long*)&totals[MAX_STEPS + at], (unsigned long long)most);
    }
}

// A block's rows, one after the other.
template <typename Format>
__device__ __forceinline__ void scan_rows(Scan<Format>& scan, const Arrays& arrays, bool whole,
                                          Rows<Format>& rows) {
    if (whole) rows.start(scan.begin);
#pragma unroll 1
    for (uint32_t row = 0; row < ROWS; row++) {
        typename Format::Word these[PER_THREAD], those[PER_THREAD];
        if (whole) rows.take(row, these, those);
        if (!whole || !scan.four(these, those, row)) scan.each(arrays, scan.begin + row * LANES);
    }
}

template <typename Format>
__device__ __forceinline__ void compare(const Arrays& arrays, const Rules& rules, uint64_t* totals,
                                        BlockResult* results) {
    __shared__ Shared<Format> shared;
    __shared__ typename Format::Room room;
#pragma unroll 1
    for (int at = threadIdx.x; at < Format::BINS * GROUP / 2; at += GROUP)
        shared.histogram[at / (GROUP / 2)][at % (GROUP / 2)] = 0;
#pragma unroll 1
    for (int at = threadIdx.x; at < TABLE; at += GROUP) shared.halves[at] = 0;
    if (threadIdx.x < 16) shared.classes[threadIdx.x] = 0;
    Format format(arrays.table, arrays.bits, room);
    __syncthreads();
    Scan<Format> scan(format, rules, shared);
    Rows<Format> rows(format, arrays, shared.rows);
    uint64_t blocks = (arrays.elements + BLOCK - 1) / BLOCK;
    int since_flush = 0;
    // A group that is done first takes the next block.
    __shared__ uint64_t next;
    for (uint64_t block = blockIdx.x; block < blocks;) {
        if (threadIdx.x == 0) next = gridDim.x + add_one(totals, BEGUN);
        scan.begin_block(block);
        // Only whole blocks are read four elements at a time.
        bool whole = !arrays.careful && (block + 1) * BLOCK <= arrays.elements;
        scan_rows(scan, arrays, whole, rows);
        block = scan.end_block(&results[block], next);
        if (++since_flush == BLOCKS_BEFORE_FLUSH) {
            flush(shared, totals);
            since_flush = 0;
        }
    }
    flush(shared, totals);
    give(scan.counters, totals);
}

// The values of some arrays in fp64: group y has the array that lies so many strides further.
template <typename Format>
__device__ __forceinline__ void widen(const void* words, uint64_t bytes, const void* table,
                                      uint32_t bits, uint64_t count, double* values,
                                      uint64_t stride) {
    __shared__ typename Format::Room room;
    Format format(table, bits, room);
    __syncthreads();
    words = static_cast<const char*>(words) + blockIdx.y * bytes;
    values += blockIdx.y * stride;
    uint64_t step = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += step)
        values[at] = format.value(format.number(format.load(words, at)));
}

// Groups that a multiprocessor is to hold: with five an H200 compares fp32 as fast as it reads.
#define COMPARE(NAME, FORMAT, RESIDENT)                                                            \
    extern "C" __global__ void __launch_bounds__(GROUP, RESIDENT) compare_##NAME(                  \
        const void* reference, const void* candidate, uint64_t elements, uint32_t careful,         \
        const void* table, uint32_t bits, double atol, double rtol, double zero_atol,              \
        uint64_t max_steps, uint32_t equal_nan, float low_atol, float low_rtol, float high_atol,   \
        float high_rtol, float no_zero, uint32_t exact, uint64_t* totals,                          \
        BlockResult* results) {                                                                    \
        Arrays arrays = {reference, candidate, elements, careful, table, bits};                    \
        Rules rules = {atol,     rtol,     zero_atol, max_steps, equal_nan,                        \
                       low_atol, low_rtol, high_atol, high_rtol, no_zero,   exact};                \
        compare<FORMAT>(arrays, rules, totals, results);                                           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LOOKERS, 1) look_##NAME(                          \
        const void* reference, const void* candidate, uint64_t elements, uint32_t careful,         \
        const void* table, uint32_t bits, uint32_t equal_nan, uint32_t worst,                      \
        const uint64_t* chosen, uint64_t* found) {                                                 \
        Arrays arrays = {reference, candidate, elements, careful, table, bits};                    \
        look<FORMAT>(arrays, equal_nan, worst, chosen, found);                                     \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(GROUP)                                            \
        widen_##NAME(const void* words, uint64_t bytes, const void* table, uint32_t layout,        \
                     uint64_t count, double* values, uint64_t stride) {                            \
        widen<FORMAT>(words, bytes, table, layout, count, values, stride);                         \
    }
