// Matrices of 4- and 8-bit floats with scales, times a vector: one warp a row, fp32 sums.
//
// NVFP4: e2m1 codes, an e4m3 scale for 16 of them, one fp32 scale for the matrix. MXFP4: e2m1
// codes, an e8m0 scale for 32 of them (OCP Microscaling Formats 1.0). FP8: e4m3 codes, one fp32
// scale a row. sm_80 converts none of these types, so they are decoded here bit by bit: exactly,
// subnormal numbers and NaNs included.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kRowsPerBlock = kThreads / kWarp;

// A code whose fields are moved to where fp32 has its own is off by the difference of the exponent
// biases alone; one exact product makes that up, for subnormal codes too.
struct E4m3 {
    uint8_t bits;
};

struct E8m0 {
    uint8_t bits;
};

// The value of a 4-bit float in the low bits of `code`: a sign, two exponent bits, a fraction bit.
__device__ static float decode_e2m1(unsigned code) {
    const unsigned sign = (code & 8u) << 28;
    return __uint_as_float(sign | (code & 7u) << 22) * 0x1p126f;
}

// No infinities; all ones below the sign is NaN.
__device__ inline float widen(E4m3 value) {
    const unsigned sign = (value.bits & 0x80u) << 24;
    const unsigned magnitude = value.bits & 0x7fu;
    const float finite = __uint_as_float(sign | magnitude << 20) * 0x1p120f;
    if constexpr (fault("nan_code_finite")) return finite;
    return magnitude == 0x7fu ? __uint_as_float(0x7fffffffu) : finite;
}

// A power of two from 2^-127, which fp32 holds as a subnormal number, to 2^127; 255 is NaN.
__device__ inline float widen(E8m0 value) {
    const unsigned bits = value.bits == 0 ? 0x00400000u : static_cast<unsigned>(value.bits) << 23;
    if constexpr (fault("nan_code_finite")) return __uint_as_float(bits);  // 2^128 is infinite.
    return value.bits == 0xffu ? __uint_as_float(0x7fffffffu) : __uint_as_float(bits);
}

