//! The formats: their names, their layout in memory and the facts that follow from the layout.

use std::fmt;

use crate::power_of_two;

/// A number format as it lies in a kernel's memory.
///
/// `f64` to `e5m2` follow IEEE 754 and OCP 8-bit floating point (OFP8); `e2m1` and `e8m0` follow
/// the OCP microscaling (MX) specification. Integers are two's complement.
///
/// Formats below a byte are packed: a buffer is one stream of bits, the least significant bit of
/// the first byte first, and element i takes the bits from `i * bits` on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// Tensor float: the upper 19 bits of an `f32`, stored in 32 bits; the lower 13 are ignored.
    Tf32,
    /// IEEE 754 binary16.
    F16,
    /// The upper 16 bits of an `f32`.
    Bf16,
    /// OFP8 with 4 exponent bits: no infinities, one NaN per sign, largest value 448.
    E4m3,
    /// OFP8 with 5 exponent bits: infinities and NaNs as in IEEE 754.
    E5m2,
    /// MX 4-bit values 0, 0.5, 1, 1.5, 2, 3, 4, 6 with a sign: no infinities, no NaN.
    E2m1,
    /// MX scales: powers of two from 2^-127 to 2^127 and one NaN; no sign, no zero.
    E8m0,
    /// 2-bit unsigned code, four to a byte.
    U2,
    /// 3-bit unsigned code, eight to three bytes.
    U3,
    /// 4-bit unsigned code, two to a byte.
    U4,
    /// 5-bit unsigned code, eight to five bytes.
    U5,
    /// 6-bit unsigned code, four to three bytes.
    U6,
    /// 8-bit signed integer.
    I8,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit signed integer.
    I16,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit signed integer.
    I64,
    /// 64-bit unsigned integer.
    U64,
}

/// What the largest exponent field means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Top {
    /// Infinities and NaNs, as in IEEE 754.
    Ieee,
    /// Only the all-ones pattern is NaN; the rest are values.
    OneNan,
    /// All patterns are values.
    Values,
}

/// The layout of a floating-point format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Bits of the exponent field.
    pub(crate) exponent_bits: u32,
    /// Bits of the fraction field.
    pub(crate) fraction_bits: u32,
    /// What is subtracted from the exponent field.
    pub(crate) bias: i32,
    /// The meaning of the largest exponent field.
    pub(crate) top: Top,
    /// Unused bits below the fraction.
    pub(crate) padding_bits: u32,
    /// Whether there is a sign bit above the exponent; without it there is no zero either.
    pub(crate) signed: bool,
}

impl Layout {
    const fn new(exponent_bits: u32, fraction_bits: u32, top: Top) -> Self {
        let bias = (1 << (exponent_bits - 1)) - 1;
        Self { exponent_bits, fraction_bits, bias, top, padding_bits: 0, signed: true }
    }

    /// The exponent of the smallest normal value.
    pub(crate) const fn least_exponent(&self) -> i32 {
        if self.signed { 1 - self.bias } else { -self.bias }
    }

    /// The exponent of the distance between neighbouring values at the small end.
    pub(crate) const fn least_quantum(&self) -> i32 {
        self.least_exponent() - self.fraction_bits as i32
    }

    /// The largest finite magnitude's bit pattern, without sign and padding.
    pub(crate) const fn max_pattern(&self) -> u64 {
        let all = (1 << (self.exponent_bits + self.fraction_bits)) - 1;
        match self.top {
            Top::Ieee => self.infinity_pattern() - 1,
            Top::OneNan => all - 1,
            Top::Values => all,
        }
    }

    /// The largest finite value of a format narrower than `f64`.
    fn largest(&self) -> f64 {
        let pattern = self.max_pattern();
        let exponent = (pattern >> self.fraction_bits) as i32 - self.bias;
        let significand = pattern & ((1 << self.fraction_bits) - 1) | 1 << self.fraction_bits;
        significand as f64 * power_of_two(exponent - self.fraction_bits as i32)
    }

    /// The pattern of infinity in an IEEE layout, without sign and padding.
    pub(crate) const fn infinity_pattern(&self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    /// The canonical NaN's pattern, if there is one.
    pub(crate) const fn nan_pattern(&self) -> Option<u64> {
        match self.top {
            Top::Ieee => Some(self.infinity_pattern() | 1 << (self.fraction_bits - 1)),
            Top::OneNan => Some(self.max_pattern() + 1),
            Top::Values => None,
        }
    }
}

/// The range and signedness of an integer format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer {
    /// Bits in memory.
    pub(crate) bits: u32,
    /// Whether it is two's complement.
    pub(crate) signed: bool,
}

const F64: Layout = Layout::new(11, 52, Top::Ieee);
const F32: Layout = Layout::new(8, 23, Top::Ieee);
const TF32: Layout = Layout { padding_bits: 13, ..Layout::new(8, 10, Top::Ieee) };
const F16: Layout = Layout::new(5, 10, Top::Ieee);
const BF16: Layout = Layout::new(8, 7, Top::Ieee);
const E4M3: Layout = Layout::new(4, 3, Top::OneNan);
const E5M2: Layout = Layout::new(5, 2, Top::Ieee);
const E2M1: Layout = Layout::new(2, 1, Top::Values);
const E8M0: Layout = Layout { signed: false, ..Layout::new(8, 0, Top::OneNan) };

