//! The formats of 16 bits and fewer that `cvt` packs: e4m3, e5m2, e2m3, e3m2, e2m1, ue8m0, and f16
//! and bf16 where they are rounded stochastically (ISA 5.2.3 and 9.7.9.21).

use super::{Conversion, Scalar, convert, integral, nan_of, open, to_float};
use crate::arithmetic::soft::{Exact, Rounding, Value};
use crate::execute::frame::lanes;

/// Sign, exponent and fraction of a format.
#[derive(Clone, Copy)]
struct Shape {
    exponent_bits: u32,
    fraction_bits: u32,
    bias: i32,
    /// The largest finite magnitude.
    largest: u64,
    /// What NaN becomes.
    nan: u64,
    /// Whether the code behind the largest magnitude is an infinity.
    infinite: bool,
}

fn shape(scalar: Scalar) -> Shape {
    let shape = |exponent_bits, fraction_bits, bias, largest, nan, infinite| Shape {
        exponent_bits,
        fraction_bits,
        bias,
        largest,
        nan,
        infinite,
    };
    match scalar {
        Scalar::E4m3 => shape(4, 3, 7, 0x7e, 0x7f, false),
        Scalar::E5m2 => shape(5, 2, 15, 0x7b, 0x7f, true),
        // These have neither NaN nor infinity; NaN becomes the largest number.
        Scalar::E2m3 => shape(2, 3, 1, 0x1f, 0x1f, false),
        Scalar::E3m2 => shape(3, 2, 3, 0x1f, 0x1f, false),
        Scalar::E2m1 => shape(2, 1, 1, 0x07, 0x07, false),
        Scalar::Bf16 => shape(8, 7, 127, 0x7f7f, 0x7fff, true),
        _ => shape(5, 10, 15, 0x7bff, 0x7fff, true),
    }
}

/// Whether a format is one of those that only `cvt` knows.
pub(super) fn is_narrow(scalar: Scalar) -> bool {
    use Scalar::{E2m1, E2m3, E3m2, E4m3, E5m2, Ue8m0};
    matches!(scalar, E4m3 | E5m2 | E2m3 | E3m2 | E2m1 | Ue8m0)
}

/// What the bits of a narrow format stand for.
pub(super) fn open_narrow(scalar: Scalar, bits: u64) -> Value {
    if scalar == Scalar::Ue8m0 {
        let exponent = (bits & 0xff) as i32 - 127;
        let power = Exact { negative: false, mantissa: 1, exponent, sticky: false };
        return if bits & 0xff == 0xff { Value::NaN } else { Value::Finite(power) };
    }
    let shape = shape(scalar);
    let sign = 1 << (shape.exponent_bits + shape.fraction_bits);
    let (negative, magnitude) = (bits & sign != 0, bits & (sign - 1));
    if magnitude > shape.largest {
        let infinite = shape.infinite && magnitude == shape.largest + 1;
        return if infinite { Value::Infinity(negative) } else { Value::NaN };
    }
    let fraction = magnitude & ((1 << shape.fraction_bits) - 1);
    let field = (magnitude >> shape.fraction_bits) as i32;
    let hidden = if field == 0 { 0 } else { 1 << shape.fraction_bits };
    let exponent = field.max(1) - shape.bias - shape.fraction_bits as i32;
    let mantissa = u128::from(fraction | hidden);
    Value::Finite(Exact { negative, mantissa, exponent, sticky: false })
}

/// Rounds to nearest even and saturates to the largest finite value.
pub(super) fn to_narrow(conversion: Conversion, value: Value) -> u64 {
    if conversion.to == Scalar::Ue8m0 {
        return to_power(conversion, value);
    }
    closed(conversion, value, |scaled| integral(scaled, Rounding::Nearest) as u64)
}

