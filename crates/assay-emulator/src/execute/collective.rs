//! What the lanes of a warp do together: `shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp.sync`
//! (ISA 9.7.9.6 and 9.7.13).
//!
//! All wait until the member lanes are here; lanes that have exited are not waited for. None of
//! them but `bar.warp.sync` orders memory.

use super::access::lanes_of;
use super::effect::{Reduction, Shuffle, Vote};
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, NEGATE_R, Operands, Slot, pack};
use super::warp::Group;
use crate::arithmetic::float::{canonical, maximum, maximum_nan, minimum, minimum_nan};
use crate::fault::FaultKind;
use crate::observer::Observer;
use crate::program::Op;

/// Why a group does not go on at once.
#[derive(Clone, Copy)]
enum Stop {
    /// It waits, or others go first.
    Flow(Flow),
    /// Its lanes name different members.
    Differ,
}

impl<O: Observer> Engine<'_, O> {
    fn words(&self, slot: Slot) -> [u32; LANES] {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        unsafe { self.frame.lanes32(slot) }
    }

    fn set_words(&mut self, slot: Slot, lanes: [u32; LANES], mask: u32) {
        // SAFETY: as above; destinations are registers.
        unsafe { self.frame.store32(slot, lanes, mask) }
    }

    fn set_bits(&mut self, p: u16, q: u16, lanes: u32, mask: u32) {
        // SAFETY: predicates of lowered instructions are inside the frame.
        unsafe {
            self.frame.set_predicate(p, lanes, mask);
            self.frame.set_predicate(q, !lanes, mask);
        }
    }

    /// Waits for the members; `Err` when this group has to stop here.
    #[inline(always)]
    fn gather(&mut self, slot: Slot, mask: u32) -> Step<Result<u32, Stop>> {
        let masks = self.words(slot);
        let members = masks[mask.trailing_zeros() as usize & 31];
        let mut differs = 0;
        for lane in 0..LANES {
            let active = ((mask >> lane) & 1).wrapping_neg();
            differs |= (masks[lane] ^ members) & active;
        }
        if differs != 0 {
            return Ok(Err(Stop::Differ));
        }
        if mask & !members != 0 {
            return Err(Self::members_misused(members, mask));
        }
        match self.converge(members, mask) {
            Some(flow) => Ok(Err(Stop::Flow(flow))),
            None => Ok(Ok(members)),
        }
    }

    /// What becomes of a group that stops: where its lanes belong to different sets, as in tiles
    /// of a warp that do the same at one time, each set that is complete runs on its own, and the
    /// others wait for the rest of theirs.
    #[cold]
    fn stopped(
        &mut self,
        stop: Stop,
        slot: Slot,
        mask: u32,
        mut run: impl FnMut(&mut Self, u32) -> Step,
    ) -> Step {
        if let Stop::Flow(flow) = stop {
            return Ok(flow);
        }
        let masks = self.words(slot);
        let (mut left, mut parked) = (mask, 0);
        while left != 0 {
            let members = masks[left.trailing_zeros() as usize & 31];
            let set = lanes_of(left).filter(|&lane| masks[lane] == members);
            let set = set.fold(0, |set, lane| set | 1_u32 << lane);
            left &= !set;
            if set & !members != 0 {
                return Err(Self::members_misused(members, set));
            }
            if members & self.block.warps[self.warp].alive & !set == 0 {
                run(self, set)?;
            } else {
                self.park(members, set);
                parked |= set;
            }
        }
        if parked == 0 {
            return Ok(Flow::Next);
        }
        let rest = Group { mask: self.group.mask & !parked, pc: self.group.pc + 1, ..self.group };
        if rest.mask != 0 {
            self.block.warps[self.warp].groups.push(rest);
        }
        Ok(Flow::Reschedule)
    }

    #[cold]
    fn members_misused(members: u32, mask: u32) -> Box<Trouble> {
        let what = format!(
            "lanes {:#010x} execute with a member mask {members:#010x} that leaves them out",
            mask & !members
        );
        Trouble::new(FaultKind::WarpMisuse { what }, mask)
    }

    /// `shfl.sync`
    #[inline(always)]
    pub(crate) fn shuffle(&mut self, mode: Shuffle, op: &Op, mask: u32) -> Step {
        let operands = &op.operands;
        let [clamp, members, ..] = self.code().lists[operands.c as usize];
        if let Err(stop) = self.gather(members, mask)? {
            return self.stopped(stop, members, mask, |engine, set| engine.shuffle(mode, op, set));
        }
        let (values, by, clamps) =
            (self.words(operands.a), self.words(operands.b), self.words(clamp));
        let (from, inside) = match mode {
            Shuffle::Up => sources(up, &by, &clamps),
            Shuffle::Down => sources(down, &by, &clamps),
            Shuffle::Butterfly => sources(butterfly, &by, &clamps),
            Shuffle::Index => sources(index, &by, &clamps),
        };
        if mask != u32::MAX {
            self.check_sources(op, &from, mask)?;
        }
        let mut result = [0; LANES];
        for lane in 0..LANES {
            result[lane] = values[from[lane] as usize & (LANES - 1)];
        }
        let valid = pack(inside);
        self.set_words(operands.d, result, mask);
        // SAFETY: predicates of lowered instructions are inside the frame.
        unsafe { self.frame.set_predicate(operands.p, valid, mask) };
        Ok(Flow::Next)
    }

    /// Reads only go to lanes that take part.
    #[inline(never)]
    fn check_sources(&self, op: &Op, from: &[u32; LANES], mask: u32) -> Step<()> {
        let read = lanes_of(mask).fold(0, |read, lane| read | 1_u32 << (from[lane] & 31));
        if read & !mask == 0 {
            return Ok(());
        }
        let opcode = self.code().places[op.place as usize].opcode.text.clone();
        let lane = (read & !mask).trailing_zeros();
        Err(Trouble::new(FaultKind::InactiveLaneRead { opcode, lane }, mask))
    }

    /// `vote.sync`
    pub(crate) fn vote(&mut self, vote: Vote, operands: &Operands, mask: u32) -> Step {
        let members = match self.gather(operands.b, mask)? {
            Ok(members) => members,
            Err(stop) => {
                let run = |engine: &mut Self, set| engine.vote(vote, operands, set);
                return self.stopped(stop, operands.b, mask, run);
            }
        };
        let ballot = self.source_lanes(operands) & members & mask;
        let result = match vote {
            Vote::Ballot => {
                self.set_words(operands.d, [ballot; LANES], mask);
                return Ok(Flow::Next);
            }
            Vote::All => ballot == mask,
            Vote::Any => ballot != 0,
            Vote::Uniform => ballot == mask || ballot == 0,
        };
        let lanes = if result { !0 } else { 0 };
        self.set_bits(operands.p, operands.q, lanes, mask);
        Ok(Flow::Next)
    }

    /// The source predicate `r`, inverted where the flags say so.
    pub(crate) fn source_lanes(&self, operands: &Operands) -> u32 {
        // SAFETY: predicates of lowered instructions are inside the frame.
        let lanes = unsafe { self.frame.predicate(operands.r) };
        if operands.flags & NEGATE_R == 0 { lanes } else { !lanes }
    }

    /// `match.any.sync`
    pub(crate) fn match_any(&mut self, wide: bool, operands: &Operands, mask: u32) -> Step {
        if let Err(stop) = self.gather(operands.b, mask)? {
            let run = |engine: &mut Self, set| engine.match_any(wide, operands, set);
            return self.stopped(stop, operands.b, mask, run);
        }
        let values = self.read_register(operands.a, wide);
        let mut result = [0; LANES];
        for lane in lanes_of(mask) {
            let same = lanes_of(mask).filter(|&other| values[other] == values[lane]);
            result[lane] = same.fold(0, |found, other| found | 1 << other);
        }
        self.set_words(operands.d, result, mask);
        Ok(Flow::Next)
    }

    /// `match.all.sync`
    pub(crate) fn match_all(&mut self, wide: bool, operands: &Operands, mask: u32) -> Step {
        if let Err(stop) = self.gather(operands.b, mask)? {
            let run = |engine: &mut Self, set| engine.match_all(wide, operands, set);
            return self.stopped(stop, operands.b, mask, run);
        }
        let values = self.read_register(operands.a, wide);
        let first = values[mask.trailing_zeros() as usize & 31];
        let all = lanes_of(mask).all(|lane| values[lane] == first);
        self.set_words(operands.d, [if all { mask } else { 0 }; LANES], mask);
        // SAFETY: predicates of lowered instructions are inside the frame.
        unsafe { self.frame.set_predicate(operands.p, if all { !0 } else { 0 }, mask) };
        Ok(Flow::Next)
    }

    /// `redux.sync`
    pub(crate) fn redux(&mut self, reduction: Reduction, operands: &Operands, mask: u32) -> Step {
        if let Err(stop) = self.gather(operands.b, mask)? {
            let run = |engine: &mut Self, set| engine.redux(reduction, operands, set);
            return self.stopped(stop, operands.b, mask, run);
        }
        let values = self.words(operands.a);
        let absolute = operands.flags & 2 != 0;
        let mut all = lanes_of(mask)
            .map(|lane| if absolute { values[lane] & 0x7fff_ffff } else { values[lane] });
        let first = all.next().unwrap_or(0);
        let nan = operands.flags & 1 != 0;
        let result = all.fold(first, |a, b| reduced(reduction, nan, a, b));
        let result = match reduction {
            Reduction::MinimumF | Reduction::MaximumF => {
                canonical(f32::from_bits(result)).to_bits()
            }
            _ => result,
        };
        self.set_words(operands.d, [result; LANES], mask);
        Ok(Flow::Next)
    }

    /// `activemask`: whoever runs together right now.
    pub(crate) fn active_mask(&mut self, operands: &Operands, mask: u32) -> Step {
        self.set_words(operands.d, [mask; LANES], mask);
        Ok(Flow::Next)
    }

    /// `elect.sync`: the lowest member.
    pub(crate) fn elect(&mut self, operands: &Operands, mask: u32) -> Step {
        if let Err(stop) = self.gather(operands.b, mask)? {
            let run = |engine: &mut Self, set| engine.elect(operands, set);
            return self.stopped(stop, operands.b, mask, run);
        }
        let leader = mask.trailing_zeros();
        self.set_words(operands.d, [leader; LANES], mask);
        // SAFETY: predicates of lowered instructions are inside the frame.
        unsafe { self.frame.set_predicate(operands.p, 1 << leader, mask) };
        Ok(Flow::Next)
    }

    /// `bar.warp.sync`
    pub(crate) fn warp_barrier(&mut self, operands: &Operands, mask: u32) -> Step {
        match self.gather(operands.a, mask)? {
            Ok(_) => Ok(Flow::Next),
            Err(stop) => {
                let run = |engine: &mut Self, set| engine.warp_barrier(operands, set);
                self.stopped(stop, operands.a, mask, run)
            }
        }
    }
}

