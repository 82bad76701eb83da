//! Atomic operations (ISA 9.7.13.5 and 9.7.13.6).

use super::address;
use super::effect::{Atomic, AtomicOperation, AtomicType, AtomicWide, SpaceKind};
use super::engine::{Engine, Flow, Step};
use super::frame::{LANES, Operands};
use crate::arithmetic::float::{canonical, flush, maximum, minimum};
use crate::arithmetic::half::{Bf16, F16, Half};
use crate::observer::Observer;

impl AtomicType {
    pub(super) fn bytes(self) -> u64 {
        match self {
            AtomicType::U64 | AtomicType::S64 | AtomicType::F64 => 8,
            AtomicType::F16 | AtomicType::Bf16 | AtomicType::B16 => 2,
            _ => 4,
        }
    }
}

/// The word that an operation leaves in memory. `global` flushes subnormal f32 sums.
pub(super) fn combined(atomic: Atomic, old: u64, b: u64, c: u64, global: bool) -> u64 {
    match atomic.operation {
        AtomicOperation::And => old & b,
        AtomicOperation::Or => old | b,
        AtomicOperation::Xor => old ^ b,
        AtomicOperation::Exchange => b,
        AtomicOperation::CompareAndSwap => {
            if old == b {
                c
            } else {
                old
            }
        }
        AtomicOperation::Increment => {
            if old >= b {
                0
            } else {
                old + 1
            }
        }
        AtomicOperation::Decrement => {
            if old == 0 || old > b {
                b
            } else {
                old - 1
            }
        }
        AtomicOperation::Add => sum(atomic.ty, old, b, global),
        AtomicOperation::Minimum => extremum(atomic.ty, old, b, false),
        AtomicOperation::Maximum => extremum(atomic.ty, old, b, true),
    }
}

fn sum(ty: AtomicType, old: u64, b: u64, global: bool) -> u64 {
    match ty {
        AtomicType::U32 | AtomicType::S32 => u64::from((old as u32).wrapping_add(b as u32)),
        AtomicType::U64 | AtomicType::S64 => old.wrapping_add(b),
        AtomicType::F32 => {
            let (x, y) = (f32::from_bits(old as u32), f32::from_bits(b as u32));
            let sum = if global { flush(flush(x) + flush(y)) } else { x + y };
            u64::from(canonical(sum).to_bits())
        }
        AtomicType::F64 => (f64::from_bits(old) + f64::from_bits(b)).to_bits(),
        AtomicType::F16 => u64::from(F16::sum(old as u16, b as u16)),
        AtomicType::Bf16 => u64::from(Bf16::sum(old as u16, b as u16)),
        AtomicType::F16x2 => each_half(old, b, F16::sum),
        AtomicType::Bf16x2 => each_half(old, b, Bf16::sum),
        AtomicType::B16 => u64::from((old as u16).wrapping_add(b as u16)),
    }
}

fn each_half(a: u64, b: u64, function: impl Fn(u16, u16) -> u16) -> u64 {
    let low = function(a as u16, b as u16);
    let high = function((a >> 16) as u16, (b >> 16) as u16);
    u64::from(low) | u64::from(high) << 16
}

fn extremum(ty: AtomicType, old: u64, b: u64, largest: bool) -> u64 {
    let half = |a: u16, b: u16, widen: fn(u16) -> f32| {
        let (x, y) = (widen(a), widen(b));
        if x.is_nan() && y.is_nan() {
            return 0x7fff;
        }
        let best = if largest { maximum(x, y) } else { minimum(x, y) };
        if best.to_bits() == x.to_bits() { a } else { b }
    };
    match ty {
        AtomicType::S32 => {
            let (x, y) = (old as i32, b as i32);
            u64::from(if largest { x.max(y) } else { x.min(y) } as u32)
        }
        AtomicType::S64 => {
            let (x, y) = (old as i64, b as i64);
            (if largest { x.max(y) } else { x.min(y) }) as u64
        }
        AtomicType::F32 => {
            let (x, y) = (f32::from_bits(old as u32), f32::from_bits(b as u32));
            u64::from(if largest { maximum(x, y) } else { minimum(x, y) }.to_bits())
        }
        AtomicType::F16 => u64::from(half(old as u16, b as u16, F16::widen)),
        AtomicType::Bf16 => u64::from(half(old as u16, b as u16, Bf16::widen)),
        AtomicType::F16x2 => each_half(old, b, |a, b| half(a, b, F16::widen)),
        AtomicType::Bf16x2 => each_half(old, b, |a, b| half(a, b, Bf16::widen)),
        _ => {
            if largest {
                old.max(b)
            } else {
                old.min(b)
            }
        }
    }
}

