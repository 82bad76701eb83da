// Row sums that are right, for the controls of gate 5: what is wrong is how they are launched. Each
// passes one limit, on some chips or on all, and controls.toml says which.
#include "../common.cuh"

// The sum of what a block's threads each take from a row.
template <int Threads>
__device__ static float strided_sum(const float* values, unsigned cols) {
    float sum = 0.0f;
    for (unsigned c = threadIdx.x; c < cols; c += Threads) sum += values[c];
    return block_reduce<Threads>(sum, Sum());
}

// Fault of its launch: twice the threads that it is compiled for.
extern "C" __global__ void __launch_bounds__(128)
row_sum_bounded_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                    unsigned cols) {
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float sum = strided_sum<128>(row_start(x, row, cols), cols);
    if (threadIdx.x == 0) y[row] = sum;
}

// Fault of its launch: 1,024 threads, each with the 96 registers that hold its part of the row
// between two passes. Without a bound the compiler expects fewer threads.
extern "C" __global__ void row_sum_held_f32(const float* x, float* __restrict__ y, unsigned rows,
                                            unsigned cols) {
    constexpr int kHeld = 96;
    constexpr int kThreads = 1024;
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    // Volatile, so that nothing is loaded a second time.
    const volatile float* values = row_start(x, row, cols);
    float held[kHeld];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
        const unsigned c = threadIdx.x + i * kThreads;
        held[i] = c < cols ? values[c] : 0.0f;
        sum += held[i];
    }
    const float mean = block_reduce<kThreads>(sum, Sum()) / static_cast<float>(cols);
    float rest = 0.0f;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
        const unsigned c = threadIdx.x + i * kThreads;
        if (c < cols) rest += held[i] - mean;
    }
    rest = block_reduce<kThreads>(rest, Sum());
    if (threadIdx.x == 0) y[row] = mean * static_cast<float>(cols) + rest;
}

// Fault of its launch: a whole row in dynamic shared memory, which not every chip has room for.
extern "C" __global__ void __launch_bounds__(256)
row_sum_staged_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                   unsigned cols) {
    extern __shared__ float staged[];
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    for (unsigned c = threadIdx.x; c < cols; c += 256) staged[c] = values[c];
    __syncthreads();
    const float sum = strided_sum<256>(staged, cols);
    if (threadIdx.x == 0) y[row] = sum;
}

// Fault of its launch: rows along the grid's second axis, which has 65,535 places.
extern "C" __global__ void __launch_bounds__(256)
row_sum_down_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                 unsigned cols) {
    const unsigned row = blockIdx.y;
    if (row >= rows) return;
    const float sum = strided_sum<256>(row_start(x, row, cols), cols);
    if (threadIdx.x == 0) y[row] = sum;
}

// Fault of its launch: 32 KiB of dynamic shared memory beside 40 KiB of its own.
extern "C" __global__ void __launch_bounds__(256)
row_sum_tiled_f32(const float* __restrict__ x, float* __restrict__ y, unsigned rows,
                  unsigned cols) {
    constexpr unsigned kTile = 10 * 1024;
    __shared__ float tile[kTile];
    extern __shared__ float staged[];
    const unsigned row = blockIdx.x;
    if (row >= rows) return;
    const float* values = row_start(x, row, cols);
    for (unsigned c = threadIdx.x; c < cols; c += 256) {
        (c < kTile ? tile[c] : staged[c - kTile]) = values[c];
    }
    __syncthreads();
    float sum = 0.0f;
    for (unsigned c = threadIdx.x; c < cols; c += 256) {
        // From another thread's part of the row, so that the tile has to be shared.
        const unsigned other = cols - 1 - c;
        sum += other < kTile ? tile[other] : staged[other - kTile];
    }
    sum = block_reduce<256>(sum, Sum());
    if (threadIdx.x == 0) y[row] = sum;
}
