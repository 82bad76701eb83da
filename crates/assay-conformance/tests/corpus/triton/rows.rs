//! Cases of `rows.py`.

use assay_num::Format;

use super::{Facts, integers, noise};
use crate::case::{Case, close, rounded};

/// The case of a kernel of that file.
pub(super) fn case(facts: &Facts) -> Option<Case> {
    Some(match facts.name.as_str() {
        "softmax" => softmax(facts),
        "softmax_rows" => softmax_rows(facts),
        "layer_norm" => layer_norm(facts),
        "rms_norm" => rms_norm(facts),
        "cross_entropy" => cross_entropy(facts),
        "dropout" => dropout(facts),
        "rope" => rope(facts, |half, at| (at, half + at)),
        "rope_pairs" => rope(facts, |_, at| (2 * at, 2 * at + 1)),
        "activations" => activations(facts),
        "quantise_e4m3" => quantise(facts, Format::E4m3),
        "quantise_e5m2" => quantise(facts, Format::E5m2),
        "dequantise_e4m3" => dequantise(facts, Format::E4m3),
        "dequantise_e5m2" => dequantise(facts, Format::E5m2),
        _ => return None,
    })
}

fn scaled(values: Vec<f64>, by: f64) -> Vec<f64> {
    values.into_iter().map(|value| value * by).collect()
}

/// The weights of each row, and what they were divided by.
fn weights(x: &[f64], cols: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut all, mut totals) = (Vec::new(), Vec::new());
    for row in x.chunks(cols) {
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = row.iter().map(|x| (x - top).exp()).sum();
        all.extend(row.iter().map(|x| (x - top).exp() / total));
        totals.push(total.ln() + top);
    }
    (all, totals)
}

fn softmax(facts: &Facts) -> Case {
    let (rows, cols) = (3, 781);
    let x = rounded(Format::F32, &scaled(noise(1, rows * cols), 8.0));
    let y = close(Format::F32, &weights(&x, cols).0, 3e-6, 1e-30);
    let grid = [rows as u32, 1, 1];
    let case = facts.launch(grid).reads_as(Format::F32, &x).writes(y).value(cols as i32);
    facts.end(case, grid)
}

fn softmax_rows(facts: &Facts) -> Case {
    let (rows, cols) = (21, 37);
    let x = rounded(Format::F16, &scaled(noise(2, rows * cols), 6.0));
    let y = close(Format::F32, &weights(&x, cols).0, 3e-6, 1e-30);
    let grid = [3, 1, 1];
    let case = facts.launch(grid).reads_as(Format::F16, &x).writes(y);
    facts.end(case.value(rows as i32).value(cols as i32), grid)
}

fn layer_norm(facts: &Facts) -> Case {
    let (rows, cols) = (3, 700);
    let [x, w, b] = [(rows * cols, 3), (cols, 4), (cols, 5)]
        .map(|(count, seed)| rounded(Format::F16, &scaled(noise(seed, count), 2.0)));
    let mut y = Vec::new();
    for row in x.chunks(cols) {
        let mean = row.iter().sum::<f64>() / cols as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / cols as f64;
        let scale = 1.0 / (variance + f64::from(1e-5_f32)).sqrt();
        y.extend(row.iter().zip(w.iter().zip(&b)).map(|(x, (w, b))| (x - mean) * scale * w + b));
    }
    let grid = [rows as u32, 1, 1];
    let case = facts.launch(grid).reads_as(Format::F16, &x).reads_as(Format::F16, &w);
    let case = case.reads_as(Format::F16, &b).writes(close(Format::F16, &y, 4.9e-4, 2e-5));
    facts.end(case.value(cols as i32).value(1e-5_f32), grid)
}

fn rms_norm(facts: &Facts) -> Case {
    let (rows, cols) = (3, 784);
    let x = rounded(Format::Bf16, &scaled(noise(6, rows * cols), 3.0));
    let w = rounded(Format::Bf16, &noise(7, cols));
    let mut y = Vec::new();
    for row in x.chunks(cols) {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / cols as f64;
        let scale = 1.0 / (mean + f64::from(1e-6_f32)).sqrt();
        y.extend(row.iter().zip(&w).map(|(x, w)| x * scale * w));
    }
    let grid = [rows as u32, 1, 1];
    let case = facts.launch(grid).reads_as(Format::Bf16, &x).reads_as(Format::Bf16, &w);
    let case = case.writes(close(Format::Bf16, &y, 3.95e-3, 1e-30));
    facts.end(case.value(cols as i32).value(1e-6_f32), grid)
}

fn cross_entropy(facts: &Facts) -> Case {
    let (rows, cols) = (4, 300);
    let x = rounded(Format::F32, &scaled(noise(8, rows * cols), 5.0));
    let labels: Vec<i64> = integers(9, rows, 0, cols as i32).into_iter().map(i64::from).collect();
    let (mut gradients, totals) = weights(&x, cols);
    let mut losses = Vec::new();
    for (row, label) in labels.iter().enumerate() {
        let at = row * cols + *label as usize;
        losses.push(totals[row] - x[at]);
        gradients[at] -= 1.0;
    }
    let grid = [rows as u32, 1, 1];
    let case = facts.launch(grid).reads_as(Format::F32, &x).reads(&labels);
    let case = case.writes(close(Format::F32, &losses, 1e-6, 4e-6));
    let case = case.writes(close(Format::F32, &gradients, 4e-6, 2e-7));
    facts.end(case.value(cols as i32), grid)
}

