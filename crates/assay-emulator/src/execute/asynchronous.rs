//! `cp.async` (ISA 9.7.9.25): copies that complete as late as they may.
//!
//! A copy's destination holds poison from the moment it starts until the thread waits for it, so
//! that a kernel that forgets the wait computes nonsense here, whatever luck it has on a chip.

use super::access::lanes_of;
use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step};
use super::fast::reach;
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
        let poison = !self.launch.poison;
        self.observe(SpaceKind::Shared, &to, u32::from(bytes), true, mask);
        let source = |lane: usize| if sized { sizes[lane].min(length) } else { length };
        let reading = lanes_of(mask).filter(|&lane| source(lane) > 0);
        let reading = reading.fold(0, |reading, lane| reading | 1 << lane);
        let fine = self.copies_fit(&from, reading, &to, mask, length);
        for lane in lanes_of(mask) {
            let source_bytes = source(lane);
            if source_bytes > 0 && !fine {
                self.lane_bytes(SpaceKind::Global, lane, from[lane], length, mask)
                    .map(drop)
                    .or_else(|trouble| self.partly(lane, from[lane], source_bytes, trouble))?;
            }
            let target = if fine {
                let start = to[lane] as usize;
                self.block.shared.get_mut(start..start + usize::from(bytes)).unwrap_or(&mut [])
            } else {
                self.lane_bytes_mut(SpaceKind::Shared, lane, to[lane], length)?
            };
            target.fill(poison);
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

    /// Whether no copy needs a look of its own: all are aligned, all sources lie in one allocation
    /// and all destinations in one variable.
    fn copies_fit(
        &mut self,
        from: &[u64; LANES],
        reading: u32,
        to: &[u64; LANES],
        mask: u32,
        length: u64,
    ) -> bool {
        let (low, high, bits) = reach(to, mask);
        let inside = high.wrapping_sub(low).checked_add(length);
        let aligned = bits & (length - 1) == 0;
        if !aligned || inside.is_none_or(|inside| self.shared_range(low, inside).is_none()) {
            return false;
        }
        if reading == 0 {
            return true;
        }
        let (low, high, bits) = reach(from, reading);
        let inside = high.wrapping_sub(low).checked_add(length);
        bits & (length - 1) == 0 && inside.is_some_and(|inside| self.global(low, inside).is_some())
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
        let mut copies = std::mem::take(&mut self.block.warps[warp].copies);
        copies.retain(|copy| {
            let ready = done(copy);
            if ready {
                self.finish_copy(copy);
            }
            !ready
        });
        self.block.warps[warp].copies = copies;
    }

    fn finish_copy(&mut self, copy: &PendingCopy) {
        let mut contents = [0; 16];
        let length = usize::from(copy.source_bytes);
        // A copy of nothing reads nothing, wherever it points.
        let place = (length > 0).then(|| self.memory.find(copy.from, length as u64)).flatten();
        if let Some(place) = place {
            self.memory.note(place.allocation, READ);
            let allocation = self.memory.allocation(place.allocation);
            if let Some(source) = allocation.bytes(place.offset, length) {
                contents[..length].copy_from_slice(source);
            }
        }
        self.block.write_async(copy.to as usize, &contents[..usize::from(copy.bytes)]);
    }
}
