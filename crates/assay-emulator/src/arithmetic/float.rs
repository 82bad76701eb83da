//! f32 and f64 arithmetic (ISA 9.7.3) on one lane.
//!
//! f32 results that are NaN are the canonical NaN 0x7fffffff, as NVIDIA's hardware gives; the ISA
//! leaves the payload open. `.ftz` is a type of its own, [`Flushed`], whose values lose their
//! subnormals on the way in and out. Modifiers that real code seldom carries go through the slow
//! functions, which take them as flags.

use std::num::FpCategory;

use super::fused::{self, Direction};
use super::soft::{self, Rounding};
use crate::execute::frame::{Element, Frame, LANES, Operands, lanes};

/// The NaN that f32 arithmetic gives.
pub(crate) const CANONICAL_NAN: f32 = f32::from_bits(0x7fff_ffff);

/// Subnormals to zero of the same sign.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits })
}

/// Any NaN to the canonical one.
///
/// The test is on the bits: LLVM takes `if x.is_nan() { some NaN } else { x }` for `x`.
#[inline(always)]
pub(crate) fn canonical(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { 0x7fff_ffff } else { bits })
}

/// `.sat`: to [0, 1]; NaN and -0 give +0.
#[inline(always)]
pub(crate) fn saturate(x: f32) -> f32 {
    if x >= 1.0 {
        1.0
    } else if x > 0.0 {
        x
    } else {
        0.0
    }
}

/// An f32 under `.ftz`.
#[derive(Clone, Copy)]
pub(crate) struct Flushed(f32);

impl Element for Flushed {
    type Stored = u32;
    #[inline(always)]
    unsafe fn load(frame: &Frame, slot: u32) -> [u32; LANES] {
        // SAFETY: passed on to the caller.
        unsafe { frame.lanes32(slot) }
    }
    #[inline(always)]
    unsafe fn store(frame: &mut Frame, to: &Operands, lanes: [u32; LANES], mask: u32) {
        // SAFETY: passed on to the caller.
        unsafe { frame.store32(to.d, lanes, mask) }
    }
    #[inline(always)]
    fn open(stored: u32) -> Flushed {
        Flushed(flush(f32::from_bits(stored)))
    }
    #[inline(always)]
    fn close(self) -> u32 {
        flush(self.0).to_bits()
    }
}

/// f32, with or without `.ftz`.
pub(crate) trait Single: Element {
    fn get(self) -> f32;
    fn make(value: f32) -> Self;
}

impl Single for f32 {
    #[inline(always)]
    fn get(self) -> f32 {
        self
    }
    #[inline(always)]
    fn make(value: f32) -> f32 {
        value
    }
}

impl Single for Flushed {
    #[inline(always)]
    fn get(self) -> f32 {
        self.0
    }
    #[inline(always)]
    fn make(value: f32) -> Flushed {
        Flushed(value)
    }
}

/// The rounding mode in the low bits of the flags of slow functions.
pub(crate) const ROUNDING_MASK: u16 = 7;
/// `.ftz` in the flags of slow functions.
pub(crate) const FLAG_FTZ: u16 = 8;
/// `.sat` in the flags of slow functions.
pub(crate) const FLAG_SATURATE: u16 = 16;
/// `.NaN` in the flags of slow functions.
pub(crate) const FLAG_NAN: u16 = 32;
/// `.xorsign` in the flags of slow functions.
pub(crate) const FLAG_XORSIGN: u16 = 64;
/// `.abs` in the flags of slow functions.
pub(crate) const FLAG_ABSOLUTE: u16 = 128;

/// The flag bits of a rounding mode.
pub(crate) fn rounding_flags(rounding: Rounding) -> u16 {
    match rounding {
        Rounding::Nearest => 0,
        Rounding::Zero => 1,
        Rounding::Down => 2,
        Rounding::Up => 3,
        Rounding::NearestAway => 4,
    }
}

