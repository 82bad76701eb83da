// Compares two arrays in one reading of both: counts, and sums in the tree of the CPU's path.
//
// A group of 128 threads takes a block of 16384 elements as 32 rows of 512. Thread t holds the
// lanes 4t to 4t + 3 of every row and adds down its lanes; the lanes are then added as neighbours,
// pairs of neighbours and so on. No product is fused with a sum: every operation rounds as on the
// CPU, so that the sums have the same bits too.
//
// Errors of formats of up to 32 bits are differences rounded once to fp32, whose squares fp64 holds
// exactly. Four elements are counted together where all of them are finite, of equal signs, not far
// apart and no zero for something else; what is none of this is counted one by one. Whether they
// are within the tolerance is first asked of one comparison in fp32 with what lies surely below it.
//
// A histogram of distances lies in shared memory, two counters of 16 bits to a word, each of them
// of one thread alone. Half octaves of errors are counted in one table.

#include <cstdint>
#include <cuda_fp16.h>

constexpr int LANES = 512, ROWS = 32, GROUP = 128, PER_THREAD = 4;
constexpr uint64_t BLOCK = uint64_t(LANES) * ROWS;
constexpr int HALVES = 256, FIRST_HALF = 2 * (1023 - 100);
// A thread counts 128 elements of a block: after so many blocks 16 bits may be full.
constexpr int BLOCKS_BEFORE_FLUSH = 65535 / (ROWS * PER_THREAD);
// Rows that are read ahead.
constexpr int AHEAD = 2;
constexpr uint64_t NONE = ~uint64_t(0);

// The places of the counts; the host has the same list.
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
    FIRST_DIFFERENT,
    FIRST_OUTSIDE,
    PLACES
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
    // Just below the tolerance, for a first look; and the least magnitude that a zero cannot
    // stand for.
    float low_atol, low_rtol, no_zero;
};

struct F32 {
    using Word = uint32_t;
    using Steps = uint32_t;
    using Float = float;
    static constexpr int BINS = 33;
    // 128 distances below this add up in 32 bits.
    static constexpr Steps FAR = 1u << 23;
    static __device__ __forceinline__ float value(Word word) { return __uint_as_float(word); }
};

struct Short {
    using Word = uint16_t;
    using Steps = uint32_t;
    using Float = float;
    static constexpr int BINS = 17;
    static constexpr Steps FAR = 1u << 15;
};

struct F16 : Short {
    static __device__ __forceinline__ float value(Word word) {
        return __half2float(__ushort_as_half(word));
    }
};

struct Bf16 : Short {
    static __device__ __forceinline__ float value(Word word) {
        return __uint_as_float(uint32_t(word) << 16);
    }
};

struct F64 {
    using Word = uint64_t;
    using Steps = uint64_t;
    using Float = double;
    static constexpr int BINS = 65;
    static constexpr Steps FAR = uint64_t(1) << 52;
    static __device__ __forceinline__ double value(Word word) {
        return __longlong_as_double(int64_t(word));
    }
};

// Whether the signs differ.
template <typename Word> static __device__ __forceinline__ bool opposite(Word exclusive) {
    return exclusive >> (8 * sizeof(Word) - 1);
}

// The distance of two words of equal signs.
static __device__ __forceinline__ uint32_t apart(uint32_t one, uint32_t other) {
    return abs(int32_t(other - one));
}
static __device__ __forceinline__ uint32_t apart(uint16_t one, uint16_t other) {
    return abs(int32_t(other) - int32_t(one));
}
static __device__ __forceinline__ uint64_t apart(uint64_t one, uint64_t other) {
    return llabs(int64_t(other - one));
}

// The distance of any two finite words.
template <typename Format>
static __device__ typename Format::Steps distance_of(typename Format::Word one,
                                                     typename Format::Word other) {
    using Word = typename Format::Word;
    Word magnitude = Word(~Word(0)) >> 1;
    if (!opposite(Word(one ^ other))) return apart(one, other);
    return typename Format::Steps(one & magnitude) + (other & magnitude);
}

static __device__ __forceinline__ float minus(float one, float other) {
    return __fsub_rn(one, other);
}
static __device__ __forceinline__ double minus(double one, double other) {
    return __dsub_rn(one, other);
}
static __device__ __forceinline__ bool is_finite(float value) {
    return fabsf(value) <= 0x1.fffffep127f;
}
static __device__ __forceinline__ bool is_finite(double value) {
    return fabs(value) <= 0x1.fffffffffffffp1023;
}

