// An online softmax, broken on purpose.
#include "../common.cuh"

constexpr int kThreads = 256;

// Fault: nothing guards a maximum of -Inf, so that a thread whose first values are all -Inf takes
// the difference of two infinities and turns its whole row into NaNs.
extern "C" __global__ void __launch_bounds__(kThreads)
softmax_unguarded_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                      unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    float* outputs = row_start(y, row, cols);

    float maximum = negative_infinity();
    float sum = 0.0f;
    for (unsigned c = threadIdx.x; c < cols; c += kThreads) {
        const float larger = max_nan(maximum, values[c]);
        sum = sum * expf(maximum - larger) + expf(values[c] - larger);
        maximum = larger;
    }
    const float row_maximum = block_reduce<kThreads>(maximum, Max());
    sum = block_reduce<kThreads>(sum * expf(maximum - row_maximum), Sum());
    for (unsigned c = threadIdx.x; c < cols; c += kThreads) {
        outputs[c] = expf(values[c] - row_maximum) / sum;
    }
}