/// The rounding mode of flag bits.
#[inline(always)]
pub(crate) fn rounding_of(flags: u16) -> Rounding {
    match flags & ROUNDING_MASK {
        0 => Rounding::Nearest,
        1 => Rounding::Zero,
        2 => Rounding::Down,
        3 => Rounding::Up,
        _ => Rounding::NearestAway,
    }
}

lanes! {
    /// `add.f32`
    AddF32<T: Single>(a: T, b: T) -> T { T::make(canonical(a.get() + b.get())) }
    /// `sub.f32`
    SubtractF32<T: Single>(a: T, b: T) -> T { T::make(canonical(a.get() - b.get())) }
    /// `mul.f32`
    MultiplyF32<T: Single>(a: T, b: T) -> T { T::make(canonical(a.get() * b.get())) }
    /// `fma.rn.f32`
    FusedF32<T: Single>(a: T, b: T, c: T) -> T {
        T::make(canonical(fused::fma::<WIDE>(a.get(), b.get(), c.get())))
    }
    /// `div.rn.f32`
    DivideF32<T: Single>(a: T, b: T) -> T { T::make(canonical(a.get() / b.get())) }
    /// `sqrt.rn.f32`
    RootF32<T: Single>(a: T) -> T { T::make(canonical(a.get().sqrt())) }
    /// `rcp.rn.f32`
    ReciprocalF32<T: Single>(a: T) -> T { T::make(canonical(1.0 / a.get())) }
    /// `neg.f32`
    NegateF32<T: Single>(a: T) -> T { T::make(canonical(-a.get())) }
    /// `abs.f32`
    AbsoluteF32<T: Single>(a: T) -> T { T::make(canonical(a.get().abs())) }
    /// `max.f32`
    MaximumF32<T: Single>(a: T, b: T) -> T { T::make(maximum(a.get(), b.get())) }
    /// `min.f32`
    MinimumF32<T: Single>(a: T, b: T) -> T { T::make(minimum(a.get(), b.get())) }
    /// `max.NaN.f32`
    MaximumNanF32<T: Single>(a: T, b: T) -> T { T::make(maximum_nan(a.get(), b.get())) }
    /// `min.NaN.f32`
    MinimumNanF32<T: Single>(a: T, b: T) -> T { T::make(minimum_nan(a.get(), b.get())) }

}

lanes! {
    /// `fma.rm.f32`
    FusedDownF32<T: Single>(a: T, b: T, c: T) -> T { fused_to(a, b, c, Direction::Down) }
    /// `fma.rz.f32`
    FusedZeroF32<T: Single>(a: T, b: T, c: T) -> T { fused_to(a, b, c, Direction::Zero) }
    /// `fma.rp.f32`
    FusedUpF32<T: Single>(a: T, b: T, c: T) -> T { fused_to(a, b, c, Direction::Up) }
    /// `cvt.sat.f32.f32`, and `mov` under `.sat`
    SaturateF32<T: Single>(a: T) -> T { T::make(saturate(a.get())) }
    /// `fma.rn.sat.f32`
    FusedSaturateF32<T: Single>(a: T, b: T, c: T) -> T {
        T::make(saturate(fused::fma::<WIDE>(a.get(), b.get(), c.get())))
    }
}

#[inline(always)]
fn fused_to<T: Single>(a: T, b: T, c: T, direction: Direction) -> T {
    T::make(canonical(fused::fma_directed(a.get(), b.get(), c.get(), direction)))
}

