//! References for `hopper.cu`.

use assay_num::Format;

use super::data::{normal, whole};
use super::tensor::{product, small};
use crate::case::{Case, bytes, close, exact, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![cluster_sum(), cluster_histogram(), bulk_scale(), wgmma_bf16(), elected(), ring()]
}

fn cluster_sum() -> Case {
    let x = normal(111, 3 * 1000, Format::F32);
    let y: Vec<f64> = x.chunks(1000).map(|row| row.iter().sum()).collect();
    Case::new("cluster_sum")
        .sized(12, 64)
        .cluster([4, 1, 1])
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &y, 1e-6, 2e-5))
        .value(1000)
}

fn cluster_histogram() -> Case {
    let x = whole(112, 700, 0, 128);
    let mut bins = [0_i32; 128];
    for &v in &x {
        bins[v as usize] += 1;
    }
    Case::new("cluster_histogram")
        .sized(2, 96)
        .cluster([2, 1, 1])
        .reads(&x)
        .writes(exact(&bins))
        .value(700)
}

fn bulk_scale() -> Case {
    let x = normal(113, 3 * 256, Format::F32);
    let y: Vec<f64> = x.iter().map(|x| x * 2.5).collect();
    let mut want = pack(Format::F32, &y);
    let first = |word: usize| i32::from_le_bytes([0, 1, 2, 3].map(|i| want[4 * word + i]));
    let sums = [0, 1, 2, 3]
        .map(|i| (0..3).fold(7_i32, |sum, block| sum.wrapping_add(first(block * 256 + i))));
    want.extend(bytes(&sums));
    let mut start = vec![0; 3 * 1024];
    start.extend(bytes(&[7_i32; 4]));
    Case::new("bulk_scale")
        .sized(3, 128)
        .reads_as(Format::F32, &x)
        .updates(start, exact_bytes(want))
        .value(2.5_f32)
}

fn wgmma_bf16() -> Case {
    let (a, b) = (small(114, 64 * 32, -3), small(115, 32 * 8, -3));
    let c = product(&a, &b, [64, 8, 32]);
    Case::new("wgmma_bf16")
        .sized(1, 128)
        .reads_as(Format::Bf16, &a)
        .reads_as(Format::Bf16, &b)
        .writes(exact_bytes(pack(Format::F32, &c)))
}

fn elected() -> Case {
    let x = normal(116, 64, Format::F16);
    let y = super::tensor::transposed(&x, 8);
    Case::new("elected")
        .sized(1, 32)
        .reads_as(Format::F16, &x)
        .writes(exact_bytes(pack(Format::F16, &y)))
        .updates(bytes(&[0_i32]), exact(&[1_i32]))
}

fn ring() -> Case {
    let x = whole(117, 8, -100, 100);
    let from = |block: usize| x[block / 4 * 4 + (block + 3) % 4];
    let y: Vec<i32> = (0..8).flat_map(|block| [0, 1, 2, 3].map(|i| from(block) + i)).collect();
    Case::new("ring").sized(8, 32).cluster([4, 1, 1]).reads(&x).writes(exact(&y))
}
