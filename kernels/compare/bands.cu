// Bands of reduction order: how far each element moves over the outputs for shuffled inputs, and
// where a candidate lies in its band.
//
// All values come as fp64. Sums over elements are taken block by block of 4096: thread t adds the
// elements t, t + 128 and so on, then neighbours are added, as on the CPU; the host adds the
// blocks.

#include "worst.cuh"

constexpr int BAND_GROUP = 128, BAND_BLOCK = 4096;
// Deviations from zero at which no order turns a sign.
constexpr double CLEAR = 16;

// The places of the totals' words; the host has the same list. All begin as zeros, so that the
// first indices are kept as their complements.
enum BandPlace {
    BAND_FINITE,
    BAND_WIDEST,
    BAND_OUTSIDE,
    BAND_NOT_FIRST_OUTSIDE,
    BAND_OTHER_CLASS,
    BAND_NOT_FIRST_OTHER,
    BAND_WOULD_FAIL,
    BAND_NONZERO,
    BAND_MAX_RATIO
};

// The steps of a format between neighbouring values.
struct Steps64 {
    uint32_t is_float;
    double least_normal, largest, roundoff, least_subnormal;

    __device__ __forceinline__ double at(double magnitude) const {
        if (!is_float) return 1;
        magnitude = fmin(fmax(fabs(magnitude), least_normal), largest);
        int exponent = (__double2hiint(magnitude) >> 20 & 0x7ff) - 1023;
        return fmax(__dmul_rn(scalbn(1.0, exponent + 1), roundoff), least_subnormal);
    }
};

// Values of one element, `stride` apart.
struct Column {
    const double* values;
    uint64_t stride;
    uint32_t count;
    __device__ __forceinline__ double operator[](uint32_t at) const { return values[at * stride]; }
};

struct Band {
    double mean, spread;
    // The classes seen, a bit each.
    uint32_t classes;

    __device__ __forceinline__ bool is_finite() const { return classes == 1; }
    // Which way from zero the element lies, where its order cannot turn that round.
    __device__ __forceinline__ double side() const {
        return fabs(mean) > __dmul_rn(CLEAR, spread) ? copysign(1.0, mean) : 0;
    }
};

extern "C" __global__ void __launch_bounds__(BAND_GROUP)
    band_spread(const double* values, uint64_t stride, uint32_t shuffles, uint64_t count,
                uint32_t is_float, double least_normal, double largest, double roundoff,
                double least_subnormal, Band* bands, uint64_t* totals) {
    uint64_t element = uint64_t(blockIdx.x) * BAND_GROUP + threadIdx.x;
    Band band = {0, 0, 0};
    double widest = 0;
    if (element < count) {
        Steps64 steps = {is_float, least_normal, largest, roundoff, least_subnormal};
        Column all = {values + element, stride, shuffles};
        double sum = -0.0, square = -0.0;
        for (uint32_t at = 0; at < shuffles; at++) {
            sum = __dadd_rn(sum, all[at]);
            band.classes |= 1u << class_of(all[at]);
        }
        band.mean = __ddiv_rn(sum, double(shuffles));
        for (uint32_t at = 0; at < shuffles; at++) {
            double distance = __dsub_rn(all[at], band.mean);
            square = __dadd_rn(square, __dmul_rn(distance, distance));
        }
        double deviation = __dsqrt_rn(__ddiv_rn(square, double(shuffles) - 1));
        double ulp = steps.at(band.mean);
        band.spread = is_float ? fmax(deviation, 0.5 * ulp) : deviation;
        bands[element] = band;
        if (band.is_finite() && band.spread > 0) widest = __ddiv_rn(band.spread, ulp);
    }
    uint32_t finite = __popc(__ballot_sync(~0u, band.is_finite()));
    uint64_t most = max_of_warp(widest > 0 ? bits_of_magnitude(widest) : 0);
    if (threadIdx.x % 32 != 0) return;
    add(totals, BAND_FINITE, finite);
    atomicMax((unsigned long long*)&totals[BAND_WIDEST], (unsigned long long)most);
}

// The distance from the mean in half widths of the band.
static __device__ __forceinline__ double ratio_of(double error, double half_width) {
    if (error == 0) return 0;
    return half_width > 0 ? __ddiv_rn(fabs(error), half_width)
                          : __longlong_as_double(0x7ff0000000000000);
}

// What a thread finds of a candidate.
struct BandCounters {
    uint64_t first_outside = NONE, first_other = NONE, max_ratio = 0;
    uint32_t outside = 0, other = 0, would_fail = 0, nonzero = 0;

