//! The fast paths of loads and stores: one check for the whole warp, then a copy.
//!
//! A whole warp on consecutive memory is one block of bytes; lanes that all read one place are a
//! broadcast; anything else that lies in one piece of memory is gathered without further checks. A
//! path that does not fit says so, and the access goes lane by lane, where faults are found.

use super::access::{lanes_of, read_value};
use super::address;
use super::effect::{Access, SpaceKind};
use super::engine::Engine;
use super::frame::{LANES, Operands, Slot};
use crate::observer::Observer;

/// How the addresses of a warp lie.
enum Pattern {
    /// Lane `n` is at this address plus `n` times the size.
    Consecutive(u64),
    /// All lanes are at this address.
    Same(u64),
    Scattered,
}

/// For sizes 1 to 128, by their logarithm: how far each lane lies behind the first.
const STRIDES: [[u64; LANES]; 8] = {
    let mut strides = [[0; LANES]; 8];
    let mut size = 0;
    while size < 8 {
        let mut lane = 0;
        while lane < LANES {
            strides[size][lane] = (lane as u64) << size;
            lane += 1;
        }
        size += 1;
    }
    strides
};

/// As [`STRIDES`], in 32 bits.
const STRIDES32: [[u32; LANES]; 8] = {
    let mut strides = [[0; LANES]; 8];
    let mut size = 0;
    while size < 8 {
        let mut lane = 0;
        while lane < LANES {
            strides[size][lane] = (lane as u32) << size;
            lane += 1;
        }
        size += 1;
    }
    strides
};

macro_rules! pattern {
    ($name:ident, $ty:ty, $strides:ident) => {
        /// The pattern of the addresses of the active lanes.
        #[inline(always)]
        fn $name(addresses: &[$ty; LANES], bytes: u64, mask: u32) -> Pattern {
            let strides = &$strides[(bytes.trailing_zeros() & 7) as usize];
            if mask == u32::MAX {
                // SAFETY: reads a reference. It is volatile so that the comparison of the first
                // lane with itself stays: dropping it would shift all vectors by one lane, and
                // loads that straddle what was just stored stall.
                let start = unsafe { std::ptr::read_volatile(&raw const addresses[0]) };
                let mut apart = 0;
                for lane in 0..LANES {
                    apart |= addresses[lane].wrapping_sub(strides[lane]) ^ start;
                }
                if apart == 0 {
                    return Pattern::Consecutive(u64::from(start));
                }
            }
            let first = mask.trailing_zeros() as usize & (LANES - 1);
            let start = addresses[first].wrapping_sub(strides[first]);
            let (mut apart, mut different) = (0, 0);
            for lane in 0..LANES {
                let active = <$ty>::from((mask >> lane) & 1).wrapping_neg();
                apart |= (addresses[lane].wrapping_sub(strides[lane]) ^ start) & active;
                different |= (addresses[lane] ^ addresses[first]) & active;
            }
            if apart == 0 {
                Pattern::Consecutive(u64::from(start))
            } else if different == 0 {
                Pattern::Same(u64::from(addresses[first]))
            } else {
                Pattern::Scattered
            }
        }
    };
}

pattern!(pattern64, u64, STRIDES);
pattern!(pattern32, u32, STRIDES32);

/// `COUNT` components of four bytes of each lane, lanes one after another.
#[inline(always)]
fn words<const COUNT: usize>(bytes: &[u8]) -> [[u32; LANES]; COUNT] {
    let mut parts = [[0; LANES]; COUNT];
    let all = &bytes.as_chunks::<4>().0[..LANES * COUNT];
    for lane in 0..LANES {
        for part in 0..COUNT {
            parts[part][lane] = u32::from_le_bytes(all[lane * COUNT + part]);
        }
    }
    parts
}

/// As [`words`], of two bytes.
#[inline(always)]
fn halves<const COUNT: usize>(bytes: &[u8]) -> [[u32; LANES]; COUNT] {
    let mut parts = [[0; LANES]; COUNT];
    let all = &bytes.as_chunks::<2>().0[..LANES * COUNT];
    for lane in 0..LANES {
        for part in 0..COUNT {
            parts[part][lane] = u32::from(u16::from_le_bytes(all[lane * COUNT + part]));
        }
    }
    parts
}

