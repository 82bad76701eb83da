//! The elements of a product's matrices, and one element of the result.

use super::WarpgroupMultiply;
use crate::arithmetic::tensor::{Element, dot_f16, dot_f32};
use crate::execute::matrix::Matrix;

/// A matrix, row by row (of B: column by column), in the form that is multiplied.
pub(crate) enum Values {
    Floats(Vec<Element>),
    Integers(Vec<i64>),
    /// Single bits, eight in a byte.
    Bits(Vec<u8>),
}

impl Values {
    /// Takes rows of bytes apart.
    pub(crate) fn open(bytes: &[u8], matrix: Matrix, negated: bool) -> Values {
        let size = matrix.bits().div_ceil(8);
        let sign = u64::from(negated) << (matrix.bits() - 1);
        let words = bytes.chunks_exact(size).map(|part| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(part);
            u64::from_le_bytes(word) ^ sign
        });
        match matrix {
            Matrix::B1 => Values::Bits(bytes.to_vec()),
            Matrix::S8 | Matrix::U8 => {
                Values::Integers(words.map(|word| matrix.integer(word)).collect())
            }
            _ => Values::Floats(words.map(|word| matrix.float(word)).collect()),
        }
    }
}

/// One row of A times one column of B, beside `c`.
pub(crate) fn element(
    multiply: WarpgroupMultiply,
    (a, row): (&Values, usize),
    (b, column): (&Values, usize),
    c: u64,
) -> u64 {
    match (a, b) {
        (Values::Floats(a), Values::Floats(b)) => {
            let (a, b) = (row_of(a, row, multiply.depth), row_of(b, column, multiply.depth));
            let pairs: Vec<(Element, Element)> = a.iter().copied().zip(b.iter().copied()).collect();
            if multiply.d == Matrix::F16 {
                u64::from(dot_f16(&pairs, c as u16))
            } else {
                u64::from(dot_f32(&pairs, c as u32))
            }
        }
        (Values::Integers(a), Values::Integers(b)) => {
            let (a, b) = (row_of(a, row, multiply.depth), row_of(b, column, multiply.depth));
            let products: i64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
            let sum = products + i64::from(c as u32 as i32);
            let limits = (i64::from(i32::MIN), i64::from(i32::MAX));
            let sum = if multiply.saturates { sum.clamp(limits.0, limits.1) } else { sum };
            u64::from(sum as u32)
        }
        (Values::Bits(a), Values::Bits(b)) => {
            let bytes = multiply.depth / 8;
            let (a, b) = (row_of(a, row, bytes), row_of(b, column, bytes));
            let both: u32 = a.iter().zip(b).map(|(x, y)| (x & y).count_ones()).sum();
            u64::from((c as u32).wrapping_add(both))
        }
        // Both sides are of one kind: lowering accepts no others.
        _ => c,
    }
}

fn row_of<T>(values: &[T], row: usize, length: u16) -> &[T] {
    let length = usize::from(length);
    &values[row * length..(row + 1) * length]
}