// The place of an error in a group's table: of fp32 its exponent and first bit, of fp64 the same
// counted from the first bin of the result.
constexpr int TABLE = 512;
static __device__ __forceinline__ uint32_t table_place(float error) {
    return (__float_as_uint(error) >> 22) & (TABLE - 1);
}
static __device__ __forceinline__ uint32_t table_place(double error) {
    int half = int((uint32_t(__double2hiint(error)) & 0x7fffffff) >> 19) - FIRST_HALF;
    return min(max(half, 0), HALVES - 1);
}
// The bin of the result that a place of the table counts for.
static __device__ __forceinline__ int bin_of(int place, float) {
    return min(max(place + 2 * (1023 - 127) - FIRST_HALF, 0), HALVES - 1);
}
static __device__ __forceinline__ int bin_of(int place, double) { return min(place, HALVES - 1); }

// The number of bits of a distance; the instruction gives the place of the highest, -1 for none.
static __device__ __forceinline__ int bits_of(uint32_t steps) {
    int highest;
    asm("bfind.u32 %0, %1;" : "=r"(highest) : "r"(steps));
    return highest + 1;
}
static __device__ __forceinline__ int bits_of(uint64_t steps) {
    int highest;
    asm("bfind.u64 %0, %1;" : "=r"(highest) : "l"(steps));
    return highest + 1;
}

// 0 finite, 1 NaN, 2 +Inf, 3 -Inf.
static __device__ __forceinline__ int class_of(double value) {
    if (value != value) return 1;
    if (isinf(value)) return value > 0 ? 2 : 3;
    return 0;
}

template <typename Word> struct alignas(4 * sizeof(Word)) Four {
    Word words[PER_THREAD];
};
template <> struct alignas(16) Four<uint64_t> {
    uint64_t words[PER_THREAD];
};

// What a group shares.
template <typename Format> struct Shared {
    // Thread t and thread t + 64 have the halves of one word.
    uint32_t histogram[Format::BINS][GROUP / 2];
    uint32_t halves[TABLE];
    uint32_t classes[16];
    double sums[3][4];
    uint64_t max_key[4];
    double max_error[4];
};

// What a thread counts by itself until the end.
template <typename Steps> struct Counters {
    uint32_t above = 0, zero_signs = 0, zeroed = 0, outside = 0, would_fail = 0;
    uint64_t steps_low = 0, steps_high = 0, above_low = 0, above_high = 0;
    uint64_t first_different = NONE, first_outside = NONE;
    Steps max_steps = 0;
};

static __device__ __forceinline__ void first(uint64_t& mine, uint64_t index) {
    mine = index < mine ? index : mine;
}

