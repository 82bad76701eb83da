//! `cvt` (ISA 9.7.9.21): between all scalar formats, with all roundings, saturation and packing.
//!
//! The common conversions are lane functions of their own; the rest go through [`convert`], which
//! takes the conversion as data.

use crate::arithmetic::float::{canonical, flush, saturate};
use crate::arithmetic::half::{HALF_NAN, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::arithmetic::soft::{self, Binary, Exact, Rounding, Value};
use crate::execute::frame::lanes;

pub(crate) mod narrow;

/// One side of a conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scalar {
    /// Two's complement of so many bits.
    Signed(u32),
    /// Unsigned, of so many bits.
    Unsigned(u32),
    F16,
    Bf16,
    F32,
    F64,
    Tf32,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
    Ue8m0,
}

/// A conversion of one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Conversion {
    pub(crate) from: Scalar,
    pub(crate) to: Scalar,
    pub(crate) rounding: Rounding,
    /// Rounds to an integer inside a floating-point format (`cvt.rni.f32.f32`).
    pub(crate) to_integral: bool,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
    pub(crate) satfinite: bool,
    pub(crate) relu: bool,
}

impl Conversion {
    /// Packs the conversion into the immediate of an instruction.
    pub(crate) fn pack(self) -> u64 {
        let flags = u64::from(self.to_integral)
            | u64::from(self.ftz) << 1
            | u64::from(self.sat) << 2
            | u64::from(self.satfinite) << 3
            | u64::from(self.relu) << 4;
        let rounding = u64::from(crate::arithmetic::float::rounding_flags(self.rounding));
        code(self.from) | code(self.to) << 8 | rounding << 16 | flags << 24
    }

    /// Unpacks what [`Conversion::pack`] packed.
    #[inline(always)]
    fn unpack(packed: u64) -> Conversion {
        let flag = |bit: u32| packed >> (24 + bit) & 1 == 1;
        Conversion {
            from: scalar(packed & 0xff),
            to: scalar(packed >> 8 & 0xff),
            rounding: crate::arithmetic::float::rounding_of((packed >> 16) as u16 & 7),
            to_integral: flag(0),
            ftz: flag(1),
            sat: flag(2),
            satfinite: flag(3),
            relu: flag(4),
        }
    }
}

fn code(scalar: Scalar) -> u64 {
    match scalar {
        Scalar::Signed(bits) => u64::from(bits) | 0x80,
        Scalar::Unsigned(bits) => u64::from(bits),
        Scalar::F16 => 1,
        Scalar::Bf16 => 2,
        Scalar::F32 => 3,
        Scalar::F64 => 4,
        Scalar::Tf32 => 5,
        Scalar::E4m3 => 6,
        Scalar::E5m2 => 7,
        // 8, 16, 32 and 64 are widths of integers.
        Scalar::E2m3 => 9,
        Scalar::E3m2 => 10,
        Scalar::E2m1 => 11,
        Scalar::Ue8m0 => 12,
    }
}

fn scalar(code: u64) -> Scalar {
    match code {
        1 => Scalar::F16,
        2 => Scalar::Bf16,
        3 => Scalar::F32,
        4 => Scalar::F64,
        5 => Scalar::Tf32,
        6 => Scalar::E4m3,
        7 => Scalar::E5m2,
        9 => Scalar::E2m3,
        10 => Scalar::E3m2,
        11 => Scalar::E2m1,
        12 => Scalar::Ue8m0,
        bits if bits & 0x80 != 0 => Scalar::Signed(bits as u32 & 0x7f),
        bits => Scalar::Unsigned(bits as u32),
    }
}

impl Scalar {
    fn binary(self) -> Option<Binary> {
        match self {
            Scalar::F16 => Some(soft::F16),
            Scalar::Bf16 => Some(soft::BF16),
            Scalar::F32 | Scalar::Tf32 => Some(soft::F32),
            Scalar::F64 => Some(soft::F64),
            _ => None,
        }
    }
}

/// Converts one value; the result has zeros above its own width, or the sign for signed integers.
pub(crate) fn convert(conversion: Conversion, bits: u64) -> u64 {
    let value = open(conversion, bits);
    let source = bits;
    match conversion.to {
        Scalar::Signed(width) => to_integer(conversion, value, width, true),
        Scalar::Unsigned(width) => to_integer(conversion, value, width, false),
        narrow if narrow::is_narrow(narrow) => narrow::to_narrow(conversion, value),
        _ => to_float(conversion, value, source),
    }
}

