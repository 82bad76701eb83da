// Compares two arrays in one reading of both: counts, and sums in the tree of the CPU's path.
//
// A group of 128 threads takes a block of 16384 elements as 32 rows of 512. Thread t holds the
// lanes 4t to 4t + 3 of every row and adds down its lanes; the lanes are then added as neighbours,
// pairs of neighbours and so on. No product is fused with a sum: every operation rounds as on the
// CPU, so that the sums have the same bits too.
//
// Errors of formats of up to 32 bits are differences rounded once to fp32, whose squares fp64 holds
// exactly. What cannot be decided by one comparison in fp32 is decided again, exactly, by `doubt`:
// few elements come there unless the tensors differ in earnest.
//
// Each thread has a histogram of distances of its own in shared memory, two counters of 16 bits to
// a word, in a column that no other thread touches. Half octaves of errors are counted by atomic
// additions to a few copies of one table.

#include <cstdint>
#include <cuda_fp16.h>

constexpr int LANES = 512, ROWS = 32, GROUP = 128, PER_THREAD = 4;
constexpr uint64_t BLOCK = uint64_t(LANES) * ROWS;
constexpr int HALVES = 256, FIRST_HALF = 2 * (1023 - 100), COPIES = 4;
// A thread counts 128 elements of a block: after so many blocks 16 bits may be full.
constexpr int BLOCKS_BEFORE_FLUSH = 65535 / (ROWS * PER_THREAD);
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
    static __device__ __forceinline__ float value(Word word) { return __uint_as_float(word); }
    static __device__ __forceinline__ uint32_t steps(Word one, Word other) {
        int32_t difference = int32_t(other - one);
        uint32_t same = difference < 0 ? -uint32_t(difference) : difference;
        return int32_t(one ^ other) < 0 ? one + other + 0x80000000u : same;
    }
};

struct Short {
    using Word = uint16_t;
    using Steps = uint32_t;
    using Float = float;
    static constexpr int BINS = 17;
    static __device__ __forceinline__ uint32_t steps(Word one, Word other) {
        int32_t difference = int32_t(other) - int32_t(one);
        uint32_t same = difference < 0 ? -difference : difference;
        bool opposite = (one ^ other) & 0x8000;
        return opposite ? (one & 0x7fffu) + (other & 0x7fffu) : same;
    }
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
    static __device__ __forceinline__ double value(Word word) {
        return __longlong_as_double(int64_t(word));
    }
    static __device__ __forceinline__ uint64_t steps(Word one, Word other) {
        int64_t difference = int64_t(other - one);
        uint64_t same = difference < 0 ? -uint64_t(difference) : difference;
        return int64_t(one ^ other) < 0 ? one + other + (uint64_t(1) << 63) : same;
    }
};

static __device__ __forceinline__ float minus(float one, float other) {
    return __fsub_rn(one, other);
}
static __device__ __forceinline__ double minus(double one, double other) {
    return __dsub_rn(one, other);
}
static __device__ __forceinline__ bool is_finite(float value) { return fabsf(value) <= 0x1.fffffep127f; }
static __device__ __forceinline__ bool is_finite(double value) {
    return fabs(value) <= 0x1.fffffffffffffp1023;
}

// The half octave of an error, counted as in fp64.
static __device__ __forceinline__ int half_octave(float error) {
    return int((__float_as_uint(error) & 0x7fffffff) >> 22) + 2 * (1023 - 127) - FIRST_HALF;
}
static __device__ __forceinline__ int half_octave(double error) {
    return int((uint32_t(__double2hiint(error)) & 0x7fffffff) >> 19) - FIRST_HALF;
}

static __device__ __forceinline__ int bits_of(uint32_t steps) { return 32 - __clz(steps); }
static __device__ __forceinline__ int bits_of(uint64_t steps) { return 64 - __clzll(steps); }

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
    static constexpr int PAIRS = (Format::BINS + 1) / 2;
    uint32_t histogram[PAIRS][GROUP];
    uint32_t halves[HALVES][COPIES];
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

static __device__ __forceinline__ void first(uint64_t& mine, uint64_t index) { mine = index < mine ? index : mine; }

