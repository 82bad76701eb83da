// Compares two arrays in one reading of both: counts, and sums in the tree of the CPU's path.
//
// A group of 128 threads takes a block of 16384 elements as 32 rows of 512. Thread t holds the
// lanes 4t to 4t + 3 of every row and adds down its lanes; the lanes are then added as neighbours,
// pairs of neighbours and so on. No product is fused with a sum: every operation rounds as on the
// CPU, so that the sums have the same bits too.
//
// Each thread has a histogram of distances of its own in shared memory, two counters of 16 bits to
// a word, in a column that no other thread touches. Octaves of squared errors are counted by
// atomic additions to a few copies of one table.

#include <cstdint>
#include <cuda_fp16.h>

constexpr int LANES = 512, ROWS = 32, GROUP = 128, PER_THREAD = 4;
constexpr uint64_t BLOCK = uint64_t(LANES) * ROWS;
constexpr int OCTAVES = 256, FIRST_OCTAVE = -200, COPIES = 4;
// A thread counts 128 elements of a block: after so many blocks 16 bits may be full.
constexpr int BLOCKS_BEFORE_FLUSH = 65535 / (ROWS * PER_THREAD);
constexpr uint64_t NONE = ~uint64_t(0);

// The places of the counts; the host has the same list.
enum Place {
    CLASSES = 0,
    HISTOGRAM = 16,
    OCTAVE = HISTOGRAM + 65,
    ABOVE = OCTAVE + OCTAVES,
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
};

struct F32 {
    using Word = uint32_t;
    using Steps = uint32_t;
    static constexpr int BINS = 33;
    static __device__ __forceinline__ double value(Word word) { return double(__uint_as_float(word)); }
    static __device__ __forceinline__ int32_t code(Word word) {
        int32_t sign = int32_t(word) >> 31;
        return (int32_t(word & 0x7fffffff) ^ sign) - sign;
    }
    static __device__ __forceinline__ bool finite(Word word) { return (word & 0x7fffffff) < 0x7f800000; }
    static __device__ __forceinline__ bool zero(Word word) { return (word << 1) == 0; }
};

template <uint32_t INFINITY_BITS> struct Short {
    using Word = uint16_t;
    using Steps = uint32_t;
    static constexpr int BINS = 17;
    static __device__ __forceinline__ int32_t code(Word word) {
        int32_t sign = int32_t(int16_t(word)) >> 31;
        return (int32_t(word & 0x7fff) ^ sign) - sign;
    }
    static __device__ __forceinline__ bool finite(Word word) { return (word & 0x7fffu) < INFINITY_BITS; }
    static __device__ __forceinline__ bool zero(Word word) { return (word & 0x7fff) == 0; }
};

struct F16 : Short<0x7c00> {
    static __device__ __forceinline__ double value(Word word) {
        return double(__half2float(__ushort_as_half(word)));
    }
};

struct Bf16 : Short<0x7f80> {
    static __device__ __forceinline__ double value(Word word) {
        return double(__uint_as_float(uint32_t(word) << 16));
    }
};

