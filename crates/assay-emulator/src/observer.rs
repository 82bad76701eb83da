//! Hooks for what wants to watch a run: initialisation, races, rounding depth.
//!
//! Bounds and poison are always on and are no observers. A hook whose constant is false is compiled
//! away.

use crate::fault::Space;

/// A memory access of one warp instruction.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAccess<'a> {
    /// The space.
    pub space: Space,
    /// The address of each lane inside the space; only lanes of `mask` count.
    pub addresses: &'a [u64; 32],
    /// Bytes accessed by each lane.
    pub bytes: u32,
    /// Whether it writes.
    pub write: bool,
    /// Whether it is an atomic operation.
    pub atomic: bool,
    /// The lanes that take part.
    pub mask: u32,
    /// The block, as its position in the grid.
    pub block: u64,
    /// The warp inside the block.
    pub warp: u32,
    /// The PTX line.
    pub line: u32,
}

/// Watches a launch.
pub trait Observer {
    /// Whether [`Observer::access`] is called.
    const MEMORY: bool = false;
    /// Whether [`Observer::barrier`] is called.
    const BARRIERS: bool = false;

    /// Called before a memory access that is inside its bounds.
    fn access(&mut self, access: &MemoryAccess<'_>) {
        let _ = access;
    }

    /// Called when a barrier of a block completes: the block, and the barrier's number.
    fn barrier(&mut self, block: u64, barrier: u32) {
        let _ = (block, barrier);
    }
}

/// Watches nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