template <typename Format> struct Scan {
    using Word = typename Format::Word;
    using Steps = typename Format::Steps;
    using Float = typename Format::Float;
    const Rules& rules;
    Shared<Format>& shared;
    Counters<Steps> counters;
    // Of the block at hand.
    double errors[PER_THREAD], references[PER_THREAD], zeroed[PER_THREAD];
    Float max_error;
    Steps max_steps;
    bool other_class;

    __device__ __forceinline__ Scan(const Rules& rules, Shared<Format>& shared)
        : rules(rules), shared(shared) {}

    __device__ __forceinline__ void begin_block() {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++)
            errors[lane] = references[lane] = zeroed[lane] = 0;
        max_error = 0;
        max_steps = 0;
        other_class = false;
    }

    __device__ __forceinline__ void distance(Steps steps, bool above) {
        int bin = bits_of(steps);
        atomicAdd(&shared.histogram[bin >> 1][threadIdx.x], (bin & 1) ? 0x10000u : 1u);
        counters.steps_low += uint32_t(steps);
        if (above) counters.above_low += uint32_t(steps);
        if (sizeof(Steps) == 8) {
            counters.steps_high += uint64_t(steps) >> 32;
            if (above) counters.above_high += uint64_t(steps) >> 32;
        }
        counters.above += above;
        max_steps = steps > max_steps ? steps : max_steps;
    }

    __device__ __forceinline__ void half(Float error) {
        int bin = min(max(half_octave(error), 0), HALVES - 1);
        atomicAdd(&shared.halves[bin][threadIdx.x % COPIES], 1u);
    }

    // Counts an element as far as one look suffices; whether `doubt` must look again. Where the
    // error is not finite, it counts as two equal zeros here.
    __device__ __forceinline__ bool element(Word one, Word other, int lane) {
        Float r = Format::value(one), c = Format::value(other), error = minus(c, r);
        bool finite = is_finite(error);
        if (!finite) error = r = 0;
        double wide = error, reference = r;
        if (sizeof(Float) == 4) {
            // Exact products: fused or not, the sum is rounded once.
            errors[lane] = __fma_rn(wide, wide, errors[lane]);
            references[lane] = __fma_rn(reference, reference, references[lane]);
        } else {
            errors[lane] = __dadd_rn(errors[lane], __dmul_rn(wide, wide));
            references[lane] = __dadd_rn(references[lane], __dmul_rn(reference, reference));
        }
        Steps steps = finite ? Format::steps(one, other) : 0;
        distance(steps, error > 0);
        if (error != 0) half(error);
        Float magnitude = error < 0 ? -error : error;
        max_error = magnitude > max_error ? magnitude : max_error;
        return !finite || is_doubtful(r, magnitude, steps) || (c == 0 && one != other);
    }

    __device__ __forceinline__ bool is_doubtful(float r, float magnitude, Steps steps) {
        counters.would_fail += fabsf(r) >= rules.no_zero;
        // The least subnormal lets equal elements pass where nothing is allowed.
        float low = fmaxf(__fmaf_rn(rules.low_rtol, fabsf(r), rules.low_atol), 1e-45f);
        return !(magnitude < low);
    }

    __device__ __forceinline__ bool is_doubtful(double r, double magnitude, Steps steps) {
        double allowed = this->allowed(r);
        counters.would_fail += fabs(r) > allowed;
        return magnitude > allowed && steps > rules.max_steps;
    }

    __device__ __forceinline__ double allowed(double r) {
        return r == 0 ? rules.zero_atol : __dadd_rn(rules.atol, __dmul_rn(rules.rtol, fabs(r)));
    }

    // What `element` left open of a row's four elements.
    __device__ __forceinline__ void doubt(const Word* ones, const Word* others, uint64_t index,
                                          uint64_t elements) {
#pragma unroll 1
        for (int lane = 0; lane < PER_THREAD && index + lane < elements; lane++) {
            Word one = ones[index + lane], other = others[index + lane];
            Float r = Format::value(one), c = Format::value(other), error = minus(c, r);
            if (is_finite(r) && is_finite(c)) {
                if (!is_finite(error)) overflow(one, other, error, lane);
                judge(r, c, error, Format::steps(one, other), index + lane);
                if (c == 0 && one != other) zero(r, lane, index + lane);
            } else {
                set_apart(r, c, index + lane);
            }
        }
    }

    __device__ __forceinline__ void judge(Float r, Float c, Float error, Steps steps,
                                          uint64_t index) {
        if (fabs(double(error)) > allowed(r) && steps > rules.max_steps) {
            counters.outside++;
            first(counters.first_outside, index);
        }
        if (steps != 0) first(counters.first_different, index);
    }

    // Two finite values whose difference is not: `element` took them for zeros.
    __device__ __forceinline__ void overflow(Word one, Word other, Float error, int lane) {
        atomicSub(&shared.histogram[0][threadIdx.x], 1u);
        double r = Format::value(one);
        distance(Format::steps(one, other), error > 0);
        half(error);
        counters.would_fail += fabs(r) > allowed(r);
        max_error = fabs(double(error)) > max_error ? fabs(error) : max_error;
        add_at(errors, lane, double(error));
        add_at(references, lane, __dmul_rn(r, r));
    }

    __device__ __forceinline__ void zero(double r, int lane, uint64_t index) {
        if (r != 0) {
            counters.zeroed++;
            add_at(zeroed, lane, __dmul_rn(r, r));
        } else {
            counters.zero_signs++;
            first(counters.first_different, index);
        }
    }

    __device__ __forceinline__ void set_apart(Float r, Float c, uint64_t index) {
        atomicSub(&shared.histogram[0][threadIdx.x], 1u);
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
template <typename Format> __device__ __forceinline__ void flush(Shared<Format>& shared, uint64_t* totals) {
    int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    __syncthreads();
    for (int pair = warp; pair < Shared<Format>::PAIRS; pair += GROUP / 32) {
        uint32_t low = 0, high = 0;
        for (int column = lane; column < GROUP; column += 32) {
            uint32_t both = shared.histogram[pair][column];
            low += both & 0xffff;
            high += both >> 16;
            shared.histogram[pair][column] = 0;
        }
        for (int step = 16; step > 0; step /= 2) {
            low += __shfl_xor_sync(~0u, low, step);
            high += __shfl_xor_sync(~0u, high, step);
        }
        if (lane == 0) {
            add(totals, HISTOGRAM + 2 * pair, low);
            if (2 * pair + 1 < 65) add(totals, HISTOGRAM + 2 * pair + 1, high);
        }
    }
    for (int bin = thread; bin < HALVES; bin += GROUP) {
        uint64_t sum = 0;
        for (int copy = 0; copy < COPIES; copy++) {
            sum += shared.halves[bin][copy];
            shared.halves[bin][copy] = 0;
        }
        add(totals, HALF + bin, sum);
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

// Four elements; past the end zeros, which the host takes off the count of distance 0.
template <typename Word>
__device__ __forceinline__ Four<Word> load(const Word* array, uint64_t index, uint64_t elements) {
    if (index + PER_THREAD <= elements)
        return *reinterpret_cast<const Four<Word>*>(array + index);
    Four<Word> four;
#pragma unroll
    for (int lane = 0; lane < PER_THREAD; lane++)
        four.words[lane] = index + lane < elements ? array[index + lane] : Word(0);
    return four;
}

template <typename Format>
__device__ __forceinline__ void compare(const typename Format::Word* reference,
                        const typename Format::Word* candidate, uint64_t elements,
                        const Rules& rules, uint64_t* totals, BlockResult* results) {
    __shared__ Shared<Format> shared;
    for (int pair = 0; pair < Shared<Format>::PAIRS; pair++)
        shared.histogram[pair][threadIdx.x] = 0;
    for (int at = threadIdx.x; at < HALVES * COPIES; at += GROUP)
        shared.halves[at / COPIES][at % COPIES] = 0;
    if (threadIdx.x < 16) shared.classes[threadIdx.x] = 0;
    __syncthreads();
    Scan<Format> scan(rules, shared);
    uint64_t blocks = (elements + BLOCK - 1) / BLOCK;
    int since_flush = 0;
    for (uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        scan.begin_block();
        uint64_t index = block * BLOCK + PER_THREAD * threadIdx.x, end = (block + 1) * BLOCK;
        auto one = load(reference, index, elements), other = load(candidate, index, elements);
#pragma unroll 1
        for (; index < end; index += LANES) {
            // The next row is on its way while this one is counted.
            auto next_one = one, next_other = other;
            if (index + LANES < end) {
                next_one = load(reference, index + LANES, elements);
                next_other = load(candidate, index + LANES, elements);
            }
            bool again = false;
            typename Format::Word changes = 0;
#pragma unroll
            for (int lane = 0; lane < PER_THREAD; lane++) {
                again |= scan.element(one.words[lane], other.words[lane], lane);
                changes |= one.words[lane] ^ other.words[lane];
            }
            again |= changes != 0 && scan.counters.first_different == NONE;
            if (again) scan.doubt(reference, candidate, index, elements);
            one = next_one;
            other = next_other;
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

#define COMPARE(NAME, FORMAT)                                                                      \
    extern "C" __global__ void __launch_bounds__(GROUP)                                            \
        NAME(const FORMAT::Word* reference, const FORMAT::Word* candidate, uint64_t elements,      \
             double atol, double rtol, double zero_atol, uint64_t max_steps, uint32_t equal_nan,   \
             float low_atol, float low_rtol, float no_zero, uint64_t* totals,                      \
             BlockResult* results) {                                                               \
        Rules rules = {atol,      rtol,     zero_atol, max_steps,                                  \
                       equal_nan, low_atol, low_rtol,  no_zero};                                   \
        compare<FORMAT>(reference, candidate, elements, rules, totals, results);                   \
    }

COMPARE(compare_f32, F32)
COMPARE(compare_f16, F16)
COMPARE(compare_bf16, Bf16)
COMPARE(compare_f64, F64)
