// Kernels with something of everything that an image says of a kernel.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CLUSTER __cluster_dims__(2, 1, 1)
#define REQUIRED __block_size__((64, 2, 1))
#else
#define CLUSTER
#define REQUIRED
#endif

extern "C" __global__ void row_sum(const float* x, float* y, int n) {
    __shared__ float part[256];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < n; i++) sum += part[i & 255];
        y[0] = sum;
    }
}

extern "C" __global__ void plain(float* y) { y[threadIdx.x] = 1; }

extern "C" __global__ void __launch_bounds__(256, 2) bounded(float* y, double z) {
    y[threadIdx.x] = z;
}

extern "C" __global__ void REQUIRED required(float* y) { y[threadIdx.x] = 3; }

extern "C" __global__ void CLUSTER cluster(float* y) {
    __shared__ float part[16];
    part[threadIdx.x & 15] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = part[0];
}

extern __shared__ float dynamic_part[];
extern "C" __global__ void dynamic(float* y) {
    dynamic_part[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = dynamic_part[threadIdx.x ^ 1];
}

extern "C" __global__ void stack(float* y, int n) {
    volatile float kept[40];
    for (int i = 0; i < n; i++) kept[i] = y[i];
    y[0] = kept[n - 3];
}

struct Large {
    float values[2000];
};
extern "C" __global__ void large_parameters(const __grid_constant__ Large large, float* y) {
    y[threadIdx.x] = large.values[threadIdx.x];
}
