// Fills an array of 32-bit words with one value.

#include <cstdint>

extern "C" __global__ void fill_words(uint32_t* out, uint32_t value, uint64_t count) {
    uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
        out[i] = value;
}
