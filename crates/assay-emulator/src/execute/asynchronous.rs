//! `cp.async` (ISA 9.7.9.25): copies that complete as late as they may.
//!
//! A copy's destination holds poison from the moment it starts until the thread waits for it, so
//! that a kernel that forgets the wait computes nonsense here, whatever luck it has on a chip.

use super::access::lanes_of;
use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step};
use super::frame::{LANES, Operands};
use super::warp::PendingCopy;
use crate::memory::READ;
use crate::observer::Observer;

impl<O: Observer> Engine<'_, O> {
    /// `cp.async`
    pub(crate) fn copy_async(
        &mut self,
        bytes: u8,
        sized: bool,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        let to = self.addresses(operands.a, false, operands.immediate);
        let from = self.addresses(operands.b, true, 0);
        let size_slot = self.code().lists[operands.c as usize][0];
        let sizes = self.read_register(size_slot, false);
        let length = u64::from(bytes);
        let poison = [!self.launch.poison; 16];
        self.observe(SpaceKind::Shared, &to, u32::from(bytes), true, mask);
        for lane in lanes_of(mask) {
            let source_bytes = if sized { sizes[lane].min(length) } else { length };
            if source_bytes > 0 {
                self.lane_bytes(SpaceKind::Global, lane, from[lane], length, mask)
                    .map(drop)
                    .or_else(|trouble| self.partly(lane, from[lane], source_bytes, trouble))?;
            }
            let target = self.lane_bytes_mut(SpaceKind::Shared, lane, to[lane], length)?;
            target.copy_from_slice(&poison[..usize::from(bytes)]);
            self.block.show_async(to[lane] as usize..to[lane] as usize + usize::from(bytes));
            let warp = &mut self.block.warps[self.warp];
            warp.copies.push(PendingCopy {
                lane: lane as u8,
                sequence: warp.copy_sequence,
                group: warp.copy_group[lane],
                to: to[lane] as u32,
                from: from[lane],
                bytes,
                source_bytes: source_bytes as u8,
            });
            warp.copy_sequence += 1;
        }
        Ok(Flow::Next)
    }

    /// A copy that reads fewer bytes than it writes may end at the end of an allocation.
    fn partly(
        &mut self,
        lane: usize,
        from: u64,
        bytes: u64,
        trouble: Box<super::engine::Trouble>,
    ) -> Step<()> {
        let aligned = !matches!(trouble.kind, crate::fault::FaultKind::Misaligned { .. });
        if aligned && self.memory.find(from, bytes).is_some() {
            let _ = lane;
            return Ok(());
        }
        Err(trouble)
    }

    /// `cp.async.commit_group`
    pub(crate) fn commit_copies(&mut self, mask: u32) -> Step {
        let warp = &mut self.block.warps[self.warp];
        for lane in lanes_of(mask) {
            warp.copy_group[lane] += 1;
        }
        Ok(Flow::Next)
    }

    /// `cp.async.wait_group`: all but the `groups` youngest committed groups complete.
    pub(crate) fn wait_copies(&mut self, groups: u32, mask: u32) -> Step {
        let open = self.block.warps[self.warp].copy_group;
        let due = open.map(|open| open.saturating_sub(groups));
        self.finish_copies(mask, &due)
    }

    /// `cp.async.wait_all`: everything completes, committed or not.
    pub(crate) fn wait_all_copies(&mut self, mask: u32) -> Step {
        self.finish_copies(mask, &[u32::MAX; LANES])
    }

    /// Completes the copies of groups before `due`.
    fn finish_copies(&mut self, mask: u32, due: &[u32; LANES]) -> Step {
        self.finish_copies_of(self.warp, |copy| {
            mask >> copy.lane & 1 == 1 && copy.group < due[usize::from(copy.lane)]
        });
        Ok(Flow::Next)
    }

    /// Completes the copies of a warp that a condition picks, in the order they were started.
    pub(crate) fn finish_copies_of(&mut self, warp: usize, done: impl Fn(&PendingCopy) -> bool) {
        let all = std::mem::take(&mut self.block.warps[warp].copies);
        let (ready, later): (Vec<_>, Vec<_>) = all.into_iter().partition(done);
        self.block.warps[warp].copies = later;
        for copy in ready {
            let mut contents = [0; 16];
            let length = usize::from(copy.source_bytes);
            if let Some(place) = self.memory.find(copy.from, length as u64) {
                self.memory.note(place.allocation, READ);
                let allocation = self.memory.allocation(place.allocation);
                if let Some(source) = allocation.bytes(place.offset, length) {
                    contents[..length].copy_from_slice(source);
                }
            }
            let to = copy.to as usize;
            let bytes = usize::from(copy.bytes);
            self.block.write_async(to, &contents[..bytes]);
        }
    }
}
