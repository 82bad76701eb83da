//! References for `tensor.cu`: the inputs are such that every sum is exact, or small bounds hold.

use assay_num::Format;

use super::data::{integers, normal};
use crate::case::{Case, close, exact_bytes, pack};

pub(super) fn cases(architecture: u32) -> Vec<Case> {
    let mut cases = vec![
        sgemm(),
        wmma("wmma_f16", Format::F16),
        wmma("wmma_bf16", Format::Bf16),
        wmma_s8(),
        wmma_tf32(),
        wmma_f64(),
        mma_bf16(),
        tile("mma_f16", [Format::F16; 2], Format::F32, 16),
        tile("mma_tf32", [Format::F32; 2], Format::F32, 8),
        tile("mma_s8", [Format::I8; 2], Format::I32, 32),
        tile("mma_u8s8", [Format::U8, Format::I8], Format::I32, 32),
        tile("mma_f16_acc", [Format::F16; 2], Format::F16, 8),
    ];
    if architecture >= 89 {
        cases.push(tile("mma_e4m3", [Format::E4m3; 2], Format::F32, 32));
        cases.push(tile("mma_e5m2", [Format::E5m2, Format::E4m3], Format::F32, 32));
    }
    cases
}

/// A (m x k) times B (k x n), both by rows.
pub(super) fn product(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let at = |i: usize, j: usize| (0..k).map(|t| a[i * k + t] * b[t * n + j]).sum();
    (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect()
}

/// The transpose of a matrix of so many columns.
pub(super) fn transposed(a: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|j| a.iter().skip(j).step_by(columns).copied()).collect()
}

/// Small whole numbers: all their sums of products are exact in every format here.
pub(super) fn small(seed: u64, count: usize, low: i64) -> Vec<f64> {
    integers(seed, count, low, 4).into_iter().map(|v| v as f64).collect()
}

fn sgemm() -> Case {
    let size = [64, 96, 64];
    let (a, b) = (normal(71, 64 * 64, Format::F32), normal(72, 64 * 96, Format::F32));
    Case::new("sgemm")
        .grid([3, 2, 1])
        .block([32, 8, 1])
        .reads_as(Format::F32, &a)
        .reads_as(Format::F32, &b)
        .writes(close(Format::F32, &product(&a, &b, size), 1e-5, 2e-5))
        .value(64)
        .value(96)
        .value(64)
}

fn wmma(kernel: &'static str, format: Format) -> Case {
    let (a, b) = (normal(73, 32 * 64, format), normal(74, 64 * 48, format));
    let c: Vec<f64> = product(&a, &b, [32, 48, 64]).iter().map(|c| 2.0 * c).collect();
    Case::new(kernel)
        .grid([3, 2, 1])
        .block([32, 1, 1])
        .reads_as(format, &a)
        .reads_as(format, &b)
        .writes(close(Format::F32, &c, 1e-5, 5e-5))
        .value(48)
        .value(64)
}

fn wmma_s8() -> Case {
    let a: Vec<f64> = integers(75, 32 * 16, -128, 128).iter().map(|&v| v as f64).collect();
    let b: Vec<f64> = integers(76, 8 * 16, -128, 128).iter().map(|&v| v as f64).collect();
    let c = product(&a, &transposed(&b, 16), [32, 8, 16]);
    let c: Vec<f64> = c.iter().map(|c| c + 5.0).collect();
    Case::new("wmma_s8")
        .sized(1, 32)
        .reads_as(Format::I8, &a)
        .reads_as(Format::I8, &b)
        .writes(exact_bytes(pack(Format::I32, &c)))
}

fn wmma_tf32() -> Case {
    let (a, b) = (normal(77, 16 * 8, Format::F32), normal(78, 8 * 16, Format::F32));
    let start = small(79, 256, -3);
    let near = |v: &[f64]| v.iter().map(|&v| Format::Tf32.round(v)).collect::<Vec<_>>();
    let c = product(&near(&a), &near(&b), [16, 16, 8]);
    let c: Vec<f64> = c.iter().zip(&start).map(|(c, start)| c + start).collect();
    // cvt.rna rounds ties away from zero, which random values do not have.
    Case::new("wmma_tf32")
        .sized(1, 32)
        .reads_as(Format::F32, &a)
        .reads_as(Format::F32, &b)
        .updates(pack(Format::F32, &start), close(Format::F32, &c, 2e-6, 4e-6))
}

fn wmma_f64() -> Case {
    let (a, b) = (normal(80, 32, Format::F64), normal(81, 32, Format::F64));
    let c = product(&a, &transposed(&b, 4), [8, 8, 4]);
    Case::new("wmma_f64")
        .sized(1, 32)
        .reads_as(Format::F64, &a)
        .reads_as(Format::F64, &b)
        .writes(close(Format::F64, &c, 1e-14, 1e-14))
}

fn mma_bf16() -> Case {
    let (a, b) = (normal(82, 64 * 80, Format::Bf16), normal(83, 80 * 64, Format::Bf16));
    Case::new("mma_bf16")
        .grid([2, 2, 1])
        .block([128, 1, 1])
        .reads_as(Format::Bf16, &a)
        .reads_as(Format::Bf16, &b)
        .writes(close(Format::F32, &product(&a, &b, [64, 64, 80]), 1e-5, 5e-5))
        .value(64)
        .value(80)
}

/// One 16 x 8 x k instruction over small whole numbers, which is exact whatever the order.
fn tile(kernel: &'static str, [fa, fb]: [Format; 2], fc: Format, k: usize) -> Case {
    let a = small(84, 16 * k, if fa == Format::U8 { 0 } else { -3 });
    let b = small(85, 8 * k, -3);
    let start = small(86, 128, -3);
    let c = product(&a, &transposed(&b, k), [16, 8, k]);
    let c: Vec<f64> = c.iter().zip(&start).map(|(c, start)| c + start).collect();
    Case::new(kernel)
        .sized(1, 32)
        .reads_as(fa, &a)
        .reads_as(fb, &b)
        .updates(pack(fc, &start), exact_bytes(pack(fc, &c)))
}
