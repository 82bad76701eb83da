//! `mbarrier`: barriers that are objects in shared memory (ISA 9.7.13.15).
//!
//! The 64 bits of an object are opaque to programs. Here they hold the expected and the pending
//! count (20 bits each), the bytes still expected of asynchronous copies (23 bits, signed), and the
//! parity of the phase. A phase completes when nothing is pending; the next one then expects as
//! many again.

use super::access::lanes_of;
use super::address;
use super::effect::{Mbarrier, MbarrierOperation, SpaceKind};
use super::engine::{Engine, Flow, POLL_TURN, Step, Trouble};
use super::frame::{LANES, Operands};
use super::warp::CopyArrival;
use crate::fault::FaultKind;
use crate::observer::Observer;

/// The largest count of an object.
const LARGEST_COUNT: u64 = (1 << 20) - 1;

/// The contents of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    expected: u64,
    pending: u64,
    bytes: i64,
    phase: u64,
}

impl State {
    fn open(word: u64) -> State {
        State {
            expected: word & LARGEST_COUNT,
            pending: word >> 20 & LARGEST_COUNT,
            bytes: ((word << 1) as i64) >> 41,
            phase: word >> 63,
        }
    }

    fn close(self) -> u64 {
        let bytes = self.bytes as u64 & 0x7f_ffff;
        self.expected | self.pending << 20 | bytes << 40 | self.phase << 63
    }

    /// Starts the next phase when this one is complete.
    fn advance(mut self) -> State {
        if self.pending == 0 && self.bytes == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
        self
    }

    /// `count` arrivals; `None` when fewer are pending.
    fn arrive(mut self, count: u64) -> Option<State> {
        self.pending = self.pending.checked_sub(count)?;
        Some(self.advance())
    }
}

/// What one lane brings: its operand, and where its answer goes.
struct Lane {
    index: usize,
    at: u64,
    operand: u64,
}

