//! Sums of products of tensor cores, one element after the other: every order, every value.
//!
//! This is the slow and plain path. It serves what is rare, infinities and NaNs among them, and is
//! what the fast path is tested against.

use super::half::f16_to_f32;
use super::soft::{self, Binary, Exact, Rounding, Value};
use super::tensor::{Elements, Format, LEAST, Order, Output, Rule};
use super::wide::Wide;

/// What NaN is.
const NAN: u32 = 0x7fff_ffff;

/// A term: exponents are those of the format, not normalised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    Nan,
    Infinity { negative: bool },
    Finite { negative: bool, mantissa: u64, exponent: i32, fraction: i32 },
}

impl Element {
    /// An element of a format as IEEE 754 has them.
    fn open(bits: u32, exponent_bits: u32, fraction_bits: u32) -> Element {
        let top = (1_u32 << exponent_bits) - 1;
        let field = bits >> fraction_bits & top;
        let fraction = bits & ((1 << fraction_bits) - 1);
        let negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
        if field == top && fraction != 0 {
            return Element::Nan;
        }
        if field == top {
            return Element::Infinity { negative };
        }
        Element::finite(bits, exponent_bits, fraction_bits)
    }

    fn finite(bits: u32, exponent_bits: u32, fraction_bits: u32) -> Element {
        let top = (1_u32 << exponent_bits) - 1;
        let field = bits >> fraction_bits & top;
        let fraction = bits & ((1 << fraction_bits) - 1);
        Element::Finite {
            negative: bits >> (exponent_bits + fraction_bits) & 1 == 1,
            mantissa: u64::from(fraction | u32::from(field != 0) << fraction_bits),
            exponent: field.max(1) as i32 - (top >> 1) as i32,
            fraction: fraction_bits as i32,
        }
    }

    /// An element of A or B.
    pub(crate) fn of(format: Format, bits: u32) -> Element {
        let layout = format.layout();
        let bits = bits >> layout.low;
        match format {
            _ if !format.special(bits << layout.low) => {
                Element::finite(bits, layout.exponent, layout.fraction)
            }
            Format::E4m3 => Element::Nan,
            _ => Element::open(bits, layout.exponent, layout.fraction),
        }
    }

    /// An f32.
    pub(crate) fn single(bits: u32) -> Element {
        Element::open(bits, 8, 23)
    }

    /// An accumulator.
    fn accumulator(result: Output, bits: u32) -> Element {
        match result {
            Output::Half => Element::open(bits & 0xffff, 5, 10),
            Output::Single | Output::Short => Element::single(bits),
        }
    }

