//! References that sum one term after the other, in an accumulator of a stated format: the widest
//! bands that an order of summation explains come from them.

use assay_num::Format;
use rayon::prelude::*;

use crate::array::{Tensor, element_count, storage};

/// Elements that one task sums, about.
const TASK: usize = 1 << 16;

/// The sums over the last axis, each term and each sum rounded to `accumulate`, the last one to
/// `output` too.
///
/// # Errors
/// If there is no axis, or elements are no floating-point numbers.
pub fn sum_last_dim(input: &Tensor, accumulate: Format, output: Format) -> Result<Tensor, String> {
    floats(&[input.format(), accumulate, output])?;
    let [outer @ .., size] = input.shape() else {
        return Err("an array without axes has no last one to sum over".to_owned());
    };
    let sums: Vec<f64> = if *size == 0 {
        vec![0.0; element_count(outer).map_err(|error| error.to_string())? as usize]
    } else {
        let row = *size as usize;
        // Whole bytes, of packed formats too.
        let rows = (TASK / row).max(1).next_multiple_of(8);
        let tasks = input.bytes().par_chunks(storage(input.format(), (rows * row) as u64) as usize);
        let sums = tasks.flat_map_iter(|bytes| {
            let values = input.format().decode_slice(bytes);
            let whole = values.len() - values.len() % row;
            let sums: Vec<f64> =
                values[..whole].chunks_exact(row).map(|row| sum(row, accumulate)).collect();
            sums
        });
        sums.collect()
    };
    Tensor::from_values(output, outer, &sums).map_err(|error| error.to_string())
}

fn sum(row: &[f64], accumulate: Format) -> f64 {
    match accumulate {
        Format::F64 => row.iter().fold(0.0, |sum, x| sum + x),
        Format::F32 => f64::from(row.iter().fold(0.0f32, |sum, &x| sum + x as f32)),
        // A sum of two in f64 is rounded as if it were exact: f64 has twice the bits and two more.
        other => row.iter().fold(0.0, |sum, &x| other.round(sum + other.round(x))),
    }
}

/// The products of matrices `[.., M, K]` and `[.., K, N]`: each product and each sum is rounded to
/// `accumulate`, along K in order, the last one to `output` too. Without further axes the second
/// serves all of the first's.
///
/// # Errors
/// If the shapes do not fit, or elements are no floating-point numbers.
pub fn matmul(
    (a, b): (&Tensor, &Tensor),
    accumulate: Format,
    output: Format,
) -> Result<Tensor, String> {
    floats(&[a.format(), b.format(), accumulate, output])?;
    let ([outer @ .., m, k], [others @ .., rows, n]) = (a.shape(), b.shape()) else {
        return Err(unfit(a, b));
    };
    if k != rows || !(others.is_empty() || others == outer) {
        return Err(unfit(a, b));
    }
    let shape = [outer, &[*m, *n]].concat();
    let elements = element_count(&shape).map_err(|error| error.to_string())?;
    let (m, k, n) = (*m as usize, *k as usize, *n as usize);
    let (left, right) = (a.values(), b.values());
    let mut values = vec![0.0; elements as usize];
    if k > 0 && elements > 0 {
        let one_for_all = others.is_empty();
        values.par_chunks_mut(n).enumerate().for_each(|(row, out)| {
            let matrix = if one_for_all { 0 } else { row / m };
            let right = &right[matrix * k * n..(matrix + 1) * k * n];
            row_product(&left[row * k..(row + 1) * k], right, accumulate, out);
        });
    }
    Tensor::from_values(output, &shape, &values).map_err(|error| error.to_string())
}

/// One row of a product: the terms of all its elements in the order of K.
fn row_product(left: &[f64], right: &[f64], accumulate: Format, out: &mut [f64]) {
    let rows = left.iter().zip(right.chunks_exact(out.len()));
    match accumulate {
        Format::F64 => rows.for_each(|(&x, row)| {
            out.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
        }),
        Format::F32 => {
            let mut sums = vec![0.0f32; out.len()];
            for (&x, row) in rows {
                sums.iter_mut().zip(row).for_each(|(sum, &y)| *sum += x as f32 * y as f32);
            }
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = f64::from(sum));
        }
        other => {
            for (&x, row) in rows {
                let term = |y: f64| other.round(other.round(x) * other.round(y));
                out.iter_mut().zip(row).for_each(|(sum, &y)| *sum = other.round(*sum + term(y)));
            }
        }
    }
}

fn unfit(a: &Tensor, b: &Tensor) -> String {
    let (a, b) = (a.shape(), b.shape());
    format!("a product takes the shapes [.., M, K] and [.., K, N], not {a:?} and {b:?}")
}

fn floats(formats: &[Format]) -> Result<(), String> {
    match formats.iter().find(|format| !format.is_float()) {
        Some(format) => Err(format!("sums of {format} are the same in any order")),
        None => Ok(()),
    }
}
