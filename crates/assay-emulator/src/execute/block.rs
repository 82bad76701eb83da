//! A resident block: its warps, shared memory and barriers.

use super::bulk::BulkCopy;
use super::effect::Atomic;
use super::warp::{Wait, Warp};

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

/// A live `mbarrier` object of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) at: u32,
    /// What its memory holds while nothing else writes there.
    pub(crate) word: u64,
}

/// A store to a block's shared memory that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsyncStore {
    pub(crate) to: u64,
    pub(crate) value: [u8; 16],
    pub(crate) bytes: u8,
    /// How it combines with what is there; `None` overwrites it.
    pub(crate) combine: Option<Atomic>,
    /// The object that counts it.
    pub(crate) barrier: u64,
}

/// A block that is running or waiting.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) index: [u32; 3],
    /// Position of the block in the grid, x fastest.
    pub(crate) number: u64,
    /// Its cluster, counted x fastest, and its rank there.
    pub(crate) cluster: u64,
    pub(crate) rank: u32,
    /// The cluster's position in the grid of clusters, and the block's in its cluster.
    pub(crate) cluster_index: [u32; 3],
    pub(crate) index_in_cluster: [u32; 3],
    pub(crate) warps: Vec<Warp>,
    pub(crate) shared: Vec<u8>,
    /// What the asynchronous proxy sees of it, where that is kept apart; see [`super::proxy`].
    pub(crate) view: Vec<u8>,
    /// Bulk copies under way into this block's shared memory or out of it.
    pub(crate) bulk: Vec<BulkCopy>,
    pub(crate) barriers: [Barrier; BARRIERS],
    pub(crate) objects: Vec<Object>,
    pub(crate) stores: Vec<AsyncStore>,
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

    /// Lets those go on that wait for a phase of the object at `at`, or of any.
    pub(crate) fn wake(&mut self, at: Option<u32>) {
        for group in self.warps.iter_mut().flat_map(|warp| &mut warp.groups) {
            if matches!(group.wait, Wait::Phase(object) if at.is_none_or(|at| at == object)) {
                group.wait = Wait::Ready;
            }
        }
    }

    /// Whether any warp can run.
    pub(crate) fn is_ready(&self) -> bool {
        self.warps.iter().any(Warp::is_ready)
    }
}