/// As [`words`], of eight bytes.
#[inline(always)]
fn doubles<const COUNT: usize>(bytes: &[u8]) -> [[u64; LANES]; COUNT] {
    let mut parts = [[0; LANES]; COUNT];
    let all = &bytes.as_chunks::<8>().0[..LANES * COUNT];
    for lane in 0..LANES {
        for part in 0..COUNT {
            parts[part][lane] = u64::from_le_bytes(all[lane * COUNT + part]);
        }
    }
    parts
}

/// The reverse of [`words`].
#[inline(always)]
fn put_words<const COUNT: usize>(bytes: &mut [u8], parts: &[[u32; LANES]; COUNT]) {
    let all = &mut bytes.as_chunks_mut::<4>().0[..LANES * COUNT];
    for lane in 0..LANES {
        for part in 0..COUNT {
            all[lane * COUNT + part] = parts[part][lane].to_le_bytes();
        }
    }
}

/// The reverse of [`halves`].
#[inline(always)]
fn put_halves<const COUNT: usize>(bytes: &mut [u8], parts: &[[u32; LANES]; COUNT]) {
    let all = &mut bytes.as_chunks_mut::<2>().0[..LANES * COUNT];
    for lane in 0..LANES {
        for part in 0..COUNT {
            all[lane * COUNT + part] = (parts[part][lane] as u16).to_le_bytes();
        }
    }
}

/// The lowest and highest address of the active lanes, and all their low bits.
pub(crate) fn reach(addresses: &[u64; LANES], mask: u32) -> (u64, u64, u64) {
    let (mut low, mut high, mut bits) = (u64::MAX, 0, 0);
    for lane in lanes_of(mask) {
        low = low.min(addresses[lane]);
        high = high.max(addresses[lane]);
        bits |= addresses[lane];
    }
    (low, high, bits)
}