/// What each lane reads, and whether that is inside its segment (ISA 9.7.9.6). The rule gets lane,
/// distance or index, segment mask and limit.
#[inline(always)]
fn sources(
    rule: impl Fn(u32, u32, u32, u32) -> (u32, bool),
    by: &[u32; LANES],
    clamps: &[u32; LANES],
) -> ([u32; LANES], [bool; LANES]) {
    let mut from = [0; LANES];
    let mut valid = [false; LANES];
    for lane in 0..LANES {
        let own = lane as u32;
        let segment = (clamps[lane] >> 8) & 0x1f;
        let limit = (own & segment) | (clamps[lane] & 0x1f & !segment);
        let (source, inside) = rule(own, by[lane] & 0x1f, segment, limit);
        from[lane] = if inside { source } else { own };
        valid[lane] = inside;
    }
    (from, valid)
}

#[inline(always)]
fn up(lane: u32, by: u32, _: u32, limit: u32) -> (u32, bool) {
    let source = lane.wrapping_sub(by);
    (source, source as i32 >= limit as i32)
}

#[inline(always)]
fn down(lane: u32, by: u32, _: u32, limit: u32) -> (u32, bool) {
    (lane + by, lane + by <= limit)
}

#[inline(always)]
fn butterfly(lane: u32, by: u32, _: u32, limit: u32) -> (u32, bool) {
    (lane ^ by, lane ^ by <= limit)
}

#[inline(always)]
fn index(lane: u32, by: u32, segment: u32, limit: u32) -> (u32, bool) {
    let source = (lane & segment) | (by & !segment);
    (source, source <= limit)
}

fn reduced(reduction: Reduction, nan: bool, a: u32, b: u32) -> u32 {
    let float =
        |function: fn(f32, f32) -> f32| function(f32::from_bits(a), f32::from_bits(b)).to_bits();
    match reduction {
        Reduction::Add => a.wrapping_add(b),
        Reduction::And => a & b,
        Reduction::Or => a | b,
        Reduction::Xor => a ^ b,
        Reduction::MinimumU => a.min(b),
        Reduction::MaximumU => a.max(b),
        Reduction::MinimumS => (a as i32).min(b as i32) as u32,
        Reduction::MaximumS => (a as i32).max(b as i32) as u32,
        Reduction::MinimumF => float(if nan { minimum_nan } else { minimum }),
        Reduction::MaximumF => float(if nan { maximum_nan } else { maximum }),
    }
}