fn open(conversion: Conversion, bits: u64) -> Value {
    match conversion.from {
        Scalar::Signed(width) => {
            let shift = 64 - width;
            let value = ((bits << shift) as i64) >> shift;
            integer(value < 0, value.unsigned_abs())
        }
        Scalar::Unsigned(width) => integer(false, bits & (u64::MAX >> (64 - width))),
        Scalar::F32 if conversion.ftz => {
            soft::F32.unpack(u64::from(flush(f32::from_bits(bits as u32)).to_bits()))
        }
        Scalar::F16 => soft::F16.unpack(bits & 0xffff),
        Scalar::Bf16 => soft::BF16.unpack(bits & 0xffff),
        Scalar::F32 | Scalar::Tf32 => soft::F32.unpack(bits & 0xffff_ffff),
        Scalar::F64 => soft::F64.unpack(bits),
        narrow => narrow::open_narrow(narrow, bits),
    }
}

fn integer(negative: bool, magnitude: u64) -> Value {
    let mantissa = u128::from(magnitude);
    Value::Finite(Exact { negative, mantissa, exponent: 0, sticky: false })
}

/// The integer nearest to a number in the rounding mode, with its sign; saturates at 2^100.
fn integral(value: Exact, mode: Rounding) -> i128 {
    const FAR: u128 = 1 << 100;
    let magnitude = if value.exponent >= 0 {
        let shift = value.exponent.min(100) as u32;
        if value.mantissa.leading_zeros() <= shift { FAR } else { value.mantissa << shift }
    } else {
        rounded_shift(value, mode)
    };
    let magnitude = magnitude.min(FAR) as i128;
    if value.negative { -magnitude } else { magnitude }
}

fn rounded_shift(value: Exact, mode: Rounding) -> u128 {
    let shift = -value.exponent;
    if shift > 127 {
        let up = match mode {
            Rounding::Up => !value.negative,
            Rounding::Down => value.negative,
            _ => false,
        };
        return u128::from(up && value.mantissa != 0);
    }
    let kept = value.mantissa >> shift;
    let rest = value.mantissa & ((1 << shift) - 1);
    let half = 1_u128 << (shift - 1);
    let up = match mode {
        Rounding::Nearest => rest > half || rest == half && kept & 1 == 1,
        Rounding::NearestAway => rest >= half,
        Rounding::Zero => false,
        Rounding::Down => value.negative && rest != 0,
        Rounding::Up => !value.negative && rest != 0,
    };
    kept + u128::from(up)
}

fn to_integer(conversion: Conversion, value: Value, width: u32, signed: bool) -> u64 {
    let (low, high) = if signed {
        (-(1_i128 << (width - 1)), (1_i128 << (width - 1)) - 1)
    } else {
        (0, (1_i128 << width) - 1)
    };
    let from_float = !matches!(conversion.from, Scalar::Signed(_) | Scalar::Unsigned(_));
    let result = match value {
        // ISA: NaN gives 0, but 1 followed by zeros from f64 or to 64 bits.
        Value::NaN if conversion.from == Scalar::F64 || width == 64 => {
            return sign_extended(1 << (width - 1), width, signed);
        }
        Value::NaN => 0,
        Value::Infinity(negative) => {
            if negative {
                low
            } else {
                high
            }
        }
        Value::Finite(exact) => {
            let integer = integral(exact, conversion.rounding);
            // Floats clamp always, integers only under `.sat`.
            if from_float || conversion.sat { integer.clamp(low, high) } else { integer }
        }
    };
    sign_extended(result as u64, width, signed)
}

fn sign_extended(bits: u64, width: u32, signed: bool) -> u64 {
    let shift = 64 - width;
    if signed { (((bits << shift) as i64) >> shift) as u64 } else { (bits << shift) >> shift }
}

fn to_float(conversion: Conversion, value: Value, source: u64) -> u64 {
    let format = conversion.to.binary().unwrap_or(soft::F64);
    let value = match value {
        Value::Finite(exact) if conversion.to_integral => {
            let whole = integral_exact(exact, conversion.rounding);
            Value::Finite(Exact { negative: exact.negative, ..whole })
        }
        other => other,
    };
    let bits = match value {
        Value::NaN => return nan_of(conversion, source),
        Value::Infinity(negative) => format.infinity(negative),
        Value::Finite(exact) if conversion.to == Scalar::Tf32 => {
            to_tf32(exact, conversion.rounding)
        }
        Value::Finite(exact) => format.round(exact, conversion.rounding),
    };
    finish(conversion, format, bits)
}

