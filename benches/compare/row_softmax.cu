// The kernel of numba_server.py in CUDA C++: the same statements, thread by thread.
extern "C" __global__ void row_softmax(const float* x, float* y, int columns) {
    __shared__ float partial[256];
    const int row = blockIdx.x, thread = threadIdx.x;
    float largest = -__int_as_float(0x7f800000);
    for (int column = thread; column < columns; column += 256)
        largest = fmaxf(largest, x[row * columns + column]);
    partial[thread] = largest;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (thread < step) partial[thread] = fmaxf(partial[thread], partial[thread + step]);
        __syncthreads();
    }
    largest = partial[0];
    __syncthreads();
    float sum = 0;
    for (int column = thread; column < columns; column += 256)
        sum += expf(x[row * columns + column] - largest);
    partial[thread] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (thread < step) partial[thread] += partial[thread + step];
        __syncthreads();
    }
    sum = partial[0];
    for (int column = thread; column < columns; column += 256)
        y[row * columns + column] = expf(x[row * columns + column] - largest) / sum;
}