impl<O: Observer> Engine<'_, O> {
    /// `atom` and `red`: the lanes one after another, each to its end.
    pub(crate) fn atomic(&mut self, atomic: Atomic, operands: &Operands, mask: u32) -> Step {
        let addresses = self.addresses(operands.a, atomic.wide_address, operands.immediate);
        let count = usize::from(atomic.count);
        let wide = atomic.ty.bytes() == 8;
        let mut sources = [[0; LANES]; 8];
        let mut results = [[0; LANES]; 8];
        for (part, source) in sources.iter_mut().enumerate().take(count) {
            let slot =
                if count == 1 { operands.b } else { self.code().lists[operands.c as usize][part] };
            *source = self.read_register(slot, wide);
        }
        let swaps = atomic.operation == AtomicOperation::CompareAndSwap;
        let swap = if swaps { self.read_register(operands.c, wide) } else { [0; LANES] };
        if swaps {
            self.poll(1);
        }
        self.observe(
            atomic.space,
            &addresses,
            (atomic.ty.bytes() * count as u64) as u32,
            true,
            mask,
        );
        for position in 0..LANES {
            let lane = if self.launch.lanes_reversed { LANES - 1 - position } else { position };
            if mask >> lane & 1 == 0 {
                continue;
            }
            for part in 0..count {
                let at = addresses[lane].wrapping_add(part as u64 * atomic.ty.bytes());
                let operand = (sources[part][lane], swap[lane]);
                results[part][lane] = self.atomic_lane(atomic, lane, at, operand)?;
            }
        }
        if atomic.returns {
            for (part, result) in results.iter().enumerate().take(count) {
                let list = operands.c as usize + 1;
                let slot = if count == 1 { operands.d } else { self.code().lists[list][part] };
                self.write_register(slot, wide, result, mask);
            }
        }
        Ok(Flow::Next)
    }

    /// One operation; gives the old word.
    fn atomic_lane(
        &mut self,
        atomic: Atomic,
        lane: usize,
        at: u64,
        (b, c): (u64, u64),
    ) -> Step<u64> {
        let global = match atomic.space {
            SpaceKind::Generic => address::resolve(at).0 == SpaceKind::Global,
            other => other == SpaceKind::Global,
        };
        let size = atomic.ty.bytes();
        let bytes = self.lane_bytes_mut(atomic.space, lane, at, size)?;
        let old = super::access::read_value(bytes, size as usize);
        let new = combined(atomic, old, b, c, global);
        bytes.copy_from_slice(&new.to_le_bytes()[..size as usize]);
        Ok(old)
    }

    /// `atom.exch.b128` and `atom.cas.b128`.
    pub(crate) fn atomic_wide(
        &mut self,
        atomic: AtomicWide,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        let addresses = self.addresses(operands.a, atomic.wide_address, operands.immediate);
        let list = self.code().lists[operands.c as usize];
        let [b, swap] = [2, 4].map(|at| [list[at], list[at + 1]]).map(|halves| {
            let [low, high] = halves.map(|slot| self.read_register(slot, true));
            std::array::from_fn(|lane| u128::from(low[lane]) | u128::from(high[lane]) << 64)
        });
        let b: [u128; LANES] = b;
        if atomic.compares {
            self.poll(1);
        }
        self.observe(atomic.space, &addresses, 16, true, mask);
        let mut old = [[0; LANES]; 2];
        for position in 0..LANES {
            let lane = if self.launch.lanes_reversed { LANES - 1 - position } else { position };
            if mask >> lane & 1 == 0 {
                continue;
            }
            let bytes = self.lane_bytes_mut(atomic.space, lane, addresses[lane], 16)?;
            let before = bytes.first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes));
            let after = match (atomic.compares, before == b[lane]) {
                (false, _) => b[lane],
                (true, true) => swap[lane],
                (true, false) => before,
            };
            bytes.copy_from_slice(&after.to_le_bytes());
            [old[0][lane], old[1][lane]] = [before as u64, (before >> 64) as u64];
        }
        for (slot, lanes) in list.iter().zip(&old) {
            self.write_register(*slot, true, lanes, mask);
        }
        Ok(Flow::Next)
    }
}
