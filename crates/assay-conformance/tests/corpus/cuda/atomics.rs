//! References for `atomics.cu`.

use assay_num::Format;

use super::data::whole;
use crate::case::{Case, bytes, exact, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![integers(), floats(), library(), last_block()]
}

/// What the ten cells hold after these values, from their start.
fn cells(x: &[i32], start: &[i32]) -> Vec<i32> {
    let mut c = start.to_vec();
    for &v in x {
        c[0] = c[0].wrapping_add(v);
        c[1] = c[1].wrapping_sub(v);
        c[2] = c[2].min(v);
        c[3] = c[3].max(v);
        c[4] |= v;
        c[5] &= v | 0xff;
        c[6] ^= v;
        c[7] = if c[7] >= 40 { 0 } else { c[7] + 1 };
        c[8] = if c[8] == 0 || c[8] > 40 { 40 } else { c[8] - 1 };
        c[9] += 3;
    }
    c
}

fn integers() -> Case {
    let x = whole(61, 128, -500, 500);
    let start = [0, 0, 0, 0, 0, -1, 0, 0, 0, 0];
    let mut out = cells(&x, &start);
    out.extend(x.chunks(64).flat_map(|block| cells(block, &start)));
    let wide = [
        x.iter().fold(0, |sum: u64, &v| sum.wrapping_add((v as u64) << 20)),
        x.iter().map(|&v| i64::from(v) << 33).max().unwrap_or(0) as u64,
        x.iter().fold(0, |all, &v| all | 1 << (v & 63)),
    ];
    let mut first = start.to_vec();
    first.resize(30, 0);
    Case::new("integers")
        .sized(2, 64)
        .reads(&x)
        .updates(bytes(&first), exact(&out))
        .updates(bytes(&[0_u64; 3]), exact(&wide))
}

fn floats() -> Case {
    let x = whole(62, 64, -3, 4);
    let values: Vec<f64> = x.iter().map(|&v| f64::from(v)).collect();
    let sum: f64 = values.iter().sum();
    let start = |count| vec![0.0; count];
    let case = Case::new("floats").sized(1, 64).reads_as(Format::F32, &values);
    let cells: [(Format, Vec<f64>); 6] = [
        (Format::F32, vec![sum, sum, 0.0, 9.0]),
        (Format::F64, vec![sum / 2.0, sum / 4.0]),
        (Format::F16, vec![sum, -sum]),
        (Format::Bf16, vec![sum, 2.0 * sum]),
        (Format::F16, vec![sum]),
        (Format::Bf16, vec![sum]),
    ];
    cells.into_iter().fold(case, |case, (format, want)| {
        case.updates(pack(format, &start(want.len())), exact_bytes(pack(format, &want)))
    })
}

fn library() -> Case {
    let want = |blocks: i64| {
        let data = (0..blocks).fold(7, |value: u32, _| value * 3 + 1);
        (data, blocks * (1..=40).sum::<i64>(), (blocks - 1) * 100 + 39)
    };
    let (data, sum, top) = want(3);
    // 40 threads: the first eight bits are flipped twice.
    let flipped = 0xffff_ff00_u32;
    Case::new("library")
        .sized(3, 40)
        .updates(bytes(&[0_i32]), exact(&[0_i32]))
        .updates(bytes(&[7_u32, 0, 0, 0]), exact(&[data, flipped, flipped, flipped]))
        .updates(bytes(&[0_i64, -5]), exact(&[sum, top]))
}

fn last_block() -> Case {
    let x = whole(63, 320, -1000, 1000);
    let parts: Vec<i32> = x.chunks(64).map(|block| block.iter().sum()).collect();
    let total: i32 = x.iter().sum();
    Case::new("last_block")
        .sized(5, 64)
        .reads(&x)
        .writes(exact(&parts))
        .updates(bytes(&[0_u32]), exact(&[0_u32]))
        .writes(exact(&[total]))
}
