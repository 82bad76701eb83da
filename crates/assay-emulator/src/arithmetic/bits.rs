//! Logic, shifts, bit fields and permutations (ISA 9.7.1 and 9.7.8) on one lane.

use super::integer::Integer;
use crate::execute::frame::{Element, lanes};

/// Untyped words.
pub(crate) trait Word: Element {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
    fn reversed(self) -> Self;
    fn ones(self) -> u32;
    fn zeros_in_front(self) -> u32;
}

macro_rules! word {
    ($ty:ident) => {
        impl Word for $ty {
            #[inline(always)]
            fn and(self, other: $ty) -> $ty {
                self & other
            }
            #[inline(always)]
            fn or(self, other: $ty) -> $ty {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: $ty) -> $ty {
                self ^ other
            }
            #[inline(always)]
            fn not(self) -> $ty {
                !self
            }
            #[inline(always)]
            fn reversed(self) -> $ty {
                self.reverse_bits()
            }
            #[inline(always)]
            fn ones(self) -> u32 {
                self.count_ones()
            }
            #[inline(always)]
            fn zeros_in_front(self) -> u32 {
                self.leading_zeros()
            }
        }
    };
}

word!(u16);
word!(u32);
word!(u64);

lanes! {
    /// `and`
    And<T: Word>(a: T, b: T) -> T { a.and(b) }
    /// `or`
    Or<T: Word>(a: T, b: T) -> T { a.or(b) }
    /// `xor`
    Xor<T: Word>(a: T, b: T) -> T { a.xor(b) }
    /// `not`
    Not<T: Word>(a: T) -> T { a.not() }
    /// `mov`, and `cvta`, which leaves addresses alone in one direction
    Move<T: Word>(a: T) -> T { a }
    /// `brev`
    Reverse<T: Word>(a: T) -> T { a.reversed() }
    /// `popc`
    PopulationCount<T: Word>(a: T) -> u32 { a.ones() }
    /// `clz`
    LeadingZeros<T: Word>(a: T) -> u32 { a.zeros_in_front() }
    /// `bfind`, and `bfind.shiftamt` with flag 1
    FindLeading<T: Integer>([parameters] a: T) -> u32 { find_leading(a, parameters.flags & 1 != 0) }
    /// `lop3`; the table is the immediate
    Logic3([parameters] a: u32, b: u32, c: u32) -> u32 { logic3(a, b, c, parameters.immediate) }
    /// `lop3` with the table 0x78: `a ^ (b & c)`
    Logic3XorAnd(a: u32, b: u32, c: u32) -> u32 { a ^ (b & c) }
    /// `lop3` with the table 0xea: `(a & b) | c`
    Logic3AndOr(a: u32, b: u32, c: u32) -> u32 { (a & b) | c }
    /// `lop3` with the table 0x96: `a ^ b ^ c`
    Logic3Xor(a: u32, b: u32, c: u32) -> u32 { a ^ b ^ c }
    /// `bfi.b32`; position and length in `c`, packed by [`pack_field`]
    InsertField32(a: u32, b: u32, c: u32) -> u32 { insert_field(a, b, c & 0xff, c >> 8) }
    /// `bfi.b64`, likewise
    InsertField64(a: u64, b: u64, c: u32) -> u64 { insert_field64(a, b, c & 0xff, c >> 8) }
    /// `shf.l.clamp`
    FunnelLeftClamp(a: u32, b: u32, c: u32) -> u32 { funnel_left(a, b, c.min(32)) }
    /// `shf.l.wrap`
    FunnelLeftWrap(a: u32, b: u32, c: u32) -> u32 { funnel_left(a, b, c & 31) }
    /// `shf.r.clamp`
    FunnelRightClamp(a: u32, b: u32, c: u32) -> u32 { funnel_right(a, b, c.min(32)) }
    /// `shf.r.wrap`
    FunnelRightWrap(a: u32, b: u32, c: u32) -> u32 { funnel_right(a, b, c & 31) }
    /// `prmt`, default mode
    Permute(a: u32, b: u32, c: u32) -> u32 { permute(a, b, c) }
}

lanes! {
    once:
    /// `mbarrier.pending_count`: the pending count in a state, see `execute::mbarrier`
    MbarrierPending(a: u64) -> u32 { (a >> 20) as u32 & 0x000f_ffff }
    /// `prmt` with a mode: 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5 ecr, 6 rc16
    PermuteMode([parameters] a: u32, b: u32, c: u32) -> u32 {
        permute(a, b, selector(parameters.flags, c & 3))
    }
    /// `bmsk.clamp`; flag 1: `.wrap`
    BitMask([parameters] a: u32, b: u32) -> u32 { bit_mask(a, b, parameters.flags & 1 != 0) }
    /// `szext.u32`; flag 1: `.wrap`
    ZeroExtend([parameters] a: u32, b: u32) -> u32 {
        extend(a, b, false, parameters.flags & 1 != 0)
    }
    /// `szext.s32`; flag 1: `.wrap`
    SignExtend([parameters] a: u32, b: u32) -> u32 {
        extend(a, b, true, parameters.flags & 1 != 0)
    }
    /// `fns`
    FindNthSet(a: u32, b: u32, c: i32) -> u32 { find_nth_set(a, b, c) }
    /// `bfe`
    ExtractField<T: Integer>(a: T, b: u32, c: u32) -> T {
        extract_field(a, field_operand(T::BITS, b), field_operand(T::BITS, c))
    }
    /// The two sources of a bit field's position and length in one word, for `bfi.b32`
    PackField32(a: u32, b: u32) -> u32 { pack_field(field_operand(32, a), field_operand(32, b)) }
    /// As [`PackField32`], for `bfi.b64`
    PackField64(a: u32, b: u32) -> u32 { pack_field(field_operand(64, a), field_operand(64, b)) }
}

