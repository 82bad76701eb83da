//! `mbarrier`: barriers that are objects in shared memory (ISA 9.7.13.15).
//!
//! The 64 bits of an object are opaque to programs; see [`state`] for what they hold here. Each
//! block knows its live objects, so that an operation on something else is reported, and so is an
//! object that something else overwrote. A failed wait puts its lanes to sleep until the phase is
//! complete or nobody else can run; they then see `false` and look again.

mod state;

use super::access::lanes_of;
use super::address;
use super::block::Object;
use super::effect::{Mbarrier, MbarrierOperation, SpaceKind};
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands};
use super::warp::{CopyArrival, Group, Wait};
use crate::fault::FaultKind;
use crate::observer::Observer;
use state::State;

pub(crate) use state::describe;

/// Where an object is: shared memory of the own block, or of a peer.
pub(crate) type Place = (SpaceKind, u64);

/// What one lane brings: where its object is, and its operand.
struct Lane {
    index: usize,
    at: Place,
    operand: u64,
}

impl<O: Observer> Engine<'_, O> {
    /// One operation on an object, lane after lane.
    pub(crate) fn mbarrier(&mut self, mbarrier: Mbarrier, operands: &Operands, mask: u32) -> Step {
        let addresses = self.addresses(operands.a, mbarrier.wide_address, operands.immediate);
        let token = matches!(mbarrier.operation, MbarrierOperation::Wait { parity: false });
        let values = self.read_register(operands.b, token);
        let mut answers = [0; LANES];
        for lane in lanes_of(mask) {
            let at = self.object_place(mbarrier.space, addresses[lane], lane)?;
            let here = Lane { index: lane, at, operand: values[lane] };
            answers[lane] = match mbarrier.operation {
                MbarrierOperation::Init => self.init_object(&here, mask, &addresses)?,
                MbarrierOperation::Invalidate => self.invalidate_object(&here)?,
                MbarrierOperation::Wait { parity } => self.is_complete(&here, parity)?,
                MbarrierOperation::Expect => self.expect_tx(at, values[lane], lane)?.into(),
                MbarrierOperation::Complete => self.complete_tx(at, values[lane], lane)?.into(),
                _ => self.change_object(mbarrier.operation, &here)?,
            };
        }
        match mbarrier.operation {
            MbarrierOperation::Arrive { .. } => {
                self.write_register(operands.d, true, &answers, mask);
            }
            MbarrierOperation::Wait { .. } => {
                let done =
                    lanes_of(mask).fold(0, |done, lane| done | (answers[lane] as u32) << lane);
                // SAFETY: predicates of lowered instructions are inside the frame.
                unsafe { self.frame.set_predicate(operands.p, done, mask) };
                if done != mask {
                    let failed = (mask & !done).trailing_zeros() as usize & (LANES - 1);
                    return Ok(self.sleep_until_phase(addresses[failed], mask));
                }
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// The lanes of `mask`, which have their answers, go on when the phase is complete or nobody
    /// else can run.
    fn sleep_until_phase(&mut self, at: u64, mask: u32) -> Flow {
        let offset = (at % address::BLOCK_WINDOW) as u32;
        let pc = self.group.pc + 1;
        let rest = Group { mask: self.group.mask & !mask, pc, ..self.group };
        let groups = &mut self.block.warps[self.warp].groups;
        if rest.mask != 0 {
            groups.push(rest);
        }
        groups.push(Group { mask, pc, wait: Wait::Phase(offset), ..self.group });
        self.sleepers = true;
        Flow::Reschedule
    }

    /// Where an address leads; an object is in shared memory.
    pub(crate) fn object_place(&self, space: SpaceKind, at: u64, lane: usize) -> Step<Place> {
        let place = self.resolved(space, lane, at)?;
        if matches!(place.0, SpaceKind::Shared | SpaceKind::Cluster) {
            return Ok(place);
        }
        Err(Trouble::new(FaultKind::InvalidAddress { address: at }, 1 << lane))
    }

    /// The contents of a live object.
    pub(crate) fn object(&mut self, at: Place, lane: usize) -> Step<u64> {
        let bytes = self.lane_bytes(at.0, lane, at.1, 8, 1 << lane)?;
        let word = super::access::read_value(bytes, 8);
        let offset = address::unmapped(at.1).1;
        let known = self.block_at(at).objects.iter().find(|object| u64::from(object.at) == offset);
        let what = match known {
            None => "is no mbarrier object: mbarrier.init has to come first",
            Some(object) if object.word != word => "was an mbarrier object and is overwritten",
            Some(_) => return Ok(word),
        };
        Err(misuse(format!("shared {offset:#x} {what}"), lane))
    }

    /// Gives an object new contents, and wakes those who wait for its phase if that is complete;
    /// tells whether it is.
    fn put_object(&mut self, at: Place, lane: usize, before: u64, after: State) -> Step<bool> {
        let word = after.close();
        self.lane_bytes_mut(at.0, lane, at.1, 8)?.copy_from_slice(&word.to_le_bytes());
        let offset = address::unmapped(at.1).1 as u32;
        let block = self.block_at(at);
        if let Some(object) = block.objects.iter_mut().find(|object| object.at == offset) {
            object.word = word;
        }
        let complete = State::open(before).phase != after.phase;
        if complete {
            block.wake(Some(offset));
            self.progress += 1;
        }
        Ok(complete)
    }

    /// `mbarrier.expect_tx`, of an object of any block of the cluster.
    pub(crate) fn expect_tx(&mut self, at: Place, bytes: u64, lane: usize) -> Step<bool> {
        let word = self.object(at, lane)?;
        let after = State::open(word).expect(bytes).map_err(|what| misuse(what, lane))?;
        self.put_object(at, lane, word, after)
    }

    /// `mbarrier.complete_tx`, of an object of any block of the cluster; tells whether that
    /// completed the phase.
    pub(crate) fn complete_tx(&mut self, at: Place, bytes: u64, lane: usize) -> Step<bool> {
        let word = self.object(at, lane)?;
        let after = State::open(word).complete(bytes).map_err(|what| misuse(what, lane))?;
        self.put_object(at, lane, word, after)
    }

    /// `mbarrier.init`. Lanes that together make one object make one.
    fn init_object(&mut self, here: &Lane, mask: u32, addresses: &[u64; LANES]) -> Step<u64> {
        check_own(here, "mbarrier.init")?;
        let Some(state) = State::new(here.operand) else {
            let count = here.operand;
            let what = format!("mbarrier.init with a count of {count}; 1 to 1048575 are valid");
            return Err(misuse(what, here.index));
        };
        let twin = lanes_of(mask)
            .take_while(|&lane| lane < here.index)
            .any(|lane| addresses[lane] == addresses[here.index]);
        if !twin && self.object(here.at, here.index).is_ok() {
            let what = format!(
                "mbarrier.init of the live object at shared {:#x}: mbarrier.inval comes first",
                here.at.1
            );
            return Err(misuse(what, here.index));
        }
        let word = state.close();
        let bytes = self.lane_bytes_mut(here.at.0, here.index, here.at.1, 8)?;
        bytes.copy_from_slice(&word.to_le_bytes());
        let at = here.at.1 as u32;
        self.block.objects.retain(|object| object.at != at);
        self.block.objects.push(Object { at, word });
        Ok(0)
    }

    /// `mbarrier.inval`
    fn invalidate_object(&mut self, here: &Lane) -> Step<u64> {
        check_own(here, "mbarrier.inval")?;
        self.object(here.at, here.index)?;
        self.block.objects.retain(|object| u64::from(object.at) != here.at.1);
        self.lane_bytes_mut(here.at.0, here.index, here.at.1, 8)?.fill(0xff);
        Ok(0)
    }

    /// `mbarrier.test_wait` and `mbarrier.try_wait`: 1 when the phase is complete.
    fn is_complete(&mut self, here: &Lane, parity: bool) -> Step<u64> {
        check_own(here, "a wait")?;
        let before = if parity { here.operand & 1 } else { here.operand >> 63 };
        let complete = |word: u64| State::open(word).phase != before;
        let (at, lane) = (here.at, here.index);
        if !complete(self.object(at, lane)?) {
            self.copies_arrive(at, lane)?;
        }
        // Asynchronous operations complete as late as allowed: one by one, while the phase waited
        // for cannot complete without them.
        while !complete(self.object(at, lane)?)
            && let Some(arrived) = self.next_arrival(at, lane)?
        {
            self.complete_tx(at, arrived, lane)?;
        }
        Ok(u64::from(complete(self.object(at, lane)?)))
    }

    /// Completes an asynchronous operation that an object of the block counts; gives its bytes.
    fn next_arrival(&mut self, at: Place, lane: usize) -> Step<Option<u64>> {
        match self.next_store(at, lane)? {
            None => Ok(self.next_bulk(at.1)),
            stored => Ok(stored),
        }
    }

    /// The other operations; gives the contents before.
    fn change_object(&mut self, operation: MbarrierOperation, here: &Lane) -> Step<u64> {
        let word = self.object(here.at, here.index)?;
        let after = self
            .changed(operation, here, State::open(word))
            .map_err(|what| misuse(what, here.index))?;
        self.put_object(here.at, here.index, word, after)?;
        Ok(word)
    }

    fn changed(
        &mut self,
        operation: MbarrierOperation,
        here: &Lane,
        state: State,
    ) -> Result<State, String> {
        let operand = here.operand;
        match operation {
            MbarrierOperation::Arrive { drops, counted, expects, completes } => {
                let count = if counted { operand } else { 1 };
                let state = if expects { state.expect(operand)? } else { state };
                let state = if drops { state.drop(count)? } else { state };
                let after = state.arrive(count)?;
                if !completes && after.phase != state.phase {
                    return Err("an arrival with .noComplete completes the phase".to_owned());
                }
                Ok(after)
            }
            MbarrierOperation::CopiesArrive { counted } => {
                let warp = &mut self.block.warps[self.warp];
                let (lane, sequence) = (here.index as u8, warp.copy_sequence);
                warp.arrivals.push(CopyArrival { lane, sequence, at: here.at.1 });
                // What is not in the count of the init is added, and taken off by the arrival.
                if counted { Ok(state) } else { state.one_more() }
            }
            _ => Ok(state),
        }
    }

    /// `cp.async` copies whose arrival at an object is still to come are done, and arrive.
    fn copies_arrive(&mut self, at: Place, lane: usize) -> Step<()> {
        for warp in 0..self.block.warps.len() {
            let arrivals = std::mem::take(&mut self.block.warps[warp].arrivals);
            let (due, later): (Vec<_>, Vec<_>) =
                arrivals.into_iter().partition(|arrival| arrival.at == at.1);
            self.block.warps[warp].arrivals = later;
            for arrival in due {
                self.finish_copies_of(warp, |copy| {
                    copy.lane == arrival.lane && copy.sequence < arrival.sequence
                });
                let word = self.object(at, lane)?;
                let after = State::open(word).arrive(1).map_err(|what| misuse(what, lane))?;
                self.put_object(at, lane, word, after)?;
            }
        }
        Ok(())
    }
}

fn check_own(here: &Lane, operation: &str) -> Step<()> {
    if here.at.0 == SpaceKind::Shared {
        return Ok(());
    }
    Err(misuse(format!("{operation} of an object of another block"), here.index))
}

fn misuse(what: String, lane: usize) -> Box<Trouble> {
    Trouble::new(FaultKind::BarrierMisuse { what }, 1 << lane)
}