impl<O: Observer> Engine<'_, O> {
    /// One operation on an object, lane after lane.
    pub(crate) fn mbarrier(&mut self, mbarrier: Mbarrier, operands: &Operands, mask: u32) -> Step {
        let addresses = self.addresses(operands.a, mbarrier.wide_address, operands.immediate);
        let token = matches!(mbarrier.operation, MbarrierOperation::Wait { parity: false, .. });
        let values = self.read_register(operands.b, token);
        let mut answers = [0; LANES];
        for lane in lanes_of(mask) {
            let here = Lane { index: lane, at: addresses[lane], operand: values[lane] };
            answers[lane] = self.mbarrier_lane(mbarrier, &here)?;
        }
        match mbarrier.operation {
            MbarrierOperation::Arrive { .. } => {
                self.write_register(operands.d, true, &answers, mask);
            }
            MbarrierOperation::Wait { yields, .. } => {
                let done =
                    lanes_of(mask).fold(0, |done, lane| done | (answers[lane] as u32) << lane);
                // SAFETY: predicates of lowered instructions are inside the frame.
                unsafe { self.frame.set_predicate(operands.p, done, mask) };
                self.poll(if yields && done != mask { POLL_TURN + 1 } else { 1 });
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn mbarrier_lane(&mut self, mbarrier: Mbarrier, here: &Lane) -> Step<u64> {
        if let MbarrierOperation::Wait { parity, .. } = mbarrier.operation {
            self.copies_arrive(mbarrier, here)?;
            let before = if parity { here.operand & 1 } else { here.operand >> 63 };
            return Ok(u64::from(self.bulk_arrives(mbarrier, here, before)? != before));
        }
        let word = self.object(mbarrier, here)?;
        let (word, answer) = self.changed(mbarrier, here, word)?;
        let bytes = self.lane_bytes_mut(mbarrier.space, here.index, here.at, 8)?;
        bytes.copy_from_slice(&word.to_le_bytes());
        Ok(answer)
    }

    fn object(&mut self, mbarrier: Mbarrier, here: &Lane) -> Step<u64> {
        let bytes = self.lane_bytes(mbarrier.space, here.index, here.at, 8, 1 << here.index)?;
        Ok(super::access::read_value(bytes, 8))
    }

    /// The object after an operation, and the operation's answer.
    fn changed(&mut self, mbarrier: Mbarrier, here: &Lane, word: u64) -> Step<(u64, u64)> {
        let state = State::open(word);
        let operand = here.operand;
        let next = match mbarrier.operation {
            MbarrierOperation::Init if operand == 0 || operand > LARGEST_COUNT => {
                let what =
                    format!("mbarrier.init with a count of {operand}; 1 to 1048575 are valid");
                return Err(misuse(what, here));
            }
            MbarrierOperation::Init => {
                State { expected: operand, pending: operand, bytes: 0, phase: 0 }
            }
            MbarrierOperation::Invalidate => return Ok((u64::MAX, 0)),
            MbarrierOperation::Expect => State { bytes: state.bytes + operand as i64, ..state },
            MbarrierOperation::Complete => {
                State { bytes: state.bytes - operand as i64, ..state }.advance()
            }
            MbarrierOperation::Arrive { drops, counted, expects } => {
                let count = if counted { operand } else { 1 };
                let more = if expects { operand as i64 } else { 0 };
                let fewer = if drops { count } else { 0 };
                let expected = state.expected.saturating_sub(fewer);
                let state = State { expected, bytes: state.bytes + more, ..state };
                state.arrive(count).ok_or_else(|| overrun(here))?
            }
            MbarrierOperation::CopiesArrive { counted } => {
                self.defer(mbarrier, here);
                // What is not in the count of the init is added, and taken off by the arrival.
                State { pending: state.pending + u64::from(!counted), ..state }
            }
            MbarrierOperation::Wait { .. } => state,
        };
        Ok((next.close(), word))
    }

    /// Remembers an arrival that comes when the lane's copies so far are done.
    fn defer(&mut self, mbarrier: Mbarrier, here: &Lane) {
        let at = shared_address(mbarrier, here.at);
        let warp = &mut self.block.warps[self.warp];
        let sequence = warp.copy_sequence;
        warp.arrivals.push(CopyArrival { lane: here.index as u8, sequence, at });
    }

    /// Bulk copies complete as late as allowed: one by one, while the phase waited for cannot
    /// complete without them. Gives the phase.
    fn bulk_arrives(&mut self, mbarrier: Mbarrier, here: &Lane, before: u64) -> Step<u64> {
        let mut state = State::open(self.object(mbarrier, here)?);
        let at = shared_address(mbarrier, here.at);
        while state.phase == before
            && let Some(arrived) = self.next_bulk(at)
        {
            // The copy may have changed the object itself.
            state = State::open(self.object(mbarrier, here)?);
            state = State { bytes: state.bytes - arrived as i64, ..state }.advance();
            let bytes = self.lane_bytes_mut(mbarrier.space, here.index, here.at, 8)?;
            bytes.copy_from_slice(&state.close().to_le_bytes());
        }
        Ok(state.phase)
    }

    /// Copies complete as late as allowed: when somebody looks whether they have.
    fn copies_arrive(&mut self, mbarrier: Mbarrier, here: &Lane) -> Step<()> {
        let at = shared_address(mbarrier, here.at);
        for warp in 0..self.block.warps.len() {
            let arrivals = std::mem::take(&mut self.block.warps[warp].arrivals);
            let (due, later): (Vec<_>, Vec<_>) =
                arrivals.into_iter().partition(|arrival| arrival.at == at);
            self.block.warps[warp].arrivals = later;
            for arrival in due {
                self.finish_copies_of(warp, |copy| {
                    copy.lane == arrival.lane && copy.sequence < arrival.sequence
                });
                let word = self.object(mbarrier, here)?;
                let state = State::open(word).arrive(1).ok_or_else(|| overrun(here))?;
                let bytes = self.lane_bytes_mut(mbarrier.space, here.index, here.at, 8)?;
                bytes.copy_from_slice(&state.close().to_le_bytes());
            }
        }
        Ok(())
    }
}

/// The address of an object in shared memory.
fn shared_address(mbarrier: Mbarrier, at: u64) -> u64 {
    if mbarrier.space == SpaceKind::Generic { address::resolve(at).1 } else { at }
}

fn misuse(what: String, here: &Lane) -> Box<Trouble> {
    Trouble::new(FaultKind::BarrierMisuse { what }, 1 << here.index)
}

fn overrun(here: &Lane) -> Box<Trouble> {
    misuse("more arrivals at an mbarrier than it expects in a phase".to_owned(), here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_its_parts_apart() {
        for bytes in [-5, 0, 1, 100_000] {
            let state = State { expected: 1000, pending: LARGEST_COUNT, bytes, phase: 1 };
            assert_eq!(State::open(state.close()), state);
        }
    }

    #[test]
    fn the_last_arrival_starts_the_next_phase() {
        let state = State { expected: 2, pending: 2, bytes: 0, phase: 0 };
        let once = state.arrive(1).unwrap();
        assert_eq!((once.pending, once.phase), (1, 0));
        let twice = once.arrive(1).unwrap();
        assert_eq!((twice.pending, twice.phase), (2, 1));
        assert_eq!(twice.arrive(3), None);
    }
}
