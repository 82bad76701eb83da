//! Integer arithmetic (ISA 9.7.1) on one lane.

use crate::execute::frame::{Element, lanes};

/// The integer types of PTX, 16 to 64 bits, signed and unsigned.
pub(crate) trait Integer: Element + Ord {
    const BITS: u32;
    const SIGNED: bool;
    /// Truncates.
    fn from_wide(wide: i128) -> Self;
    /// The mathematical value.
    fn wide(self) -> i128;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn high(self, other: Self) -> Self;
    /// All ones for a zero divisor, as the hardware gives.
    fn divided(self, other: Self) -> Self;
    /// All ones for a zero divisor, as the hardware gives.
    fn remainder(self, other: Self) -> Self;
    fn distance(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    fn opposite(self) -> Self;
    fn is_zero(self) -> bool;
    fn add_saturating(self, other: Self) -> Self;
    fn subtract_saturating(self, other: Self) -> Self;
    /// Shifts right, arithmetically when signed; the count may be anything.
    fn shifted_right(self, count: u32) -> Self;
    /// Shifts left; counts past the width give zero.
    fn shifted_left(self, count: u32) -> Self;
}

macro_rules! integer {
    ($ty:ident, $wider:ident, $signed:literal, $magnitude:expr) => {
        impl Integer for $ty {
            const BITS: u32 = $ty::BITS;
            const SIGNED: bool = $signed;
            #[inline(always)]
            fn from_wide(wide: i128) -> $ty {
                wide as $ty
            }
            #[inline(always)]
            fn wide(self) -> i128 {
                self as i128
            }
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: $ty) -> $ty {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn times(self, other: $ty) -> $ty {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn high(self, other: $ty) -> $ty {
                ((self as $wider * other as $wider) >> $ty::BITS) as $ty
            }
            #[inline(always)]
            fn divided(self, other: $ty) -> $ty {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn remainder(self, other: $ty) -> $ty {
                if other == 0 { !0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn distance(self, other: $ty) -> $ty {
                self.max(other).wrapping_sub(self.min(other))
            }
            #[inline(always)]
            fn magnitude(self) -> $ty {
                let magnitude: fn($ty) -> $ty = $magnitude;
                magnitude(self)
            }
            #[inline(always)]
            fn opposite(self) -> $ty {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self == 0
            }
            #[inline(always)]
            fn add_saturating(self, other: $ty) -> $ty {
                self.saturating_add(other)
            }
            #[inline(always)]
            fn subtract_saturating(self, other: $ty) -> $ty {
                self.saturating_sub(other)
            }
            #[inline(always)]
            fn shifted_right(self, count: u32) -> $ty {
                let far = if $signed { self >> ($ty::BITS - 1) } else { 0 };
                if count < $ty::BITS { self >> (count & ($ty::BITS - 1)) } else { far }
            }
            #[inline(always)]
            fn shifted_left(self, count: u32) -> $ty {
                if count < $ty::BITS { self << (count & ($ty::BITS - 1)) } else { 0 }
            }
        }
    };
}

integer!(u16, u32, false, |x| x);
integer!(i16, i32, true, i16::wrapping_abs);
integer!(u32, u64, false, |x| x);
integer!(i32, i64, true, i32::wrapping_abs);
integer!(u64, u128, false, |x| x);
integer!(i64, i128, true, i64::wrapping_abs);

lanes! {
    /// `add`
    Add<T: Integer>(a: T, b: T) -> T { a.plus(b) }
    /// `sub`
    Subtract<T: Integer>(a: T, b: T) -> T { a.minus(b) }
    /// `add.sat.s32`
    AddSaturating<T: Integer>(a: T, b: T) -> T { a.add_saturating(b) }
    /// `sub.sat.s32`
    SubtractSaturating<T: Integer>(a: T, b: T) -> T { a.subtract_saturating(b) }
    /// `mul.lo`
    MultiplyLow<T: Integer>(a: T, b: T) -> T { a.times(b) }
    /// `mul.hi`
    MultiplyHigh<T: Integer>(a: T, b: T) -> T { a.high(b) }
    /// `mad.lo`
    MultiplyAddLow<T: Integer>(a: T, b: T, c: T) -> T { a.times(b).plus(c) }
    /// `mad.hi`
    MultiplyAddHigh<T: Integer>(a: T, b: T, c: T) -> T { a.high(b).plus(c) }
    /// `mad.hi.sat.s32`
    MultiplyAddHighSaturating<T: Integer>(a: T, b: T, c: T) -> T { a.high(b).add_saturating(c) }
    /// `div`
    Divide<T: Integer>(a: T, b: T) -> T { a.divided(b) }
    /// `rem`
    Remainder<T: Integer>(a: T, b: T) -> T { a.remainder(b) }
    /// `sad`
    SumOfDifferences<T: Integer>(a: T, b: T, c: T) -> T { a.distance(b).plus(c) }
    /// `abs`
    Absolute<T: Integer>(a: T) -> T { a.magnitude() }
    /// `neg`
    Negate<T: Integer>(a: T) -> T { a.opposite() }
    /// `min`
    Minimum<T: Integer>(a: T, b: T) -> T { a.min(b) }
    /// `max`
    Maximum<T: Integer>(a: T, b: T) -> T { a.max(b) }
    /// `min.relu.s32`
    MinimumRelu<T: Integer>(a: T, b: T) -> T { a.min(b).max(a.minus(a)) }
    /// `max.relu.s32`
    MaximumRelu<T: Integer>(a: T, b: T) -> T { a.max(b).max(a.minus(a)) }
    /// `shr`
    ShiftRight<T: Integer>(a: T, count: u32) -> T { a.shifted_right(count) }
    /// `shl`
    ShiftLeft<T: Integer>(a: T, count: u32) -> T { a.shifted_left(count) }
    /// `cnot`
    LogicalNot<T: Integer>(a: T) -> T { T::from_wide(i128::from(a.is_zero())) }

    /// `mul.wide.u16`
    WideU16(a: u16, b: u16) -> u32 { u32::from(a) * u32::from(b) }
    /// `mul.wide.s16`
    WideS16(a: i16, b: i16) -> i32 { i32::from(a) * i32::from(b) }
    /// `mul.wide.u32`
    WideU32(a: u32, b: u32) -> u64 { u64::from(a) * u64::from(b) }
    /// `mul.wide.s32`
    WideS32(a: i32, b: i32) -> i64 { i64::from(a) * i64::from(b) }
    /// `mad.wide.u16`
    WideAddU16(a: u16, b: u16, c: u32) -> u32 { (u32::from(a) * u32::from(b)).wrapping_add(c) }
    /// `mad.wide.s16`
    WideAddS16(a: i16, b: i16, c: i32) -> i32 { (i32::from(a) * i32::from(b)).wrapping_add(c) }
    /// `mad.wide.u32`
    WideAddU32(a: u32, b: u32, c: u64) -> u64 { (u64::from(a) * u64::from(b)).wrapping_add(c) }
    /// `mad.wide.s32`
    WideAddS32(a: i32, b: i32, c: i64) -> i64 { (i64::from(a) * i64::from(b)).wrapping_add(c) }

}

lanes! {
    once:
    /// `mul24.lo.u32`
    Low24U(a: u32, b: u32) -> u32 { product24(a, b) as u32 }
    /// `mul24.lo.s32`
    Low24S(a: i32, b: i32) -> u32 { signed_product24(a, b) as u32 }
    /// `mul24.hi.u32`
    High24U(a: u32, b: u32) -> u32 { (product24(a, b) >> 16) as u32 }
    /// `mul24.hi.s32`
    High24S(a: i32, b: i32) -> u32 { (signed_product24(a, b) >> 16) as u32 }
    /// `mad24.lo.u32`
    LowAdd24U(a: u32, b: u32, c: u32) -> u32 { (product24(a, b) as u32).wrapping_add(c) }
    /// `mad24.lo.s32`
    LowAdd24S(a: i32, b: i32, c: u32) -> u32 { (signed_product24(a, b) as u32).wrapping_add(c) }
    /// `mad24.hi.u32`
    HighAdd24U(a: u32, b: u32, c: u32) -> u32 { ((product24(a, b) >> 16) as u32).wrapping_add(c) }
    /// `mad24.hi.s32`
    HighAdd24S(a: i32, b: i32, c: u32) -> u32 {
        ((signed_product24(a, b) >> 16) as u32).wrapping_add(c)
    }
    /// `mad24.hi.sat.s32`
    HighAddSaturating24S(a: i32, b: i32, c: i32) -> i32 {
        ((signed_product24(a, b) >> 16) as i32).saturating_add(c)
    }
}

/// Bits 0 to 47 of the product of the low 24 bits.
#[inline(always)]
fn product24(a: u32, b: u32) -> u64 {
    u64::from(a & 0x00ff_ffff) * u64::from(b & 0x00ff_ffff)
}

#[inline(always)]
fn signed_product24(a: i32, b: i32) -> i64 {
    i64::from((a << 8) >> 8) * i64::from((b << 8) >> 8)
}

/// Applies a 16-bit function to both halves of a word.
#[inline(always)]
fn halves(a: u32, b: u32, function: impl Fn(u16, u16) -> u16) -> u32 {
    let low = function(a as u16, b as u16);
    let high = function((a >> 16) as u16, (b >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}

lanes! {
    once:
    /// `add.{u,s}16x2`
    AddX2(a: u32, b: u32) -> u32 { halves(a, b, u16::wrapping_add) }
    /// `min.u16x2`
    MinimumU16x2(a: u32, b: u32) -> u32 { halves(a, b, u16::min) }
    /// `max.u16x2`
    MaximumU16x2(a: u32, b: u32) -> u32 { halves(a, b, u16::max) }
    /// `min.s16x2`
    MinimumS16x2(a: u32, b: u32) -> u32 { halves(a, b, |a, b| (a as i16).min(b as i16) as u16) }
    /// `max.s16x2`
    MaximumS16x2(a: u32, b: u32) -> u32 { halves(a, b, |a, b| (a as i16).max(b as i16) as u16) }
    /// `min.relu.s16x2`
    MinimumReluS16x2(a: u32, b: u32) -> u32 {
        halves(a, b, |a, b| (a as i16).min(b as i16).max(0) as u16)
    }
    /// `max.relu.s16x2`
    MaximumReluS16x2(a: u32, b: u32) -> u32 {
        halves(a, b, |a, b| (a as i16).max(b as i16).max(0) as u16)
    }

}

lanes! {
    /// `dp4a.u32.u32`
    Dot4UU(a: u32, b: u32, c: u32) -> u32 { dot4(a, b, c, false, false) }
    /// `dp4a.u32.s32`
    Dot4US(a: u32, b: u32, c: u32) -> u32 { dot4(a, b, c, false, true) }
    /// `dp4a.s32.u32`
    Dot4SU(a: u32, b: u32, c: u32) -> u32 { dot4(a, b, c, true, false) }
    /// `dp4a.s32.s32`
    Dot4SS(a: u32, b: u32, c: u32) -> u32 { dot4(a, b, c, true, true) }
    /// `dp2a`; flag 1: `a` is signed, 2: `b` is signed, 4: `.hi`
    Dot2([parameters] a: u32, b: u32, c: u32) -> u32 { dot2(a, b, c, parameters.flags) }
}

#[inline(always)]
fn byte(word: u32, index: u32, signed: bool) -> i32 {
    let byte = (word >> (8 * index)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

#[inline(always)]
fn dot4(a: u32, b: u32, c: u32, signed_a: bool, signed_b: bool) -> u32 {
    let mut sum = c as i32;
    for index in 0..4 {
        let product = byte(a, index, signed_a) * byte(b, index, signed_b);
        sum = sum.wrapping_add(product);
    }
    sum as u32
}

#[inline(always)]
fn dot2(a: u32, b: u32, c: u32, flags: u16) -> u32 {
    let first = if flags & 4 == 0 { 0 } else { 2 };
    let mut sum = c as i32;
    for index in 0..2 {
        let half = (a >> (16 * index)) as u16;
        let half = if flags & 1 == 0 { i32::from(half) } else { i32::from(half as i16) };
        let product = half.wrapping_mul(byte(b, first + index, flags & 2 != 0));
        sum = sum.wrapping_add(product);
    }
    sum as u32
}