/// A number rounded to an integer without a limit on its size.
fn integral_exact(value: Exact, mode: Rounding) -> Exact {
    if value.exponent >= 0 {
        return value;
    }
    Exact { mantissa: rounded_shift(value, mode), exponent: 0, ..value }
}

/// What NaN becomes. The ISA leaves the bits open; these are an H200's: conversions from and to f64
/// and from bf16 keep what fits of the payload, `cvt.rna.tf32` cuts it (even to an infinity), the
/// others give the canonical NaN. `.sat` gives zero.
fn nan_of(conversion: Conversion, source: u64) -> u64 {
    if conversion.sat {
        return 0;
    }
    match (conversion.from, conversion.to) {
        (Scalar::F64, Scalar::F64) => source | 1 << 51,
        (Scalar::F64, Scalar::F32) => narrowed_nan(source, 32),
        (Scalar::F64, Scalar::F16) => narrowed_nan(source, 16),
        (Scalar::F32, Scalar::F64) if conversion.ftz => 0x7fff_ffff_e000_0000,
        (Scalar::F32, Scalar::F64) => f64::from(f32::from_bits(source as u32)).to_bits(),
        (Scalar::F16, Scalar::F64) => {
            let sign = (source & 0x8000) << 48;
            sign | 0x7ff8_0000_0000_0000 | (source & 0x3ff) << 42
        }
        (Scalar::Bf16, Scalar::F32) => source << 16,
        (Scalar::F32, Scalar::Tf32) if conversion.rounding == Rounding::NearestAway => {
            // `.satfinite` takes one unit off whatever overflows, and off NaNs too: of the least
            // payload it leaves an infinity, of none the largest number.
            (source & 0xffff_e000) - if conversion.satfinite { 0x2000 } else { 0 }
        }
        (_, Scalar::Tf32) => 0x7fff_e000,
        (_, Scalar::F16 | Scalar::Bf16) => u64::from(HALF_NAN),
        (_, Scalar::F64) => 0x7ff8_0000_0000_0000,
        _ => 0x7fff_ffff,
    }
}

/// The sign and the top of the payload of an f64 NaN, quiet, in f32 (32 bits) or f16 (16 bits).
#[inline(always)]
fn narrowed_nan(source: u64, bits: u32) -> u64 {
    let sign = source >> 63 << (bits - 1);
    if bits == 32 {
        sign | 0x7fc0_0000 | (source >> 29 & 0x3f_ffff)
    } else {
        sign | 0x7e00 | (source >> 42 & 0x1ff)
    }
}

/// tf32 is an f32 whose low 13 bits are zero.
fn to_tf32(exact: Exact, mode: Rounding) -> u64 {
    // Round in a format with 13 bits less, by rounding the f32 bits as an integer: the f32 is
    // exact.
    let bits = soft::F32.round(exact, Rounding::Zero) as u32;
    let rest = bits & 0x1fff;
    let kept = bits & !0x1fff;
    let up = match mode {
        Rounding::NearestAway => rest >= 0x1000,
        Rounding::Nearest => rest > 0x1000 || rest == 0x1000 && kept & 0x2000 != 0,
        _ => false,
    };
    u64::from(if up { kept.wrapping_add(0x2000) } else { kept })
}

fn finish(conversion: Conversion, format: Binary, bits: u64) -> u64 {
    let sign = bits & format.infinity(true) & !format.infinity(false);
    // First `.relu`: a negative overflow becomes zero, not the largest negative number.
    if conversion.relu && sign != 0 {
        return 0;
    }
    if conversion.satfinite && bits & !sign == format.infinity(false) {
        // The largest tf32 has 13 zeros below it.
        let step = if conversion.to == Scalar::Tf32 { 0x2000 } else { 1 };
        return (format.infinity(false) - step) | sign;
    }
    match conversion.to {
        Scalar::F32 => {
            let single = f32::from_bits(bits as u32);
            let single = if conversion.ftz { flush(single) } else { single };
            u64::from(if conversion.sat { saturate(single) } else { single }.to_bits())
        }
        Scalar::F64 if conversion.sat => {
            let double = f64::from_bits(bits);
            if double > 0.0 { double.min(1.0).to_bits() } else { 0 }
        }
        Scalar::F16 if conversion.sat => {
            let single = saturate(f16_to_f32(bits as u16));
            u64::from(f32_to_f16(single))
        }
        _ => bits,
    }
}

