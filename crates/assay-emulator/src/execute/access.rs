//! Loads and stores.
//!
//! Most accesses take the fast paths of [`super::fast`]. What does not fit there, faults included,
//! goes lane by lane here. Every path checks bounds.

use std::ops::Range;

use super::address;
use super::effect::{Access, SpaceKind};
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands, Slot};
use crate::fault::{FaultKind, Nearest, Space};
use crate::memory::{READ, WRITTEN};
use crate::observer::{MemoryAccess, Observer};

/// The lanes of a mask, lowest first.
#[inline(always)]
pub(crate) fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}

/// A value of `bytes` bytes at the front of a slice.
#[inline(always)]
pub(crate) fn read_value(from: &[u8], bytes: usize) -> u64 {
    match bytes {
        1 => u64::from(from[0]),
        2 => u64::from(u16::from_le_bytes([from[0], from[1]])),
        4 => u64::from(u32::from_le_bytes([from[0], from[1], from[2], from[3]])),
        _ => from.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk)),
    }
}

/// Extends a loaded value to its register.
#[inline(always)]
fn extended(value: u64, access: Access) -> u64 {
    if !access.signed {
        return value;
    }
    let shift = 64 - 8 * u32::from(access.bytes);
    let value = (((value << shift) as i64) >> shift) as u64;
    if access.half { value & 0xffff } else { value }
}

pub(crate) fn fault_space(space: SpaceKind) -> Space {
    match space {
        SpaceKind::Shared | SpaceKind::Cluster => Space::Shared,
        SpaceKind::Local | SpaceKind::Frame => Space::Local,
        SpaceKind::Const => Space::Const,
        SpaceKind::Param => Space::Param,
        SpaceKind::Global | SpaceKind::Generic => Space::Global,
    }
}

/// Whether it is shared memory of any block.
fn in_shared(space: SpaceKind) -> bool {
    matches!(space, SpaceKind::Shared | SpaceKind::Cluster)
}

