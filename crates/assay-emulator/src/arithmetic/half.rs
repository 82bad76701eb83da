//! f16 and bf16, alone and in pairs (ISA 9.7.4) on one lane.
//!
//! Every operation is done exactly or rounded to odd in a wider format, then rounded once.

use super::fused::{product_sum_to_odd, sum_to_odd};
use crate::execute::frame::{Element, Frame, LANES, Operands, lanes};

/// Bits of the canonical NaN of both formats.
pub(crate) const HALF_NAN: u16 = 0x7fff;

/// f16 to f32, exactly.
#[inline(always)]
pub(crate) fn f16_to_f32(half: u16) -> f32 {
    let magnitude = u32::from(half & 0x7fff) << 13;
    // Scaling by a power of two puts the exponent right, for subnormals too.
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = if half & 0x7c00 == 0x7c00 { 0x7f80_0000 | magnitude } else { scaled.to_bits() };
    f32::from_bits(special | u32::from(half & 0x8000) << 16)
}

/// f32 to f16, to nearest even; NaN gives the canonical NaN.
#[inline(always)]
pub(crate) fn f32_to_f16(single: f32) -> u16 {
    let bits = single.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Below 2^-14 the last place is worth 2^-24, as it is at 0.5 in f32: the addition rounds.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    let odd = (magnitude >> 13) & 1;
    let rounded = magnitude.wrapping_add(0x0fff + odd).wrapping_sub(112 << 23) >> 13;
    let finite = if magnitude < 0x3880_0000 { small } else { rounded };
    let result = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    if magnitude > 0x7f80_0000 { HALF_NAN } else { (result | sign) as u16 }
}

/// bf16 to f32, exactly.
#[inline(always)]
pub(crate) fn bf16_to_f32(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// f32 to bf16, to nearest even; NaN gives the canonical NaN.
#[inline(always)]
pub(crate) fn f32_to_bf16(single: f32) -> u16 {
    let bits = single.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 { HALF_NAN } else { rounded as u16 }
}

/// f64 to f32, rounded to odd: keeps what a further rounding needs.
#[inline(always)]
fn f64_to_f32_odd(double: f64) -> f32 {
    let nearest = double as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    let toward_zero = if back.abs() > double.abs() { bits.wrapping_sub(1) } else { bits };
    let exact = back == double || double.is_nan();
    f32::from_bits(if exact { bits } else { toward_zero | 1 })
}

/// `x + y` in f32, rounded to odd. Exact errors need results far from f32's exponent limits, which
/// f16 operands guarantee.
#[inline(always)]
fn sum_to_odd_f32(x: f32, y: f32) -> f32 {
    let sum = x + y;
    let y_part = sum - x;
    let x_part = sum - y_part;
    let error = (x - x_part) + (y - y_part);
    let bits = sum.to_bits();
    let away = (error > 0.0) == (sum > 0.0);
    let moved = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error != 0.0 && error.is_finite();
    f32::from_bits(if inexact && bits & 1 == 0 { moved } else { bits })
}

/// A 16-bit floating-point format.
pub(crate) trait Half: Copy {
    /// Bits of the smallest normal number.
    const SMALLEST_NORMAL: u16;
    fn widen(bits: u16) -> f32;
    fn narrow(single: f32) -> u16;
    /// `a * b + c`, rounded once.
    fn fused(a: u16, b: u16, c: u16) -> u16;
    /// `a + b`, rounded once.
    fn sum(a: u16, b: u16) -> u16;
    /// `a * b`, rounded once.
    fn product(a: u16, b: u16) -> u16;
}

/// The f16 format.
#[derive(Clone, Copy)]
pub(crate) struct F16;
/// The bf16 format.
#[derive(Clone, Copy)]
pub(crate) struct Bf16;

impl Half for F16 {
    const SMALLEST_NORMAL: u16 = 0x0400;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        f16_to_f32(bits)
    }
    #[inline(always)]
    fn narrow(single: f32) -> u16 {
        f32_to_f16(single)
    }
    #[inline(always)]
    fn fused(a: u16, b: u16, c: u16) -> u16 {
        // The product of two f16 is exact in f32.
        f32_to_f16(sum_to_odd_f32(f16_to_f32(a) * f16_to_f32(b), f16_to_f32(c)))
    }
    #[inline(always)]
    fn sum(a: u16, b: u16) -> u16 {
        // f32 has the 2p + 2 bits that make a double rounding harmless.
        f32_to_f16(f16_to_f32(a) + f16_to_f32(b))
    }
    #[inline(always)]
    fn product(a: u16, b: u16) -> u16 {
        f32_to_f16(f16_to_f32(a) * f16_to_f32(b))
    }
}

