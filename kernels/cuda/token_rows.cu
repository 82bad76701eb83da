// Rows of an affinely quantised table, gathered by token: out[t] = code * scale + bias of the row
// tokens[t], in MLX's layout (affine_gemv.cu), in bf16. Each form rounds where it says, no more and
// no less: a row is the same bytes wherever it is made.
#include "common.cuh"

constexpr int kThreads = 128;
// Codes that a thread takes at a time; they fill as many bytes as a code has bits.
constexpr unsigned kCodes = 8;
constexpr unsigned kGroup = 32;

// Where a row is rounded to bf16 on its way, besides the end.
enum class Form {
    kOnce,    // bf16(code * scale + bias)
    kSteps,   // bf16(bf16(code * scale) + bias)
    kScaled,  // bf16(bf16(code * scale + bias) * factor)
};

__device__ static float rounded(float value) { return widen(__float2bfloat16_rn(value)); }

// A rounding point, which a fault drops.
__device__ static float point(float value) {
    return fault("rounding_dropped") ? value : rounded(value);
}

// The bits of eight codes, the first lowest.
template <unsigned Bits>
__device__ static uint64_t load_codes(const uint16_t* from) {
    uint64_t bits = 0;
#pragma unroll
    for (unsigned i = 0; i < Bits / 2; ++i) bits |= static_cast<uint64_t>(from[i]) << (16 * i);
    return bits;
}

// A code's value. Its product with the scale is exact in fp32.
template <Form form>
__device__ static float value(unsigned code, float scale, float bias, float factor) {
    const float product = static_cast<float>(code) * scale;
    if constexpr (form == Form::kSteps) return point(product) + bias;
    if constexpr (fault("rounding_added")) return rounded(product) + bias;
    if constexpr (form == Form::kOnce) return product + bias;
    if constexpr (fault("scale_folded")) {
        return static_cast<float>(code) * rounded(scale * factor) + rounded(bias * factor);
    }
    return point(product + bias) * factor;
}

// One block a token. `cols` is a multiple of the group.
template <unsigned Bits, Form form>
__device__ static void token_row(const int* tokens, const uint16_t* w,
                                 const __nv_bfloat16* scales, const __nv_bfloat16* biases,
                                 float factor, __nv_bfloat16* out, unsigned cols) {
    const unsigned token = tokens[blockIdx.x];
    const uint16_t* codes = row_start(w, token, cols / 16 * Bits);
    const unsigned scaled = fault("off_by_one_row") && token > 0 ? token - 1 : token;
    const __nv_bfloat16* row_scales = row_start(scales, scaled, cols / kGroup);
    const __nv_bfloat16* row_biases = row_start(biases, token, cols / kGroup);
    __nv_bfloat16* outputs = row_start(out, blockIdx.x, cols);
    const bool aligned = rows_aligned<kCodes>(out, cols);

    const unsigned end = fault("past_the_end") ? cols + 1 : cols;
    for (unsigned c = threadIdx.x * kCodes; c < end; c += kThreads * kCodes) {
        const unsigned group = (fault("wrong_group") ? c % (kThreads * kCodes) : c) / kGroup;
        const float scale = widen(row_scales[group]);
        const float bias = widen(row_biases[group]);
        const uint64_t bits = load_codes<Bits>(codes + c / 16 * Bits + c / 8 % 2 * (Bits / 2));
        Pack<kCodes> pack;
#pragma unroll
        for (unsigned i = 0; i < kCodes; ++i) {
            const unsigned code = static_cast<unsigned>(bits >> (i * Bits)) & ((1u << Bits) - 1);
            pack.at[i] = value<form>(code, scale, bias, factor);
        }
        store(pack, outputs, c, cols, aligned);
    }
}

#define TOKEN_ROWS(name, bits, form)                                                              \
    extern "C" __global__ void __launch_bounds__(kThreads)                                        \
    name(const int* __restrict__ tokens, const uint16_t* __restrict__ w,                          \
         const __nv_bfloat16* __restrict__ scales, const __nv_bfloat16* __restrict__ biases,      \
         __nv_bfloat16* __restrict__ out, unsigned cols) {                                        \
        token_row<bits, form>(tokens, w, scales, biases, 1.0f, out, cols);                        \
    }

TOKEN_ROWS(token_rows_4bit_bf16, 4, Form::kOnce)
TOKEN_ROWS(token_rows_6bit_bf16, 6, Form::kOnce)
TOKEN_ROWS(token_rows_steps_4bit_bf16, 4, Form::kSteps)

// As above, each value times one bf16 factor for the whole table.
extern "C" __global__ void __launch_bounds__(kThreads)
token_rows_scaled_4bit_bf16(const int* __restrict__ tokens, const uint16_t* __restrict__ w,
                            const __nv_bfloat16* __restrict__ scales,
                            const __nv_bfloat16* __restrict__ biases,
                            const __nv_bfloat16* __restrict__ factor,
                            __nv_bfloat16* __restrict__ out, unsigned cols) {
    token_row<4, Form::kScaled>(tokens, w, scales, biases, widen(*factor), out, cols);
}