/// A value in a format with a sign, rounded by `whole`, which gets a number without its sign in
/// units of the result's last place.
fn closed(conversion: Conversion, value: Value, whole: impl Fn(Exact) -> u64) -> u64 {
    let shape = shape(conversion.to);
    let overflow = if shape.infinite && !conversion.satfinite && !is_narrow(conversion.to) {
        shape.largest + 1
    } else {
        shape.largest
    };
    let (negative, magnitude) = match value {
        Value::NaN => return shape.nan,
        Value::Infinity(negative) => (negative, overflow),
        Value::Finite(exact) => (exact.negative, magnitude(exact, shape, whole).min(overflow)),
    };
    if conversion.relu && negative {
        return 0;
    }
    magnitude | u64::from(negative) << (shape.exponent_bits + shape.fraction_bits)
}

/// The rounded magnitude; the exponent may run past the format's largest, for the caller to
/// saturate.
fn magnitude(exact: Exact, shape: Shape, whole: impl Fn(Exact) -> u64) -> u64 {
    if exact.mantissa == 0 {
        return 0;
    }
    let least = 1 - shape.bias;
    let length = 128 - exact.mantissa.leading_zeros() as i32;
    let top = (exact.exponent + length - 1).max(least);
    if top > shape.bias + 2 {
        return u64::MAX;
    }
    let quantum = top - shape.fraction_bits as i32;
    let kept = whole(Exact { exponent: exact.exponent - quantum, negative: false, ..exact });
    // A subnormal's exponent field is 0, and so is the field of the smallest normal minus its
    // hidden bit: the sum carries by itself.
    (((top - least) as u64) << shape.fraction_bits) + kept
}

/// A power of two without a sign: 2^-127 to 2^127, rounded toward zero or up; the magnitude counts.
fn to_power(conversion: Conversion, value: Value) -> u64 {
    const NAN: u64 = 0xff;
    const LARGEST: u64 = 0xfe;
    let overflow = if conversion.satfinite { LARGEST } else { NAN };
    let exact = match value {
        Value::NaN => return NAN,
        Value::Infinity(_) => return overflow,
        Value::Finite(exact) if exact.mantissa == 0 => return 0,
        Value::Finite(exact) => exact,
    };
    let length = 128 - exact.mantissa.leading_zeros() as i32;
    let up = conversion.rounding == Rounding::Up && !exact.mantissa.is_power_of_two();
    let code = exact.exponent + length - 1 + 127 + i32::from(up);
    if code > LARGEST as i32 { overflow } else { code.max(0) as u64 }
}

/// Bits of a part of a packed register.
pub(crate) fn part_bits(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::E2m1 => 4,
        Scalar::E4m3 | Scalar::E5m2 | Scalar::E2m3 | Scalar::E3m2 | Scalar::Ue8m0 => 8,
        _ => 16,
    }
}

/// Flags of [`ConvertStochastic`]: where in the random operand a pair finds its bits.
pub(crate) mod random {
    /// 13 bits from each half (f16x2).
    pub(crate) const HALVES_OF_13: u16 = 0;
    /// 16 bits from each half (bf16x2).
    pub(crate) const HALVES_OF_16: u16 = 1;
    /// The upper half for both (the first pair of four bytes).
    pub(crate) const UPPER: u16 = 2;
    /// The lower half for both (the second pair of four bytes).
    pub(crate) const LOWER: u16 = 3;
    /// The upper byte of each half, together (the first pair of four e2m1).
    pub(crate) const UPPER_BYTES: u16 = 4;
    /// The lower byte of each half, together (the second pair of four e2m1).
    pub(crate) const LOWER_BYTES: u16 = 5;
}

/// Random bits of the first and of the second operand, and how many they are.
fn random_bits(kind: u16, bits: u32) -> ([u32; 2], u32) {
    let (upper, lower) = (bits >> 16, bits & 0xffff);
    match kind {
        random::HALVES_OF_13 => ([upper & 0x1fff, lower & 0x1fff], 13),
        random::HALVES_OF_16 => ([upper, lower], 16),
        random::UPPER => ([upper; 2], 16),
        random::LOWER => ([lower; 2], 16),
        random::UPPER_BYTES => ([upper & 0xff00 | lower >> 8; 2], 16),
        _ => ([(upper & 0xff) << 8 | lower & 0xff; 2], 16),
    }
}