impl<O: Observer> Engine<'_, O> {
    /// How the addresses in a register lie, and the offset added.
    ///
    /// A 32-bit register may wrap around its end where the addresses, which are wider, do not: such
    /// a block lies in no memory that there is, so the paths that look at memory refuse it.
    #[inline(always)]
    fn pattern_of(&self, access: Access, operands: &Operands, total: u64, mask: u32) -> Pattern {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`; 64-bit
        // registers own two rows; nothing writes to registers while the pattern is looked at.
        let pattern = unsafe {
            if access.wide_address {
                pattern64(&*self.frame.row(operands.a).cast(), total, mask)
            } else {
                pattern32(&(*self.frame.row(operands.a)).0, total, mask)
            }
        };
        match pattern {
            Pattern::Consecutive(start) => {
                Pattern::Consecutive(start.wrapping_add(operands.immediate))
            }
            Pattern::Same(at) => Pattern::Same(at.wrapping_add(operands.immediate)),
            Pattern::Scattered => Pattern::Scattered,
        }
    }

    /// A load that needs no look at single lanes; `false` when this one does.
    #[inline(always)]
    pub(crate) fn load_fast(&mut self, access: Access, operands: &Operands, mask: u32) -> bool {
        let total = u64::from(access.bytes) * u64::from(access.count);
        // Registers wider than their components need an extension.
        let plain = access.wide == (access.bytes == 8)
            && !(access.signed && access.bytes < 4)
            && access.space != SpaceKind::Param;
        if !plain {
            return false;
        }
        match self.pattern_of(access, operands, total, mask) {
            Pattern::Consecutive(start) => {
                self.load_block(access, operands, start, mask)
                    || self.load_scattered(access, operands, mask)
            }
            Pattern::Same(at) => self.load_same(access, operands, at, mask),
            Pattern::Scattered => self.load_scattered(access, operands, mask),
        }
    }

    /// The bytes of a range that lies in one piece of memory and is aligned, or `None`.
    #[inline(always)]
    fn span(&mut self, space: SpaceKind, start: u64, length: u64, size: u64) -> Option<&[u8]> {
        if start & (size - 1) != 0 {
            return None;
        }
        let (space, start) = resolve(space, start);
        match space {
            SpaceKind::Shared => {
                let range = self.shared_range(start, length)?;
                self.block.shared.get(range)
            }
            SpaceKind::Global | SpaceKind::Const => self.global(start, length),
            _ => None,
        }
    }

    /// As [`Engine::span`], to write.
    #[inline(always)]
    fn span_mut(
        &mut self,
        space: SpaceKind,
        start: u64,
        length: u64,
        size: u64,
    ) -> Option<&mut [u8]> {
        if start & (size - 1) != 0 {
            return None;
        }
        let (space, start) = resolve(space, start);
        match space {
            SpaceKind::Shared => {
                let range = self.shared_range(start, length)?;
                self.block.shared.get_mut(range)
            }
            SpaceKind::Global => self.global_mut(start, length),
            _ => None,
        }
    }

    /// The slots of the components.
    #[inline(always)]
    fn slots(&self, access: Access, single: Slot, list: Slot) -> [Slot; 8] {
        if access.count == 1 {
            return [single; 8];
        }
        self.code().lists[list as usize]
    }

    #[inline(always)]
    fn load_block(&mut self, access: Access, operands: &Operands, start: u64, mask: u32) -> bool {
        let total = u64::from(access.bytes) * u64::from(access.count);
        let slots = self.slots(access, operands.d, operands.c);
        let Some(bytes) = self.span(access.space, start, LANES as u64 * total, total) else {
            return false;
        };
        match (access.bytes, access.count) {
            (4, 1) => {
                let parts = words::<1>(bytes);
                self.set_words_of(&slots, &parts, mask);
            }
            (4, 2) => {
                let parts = words::<2>(bytes);
                self.set_words_of(&slots, &parts, mask);
            }
            (4, 4) => {
                let parts = words::<4>(bytes);
                self.set_words_of(&slots, &parts, mask);
            }
            (2, 1) => {
                let parts = halves::<1>(bytes);
                self.set_words_of(&slots, &parts, mask);
            }
            (2, 4) => {
                let parts = halves::<4>(bytes);
                self.set_words_of(&slots, &parts, mask);
            }
            (8, 1) => {
                let [part] = doubles::<1>(bytes);
                self.write_register(slots[0], true, &part, mask);
            }
            (8, 2) => {
                let parts = doubles::<2>(bytes);
                self.write_register(slots[0], true, &parts[0], mask);
                self.write_register(slots[1], true, &parts[1], mask);
            }
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn set_words_of<const COUNT: usize>(
        &mut self,
        slots: &[Slot; 8],
        parts: &[[u32; LANES]; COUNT],
        mask: u32,
    ) {
        for part in 0..COUNT {
            // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
            unsafe { self.frame.store32(slots[part], parts[part], mask) };
        }
    }

    #[inline(always)]
    fn load_same(&mut self, access: Access, operands: &Operands, at: u64, mask: u32) -> bool {
        let size = usize::from(access.bytes);
        let count = usize::from(access.count);
        let total = (size * count) as u64;
        let slots = self.slots(access, operands.d, operands.c);
        let Some(bytes) = self.span(access.space, at, total, total) else {
            return false;
        };
        let mut values = [0; 8];
        for (part, value) in values.iter_mut().enumerate().take(count) {
            *value = read_value(&bytes[part * size..], size);
        }
        for part in 0..count {
            // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
            unsafe {
                if access.wide {
                    self.frame.store64(slots[part], [values[part]; LANES], mask);
                } else {
                    self.frame.store32(slots[part], [values[part] as u32; LANES], mask);
                }
            }
        }
        true
    }

    /// Lanes anywhere inside one piece of memory.
    #[inline(never)]
    fn load_scattered(&mut self, access: Access, operands: &Operands, mask: u32) -> bool {
        let size = usize::from(access.bytes);
        let count = usize::from(access.count);
        let total = (size * count) as u64;
        let addresses = self.addresses(operands.a, access.wide_address, operands.immediate);
        let (low, high, bits) = reach(&addresses, mask);
        let slots = self.slots(access, operands.d, operands.c);
        if bits & (total - 1) != 0 {
            return false;
        }
        let Some(length) = high.wrapping_sub(low).checked_add(total) else {
            return false;
        };
        let Some(bytes) = self.span(access.space, low, length, total) else {
            return false;
        };
        let mut lanes = [[0; LANES]; 8];
        for lane in lanes_of(mask) {
            let here = &bytes[(addresses[lane] - low) as usize..];
            for (part, lanes) in lanes.iter_mut().enumerate().take(count) {
                lanes[lane] = read_value(&here[part * size..], size);
            }
        }
        for part in 0..count {
            self.write_register(slots[part], access.wide, &lanes[part], mask);
        }
        true
    }

    /// A store that needs no look at single lanes; `false` when this one does.
    #[inline(always)]
    pub(crate) fn store_fast(&mut self, access: Access, operands: &Operands, mask: u32) -> bool {
        let total = u64::from(access.bytes) * u64::from(access.count);
        if access.wide != (access.bytes == 8) {
            return false;
        }
        let whole = mask == u32::MAX;
        match self.pattern_of(access, operands, total, mask) {
            Pattern::Consecutive(start) if whole => {
                self.store_block(access, operands, start)
                    || self.store_scattered(access, operands, mask)
            }
            Pattern::Same(_) => false,
            _ => self.store_scattered(access, operands, mask),
        }
    }

    #[inline(always)]
    fn store_block(&mut self, access: Access, operands: &Operands, start: u64) -> bool {
        let total = u64::from(access.bytes) * u64::from(access.count);
        let slots = self.slots(access, operands.b, operands.c);
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        let word = |engine: &Self, part: usize| unsafe { engine.frame.lanes32(slots[part]) };
        match (access.bytes, access.count) {
            (4, 1) => {
                let parts = [word(self, 0)];
                self.put(access.space, start, total, |bytes| put_words(bytes, &parts))
            }
            (4, 2) => {
                let parts = [word(self, 0), word(self, 1)];
                self.put(access.space, start, total, |bytes| put_words(bytes, &parts))
            }
            (4, 4) => {
                let parts = [word(self, 0), word(self, 1), word(self, 2), word(self, 3)];
                self.put(access.space, start, total, |bytes| put_words(bytes, &parts))
            }
            (2, 1) => {
                let parts = [word(self, 0)];
                self.put(access.space, start, total, |bytes| put_halves(bytes, &parts))
            }
            _ => false,
        }
    }

    /// Writes a block of 32 times `total` bytes; `false` when it does not lie in one piece.
    #[inline(always)]
    fn put(
        &mut self,
        space: SpaceKind,
        start: u64,
        total: u64,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        let bytes = self.span_mut(space, start, LANES as u64 * total, total);
        bytes.map(write).is_some()
    }

    /// Lanes anywhere inside one piece of memory, in lane order.
    #[inline(never)]
    fn store_scattered(&mut self, access: Access, operands: &Operands, mask: u32) -> bool {
        let size = usize::from(access.bytes);
        let count = usize::from(access.count);
        let total = (size * count) as u64;
        let addresses = self.addresses(operands.a, access.wide_address, operands.immediate);
        let (low, high, bits) = reach(&addresses, mask);
        if bits & (total - 1) != 0 || self.launch.lanes_reversed {
            return false;
        }
        let Some(length) = high.wrapping_sub(low).checked_add(total) else {
            return false;
        };
        let slots = self.slots(access, operands.b, operands.c);
        let mut lanes = [[0; LANES]; 8];
        for (part, lanes) in lanes.iter_mut().enumerate().take(count) {
            *lanes = self.read_register(slots[part], access.wide);
        }
        if self.memory.is_view() && resolve(access.space, low).0 == SpaceKind::Global {
            // A view keeps record of what is written: lane by lane.
            return false;
        }
        let Some(bytes) = self.span_mut(access.space, low, length, total) else {
            return false;
        };
        for lane in lanes_of(mask) {
            let start = (addresses[lane] - low) as usize;
            let here = &mut bytes[start..start + size * count];
            for (part, lanes) in lanes.iter().enumerate().take(count) {
                let value = lanes[lane].to_le_bytes();
                here[part * size..(part + 1) * size].copy_from_slice(&value[..size]);
            }
        }
        true
    }
}

/// The space and address behind a generic address.
#[inline(always)]
fn resolve(space: SpaceKind, at: u64) -> (SpaceKind, u64) {
    match space {
        SpaceKind::Generic => address::resolve(at),
        SpaceKind::Cluster if at < address::BLOCK_WINDOW => (SpaceKind::Shared, at),
        _ => (space, at),
    }
}
