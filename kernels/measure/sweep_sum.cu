// One sum of rows in several configurations, for a sweep: threads of a block, elements of a load.
// The one of 32 threads is planted: it is the fastest, since it reads half of each row, and wrong.

#include <cstdint>

template <int THREADS>
__device__ float block_sum(float sum) {
    __shared__ float partial[THREADS / 32];
    for (int offset = 16; offset > 0; offset /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x % 32 == 0) {
        partial[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < THREADS / 32; ++warp) {
        total += partial[warp];
    }
    return total;
}

template <int THREADS, int WIDTH>
__device__ void row_sum(const float* x, float* y, int cols) {
    const float* row = x + (int64_t)blockIdx.x * cols;
    int end = THREADS == 32 ? cols / 2 : cols;
    float sum = 0.0f;
    if (WIDTH == 4) {
        // Rows of a multiple of four elements start at multiples of 16 bytes.
        auto wide = reinterpret_cast<const float4*>(row);
        for (int i = threadIdx.x; i < end / 4; i += THREADS) {
            float4 four = wide[i];
            sum += (four.x + four.y) + (four.z + four.w);
        }
    } else {
        for (int i = threadIdx.x; i < end; i += THREADS) {
            sum += row[i];
        }
    }
    float total = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = total;
    }
}

#define CONFIGURATION(threads, width)                                                         \
    extern "C" __global__ void __launch_bounds__(threads)                                     \
        sweep_sum_##threads##_##width(const float* x, float* y, int cols) {                   \
        row_sum<threads, width>(x, y, cols);                                                  \
    }

CONFIGURATION(32, 1)
CONFIGURATION(32, 4)
CONFIGURATION(64, 1)
CONFIGURATION(64, 4)
CONFIGURATION(128, 1)
CONFIGURATION(128, 4)
CONFIGURATION(256, 1)
CONFIGURATION(256, 4)
CONFIGURATION(512, 1)
CONFIGURATION(512, 4)
CONFIGURATION(1024, 1)
CONFIGURATION(1024, 4)