lanes! {
    once:
    /// `add.f32` with any rounding, `.ftz`, `.sat`
    SlowAddF32([parameters] a: f32, b: f32) -> f32 {
        slow(parameters.flags, [a, b, 1.0], |a, b, _, mode| soft::F32.add(a, b, mode))
    }
    /// `sub.f32` with any rounding, `.ftz`, `.sat`
    SlowSubtractF32([parameters] a: f32, b: f32) -> f32 {
        slow(parameters.flags, [a, -b, 1.0], |a, b, _, mode| soft::F32.add(a, b, mode))
    }
    /// `mul.f32` with any rounding, `.ftz`, `.sat`
    SlowMultiplyF32([parameters] a: f32, b: f32) -> f32 {
        slow(parameters.flags, [a, b, 1.0], |a, b, _, mode| soft::F32.multiply(a, b, mode))
    }
    /// `fma.f32` with any rounding, `.ftz`, `.sat`
    SlowFusedF32([parameters] a: f32, b: f32, c: f32) -> f32 {
        slow(parameters.flags, [a, b, c], |a, b, c, mode| soft::F32.fma(a, b, c, mode))
    }
    /// `div.f32` with any rounding
    SlowDivideF32([parameters] a: f32, b: f32) -> f32 {
        slow(parameters.flags, [a, b, 1.0], |a, b, _, mode| soft::F32.divide(a, b, mode))
    }
    /// `rcp.f32` with any rounding
    SlowReciprocalF32([parameters] a: f32) -> f32 {
        // An H200 flushes by the quotient, before rounding could lift it to a normal number.
        if parameters.flags & FLAG_FTZ != 0 && a.abs() > f32::from_bits(0x7e80_0000) {
            return 0.0_f32.copysign(a);
        }
        slow(parameters.flags, [1.0, a, 1.0], |one, a, _, mode| soft::F32.divide(one, a, mode))
    }
    /// `sqrt.f32` with any rounding
    SlowRootF32([parameters] a: f32) -> f32 {
        slow(parameters.flags, [a, 1.0, 1.0], |a, _, _, mode| soft::F32.square_root(a, mode))
    }
    /// `max.f32` with `.ftz .NaN .xorsign .abs`
    SlowMaximumF32([parameters] a: f32, b: f32) -> f32 {
        extremum(parameters.flags, a, b, maximum, maximum_nan)
    }
    /// `min.f32` with `.ftz .NaN .xorsign .abs`
    SlowMinimumF32([parameters] a: f32, b: f32) -> f32 {
        extremum(parameters.flags, a, b, minimum, minimum_nan)
    }
    /// `copysign.f32`: the sign of `a`, the magnitude of `b`
    CopySignF32(a: f32, b: f32) -> f32 { b.copysign(a) }
    /// `testp.f32`: 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal
    TestF32([parameters] a: f32) -> bool {
        test(parameters.immediate, a.classify())
    }

}

lanes! {
    /// `add.f64`
    AddF64(a: f64, b: f64) -> f64 { nan_or(&[b, a], a + b) }
    /// `sub.f64`
    SubtractF64(a: f64, b: f64) -> f64 { nan_or(&[b, a], a - b) }
    /// `mul.f64`
    MultiplyF64(a: f64, b: f64) -> f64 { nan_or(&[b, a], a * b) }
    /// `fma.rn.f64`
    FusedF64(a: f64, b: f64, c: f64) -> f64 {
        let result = if WIDE || cfg!(target_arch = "aarch64") {
            a.mul_add(b, c)
        } else {
            libm::fma(a, b, c)
        };
        nan_or(&[b, c, a], result)
    }
    /// `div.rn.f64`
    DivideF64(a: f64, b: f64) -> f64 { nan_or(&[a, b], a / b) }
    /// `sqrt.rn.f64`
    RootF64(a: f64) -> f64 { nan_or(&[a], a.sqrt()) }
    /// `rcp.rn.f64`
    ReciprocalF64(a: f64) -> f64 { nan_or(&[a], 1.0 / a) }
    /// `neg.f64`
    NegateF64(a: f64) -> f64 { nan_or(&[a], -a) }
    /// `abs.f64`
    AbsoluteF64(a: f64) -> f64 { nan_or(&[a], a.abs()) }
    /// `max.f64`
    MaximumF64(a: f64, b: f64) -> f64 { maximum64(a, b) }
    /// `min.f64`
    MinimumF64(a: f64, b: f64) -> f64 { -maximum64(-a, -b) }
}

