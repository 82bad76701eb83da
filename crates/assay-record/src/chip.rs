//! How a kernel's launches fit one chip, as gate 5 stores it.

use serde::{Deserialize, Serialize};

/// What gate 5 found about one kernel on one chip.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChipFit {
    /// The chip: `sm_90`, `gfx1100`, `M1`.
    pub chip: String,
    /// Whose compiles the launches were checked against, such as `nvcc 13.0.88`; none where nothing
    /// is known until the kernel is compiled for the chip.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compiled_by: Vec<String>,
    /// Launches that differ in anything.
    pub launches: u64,
    /// Rules broken: each once for a launch of the kernel, whatever the shapes.
    pub problems: u64,
    /// The launch with the least part of a multiprocessor's warps resident.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<ChipOccupancy>,
    /// What the chip itself says of each of the kernel's symbols, where the run was on one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<LoadedKernel>,
}

/// How many blocks of a launch are resident at once in one place of a chip.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChipOccupancy {
    /// The symbol launched.
    pub symbol: String,
    /// Threads of a block.
    pub block_threads: u64,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u64,
    /// Blocks resident at once.
    pub blocks: u32,
    /// Their warps, or waves.
    pub warps: u32,
    /// The warps, or waves, that the place can hold.
    pub warps_max: u32,
    /// What a place is: a multiprocessor, a compute unit.
    pub place: String,
    /// What leaves no room for one more block.
    pub binding: Vec<String>,
}

/// What a device says about one kernel that it loaded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoadedKernel {
    /// The symbol.
    pub symbol: String,
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Shared memory that the kernel declares, in bytes, as the device counts it.
    pub static_shared_bytes: u32,
    /// Local memory of a thread, in bytes.
    pub local_bytes: u32,
    /// The most threads of a block.
    pub max_threads: u32,
    /// The device's own occupancy of every launch, each with its threads a block and its dynamic
    /// shared bytes.
    pub occupancies: Vec<LoadedOccupancy>,
}

/// The device's count of blocks resident at once on a multiprocessor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoadedOccupancy {
    /// Threads of a block.
    pub block_threads: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u32,
    /// Blocks as the device counts them.
    pub blocks: u32,
}