    // The distance in half widths, and in deviations where it counts for a lean.
    __device__ __forceinline__ double look(const Band& band, double value, double z, uint64_t index,
                                           double& error) {
        error = 0;
        if ((band.classes >> class_of(value) & 1) == 0) {
            other++;
            first(first_other, index);
        }
        if (!band.is_finite()) return 0;
        double half_width = __dmul_rn(z, band.spread);
        nonzero += band.mean != 0;
        would_fail += ratio_of(band.mean, half_width) > 1;
        if (class_of(value) != 0) return 0;
        error = __dsub_rn(value, band.mean);
        double ratio = ratio_of(error, half_width);
        if (ratio > 1) {
            outside++;
            first(first_outside, index);
            error = 0;
        }
        if (ratio > 0) max_ratio = max(max_ratio, bits_of_magnitude(ratio));
        return ratio;
    }

    __device__ __forceinline__ void give(uint64_t* totals) const {
        const uint64_t sums[4] = {outside, other, would_fail, nonzero};
        const int places[4] = {BAND_OUTSIDE, BAND_OTHER_CLASS, BAND_WOULD_FAIL, BAND_NONZERO};
        const uint64_t largest[3] = {~first_outside, ~first_other, max_ratio};
        const int tops[3] = {BAND_NOT_FIRST_OUTSIDE, BAND_NOT_FIRST_OTHER, BAND_MAX_RATIO};
        for (int at = 0; at < 4; at++) {
            uint64_t sum = sum_of_warp(sums[at]);
            if (threadIdx.x % 32 == 0) add(totals, places[at], sum);
        }
        for (int at = 0; at < 3; at++) {
            uint64_t most = max_of_warp(largest[at]);
            if (threadIdx.x % 32 == 0)
                atomicMax((unsigned long long*)&totals[tops[at]], (unsigned long long)most);
        }
    }
};

// The sum of the threads' values, as a tree of neighbours.
static __device__ __forceinline__ double sum_of_group(double* room, double sum) {
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2)
        sum = __dadd_rn(sum, __shfl_xor_sync(~0u, sum, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = sum;
    __syncthreads();
    return __dadd_rn(__dadd_rn(room[0], room[1]), __dadd_rn(room[2], room[3]));
}

// How far each output of a shuffle leans over a block, and the candidate behind them, which is
// looked at too: group x has the block, y the output. `first_index` is that of the piece.
extern "C" __global__ void __launch_bounds__(BAND_GROUP)
    band_judge(const double* values, uint64_t stride, uint32_t shuffles, uint64_t count, double z,
               uint64_t first_index, uint32_t worst, const Band* bands, double* ratios,
               double* sums, uint64_t* lists, uint64_t* totals) {
    __shared__ double room[4];
    __shared__ Best<uint64_t> bests[2][BAND_GROUP / 32];
    bool is_candidate = blockIdx.y == shuffles;
    values += blockIdx.y * stride;
    uint64_t from = uint64_t(blockIdx.x) * BAND_BLOCK;
    uint32_t present = uint32_t(min(count - from, uint64_t(BAND_BLOCK)));
    BandCounters counters;
    double lean = 0, outward = 0;
#pragma unroll 1
    for (uint32_t at = threadIdx.x; at < present; at += BAND_GROUP) {
        uint64_t element = from + at;
        Band band = bands[element];
        double error = __dsub_rn(values[element], band.mean);
        if (is_candidate)
            ratios[element] =
                counters.look(band, values[element], z, first_index + element, error);
        bool counts = band.is_finite() && band.spread > 0 && error != 0;
        if (!counts) continue;
        double distance = __ddiv_rn(error, band.spread);
        lean = __dadd_rn(lean, distance);
        outward = __dadd_rn(outward, __dmul_rn(band.side(), distance));
    }
    lean = sum_of_group(room, lean);
    outward = sum_of_group(room, outward);
    if (threadIdx.x == 0) {
        double* mine = sums + 2 * (uint64_t(blockIdx.y) * gridDim.x + blockIdx.x);
        mine[0] = lean;
        mine[1] = outward;
    }
    if (!is_candidate) return;
    counters.give(totals);
    auto best = choose<BAND_GROUP / 32, uint64_t>(bests, worst, [&](Best<uint64_t> last) {
        auto mine = Best<uint64_t>::none();
        for (uint32_t at = threadIdx.x; at < present; at += BAND_GROUP) {
            double ratio = ratios[from + at];
            mine.take({ratio > 0 ? bits_of_magnitude(ratio) : 0, at + 1}, last);
        }
        return mine;
    });
    if (threadIdx.x >= worst) return;
    uint64_t* list = lists + 4 * (uint64_t(blockIdx.x) * worst + threadIdx.x);
    list[0] = best.key;
    if (best.key == 0) return;
    uint64_t element = from + best.place - 1;
    list[1] = first_index + element;
    list[2] = uint64_t(__double_as_longlong(values[element]));
    list[3] = uint64_t(__double_as_longlong(bands[element].mean));
}