/// A position or length as the hardware takes it: of 32-bit fields the low byte, of 64-bit ones the
/// whole word. The ISA restricts both to a byte.
#[inline(always)]
fn field_operand(bits: u32, operand: u32) -> u32 {
    if bits == 64 { operand.min(255) } else { operand & 0xff }
}

/// Position and length, a byte each, in one word.
#[inline(always)]
pub(crate) fn pack_field(position: u32, length: u32) -> u32 {
    (position & 0xff) | (length & 0xff) << 8
}

#[inline(always)]
fn insert_field(a: u32, b: u32, position: u32, length: u32) -> u32 {
    insert_field64(u64::from(a), u64::from(b), position, length) as u32
}

#[inline(always)]
fn insert_field64(a: u64, b: u64, position: u32, length: u32) -> u64 {
    let ones = if length >= 64 { !0 } else { (1_u64 << length) - 1 };
    let mask = ones.shifted_left(position);
    (b & !mask) | (a.shifted_left(position) & mask)
}

/// ISA 9.7.1.18: bits beyond the top repeat the sign (or are zero).
#[inline(always)]
fn extract_field<T: Integer>(a: T, position: u32, length: u32) -> T {
    let width = T::BITS;
    let negative = T::SIGNED && length != 0 && {
        let sign = (position + length - 1).min(width - 1);
        (a.wide() >> sign) & 1 != 0
    };
    let length = length.min(width);
    let unsigned = a.wide() & (i128::MAX >> (127 - width));
    let field = if position < width { unsigned >> position } else { 0 };
    let available = width.saturating_sub(position).min(length);
    let kept = field & ((1_i128 << available) - 1);
    let fill = if negative { !0_i128 << available } else { 0 };
    T::from_wide(kept | fill)
}

#[inline(always)]
fn find_leading<T: Integer>(a: T, shift_amount: bool) -> u32 {
    let wide = if a.wide() < 0 { !a.wide() } else { a.wide() } as u128;
    let Some(position) = wide.checked_ilog2() else {
        return u32::MAX;
    };
    if shift_amount { T::BITS - 1 - position } else { position }
}

/// ISA 9.7.8.6: the result bit is looked up by the three source bits.
#[inline(always)]
fn logic3(a: u32, b: u32, c: u32, table: u64) -> u32 {
    let mut result = 0;
    for index in 0..8_u32 {
        let chosen = 0_u32.wrapping_sub(((table >> index) & 1) as u32);
        let a = if index & 4 == 0 { !a } else { a };
        let b = if index & 2 == 0 { !b } else { b };
        let c = if index & 1 == 0 { !c } else { c };
        result |= a & b & c & chosen;
    }
    result
}

#[inline(always)]
fn joined(a: u32, b: u32) -> u64 {
    u64::from(b) << 32 | u64::from(a)
}

#[inline(always)]
fn funnel_left(a: u32, b: u32, count: u32) -> u32 {
    ((joined(a, b) << count) >> 32) as u32
}

#[inline(always)]
fn funnel_right(a: u32, b: u32, count: u32) -> u32 {
    (joined(a, b) >> count) as u32
}

#[inline(always)]
fn permute(a: u32, b: u32, selectors: u32) -> u32 {
    let bytes = joined(a, b);
    let mut result = 0;
    for index in 0..4 {
        let selector = (selectors >> (4 * index)) & 0xf;
        let byte = (bytes >> (8 * (selector & 7))) as u32 & 0xff;
        let sign = 0_u32.wrapping_sub(byte >> 7) & 0xff;
        result |= (if selector & 8 == 0 { byte } else { sign }) << (8 * index);
    }
    result
}

/// The selectors of the modes of `prmt` (ISA 9.7.8.7, table of selector values).
#[inline(always)]
fn selector(mode: u16, c: u32) -> u32 {
    let table: [u32; 4] = match mode {
        1 => [0x3210, 0x4321, 0x5432, 0x6543],
        2 => [0x5670, 0x6701, 0x7012, 0x0123],
        3 => [0x0000, 0x1111, 0x2222, 0x3333],
        4 => [0x3210, 0x3211, 0x3222, 0x3333],
        5 => [0x0000, 0x1110, 0x2210, 0x3210],
        _ => [0x1010, 0x3232, 0x1010, 0x3232],
    };
    table[c as usize]
}

#[inline(always)]
fn bit_mask(start: u32, length: u32, wrap: bool) -> u32 {
    let (start, length) =
        if wrap { (start & 31, length & 31) } else { (start.min(32), length.min(32)) };
    let ones = ((1_u64 << length) - 1) as u32;
    ones.shifted_left(start)
}

#[inline(always)]
fn extend(a: u32, bits: u32, signed: bool, wrap: bool) -> u32 {
    let bits = if wrap { bits & 31 } else { bits.min(32) };
    if bits == 0 {
        return 0;
    }
    let shift = 32 - bits;
    if signed { (((a << shift) as i32) >> shift) as u32 } else { (a << shift) >> shift }
}

/// ISA 9.7.1.17: counts set bits from `base`, upwards for positive offsets, downwards for negative.
fn find_nth_set(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == i32::MIN {
        // Nobody counts that far; the hardware's negation overflows.
        return 0;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let set = |&position: &u32| mask >> position & 1 == 1;
    let skipped = (offset.unsigned_abs() - 1) as usize;
    let found = if offset > 0 {
        (base..32).filter(set).nth(skipped)
    } else {
        (0..=base).rev().filter(set).nth(skipped)
    };
    found.unwrap_or(u32::MAX)
}