/// The first word of ten rounds of Philox 4x32 (Salmon et al. 2011) of a counter.
fn philox(seed: u64, counter: u32) -> u32 {
    let (mut c, mut k) = ([counter, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
    for _ in 0..10 {
        let wide = |a: u32, b: u32| u64::from(a) * u64::from(b);
        let (first, second) = (wide(0xD251_1F53, c[0]), wide(0xCD9E_8D57, c[2]));
        let high = |value: u64| (value >> 32) as u32;
        c = [high(second) ^ c[1] ^ k[0], second as u32, high(first) ^ c[3] ^ k[1], first as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c[0]
}

fn dropout(facts: &Facts) -> Case {
    let (count, keep, seed) = (1000, 0.75_f32, 20_261);
    let x = rounded(Format::F32, &noise(10, count));
    let kept = |place: usize| {
        let word = philox(seed, place as u32) as i32;
        let positive = if word < 0 { -word.wrapping_add(1) } else { word };
        // As Triton makes a float of it.
        (positive as f32) * 4.656_612_7e-10 < keep
    };
    let y: Vec<f64> =
        x.iter().enumerate().map(|(at, x)| if kept(at) { x / 0.75 } else { 0.0 }).collect();
    let grid = [4, 1, 1];
    let case =
        facts.launch(grid).reads_as(Format::F32, &x).writes(close(Format::F32, &y, 4e-7, 0.0));
    facts.end(case.value(count as i32).value(keep).value(seed as i32), grid)
}

/// `places` gives the two elements of a head that turn together.
fn rope(facts: &Facts, places: impl Fn(usize, usize) -> (usize, usize)) -> Case {
    let (tokens, heads, half) = (3, 2, 32);
    let q = rounded(Format::F16, &noise(11, tokens * heads * 2 * half));
    let angles = scaled(noise(12, tokens * half), 3.0);
    let cosines: Vec<f64> = angles.iter().map(|angle| angle.cos()).collect();
    let sines: Vec<f64> = angles.iter().map(|angle| angle.sin()).collect();
    let (cosines, sines) = (rounded(Format::F32, &cosines), rounded(Format::F32, &sines));
    let mut y = vec![0.0; q.len()];
    for head in 0..tokens * heads {
        for at in 0..half {
            let (first, second) = places(half, at);
            let (first, second) = (head * 2 * half + first, head * 2 * half + second);
            let turn = head / heads * half + at;
            y[first] = q[first] * cosines[turn] - q[second] * sines[turn];
            y[second] = q[second] * cosines[turn] + q[first] * sines[turn];
        }
    }
    let grid = [tokens as u32, heads as u32, 1];
    let case = facts.launch(grid).reads_as(Format::F16, &q).reads_as(Format::F32, &cosines);
    let case = case.reads_as(Format::F32, &sines).writes(close(Format::F16, &y, 4.9e-4, 2e-7));
    facts.end(case.value(heads as i32), grid)
}

/// The error function by its series, for arguments of moderate size.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn activations(facts: &Facts) -> Case {
    let count = 200;
    let x = rounded(Format::F32, &scaled(noise(13, count), 3.0));
    let functions: [fn(f64) -> f64; 8] = [
        |v| v * 0.5 * (1.0 + erf(v * std::f64::consts::FRAC_1_SQRT_2)),
        |v| v / (1.0 + (-v).exp()),
        |v| (1.0 + v.exp()).ln(),
        f64::tanh,
        |v| v.sin() + v.cos(),
        |v| v.abs() + 1.0,
        |v| v.exp_m1() + v.abs().ln_1p(),
        |v| v.floor() + v.ceil() + v * v + v,
    ];
    let y: Vec<f64> = functions.iter().flat_map(|f| x.iter().map(|v| f(*v))).collect();
    let grid = [2, 1, 1];
    let case = facts.launch(grid).reads_as(Format::F32, &x);
    let case = case.writes(close(Format::F32, &y, 3e-6, 4e-7));
    facts.end(case.value(count as i32), grid)
}

fn quantise(facts: &Facts, format: Format) -> Case {
    let (rows, cols) = (3, 200);
    let x = rounded(Format::F32, &scaled(noise(14, rows * cols), 10.0));
    let largest = format.max_finite();
    let top = |row: &[f64]| row.iter().fold(0.0, |top: f64, x| top.max(x.abs()));
    let scales: Vec<f64> = x.chunks(cols).map(|row| top(row) / largest).collect();
    let y: Vec<f64> =
        x.chunks(cols).zip(&scales).flat_map(|(row, s)| row.iter().map(move |x| x / s)).collect();
    // Half a unit in the last place, and a little for the division before.
    let half = format.unit_roundoff() * 1.000_01;
    let least = format.min_subnormal() / 2.0 * 1.000_01;
    let grid = [rows as u32, 1, 1];
    let case = facts.launch(grid).reads_as(Format::F32, &x).writes(close(format, &y, half, least));
    let case = case.writes(close(Format::F32, &scales, 3e-7, 0.0));
    facts.end(case.value(cols as i32), grid)
}

fn dequantise(facts: &Facts, format: Format) -> Case {
    let (rows, cols) = (3, 200);
    let bytes: Vec<u8> = (0..rows * cols).map(|at| (at * 7 % 251) as u8).collect();
    let finite = |byte: u8| if format.decode(u64::from(byte)).is_finite() { byte } else { 0 };
    let bytes: Vec<u8> = bytes.into_iter().map(finite).collect();
    let scales = rounded(Format::F32, &noise(15, rows));
    let x = format.decode_slice(&bytes);
    let y: Vec<f64> =
        x.chunks(cols).zip(&scales).flat_map(|(row, s)| row.iter().map(move |x| x * s)).collect();
    let grid = [rows as u32, 1, 1];
    let case = facts.launch(grid).reads_bytes(bytes).reads_as(Format::F32, &scales);
    let case = case.writes(close(Format::F32, &y, 6e-8, 0.0));
    facts.end(case.value(cols as i32), grid)
}
