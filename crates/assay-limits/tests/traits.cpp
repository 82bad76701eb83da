// Writes NVIDIA's own table of what each architecture has, a line a chip. `occupancy.rs` compares.
#include <cuda/__device/arch_traits.h>

#include <cstdio>

template <cuda::arch_id Arch>
void row(const char* name) {
    constexpr auto chip = cuda::arch_traits<Arch>();
    std::printf("%s %d %d %d %d %d %d %d %d %d %d %d %d %d %zu %zu %zu %zu %d\n", name,
                chip.max_grid_dim_x, chip.max_grid_dim_y, chip.max_grid_dim_z,
                chip.max_block_dim_x, chip.max_block_dim_y, chip.max_block_dim_z,
                chip.max_threads_per_block, chip.warp_size, chip.max_warps_per_multiprocessor,
                chip.max_blocks_per_multiprocessor, chip.max_registers_per_multiprocessor,
                chip.max_registers_per_block, chip.max_registers_per_thread,
                chip.max_shared_memory_per_multiprocessor, chip.max_shared_memory_per_block,
                chip.max_shared_memory_per_block_optin, chip.reserved_shared_memory_per_block,
                static_cast<int>(chip.cluster_supported));
}

int main() {
    row<cuda::arch_id::sm_80>("sm_80");
    row<cuda::arch_id::sm_86>("sm_86");
    row<cuda::arch_id::sm_87>("sm_87");
    row<cuda::arch_id::sm_89>("sm_89");
    row<cuda::arch_id::sm_90>("sm_90");
    row<cuda::arch_id::sm_100>("sm_100");
    row<cuda::arch_id::sm_103>("sm_103");
    row<cuda::arch_id::sm_120>("sm_120");
    row<cuda::arch_id::sm_121>("sm_121");
}
