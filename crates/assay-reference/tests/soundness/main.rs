//! The error rules hold: emulated fp32 kernels never err by more than e, and e is not far above
//! what they do err by.

mod arithmetic;
mod figures;
mod formulas;
mod kernels;
mod ranges;
mod scans;

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Bounded, Dims, Evaluation, Exponential, Extent, Formula, Inputs, Program, Root,
    Signature, Tensor, dims,
};
use kernels::{Approximation, Order};

const EPS: f32 = 1e-6;

/// A family, its program, and how it is declared to compute.
struct Family {
    name: &'static str,
    program: Program,
    /// Names of the sums whose depth is the order's.
    sums: &'static [&'static str],
}

fn family(name: &'static str) -> Family {
    const MATRIX: &[&str] = &["rows", "cols"];
    const COLS: &[&str] = &["cols"];
    const ROWS: &[&str] = &["rows"];
    let inputs: &[(&str, &[&str])] = match name {
        "rows.dot" => &[("a", MATRIX), ("b", MATRIX)],
        "rows.rms_norm" => &[("x", MATRIX), ("w", COLS)],
        "rows.layer_norm" => &[("x", MATRIX), ("w", COLS), ("b", COLS)],
        "dense.gemv" => &[("w", MATRIX), ("x", COLS)],
        _ => &[("x", MATRIX)],
    };
    let elementwise = matches!(name, "rows.softmax" | "rows.rms_norm" | "rows.layer_norm");
    let output = if elementwise { MATRIX } else { ROWS };
    let sums: &'static [&'static str] = match name {
        "rows.max" => &[],
        "rows.layer_norm" => &["j", "c"],
        _ => &["c"],
    };
    let tensor = |(name, shape): &(&str, &[&str])| Tensor::new(name, Format::F32, shape).unwrap();
    let signature = Signature {
        dims: vec!["rows".into(), "cols".into()],
        inputs: inputs.iter().map(tensor).collect(),
        outputs: vec![tensor(&("y", output))],
        scalars: BTreeMap::from([("eps".to_owned(), f64::from(EPS))]),
    };
    let program = Formula::family(name).unwrap().check(&signature).unwrap();
    Family { name, program, sums }
}

/// One random case: fp32 tensors by name.
struct Case {
    rows: usize,
    cols: usize,
    tensors: BTreeMap<&'static str, Vec<f32>>,
}

/// How the elements of a case are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spread {
    Normal,
    /// Magnitudes from 2^-30 to 2^20.
    Wide,
    /// A mean far above the deviation.
    Offset,
    /// Products underflow.
    Tiny,
    Large,
    Integers,
    /// Half the terms cancel the other half.
    Cancelling,
}

const SPREADS: [Spread; 7] = [
    Spread::Normal,
    Spread::Wide,
    Spread::Offset,
    Spread::Tiny,
    Spread::Large,
    Spread::Integers,
    Spread::Cancelling,
];

fn draw(random: &mut SplitMix64, count: usize, spread: Spread) -> Vec<f32> {
    let mut values: Vec<f32> = (0..count)
        .map(|_| match spread {
            Spread::Normal | Spread::Cancelling => random.normal() as f32,
            Spread::Wide => (random.normal() * 2f64.powf(random.range(-30.0, 20.0))) as f32,
            Spread::Offset => (1000.0 + random.normal()) as f32,
            Spread::Tiny => (random.normal() * 2f64.powf(random.range(-100.0, -60.0))) as f32,
            Spread::Large => (random.normal() * 2f64.powi(40)) as f32,
            Spread::Integers => random.below(513) as f32 - 256.0,
        })
        .collect();
    if spread == Spread::Cancelling {
        for at in 0..count / 2 {
            values[count - 1 - at] = -values[at];
        }
    }
    values
}

fn case(family: &Family, random: &mut SplitMix64, (rows, cols): (usize, usize), s: Spread) -> Case {
    let mut tensors = BTreeMap::new();
    for tensor in &family.program.signature().inputs {
        let count = if tensor.shape.len() == 2 { rows * cols } else { cols };
        let name = ["x", "a", "b", "w"].into_iter().find(|n| *n == tensor.name).unwrap();
        let logits = family.name == "rows.softmax" && matches!(s, Spread::Large | Spread::Wide);
        let values = draw(random, count, if logits { Spread::Normal } else { s });
        let scale = if logits { 30.0 } else { 1.0 };
        tensors.insert(name, values.into_iter().map(|v| v * scale).collect());
    }
    Case { rows, cols, tensors }
}

