//! Cases of `attention.py`.

use assay_num::Format;

use super::{Facts, noise};
use crate::case::{Case, close, rounded};

/// The case of a kernel of that file.
pub(super) fn case(facts: &Facts) -> Option<Case> {
    match facts.name.as_str() {
        "attention" => Some(attention(facts, false)),
        "attention_causal" => Some(attention(facts, true)),
        _ => None,
    }
}

fn attention(facts: &Facts, causal: bool) -> Case {
    let (heads, length, dim, scale) = (2, 100, 64, 0.125);
    let [q, k, v] =
        [41, 42, 43].map(|seed| rounded(Format::F16, &noise(seed, heads * length * dim)));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut o = Vec::new();
    for row in 0..heads * length {
        let head = row / length * length;
        let seen = if causal { row + 1 - head } else { length };
        let query = &q[row * dim..][..dim];
        let key = |at: usize| &k[(head + at) * dim..][..dim];
        let scores: Vec<f64> = (0..seen).map(|at| dot(query, key(at)) * scale).collect();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        let value = |at: usize, along: usize| v[(head + at) * dim + along];
        o.extend((0..dim).map(|along| {
            let sum: f64 = weights.iter().enumerate().map(|(at, w)| w * value(at, along)).sum();
            sum / total
        }));
    }
    // Weights are rounded to fp16 (2^-11) before the second product, and the result once more.
    let want = close(Format::F16, &o, 4.9e-4, 5e-4);
    let grid = [2, heads as u32, 1];
    let case = facts.launch(grid).reads_as(Format::F16, &q).reads_as(Format::F16, &k);
    let case = case.reads_as(Format::F16, &v).writes(want);
    facts.end(case.value(length as i32).value(scale as f32), grid)
}