template <typename Format> struct Scan {
    using Word = typename Format::Word;
    using Steps = typename Format::Steps;
    using Float = typename Format::Float;
    const Rules& rules;
    Shared<Format>& shared;
    Counters<Steps> counters;
    // One in this thread's half of a word.
    uint32_t one_here;
    // Of the block at hand.
    double errors[PER_THREAD], references[PER_THREAD], zeroed[PER_THREAD];
    Float max_error;
    Steps max_steps, near_steps, near_above;
    bool other_class;

    __device__ __forceinline__ Scan(const Rules& rules, Shared<Format>& shared)
        : rules(rules), shared(shared), one_here(threadIdx.x < GROUP / 2 ? 1 : 0x10000) {}

    __device__ __forceinline__ void begin_block() {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++)
            errors[lane] = references[lane] = zeroed[lane] = 0;
        max_error = 0;
        max_steps = near_steps = near_above = 0;
        other_class = false;
    }

    __device__ __forceinline__ void count(Steps steps, Float error) {
        atomicAdd(&shared.histogram[bits_of(steps)][threadIdx.x % (GROUP / 2)], one_here);
        atomicAdd(&shared.halves[table_place(error)], 1u);
        max_steps = steps > max_steps ? steps : max_steps;
    }

    __device__ __forceinline__ double allowed(double r) {
        return r == 0 ? rules.zero_atol : __dadd_rn(rules.atol, __dmul_rn(rules.rtol, fabs(r)));
    }

    // Whether an error is surely within the tolerance, and whether a zero would not be.
    __device__ __forceinline__ bool within(float r, float magnitude) {
        return magnitude <= __fmaf_rd(rules.low_rtol, fabsf(r), rules.low_atol);
    }
    __device__ __forceinline__ bool within(double r, double magnitude) {
        return magnitude <= allowed(r);
    }
    __device__ __forceinline__ bool zero_fails(float r) { return fabsf(r) >= rules.no_zero; }
    __device__ __forceinline__ bool zero_fails(double r) { return fabs(r) > allowed(r); }

    // Four elements, where nothing is special about them; false, and nothing counted, otherwise.
    __device__ __forceinline__ bool four(const Word* one, const Word* other, uint64_t index) {
        Float error[PER_THREAD];
        Steps steps[PER_THREAD], far = 0;
        Word changes = 0;
        bool plain = true, sure = true;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) {
            Float r = Format::value(one[lane]), c = Format::value(other[lane]);
            error[lane] = minus(c, r);
            plain &= is_finite(error[lane]) & !((c == 0) & (one[lane] != other[lane]));
            sure &= within(r, fabs(error[lane]));
            steps[lane] = apart(one[lane], other[lane]);
            far = steps[lane] > far ? steps[lane] : far;
            changes |= one[lane] ^ other[lane];
        }
        if (!plain || far >= Format::FAR || opposite(changes)) return false;
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) {
            Float r = Format::value(one[lane]);
            add(lane, error[lane], r);
            count(steps[lane], error[lane]);
            near_steps += steps[lane];
            near_above += error[lane] > 0 ? steps[lane] : 0;
            counters.above += error[lane] > 0;
            counters.would_fail += zero_fails(r);
            Float magnitude = fabs(error[lane]);
            max_error = magnitude > max_error ? magnitude : max_error;
        }
        if (changes != 0 && counters.first_different == NONE) {
#pragma unroll
            for (int lane = PER_THREAD - 1; lane >= 0; lane--)
                if (one[lane] != other[lane]) counters.first_different = index + lane;
        }
        if (!sure) {
#pragma unroll
            for (int lane = 0; lane < PER_THREAD; lane++)
                judge(Format::value(one[lane]), error[lane], steps[lane], index + lane);
        }
        return true;
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

    __device__ __forceinline__ void judge(Float r, Float error, Steps steps, uint64_t index) {
        if (fabs(double(error)) > allowed(r) && steps > rules.max_steps) {
            counters.outside++;
            first(counters.first_outside, index);
        }
    }

    // Any elements, one by one, as far as there are any.
    __device__ __forceinline__ void each(const Word* ones, const Word* others, uint64_t index,
                                         uint64_t elements) {
#pragma unroll 1
        for (int lane = 0; lane < PER_THREAD && index + lane < elements; lane++) {
            Word one = ones[index + lane], other = others[index + lane];
            Float r = Format::value(one), c = Format::value(other), error = minus(c, r);
            if (is_finite(r) && is_finite(c))
                any(one, other, error, lane, index + lane);
            else
                set_apart(r, c, index + lane);
        }
    }

    __device__ __forceinline__ void any(Word one, Word other, Float error, int lane,
                                        uint64_t index) {
        double r = Format::value(one), wide = error;
        Steps steps = distance_of<Format>(one, other);
        count(steps, error);
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
        judge(Format::value(one), error, steps, index);
        if (steps != 0) first(counters.first_different, index);
        if (Format::value(other) != 0) return;
        if (r != 0) {
            counters.zeroed++;
            add_at(zeroed, lane, __dmul_rn(r, r));
        } else if (one != other) {
            counters.zero_signs++;
            first(counters.first_different, index);
        }
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

    __device__ __forceinline__ void end_block(BlockResult* result) {
        int thread = threadIdx.x, warp = thread / 32;
        double sums[3] = {tree(errors), tree(references), tree(zeroed)};
        uint64_t key = other_class ? NONE : uint64_t(max_steps);
        if (max_steps > counters.max_steps) counters.max_steps = max_steps;
        counters.steps_low += uint32_t(near_steps);
        counters.steps_high += uint64_t(near_steps) >> 32;
        counters.above_low += uint32_t(near_above);
        counters.above_high += uint64_t(near_above) >> 32;
        double largest = max_error;
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
    }

    static __device__ __forceinline__ double tree(const double* lanes) {
        double sum = __dadd_rn(__dadd_rn(lanes[0], lanes[1]), __dadd_rn(lanes[2], lanes[3]));
        for (int step = 1; step < 32; step *= 2)
            sum = __dadd_rn(sum, __shfl_xor_sync(~0u, sum, step));
        return sum;
    }
};

static __device__ __forceinline__ void add(uint64_t* totals, int place, uint64_t value) {
    if (value != 0) atomicAdd((unsigned long long*)&totals[place], (unsigned long long)value);
}

