//! References for `blackwell.cu`.

use assay_num::Format;

use super::data::normal;
use super::tensor::{product, small, transposed};
use crate::case::{Case, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![
        scaled("mma_f8f6f4", [Format::E4m3, Format::E5m2], 32, [0, 0], 1.0),
        // Scales of 2 and 1/4, in every byte that a lane may choose.
        scaled("mma_mxf8", [Format::E4m3; 2], 32, [0x8080_8080, 0x7d7d_7d7d], 0.5),
        scaled("mma_nvf4", [Format::E2m1; 2], 64, [0x4040_4040, 0x2828_2828], 0.5),
        pairs(),
    ]
}

fn scaled(
    kernel: &'static str,
    [fa, fb]: [Format; 2],
    k: usize,
    scales: [u32; 2],
    by: f64,
) -> Case {
    let (a, b, start) = (small(121, 16 * k, -3), small(122, 8 * k, -3), small(123, 128, -3));
    let c = product(&a, &transposed(&b, k), [16, 8, k]);
    let c: Vec<f64> = c.iter().zip(&start).map(|(c, start)| by * c + start).collect();
    Case::new(kernel)
        .sized(1, 32)
        .reads_as(fa, &a)
        .reads_as(fb, &b)
        .updates(pack(Format::F32, &start), exact_bytes(pack(Format::F32, &c)))
        .value(scales[0])
        .value(scales[1])
}

fn pairs() -> Case {
    let (a, b) = (normal(124, 64, Format::F32), normal(125, 64, Format::F32));
    let fused =
        |i: usize| (a[i] as f32).mul_add(b[i] as f32, if i.is_multiple_of(2) { 1.0 } else { -1.0 });
    let mut y: Vec<f64> = (0..64).map(|i| f64::from(fused(i))).collect();
    y.extend((0..64).map(|i| a[i] + b[i]));
    y.extend((0..64).map(|i| a[i] * b[i]));
    Case::new("pairs")
        .sized(1, 32)
        .reads_as(Format::F32, &a)
        .reads_as(Format::F32, &b)
        .writes(exact_bytes(pack(Format::F32, &y)))
}
