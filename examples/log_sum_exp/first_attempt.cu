// A first attempt at log(sum(exp(x))) of each row, as kernels like it are written: wrong in two
// ways.
extern "C" __global__ void log_sum_exp(const float* x, float* y, int cols) {
    __shared__ float shared[256];
    const float* row = x + blockIdx.x * cols;
    float largest = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) largest = fmaxf(largest, row[c]);
    shared[threadIdx.x] = largest;
    __syncthreads();
    for (int width = 128; width > 0; width /= 2) {
        if (threadIdx.x < width)
            shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + width]);
        __syncthreads();
    }
    largest = shared[0];
    __syncthreads();
    float sum = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) sum += expf(row[c] - largest);
    shared[threadIdx.x] = sum;
    __syncthreads();
    for (int width = 128; width > 0; width /= 2) {
        if (threadIdx.x < width) shared[threadIdx.x] += shared[threadIdx.x + width];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[blockIdx.x] = largest + logf(shared[0]);
}