impl Half for Bf16 {
    const SMALLEST_NORMAL: u16 = 0x0080;
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        bf16_to_f32(bits)
    }
    #[inline(always)]
    fn narrow(single: f32) -> u16 {
        f32_to_bf16(single)
    }
    #[inline(always)]
    fn fused(a: u16, b: u16, c: u16) -> u16 {
        let [a, b, c] = [a, b, c].map(|x| f64::from(bf16_to_f32(x)));
        f32_to_bf16(f64_to_f32_odd(product_sum_to_odd(a, b, c)))
    }
    #[inline(always)]
    fn sum(a: u16, b: u16) -> u16 {
        let (a, b) = (f64::from(bf16_to_f32(a)), f64::from(bf16_to_f32(b)));
        f32_to_bf16(f64_to_f32_odd(sum_to_odd(a, b)))
    }
    #[inline(always)]
    fn product(a: u16, b: u16) -> u16 {
        let (a, b) = (f64::from(bf16_to_f32(a)), f64::from(bf16_to_f32(b)));
        f32_to_bf16(f64_to_f32_odd(a * b))
    }
}

/// One half, or a pair of them, in a register.
pub(crate) trait Halves: Element {
    /// Applies a function to each half.
    fn each(a: Self, b: Self, c: Self, function: impl Fn(u16, u16, u16) -> u16) -> Self;
}

impl Halves for u16 {
    #[inline(always)]
    fn each(a: u16, b: u16, c: u16, function: impl Fn(u16, u16, u16) -> u16) -> u16 {
        function(a, b, c)
    }
}

