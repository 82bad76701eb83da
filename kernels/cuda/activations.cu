// Gated activations: y = act(gate) * up, elementwise.
//
// Array libraries run one operation after the other in bf16, and a model trained or evaluated that
// way expects each rounding. The kernels called `steps` round where such a library does; the ones
// called `once` compute in fp32 and round at the end. SwiGLU takes gate * sigmoid(gate), GeGLU
// takes gate * Phi(gate), with the normal distribution Phi by its tanh approximation or by erf.
#include "common.cuh"

constexpr int kThreads = 256;
constexpr unsigned kPack = 8;

using Bf16 = __nv_bfloat16;

// A rounding point, which a fault may drop.
__device__ static float point(float value, bool dropped) {
    return dropped ? value : rounded<Bf16>(value);
}

// A place without a rounding point, where a fault may add one.
__device__ static float no_point(float value, bool added) {
    return added ? rounded<Bf16>(value) : value;
}

__device__ static float sigmoid(float x) {
    return 1.0f / (1.0f + no_point(expf(-x), fault("exponential_rounded")));
}

struct SwigluSteps {
    __device__ float operator()(float gate, float up) const {
        const float s = point(sigmoid(gate), fault("sigmoid_unrounded"));
        const float silu = point(gate * s, fault("activation_unrounded"));
        return silu * up;
    }
};

struct SwigluOnce {
    __device__ float operator()(float gate, float up) const {
        const float silu = gate / (1.0f + expf(-gate));
        return no_point(silu, fault("activation_rounded")) * up;
    }
};

// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), its constants in bf16 as every operand. Half of
// x needs no rounding: it is exact, but for the least subnormals, which the product rounds alike.
struct GegluTanhSteps {
    __device__ float operator()(float gate, float up) const {
        const float square = no_point(gate * gate, fault("square_rounded"));
        const float cube = point(square * gate, fault("cube_unrounded"));
        const float cubic = point(rounded<Bf16>(0.044715f) * cube, fault("cubic_unrounded"));
        const float inner = point(gate + cubic, fault("inner_unrounded"));
        const float argument =
            point(rounded<Bf16>(0.7978845608f) * inner, fault("argument_unrounded"));
        const float curve = point(tanhf(argument), fault("tanh_unrounded"));
        const float lifted = point(1.0f + curve, fault("lifted_unrounded"));
        const float gelu = point(0.5f * gate * lifted, fault("activation_unrounded"));
        return gelu * up;
    }
};

// x (1 + erf(x / sqrt(2))) / 2; halving the product is exact, as above.
struct GegluErfSteps {
    __device__ float operator()(float gate, float up) const {
        const float argument = point(gate / rounded<Bf16>(1.4142135624f),
                                     fault("argument_unrounded"));
        const float curve = point(erff(argument), fault("erf_unrounded"));
        const float lifted = point(1.0f + curve, fault("lifted_unrounded"));
        const float twice = point(gate * lifted, fault("activation_unrounded"));
        return 0.5f * twice * up;
    }
};

// One pack a thread: `count` elements from `first` on.
template <typename Op>
__device__ static void activate_pack(const Bf16* gate, const Bf16* up, Bf16* y, unsigned first,
                                     unsigned count, bool aligned) {
    const Pack<kPack> gates = load<kPack>(gate, first, count, aligned, 0.0f);
    const Pack<kPack> ups = load<kPack>(up, first, count, aligned, 0.0f);
    Pack<kPack> pack;
#pragma unroll
    for (unsigned i = 0; i < kPack; ++i) {
        pack.at[i] = fault("swapped_operands") ? Op()(ups.at[i], gates.at[i])
                                               : Op()(gates.at[i], ups.at[i]);
    }
    unsigned end = count;
    if constexpr (fault("past_the_end")) end = first + kPack;
    if constexpr (fault("unwritten_element")) end = count - 1;
    store(pack, y, first, end, aligned && !fault("unwritten_element"));
}

// Two arrays of `count` elements.
template <typename Op>
__device__ static void activate(const Bf16* gate, const Bf16* up, Bf16* y, unsigned count) {
    const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * kPack;
    if (first >= (fault("dropped_tail") ? count - count % kPack : count)) return;
    // Only the last pack can be cut short; all others are whole.
    const bool whole = count - first >= kPack;
    const bool aligned = whole && rows_aligned<kPack>(gate, kPack) &&
                         rows_aligned<kPack>(up, kPack) && rows_aligned<kPack>(y, kPack);
    activate_pack<Op>(gate, up, y, first, count, aligned);
}

extern "C" __global__ void __launch_bounds__(kThreads)
swiglu_steps_bf16(const Bf16* __restrict__ gate, const Bf16* __restrict__ up,
                  Bf16* __restrict__ y, unsigned count) {
    activate<SwigluSteps>(gate, up, y, count);
}

extern "C" __global__ void __launch_bounds__(kThreads)
geglu_tanh_steps_bf16(const Bf16* __restrict__ gate, const Bf16* __restrict__ up,
                      Bf16* __restrict__ y, unsigned count) {
    activate<GegluTanhSteps>(gate, up, y, count);
}

extern "C" __global__ void __launch_bounds__(kThreads)
geglu_erf_steps_bf16(const Bf16* __restrict__ gate, const Bf16* __restrict__ up,
                     Bf16* __restrict__ y, unsigned count) {
    activate<GegluErfSteps>(gate, up, y, count);
}

// Rows as a fused projection writes them: `cols` gates, then `cols` ups. A block takes one tile of
// one row.
extern "C" __global__ void __launch_bounds__(kThreads)
swiglu_once_bf16(const Bf16* __restrict__ x, Bf16* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.y;
    const unsigned first = (blockIdx.x * kThreads + threadIdx.x) * kPack;
    if (row >= rows || first >= cols) return;
    const Bf16* gate = row_start(x, row, fault("off_by_one_row") ? cols : 2 * cols);
    const bool aligned = rows_aligned<kPack>(x, cols) && rows_aligned<kPack>(y, cols);
    activate_pack<SwigluOnce>(gate, gate + cols, row_start(y, row, cols), first, cols, aligned);
}