lanes! {
    once:
    /// `copysign.f64`
    CopySignF64(a: f64, b: f64) -> f64 { b.copysign(a) }
    /// `testp.f64`
    TestF64([parameters] a: f64) -> bool {
        test(parameters.immediate, a.classify())
    }
    /// `add.f64` with a directed rounding
    SlowAddF64([parameters] a: u64, b: u64) -> u64 {
        nan_or_bits(&[b, a], soft::F64.add(a, b, rounding_of(parameters.flags)))
    }
    /// `sub.f64` with a directed rounding
    SlowSubtractF64([parameters] a: u64, b: u64) -> u64 {
        nan_or_bits(&[b, a], soft::F64.add(a, b ^ 1 << 63, rounding_of(parameters.flags)))
    }
    /// `mul.f64` with a directed rounding
    SlowMultiplyF64([parameters] a: u64, b: u64) -> u64 {
        nan_or_bits(&[b, a], soft::F64.multiply(a, b, rounding_of(parameters.flags)))
    }
    /// `fma.f64` with a directed rounding
    SlowFusedF64([parameters] a: u64, b: u64, c: u64) -> u64 {
        nan_or_bits(&[b, c, a], soft::F64.fma(a, b, c, rounding_of(parameters.flags)))
    }
    /// `div.f64` with a directed rounding
    SlowDivideF64([parameters] a: u64, b: u64) -> u64 {
        nan_or_bits(&[a, b], soft::F64.divide(a, b, rounding_of(parameters.flags)))
    }
    /// `rcp.f64` with a directed rounding
    SlowReciprocalF64([parameters] a: u64) -> u64 {
        let one = 1.0_f64.to_bits();
        nan_or_bits(&[a], soft::F64.divide(one, a, rounding_of(parameters.flags)))
    }
    /// `sqrt.f64` with a directed rounding
    SlowRootF64([parameters] a: u64) -> u64 {
        nan_or_bits(&[a], soft::F64.square_root(a, rounding_of(parameters.flags)))
    }

    /// `add.f32x2`; the slow flags
    AddF32x2([parameters] a: u64, b: u64) -> u64 {
        both(a, b, 0, |a, b, _| {
            slow(parameters.flags, [a, b, 1.0], |a, b, _, mode| soft::F32.add(a, b, mode))
        })
    }
    /// `sub.f32x2`
    SubtractF32x2([parameters] a: u64, b: u64) -> u64 {
        both(a, b, 0, |a, b, _| {
            slow(parameters.flags, [a, -b, 1.0], |a, b, _, mode| soft::F32.add(a, b, mode))
        })
    }
    /// `mul.f32x2`
    MultiplyF32x2([parameters] a: u64, b: u64) -> u64 {
        both(a, b, 0, |a, b, _| {
            slow(parameters.flags, [a, b, 1.0], |a, b, _, mode| soft::F32.multiply(a, b, mode))
        })
    }
    /// `fma.f32x2`
    FusedF32x2([parameters] a: u64, b: u64, c: u64) -> u64 {
        both(a, b, c, |a, b, c| {
            slow(parameters.flags, [a, b, c], |a, b, c, mode| soft::F32.fma(a, b, c, mode))
        })
    }
}

/// The f64 result, or the first of the operands that is NaN, made quiet: f64 arithmetic passes
/// payloads on. Callers list operands in the order in which an H200 prefers them.
#[inline(always)]
fn nan_or(operands: &[f64], result: f64) -> f64 {
    let mut bits = result.to_bits();
    for operand in operands.iter().rev() {
        let own = operand.to_bits();
        let nan = own & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000;
        bits = if nan { own | 1 << 51 } else { bits };
    }
    let nan = bits & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000;
    let made = nan && !operands.iter().any(|operand| operand.is_nan());
    // What the operation itself makes has one bit pattern, whatever the host's is.
    f64::from_bits(if made { 0xfff8_0000_0000_0000 } else { bits })
}

/// As [`nan_or`], on bits.
fn nan_or_bits(operands: &[u64], result: u64) -> u64 {
    let nan = operands.iter().find(|operand| f64::from_bits(**operand).is_nan());
    nan.map_or(result, |operand| operand | 1 << 51)
}