// Adds a group's histograms to the totals and clears them.
template <typename Format>
__device__ __forceinline__ void flush(Shared<Format>& shared, uint64_t* totals) {
    int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    __syncthreads();
    for (int bin = warp; bin < Format::BINS; bin += GROUP / 32) {
        uint32_t sum = 0;
        for (int column = lane; column < GROUP / 2; column += 32) {
            uint32_t both = shared.histogram[bin][column];
            sum += (both & 0xffff) + (both >> 16);
            shared.histogram[bin][column] = 0;
        }
        sum = __reduce_add_sync(~0u, sum);
        if (lane == 0) add(totals, HISTOGRAM + bin, sum);
    }
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
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
    return value;
}

static __device__ __forceinline__ uint64_t min_of_warp(uint64_t value) {
    for (int step = 16; step > 0; step /= 2) {
        uint64_t other = __shfl_xor_sync(~0u, value, step);
        value = other < value ? other : value;
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
    uint64_t max_steps = ~min_of_warp(~uint64_t(counters.max_steps));
    uint64_t different = min_of_warp(counters.first_different);
    uint64_t outside = min_of_warp(counters.first_outside);
    if (threadIdx.x % 32 == 0) {
        atomicMax((unsigned long long*)&totals[MAX_STEPS], (unsigned long long)max_steps);
        atomicMin((unsigned long long*)&totals[FIRST_DIFFERENT], (unsigned long long)different);
        atomicMin((unsigned long long*)&totals[FIRST_OUTSIDE], (unsigned long long)outside);
    }
}

template <typename Format>
__device__ __forceinline__ void compare(const typename Format::Word* reference,
                                        const typename Format::Word* candidate, uint64_t elements,
                                        const Rules& rules, uint64_t* totals,
                                        BlockResult* results) {
    using Quad = Four<typename Format::Word>;
    __shared__ Shared<Format> shared;
    for (int at = threadIdx.x; at < Format::BINS * GROUP / 2; at += GROUP)
        shared.histogram[at / (GROUP / 2)][at % (GROUP / 2)] = 0;
    for (int at = threadIdx.x; at < TABLE; at += GROUP) shared.halves[at] = 0;
    if (threadIdx.x < 16) shared.classes[threadIdx.x] = 0;
    __syncthreads();
    Scan<Format> scan(rules, shared);
    uint64_t blocks = (elements + BLOCK - 1) / BLOCK;
    int since_flush = 0;
    for (uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        scan.begin_block();
        uint64_t index = block * BLOCK + PER_THREAD * threadIdx.x;
        const Quad* ones = reinterpret_cast<const Quad*>(reference + index);
        const Quad* others = reinterpret_cast<const Quad*>(candidate + index);
        // Only whole blocks are read four elements at a time.
        bool whole = (block + 1) * BLOCK <= elements;
        Quad one[AHEAD], other[AHEAD];
#pragma unroll
        for (int row = 0; row < AHEAD; row++)
            if (whole) one[row] = ones[row * GROUP], other[row] = others[row * GROUP];
#pragma unroll 1
        for (int row = 0; row < ROWS; row += AHEAD) {
#pragma unroll
            for (int at = 0; at < AHEAD; at++) {
                Quad these = one[at], those = other[at];
                // The rows to come are on their way while this one is counted.
                if (whole && row + AHEAD < ROWS) {
                    one[at] = ones[(row + at + AHEAD) * GROUP];
                    other[at] = others[(row + at + AHEAD) * GROUP];
                }
                uint64_t here = index + (row + at) * LANES;
                if (!whole || !scan.four(these.words, those.words, here))
                    scan.each(reference, candidate, here, elements);
            }
        }
        scan.end_block(&results[block]);
        if (++since_flush == BLOCKS_BEFORE_FLUSH) {
            flush(shared, totals);
            since_flush = 0;
        }
    }
    flush(shared, totals);
    give(scan.counters, totals);
}

// Blocks that a multiprocessor is to hold: few with many registers each are the fastest.
#define COMPARE(NAME, FORMAT, RESIDENT)                                                            \
    extern "C" __global__ void __launch_bounds__(GROUP, RESIDENT)                                  \
        NAME(const FORMAT::Word* reference, const FORMAT::Word* candidate, uint64_t elements,      \
             double atol, double rtol, double zero_atol, uint64_t max_steps, uint32_t equal_nan,   \
             float low_atol, float low_rtol, float no_zero, uint64_t* totals,                      \
             BlockResult* results) {                                                               \
        Rules rules = {atol,      rtol,     zero_atol, max_steps,                                  \
                       equal_nan, low_atol, low_rtol,  no_zero};                                   \
        compare<FORMAT>(reference, candidate, elements, rules, totals, results);                   \
    }

COMPARE(compare_f32, F32, 4)
COMPARE(compare_f16, F16, 4)
COMPARE(compare_bf16, Bf16, 4)
COMPARE(compare_f64, F64, 3)
