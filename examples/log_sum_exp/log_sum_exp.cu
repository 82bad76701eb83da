// y[r] = log(sum over c of exp(x[r, c])), a block of 256 threads a row, without overflow: the
// exponentials are taken relative to the row's largest element.
#include "../../kernels/cuda/faults.cuh"

constexpr int kThreads = 256;

// NaN if either side is NaN; fmaxf would drop it.
__device__ float max_nan(float a, float b) {
    if constexpr (fault("fmax_for_max")) return fmaxf(a, b);
    return a != a ? a : (a > b ? a : b);
}

// Folds the 256 values of a block; every thread gets the result.
template <typename Op>
__device__ float block_reduce(float value, float* shared, Op op) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (int width = kThreads / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) {
            shared[threadIdx.x] = op(shared[threadIdx.x], shared[threadIdx.x + width]);
        }
        if constexpr (!fault("missing_barrier")) __syncthreads();
    }
    const float result = shared[0];
    __syncthreads();  // Before the next call overwrites the values.
    return result;
}

extern "C" __global__ void log_sum_exp(const float* x, float* y, int cols) {
    __shared__ float shared[kThreads];
    const float* row = x + static_cast<long long>(blockIdx.x) * cols;
    const int last = fault("dropped_tail") ? cols / kThreads * kThreads : cols;

    float largest = fault("max_from_zero") ? 0.0f : -INFINITY;
    for (int c = threadIdx.x; c < last; c += kThreads) largest = max_nan(largest, row[c]);
    largest = block_reduce(largest, shared, max_nan);
    // Relative to an infinity every exponential would be NaN; relative to 0 they are right.
    const float from = isinf(largest) && !fault("unguarded") ? 0.0f : largest;

    float sum = 0.0f;
    for (int c = threadIdx.x; c < last; c += kThreads) sum += expf(row[c] - from);
    sum = block_reduce(sum, shared, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) y[blockIdx.x] = from + logf(sum);
}
