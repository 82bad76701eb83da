//! Sums of products with block scales, as `sm_120a` has them.
//!
//! Model only, unverified: the published model (MMA-Sim, arXiv 2511.10909), and nobody here has a
//! chip to hold it against.

use super::soft::Rounding;
use super::tensor::{Elements, Format, Output};
use super::tensor_plain::{Element, cut_sum, rounded, whole_sum};

/// Elements of e2m1 whose products are summed exactly, before scales.
const GROUP: usize = 16;

/// Fraction bits to which a scaled group is cut.
const GROUP_FRACTION: i32 = 35;

/// Fraction bits to which a scaled product of bytes is cut.
const FRACTION: i32 = 25;

/// The format of scales.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scale {
    /// A power of two.
    Ue8m0,
    /// As e4m3, without its sign.
    Ue4m3,
}

impl Scale {
    fn open(self, bits: u32) -> Element {
        match self {
            Scale::Ue8m0 if bits & 0xff == 0xff => Element::Nan,
            Scale::Ue8m0 => Element::Finite {
                negative: false,
                mantissa: 1,
                exponent: (bits & 0xff) as i32 - 127,
                fraction: 0,
            },
            Scale::Ue4m3 => Element::of(Format::E4m3, bits & 0x7f),
        }
    }
}

/// One element of D: `c` and the scaled products of a row and a column, in f32.
pub(crate) fn scaled(
    exact: bool,
    scale: Scale,
    a: Elements<'_>,
    b: Elements<'_>,
    scales: &[Vec<u32>; 2],
    c: u32,
) -> u32 {
    let packed = a.bits.len() == 64;
    let vectors = scales[0].len().max(1);
    let mut terms = Vec::new();
    for (number, block) in (0..a.bits.len()).step_by(a.bits.len() / vectors).enumerate() {
        let end = block + a.bits.len() / vectors;
        let factor = scale.open(scales[0][number]).times(scale.open(scales[1][number]));
        let pairs = a.bits[block..end].iter().zip(&b.bits[block..end]);
        let products =
            pairs.map(|(&x, &y)| Element::of(a.format, x).times(Element::of(b.format, y)));
        if packed {
            let products: Vec<Element> = products.collect();
            terms.extend(products.chunks(GROUP).map(|group| whole(group).times(factor)));
        } else {
            terms.extend(products.map(|product| product.times(factor)));
        }
    }
    terms.push(Element::single(c));
    if exact {
        return rounded(Output::Single, whole_sum(&terms), Rounding::Nearest);
    }
    let fraction = if packed { GROUP_FRACTION } else { FRACTION };
    rounded(Output::Single, cut_sum(&terms, fraction), Rounding::Zero)
}

/// The exact sum of products of e2m1, in quarters.
fn whole(products: &[Element]) -> Element {
    let quarters = products.iter().map(|&product| match product {
        Element::Finite { negative, mantissa, exponent, .. } => {
            let quarters = (mantissa as i64) << exponent;
            if negative { -quarters } else { quarters }
        }
        _ => 0,
    });
    let quarters: i64 = quarters.sum();
    let mantissa = quarters.unsigned_abs();
    Element::Finite { negative: quarters < 0, mantissa, exponent: 0, fraction: 2 }
}
