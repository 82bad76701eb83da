//! References for `models.cu`.

use assay_num::Format;

use super::data::{normal, whole};
use crate::case::{Case, close, exact, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![attention(0), attention(1), cross_entropy(), dropout(), top_k(), gather_transpose()]
}

fn attention(causal: usize) -> Case {
    let (rows, keys) = (8, 70);
    let q = normal(151, rows * 64, Format::F32);
    let (k, v) = (normal(152, keys * 64, Format::F32), normal(153, keys * 64, Format::F32));
    let mut o = Vec::new();
    for (row, q) in q.chunks(64).enumerate() {
        let seen = if causal == 1 { row + 1 } else { keys };
        let dot = |k: &[f64]| q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / 8.0;
        let weights: Vec<f64> = k.chunks(64).take(seen).map(|k| dot(k).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let at = |d: usize| weights.iter().zip(v.chunks(64)).map(|(w, v)| w * v[d]).sum::<f64>();
        o.extend((0..64).map(|d| at(d) / sum));
    }
    Case::new("attention")
        .sized(2, 32)
        .block([32, 4, 1])
        .shared(2 * 32 * 65 * 4)
        .reads_as(Format::F32, &q)
        .reads_as(Format::F32, &k)
        .reads_as(Format::F32, &v)
        .writes(close(Format::F32, &o, 1e-5, 5e-6))
        .value(keys as u32)
        .value(causal as u32)
}

fn cross_entropy() -> Case {
    let n = 500;
    let logits = normal(154, 3 * n, Format::Bf16);
    let targets = [17_i64, -1, 499];
    let (mut loss, mut gradient) = (Vec::new(), Vec::new());
    for (row, &target) in logits.chunks(n).zip(&targets) {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
        let used = f64::from(u8::from(target >= 0));
        let hit = |i: usize| f64::from(u8::from(i as i64 == target));
        let at = row[usize::try_from(target).unwrap_or(0)];
        loss.push(used * (sum.ln() + top - at));
        let slope = row.iter().enumerate().map(|(i, x)| used * ((x - top).exp() / sum - hit(i)));
        gradient.extend(slope);
    }
    Case::new("cross_entropy")
        .sized(3, 128)
        .reads_as(Format::Bf16, &logits)
        .reads(&targets)
        .writes(close(Format::F32, &loss, 2e-6, 0.0))
        .writes(close(Format::Bf16, &gradient, 4e-3, 1e-7))
        .value(n as u32)
}

/// Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011).
fn philox(counter: u32, mut key: [u32; 2]) -> [u32; 4] {
    let mut c = [counter, 0, 0, 0];
    for _ in 0..10 {
        let (a, b) = (0xD251_1F53_u64 * u64::from(c[0]), 0xCD9E_8D57_u64 * u64::from(c[2]));
        c = [
            (b >> 32) as u32 ^ c[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ c[3] ^ key[1],
            a as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

fn dropout() -> Case {
    let x = normal(155, 256, Format::F32);
    let words: Vec<u32> = (0..64).flat_map(|i| philox(i, [42, 7])).collect();
    let y = x.iter().zip(&words).map(|(x, &w)| if w < 0xC000_0000 { x / 0.75 } else { 0.0 });
    let y: Vec<f64> = y.collect();
    Case::new("dropout")
        .sized(2, 32)
        .reads_as(Format::F32, &x)
        .writes(exact_bytes(pack(Format::F32, &y)))
        .writes(exact(&words))
        .value(0x0000_0007_0000_002a_u64)
        .value(0.75_f32)
}

fn top_k() -> Case {
    let k = 10;
    let x: Vec<f64> = normal(156, 512, Format::F32).iter().map(|x| (x * 8.0).round()).collect();
    let (mut best, mut at) = (Vec::new(), Vec::new());
    for row in x.chunks(256) {
        let mut order: Vec<usize> = (0..256).collect();
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        best.extend(order[..k].iter().map(|&i| row[i]));
        at.extend(order[..k].iter().map(|&i| i as i32));
    }
    Case::new("top_k")
        .sized(2, 32)
        .reads_as(Format::F32, &x)
        .writes(exact_bytes(pack(Format::F32, &best)))
        .writes(exact(&at))
        .value(k as u32)
}

fn gather_transpose() -> Case {
    let pages: Vec<i16> = whole(157, 6 * 16 * 32, -9999, 9999).iter().map(|&v| v as i16).collect();
    let table = [5, 0, 3, 1];
    let row = |block: usize, r: usize| table[block * 2 + r / 16] as usize * 16 + r % 16;
    let y = (0..2).flat_map(|b| (0..32).flat_map(move |i| (0..32).map(move |x| (b, i, x))));
    let y: Vec<i16> = y.map(|(b, i, x)| pages[row(b, x) * 32 + i]).collect();
    Case::new("gather_transpose")
        .sized(2, 32)
        .block([32, 8, 1])
        .reads(&pages)
        .reads(&table)
        .writes(exact(&y))
}
