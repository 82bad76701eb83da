// Row dots whose sums are not fp32, on purpose.
#include "../common.cuh"

#include <cuda_fp16.h>

constexpr int kThreads = 256;

__device__ static void convert(float value, __half* to) { *to = __float2half_rn(value); }
__device__ static void convert(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }

struct Add {
    template <typename T>
    __device__ T operator()(T a, T b) const {
        return __hadd(a, b);
    }
};

// A thread's part of the row's dot: fp32 products, summed in T.
template <typename T>
__device__ static T partial_dot(const float* left, const float* right, unsigned cols) {
    T sum;
    convert(0.0f, &sum);
    for (unsigned c = threadIdx.x; c < cols; c += kThreads) {
        T product;
        convert(left[c] * right[c], &product);
        sum = __hadd(sum, product);
    }
    return sum;
}

// Fault: the whole sum is carried in fp16.
extern "C" __global__ void __launch_bounds__(kThreads)
row_dot_in_half_f32(const float* __restrict__ a, const float* __restrict__ b,
                    float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const __half sum =
        partial_dot<__half>(row_start(a, row, cols), row_start(b, row, cols), cols);
    const __half total = block_reduce<kThreads>(sum, Add());
    if (threadIdx.x == 0) y[row] = __half2float(total);
}

// Fault: the whole sum is carried in bf16.
extern "C" __global__ void __launch_bounds__(kThreads)
row_dot_in_bf16_f32(const float* __restrict__ a, const float* __restrict__ b,
                    float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const __nv_bfloat16 sum =
        partial_dot<__nv_bfloat16>(row_start(a, row, cols), row_start(b, row, cols), cols);
    const __nv_bfloat16 total = block_reduce<kThreads>(sum, Add());
    if (threadIdx.x == 0) y[row] = __bfloat162float(total);
}

// Fault: each thread sums in fp16; only the tree over the threads is fp32.
extern "C" __global__ void __launch_bounds__(kThreads)
row_dot_half_partials_f32(const float* __restrict__ a, const float* __restrict__ b,
                          float* __restrict__ y, unsigned rows, unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const __half sum =
        partial_dot<__half>(row_start(a, row, cols), row_start(b, row, cols), cols);
    const float total = block_reduce<kThreads>(__half2float(sum), Sum());
    if (threadIdx.x == 0) y[row] = total;
}
