// Answers each line of numbers on its input with what NVIDIA's calculator says: the blocks of a
// multiprocessor, and the bits of what limits them. `occupancy.rs` compiles and feeds it.
#include <cuda_occupancy.h>

#include <climits>
#include <cstdio>

int main() {
    cudaOccDeviceProp chip;
    cudaOccFuncAttributes kernel;
    cudaOccDeviceState state;
    chip.numSms = 1;
    kernel.maxThreadsPerBlock = INT_MAX;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    int block;
    size_t dynamic;
    while (std::scanf("%d %d %d %d %d %d %d %zu %zu %zu %zu %d %zu %zu %d %d", &chip.computeMajor,
                      &chip.computeMinor, &chip.maxThreadsPerBlock,
                      &chip.maxThreadsPerMultiprocessor, &chip.regsPerBlock,
                      &chip.regsPerMultiprocessor, &chip.warpSize, &chip.sharedMemPerBlock,
                      &chip.sharedMemPerMultiprocessor, &chip.sharedMemPerBlockOptin,
                      &chip.reservedSharedMemPerBlock, &kernel.numRegs, &kernel.sharedSizeBytes,
                      &dynamic, &kernel.numBlockBarriers, &block) == 16) {
        kernel.maxDynamicSharedSizeBytes = dynamic;
        cudaOccResult result;
        cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &chip, &kernel,
                                                                     &state, block, dynamic);
        if (error != CUDA_OCC_SUCCESS) {
            std::printf("-1 %d\n", static_cast<int>(error));
            continue;
        }
        std::printf("%d %u\n", result.activeBlocksPerMultiprocessor, result.limitingFactors);
    }
}