    pub(crate) fn times(self, other: Element) -> Element {
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

/// What a sum comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sum {
    Nan,
    Infinity { negative: bool },
    Finite(Exact),
}

/// NaN or an infinity where the terms have one.
fn special(terms: &[Element]) -> Option<Sum> {
    let mut infinity = None;
    for &term in terms {
        match term {
            Element::Nan => return Some(Sum::Nan),
            Element::Infinity { negative } if infinity == Some(!negative) => {
                return Some(Sum::Nan);
            }
            Element::Infinity { negative } => infinity = Some(negative),
            Element::Finite { .. } => {}
        }
    }
    infinity.map(|negative| Sum::Infinity { negative })
}

/// Terms aligned to the largest exponent and cut to so many fraction bits.
pub(crate) fn cut_sum(terms: &[Element], fraction_bits: i32) -> Sum {
    if let Some(sum) = special(terms) {
        return sum;
    }
    let exponents = terms.iter().filter_map(|term| match term {
        Element::Finite { mantissa: 1.., exponent, .. } => Some(*exponent),
        _ => None,
    });
    let largest = exponents.fold(LEAST, i32::max);
    let units = terms.iter().map(|&term| match term {
        Element::Finite { negative, mantissa: mantissa @ 1.., exponent, fraction } => {
            let shift = fraction_bits - fraction - (largest - exponent);
            let mantissa = i128::from(mantissa);
            // A shift to the left is by at most the fraction bits.
            let units = if shift >= 0 { mantissa << shift } else { mantissa >> (-shift).min(127) };
            if negative { -units } else { units }
        }
        _ => 0,
    });
    let units: i128 = units.sum();
    Sum::Finite(Exact {
        negative: units < 0,
        mantissa: units.unsigned_abs(),
        exponent: largest - fraction_bits,
        sticky: false,
    })
}

/// All terms, with nothing lost.
pub(crate) fn whole_sum(terms: &[Element]) -> Sum {
    if let Some(sum) = special(terms) {
        return sum;
    }
    let mut sum = Wide::default();
    for &term in terms {
        if let Element::Finite { negative, mantissa, exponent, fraction } = term {
            sum.add(negative, mantissa, exponent - fraction);
        }
    }
    Sum::Finite(sum.exact())
}

/// A sum rounded to what the rule gives. Overflow is an infinity, also where the rounding cuts.
pub(crate) fn rounded(result: Output, sum: Sum, mode: Rounding) -> u32 {
    let half = result == Output::Half;
    let format = if half { soft::F16 } else { soft::F32 };
    let exact = match sum {
        Sum::Nan => return if half { NAN >> 16 } else { NAN },
        Sum::Infinity { negative } => return format.infinity(negative) as u32,
        Sum::Finite(exact) => exact,
    };
    let mode = if half { Rounding::Nearest } else { mode };
    let bits = format.round(exact, mode) as u32;
    let length = 128 - exact.mantissa.leading_zeros() as i32;
    if mode == Rounding::Zero && length > 0 && length + exact.exponent > 128 {
        return format.infinity(exact.negative) as u32;
    }
    // The ten lowest fraction bits, of subnormals too.
    if result == Output::Short { bits & !0x3ff } else { bits }
}

/// `c += a * b`, as [`super::tensor::multiply_add`].
pub(crate) fn multiply_add(
    rule: &Rule,
    a: Elements<'_>,
    b: Elements<'_>,
    depth: usize,
    c: &mut [u32],
) {
    let columns = b.bits.len() / depth.max(1);
    for (index, c) in c.iter_mut().enumerate() {
        let (a, b) = (a.line(index / columns, depth), b.line(index % columns, depth));
        *c = dot(rule, a, b, *c);
    }
}

/// One element of D.
pub(crate) fn dot(rule: &Rule, a: Elements<'_>, b: Elements<'_>, c: u32) -> u32 {
    let pairs = a.bits.iter().zip(b.bits);
    let terms = pairs.map(|(&x, &y)| Element::of(a.format, x).times(Element::of(b.format, y)));
    let mut terms: Vec<Element> = terms.collect();
    match rule.order {
        Order::Exact => {
            terms.push(Element::accumulator(rule.result, c));
            rounded(rule.result, whole_sum(&terms), Rounding::Nearest)
        }
        Order::Fused => fused(rule.result, &terms, c),
        Order::Aligned | Order::Apart => {
            terms.chunks(rule.step.max(1)).fold(c, |c, step| step_dot(rule, step, c))
        }
    }
}

/// One step of [`Order::Aligned`].
fn step_dot(rule: &Rule, products: &[Element], c: u32) -> u32 {
    let mut terms = products.to_vec();
    terms.push(Element::accumulator(rule.result, c));
    let bits = rounded(rule.result, cut_sum(&terms, rule.fraction as i32), Rounding::Zero);
    // Of f16 a zero has no sign, whatever was rounded to it.
    if rule.result == Output::Half && bits == 0x8000 { 0 } else { bits }
}

/// f32 throughout: one product, multiply-adds of the others, then the accumulator. For f16 the
/// first two products, the accumulator, the sum of the other two, and a rounding.
fn fused(result: Output, products: &[Element], c: u32) -> u32 {
    let chain = |products: &[Element]| {
        products.iter().fold(None, |sum: Option<u32>, &product| {
            let mut terms = vec![product];
            terms.extend(sum.map(Element::single));
            Some(rounded(Output::Single, whole_sum(&terms), Rounding::Nearest))
        })
    };
    if result != Output::Half {
        return add(Output::Single, chain(products).unwrap_or(0), c);
    }
    let (first, second) = products.split_at(products.len() / 2);
    let [first, second] = [first, second].map(|half| chain(half).unwrap_or(0));
    let c = f16_to_f32(c as u16).to_bits();
    let sum = add(Output::Single, add(Output::Single, first, c), second);
    let sum = Element::single(sum);
    rounded(Output::Half, whole_sum(&[sum]), Rounding::Nearest)
}

/// `x + y`, rounded to nearest.
pub(crate) fn add(result: Output, x: u32, y: u32) -> u32 {
    let format: Binary = if result == Output::Half { soft::F16 } else { soft::F32 };
    if result != Output::Half {
        let sum = f32::from_bits(x) + f32::from_bits(y);
        return if sum.is_nan() { NAN } else { sum.to_bits() };
    }
    format.add(u64::from(x), u64::from(y), Rounding::Nearest) as u32
}

/// An element as f16, which holds all that are shorter.
pub(crate) fn to_half(format: Format, bits: u32) -> u32 {
    if format == Format::E5m2 {
        return (bits & 0xff) << 8;
    }
    match Element::of(format, bits) {
        Element::Nan => NAN >> 16,
        Element::Infinity { negative } => soft::F16.infinity(negative) as u32,
        Element::Finite { negative, mantissa, exponent, fraction } => {
            let mantissa = u128::from(mantissa);
            let exponent = exponent - fraction;
            let exact = Exact { negative, mantissa, exponent, sticky: false };
            soft::F16.round(exact, Rounding::Nearest) as u32
        }
    }
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
    use super::super::tensor::{Path, TensorModel};
    use super::*;

    fn single(pairs: &[(u32, u32)], c: f32) -> f32 {
        let rule = TensorModel::Hopper.rule(Path::Mma, Format::F16, false);
        let (a, b): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
        let [a, b] = [&a, &b].map(|bits| Elements { format: Format::F16, bits });
        f32::from_bits(dot(&rule, a, b, c.to_bits()))
    }

    #[test]
    fn small_sums_of_halves_are_exact() {
        assert_eq!(single(&[(0x3c00, 0x4000), (0xbc00, 0x3800)], 10.0), 11.5);
    }

    #[test]
    fn a_term_far_below_the_largest_is_cut_and_not_rounded() {
        // 2^-14 * 2^-14 beside 1: 28 bits below, three past what is kept.
        assert_eq!(single(&[(0x0400, 0x0400); 4], 1.0), 1.0);
        // Beside nothing else all of it is kept.
        assert_eq!(single(&[(0x0400, 0x0400); 4], 0.0), 4.0 / 268_435_456.0);
    }

    #[test]
    fn opposite_infinities_and_infinity_times_zero_are_nan() {
        let (one, zero, infinity) = (0x3c00, 0, 0x7c00);
        assert_eq!(single(&[(infinity, one)], f32::NEG_INFINITY).to_bits(), NAN);
        assert_eq!(single(&[(infinity, zero)], 0.0).to_bits(), NAN);
        assert_eq!(single(&[(infinity, one)], 0.0), f32::INFINITY);
    }

    #[test]
    fn four_products_of_halves_and_an_accumulator_are_summed_as_an_h200_does() {
        let rule = TensorModel::Hopper.rule(Path::Quad, Format::F16, true);
        // 2048 * 2048 - 2048 * 2048 + 2^-3 with all else zero: in another order 2^-3 is lost.
        let (big, less, one, eighth) = (0x6800, 0xe800, 0x3c00, 0x3000);
        let sum = |a: [u32; 4], b: [u32; 4], c| {
            let [a, b] = [&a, &b].map(|bits| Elements { format: Format::F16, bits });
            dot(&rule, a, b, c)
        };
        assert_eq!(sum([big, less, eighth, 0], [big, big, one, 0], 0), eighth);
        assert_eq!(sum([big, less, 0, 0], [big, big, 0, 0], eighth), eighth);
        // The accumulator comes before the second pair: 2^22 + 2^-3 is 2^22.
        assert_eq!(sum([big, 0, less, 0], [big, 0, big, 0], eighth), 0);
    }

    #[test]
    fn every_byte_format_fits_f16() {
        for format in [Format::E4m3, Format::E5m2, Format::E3m2, Format::E2m3, Format::E2m1] {
            for bits in 0..=u8::MAX {
                let half = Element::of(Format::F16, to_half(format, u32::from(bits)));
                let own = Element::of(format, u32::from(bits));
                assert_eq!(whole(half), whole(own), "{format:?} {bits:#x}");
            }
        }
    }

    fn whole(element: Element) -> u32 {
        rounded(Output::Single, whole_sum(&[element]), Rounding::Nearest)
    }
}
