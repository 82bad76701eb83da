//! What a device says about itself and about one kernel.

/// A device's name, limits and sizes. Everything a launch is checked against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceFacts {
    /// What the maker calls it: `NVIDIA H200`.
    pub name: String,
    /// `emulator` or `cuda`; a fault-injecting wrapper says `fault`.
    pub backend: String,
    /// The architecture as compilers spell it: `sm_90`.
    pub architecture: String,
    /// The driver's version, where there is a driver: `CUDA 13.0`.
    pub driver: Option<String>,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// The most threads of a block.
    pub max_threads_per_block: u32,
    /// The most threads of a block along x, y and z.
    pub max_block: [u32; 3],
    /// The most blocks of a grid along x, y and z.
    pub max_grid: [u64; 3],
    /// Shared memory of a block without asking for more, in bytes.
    pub shared_per_block: u32,
    /// Shared memory of a block at most, when a kernel opts in, in bytes.
    pub shared_per_block_opt_in: u32,
    /// 32-bit registers of a block.
    pub registers_per_block: u32,
    /// What the blocks on one multiprocessor share, where a device allots it.
    pub multiprocessor: Option<MultiprocessorFacts>,
    /// Device memory, in bytes.
    pub memory_bytes: u64,
}

/// What the blocks on one multiprocessor share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiprocessorFacts {
    /// The most threads at a time.
    pub threads: u32,
    /// The most blocks at a time.
    pub blocks: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Shared memory, in bytes.
    pub shared_bytes: u32,
    /// Shared memory that the driver keeps of each block, in bytes.
    pub reserved_shared_bytes: u32,
}

impl DeviceFacts {
    /// The architecture's number: 90 of `sm_90`. `None` where it has none.
    pub fn architecture_number(&self) -> Option<u32> {
        let digits = self.architecture.strip_prefix("sm_")?;
        digits.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()
    }
}

/// What a device says about one kernel of a loaded module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelFacts {
    /// 32-bit registers of one thread, 0 where the device does not allot any.
    pub registers: u32,
    /// Shared memory that the kernel itself declares, in bytes.
    pub static_shared: u32,
    /// The most threads a block may have, from the kernel's launch bounds and the device.
    pub max_threads: u32,
    /// Local memory of one thread (spills, arrays on the stack), in bytes.
    pub local_bytes: u32,
    /// The size of each parameter in order, in bytes, where the device can tell.
    pub parameter_sizes: Option<Vec<usize>>,
}
