//! The elements of a product's matrices, and their product.

use super::WarpgroupMultiply;
use crate::arithmetic::tensor::{
    Elements, Path, TensorModel, multiply_add, multiply_add_bits, multiply_add_integers,
};
use crate::execute::fragment::Matrix;

/// Takes rows of bytes apart into elements, or words of single bits.
pub(crate) fn elements(bytes: &[u8], matrix: Matrix, negated: bool) -> Vec<u32> {
    let sign = u32::from(negated) << (matrix.bits() - 1);
    match matrix.bits() {
        8 => bytes.iter().map(|&byte| matrix.element(u32::from(byte) ^ sign)).collect(),
        16 => {
            let halves = bytes.as_chunks::<2>().0;
            halves.iter().map(|half| u32::from(u16::from_le_bytes(*half)) ^ sign).collect()
        }
        _ => {
            let words = bytes.as_chunks::<4>().0;
            words.iter().map(|word| u32::from_le_bytes(*word) ^ sign).collect()
        }
    }
}

/// `c += a * b`, with `a` row by row and `b` column by column; `depth` elements or words each.
pub(crate) fn products(
    multiply: WarpgroupMultiply,
    model: TensorModel,
    (a, b): (&[u32], &[u32]),
    depth: usize,
    c: &mut [u32],
) {
    match (multiply.a.format(), multiply.b.format()) {
        (Some(format), Some(other)) => {
            let rule = model.rule(Path::Wgmma, format, multiply.d == Matrix::F16);
            let (a, b) = (Elements { format, bits: a }, Elements { format: other, bits: b });
            multiply_add(&rule, a, b, depth, c);
            // A sum below the least f32 is a zero without a sign; `mma` keeps the sign.
            c.iter_mut().filter(|bits| **bits == 0x8000_0000).for_each(|bits| *bits = 0);
        }
        _ if multiply.a == Matrix::B1 => multiply_add_bits(a, b, depth, c, true),
        _ => multiply_add_integers(a, b, depth, c, multiply.saturates),
    }
}
