//! Special registers, and arithmetic with the carry bit.

use super::effect::{CarryKind, CarryOperation, Special};
use super::engine::{Engine, Flow, Step};
use super::frame::{LANES, Operands};
use crate::observer::Observer;

impl<O: Observer> Engine<'_, O> {
    /// Reads a special register.
    pub(crate) fn special(&mut self, special: Special, operands: &Operands, mask: u32) -> Step {
        let lane = |function: fn(u32) -> u32| {
            let mut lanes = [0; LANES];
            for (index, lane) in lanes.iter_mut().enumerate() {
                *lane = u64::from(function(index as u32));
            }
            lanes
        };
        let axis = |values: [u32; 3], axis: u8| {
            [u64::from(values.get(usize::from(axis)).copied().unwrap_or(0)); LANES]
        };
        let values = match special {
            Special::Thread(axis) => self.thread_index(axis),
            Special::Threads(number) => axis(self.launch.block, number),
            Special::Block(number) => axis(self.block.index, number),
            Special::Blocks(number) => axis(self.launch.grid, number),
            Special::Cluster(number) => axis(self.block.cluster_index, number),
            Special::Clusters(number) => {
                let [grid, cluster] = [self.launch.grid, self.launch.cluster];
                axis(std::array::from_fn(|axis| grid[axis] / cluster[axis]), number)
            }
            Special::ClusterBlock(number) => axis(self.block.index_in_cluster, number),
            Special::ClusterBlocks(number) => axis(self.launch.cluster, number),
            Special::ClusterRank => [u64::from(self.block.rank); LANES],
            Special::ClusterRanks => [u64::from(self.cluster_size()); LANES],
            Special::Lane => lane(|lane| lane),
            Special::Warp => [self.warp as u64; LANES],
            Special::Warps => [self.block.warps.len() as u64; LANES],
            Special::Multiprocessor => {
                [self.block.number % u64::from(self.launch.multiprocessors); LANES]
            }
            Special::Multiprocessors => [u64::from(self.launch.multiprocessors); LANES],
            Special::LaneMaskEqual => lane(|lane| 1 << lane),
            Special::LaneMaskLessEqual => lane(|lane| u32::MAX >> (31 - lane)),
            Special::LaneMaskLess => lane(|lane| (1 << lane) - 1),
            Special::LaneMaskGreaterEqual => lane(|lane| u32::MAX << lane),
            Special::LaneMaskGreater => lane(|lane| !(u32::MAX >> (31 - lane))),
            Special::Clock | Special::Clock64 => [self.cycles(); LANES],
            Special::ClockHigh => [self.cycles() >> 32; LANES],
            Special::GlobalTimer | Special::GlobalTimerLow => [self.nanoseconds(); LANES],
            Special::GlobalTimerHigh => [self.nanoseconds() >> 32; LANES],
            Special::TotalShared => [u64::from(self.launch.counted_shared); LANES],
            Special::DynamicShared => [u64::from(self.launch.dynamic_shared); LANES],
            // The grid barrier's workspace, as cooperative groups look it up.
            Special::Environment(1) => [self.launch.workspace >> 32; LANES],
            Special::Environment(2) => [self.launch.workspace & 0xffff_ffff; LANES],
            Special::Environment(_) | Special::Zero | Special::Zero64 => [0; LANES],
        };
        let wide = matches!(special, Special::Clock64 | Special::GlobalTimer | Special::Zero64);
        self.write_register(operands.d, wide, &values, mask);
        Ok(Flow::Next)
    }

    /// Instructions that have run, this one included.
    fn instructions(&self) -> u64 {
        self.executed + u64::from(self.group.pc - self.line_start) + 1
    }

    fn cycles(&self) -> u64 {
        self.launch.timers.cycles_after(self.instructions())
    }

    fn nanoseconds(&self) -> u64 {
        self.launch.timers.nanoseconds_after(self.instructions())
    }

    fn thread_index(&self, axis: u8) -> [u64; LANES] {
        let [x, y, z] = self.launch.block;
        let first = self.warp as u32 * LANES as u32;
        let mut lanes = [0; LANES];
        if y == 1 && z == 1 {
            for (index, lane) in lanes.iter_mut().enumerate().filter(|_| axis == 0) {
                *lane = u64::from(first + index as u32);
            }
            return lanes;
        }
        for (index, lane) in lanes.iter_mut().enumerate() {
            let thread = first + index as u32;
            *lane = u64::from(match axis {
                0 => thread % x,
                1 => thread / x % y,
                2 => thread / (x * y),
                _ => 0,
            });
        }
        lanes
    }

    /// `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc`, `madc` (ISA 9.7.2).
    pub(crate) fn carry(&mut self, kind: CarryKind, operands: &Operands, mask: u32) -> Step {
        let [a, b, c] =
            [operands.a, operands.b, operands.c].map(|slot| self.read_register(slot, kind.wide));
        // SAFETY: predicates of lowered instructions are inside the frame.
        let carries = unsafe { self.frame.predicate(operands.r) };
        let mut result = [0; LANES];
        let mut carry_out = 0;
        for lane in 0..LANES {
            let carry_in = kind.carry_in && carries >> lane & 1 == 1;
            let (value, carry) = carried(kind, a[lane], b[lane], c[lane], carry_in);
            result[lane] = value;
            carry_out |= u32::from(carry) << lane;
        }
        self.write_register(operands.d, kind.wide, &result, mask);
        if kind.carry_out {
            // SAFETY: as above.
            unsafe { self.frame.set_predicate(operands.p, carry_out, mask) };
        }
        Ok(Flow::Next)
    }
}

/// One lane of a carry operation: the result and the carry.
///
/// After a subtraction the bit is set when there was no borrow: so it is on the hardware, which
/// shows where a program mixes `sub.cc` and `addc`. The ISA calls the bit the borrow.
fn carried(kind: CarryKind, a: u64, b: u64, c: u64, carry_in: bool) -> (u64, bool) {
    let bits = if kind.wide { 64 } else { 32 };
    let extra = u128::from(carry_in);
    let (a, b) = (u128::from(a), u128::from(b));
    let full = match kind.operation {
        CarryOperation::Add => a + b + extra,
        CarryOperation::Subtract => {
            let borrow = u128::from(kind.carry_in && !carry_in);
            let difference = a.wrapping_sub(b).wrapping_sub(borrow);
            return (cut(difference, bits), a >= b + borrow);
        }
        CarryOperation::MultiplyAddLow => {
            u128::from(cut(a.wrapping_mul(b), bits)) + u128::from(c) + extra
        }
        CarryOperation::MultiplyAddHighU => ((a * b) >> bits) + u128::from(c) + extra,
        CarryOperation::MultiplyAddHighS => {
            let signed = |x: u128| ((x << (128 - bits)) as i128) >> (128 - bits);
            let high = (signed(a) * signed(b)) >> bits;
            u128::from(cut(high as u128, bits)) + u128::from(c) + extra
        }
    };
    (cut(full, bits), full >> bits & 1 == 1)
}

fn cut(value: u128, bits: u32) -> u64 {
    if bits == 64 { value as u64 } else { u64::from(value as u32) }
}
