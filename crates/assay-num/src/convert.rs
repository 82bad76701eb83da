//! Exact conversion between stored bits and `f64`, in every rounding direction.

use std::fmt;

use crate::format::{Integer, Layout, Top};
use crate::{Format, power_of_two};

/// The direction in which an inexact value is rounded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rounding {
    /// To the nearest value, ties to the even significand (`.rn`). Where both are odd, as in
    /// `e8m0`, ties go to the larger magnitude (IEEE 754-2019, 4.3.1).
    NearestEven,
    /// Toward zero (`.rz`).
    TowardZero,
    /// Toward positive infinity (`.rp`).
    Up,
    /// Toward negative infinity (`.rm`).
    Down,
}

/// What a value past the largest finite one becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Overflow {
    /// Infinity where the format has one, else NaN where it has one (OFP8), else the largest
    /// value. A rounding direction that points away from infinity stops at the largest value.
    Infinity,
    /// The largest finite value of that sign, for infinities too (`.satfinite`).
    Saturate,
}

/// What kind of value a number is, which gate 1 compares with no tolerance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// Any finite value, zeros of both signs included.
    Finite,
    /// Any NaN, whatever its sign and payload.
    NaN,
    /// Positive infinity.
    PositiveInfinity,
    /// Negative infinity.
    NegativeInfinity,
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Class::Finite => "finite",
            Class::NaN => "NaN",
            Class::PositiveInfinity => "+Inf",
            Class::NegativeInfinity => "-Inf",
        })
    }
}

impl Class {
    /// The class of a value.
    #[must_use]
    pub fn of(value: f64) -> Class {
        if value.is_finite() {
            Class::Finite
        } else if value.is_nan() {
            Class::NaN
        } else if value > 0.0 {
            Class::PositiveInfinity
        } else {
            Class::NegativeInfinity
        }
    }
}

impl Format {
    /// The value of the lowest [`bits`](Self::bits) bits: exact for every float format, and for
    /// integers up to 2^53. The padding of `tf32` is ignored, as the hardware does.
    #[must_use]
    pub fn decode(self, bits: u64) -> f64 {
        match self.layout() {
            Some(_) if self == Format::F64 => f64::from_bits(bits),
            Some(layout) => decode_float(layout, bits),
            None => decode_integer(self.integer(), bits),
        }
    }

    /// The bits of `value` rounded to this format.
    ///
    /// NaN gives the canonical NaN; where there is none, `e2m1` gives its largest value and
    /// integers give 0 (PTX ISA, `cvt`). Integers saturate. `e8m0` gives NaN for negative values
    /// and its smallest value for zero.
    #[must_use]
    pub fn encode(self, value: f64, rounding: Rounding, overflow: Overflow) -> u64 {
        match self.layout() {
            Some(_) if self == Format::F64 && value.is_finite() => value.to_bits(),
            Some(layout) => encode_float(layout, value, rounding, overflow),
            None => encode_integer(self.integer(), value, rounding),
        }
    }

    /// `value` rounded to the nearest value of this format, ties to even, overflow to infinity.
    ///
    /// A value past the largest `e4m3` becomes NaN, as in OFP8 without saturation.
    #[must_use]
    pub fn round(self, value: f64) -> f64 {
        match self {
            Format::F64 => value,
            Format::F32 => f64::from(value as f32),
            _ => {
                self.layout().and_then(|layout| round_normal(layout, value)).unwrap_or_else(|| {
                    self.decode(self.encode(value, Rounding::NearestEven, Overflow::Infinity))
                })
            }
        }
    }

    /// The class of the value that the bits stand for.
    #[must_use]
    pub fn class(self, bits: u64) -> Class {
        Class::of(self.decode(bits))
    }

    /// The class of a value, the same in every format.
    #[must_use]
    pub fn class_of(value: f64) -> Class {
        Class::of(value)
    }

    /// The distance between neighbouring values at `|value|`: the smallest one near 0, that of the
    /// largest values past them, 1 for integers, NaN for NaN.
    #[must_use]
    pub fn ulp(self, value: f64) -> f64 {
        let Some(layout) = self.layout() else {
            return if value.is_nan() { value } else { 1.0 };
        };
        if value.is_nan() {
            return value;
        }
        let magnitude = value.abs().min(self.max_finite());
        let quantum = exponent_of(magnitude).saturating_sub(layout.fraction_bits as i32);
        power_of_two(quantum.max(layout.least_quantum()))
    }
}

/// The exponent e of a finite magnitude 2^e <= |value| < 2^(e+1); far below all others for 0.
pub(crate) fn exponent_of(value: f64) -> i32 {
    let bits = value.to_bits() & !(1 << 63);
    match (bits >> 52) as i32 {
        0 if bits == 0 => i32::MIN,
        0 => 63 - bits.leading_zeros() as i32 - 1074,
        biased => biased - 1023,
    }
}

/// What is subtracted from the exponent field of an f64.
const F64_BIAS: i32 = 1023;

/// `value` rounded to nearest, ties to even, where it is a normal number of a format with
/// infinities before and after; `None` leaves it to the general way.
fn round_normal(layout: Layout, value: f64) -> Option<f64> {
    let exponent = |bits: u64| (bits >> 52 & 0x7ff) as i32 - F64_BIAS;
    let bits = value.to_bits();
    let dropped = 52 - layout.fraction_bits;
    let odd = bits >> dropped & 1;
    // A carry out of the fraction lands in the exponent, where it belongs.
    let rounded = bits.wrapping_add((1 << (dropped - 1)) - 1 + odd) & !((1 << dropped) - 1);
    let is_normal = layout.top == Top::Ieee
        && exponent(bits) >= layout.least_exponent()
        && exponent(rounded) <= layout.bias;
    is_normal.then(|| f64::from_bits(rounded))
}

