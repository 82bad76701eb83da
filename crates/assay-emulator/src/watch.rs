//! How far a launch is, for another thread to see.

use std::sync::atomic::{AtomicU64, Ordering};

/// How far the launch under way is. One thread runs it, any other may look.
#[derive(Debug, Default)]
pub struct Watch {
    blocks: AtomicU64,
    finished: AtomicU64,
    instructions: AtomicU64,
}

/// What a [`Watch`] shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Blocks of the launch.
    pub blocks: u64,
    /// Blocks that have run to their end.
    pub finished: u64,
    /// Instructions of warps so far.
    pub instructions: u64,
}

impl Watch {
    /// How far the latest launch is.
    pub fn look(&self) -> Seen {
        Seen {
            blocks: self.blocks.load(Ordering::Relaxed),
            finished: self.finished.load(Ordering::Relaxed),
            instructions: self.instructions.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn show(&self, seen: Seen) {
        self.blocks.store(seen.blocks, Ordering::Relaxed);
        self.finished.store(seen.finished, Ordering::Relaxed);
        self.instructions.store(seen.instructions, Ordering::Relaxed);
    }
}