struct F64 {
    using Word = uint64_t;
    using Steps = uint64_t;
    static constexpr int BINS = 65;
    static __device__ __forceinline__ double value(Word word) { return __longlong_as_double(int64_t(word)); }
    static __device__ __forceinline__ int64_t code(Word word) {
        int64_t magnitude = int64_t(word & 0x7fffffffffffffff);
        return int64_t(word) < 0 ? -magnitude : magnitude;
    }
    static __device__ __forceinline__ bool finite(Word word) {
        return (word & 0x7fffffffffffffff) < 0x7ff0000000000000;
    }
    static __device__ __forceinline__ bool zero(Word word) { return (word << 1) == 0; }
};

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
    uint32_t octaves[OCTAVES][COPIES];
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
    const Rules& rules;
    Shared<Format>& shared;
    Counters<Steps> counters;
    // Of the block at hand.
    double errors[PER_THREAD], references[PER_THREAD], zeroed[PER_THREAD];
    double max_error;
    Steps max_steps;
    bool other_class;

    __device__ __forceinline__ Scan(const Rules& rules, Shared<Format>& shared) : rules(rules), shared(shared) {}

    __device__ __forceinline__ void begin_block() {
#pragma unroll
        for (int lane = 0; lane < PER_THREAD; lane++) errors[lane] = references[lane] = zeroed[lane] = 0;
        max_error = 0;
        max_steps = 0;
        other_class = false;
    }

    __device__ __forceinline__ void set_apart(Word one, Word other, uint64_t index) {
        int r = class_of(Format::value(one)), c = class_of(Format::value(other));
        atomicAdd(&shared.classes[4 * r + c], 1u);
        bool nan = r == 1 && c == 1;
        if (r != c || (nan && !rules.equal_nan)) {
            first(counters.first_outside, index);
            other_class = true;
        }
        if (r != c || nan) first(counters.first_different, index);
    }

    __device__ __forceinline__ void octave(double square) {
        int32_t high = __double2hiint(square);
        int bin = (high >> 20) - 1023 - FIRST_OCTAVE;
        bin = min(max(bin, 0), OCTAVES - 1);
        atomicAdd(&shared.octaves[bin][threadIdx.x % COPIES], 1u);
    }

    __device__ __forceinline__ void distance(Steps steps, bool above) {
        int bin = bits_of(steps);
        shared.histogram[bin >> 1][threadIdx.x % GROUP] += 1u << ((bin & 1) * 16);
        uint64_t low = uint32_t(steps), high = uint64_t(steps) >> 32;
        counters.steps_low += low;
        if (above) counters.above_low += low;
        if (sizeof(Steps) == 8) {
            counters.steps_high += high;
            if (above) counters.above_high += high;
        }
        counters.above += above;
        max_steps = steps > max_steps ? steps : max_steps;
    }

    // Whether both are finite; what is not counts for nothing here.
    __device__ __forceinline__ bool element(Word one, Word other, int lane, uint64_t index) {
        if (!(Format::finite(one) && Format::finite(other))) return false;
        double r = Format::value(one), c = Format::value(other);
        double error = __dsub_rn(c, r);
        double square = __dmul_rn(error, error), energy = __dmul_rn(r, r);
        errors[lane] = __dadd_rn(errors[lane], square);
        references[lane] = __dadd_rn(references[lane], energy);
        auto from = Format::code(one), to = Format::code(other);
        Steps steps = to > from ? Steps(to) - Steps(from) : Steps(from) - Steps(to);
        distance(steps, to > from);
        double allowed = __dadd_rn(rules.atol, __dmul_rn(rules.rtol, fabs(r)));
        if (Format::zero(one)) allowed = rules.zero_atol;
        if (fabs(r) > allowed) counters.would_fail++;
        if (fabs(error) > allowed && steps > rules.max_steps) {
            counters.outside++;
            first(counters.first_outside, index);
        }
        max_error = fabs(error) > max_error ? fabs(error) : max_error;
        if (steps != 0) {
            if (counters.first_different > index) counters.first_different = index;
            if (square != 0) octave(square);
        }
        if (Format::zero(other)) zero(one, other, energy, lane, index);
        return true;
    }

    __device__ __forceinline__ void zero(Word one, Word other, double energy, int lane, uint64_t index) {
        zeroed[lane] = __dadd_rn(zeroed[lane], energy);
        if (!Format::zero(one)) {
            counters.zeroed++;
        } else if (one != other) {
            counters.zero_signs++;
            first(counters.first_different, index);
        }
    }

    __device__ __forceinline__ void end_block(BlockResult* result) {
        int thread = threadIdx.x % GROUP, warp = thread / 32;
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
    int thread = threadIdx.x % GROUP, warp = thread / 32, lane = thread % 32;
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
    for (int bin = thread; bin < OCTAVES; bin += GROUP) {
        uint64_t sum = 0;
        for (int copy = 0; copy < COPIES; copy++) {
            sum += shared.octaves[bin][copy];
            shared.octaves[bin][copy] = 0;
        }
        add(totals, OCTAVE + bin, sum);
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

template <typename Format, int UNROLL>
__device__ __forceinline__ void compare(const typename Format::Word* reference,
                        const typename Format::Word* candidate, uint64_t elements,
                        const Rules& rules, uint64_t* totals, BlockResult* results) {
    __shared__ Shared<Format> shared;
    for (int pair = 0; pair < Shared<Format>::PAIRS; pair++)
        shared.histogram[pair][threadIdx.x] = 0;
    for (int at = threadIdx.x; at < OCTAVES * COPIES; at += GROUP)
        shared.octaves[at / COPIES][at % COPIES] = 0;
    if (threadIdx.x < 16) shared.classes[threadIdx.x] = 0;
    __syncthreads();
    Scan<Format> scan(rules, shared);
    uint64_t blocks = (elements + BLOCK - 1) / BLOCK;
    int since_flush = 0;
    for (uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
        scan.begin_block();
        uint64_t start = block * BLOCK + PER_THREAD * threadIdx.x;
#pragma unroll 1
        for (int row = 0; row < ROWS; row += UNROLL) {
            Four<typename Format::Word> one[UNROLL], other[UNROLL];
#pragma unroll
            for (int ahead = 0; ahead < UNROLL; ahead++) {
                uint64_t index = start + (row + ahead) * LANES;
                one[ahead] = load(reference, index, elements);
                other[ahead] = load(candidate, index, elements);
            }
            uint32_t apart = 0;
#pragma unroll
            for (int at = 0; at < UNROLL * PER_THREAD; at++) {
                int ahead = at / PER_THREAD, lane = at % PER_THREAD;
                uint64_t index = start + (row + ahead) * LANES + lane;
                if (!scan.element(one[ahead].words[lane], other[ahead].words[lane], lane, index))
                    apart |= 1u << at;
            }
            for (; apart != 0; apart &= apart - 1) {
                int at = __ffs(apart) - 1;
                uint64_t index = start + (row + at / PER_THREAD) * LANES + at % PER_THREAD;
                scan.set_apart(reference[index], candidate[index], index);
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

#define COMPARE(NAME, FORMAT, UNROLL)                                                              \
    extern "C" __global__ void __launch_bounds__(GROUP)                                            \
        NAME(const FORMAT::Word* reference, const FORMAT::Word* candidate, uint64_t elements,      \
             double atol, double rtol, double zero_atol, uint64_t max_steps, uint32_t equal_nan,   \
             uint64_t* totals, BlockResult* results) {                                             \
        Rules rules = {atol, rtol, zero_atol, max_steps, equal_nan};                               \
        compare<FORMAT, UNROLL>(reference, candidate, elements, rules, totals, results);           \
    }

COMPARE(compare_f32, F32, 2)
COMPARE(compare_f16, F16, 4)
COMPARE(compare_bf16, Bf16, 4)
COMPARE(compare_f64, F64, 1)
