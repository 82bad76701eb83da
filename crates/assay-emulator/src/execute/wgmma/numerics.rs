//! The elements of a product's matrices, and the product.

use super::WarpgroupMultiply;
use crate::arithmetic::tensor::{Elements, Path, TensorModel};
use crate::arithmetic::tensor::{multiply_add, multiply_add_bits, multiply_add_integers};
use crate::execute::fragment::Matrix;

/// Rows of bytes (of B: columns) as elements; single bits stay together, 32 of them an element.
pub(crate) fn elements(bytes: &[u8], matrix: Matrix, negated: bool) -> Vec<u32> {
    let size = matrix.bits().max(8) / 8;
    let size = if matrix == Matrix::B1 { 4 } else { size };
    let sign = if negated { 1 << (matrix.bits() - 1) } else { 0 };
    let words = bytes.chunks_exact(size).map(|part| {
        let mut word = [0; 4];
        word[..size].copy_from_slice(part);
        matrix.element(u32::from_le_bytes(word) ^ sign)
    });
    words.collect()
}

/// `c += a * b`
pub(crate) fn multiply(
    product: WarpgroupMultiply,
    model: TensorModel,
    a: &[u32],
    b: &[u32],
    c: &mut [u32],
) {
    let depth = usize::from(product.depth);
    match (product.a.format(), product.b.format()) {
        (Some(format), Some(other)) => {
            let rule = model.rule(Path::Wgmma, format, product.d == Matrix::F16);
            let b = Elements { format: other, bits: b };
            multiply_add(&rule, Elements { format, bits: a }, b, depth, c);
        }
        _ if product.a == Matrix::B1 => multiply_add_bits(a, b, depth / 32, c, true),
        _ => multiply_add_integers(a, b, depth, c, product.saturates),
    }
}