impl Halves for u32 {
    #[inline(always)]
    fn each(a: u32, b: u32, c: u32, function: impl Fn(u16, u16, u16) -> u16) -> u32 {
        let low = function(a as u16, b as u16, c as u16);
        let high = function((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
        u32::from(low) | u32::from(high) << 16
    }
}

/// A format and a register type: what the lane functions are generic over.
pub(crate) trait Kind {
    type Format: Half;
    type Register: Halves;
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident = $format:ident in $register:ident;)*) => {
        $(
            $(#[$meta])*
            pub(crate) struct $name;
            impl Kind for $name {
                type Format = $format;
                type Register = $register;
            }
        )*
    };
}

kinds! {
    /// `.f16`
    OneF16 = F16 in u16;
    /// `.bf16`
    OneBf16 = Bf16 in u16;
    /// `.f16x2`
    TwoF16 = F16 in u32;
    /// `.bf16x2`
    TwoBf16 = Bf16 in u32;
}

/// `.ftz` in the flags.
pub(crate) const HALF_FTZ: u16 = 1;
/// `.sat` in the flags.
pub(crate) const HALF_SATURATE: u16 = 2;
/// `.relu` in the flags.
pub(crate) const HALF_RELU: u16 = 4;
/// `.NaN` in the flags.
pub(crate) const HALF_NAN_WINS: u16 = 8;
/// `.xorsign.abs` in the flags.
pub(crate) const HALF_XORSIGN: u16 = 16;
/// `max` rather than `min`.
pub(crate) const HALF_MAXIMUM: u16 = 32;
/// `.oob` in the flags.
pub(crate) const HALF_OUT_OF_BOUNDS: u16 = 64;

/// The NaN, of either sign, that a tensor copy fills what lies out of bounds with. The ISA does not
/// give its bits; on an H200 `fma.oob` takes neither 0x7fff nor 0xffff for it.
pub(crate) const OUT_OF_BOUNDS_NAN: u16 = 0x7ff7;

lanes! {
    /// `add`
    AddHalf<K: Kind>([parameters] a: K::Register, b: K::Register) -> K::Register {
        modified::<K>(parameters.flags, a, b, b, |a, b, _| K::Format::sum(a, b))
    }
    /// `sub`
    SubtractHalf<K: Kind>([parameters] a: K::Register, b: K::Register) -> K::Register {
        modified::<K>(parameters.flags, a, b, b, |a, b, _| K::Format::sum(a, b ^ 0x8000))
    }
    /// `mul`
    MultiplyHalf<K: Kind>([parameters] a: K::Register, b: K::Register) -> K::Register {
        modified::<K>(parameters.flags, a, b, b, |a, b, _| K::Format::product(a, b))
    }
    /// `fma`
    FusedHalf<K: Kind>([parameters] a: K::Register, b: K::Register, c: K::Register)
        -> K::Register {
        let outside = parameters.flags & HALF_OUT_OF_BOUNDS != 0;
        modified::<K>(parameters.flags, a, b, c, |a, b, c| {
            let nothing = outside && [a, b].iter().any(|x| x & 0x7fff == OUT_OF_BOUNDS_NAN);
            if nothing { 0 } else { K::Format::fused(a, b, c) }
        })
    }
    /// `neg`
    NegateHalf<K: Kind>([parameters] a: K::Register) -> K::Register {
        K::Register::each(a, a, a, |a, _, _| {
            signed::<K::Format>(parameters.flags, a, a ^ 0x8000)
        })
    }
    /// `abs`
    AbsoluteHalf<K: Kind>([parameters] a: K::Register) -> K::Register {
        K::Register::each(a, a, a, |a, _, _| {
            signed::<K::Format>(parameters.flags, a, a & 0x7fff)
        })
    }
    /// `min` and `max`
    ExtremumHalf<K: Kind>([parameters] a: K::Register, b: K::Register) -> K::Register {
        K::Register::each(a, b, b, |a, b, _| extremum::<K::Format>(parameters.flags, a, b))
    }
}

#[inline(always)]
fn modified<K: Kind>(
    flags: u16,
    a: K::Register,
    b: K::Register,
    c: K::Register,
    operation: impl Fn(u16, u16, u16) -> u16,
) -> K::Register {
    if flags == 0 {
        return K::Register::each(a, b, c, operation);
    }
    K::Register::each(a, b, c, |a, b, c| {
        let [a, b, c] = [a, b, c].map(|x| flushed::<K::Format>(flags, x));
        finish::<K::Format>(flags, operation(a, b, c))
    })
}

/// A half with another sign: NaN becomes the canonical one.
#[inline(always)]
fn signed<H: Half>(flags: u16, before: u16, after: u16) -> u16 {
    if is_nan::<H>(before) { HALF_NAN } else { flushed::<H>(flags, after) }
}

#[inline(always)]
fn is_nan<H: Half>(x: u16) -> bool {
    H::widen(x).is_nan()
}

/// Flushes a subnormal when the flags say so.
#[inline(always)]
pub(crate) fn flushed<H: Half>(flags: u16, x: u16) -> u16 {
    if flags & HALF_FTZ != 0 && x & 0x7fff < H::SMALLEST_NORMAL { x & 0x8000 } else { x }
}

fn finish<H: Half>(flags: u16, result: u16) -> u16 {
    let result = flushed::<H>(flags, result);
    let nan = is_nan::<H>(result);
    let negative = result & 0x8000 != 0;
    if flags & HALF_SATURATE != 0 {
        let one = H::narrow(1.0);
        return if nan || negative { 0 } else { result.min(one) };
    }
    if flags & HALF_RELU != 0 && negative && !nan { 0 } else { result }
}

fn extremum<H: Half>(flags: u16, a: u16, b: u16) -> u16 {
    let (a, b) = (flushed::<H>(flags, a), flushed::<H>(flags, b));
    let sign = (a ^ b) & 0x8000;
    let (x, y) = if flags & HALF_XORSIGN != 0 { (a & 0x7fff, b & 0x7fff) } else { (a, b) };
    let maximum = flags & HALF_MAXIMUM != 0;
    let result = match (is_nan::<H>(x), is_nan::<H>(y)) {
        (true, true) => return HALF_NAN,
        (true, false) | (false, true) if flags & HALF_NAN_WINS != 0 => return HALF_NAN,
        (true, false) => y,
        (false, true) => x,
        // As signed magnitudes; this orders -0 before +0.
        (false, false) => {
            let key = |v: u16| {
                let magnitude = i32::from(v & 0x7fff);
                if v & 0x8000 == 0 { magnitude } else { -1 - magnitude }
            };
            if (key(x) > key(y)) == maximum { x } else { y }
        }
    };
    if flags & HALF_XORSIGN != 0 {
        return (result & 0x7fff) | sign;
    }
    if flags & HALF_RELU != 0 && result & 0x8000 != 0 { 0 } else { result }
}

/// A half taken out of a register for comparisons: the format, which half of a pair, and whether
/// subnormals are zeros.
#[derive(Clone, Copy)]
pub(crate) struct Opened<H, const HIGH: bool, const FTZ: bool>(
    pub(crate) f32,
    std::marker::PhantomData<H>,
);

impl<H: Half, const HIGH: bool, const FTZ: bool> Element for Opened<H, HIGH, FTZ> {
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
    fn open(stored: u32) -> Self {
        let bits = if HIGH { (stored >> 16) as u16 } else { stored as u16 };
        let bits = flushed::<H>(if FTZ { HALF_FTZ } else { 0 }, bits);
        Opened(H::widen(bits), std::marker::PhantomData)
    }
    #[inline(always)]
    fn close(self) -> u32 {
        let bits = u32::from(H::narrow(self.0));
        if HIGH { bits << 16 } else { bits }
    }
}
