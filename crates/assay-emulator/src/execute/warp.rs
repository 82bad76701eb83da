//! A warp: its registers, and its lanes in groups that share a program counter.

use super::frame::{LANES, Row};
use super::wgmma::WarpgroupState;

/// Why a group does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// It can run.
    Ready,
    /// For the other lanes of this mask, at the same instruction.
    Converge(u32),
    /// At a barrier of the block.
    Barrier(u8),
    /// For the other warps of the warpgroup to start the same products.
    Warpgroup,
    /// At the cluster's barrier.
    Cluster,
    /// Behind a failed wait for a phase of the `mbarrier` object at this address.
    Phase(u32),
}

/// Lanes that share program counter and call stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    /// The call stack, as an index of the engine's table; 0 is the kernel itself.
    pub(crate) stack: u32,
    /// Calls on that stack.
    pub(crate) depth: u32,
    /// Register level, which recursive calls raise.
    pub(crate) level: u32,
    pub(crate) wait: Wait,
}

/// A copy that `cp.async` started and that has not been waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingCopy {
    pub(crate) lane: u8,
    /// Its place among all copies of the warp.
    pub(crate) sequence: u32,
    pub(crate) group: u32,
    pub(crate) to: u32,
    pub(crate) from: u64,
    pub(crate) bytes: u8,
    pub(crate) source_bytes: u8,
}

/// An arrival at an mbarrier that happens when the lane's copies so far are done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyArrival {
    pub(crate) lane: u8,
    /// Copies before this one are waited for.
    pub(crate) sequence: u32,
    /// The mbarrier, in shared memory.
    pub(crate) at: u64,
}

/// A warp of a resident block.
#[derive(Debug, Default)]
pub(crate) struct Warp {
    pub(crate) registers: Vec<Row>,
    pub(crate) predicates: Vec<u32>,
    /// Local memory, lane after lane.
    pub(crate) local: Vec<u8>,
    /// The part of local memory that `alloca` gives out, lane after lane, and how much is taken.
    pub(crate) stack: Vec<u8>,
    pub(crate) stack_used: [u64; LANES],
    /// Groups that do not run right now.
    pub(crate) groups: Vec<Group>,
    /// Lanes that exist.
    pub(crate) exists: u32,
    /// Lanes that have not exited.
    pub(crate) alive: u32,
    pub(crate) copies: Vec<PendingCopy>,
    pub(crate) arrivals: Vec<CopyArrival>,
    /// Copies started so far.
    pub(crate) copy_sequence: u32,
    /// The open `cp.async` group of each lane.
    pub(crate) copy_group: [u32; LANES],
    /// Its products of `wgmma`.
    pub(crate) wgmma: WarpgroupState,
    /// The open bulk group of each lane.
    pub(crate) bulk_group: [u32; LANES],
    /// Lanes that have arrived at the cluster's barrier in its current phase.
    pub(crate) cluster_arrived: u32,
    /// Lanes that have arrived at it and not waited since.
    pub(crate) cluster_open: u32,
    /// Instructions since the groups last took turns.
    pub(crate) streak: u64,
    /// Waiting loads since the groups last took turns.
    pub(crate) polls: u32,
    /// The groups run highest first until this many instructions have run.
    pub(crate) reversed_until: u64,
}

impl Warp {
    /// Whether any group can run.
    pub(crate) fn is_ready(&self) -> bool {
        self.groups.iter().any(|group| group.wait == Wait::Ready)
    }

    /// Joins ready groups at the same place.
    pub(crate) fn merge(&mut self) {
        let mut index = 0;
        while index < self.groups.len() {
            let mut other = index + 1;
            while other < self.groups.len() {
                if same_place(&self.groups[index], &self.groups[other]) {
                    self.groups[index].mask |= self.groups[other].mask;
                    self.groups.swap_remove(other);
                } else {
                    other += 1;
                }
            }
            index += 1;
        }
    }
}

fn same_place(a: &Group, b: &Group) -> bool {
    a.pc == b.pc && a.stack == b.stack && a.wait == Wait::Ready && b.wait == Wait::Ready
}
