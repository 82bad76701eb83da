//! A launch as gate 5 sees it.

use serde::{Deserialize, Serialize};

/// What is asked of a chip for one launch of one kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u64; 3],
    /// Threads of a block along x, y and z.
    pub block: [u64; 3],
    /// Blocks of a cluster along x, y and z; `[1, 1, 1]` without clusters.
    pub cluster: [u64; 3],
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u64,
}

impl Launch {
    /// Threads of a block; the largest number if there are more.
    pub fn threads(&self) -> u64 {
        self.block.iter().fold(1, |threads: u64, axis| threads.saturating_mul(*axis))
    }
}
