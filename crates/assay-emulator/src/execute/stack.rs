//! `alloca`, `stacksave`, `stackrestore`: memory of a thread whose size is known late.
//!
//! The stack is a part of local memory of its own, behind everything that has a fixed place. What a
//! function took and did not give back stays taken until the thread exits.

use super::access::lanes_of;
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands};
use crate::fault::FaultKind;
use crate::observer::Observer;

/// Where the stack starts in local memory.
pub(crate) const STACK_BASE: u64 = 1 << 31;
/// Bytes of stack per thread.
const STACK_BYTES: u64 = 16 << 10;

impl<O: Observer> Engine<'_, O> {
    /// `alloca`
    pub(crate) fn alloca(&mut self, wide: bool, operands: &Operands, mask: u32) -> Step {
        let sizes = self.read_register(operands.a, wide);
        let alignment = operands.immediate.max(8);
        let poison = self.launch.poison;
        let warp = &mut self.block.warps[self.warp];
        if warp.stack.is_empty() {
            warp.stack.resize(STACK_BYTES as usize * LANES, poison);
        }
        let mut addresses = [0; LANES];
        for lane in lanes_of(mask) {
            let start = warp.stack_used[lane].next_multiple_of(alignment);
            let end = start.saturating_add(sizes[lane]);
            if end > STACK_BYTES {
                let depth = self.group.depth;
                return Err(Trouble::new(
                    FaultKind::StackOverflow { depth, bytes: end },
                    1 << lane,
                ));
            }
            warp.stack_used[lane] = end;
            addresses[lane] = STACK_BASE + start;
        }
        self.write_register(operands.d, wide, &addresses, mask);
        Ok(Flow::Next)
    }

    /// `stacksave`
    pub(crate) fn stack_save(&mut self, wide: bool, operands: &Operands, mask: u32) -> Step {
        let used = self.block.warps[self.warp].stack_used;
        self.write_register(operands.d, wide, &used, mask);
        Ok(Flow::Next)
    }

    /// `stackrestore`
    pub(crate) fn stack_restore(&mut self, wide: bool, operands: &Operands, mask: u32) -> Step {
        let saved = self.read_register(operands.a, wide);
        let warp = &mut self.block.warps[self.warp];
        for lane in lanes_of(mask) {
            if saved[lane] > warp.stack_used[lane] {
                let address = saved[lane];
                return Err(Trouble::new(FaultKind::InvalidAddress { address }, 1 << lane));
            }
            warp.stack_used[lane] = saved[lane];
        }
        Ok(Flow::Next)
    }

    /// The bytes of a lane's stack at an address of local memory, as a range of the warp's stack.
    pub(crate) fn stack_range(&self, lane: usize, at: u64, length: u64) -> Option<(usize, usize)> {
        let offset = at.checked_sub(STACK_BASE)?;
        let used = self.block.warps[self.warp].stack_used[lane];
        let end = offset.checked_add(length).filter(|end| *end <= used)?;
        let first = lane * STACK_BYTES as usize;
        Some((first + offset as usize, first + end as usize))
    }
}
