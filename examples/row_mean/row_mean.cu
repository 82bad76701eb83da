// The mean of each row: one block of 256 threads a row.
extern "C" __global__ void row_mean(const float* x, float* y, int cols) {
    __shared__ float partial[8];
    const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) sum += row[c];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int warp = 1; warp < 8; ++warp) sum += partial[warp];
    y[blockIdx.x] = sum / cols;
}
