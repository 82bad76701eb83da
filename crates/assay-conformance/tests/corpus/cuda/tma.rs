//! References for `tma.cu`.

use assay_device::{TensorElement, TensorMap, TensorSwizzle};
use assay_num::Format;

use super::data::normal;
use super::tensor::transposed;
use crate::case::{Case, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![boxes(), swizzled()]
}

/// 40 x 68 floats: the last boxes hang over both edges.
fn boxes() -> Case {
    let x: Vec<f64> = normal(161, 40 * 68, Format::F16);
    let y: Vec<f64> = x.iter().map(|x| 2.0 * x + 1.0).collect();
    let map = TensorMap::dense(TensorElement::F32, 0, &[68, 40], &[32, 16]);
    Case::new("boxes")
        .grid([3, 3, 1])
        .block([64, 1, 1])
        .maps(map, Some(pack(Format::F32, &x)), exact_bytes(pack(Format::F32, &x)))
        .maps(map, None, exact_bytes(pack(Format::F32, &y)))
}

fn swizzled() -> Case {
    let x = normal(162, 64 * 64, Format::F16);
    let dense = TensorMap::dense(TensorElement::F16, 0, &[64, 64], &[64, 64]);
    let map = TensorMap { swizzle: TensorSwizzle::Bytes128, ..dense };
    Case::new("swizzled")
        .sized(1, 128)
        .maps(map, Some(pack(Format::F16, &x)), exact_bytes(pack(Format::F16, &x)))
        .writes(exact_bytes(pack(Format::F16, &transposed(&x, 64))))
}
