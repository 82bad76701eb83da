//! A launch as plain data.

use crate::handle::{BufferId, ModuleId};

/// Instructions a launch may execute before it counts as a hang, where the device counts them:
/// some minutes of emulation, far beyond any launch of the built-in suite.
pub const DEFAULT_INSTRUCTION_BUDGET: u64 = 1 << 34;

/// One launch of one kernel. Start from [`Launch::new`] and set what differs.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch<'a> {
    /// The module that holds the kernel.
    pub module: ModuleId,
    /// The kernel's name as the image spells it.
    pub symbol: &'a str,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Blocks of a cluster along x, y and z; `[1, 1, 1]` for a launch without clusters.
    pub cluster: [u32; 3],
    /// Whether all blocks are to be resident together, as a barrier of the whole grid needs; a
    /// device refuses more blocks than it holds.
    pub cooperative: bool,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The arguments in the order of the kernel's parameters.
    pub arguments: Vec<Argument>,
    /// The order in which blocks and warps run, where the device can choose it. A GPU cannot.
    pub schedule: Schedule,
    /// Instructions before the launch counts as a hang, where the device counts them. A GPU does
    /// not: guard it with a process that can be ended.
    pub instruction_budget: u64,
}

impl<'a> Launch<'a> {
    /// One block of one thread with no arguments, in order.
    pub fn new(module: ModuleId, symbol: &'a str) -> Self {
        Launch {
            module,
            symbol,
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            cooperative: false,
            shared_bytes: 0,
            arguments: Vec::new(),
            schedule: Schedule::InOrder,
            instruction_budget: DEFAULT_INSTRUCTION_BUDGET,
        }
    }

    /// Threads of one block, without overflow.
    pub fn threads_per_block(&self) -> u64 {
        self.block.iter().fold(1, |product: u64, &n| product.saturating_mul(u64::from(n)))
    }
}

/// One argument of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The address of a buffer's first byte.
    Buffer(BufferId),
    /// An address inside a buffer, or just past its end: buffer, bytes from its start.
    BufferOffset(BufferId, u64),
    /// A value, little endian, exactly as many bytes as the parameter has.
    Bytes(Vec<u8>),
}

impl Argument {
    /// A 32-bit integer. Negative values pass as their two's complement.
    pub fn u32(value: u32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// A signed 32-bit integer.
    pub fn i32(value: i32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// A 64-bit integer.
    pub fn u64(value: u64) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// A single-precision number.
    pub fn f32(value: f32) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// A double-precision number.
    pub fn f64(value: f64) -> Argument {
        Argument::Bytes(value.to_le_bytes().to_vec())
    }

    /// The argument's size: 8 for an address.
    pub fn size(&self) -> usize {
        match self {
            Argument::Buffer(_) | Argument::BufferOffset(..) => 8,
            Argument::Bytes(bytes) => bytes.len(),
        }
    }
}

/// The order in which a device that can choose runs blocks and warps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// Ascending.
    #[default]
    InOrder,
    /// Blocks, warps and arrivals descending, within what is resident at one time.
    Reversed,
    /// Drawn from a seed.
    Seeded(u64),
}

/// What a device counted during a launch. A device that counts nothing leaves it empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaunchReport {
    /// Operations of single threads.
    pub lane_operations: Option<u64>,
    /// Instructions of warps.
    pub warp_instructions: Option<u64>,
    /// What the kernel printed (`printf`), as far as the device keeps it.
    pub printed: String,
}