impl Format {
    /// Every format, floats first.
    pub const ALL: [Format; 22] = [
        Format::F64,
        Format::F32,
        Format::Tf32,
        Format::F16,
        Format::Bf16,
        Format::E4m3,
        Format::E5m2,
        Format::E2m1,
        Format::E8m0,
        Format::U2,
        Format::U3,
        Format::U4,
        Format::U5,
        Format::U6,
        Format::I8,
        Format::U8,
        Format::I16,
        Format::U16,
        Format::I32,
        Format::U32,
        Format::I64,
        Format::U64,
    ];

    /// The name used in manifests and reports, such as `"bf16"`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::F64 => "f64",
            Format::F32 => "f32",
            Format::Tf32 => "tf32",
            Format::F16 => "f16",
            Format::Bf16 => "bf16",
            Format::E4m3 => "e4m3",
            Format::E5m2 => "e5m2",
            Format::E2m1 => "e2m1",
            Format::E8m0 => "e8m0",
            Format::U2 => "u2",
            Format::U3 => "u3",
            Format::U4 => "u4",
            Format::U5 => "u5",
            Format::U6 => "u6",
            Format::I8 => "i8",
            Format::U8 => "u8",
            Format::I16 => "i16",
            Format::U16 => "u16",
            Format::I32 => "i32",
            Format::U32 => "u32",
            Format::I64 => "i64",
            Format::U64 => "u64",
        }
    }

    /// The format of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Format> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub(crate) const fn layout(self) -> Option<Layout> {
        match self {
            Format::F64 => Some(F64),
            Format::F32 => Some(F32),
            Format::Tf32 => Some(TF32),
            Format::F16 => Some(F16),
            Format::Bf16 => Some(BF16),
            Format::E4m3 => Some(E4M3),
            Format::E5m2 => Some(E5M2),
            Format::E2m1 => Some(E2M1),
            Format::E8m0 => Some(E8M0),
            _ => None,
        }
    }

    pub(crate) const fn integer(self) -> Integer {
        let (bits, signed) = match self {
            Format::U2 => (2, false),
            Format::U3 => (3, false),
            Format::U4 => (4, false),
            Format::U5 => (5, false),
            Format::U6 => (6, false),
            Format::I8 => (8, true),
            Format::U8 => (8, false),
            Format::I16 => (16, true),
            Format::U16 => (16, false),
            Format::I32 => (32, true),
            Format::U32 => (32, false),
            Format::I64 => (64, true),
            _ => (64, false),
        };
        Integer { bits, signed }
    }

    /// Bits that one value takes in memory: 32 for `tf32`, fewer than 8 for packed formats.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self.layout() {
            Some(layout) => {
                let sign = u32::from(layout.signed);
                sign + layout.exponent_bits + layout.fraction_bits + layout.padding_bits
            }
            None => self.integer().bits,
        }
    }

    /// Bytes that `count` values take in memory; a last byte that packed values fill in part counts
    /// whole.
    #[must_use]
    pub fn storage_bytes(self, count: usize) -> usize {
        match self.bits() as usize {
            // Counted in groups of eight, so that no count that memory holds overflows.
            bits @ ..8 => count / 8 * bits + (count % 8 * bits).div_ceil(8),
            bits => count * (bits / 8),
        }
    }

    /// True if elements share bytes: the formats of fewer than 8 bits.
    #[must_use]
    pub fn is_packed(self) -> bool {
        self.bits() < 8
    }

    /// Whether the format is a floating-point format.
    #[must_use]
    pub fn is_float(self) -> bool {
        self.layout().is_some()
    }

    /// Significand bits p, the hidden bit included; for integers, the bits of magnitude.
    #[must_use]
    pub fn significand_bits(self) -> u32 {
        match self.layout() {
            Some(layout) => layout.fraction_bits + 1,
            None => self.integer().bits - u32::from(self.integer().signed),
        }
    }

    /// The unit roundoff 2^-p: the largest relative error of rounding to nearest.
    #[must_use]
    pub fn unit_roundoff(self) -> f64 {
        power_of_two(-(self.significand_bits() as i32))
    }

    /// The largest finite value. That of a 64-bit integer is given to `f64` accuracy.
    #[must_use]
    pub fn max_finite(self) -> f64 {
        match self.layout() {
            Some(_) if self == Format::F64 => f64::MAX,
            Some(layout) => layout.largest(),
            None => power_of_two(self.significand_bits() as i32) - self.integer_step_at_max(),
        }
    }

    /// 1, or 0 where subtracting 1 could not be represented anyway.
    fn integer_step_at_max(self) -> f64 {
        if self.significand_bits() > 53 { 0.0 } else { 1.0 }
    }

    /// The smallest finite value: negative, 0 for unsigned integers, 2^-127 for `e8m0`.
    #[must_use]
    pub fn min_finite(self) -> f64 {
        match self.layout() {
            Some(layout) if layout.signed => -self.max_finite(),
            Some(layout) => power_of_two(layout.least_exponent()),
            None if self.integer().signed => -power_of_two(self.significand_bits() as i32),
            None => 0.0,
        }
    }

    /// The smallest positive value with a full significand; 1 for integers.
    #[must_use]
    pub fn min_normal(self) -> f64 {
        self.layout().map_or(1.0, |layout| power_of_two(layout.least_exponent()))
    }

    /// The smallest positive value; 1 for integers.
    #[must_use]
    pub fn min_subnormal(self) -> f64 {
        self.layout().map_or(1.0, |layout| power_of_two(layout.least_quantum()))
    }

    /// Whether the format has infinities.
    #[must_use]
    pub fn has_infinity(self) -> bool {
        self.layout().is_some_and(|layout| layout.top == Top::Ieee)
    }

    /// Whether the format has NaNs.
    #[must_use]
    pub fn has_nan(self) -> bool {
        self.layout().is_some_and(|layout| layout.top != Top::Values)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}
