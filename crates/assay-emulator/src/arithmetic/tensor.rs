//! Sums of products as the tensor cores of an H200 make them.
//!
//! ISA 9.7.14.5.14 leaves order, rounding and precision open. The model is the published one (Fasi,
//! Higham, Mikaitis, Pranesh 2021; Khattak and Mikaitis, arXiv 2512.07004; arXiv 2511.10909):
//! products are exact; all of them and the accumulator are aligned to the largest exponent and cut
//! to so many fraction bits; the sum is exact, and its rounding to f32 cuts too.

use super::soft::{self, Binary, Exact, Rounding, Value};

/// Fraction bits to which a term is cut.
const FRACTION: i32 = 25;

/// The least exponent that terms are aligned to.
const LEAST: i32 = -133;

/// What NaN is.
const NAN: u32 = 0x7fff_ffff;

/// An element of a matrix of floats: exponents are those of the format, not normalised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    Nan,
    Infinity { negative: bool },
    Finite { negative: bool, mantissa: u64, exponent: i32, fraction: i32 },
}

impl Element {
    /// An element of a format as IEEE 754 has them.
    pub(crate) fn open(bits: u64, exponent_bits: u32, fraction_bits: u32) -> Element {
        let top = (1_u64 << exponent_bits) - 1;
        let field = bits >> fraction_bits & top;
        let fraction = bits & ((1 << fraction_bits) - 1);
        let negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
        if field == top && fraction != 0 {
            return Element::Nan;
        }
        if field == top {
            return Element::Infinity { negative };
        }
        let hidden = u64::from(field != 0) << fraction_bits;
        Element::Finite {
            negative,
            mantissa: fraction | hidden,
            exponent: field.max(1) as i32 - (top >> 1) as i32,
            fraction: fraction_bits as i32,
        }
    }

    fn times(self, other: Element) -> Element {
        use Element::{Finite, Infinity, Nan};
        match (self, other) {
            (Nan, _)
            | (_, Nan)
            | (Infinity { .. }, Finite { mantissa: 0, .. })
            | (Finite { mantissa: 0, .. }, Infinity { .. }) => Nan,
            (Infinity { negative: a }, Infinity { negative: b }) => Infinity { negative: a != b },
            (Infinity { negative: a }, Finite { negative: b, .. })
            | (Finite { negative: a, .. }, Infinity { negative: b }) => {
                Infinity { negative: a != b }
            }
            (
                Finite { negative: a, mantissa: x, exponent: i, fraction: p },
                Finite { negative: b, mantissa: y, exponent: j, fraction: q },
            ) => Finite { negative: a != b, mantissa: x * y, exponent: i + j, fraction: p + q },
        }
    }
}

/// What a sum of products comes to.
enum Sum {
    Nan,
    Infinity {
        negative: bool,
    },
    /// This many units of 2^`unit`.
    Finite {
        units: i128,
        unit: i32,
    },
}

fn sum(pairs: &[(Element, Element)], c: Element) -> Sum {
    let terms = || pairs.iter().map(|&(a, b)| a.times(b)).chain([c]);
    let mut infinity = None;
    let mut largest = LEAST;
    for term in terms() {
        match term {
            Element::Nan => return Sum::Nan,
            Element::Infinity { negative } if infinity == Some(!negative) => return Sum::Nan,
            Element::Infinity { negative } => infinity = Some(negative),
            Element::Finite { mantissa: 0, .. } => {}
            Element::Finite { exponent, .. } => largest = largest.max(exponent),
        }
    }
    if let Some(negative) = infinity {
        return Sum::Infinity { negative };
    }
    let units = terms().map(|term| match term {
        Element::Finite { negative, mantissa, exponent, fraction } => {
            let aligned = i128::from(mantissa) << (FRACTION - fraction).max(0);
            let cut = (largest - exponent).clamp(0, 127);
            let units = aligned >> cut;
            if negative { -units } else { units }
        }
        _ => 0,
    });
    Sum::Finite { units: units.sum(), unit: largest - FRACTION }
}

/// The f32 of `c` and the sum of products.
pub(crate) fn dot_f32(pairs: &[(Element, Element)], c: u32) -> u32 {
    match sum(pairs, Element::open(u64::from(c), 8, 23)) {
        Sum::Nan => NAN,
        Sum::Infinity { negative } => soft::F32.infinity(negative) as u32,
        Sum::Finite { units, unit } => rounded(soft::F32, units, unit, Rounding::Zero) as u32,
    }
}

/// The f16 of `c` and the sum of products.
pub(crate) fn dot_f16(pairs: &[(Element, Element)], c: u16) -> u16 {
    match sum(pairs, Element::open(u64::from(c), 5, 10)) {
        Sum::Nan => 0x7fff,
        Sum::Infinity { negative } => soft::F16.infinity(negative) as u16,
        Sum::Finite { units, unit } => rounded(soft::F16, units, unit, Rounding::Nearest) as u16,
    }
}

/// Overflow is an infinity, also where the rounding cuts.
fn rounded(format: Binary, units: i128, unit: i32, mode: Rounding) -> u64 {
    let negative = units < 0;
    let mantissa = units.unsigned_abs();
    let exact = Exact { negative, mantissa, exponent: unit, sticky: false };
    let bits = format.round(exact, mode);
    let past = mode == Rounding::Zero && 128 - mantissa.leading_zeros() as i32 + unit > 128;
    if past { format.infinity(negative) } else { bits }
}

/// The f64 of `c` and the products, one fused multiply-add after the other.
pub(crate) fn dot_f64(pairs: impl Iterator<Item = (u64, u64)>, c: u64, mode: Rounding) -> u64 {
    pairs.fold(c, |sum, (a, b)| match soft::F64.unpack(sum) {
        Value::NaN => soft::F64.nan(),
        _ => soft::F64.fma(a, b, sum, mode),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(bits: u64) -> Element {
        Element::open(bits, 5, 10)
    }

    #[test]
    fn small_sums_of_halves_are_exact() {
        let pairs = [(half(0x3c00), half(0x4000)), (half(0xbc00), half(0x3800))];
        assert_eq!(f32::from_bits(dot_f32(&pairs, 10.0_f32.to_bits())), 11.5);
    }

    #[test]
    fn a_term_far_below_the_largest_is_cut_and_not_rounded() {
        // 2^-14 * 2^-14 beside 1: 28 bits below, three past what is kept.
        let pairs = [(half(0x0400), half(0x0400)); 4];
        assert_eq!(f32::from_bits(dot_f32(&pairs, 1.0_f32.to_bits())), 1.0);
        // Beside nothing else all of it is kept.
        assert_eq!(f32::from_bits(dot_f32(&pairs, 0)), 4.0 / 268_435_456.0);
    }

    #[test]
    fn opposite_infinities_and_infinity_times_zero_are_nan() {
        let (one, zero, infinity) = (half(0x3c00), half(0), half(0x7c00));
        assert_eq!(dot_f32(&[(infinity, one)], f32::NEG_INFINITY.to_bits()), NAN);
        assert_eq!(dot_f32(&[(infinity, zero)], 0), NAN);
        assert_eq!(dot_f32(&[(infinity, one)], 0), f32::INFINITY.to_bits());
    }
}
