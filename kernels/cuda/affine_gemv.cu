// An affinely quantised matrix times a vector, y = W x with W[m, c] = code * scale + bias, in MLX's
// layout: a row's codes are one little-endian stream of bits, and each group of neighbouring codes
// has a scale and a bias. One warp a row, fp32 sums, in the factored form: a lane's 32 codes give
// scale * sum(code * x) + bias * sum(x).
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kRowsPerBlock = kThreads / kWarp;
// Codes that a lane takes at a time; they fill as many words as a code has bits.
constexpr unsigned kCodes = 32;
constexpr unsigned kTile = kWarp * kCodes;

// The words that hold 32 codes.
template <unsigned Bits>
struct Words {
    unsigned at[Bits];
};

// The widest access that divides a lane's words.
template <unsigned Bits>
constexpr unsigned kWordsPerLoad = Bits % 4 == 0 ? 4 : Bits % 2 == 0 ? 2 : 1;

template <unsigned Bits>
__device__ static Words<Bits> load_words(const unsigned* from, bool aligned) {
    constexpr unsigned kStep = kWordsPerLoad<Bits>;
    Words<Bits> words;
#pragma unroll
    for (unsigned i = 0; i < Bits; i += kStep) {
        if (kStep == 4 && aligned) {
            const uint4 raw = *reinterpret_cast<const uint4*>(from + i);
            words.at[i] = raw.x, words.at[i + 1] = raw.y;
            words.at[i + 2] = raw.z, words.at[i + 3] = raw.w;
        } else if (kStep == 2 && aligned) {
            const uint2 raw = *reinterpret_cast<const uint2*>(from + i);
            words.at[i] = raw.x, words.at[i + 1] = raw.y;
        } else {
#pragma unroll
            for (unsigned j = i; j < i + kStep; ++j) words.at[j] = from[j];
        }
    }
    return words;
}

// Code `i` of a lane's 32. One of 3, 5 or 6 bits may begin in one word and end in the next.
template <unsigned Bits>
__device__ static unsigned code(const Words<Bits>& words, unsigned i) {
    const unsigned word = i * Bits / 32;
    const unsigned shift = i * Bits % 32;
    unsigned bits = words.at[word] >> shift;
    if (shift + Bits > 32) {
        bits |= words.at[word + 1] << (fault("bits_across_words") ? 31 - shift : 32 - shift);
    }
    return bits & ((1u << Bits) - 1);
}

// How a code enters the sums, and what that adds to it. `Offset` is 128 where the code becomes the
// low bits of a bf16 in [128, 256), one `or` in place of a conversion; the bias makes up for it.
template <unsigned Bits, unsigned Offset>
__device__ static float entered(unsigned code) {
    if constexpr (fault("code_sign")) {
        return static_cast<float>(static_cast<int>(code << (32 - Bits)) >> (32 - Bits));
    }
    if constexpr (Offset == 128) return __uint_as_float(0x43000000u | code << 16);
    return static_cast<float>(code);
}

// The sums of code * x and of x over a lane's 32 codes.
template <unsigned Bits, unsigned Offset>
__device__ static float2 pack_sums(const Words<Bits>& words, const Pack<kCodes>& x) {
    float dot = 0.0f;
    float total = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < kCodes; ++i) {
        dot = carried(fmaf(entered<Bits, Offset>(code(words, i)), x.at[i], dot));
        total += x.at[i];
    }
    return make_float2(dot, total);
}

// `cols` is a multiple of the group, so that a lane's codes lie in one group and end in the row.
template <unsigned Bits, unsigned Group, unsigned Offset, typename Scale, typename Input>
__device__ static void affine_gemv(const unsigned* w, const Scale* scales, const Scale* biases,
                                   const Input* x, float* y, unsigned rows, unsigned cols) {
    static_assert(Group % kCodes == 0, "a lane's codes share a scale and a bias");
    const unsigned row = blockIdx.x * kRowsPerBlock + warp_index();
    if (row >= rows) return;  // A whole warp leaves.
    const unsigned* row_words = row_start(w, row, cols / kCodes * Bits);
    const Scale* row_scales = row_start(scales, row, cols / Group);
    const Scale* row_biases = row_start(biases, row, cols / Group);
    const bool w_aligned = reinterpret_cast<uintptr_t>(w) % (kWordsPerLoad<Bits> * 4) == 0;
    const bool x_aligned = rows_aligned<kCodes>(x, cols);

    float sum = 0.0f;
    for (unsigned c = lane_index() * kCodes; c < cols; c += kTile) {
        const Words<Bits> words = load_words<Bits>(row_words + c / kCodes * Bits, w_aligned);
        const Pack<kCodes> inputs = load<kCodes>(x, c, cols, x_aligned, 0.0f);
        const float2 sums = pack_sums<Bits, Offset>(words, inputs);
        const unsigned group = (fault("wrong_group") ? c % kTile : c) / Group;
        const float scale = widen(row_scales[group]);
        float bias = widen(row_biases[group]);
        if constexpr (Offset > 0 && !fault("bias_not_moved")) {
            bias = fmaf(-static_cast<float>(Offset), scale, bias);
        }
        if (fault("tail_bias_dropped") && c >= kTile) bias = 0.0f;
        sum = fmaf(scale, sums.x, sum);
        sum = carried(fmaf(bias, sums.y, sum));
    }
    sum = lanes_reduce<kWarp>(sum, Sum());
    if (lane_index() == 0) y[row] = sum;
}

// Defines the kernel for codes of `bits` bits in groups of `group`.
#define AFFINE_GEMV(name, bits, group, offset, Scale, Input)                                      \
    extern "C" __global__ void __launch_bounds__(kThreads)                                        \
    name(const unsigned* __restrict__ w, const Scale* __restrict__ scales,                        \
         const Scale* __restrict__ biases, const Input* __restrict__ x, float* __restrict__ y,    \
         unsigned rows, unsigned cols) {                                                          \
        affine_gemv<bits, group, offset>(w, scales, biases, x, y, rows, cols);                    \
    }

// Groups of 32 take fp32 inputs, of 64 bf16 inputs, of 128 fp16 inputs, scales and biases.
#define AFFINE_GEMV_GROUPS(bits)                                                                  \
    AFFINE_GEMV(affine_gemv_##bits##bit_g32, bits, 32, 0, __nv_bfloat16, float)                   \
    AFFINE_GEMV(affine_gemv_##bits##bit_g64, bits, 64, 0, __nv_bfloat16, __nv_bfloat16)           \
    AFFINE_GEMV(affine_gemv_##bits##bit_g128, bits, 128, 0, __half, __half)

AFFINE_GEMV_GROUPS(2)
AFFINE_GEMV_GROUPS(3)
AFFINE_GEMV_GROUPS(4)
AFFINE_GEMV_GROUPS(5)
AFFINE_GEMV_GROUPS(6)
AFFINE_GEMV_GROUPS(8)

// Loses an infinite input that the formula keeps: its codes enter as code + 128 and its biases as
// bias - 128 scale, and infinity less infinity is NaN.
AFFINE_GEMV(affine_gemv_4bit_offset_g64, 4, 64, 128, __nv_bfloat16, __nv_bfloat16)
