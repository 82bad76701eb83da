// A router of a mixture of experts: logits of every expert, the k best in the order of ranking.cuh,
// and their weights. One block a token; logits in fp32.
//
// Softmax: the best logits, weighed by a softmax over themselves. Sigmoid: the best of
// sigmoid(logit) + bias, weighed by their sigmoids without bias, divided by the sum of these.
#include "ranking.cuh"

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kPack = 8;
// The selecting warp keeps a key for each expert in registers, this many a lane.
constexpr int kKeys = 4;
constexpr int kMostExperts = kKeys * kWarp;

enum class Form { kSoftmax, kSigmoid };

// One expert's logit, in every lane of the warp.
__device__ static float expert_logit(const __nv_bfloat16* x, const __nv_bfloat16* weights,
                                     unsigned hidden, bool aligned) {
    const unsigned end = fault("dropped_tail") ? hidden / kPack * kPack : hidden;
    float sum = 0.0f;
    for (unsigned c = lane_index() * kPack; c < end; c += kWarp * kPack) {
        const Pack<kPack> p = load<kPack>(x, c, hidden, aligned, 0.0f);
        const Pack<kPack> q = load<kPack>(weights, c, hidden, aligned, 0.0f);
#pragma unroll
        for (unsigned i = 0; i < kPack; ++i) sum = carried(fmaf(p.at[i], q.at[i], sum));
    }
    return lanes_reduce<kWarp>(sum, Sum());
}

// Of the two forms the one whose exponential cannot overflow.
__device__ static float sigmoid(float logit) {
    const float e = __expf(-fabsf(logit));
    return (logit >= 0.0f ? 1.0f : e) / (1.0f + e);
}

// What experts are chosen by.
template <Form F>
__device__ static float selection_score(float logit, float bias) {
    return F == Form::kSoftmax ? logit : sigmoid(logit) + bias;
}

// The k best experts, by one warp: lane j gets the j-th.
__device__ static unsigned select(const float* scores, unsigned experts, unsigned k) {
    uint64_t keys[kKeys];
    const unsigned end = fault("off_by_one_row") && experts > k ? experts - 1 : experts;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
        const unsigned expert = lane_index() + i * kWarp;
        const bool exists = expert < end;
        keys[i] = exists ? ranking::element_key(scores[expert], expert) : ranking::kNone;
    }
    unsigned mine = 0;
    for (unsigned place = 0; place < k; ++place) {
        uint64_t best = keys[0];
#pragma unroll
        for (int i = 1; i < kKeys; ++i) best = best > keys[i] ? best : keys[i];
        best = lanes_reduce<kWarp>(best, Max());
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            if (keys[i] == best) keys[i] = ranking::kNone;
        }
        if (lane_index() == place) mine = ranking::key_index(best);
    }
    return mine;
}

// The weight of each lane's expert, relative to those of the first k lanes; the first has the
// largest logit.
template <Form F>
__device__ static float weigh(float logit, bool chosen) {
    float share = 0.0f;
    if constexpr (F == Form::kSoftmax) {
        const float largest = __shfl_sync(kAllLanes, logit, 0);
        if (chosen) share = __expf(logit - largest);
    } else {
        if (chosen) share = sigmoid(logit);
    }
    const float sum = lanes_reduce<kWarp>(share, Sum());
    return fault("unnormalised") ? share : share / sum;
}

template <Form F>
__device__ void route(const __nv_bfloat16* x, const __nv_bfloat16* w, const float* bias,
                             float* logits, int* chosen, float* weights, unsigned tokens,
                             unsigned hidden, unsigned experts, unsigned k) {
    __shared__ float token_logits[kMostExperts];
    __shared__ float scores[kMostExperts];
    const unsigned token = blockIdx.x;
    if (token >= tokens || experts > kMostExperts || k > kWarp || k > experts) return;
    const __nv_bfloat16* activations = row_start(x, token, hidden);
    const bool aligned = rows_aligned<kPack>(x, hidden) && rows_aligned<kPack>(w, hidden);
    float* token_out = row_start(logits, token, experts);

    for (unsigned e = warp_index(); e < experts; e += kWarps) {
        const float logit = expert_logit(activations, row_start(w, e, hidden), hidden, aligned);
        if (lane_index() != 0) continue;
        token_logits[e] = logit;
        scores[e] = selection_score<F>(logit, bias == nullptr ? 0.0f : bias[e]);
        token_out[e] = logit;
    }
    if constexpr (!fault("missing_barrier")) __syncthreads();
    if (warp_index() != 0) return;  // One warp is enough for a few experts.

    const unsigned expert = select(scores, experts, k);
    const bool is_chosen = lane_index() < k;
    const float weight = weigh<F>(token_logits[expert], is_chosen);
    if (is_chosen) {
        row_start(chosen, token, k)[lane_index()] = static_cast<int>(expert);
        row_start(weights, token, k)[lane_index()] = weight;
    }
}

extern "C" __global__ void __launch_bounds__(kThreads)
router_softmax_bf16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                    float* __restrict__ logits, int* __restrict__ chosen,
                    float* __restrict__ weights, unsigned tokens, unsigned hidden,
                    unsigned experts, unsigned k) {
    route<Form::kSoftmax>(x, w, nullptr, logits, chosen, weights, tokens, hidden, experts, k);
}

extern "C" __global__ void __launch_bounds__(kThreads)
router_sigmoid_bf16(const __nv_bfloat16* __restrict__ x, const __nv_bfloat16* __restrict__ w,
                    const float* __restrict__ bias, float* __restrict__ logits,
                    int* __restrict__ chosen, float* __restrict__ weights, unsigned tokens,
                    unsigned hidden, unsigned experts, unsigned k) {
    route<Form::kSigmoid>(x, w, bias, logits, chosen, weights, tokens, hidden, experts, k);
}