fn decode_float(layout: Layout, bits: u64) -> f64 {
    let pattern = bits >> layout.padding_bits;
    let fraction = pattern & ((1 << layout.fraction_bits) - 1);
    let exponent = (pattern >> layout.fraction_bits) & ((1 << layout.exponent_bits) - 1);
    let magnitude = fraction | exponent << layout.fraction_bits;
    let sign_bit = layout.exponent_bits + layout.fraction_bits;
    let negative = layout.signed && pattern >> sign_bit & 1 == 1;
    let value = if magnitude > layout.max_pattern() {
        let infinite = layout.top == Top::Ieee && fraction == 0;
        if infinite { f64::INFINITY } else { f64::NAN }
    } else if exponent == 0 && layout.signed {
        fraction as f64 * power_of_two(layout.least_quantum())
    } else {
        // A normal f64, as every normal value of a narrower format is.
        let biased = (exponent as i32 - layout.bias + F64_BIAS) as u64;
        f64::from_bits(biased << 52 | fraction << (52 - layout.fraction_bits))
    };
    if negative { -value } else { value }
}

fn decode_integer(integer: Integer, bits: u64) -> f64 {
    let unused = 64 - integer.bits;
    if integer.signed {
        ((bits << unused) as i64 >> unused) as f64
    } else {
        (bits << unused >> unused) as f64
    }
}

fn encode_float(layout: Layout, value: f64, rounding: Rounding, overflow: Overflow) -> u64 {
    let negative = value.is_sign_negative();
    if value.is_nan() || (!layout.signed && value < 0.0) {
        return layout.nan_pattern().unwrap_or(layout.max_pattern()) << layout.padding_bits;
    }
    let direction = Direction::of_magnitude(rounding, negative);
    let pattern = if value.is_infinite() {
        past_the_largest(layout, overflow)
    } else {
        match round_magnitude(layout, value.abs(), direction) {
            pattern if pattern <= layout.max_pattern() => pattern,
            _ if direction == Direction::Toward => layout.max_pattern(),
            _ => past_the_largest(layout, overflow),
        }
    };
    let sign_bit = layout.exponent_bits + layout.fraction_bits;
    let sign = u64::from(layout.signed && negative) << sign_bit;
    (sign | pattern) << layout.padding_bits
}

/// How a magnitude is rounded, once the sign of its number is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Nearest,
    Away,
    Toward,
}

impl Direction {
    fn of_magnitude(rounding: Rounding, negative: bool) -> Direction {
        match (rounding, negative) {
            (Rounding::NearestEven, _) => Direction::Nearest,
            (Rounding::Up, false) | (Rounding::Down, true) => Direction::Away,
            _ => Direction::Toward,
        }
    }

    /// `significand / 2^shift` as an integer. Ties go to even; `shift` is at least 1.
    fn divide(self, significand: u64, shift: u32) -> u64 {
        let (floor, rest, half) = match shift {
            1..=63 => {
                let rest = significand & ((1 << shift) - 1);
                (significand >> shift, rest, 1 << (shift - 1))
            }
            _ => (0, significand, u64::MAX),
        };
        let up = match self {
            Direction::Nearest => rest > half || (rest == half && floor & 1 == 1),
            Direction::Away => rest > 0,
            Direction::Toward => false,
        };
        floor + u64::from(up)
    }
}

fn past_the_largest(layout: Layout, overflow: Overflow) -> u64 {
    match (overflow, layout.top) {
        (Overflow::Saturate, _) | (_, Top::Values) => layout.max_pattern(),
        (Overflow::Infinity, _) => layout.max_pattern() + 1,
    }
}

/// The pattern, sign and padding left out, of a finite magnitude; past the largest finite pattern
/// where the magnitude is.
fn round_magnitude(layout: Layout, magnitude: f64, direction: Direction) -> u64 {
    if magnitude == 0.0 {
        return 0;
    }
    let bits = magnitude.to_bits();
    let (significand, own_quantum) = match (bits >> 52) as i32 {
        0 => (bits, -1074),
        biased => (bits & ((1 << 52) - 1) | 1 << 52, biased - 1075),
    };
    let least = layout.least_exponent();
    let exponent = exponent_of(magnitude).max(least);
    let quantum = exponent - layout.fraction_bits as i32;
    let rounded = direction.divide(significand, (quantum - own_quantum) as u32);
    let steps = ((exponent - least) as u64) << layout.fraction_bits;
    if layout.signed { steps + rounded } else { (steps + rounded).saturating_sub(1) }
}

/// A finite or infinite value rounded to an integer, still as `f64`.
fn round_to_integer(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::NearestEven => value.round_ties_even(),
        Rounding::TowardZero => value.trunc(),
        Rounding::Up => value.ceil(),
        Rounding::Down => value.floor(),
    }
}

fn encode_integer(integer: Integer, value: f64, rounding: Rounding) -> u64 {
    let whole = round_to_integer(value, rounding);
    let mask = u64::MAX >> (64 - integer.bits);
    // `as` saturates and maps NaN to 0, as PTX `cvt` does.
    let bits = match (integer.bits, integer.signed) {
        (..8, _) => u64::from(whole as u8).min(mask),
        (8, true) => (whole as i8) as u64,
        (8, false) => (whole as u8) as u64,
        (16, true) => (whole as i16) as u64,
        (16, false) => (whole as u16) as u64,
        (32, true) => (whole as i32) as u64,
        (32, false) => (whole as u32) as u64,
        (_, true) => (whole as i64) as u64,
        (_, false) => whole as u64,
    };
    bits & mask
}
