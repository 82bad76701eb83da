//! The asynchronous proxy's view of shared memory (ISA 8.6).
//!
//! Bulk copies and `wgmma` read shared memory through another path than loads and stores do. What
//! threads wrote is there for certain only after a `fence.proxy.async`. In schedules that look for
//! trouble, that path sees shared memory as it was at the block's last such fence, so that a
//! missing fence gives old bytes; in order, it sees what is there. What the path itself writes, it
//! also sees.

use std::ops::Range;

use super::block::Block;
use super::engine::{Engine, Flow, Step};
use crate::observer::Observer;

impl Block {
    /// Starts to keep what the asynchronous proxy sees, apart from what threads see.
    pub(crate) fn keep_view(&mut self, kept: bool) {
        self.view.clear();
        if kept {
            self.view.extend_from_slice(&self.shared);
        }
    }

    /// Shared memory as the asynchronous proxy sees it.
    pub(crate) fn async_bytes(&self, range: Range<usize>) -> &[u8] {
        let seen = if self.view.is_empty() { &self.shared } else { &self.view };
        seen.get(range).unwrap_or(&[])
    }

    /// Shared memory to write through the asynchronous proxy: what threads see, and the other view
    /// where one is kept.
    pub(crate) fn write_async(&mut self, start: usize, bytes: &[u8]) {
        let range = start..start + bytes.len();
        for seen in [&mut self.shared, &mut self.view] {
            if let Some(target) = seen.get_mut(range.clone()) {
                target.copy_from_slice(bytes);
            }
        }
    }

    /// The asynchronous proxy sees what threads see, in a range.
    pub(crate) fn show_async(&mut self, range: Range<usize>) {
        if let (Some(seen), Some(from)) = (self.view.get_mut(range.clone()), self.shared.get(range))
        {
            seen.copy_from_slice(from);
        }
    }
}

impl<O: Observer> Engine<'_, O> {
    /// `fence.proxy.async`
    pub(crate) fn fence_async(&mut self) -> Step {
        let whole = 0..self.block.view.len();
        self.block.show_async(whole);
        Ok(Flow::Next)
    }
}
