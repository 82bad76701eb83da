//! A resident block: its warps, shared memory and barriers.

use super::bulk::BulkCopy;
use super::warp::Warp;

/// Barriers per block.
pub(crate) const BARRIERS: usize = 16;

/// One of the sixteen barriers of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Barrier {
    /// Threads that have arrived.
    pub(crate) threads: u32,
    /// The same in whole warps times 32, as thread counts are given.
    pub(crate) slots: u32,
    /// How many must arrive: `None` until the first does, 0 for the whole block.
    pub(crate) expected: Option<u32>,
    /// How many brought a true predicate.
    pub(crate) population: u32,
}

/// A block that is running or waiting.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) index: [u32; 3],
    /// Position of the block in the grid, x fastest.
    pub(crate) number: u64,
    pub(crate) warps: Vec<Warp>,
    pub(crate) shared: Vec<u8>,
    /// What the asynchronous proxy sees of it, where that is kept apart; see [`super::proxy`].
    pub(crate) view: Vec<u8>,
    /// Bulk copies under way into this block's shared memory or out of it.
    pub(crate) bulk: Vec<BulkCopy>,
    pub(crate) barriers: [Barrier; BARRIERS],
    /// Threads that have not exited.
    pub(crate) alive: u32,
    /// Whether it has had a turn.
    pub(crate) has_run: bool,
}

impl Block {
    /// Whether all threads have exited.
    pub(crate) fn is_finished(&self) -> bool {
        self.alive == 0
    }

    /// Whether any warp can run.
    pub(crate) fn is_ready(&self) -> bool {
        self.warps.iter().any(Warp::is_ready)
    }
}