lanes! {
    once:
    /// Any conversion between registers of 32 bits or fewer
    Convert32To32([parameters] a: u32) -> u32 {
        convert(Conversion::unpack(parameters.immediate), u64::from(a)) as u32
    }
    /// Any conversion from 64 bits
    Convert64To32([parameters] a: u64) -> u32 {
        convert(Conversion::unpack(parameters.immediate), a) as u32
    }
    /// Any conversion to 64 bits
    Convert32To64([parameters] a: u32) -> u64 {
        convert(Conversion::unpack(parameters.immediate), u64::from(a))
    }
    /// Any conversion between registers of 64 bits
    Convert64To64([parameters] a: u64) -> u64 {
        convert(Conversion::unpack(parameters.immediate), a)
    }
    /// Any conversion, the result truncated to 16 bits
    Convert32To16([parameters] a: u32) -> u16 {
        convert(Conversion::unpack(parameters.immediate), u64::from(a)) as u16
    }
    /// Any conversion from 64 bits, the result truncated to 16 bits
    Convert64To16([parameters] a: u64) -> u16 {
        convert(Conversion::unpack(parameters.immediate), a) as u16
    }
}

lanes! {
    /// `cvt.rn.bf16x2.f32`
    PackBf16x2(a: f32, b: f32) -> u32 {
        u32::from(f32_to_bf16(a)) << 16 | u32::from(f32_to_bf16(b))
    }
    /// `cvt.rn.f16x2.f32`
    PackF16x2(a: f32, b: f32) -> u32 {
        u32::from(f32_to_f16(a)) << 16 | u32::from(f32_to_f16(b))
    }
    /// `cvt.rn.bf16.f32`
    F32ToBf16(a: f32) -> u16 { f32_to_bf16(a) }
    /// `cvt.rn.f16.f32`
    F32ToF16(a: f32) -> u16 { f32_to_f16(a) }
    /// `cvt.f32.bf16`
    Bf16ToF32(a: u16) -> f32 { bf16_to_f32(a) }
    /// `cvt.f32.f16`
    F16ToF32(a: u16) -> f32 { canonical(f16_to_f32(a)) }
    /// `cvt.f64.f32`
    F32ToF64(a: f32) -> f64 { f64::from(a) }
    /// `cvt.rn.f32.f64`
    F64ToF32(a: f64) -> f32 {
        if a.is_nan() { f32::from_bits(narrowed_nan(a.to_bits(), 32) as u32) } else { a as f32 }
    }
    /// `cvt.rn.f32.s32`
    S32ToF32(a: i32) -> f32 { a as f32 }
    /// `cvt.rn.f32.u32`
    U32ToF32(a: u32) -> f32 { a as f32 }
    /// `cvt.rn.f64.s32`
    S32ToF64(a: i32) -> f64 { f64::from(a) }
    /// `cvt.rn.f64.u32`
    U32ToF64(a: u32) -> f64 { f64::from(a) }
    /// `cvt.rzi.s32.f32`
    F32ToS32(a: f32) -> i32 { a as i32 }
    /// `cvt.rzi.u32.f32`
    F32ToU32(a: f32) -> u32 { a as u32 }
    /// `cvt.u64.u32`
    U32ToU64(a: u32) -> u64 { u64::from(a) }
    /// `cvt.s64.s32`
    S32ToS64(a: i32) -> i64 { i64::from(a) }
    /// `cvt.u32.u64`
    U64ToU32(a: u64) -> u32 { a as u32 }
    /// `cvt.u16.u32`, and any other that keeps 16 bits
    Low16(a: u32) -> u32 { a & 0xffff }
    /// `cvt.u32.u8` and the like
    Low8(a: u32) -> u32 { a & 0xff }
    /// `cvt.s32.s16`
    S16ToS32(a: i16) -> i32 { i32::from(a) }
    /// `cvt.s32.s8`
    S8ToS32(a: i8) -> i32 { i32::from(a) }
    /// `cvt.s16.s8`
    S8ToS16(a: i8) -> i16 { i16::from(a) }
    /// `cvt.s64.s16`
    S16ToS64(a: i16) -> i64 { i64::from(a) }
    /// `cvt.u16.u64`
    U64ToU16(a: u64) -> u32 { a as u32 & 0xffff }
    /// `cvt.u64.u16`
    U16ToU64(a: u16) -> u64 { u64::from(a) }
}
