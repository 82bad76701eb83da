//! Kernels that round to bf16 between their steps: correct ones pass, and each rounding point that
//! is dropped, added or moved is caught.

use assay_contract::gates::{Filter, GateContext, check};
use assay_num::Format;
use assay_record::{Gate, GateResult, Outcome};

use crate::describe;
use crate::subjects::{Compute, EPS, Row, RowKernel, THREADS};

const MATRIX: &[&str] = &["rows", "cols"];
const COLS: &[&str] = &["cols"];

/// The gated unit as `mlx` computes it op by op: every step leaves a bf16 value.
const SWIGLU: &str = "s[r, c] = bf16(1 / (1 + exp(-x[r, c])))
    a[r, c] = bf16(x[r, c] * s[r, c])
    y[r, c] = a[r, c] * w[r, c]";
/// A residual add in bf16, its RMS norm rounded, then a weight.
const NORM: &str = "h[r, c] = bf16(x[r, c] + w[r, c])
    mean[r] = sum(k in 0..cols: h[r, k] * h[r, k]) / cols
    n[r, c] = bf16(h[r, c] * rsqrt(mean[r] + eps))
    y[r, c] = n[r, c] * b[c]";

fn bf16(value: f32) -> f32 {
    Format::Bf16.round(f64::from(value)) as f32
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

fn pairs<'a>(row: &'a Row<'_>) -> impl Iterator<Item = (f32, f32)> + 'a {
    row.x.iter().copied().zip(row.w.iter().copied())
}

fn swiglu(compute: Compute) -> RowKernel {
    let inputs = [("x", Format::Bf16, MATRIX), ("w", Format::Bf16, MATRIX)];
    RowKernel::in_steps(SWIGLU, &inputs, Format::Bf16, compute)
}

/// Of the weight only the first input is swept, which is quicker.
fn norm(compute: Compute) -> RowKernel {
    let inputs =
        [("x", Format::Bf16, MATRIX), ("w", Format::F32, MATRIX), ("b", Format::F32, COLS)];
    RowKernel::in_steps(NORM, &inputs, Format::Bf16, compute)
}

fn correct_swiglu(row: &Row<'_>) -> Vec<f32> {
    pairs(row).map(|(x, w)| bf16(bf16(x * bf16(sigmoid(x))) * w)).collect()
}

/// Adds the squares over the threads, then in halves, or as one chain of fused multiply-adds.
fn squares(terms: &[f32], fused: bool) -> f32 {
    if fused {
        return terms.iter().fold(0.0, |sum, term| term.mul_add(*term, sum));
    }
    let mut partials = [0f32; THREADS];
    for (place, term) in terms.iter().enumerate() {
        partials[place % THREADS] += term * term;
    }
    let mut width = THREADS;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            partials[lane] += partials[lane + width];
        }
    }
    partials[0]
}

/// A rounding, or none.
type Step = fn(f32) -> f32;

/// The norm with a choice of what each step does.
fn norm_of(row: &Row<'_>, [sum, scaled]: [Step; 2], scale: Step, fused: bool) -> Vec<f32> {
    let h: Vec<f32> = pairs(row).map(|(x, w)| sum(x + w)).collect();
    let mean = squares(&h, fused) / h.len() as f32;
    let scale = scale(1.0 / (mean + EPS).sqrt());
    h.iter().zip(row.b).map(|(h, b)| scaled(h * scale) * b).collect()
}

const NONE: Step = |value| value;

fn result(subject: &mut RowKernel, seed: u64, holding: &str) -> GateResult {
    let context = GateContext::new(seed, &|_| ()).only(Filter::Holding(holding));
    check(Gate::Shapes, subject, &context)
}

fn must_be(outcome: Outcome, mut subject: RowKernel, seeds: u64, holding: &str) -> GateResult {
    let mut last = None;
    for seed in 0..seeds {
        let result = result(&mut subject, seed, holding);
        assert_eq!(result.outcome, outcome, "seed {seed}: {}", describe(&result));
        last = Some(result);
    }
    last.expect("a seed")
}

/// Caught by ordinary data and by the sweep, each alone.
fn must_fail(subject: impl Fn() -> RowKernel) {
    must_be(Outcome::Fail, subject(), 5, "sweep-x");
    must_be(Outcome::Fail, subject(), 5, "mixed");
}

#[test]
fn correct_kernels_in_steps_pass_over_many_seeds() {
    let small = |kernel: RowKernel| {
        kernel.with(|spec| {
            for (name, dim) in &mut spec.dims {
                dim.served = vec![if name == "rows" { 5 } else { 100 }];
            }
        })
    };
    must_be(Outcome::Pass, small(swiglu(correct_swiglu)), 50, "mixed");
    let orders: [Compute; 2] = [
        |row| norm_of(row, [bf16, bf16], NONE, false),
        |row| norm_of(row, [bf16, bf16], NONE, true),
    ];
    for compute in orders {
        must_be(Outcome::Pass, small(norm(compute)), 50, "mixed");
    }
}

#[test]
fn correct_kernels_in_steps_pass_the_sweep_over_every_bf16_value() {
    let swept = must_be(Outcome::Pass, swiglu(correct_swiglu), 1, "");
    let notes = swept.notes.join("\n");
    assert!(notes.contains("swept `x`: 65280 finite values, 16 times each"), "{notes}");
    assert!(notes.contains("swept `w`: 65280 finite values, 16 times each"), "{notes}");
    let swept = must_be(Outcome::Pass, norm(|row| norm_of(row, [bf16, bf16], NONE, false)), 1, "");
    let notes = swept.notes.join("\n");
    assert!(notes.contains("swept `x`") && notes.contains("no bound at"), "{notes}");
    assert!(!notes.contains("swept `w`"), "{notes}");
}

#[test]
fn each_rounding_point_that_swiglu_drops_is_caught() {
    must_fail(|| swiglu(|row| pairs(row).map(|(x, w)| bf16(x * sigmoid(x)) * w).collect()));
    must_fail(|| swiglu(|row| pairs(row).map(|(x, w)| x * bf16(sigmoid(x)) * w).collect()));
}

#[test]
fn each_rounding_point_that_swiglu_adds_is_caught() {
    must_fail(|| {
        swiglu(|row| {
            let sigmoid = |x: f32| bf16(1.0 / bf16(1.0 + (-x).exp()));
            pairs(row).map(|(x, w)| bf16(bf16(x * sigmoid(x)) * w)).collect()
        })
    });
    must_fail(|| {
        swiglu(|row| {
            let sigmoid = |x: f32| bf16(1.0 / (1.0 + bf16((-x).exp())));
            pairs(row).map(|(x, w)| bf16(bf16(x * sigmoid(x)) * w)).collect()
        })
    });
}

#[test]
fn each_rounding_point_that_a_norm_drops_or_adds_is_caught() {
    must_fail(|| norm(|row| norm_of(row, [NONE, bf16], NONE, false)));
    must_fail(|| norm(|row| norm_of(row, [bf16, NONE], NONE, false)));
    must_fail(|| norm(|row| norm_of(row, [bf16, bf16], bf16, false)));
}

#[test]
fn a_finding_tells_the_range() {
    let mut dropped = swiglu(|row| pairs(row).map(|(x, w)| bf16(x * sigmoid(x)) * w).collect());
    let result = result(&mut dropped, 1, "mixed");
    assert!(result.reason.contains("no real in its range ["), "{}", result.reason);
}
