//! References for `rows.cu`.

use assay_num::Format;

use super::data::{normal, whole};
use crate::case::{Case, close, exact};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![
        softmax_f32(),
        softmax_bf16(),
        softmax_online(),
        rms_norm(),
        layer_norm(),
        kahan_sum(),
        argmax(),
        warp_reductions(),
    ]
}

fn softmax(x: &[f64], columns: usize) -> Vec<f64> {
    x.chunks(columns)
        .flat_map(|row| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
            row.iter().map(move |x| (x - top).exp() / sum)
        })
        .collect()
}

fn softmax_f32() -> Case {
    let (rows, columns) = (3, 1000);
    let x = normal(1, rows * columns, Format::F32);
    Case::new("softmax_f32")
        .sized(3, 128)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &softmax(&x, columns), 4e-6, 1e-30))
        .value(1000)
}

fn softmax_bf16() -> Case {
    let (rows, columns) = (2, 770);
    let x = normal(2, rows * columns, Format::Bf16);
    Case::new("softmax_bf16")
        .sized(2, 128)
        .reads_as(Format::Bf16, &x)
        .writes(close(Format::Bf16, &softmax(&x, columns), 4e-3, 1e-30))
        .value(770)
}

fn softmax_online() -> Case {
    let (rows, columns) = (5, 333);
    let x = normal(3, rows * columns, Format::F32);
    Case::new("softmax_online")
        .grid([2, 1, 1])
        .block([32, 4, 1])
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &softmax(&x, columns), 4e-6, 1e-30))
        .value(5)
        .value(333)
}

fn rms_norm() -> Case {
    let (rows, columns) = (3, 516);
    let x = normal(4, rows * columns, Format::F32);
    let w = normal(5, columns, Format::F32);
    let y = x.chunks(columns).flat_map(|row| {
        let square: f64 = row.iter().map(|x| x * x).sum();
        let scale = (square / columns as f64 + 1e-5).sqrt().recip();
        row.iter().zip(&w).map(move |(x, w)| x * scale * w)
    });
    let y: Vec<f64> = y.collect();
    Case::new("rms_norm")
        .sized(3, 64)
        .reads_as(Format::F32, &x)
        .reads_as(Format::F32, &w)
        .writes(close(Format::F32, &y, 2e-6, 1e-30))
        .value(516)
        .value(1e-5_f32)
}

fn layer_norm() -> Case {
    let (rows, columns) = (2, 390);
    let x = normal(6, rows * columns, Format::F16);
    let w = normal(7, columns, Format::F32);
    let b = normal(8, columns, Format::F32);
    let mut y = Vec::new();
    for row in x.chunks(columns) {
        let mean = row.iter().sum::<f64>() / columns as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
        let scale = (variance + 1e-5).sqrt().recip();
        y.extend(row.iter().zip(&w).zip(&b).map(|((x, w), b)| (x - mean) * scale * w + b));
    }
    Case::new("layer_norm")
        .sized(2, 32)
        .reads_as(Format::F16, &x)
        .reads_as(Format::F32, &w)
        .reads_as(Format::F32, &b)
        .writes(close(Format::F16, &y, 6e-4, 4e-6))
        .value(390)
}

fn kahan_sum() -> Case {
    let (rows, columns) = (2, 5000);
    let mut x = normal(9, rows * columns, Format::F32);
    x[17] = 16_777_216.0;
    x[32] = -16_777_216.0;
    let y: Vec<f64> = x.chunks(columns).map(|row| row.iter().sum()).collect();
    Case::new("kahan_sum")
        .sized(2, 128)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &y, 3e-7, 2e-5))
        .value(5000)
}

fn argmax() -> Case {
    let columns = 700;
    let mut x = normal(10, 3 * columns, Format::F32);
    for at in [100, 650] {
        x[at] = 9.0;
    }
    x[columns] = f64::INFINITY;
    for x in &mut x[2 * columns..] {
        *x = -x.abs();
    }
    let first = |row: &[f64]| {
        let better = |best: usize, at: usize| if row[at] > row[best] { at } else { best };
        (0..row.len()).fold(0, better) as i32
    };
    let want: Vec<i32> = x.chunks(columns).map(first).collect();
    Case::new("argmax").sized(3, 96).reads_as(Format::F32, &x).writes(exact(&want)).value(700)
}

fn warp_reductions() -> Case {
    let mut x = whole(11, 64, -50, 51);
    x[40] = 7;
    let mut want = Vec::new();
    for warp in x.chunks(32) {
        let votes = (0..32).filter(|&lane| warp[lane] > 0).fold(0_u32, |mask, at| mask | 1 << at);
        for lane in 0..32 {
            let same = (0..32).filter(|&at| warp[at] & 3 == warp[lane] & 3);
            want.extend([
                warp.iter().sum(),
                warp.iter().copied().fold(i32::MAX, i32::min),
                warp.iter().copied().fold(i32::MIN, i32::max),
                warp.iter().fold(-1, |all, x| all & x),
                warp.iter().fold(0, |any, x| any | x),
                warp.iter().fold(0, |odd, x| odd ^ x),
                votes as i32,
                1 + 2 * i32::from(warp.contains(&7)),
                same.fold(0_u32, |mask, at| mask | 1 << at) as i32,
                1,
                warp[..=lane].iter().sum(),
                (votes & ((1 << lane) - 1)).count_ones() as i32,
            ]);
        }
    }
    Case::new("warp_reductions").sized(1, 64).reads(&x).writes(exact(&want))
}