/// The outputs of the emulated kernel, and the depth of its sums.
fn emulate(
    family: &Family,
    case: &Case,
    order: Order,
    near: &mut Approximation,
) -> (Vec<f32>, usize) {
    let row = |name: &str, r: usize| {
        let values = &case.tensors[name];
        let at = if values.len() == case.cols { 0 } else { r * case.cols };
        &values[at..at + case.cols]
    };
    let (mut outputs, mut deepest) = (Vec::new(), 0);
    for r in 0..case.rows {
        let (values, depth) = match family.name {
            "rows.sum" => one(order.sum(row("x", r))),
            "rows.max" => one((row("x", r).iter().copied().fold(f32::NEG_INFINITY, f32::max), 0)),
            "rows.dot" if order == Order::Chain => {
                one(kernels::fused_dot(row("a", r), row("b", r)))
            }
            "rows.dot" => one(kernels::dot(row("a", r), row("b", r), order)),
            "rows.softmax" => kernels::softmax(row("x", r), order, near),
            "rows.rms_norm" => kernels::rms_norm((row("x", r), row("w", 0)), EPS, order, near),
            "rows.layer_norm" => {
                kernels::layer_norm((row("x", r), row("w", 0), row("b", 0)), EPS, order, near)
            }
            _ => one(kernels::dot(row("w", r), row("x", 0), order)),
        };
        outputs.extend(values);
        deepest = deepest.max(depth);
    }
    (outputs, deepest)
}

fn one((value, depth): (f32, usize)) -> (Vec<f32>, usize) {
    (vec![value], depth)
}

fn arithmetic(family: &Family, depth: usize) -> Arithmetic {
    let depth = Extent::constant(depth as i64);
    Arithmetic {
        rsqrt: Root::Approx,
        exp: Exponential::Reduced,
        depth: family.sums.iter().map(|name| ((*name).to_owned(), depth.clone())).collect(),
        ..Arithmetic::default()
    }
}

fn bound(family: &Family, case: &Case, depth: usize) -> Bounded {
    let dims: Dims = dims([("rows", case.rows as i64), ("cols", case.cols as i64)]);
    let widened = |values: &Vec<f32>| values.iter().map(|v| f64::from(*v)).collect();
    let tensors = case.tensors.iter().map(|(name, v)| (*name, widened(v)));
    let (inputs, arithmetic) = (Inputs::new(tensors), arithmetic(family, depth));
    let evaluation = Evaluation::new(&dims, &inputs, &arithmetic);
    family.program.error(&evaluation).unwrap().remove("y").unwrap()
}

/// The largest error over its bound; panics where one exceeds it.
fn worst_share(family: &Family, case: &Case, order: Order, spread: Spread, seed: u64) -> f64 {
    let mut near = Approximation::new(seed);
    let (outputs, depth) = emulate(family, case, order, &mut near);
    let bounded = bound(family, case, depth);
    let mut worst = 0.0f64;
    for (at, got) in outputs.iter().enumerate() {
        let (value, error) = (bounded.value[at], bounded.error[at]);
        let off = (f64::from(*got) - value).abs();
        let judged = error.is_finite() && got.is_finite();
        if !bounded.problems.is_empty() && !judged {
            continue;
        }
        assert!(
            off <= error,
            "{} {order:?} {spread:?} seed {seed} rows {} cols {} element {at}: got {got:e}, \
             value {value:e}, off by {off:e}, bound {error:e}",
            family.name,
            case.rows,
            case.cols,
        );
        if error > 0.0 && error.is_finite() {
            worst = worst.max(off / error);
        }
    }
    worst
}

/// Random shapes of all spreads: no emulated kernel errs by more than its bound.
fn check_family(name: &'static str, shapes: u64) {
    let family = family(name);
    for seed in 0..shapes {
        let mut random = SplitMix64::new(seed).fork(name);
        let rows = 1 + random.below(3) as usize;
        let cols = 2f64.powf(random.range(0.0, 9.0)) as usize;
        let spread = SPREADS[(seed % 7) as usize];
        let case = case(&family, &mut random, (rows, cols), spread);
        for order in Order::all(seed) {
            worst_share(&family, &case, order, spread, seed);
        }
    }
}

#[test]
fn row_sums_and_maxima_stay_within_their_bounds() {
    check_family("rows.sum", 700);
    check_family("rows.max", 70);
}

#[test]
fn dots_stay_within_their_bounds() {
    check_family("rows.dot", 700);
    check_family("dense.gemv", 350);
}

#[test]
fn softmax_stays_within_its_bound() {
    check_family("rows.softmax", 350);
}

#[test]
fn rms_norm_stays_within_its_bound() {
    check_family("rows.rms_norm", 500);
}

#[test]
fn layer_norm_stays_within_its_bound() {
    check_family("rows.layer_norm", 500);
}