/// Applies an f32 function to both halves.
fn both(a: u64, b: u64, c: u64, function: impl Fn(f32, f32, f32) -> f32) -> u64 {
    let part = |shift: u32| {
        let get = |x: u64| f32::from_bits((x >> shift) as u32);
        u64::from(function(get(a), get(b), get(c)).to_bits())
    };
    part(0) | part(32) << 32
}

/// An f32 operation with its modifiers, exactly, in software.
fn slow(flags: u16, operands: [f32; 3], operation: impl Fn(u64, u64, u64, Rounding) -> u64) -> f32 {
    let flushes = flags & FLAG_FTZ != 0;
    let [a, b, c] = operands.map(|x| if flushes { flush(x) } else { x });
    let bits = |x: f32| u64::from(x.to_bits());
    let result = operation(bits(a), bits(b), bits(c), rounding_of(flags));
    let result = canonical(f32::from_bits(result as u32));
    let result = if flushes { flush(result) } else { result };
    if flags & FLAG_SATURATE != 0 { saturate(result) } else { result }
}

/// ISA 9.7.3.12: the number wins over NaN, and +0 over -0.
#[inline(always)]
pub(crate) fn maximum(a: f32, b: f32) -> f32 {
    let ordered = if a > b { a } else { f32::from_bits(a.to_bits() & b.to_bits()) };
    let ordered = if b > a { b } else { ordered };
    let with_nan = if a.is_nan() { canonical(b) } else { a };
    if a.is_nan() || b.is_nan() { with_nan } else { ordered }
}

/// ISA 9.7.3.11: the number wins over NaN, and -0 over +0.
#[inline(always)]
pub(crate) fn minimum(a: f32, b: f32) -> f32 {
    let ordered = if a < b { a } else { f32::from_bits(a.to_bits() | b.to_bits()) };
    let ordered = if b < a { b } else { ordered };
    let with_nan = if a.is_nan() { canonical(b) } else { a };
    if a.is_nan() || b.is_nan() { with_nan } else { ordered }
}

/// `max.NaN`: any NaN gives the canonical NaN.
#[inline(always)]
pub(crate) fn maximum_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { CANONICAL_NAN } else { maximum(a, b) }
}

/// `min.NaN`: any NaN gives the canonical NaN.
#[inline(always)]
pub(crate) fn minimum_nan(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() { CANONICAL_NAN } else { minimum(a, b) }
}

#[inline(always)]
fn maximum64(a: f64, b: f64) -> f64 {
    if a.is_nan() {
        b
    } else if b.is_nan() || a > b {
        a
    } else if b > a {
        b
    } else {
        f64::from_bits(a.to_bits() & b.to_bits())
    }
}

fn extremum(
    flags: u16,
    a: f32,
    b: f32,
    plain: impl Fn(f32, f32) -> f32,
    with_nan: impl Fn(f32, f32) -> f32,
) -> f32 {
    let flushes = flags & FLAG_FTZ != 0;
    let (a, b) = if flushes { (flush(a), flush(b)) } else { (a, b) };
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    let (x, y) = if flags & FLAG_ABSOLUTE != 0 { (a.abs(), b.abs()) } else { (a, b) };
    let result = if flags & FLAG_NAN != 0 { with_nan(x, y) } else { plain(x, y) };
    if flags & FLAG_XORSIGN == 0 || result.is_nan() {
        return result;
    }
    f32::from_bits((result.to_bits() & 0x7fff_ffff) | sign)
}

/// `testp` (ISA 9.7.3.1); zeros count as normal.
#[inline(always)]
fn test(asked: u64, class: FpCategory) -> bool {
    match asked {
        0 => class != FpCategory::Nan && class != FpCategory::Infinite,
        1 => class == FpCategory::Infinite,
        2 => class != FpCategory::Nan,
        3 => class == FpCategory::Nan,
        4 => matches!(class, FpCategory::Normal | FpCategory::Zero),
        _ => class == FpCategory::Subnormal,
    }
}