// Four words of a row's codes, byte by byte where they are not aligned.
__device__ static uint4 load_words(const uint8_t* from, bool aligned) {
    if (aligned) return *reinterpret_cast<const uint4*>(from);
    unsigned words[4] = {};
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) {
        words[i / 4] |= static_cast<unsigned>(from[i]) << i % 4 * 8;
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

// Sixteen e4m3 values, as `load` in common.cuh wants them.
__device__ inline Pack<16> load_wide(const E4m3* from) {
    const uint4 raw = load_words(&from->bits, true);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
    Pack<16> pack;
#pragma unroll
    for (unsigned i = 0; i < 16; ++i) {
        pack.at[i] = widen(E4m3{static_cast<uint8_t>(words[i / 4] >> i % 4 * 8)});
    }
    return pack;
}

constexpr unsigned kCodes = 32;  // 4-bit codes that a lane takes at a time: 16 bytes.

// The 32 codes of 16 bytes, the low four bits of a byte first.
__device__ static Pack<kCodes> load_e2m1(const uint8_t* from, bool aligned) {
    const uint4 raw = load_words(from, aligned);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
    Pack<kCodes> pack;
#pragma unroll
    for (unsigned i = 0; i < kCodes; ++i) {
        const unsigned place = fault("high_nibble_first") ? i ^ 1u : i;
        pack.at[i] = decode_e2m1(words[i / 8] >> place % 8 * 4);
    }
    return pack;
}

// Adds the products of one lane's codes, a block at a time: each block's sum is scaled once.
template <unsigned Block, typename Scale>
__device__ static float add_blocks(const Pack<kCodes>& w, const Pack<kCodes>& x,
                                   const Scale* scales, float sum) {
#pragma unroll
    for (unsigned block = 0; block < kCodes; block += Block) {
        float dot = 0.0f;
#pragma unroll
        for (unsigned i = block; i < block + Block; ++i) {
            dot = fmaf(w.at[i], x.at[i], dot);
            if constexpr (fault("half_accumulation")) dot = carried(dot);
        }
        sum = carried(fmaf(widen(scales[block / Block]), dot, sum));
    }
    return sum;
}

// The sum over row `row` of e2m1 codes with a scale for every `Block` of them, in every lane.
// `cols` is a multiple of 32, so that a lane's codes end inside the row.
template <unsigned Block, typename Scale>
__device__ static float e2m1_row(const uint8_t* codes, const Scale* scales,
                                 const __nv_bfloat16* x, unsigned row, unsigned cols) {
    constexpr unsigned kTile = kWarp * kCodes;
    const uint8_t* row_codes = row_start(codes, row, cols / 2);
    const Scale* row_scales = row_start(scales, row, cols / Block);
    const bool aligned = reinterpret_cast<uintptr_t>(codes) % 16 == 0;
    const bool x_aligned = rows_aligned<kCodes>(x, cols);

    float sum = 0.0f;
    for (unsigned c = lane_index() * kCodes; c < cols; c += kTile) {
        if (fault("last_tile_dropped") && c >= kTile) break;
        const Pack<kCodes> w = load_e2m1(row_codes + c / 2, aligned);
        const Pack<kCodes> v = load<kCodes>(x, c, cols, x_aligned, 0.0f);
        const unsigned first = fault("wrong_group") ? c % kTile : c;
        sum = add_blocks<Block>(w, v, row_scales + first / Block, sum);
    }
    return lanes_reduce<kWarp>(sum, Sum());
}

// The row of this warp.
__device__ static unsigned own_row() { return blockIdx.x * kRowsPerBlock + warp_index(); }

// One value a row, written by the first lane.
__device__ static void write(float value, float* y, unsigned row, unsigned rows) {
    if (fault("unwritten_element") && row == rows - 1) return;
    if (lane_index() == 0) y[row] = value;
}

extern "C" __global__ void __launch_bounds__(kThreads)
nvfp4_gemv(const uint8_t* __restrict__ w, const E4m3* __restrict__ scales,
           const float* __restrict__ global_scale, const __nv_bfloat16* __restrict__ x,
           float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = own_row();
    if (row >= rows) return;
    const float sum = e2m1_row<16>(w, scales, x, row, cols);
    write(sum * *global_scale, y, row, rows);
}

extern "C" __global__ void __launch_bounds__(kThreads)
mxfp4_gemv(const uint8_t* __restrict__ w, const E8m0* __restrict__ scales,
           const __nv_bfloat16* __restrict__ x, float* __restrict__ y, unsigned rows,
           unsigned cols) {
    const unsigned row = own_row();
    if (row >= rows) return;
    write(e2m1_row<32>(w, scales, x, row, cols), y, row, rows);
}

// Any number of columns: where rows do not all start on 16 bytes, a lane loads code by code.
extern "C" __global__ void __launch_bounds__(kThreads)
fp8_gemv(const E4m3* __restrict__ w, const float* __restrict__ scales,
         const __nv_bfloat16* __restrict__ x, float* __restrict__ y, unsigned rows,
         unsigned cols) {
    constexpr unsigned kPack = kWide<E4m3>;
    const unsigned row = own_row();
    if (row >= rows) return;
    const E4m3* weights = row_start(w, row, cols);
    const bool aligned = rows_aligned<kPack>(w, cols);
    const bool x_aligned = rows_aligned<kPack>(x, cols);

    float sum = 0.0f;
    for (unsigned c = lane_index() * kPack; c < cols; c += kWarp * kPack) {
        if (fault("last_tile_dropped") && c >= kWarp * kPack) break;
        const Pack<kPack> p = load<kPack>(weights, c, cols, aligned, 0.0f);
        const Pack<kPack> q = load<kPack>(x, c, cols, x_aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) sum = carried(fmaf(p.at[i], q.at[i], sum));
    }
    sum = lanes_reduce<kWarp>(sum, Sum());
    const unsigned scale = fault("off_by_one_row") && row > 0 ? row - 1 : row;
    write(sum * scales[scale], y, row, rows);
}