impl<O: Observer> Engine<'_, O> {
    /// The address of each lane.
    #[inline(always)]
    pub(crate) fn addresses(&self, slot: Slot, wide: bool, offset: u64) -> [u64; LANES] {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        unsafe {
            let mut addresses = [0; LANES];
            if wide {
                let base = self.frame.lanes64(slot);
                for lane in 0..LANES {
                    addresses[lane] = base[lane].wrapping_add(offset);
                }
            } else {
                let base = self.frame.lanes32(slot);
                for lane in 0..LANES {
                    addresses[lane] = u64::from(base[lane]).wrapping_add(offset);
                }
            }
            addresses
        }
    }

    /// `ld`
    #[inline(always)]
    pub(crate) fn load(&mut self, access: Access, operands: &Operands, mask: u32) -> Step {
        if access.polls {
            self.poll(1);
        }
        if !O::MEMORY && self.load_fast(access, operands, mask) {
            return Ok(Flow::Next);
        }
        self.load_any(access, operands, mask)
    }

    /// Bytes of global memory, looking first where this instruction last looked.
    #[inline(always)]
    pub(crate) fn global(&mut self, start: u64, length: u64) -> Option<&[u8]> {
        let index = self.global_index(start, length, READ)?;
        let allocation = self.memory.allocation(index);
        allocation.bytes((start - allocation.start) as usize, length as usize)
    }

    /// Bytes of global memory that are about to be written, all of them.
    #[inline(always)]
    pub(crate) fn global_mut(&mut self, start: u64, length: u64) -> Option<&mut [u8]> {
        let index = self.global_index(start, length, WRITTEN)?;
        let allocation = self.memory.allocation_mut(index);
        if !allocation.writable {
            return None;
        }
        let offset = (start - allocation.start) as usize;
        allocation.bytes_mut(offset, length as usize)
    }

    /// A range of shared memory that lies in one variable, looking first where this instruction
    /// last looked.
    #[inline(always)]
    pub(crate) fn shared_range(&mut self, start: u64, length: u64) -> Option<Range<usize>> {
        let inside = |&(first, end): &(u32, u32)| {
            start >= u64::from(first) && start.saturating_add(length) <= u64::from(end)
        };
        let hint = &mut self.hints[self.group.pc as usize];
        let ranges = &self.launch.shared_ranges;
        if !ranges.get(*hint as usize).is_some_and(inside) {
            *hint = ranges.iter().position(inside)? as u32;
        }
        Some(start as usize..start as usize + length as usize)
    }

    /// The variable in shared memory nearest to an address.
    fn nearest_shared(&self, at: u64) -> Option<Nearest> {
        let distance = |&&(first, end): &&(u32, u32)| {
            let (first, end) = (u64::from(first), u64::from(end));
            if at < first { first - at } else { at.saturating_sub(end) }
        };
        let &(first, end) = self.launch.shared_ranges.iter().min_by_key(distance)?;
        let offset = at as i64 - i64::from(first);
        let (start, bytes) = (u64::from(first), u64::from(end - first));
        Some(Nearest { start, bytes, offset, freed: false })
    }

    #[inline(always)]
    fn global_index(&mut self, start: u64, length: u64, use_: u8) -> Option<usize> {
        let hint = &mut self.hints[self.group.pc as usize];
        if self.memory.holds(*hint as usize, start, length, use_) {
            return Some(*hint as usize);
        }
        let index = self.memory.find(start, length)?.allocation;
        self.memory.note(index, use_);
        *hint = index as u32;
        Some(index)
    }

    /// Any load, lane by lane.
    #[inline(never)]
    fn load_any(&mut self, access: Access, operands: &Operands, mask: u32) -> Step {
        let addresses = self.addresses(operands.a, access.wide_address, operands.immediate);
        let total = u64::from(access.bytes) * u64::from(access.count);
        let mut lanes = [[0_u64; LANES]; 8];
        self.observe(access.space, &addresses, total as u32, false, mask);
        for lane in lanes_of(mask) {
            let bytes = self.lane_bytes(access.space, lane, addresses[lane], total, mask)?;
            for (part, lanes) in lanes.iter_mut().enumerate().take(usize::from(access.count)) {
                let size = usize::from(access.bytes);
                let value = read_value(&bytes[part * size..], size);
                lanes[lane] = extended(value, access);
            }
        }
        for part in 0..usize::from(access.count) {
            let slot = self.part(access.count, operands.d, operands.c, part);
            self.write_register(slot, access.wide, &lanes[part], mask);
        }
        Ok(Flow::Next)
    }

    /// The slot of a component: the operand itself, or an entry of the list.
    #[inline(always)]
    fn part(&self, count: u8, single: Slot, list: Slot, part: usize) -> Slot {
        if count == 1 { single } else { self.code().lists[list as usize][part] }
    }

    /// Writes a register of 32 or 64 bits.
    #[inline(always)]
    pub(crate) fn write_register(
        &mut self,
        slot: Slot,
        wide: bool,
        lanes: &[u64; LANES],
        mask: u32,
    ) {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        unsafe {
            if wide {
                self.frame.store64(slot, *lanes, mask);
            } else {
                let mut words = [0; LANES];
                for lane in 0..LANES {
                    words[lane] = lanes[lane] as u32;
                }
                self.frame.store32(slot, words, mask);
            }
        }
    }

    /// Reads a register or constant of 32 or 64 bits.
    #[inline(always)]
    pub(crate) fn read_register(&self, slot: Slot, wide: bool) -> [u64; LANES] {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        unsafe {
            if wide {
                return self.frame.lanes64(slot);
            }
            let words = self.frame.lanes32(slot);
            let mut lanes = [0; LANES];
            for lane in 0..LANES {
                lanes[lane] = u64::from(words[lane]);
            }
            lanes
        }
    }

    /// The bytes that one lane reads.
    pub(crate) fn lane_bytes(
        &mut self,
        space: SpaceKind,
        lane: usize,
        at: u64,
        length: u64,
        _mask: u32,
    ) -> Step<&[u8]> {
        let (space, at) = self.resolved(space, lane, at)?;
        Self::check_alignment(space, lane, at, length)?;
        // Looked up twice, because a borrow that is returned on one path only does not pass yet.
        if self.readable(space, lane, at, length).is_none() {
            return Err(self.out_of_bounds(space, lane, at, length, false));
        }
        Ok(self.readable(space, lane, at, length).unwrap_or(&[]))
    }

    #[inline(always)]
    fn readable(&mut self, space: SpaceKind, lane: usize, at: u64, length: u64) -> Option<&[u8]> {
        let start = at as usize;
        let end = start.checked_add(length as usize)?;
        match space {
            SpaceKind::Shared => {
                let range = self.shared_range(at, length)?;
                self.block.shared.get(range)
            }
            SpaceKind::Cluster => self.peer_bytes(at, length),
            SpaceKind::Param => self.launch.parameters.get(start..end),
            SpaceKind::Local | SpaceKind::Frame => {
                if let Some((from, to)) = self.stack_range(lane, at, length) {
                    return self.block.warps[self.warp].stack.get(from..to);
                }
                let (from, to) = self.local_range(lane, at, length)?;
                self.block.warps[self.warp].local.get(from..to)
            }
            SpaceKind::Global | SpaceKind::Const | SpaceKind::Generic => self.global(at, length),
        }
    }

    /// Where a lane's local memory range lies in the warp's.
    fn local_range(&self, lane: usize, at: u64, length: u64) -> Option<(usize, usize)> {
        let warp = &self.block.warps[self.warp];
        let stride = warp.local.len() / LANES;
        let end = at.checked_add(length)?;
        (end <= self.local_end() as u64)
            .then(|| (lane * stride + at as usize, lane * stride + end as usize))
    }

    /// Where local memory ends for the running group: behind its own level of recursion.
    fn local_end(&self) -> usize {
        let levels = self.group.level as usize + 1;
        match self.group.level {
            0 => self.launch.local_bytes as usize,
            _ => levels * self.code().level_local as usize,
        }
    }

    /// The bytes that one lane writes.
    pub(crate) fn lane_bytes_mut(
        &mut self,
        space: SpaceKind,
        lane: usize,
        at: u64,
        length: u64,
    ) -> Step<&mut [u8]> {
        let (space, at) = self.resolved(space, lane, at)?;
        Self::check_alignment(space, lane, at, length)?;
        if matches!(space, SpaceKind::Param | SpaceKind::Const) {
            let kind = FaultKind::ReadOnlyWrite { space: fault_space(space), address: at };
            return Err(Trouble::new(kind, 1 << lane));
        }
        if self.writable(space, lane, at, length).is_none() {
            return Err(self.out_of_bounds(space, lane, at, length, true));
        }
        Ok(self.writable(space, lane, at, length).unwrap_or(&mut []))
    }

    #[inline(always)]
    fn writable(
        &mut self,
        space: SpaceKind,
        lane: usize,
        at: u64,
        length: u64,
    ) -> Option<&mut [u8]> {
        match space {
            SpaceKind::Shared => {
                let range = self.shared_range(at, length)?;
                self.block.shared.get_mut(range)
            }
            SpaceKind::Cluster => self.peer_bytes_mut(at, length),
            SpaceKind::Local | SpaceKind::Frame => {
                if let Some((from, to)) = self.stack_range(lane, at, length) {
                    return self.block.warps[self.warp].stack.get_mut(from..to);
                }
                let (from, to) = self.local_range(lane, at, length)?;
                self.block.warps[self.warp].local.get_mut(from..to)
            }
            SpaceKind::Global | SpaceKind::Generic => self.global_mut(at, length),
            SpaceKind::Param | SpaceKind::Const => None,
        }
    }

    /// The space and address behind a generic, frame or cluster address.
    #[inline(always)]
    pub(crate) fn resolved(
        &self,
        space: SpaceKind,
        lane: usize,
        at: u64,
    ) -> Step<(SpaceKind, u64)> {
        let (space, at) = match space {
            SpaceKind::Generic => address::resolve(at),
            SpaceKind::Frame => {
                let level = u64::from(self.group.level) * u64::from(self.code().level_local);
                (SpaceKind::Local, at.wrapping_add(level))
            }
            other => (other, at),
        };
        match space {
            SpaceKind::Cluster => self.in_cluster(at, lane),
            SpaceKind::Shared if at >= address::BLOCK_WINDOW => Ok(self.own_window(at)),
            _ => Ok((space, at)),
        }
    }

    fn check_alignment(space: SpaceKind, lane: usize, at: u64, length: u64) -> Step<()> {
        if at.is_multiple_of(length) {
            return Ok(());
        }
        let kind =
            FaultKind::Misaligned { space: fault_space(space), address: at, bytes: length as u32 };
        Err(Trouble::new(kind, 1 << lane))
    }

    #[cold]
    pub(crate) fn out_of_bounds(
        &self,
        space: SpaceKind,
        lane: usize,
        at: u64,
        length: u64,
        write: bool,
    ) -> Box<Trouble> {
        let global = matches!(space, SpaceKind::Global | SpaceKind::Generic | SpaceKind::Const);
        if global && write && self.memory.find(at, length).is_some() {
            let kind = FaultKind::ReadOnlyWrite { space: Space::Const, address: at };
            return Trouble::new(kind, 1 << lane);
        }
        let whole = |bytes: usize| Nearest {
            start: 0,
            bytes: bytes as u64,
            offset: at as i64,
            freed: false,
        };
        let nearest = match space {
            SpaceKind::Shared => self.nearest_shared(at),
            SpaceKind::Cluster => self.nearest_shared(address::unmapped(at).1),
            SpaceKind::Param => Some(whole(self.launch.parameters.len())),
            SpaceKind::Local | SpaceKind::Frame => Some(whole(self.local_end())),
            _ => self.memory.nearest(at),
        };
        let (space, bytes) = (fault_space(space), length as u32);
        let kind = FaultKind::OutOfBounds { space, address: at, bytes, write, nearest };
        Trouble::new(kind, 1 << lane)
    }

    /// `st`
    #[inline(always)]
    pub(crate) fn store(&mut self, access: Access, operands: &Operands, mask: u32) -> Step {
        if !O::MEMORY && self.store_fast(access, operands, mask) {
            return Ok(Flow::Next);
        }
        self.store_any(access, operands, mask)
    }

    /// Any store, lane by lane.
    #[inline(never)]
    fn store_any(&mut self, access: Access, operands: &Operands, mask: u32) -> Step {
        let addresses = self.addresses(operands.a, access.wide_address, operands.immediate);
        let size = usize::from(access.bytes);
        let count = usize::from(access.count);
        let total = (size * count) as u64;
        let mut lanes = [[0_u64; LANES]; 8];
        for (part, lanes) in lanes.iter_mut().enumerate().take(count) {
            let slot = self.part(access.count, operands.b, operands.c, part);
            *lanes = self.read_register(slot, access.wide);
        }
        self.observe(access.space, &addresses, total as u32, true, mask);
        let one = |engine: &mut Self, lane: usize| -> Step<()> {
            let bytes = engine.lane_bytes_mut(access.space, lane, addresses[lane], total)?;
            for (part, lanes) in lanes.iter().enumerate().take(count) {
                let value = lanes[lane].to_le_bytes();
                bytes[part * size..(part + 1) * size].copy_from_slice(&value[..size]);
            }
            Ok(())
        };
        if self.launch.lanes_reversed {
            for lane in (0..LANES).rev().filter(|lane| mask >> lane & 1 == 1) {
                one(self, lane)?;
            }
        } else {
            for lane in lanes_of(mask) {
                one(self, lane)?;
            }
        }
        Ok(Flow::Next)
    }

    /// Tells the observer of an access.
    #[inline(always)]
    pub(crate) fn observe(
        &mut self,
        space: SpaceKind,
        addresses: &[u64; LANES],
        bytes: u32,
        write: bool,
        mask: u32,
    ) {
        if O::MEMORY {
            let line = self.line(self.group.pc);
            self.observer.access(&MemoryAccess {
                space: fault_space(space),
                addresses,
                bytes,
                write,
                atomic: false,
                mask,
                block: self.block.number,
                warp: self.warp as u32,
                line,
            });
        }
    }

    /// The address of a frame variable in local memory.
    pub(crate) fn frame_address(&mut self, wide: bool, operands: &Operands, mask: u32) -> Step {
        let level = u64::from(self.group.level) * u64::from(self.code().level_local);
        let address = operands.immediate.wrapping_add(level);
        self.write_register(operands.d, wide, &[address; LANES], mask);
        Ok(Flow::Next)
    }

    /// `cvta` and `cvta.to` for the spaces with a window.
    pub(crate) fn move_window(
        &mut self,
        space: SpaceKind,
        operands: &Operands,
        mask: u32,
        off: bool,
    ) -> Step {
        let window = address::window(space);
        let moved = self.read_register(operands.a, true).map(|address| {
            if off { address.wrapping_sub(window) } else { address.wrapping_add(window) }
        });
        self.write_register(operands.d, true, &moved, mask);
        Ok(Flow::Next)
    }

    /// `isspacep`
    pub(crate) fn is_space(&mut self, space: SpaceKind, operands: &Operands, mask: u32) -> Step {
        let addresses = self.read_register(operands.a, true);
        let mut result = 0;
        for lane in lanes_of(mask) {
            let (found, at) = address::resolve(addresses[lane]);
            let constant = self.memory.find(at, 1).is_some_and(|place| {
                found == SpaceKind::Global && !self.memory.allocation(place.allocation).writable
            });
            let inside = match space {
                SpaceKind::Const => constant,
                SpaceKind::Global => found == SpaceKind::Global && !constant,
                SpaceKind::Shared => in_shared(found) && self.is_own(at),
                SpaceKind::Cluster => in_shared(found),
                other => found == other,
            };
            result |= u32::from(inside) << lane;
        }
        // SAFETY: predicates of lowered instructions are inside the frame.
        unsafe { self.frame.set_predicate(operands.p, result, mask) };
        Ok(Flow::Next)
    }
}