/// Adds `random / 2^count` units of the last place and cuts.
fn stochastic(scaled: Exact, random: u32, count: u32) -> u64 {
    let fine = Exact { exponent: scaled.exponent + count as i32, ..scaled };
    (integral(fine, Rounding::Zero) as u64 + u64::from(random)) >> count
}

fn convert_stochastic(conversion: Conversion, single: f32, random: u32, count: u32) -> u32 {
    let value = open(conversion, u64::from(single.to_bits()));
    closed(conversion, value, |scaled| stochastic(scaled, random, count)) as u32
}

/// One part of a packed register times a power of two, as bf16.
fn convert_scaled(conversion: Conversion, bits: u64, scale: u64) -> u32 {
    let value = match (open(conversion, bits), open_narrow(Scalar::Ue8m0, scale)) {
        (Value::NaN, _) | (_, Value::NaN) => return nan_of(conversion, bits) as u32,
        (Value::Finite(exact), Value::Finite(power)) => {
            Value::Finite(Exact { exponent: exact.exponent + power.exponent, ..exact })
        }
        (other, _) => other,
    };
    to_float(conversion, value, bits) as u32
}

lanes! {
    once:
    /// `cvt.*.{f16x2,bf16x2,e4m3x2,...}.f32`: `a` to the upper part, `b` to the lower
    ConvertPair([parameters] a: f32, b: f32) -> u32 {
        let conversion = Conversion::unpack(parameters.immediate);
        let [high, low] = [a, b].map(|x| convert(conversion, u64::from(x.to_bits())) as u32);
        high << part_bits(conversion.to) | low
    }
    /// `cvt.*.{e4m3x2,e5m2x2,...}.f16x2` and back: each part converts
    ConvertParts([parameters] a: u32) -> u32 {
        let conversion = Conversion::unpack(parameters.immediate);
        let (from, to) = (part_bits(conversion.from), part_bits(conversion.to));
        let low = convert(conversion, u64::from(a) & ((1 << from) - 1)) as u32;
        let high = convert(conversion, u64::from(a >> from) & ((1 << from) - 1)) as u32;
        high << to | low
    }
    /// `cvt.rn.scaled::n2::ue8m0.bf16x2.*`: each part converts and is multiplied by its scale
    ConvertScaled([parameters] a: u32, b: u32) -> u32 {
        let conversion = Conversion::unpack(parameters.immediate);
        let from = part_bits(conversion.from);
        let [low, high] = [0, 1].map(|part| {
            let bits = u64::from(a) >> (part * from) & ((1 << from) - 1);
            convert_scaled(conversion, bits, u64::from(b) >> (8 * part) & 0xff)
        });
        high << 16 | low
    }
    /// `cvt.rs.*.f32`, two values: `a` to the upper part, `b` to the lower, random bits in `c`
    ConvertStochastic([parameters] a: f32, b: f32, c: u32) -> u32 {
        let conversion = Conversion::unpack(parameters.immediate);
        let ([first, second], count) = random_bits(parameters.flags, c);
        let high = convert_stochastic(conversion, a, first, count);
        high << part_bits(conversion.to) | convert_stochastic(conversion, b, second, count)
    }
    /// `cvt.pack.sat` of two s32 to so many bits each (the immediate), below the lower bits of `c`;
    /// flag 1: unsigned
    PackNarrow([parameters] a: i32, b: i32, c: u32) -> u32 {
        let bits = parameters.immediate as u32;
        let ones = (1 << bits) - 1;
        let clamp = |x: i32| if parameters.flags & 1 == 0 {
            x.clamp(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) as u32 & ones
        } else {
            x.clamp(0, ones as i32) as u32
        };
        c.checked_shl(2 * bits).unwrap_or(0) | clamp(a) << bits | clamp(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(scalar: Scalar) -> Conversion {
        Conversion {
            from: Scalar::F32,
            to: scalar,
            rounding: Rounding::Nearest,
            to_integral: false,
            ftz: false,
            sat: false,
            satfinite: true,
            relu: false,
        }
    }

    fn from(scalar: Scalar) -> Conversion {
        Conversion { from: scalar, to: Scalar::F32, satfinite: false, ..to(scalar) }
    }

    fn packed(scalar: Scalar, x: f32) -> u64 {
        convert(to(scalar), u64::from(x.to_bits()))
    }

    #[test]
    fn every_code_of_every_narrow_format_converts_to_f32_and_back() {
        use Scalar::{E2m1, E2m3, E3m2, E4m3, E5m2};
        for (scalar, codes) in [(E2m1, 16), (E2m3, 64), (E3m2, 64), (E4m3, 256), (E5m2, 256)] {
            for code in 0..codes {
                let single = f32::from_bits(convert(from(scalar), code) as u32);
                if single.is_finite() {
                    assert_eq!(packed(scalar, single), code, "{scalar:?} {code:#x} {single}");
                }
            }
        }
    }

    #[test]
    fn e2m1_holds_its_eight_magnitudes_and_rounds_ties_to_even() {
        let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        for (code, value) in values.into_iter().enumerate() {
            assert_eq!(packed(Scalar::E2m1, value), code as u64);
            assert_eq!(packed(Scalar::E2m1, -value), code as u64 | 8);
        }
        let ties = [(0.25, 0), (0.75, 2), (1.25, 2), (1.75, 4), (2.5, 4), (3.5, 6), (5.0, 6)];
        for (value, code) in ties {
            assert_eq!(packed(Scalar::E2m1, value), code, "{value}");
        }
        assert_eq!(packed(Scalar::E2m1, f32::INFINITY), 7);
        assert_eq!(packed(Scalar::E2m1, f32::NEG_INFINITY), 15);
        assert_eq!(packed(Scalar::E2m1, f32::NAN), 7);
    }

    #[test]
    fn a_scale_rounds_up_to_the_next_power_of_two_and_has_no_sign() {
        let up = Conversion { rounding: Rounding::Up, ..to(Scalar::Ue8m0) };
        let code = |x: f32| convert(up, u64::from(x.to_bits()));
        assert_eq!([code(1.0), code(1.5), code(-1.5), code(0.0)], [127, 128, 128, 0]);
        let edge = f32::from_bits;
        assert_eq!([code(edge(0x0040_0000)), code(edge(0x0040_0001)), code(edge(1))], [0, 1, 0]);
        assert_eq!([code(f32::MAX), code(f32::INFINITY), code(f32::NAN)], [0xfe, 0xfe, 0xff]);
        let wide = Conversion { satfinite: false, ..up };
        assert_eq!(convert(wide, u64::from(f32::MAX.to_bits())), 0xff);
    }

    #[test]
    fn stochastic_rounding_goes_up_as_often_as_the_remainder_says() {
        // 1.25 lies halfway between the e2m1 values 1 and 1.5.
        let conversion = to(Scalar::E2m1);
        let up = (0..1 << 16).filter(|&r| convert_stochastic(conversion, 1.25, r, 16) == 3);
        assert_eq!(up.count(), 1 << 15);
        let up = (0..1 << 16).filter(|&r| convert_stochastic(conversion, 1.125, r, 16) == 3);
        assert_eq!(up.count(), 1 << 14);
        for random in [0, 0xffff] {
            assert_eq!(convert_stochastic(conversion, 1.5, random, 16), 3, "an exact value stays");
        }
    }

    #[test]
    fn a_scaled_conversion_multiplies_by_a_power_of_two_exactly() {
        let conversion = Conversion { from: Scalar::E2m1, to: Scalar::Bf16, ..to(Scalar::Bf16) };
        // 6 times 2^3, and a NaN scale.
        assert_eq!(convert_scaled(conversion, 7, 130), 0x4240);
        assert_eq!(convert_scaled(conversion, 7, 0xff), 0x7fff);
    }
}
