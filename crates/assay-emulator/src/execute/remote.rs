//! `st.async` and `red.async`: stores to shared memory of a block of the cluster that complete at
//! an mbarrier there (ISA 9.7.9.12, 9.7.13.7).
//!
//! A store waits at its block until somebody there looks at its mbarrier, as late as is allowed, so
//! that a reader which does not wait sees the old bytes. Under a seed the stores come in any order.

use super::access::{lanes_of, read_value};
use super::address;
use super::atomic::combined;
use super::block::AsyncStore;
use super::effect::{AsyncAccess, SpaceKind};
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::Operands;
use super::mbarrier::Place;
use crate::fault::FaultKind;
use crate::observer::Observer;

impl<O: Observer> Engine<'_, O> {
    /// Starts the stores of the lanes of `mask`.
    pub(crate) fn store_async(
        &mut self,
        access: AsyncAccess,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        if self.cluster_size() == 1 {
            let what = "an asynchronous store in a cluster of one block".to_owned();
            return Err(misuse(what, mask));
        }
        let to = self.addresses(operands.a, access.wide_address, operands.immediate);
        let barriers = self.addresses(operands.b, access.wide_barrier, access.barrier_offset);
        let slots = self.code().lists[operands.c as usize];
        let (size, count) = (usize::from(access.bytes), usize::from(access.count));
        let parts: [_; 4] =
            std::array::from_fn(|part| self.read_register(slots[part], access.wide));
        for lane in lanes_of(mask) {
            let place = self.object_place(access.space, to[lane], lane)?;
            let barrier = self.object_place(access.space, barriers[lane], lane)?;
            self.check_target(place, barrier, lane, size * count)?;
            let mut value = [0; 16];
            for part in 0..count {
                let bytes = parts[part][lane].to_le_bytes();
                value[part * size..(part + 1) * size].copy_from_slice(&bytes[..size]);
            }
            self.block_at(place).stores.push(AsyncStore {
                to: address::unmapped(place.1).1,
                value,
                bytes: (size * count) as u8,
                combine: access.combine,
                barrier: address::unmapped(barrier.1).1,
            });
        }
        Ok(Flow::Next)
    }

    /// What a store needs: room, and a live object in the same block.
    fn check_target(&mut self, to: Place, barrier: Place, lane: usize, bytes: usize) -> Step<()> {
        self.lane_bytes_mut(to.0, lane, to.1, bytes as u64)?;
        self.object(barrier, lane)?;
        let rank =
            |place: Place| address::unmapped(place.1).0.filter(|_| place.0 != SpaceKind::Shared);
        if rank(to) == rank(barrier) {
            return Ok(());
        }
        let what = "an asynchronous store to one block with its mbarrier in another".to_owned();
        Err(misuse(what, 1 << lane))
    }

    /// Completes the next store that an object of the running block counts, if there is one, and
    /// gives its bytes. Which of several comes first, the schedule says.
    pub(crate) fn next_store(&mut self, at: Place, lane: usize) -> Step<Option<u64>> {
        let due: Vec<bool> = self.block.stores.iter().map(|store| store.barrier == at.1).collect();
        let Some(next) = self.chooser.among(&due) else {
            return Ok(None);
        };
        let store = self.block.stores.remove(next);
        let length = usize::from(store.bytes);
        let bytes = self.lane_bytes_mut(SpaceKind::Shared, lane, store.to, length as u64)?;
        if let Some(atomic) = store.combine {
            let (old, b) = (read_value(bytes, length), read_value(&store.value, length));
            let new = combined(atomic, old, b, 0, false).to_le_bytes();
            bytes.copy_from_slice(&new[..length]);
        } else {
            bytes.copy_from_slice(&store.value[..length]);
        }
        Ok(Some(length as u64))
    }

    /// A block must not exit before all stores to its shared memory are complete.
    pub(crate) fn check_stores_on_exit(&self, mask: u32) -> Step<()> {
        if self.block.alive > 0 || self.block.stores.is_empty() {
            return Ok(());
        }
        let what = format!(
            "the block exits with {} asynchronous stores to its shared memory under way",
            self.block.stores.len()
        );
        Err(misuse(what, mask))
    }
}

fn misuse(what: String, mask: u32) -> Box<Trouble> {
    Trouble::new(FaultKind::ClusterMisuse { what }, mask)
}
