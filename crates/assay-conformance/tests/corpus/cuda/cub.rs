//! References for `cub_blocks.cu`.

use assay_num::Format;

use super::data::{integers, normal, whole, words};
use crate::case::{Case, bytes, close, exact, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![sums(), scans(), sorts(), bins(), warps()]
}

fn sums() -> Case {
    let x = normal(131, 2 * 900, Format::F32);
    let partial = |row: &[f64], t: usize| row.iter().skip(t).step_by(128).sum::<f64>();
    let y = x.chunks(900).flat_map(|row| {
        let tops = (0..128).map(|t| partial(row, t));
        [row.iter().sum(), tops.fold(f64::NEG_INFINITY, f64::max)]
    });
    let y: Vec<f64> = y.collect();
    Case::new("sums")
        .sized(2, 128)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &y, 1e-6, 2e-5))
        .value(900)
}

fn scans() -> Case {
    let x = whole(132, 250, -100, 100);
    let y: Vec<i32> = (0..250).map(|i| x[..i].iter().sum()).collect();
    let total: i32 = x.iter().sum();
    Case::new("scans").sized(1, 64).reads(&x).writes(exact(&y)).writes(exact(&[total]))
}

fn sorts() -> Case {
    let keys: Vec<u32> = words(133, 128).into_iter().map(|v| (v % 77) << 20).collect();
    let mut order: Vec<i32> = (0..128).collect();
    order.sort_by_key(|&at| keys[at as usize]);
    let sorted: Vec<u32> = order.iter().map(|&at| keys[at as usize]).collect();
    let mut floats = normal(134, 128, Format::F32);
    let first = pack(Format::F32, &floats);
    floats.sort_by(|a, b| b.total_cmp(a));
    Case::new("sorts")
        .sized(1, 64)
        .updates(bytes(&keys), exact(&sorted))
        .writes(exact(&order))
        .updates(first, exact_bytes(pack(Format::F32, &floats)))
}

fn bins() -> Case {
    let x: Vec<u8> = integers(135, 256, 0, 16).into_iter().map(|v| v as u8).collect();
    let mut counts = [0_u32; 16];
    for &v in &x {
        counts[usize::from(v)] += 1;
    }
    Case::new("bins").sized(1, 64).reads(&x).writes(exact(&counts))
}

fn warps() -> Case {
    let x = normal(136, 64, Format::F64);
    let y: Vec<f64> =
        x.chunks(32).map(|warp| warp.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect();
    let z: Vec<i32> = (0..64).map(|t| (t / 16 * 16..=t).sum()).collect();
    Case::new("warps").sized(1, 64).reads_as(Format::F64, &x).writes(exact(&y)).writes(exact(&z))
}
