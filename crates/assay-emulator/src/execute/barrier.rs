//! Block barriers: `bar`, `barrier` (ISA 9.7.13.1).
//!
//! `bar` is `barrier.aligned`: the lanes of a warp must reach it together, and none of them may
//! have exited before. `barrier` without `.aligned` may come in divergent code.

use super::block::BARRIERS;
use super::effect::BarrierKind;
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands};
use super::warp::{Group, Wait};
use crate::fault::FaultKind;
use crate::observer::Observer;
use crate::program::Action;

impl<O: Observer> Engine<'_, O> {
    /// `bar.{sync,arrive,red}` and `barrier.*`
    pub(crate) fn barrier(
        &mut self,
        kind: BarrierKind,
        aligned: bool,
        counted: bool,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        let number = self.uniform(operands.a, mask)?;
        let count = if counted { Some(self.uniform(operands.b, mask)?) } else { None };
        self.check_barrier(number, count, mask)?;
        if aligned {
            self.check_aligned(mask)?;
            let alive = self.block.warps[self.warp].alive;
            if let Some(flow) = self.converge(alive, mask) {
                return Ok(flow);
            }
        }
        self.arrive(number as usize, count, operands, mask)?;
        if kind == BarrierKind::Arrive {
            self.complete(number as usize);
            return Ok(Flow::Next);
        }
        let here = Group { mask, wait: Wait::Barrier(number as u8), ..self.group };
        let rest = Group { mask: self.group.mask & !mask, pc: self.group.pc + 1, ..self.group };
        let warp = &mut self.block.warps[self.warp];
        if rest.mask != 0 {
            warp.groups.push(rest);
        }
        warp.groups.push(here);
        self.complete(number as usize);
        Ok(Flow::Reschedule)
    }

    /// The value of an operand that must be the same in all lanes.
    fn uniform(&self, slot: u32, mask: u32) -> Step<u32> {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        let lanes = unsafe { self.frame.lanes32(slot) };
        let first = lanes[mask.trailing_zeros() as usize & 31];
        let same = super::access::lanes_of(mask).all(|lane| lanes[lane] == first);
        if same { Ok(first) } else { Err(misuse("lanes name different barriers", mask)) }
    }

    fn check_barrier(&self, number: u32, count: Option<u32>, mask: u32) -> Step<()> {
        if number as usize >= BARRIERS {
            return Err(misuse(&format!("barrier {number} does not exist; there are 16"), mask));
        }
        let threads = self.launch.threads.next_multiple_of(32);
        if let Some(count) = count
            && (count == 0 || count % 32 != 0 || count > threads)
        {
            let text = format!(
                "a barrier of {count} threads in a block of {}; it must be a multiple of 32",
                self.launch.threads
            );
            return Err(misuse(&text, mask));
        }
        Ok(())
    }

    fn check_aligned(&self, mask: u32) -> Step<()> {
        let warp = &self.block.warps[self.warp];
        let exited = warp.exists & !warp.alive;
        if exited != 0 {
            let text =
                format!("an aligned barrier after lanes {exited:#010x} of the warp have exited");
            return Err(misuse(&text, mask));
        }
        if self.group.mask != mask {
            let text = "an aligned barrier under a predicate that differs between lanes";
            return Err(misuse(text, mask));
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        number: usize,
        count: Option<u32>,
        operands: &Operands,
        mask: u32,
    ) -> Step<()> {
        let votes = (self.source_lanes(operands) & mask).count_ones();
        let exists = self.block.warps[self.warp].exists;
        let threads = mask.count_ones();
        // A whole warp counts as 32 even when the block ends inside it.
        let slots = if mask == exists { 32 } else { threads };
        let barrier = &mut self.block.barriers[number];
        let expected = count.unwrap_or(0);
        if barrier.expected.is_some_and(|before| before != expected) {
            let text = format!("barrier {number} is used with different thread counts");
            return Err(misuse(&text, mask));
        }
        barrier.expected = Some(expected);
        barrier.threads += threads;
        barrier.slots += slots;
        barrier.population += votes;
        if expected != 0 && barrier.slots > expected {
            let text = format!("more than {expected} threads arrive at barrier {number}");
            return Err(misuse(&text, mask));
        }
        Ok(())
    }

    /// Lets the threads at a barrier go on when all have arrived.
    pub(crate) fn complete(&mut self, number: usize) {
        let barrier = self.block.barriers[number];
        let done = match barrier.expected {
            None => false,
            Some(0) => barrier.threads >= self.block.alive,
            Some(expected) => barrier.slots >= expected,
        };
        if !done {
            return;
        }
        if O::BARRIERS {
            self.observer.barrier(self.block.number, number as u32);
        }
        for warp in 0..self.block.warps.len() {
            for index in 0..self.block.warps[warp].groups.len() {
                let group = self.block.warps[warp].groups[index];
                if group.wait == Wait::Barrier(number as u8) {
                    self.deliver(warp, group, barrier.population, barrier.threads);
                    let group = &mut self.block.warps[warp].groups[index];
                    group.wait = Wait::Ready;
                    group.pc += 1;
                }
            }
        }
        self.block.barriers[number] = super::block::Barrier::default();
    }

    /// Writes what `barrier.red` gives to a group that waited.
    fn deliver(&mut self, warp: usize, group: Group, population: u32, threads: u32) {
        let op = self.code().ops[group.pc as usize];
        let Action::Effect(super::effect::Effect::Barrier { kind, .. }) = op.action else {
            return;
        };
        let level = group.level as usize;
        let rows = level * self.code().level_rows as usize;
        let predicates = level * self.code().level_predicates as usize;
        let warp = &mut self.block.warps[warp];
        let truth = match kind {
            BarrierKind::Population => {
                let row = &mut warp.registers[rows + op.operands.d as usize].0;
                for lane in (0..LANES).filter(|lane| group.mask >> lane & 1 == 1) {
                    row[lane] = population;
                }
                return;
            }
            BarrierKind::All => population == threads,
            BarrierKind::Any => population != 0,
            BarrierKind::Sync | BarrierKind::Arrive => return,
        };
        let mut set = |slot: u16, truth: bool| {
            let word = &mut warp.predicates[predicates + usize::from(slot)];
            *word = if truth { *word | group.mask } else { *word & !group.mask };
        };
        set(op.operands.p, truth);
        set(op.operands.q, !truth);
    }
}

fn misuse(what: &str, mask: u32) -> Box<Trouble> {
    Trouble::new(FaultKind::BarrierMisuse { what: what.to_owned() }, mask)
}
