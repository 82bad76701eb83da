//! Clusters: blocks that run at the same time and reach each other's shared memory (ISA 9.7.9.23,
//! 9.7.9.24, 9.7.13.3).
//!
//! An address in the cluster's window names a block by its rank in the bits above
//! [`address::BLOCK_WINDOW`]. While a block runs, the others of its cluster are its peers. A peer
//! that has not started, or has exited, has no shared memory to use: both are reported.

use super::access::lanes_of;
use super::address;
use super::block::Block;
use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands};
use super::warp::{Group, Wait, Warp};
use crate::fault::{FaultKind, Space};
use crate::observer::Observer;

impl<O: Observer> Engine<'_, O> {
    /// Blocks of a cluster.
    pub(crate) fn cluster_size(&self) -> u32 {
        self.launch.cluster.iter().product()
    }

    /// Whether an address in the window of shared memory is in the running block.
    pub(crate) fn is_own(&self, at: u64) -> bool {
        let (rank, _) = address::unmapped(at);
        rank.is_none_or(|rank| rank == u64::from(self.block.rank))
    }

    /// A mapped address as one of the block's own, if it is one.
    pub(crate) fn own_window(&self, at: u64) -> (SpaceKind, u64) {
        let offset = if self.is_own(at) { address::unmapped(at).1 } else { at };
        (SpaceKind::Shared, offset)
    }

    /// A cluster address as [`SpaceKind::Shared`] with an offset where it is the own block's, and
    /// as [`SpaceKind::Cluster`] where it is in a peer that can be used.
    pub(crate) fn in_cluster(&self, at: u64, lane: usize) -> Step<(SpaceKind, u64)> {
        if self.is_own(at) {
            return Ok(self.own_window(at));
        }
        let (rank, offset) = address::unmapped(at);
        let rank = rank.unwrap_or(0);
        if rank >= u64::from(self.cluster_size()) {
            let (space, bytes, write) = (Space::Shared, 1, false);
            let kind = FaultKind::OutOfBounds { space, address: at, bytes, write, nearest: None };
            return Err(Trouble::new(kind, 1 << lane));
        }
        let state = match self.peers.get(rank as usize).and_then(Option::as_ref) {
            None => "has exited",
            Some(peer) if !peer.has_run => "has not started",
            Some(_) => return Ok((SpaceKind::Cluster, at)),
        };
        let what = format!(
            "shared memory of block {rank} of the cluster, at {offset:#x}: that block {state}"
        );
        Err(misuse(what, 1 << lane))
    }

    /// Bytes of a peer's shared memory, inside one variable.
    pub(crate) fn peer_bytes(&mut self, at: u64, length: u64) -> Option<&[u8]> {
        let (rank, offset) = address::unmapped(at);
        let range = self.shared_range(offset, length)?;
        self.peers.get(rank? as usize)?.as_ref()?.shared.get(range)
    }

    /// As [`Engine::peer_bytes`], to write.
    pub(crate) fn peer_bytes_mut(&mut self, at: u64, length: u64) -> Option<&mut [u8]> {
        let (rank, offset) = address::unmapped(at);
        let range = self.shared_range(offset, length)?;
        self.peers.get_mut(rank? as usize)?.as_mut()?.shared.get_mut(range)
    }

    /// The block that has an address which [`Engine::in_cluster`] took.
    pub(crate) fn block_at(&mut self, (space, at): (SpaceKind, u64)) -> &mut Block {
        let peer = match (space, address::unmapped(at).0) {
            (SpaceKind::Cluster, Some(rank)) => self.peers.get_mut(rank as usize),
            _ => None,
        };
        peer.and_then(Option::as_mut).unwrap_or(&mut self.block)
    }

    /// `mapa`
    pub(crate) fn map_shared(
        &mut self,
        wide: bool,
        generic: bool,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        let window = if generic { address::window(SpaceKind::Cluster) } else { 0 };
        let sources = self.read_register(operands.a, wide);
        let ranks = self.read_register(operands.b, false);
        let mut mapped = [0; LANES];
        for lane in lanes_of(mask) {
            let (_, offset) = inside_window(sources[lane], generic, lane)?;
            let rank = ranks[lane];
            if rank >= u64::from(self.cluster_size()) {
                let what =
                    format!("mapa to block {rank} of a cluster of {} blocks", self.cluster_size());
                return Err(misuse(what, 1 << lane));
            }
            mapped[lane] = address::mapped(rank as u32, offset) + window;
        }
        self.write_register(operands.d, wide, &mapped, mask);
        Ok(Flow::Next)
    }

    /// `getctarank`
    pub(crate) fn rank_of_shared(
        &mut self,
        wide: bool,
        generic: bool,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        let sources = self.read_register(operands.a, wide);
        let mut ranks = [0; LANES];
        for lane in lanes_of(mask) {
            let (rank, _) = inside_window(sources[lane], generic, lane)?;
            ranks[lane] = rank.unwrap_or(u64::from(self.block.rank));
        }
        self.write_register(operands.d, false, &ranks, mask);
        Ok(Flow::Next)
    }

    /// `%is_explicit_cluster`
    pub(crate) fn explicit_cluster(&mut self, operands: &Operands, mask: u32) -> Step {
        let truth = if self.launch.explicit_cluster { mask } else { 0 };
        // SAFETY: predicates of lowered instructions are inside the frame.
        unsafe { self.frame.set_predicate(operands.p, truth, mask) };
        Ok(Flow::Next)
    }

    /// `barrier.cluster.arrive` and `.wait`: all threads of the cluster that have not exited.
    pub(crate) fn cluster_barrier(&mut self, waits: bool, aligned: bool, mask: u32) -> Step {
        if aligned {
            if self.group.mask != mask {
                let what =
                    "an aligned cluster barrier under a predicate that differs between lanes";
                return Err(misuse(what.to_owned(), mask));
            }
            let alive = self.block.warps[self.warp].alive;
            if let Some(flow) = self.converge(alive, mask) {
                return Ok(flow);
            }
        }
        if waits { self.cluster_wait(mask) } else { self.cluster_arrive(mask) }
    }

    fn cluster_arrive(&mut self, mask: u32) -> Step {
        let warp = &mut self.block.warps[self.warp];
        if warp.cluster_open & mask != 0 {
            let again = warp.cluster_open & mask;
            let what = "barrier.cluster.arrive twice without a barrier.cluster.wait between";
            return Err(misuse(what.to_owned(), again));
        }
        warp.cluster_open |= mask;
        warp.cluster_arrived |= mask;
        self.cluster_barrier_used = true;
        self.complete_cluster_barrier();
        Ok(Flow::Next)
    }

    fn cluster_wait(&mut self, mask: u32) -> Step {
        let warp = &mut self.block.warps[self.warp];
        let early = mask & !warp.cluster_open;
        if early != 0 {
            let what = "barrier.cluster.wait without a barrier.cluster.arrive before it";
            return Err(misuse(what.to_owned(), early));
        }
        warp.cluster_open &= !mask;
        // Lanes whose phase is complete go on; a lane may be a phase ahead of its neighbour.
        let waiting = mask & warp.cluster_arrived;
        if waiting == 0 {
            return Ok(Flow::Next);
        }
        let rest = Group { mask: self.group.mask & !waiting, pc: self.group.pc + 1, ..self.group };
        if rest.mask != 0 {
            warp.groups.push(rest);
        }
        warp.groups.push(Group { mask: waiting, wait: Wait::Cluster, ..self.group });
        Ok(Flow::Reschedule)
    }

    /// Lets the threads at the cluster's barrier go on when all of the cluster have arrived.
    pub(crate) fn complete_cluster_barrier(&mut self) {
        let arrived =
            |block: &Block| block.warps.iter().all(|warp| warp.alive & !warp.cluster_arrived == 0);
        let others = self.peers.iter().flatten();
        if !arrived(&self.block) || !others.into_iter().all(arrived) {
            return;
        }
        self.progress += 1;
        release(&mut self.block.warps);
        for peer in self.peers.iter_mut().flatten() {
            release(&mut peer.warps);
        }
    }
}

/// The rank and offset of an address in the cluster's window.
fn inside_window(at: u64, generic: bool, lane: usize) -> Step<(Option<u64>, u64)> {
    if !generic {
        return Ok(address::unmapped(at & 0xffff_ffff));
    }
    match address::resolve(at) {
        (SpaceKind::Shared | SpaceKind::Cluster, at) => Ok(address::unmapped(at)),
        _ => Err(Trouble::new(FaultKind::InvalidAddress { address: at }, 1 << lane)),
    }
}

/// Starts the next phase of the cluster's barrier in a block's warps.
fn release(warps: &mut [Warp]) {
    for warp in warps {
        warp.cluster_arrived = 0;
        for group in warp.groups.iter_mut().filter(|group| group.wait == Wait::Cluster) {
            group.wait = Wait::Ready;
            group.pc += 1;
        }
    }
}

fn misuse(what: String, mask: u32) -> Box<Trouble> {
    Trouble::new(FaultKind::ClusterMisuse { what }, mask)
}
