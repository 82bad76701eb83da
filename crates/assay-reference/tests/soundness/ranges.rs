//! Kernels that round to bf16 between fp32 steps stay in their ranges whatever the order of their
//! sums, and the ranges are no wider than what such kernels reach.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Bounded, Evaluation, Extent, Formula, Inputs, Program, Root, Signature, Tensor,
    dims,
};

use crate::EPS;
use crate::kernels::{Approximation, Order};

const SWIGLU: &str = "s[r, c] = bf16(1 / (1 + exp(-x[r, c])))
    y[r, c] = bf16(bf16(x[r, c] * s[r, c]) * w[r, c])";
/// A residual add that is kept in bf16, an RMS norm of it, and a weight, each step in bf16.
const NORM: &str = "h[r, c] = bf16(x[r, c] + w[r, c])
    mean[r] = sum(k in 0..cols: h[r, k] * h[r, k]) / cols
    n[r, c] = bf16(h[r, c] * rsqrt(mean[r] + eps))
    y[r, c] = n[r, c] * w[0, c]";
/// A layer norm of rounded samples.
const CENTRED: &str = "h[r, c] = bf16(x[r, c] * w[r, c])
    mean[r] = sum(j in 0..cols: h[r, j]) / cols
    v[r] = sum(k in 0..cols: (h[r, k] - mean[r]) * (h[r, k] - mean[r])) / cols
    y[r, c] = bf16((h[r, c] - mean[r]) * rsqrt(v[r] + eps)) + w[r, c]";

fn program(text: &str, output: Format) -> Program {
    let tensor = |name, format| Tensor::new(name, format, &["rows", "cols"]).unwrap();
    let signature = Signature {
        dims: vec!["rows".into(), "cols".into()],
        inputs: vec![tensor("x", Format::F32), tensor("w", Format::F32)],
        outputs: vec![tensor("y", output)],
        scalars: BTreeMap::from([("eps".to_owned(), f64::from(EPS))]),
    };
    let formula = Formula::parse(text).and_then(|formula| formula.check(&signature));
    formula.unwrap_or_else(|error| panic!("{error}"))
}

fn bf16(value: f32) -> f32 {
    Format::Bf16.round(f64::from(value)) as f32
}

/// One row of a kernel: the outputs in fp32, before output rounding, and the depth of its sums.
type Kernel = fn(&[f32], &[f32], &[f32], Order, &mut Approximation) -> (Vec<f32>, usize);

fn swiglu(
    x: &[f32],
    w: &[f32],
    _: &[f32],
    _: Order,
    near: &mut Approximation,
) -> (Vec<f32>, usize) {
    let one = |(x, w): (&f32, &f32)| {
        let sigmoid = bf16(1.0 / (1.0 + near.exp(-x)));
        bf16(bf16(x * sigmoid) * w)
    };
    (x.iter().zip(w).map(one).collect(), 0)
}

fn norm(
    x: &[f32],
    w: &[f32],
    first: &[f32],
    order: Order,
    near: &mut Approximation,
) -> (Vec<f32>, usize) {
    let h: Vec<f32> = x.iter().zip(w).map(|(x, w)| bf16(x + w)).collect();
    let squares: Vec<f32> = h.iter().map(|h| h * h).collect();
    let (sum, depth) = order.sum(&squares);
    let scale = near.rsqrt(sum / h.len() as f32 + EPS);
    (h.iter().zip(first).map(|(h, w)| bf16(h * scale) * w).collect(), depth)
}

fn centred(
    x: &[f32],
    w: &[f32],
    _: &[f32],
    order: Order,
    near: &mut Approximation,
) -> (Vec<f32>, usize) {
    let h: Vec<f32> = x.iter().zip(w).map(|(x, w)| bf16(x * w)).collect();
    let (sum, depth) = order.sum(&h);
    let mean = sum / h.len() as f32;
    let squares: Vec<f32> = h.iter().map(|h| (h - mean) * (h - mean)).collect();
    let scale = near.rsqrt(order.sum(&squares).0 / h.len() as f32 + EPS);
    (h.iter().zip(w).map(|(h, w)| bf16((h - mean) * scale) + w).collect(), depth)
}

/// Inputs of one case: matrices of bf16 or fp32 values.
struct Case {
    rows: usize,
    cols: usize,
    x: Vec<f32>,
    w: Vec<f32>,
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut random = SplitMix64::new(seed).fork("ranges");
        let (rows, cols) = (1 + random.below(3) as usize, 1 + random.below(200) as usize);
        let in_bf16 = random.below(2) == 0;
        let spread = random.range(0.0, 6.0);
        let mut draw = || -> Vec<f32> {
            let value = |random: &mut SplitMix64| {
                (random.normal() * 2f64.powf(random.range(-spread, spread))) as f32
            };
            let values = (0..rows * cols).map(|_| value(&mut random));
            values.map(|value| if in_bf16 { bf16(value) } else { value }).collect()
        };
        let (x, w) = (draw(), draw());
        Case { rows, cols, x, w }
    }

    fn run(&self, kernel: Kernel, order: Order, near: &mut Approximation) -> (Vec<f32>, usize) {
        let row = |values: &'_ [f32], r: usize| values[r * self.cols..][..self.cols].to_vec();
        let (mut all, mut deepest) = (Vec::new(), 0);
        for r in 0..self.rows {
            let (x, w, first) = (row(&self.x, r), row(&self.w, r), row(&self.w, 0));
            let (values, depth) = kernel(&x, &w, &first, order, near);
            all.extend(values);
            deepest = deepest.max(depth);
        }
        (all, deepest)
    }

    fn range(&self, program: &Program, depth: usize) -> Bounded {
        let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
        let depth = Extent::constant(depth as i64);
        let depths = program.reductions().iter().map(|r| (r.name.clone(), depth.clone()));
        let arithmetic =
            Arithmetic { rsqrt: Root::Approx, depth: depths.collect(), ..Arithmetic::default() };
        let dims = dims([("rows", self.rows as i64), ("cols", self.cols as i64)]);
        let inputs = Inputs::new([("x", wide(&self.x)), ("w", wide(&self.w))]);
        program.range(&Evaluation::new(&dims, &inputs, &arithmetic)).unwrap().remove("y").unwrap()
    }
}

/// Runs a kernel in all orders over many cases; gives the elements seen, those whose range is not
/// one point, and of these the ones where two runs differ.
fn check(text: &str, kernel: Kernel, seeds: u64) -> (usize, usize, usize) {
    let program = program(text, Format::F32);
    let (mut elements, mut spread, mut differ) = (0, 0, 0);
    for seed in 0..seeds {
        let case = Case::new(seed);
        let mut seen: Vec<Vec<f32>> = Vec::new();
        let mut widest = None;
        for (number, order) in Order::all(seed).into_iter().cycle().take(15).enumerate() {
            let mut near = Approximation::new(seed * 100 + number as u64);
            let (outputs, depth) = case.run(kernel, order, &mut near);
            let range = case.range(&program, depth);
            for (at, got) in outputs.iter().enumerate() {
                let (low, high) = range.interval(at);
                let inside = low <= f64::from(*got) && f64::from(*got) <= high;
                assert!(inside, "seed {seed} {order:?} at {at}: {got:e} not in {low:e}..{high:e}");
            }
            seen.push(outputs);
            widest = widest.or(Some(range));
        }
        let range = widest.expect("at least one order");
        for at in 0..range.value.len() {
            elements += 1;
            spread += usize::from(range.error[at] > 0.0);
            differ += usize::from(seen.iter().any(|outputs| outputs[at] != seen[0][at]));
        }
    }
    (elements, spread, differ)
}

#[test]
fn swiglu_of_large_arguments_stays_in_its_range_and_always_has_one() {
    let program = program(SWIGLU, Format::F32);
    for seed in 0..40 {
        let mut case = Case::new(seed);
        case.x.iter_mut().for_each(|x| *x = bf16(*x * 60.0));
        let range = case.range(&program, 0);
        let (outputs, _) = case.run(swiglu, Order::Chain, &mut Approximation::new(seed));
        for (at, got) in outputs.iter().enumerate() {
            let ((low, high), got) = (range.interval(at), f64::from(*got));
            assert!(low.is_finite() && high.is_finite(), "seed {seed} at {at}: {}", case.x[at]);
            assert!(low <= got && got <= high, "seed {seed} at {at}: {got:e} {low:e}..{high:e}");
        }
    }
}

#[test]
fn swiglu_in_bf16_steps_stays_in_its_range_which_is_nearly_always_a_point() {
    let (elements, spread, differ) = check(SWIGLU, swiglu, 150);
    assert!(elements > 20_000 && differ > 0, "{elements} {spread} {differ}");
    assert!(spread * 100 < elements, "{spread} of {elements} ranges are wider than a point");
    assert!(spread < 40 * differ, "{spread} are wide, {differ} were seen to differ");
}

#[test]
fn a_norm_of_rounded_sums_in_bf16_steps_stays_in_its_range() {
    let (elements, _, _) = check(NORM, norm, 150);
    assert!(elements > 20_000, "{elements}");
    // The last product is fp32 and rounded, so what counts is that few are as wide as bf16.
    let program = program(NORM, Format::F32);
    let (mut wide, mut all) = (0, 0);
    for seed in 0..50 {
        let range = Case::new(seed).range(&program, 20);
        all += range.value.len();
        let is_wide = |at: &usize| range.error[*at] > range.value[*at].abs() * 1e-6;
        wide += (0..range.value.len()).filter(is_wide).count();
    }
    assert!(wide * 50 < all, "{wide} of {all}");
}

#[test]
fn a_layer_norm_of_rounded_products_stays_in_its_range() {
    let (elements, _, differ) = check(CENTRED, centred, 100);
    assert!(elements > 10_000 && differ > 0, "{elements} {differ}");
}

/// The same kernels without one rounding, or with one more, leave their ranges often.
#[test]
fn a_rounding_dropped_or_added_leaves_the_range() {
    let no_sigmoid: Kernel = |x, w, _, _, near| {
        let one = |(x, w): (&f32, &f32)| bf16(bf16(x * (1.0 / (1.0 + near.exp(-x)))) * w);
        (x.iter().zip(w).map(one).collect(), 0)
    };
    let no_product: Kernel = |x, w, _, _, near| {
        let one = |(x, w): (&f32, &f32)| bf16(x * bf16(1.0 / (1.0 + near.exp(-x))) * w);
        (x.iter().zip(w).map(one).collect(), 0)
    };
    let one_more: Kernel = |x, w, _, _, near| {
        let one = |(x, w): (&f32, &f32)| bf16(bf16(x * bf16(1.0 / bf16(1.0 + near.exp(-x)))) * w);
        (x.iter().zip(w).map(one).collect(), 0)
    };
    let program = program(SWIGLU, Format::F32);
    for (name, kernel) in [("sigmoid", no_sigmoid), ("product", no_product), ("more", one_more)] {
        let (mut outside, mut all) = (0, 0);
        for seed in 0..20 {
            let case = Case::new(seed);
            let (outputs, _) = case.run(kernel, Order::Chain, &mut Approximation::new(seed));
            let range = case.range(&program, 0);
            let leaves = |(at, got): (usize, &f32)| {
                let (low, high) = range.interval(at);
                f64::from(*got) < low || f64::from(*got) > high
            };
            outside += outputs.iter().enumerate().filter(|got| leaves(*got)).count();
            all += outputs.len();
        }
        assert!(outside * 10 > all, "{name}: {outside} of {all} outside");
    }
}

/// Where both neighbours of a tie are possible the range holds both, and its ends are they.
#[test]
fn a_range_over_a_tie_ends_at_both_neighbours() {
    let program = program("y[r, c] = bf16(x[r, c] + w[r, c])", Format::F32);
    let case = |x: f32, w: f32| Case { rows: 1, cols: 1, x: vec![x], w: vec![w] };
    // 1 + 2^-8 is the tie above 1, and exact: it goes to the even neighbour.
    let tie = case(1.0, 2f32.powi(-8)).range(&program, 0);
    assert_eq!(tie.interval(0), (1.0, 1.0));
    // A sum that fp32 has to round, within a unit of the tie.
    let near = case(1.0 + 2f32.powi(-8), 2f32.powi(-26)).range(&program, 0);
    let (low, high) = near.interval(0);
    assert!(low <= 1.0 && 1.0 + 2f64.powi(-7) <= high, "{low} {high}");
    assert!(high - low < 2f64.powi(-7) * 1.0001, "{low} {high}");
    // Away from ties nothing is left of the spread.
    let away = case(1.0 + 2f32.powi(-9), 2f32.powi(-26)).range(&program, 0);
    assert_eq!(away.interval(0), (1.0, 1.0));
}

#[test]
fn elements_without_a_bound_have_no_range_and_their_neighbours_keep_theirs() {
    let program = program("y[r, c] = bf16(x[r, c] * w[r, c]) + 1", Format::F32);
    let (x, w) = (vec![2.0, 2f32.powi(100), 3.0], vec![0.5, 2f32.powi(100), 0.5]);
    let range = Case { rows: 1, cols: 3, x, w }.range(&program, 0);
    assert_eq!(range.interval(0), (2.0, 2.0));
    assert_eq!(range.interval(1), (f64::NEG_INFINITY, f64::INFINITY));
    assert_eq!(range.interval(2), (2.5, 2.5));
    assert_eq!(range.problems.first().map(|problem| problem.element.clone()), Some(vec![0, 1]));
}

/// The range of a formula of one element, rounded to bf16 at the end so that it is a range.
fn range_of(text: &str, x: f32) -> (f64, f64) {
    let program = program(&format!("y[r, c] = bf16({text})"), Format::F32);
    Case { rows: 1, cols: 1, x: vec![x], w: vec![0.0] }.range(&program, 0).interval(0)
}

#[test]
fn an_exponential_that_overflows_has_a_bound_again_behind_a_division() {
    let tiny = 2f64.powi(-120);
    for x in [90f32, 200.0, 1e4, 3e38] {
        let (low, high) = range_of("1 / (1 + exp(x[r, c]))", x);
        assert!(-tiny <= low && low <= 0.0 && 0.0 <= high && high <= tiny, "{x}: {low} {high}");
        let (low, high) = range_of("3 - 2 / (exp(x[r, c]) * 5 - 7)", x);
        assert_eq!((low, high), (3.0, 3.0), "{x}");
        assert_eq!(range_of("exp(-exp(x[r, c])) + 1", x), (1.0, 1.0));
        assert_eq!(range_of("min(exp(x[r, c]), 3)", x), (3.0, 3.0));
        assert_eq!(range_of("max(-exp(x[r, c]), 3)", x), (3.0, 3.0));
        assert_eq!(range_of("tanh(1 - exp(x[r, c]))", x), (-1.0, -1.0));
        assert_eq!(range_of("select(x[r, c] > 9, 1, exp(x[r, c]))", x), (1.0, 1.0));
    }
    assert_eq!(range_of("tanh(x[r, c] * x[r, c] * x[r, c])", -1e30), (-1.0, -1.0));
    let cube = "cube[r, c] = bf16(x[r, c] * x[r, c] * x[r, c])
        inner[r, c] = bf16(x[r, c] + bf16(0.0447 * cube[r, c]))
        y[r, c] = bf16(1 + bf16(tanh(inner[r, c]))) * x[r, c]";
    let program = program(cube, Format::F32);
    for (x, y) in [(1e20, 2e20f32), (-1e20, 0.0)] {
        let range = Case { rows: 1, cols: 1, x: vec![x], w: vec![0.0] }.range(&program, 0);
        assert_eq!(range.interval(0), (f64::from(y), f64::from(y)));
    }
}

#[test]
fn what_may_be_infinite_or_nan_at_the_end_has_no_bound() {
    let none = (f64::NEG_INFINITY, f64::INFINITY);
    for text in [
        "exp(x[r, c])",
        "exp(x[r, c]) - exp(x[r, c])",
        "exp(x[r, c]) * w[r, c]",
        "exp(x[r, c]) / exp(x[r, c])",
        "max(exp(x[r, c]), 3)",
        "sin(exp(x[r, c]))",
        "1 / (1 / exp(x[r, c]))",
        "sum(k in 0..cols: exp(x[r, k]))",
    ] {
        assert_eq!(range_of(text, 200.0), none, "{text}");
    }
}

#[test]
fn only_a_point_that_is_an_output_itself_is_no_step() {
    let points = |text: &str, output| program(text, output).has_rounding_points();
    assert!(points(SWIGLU, Format::Bf16));
    assert!(!points("y[r, c] = bf16(x[r, c] * w[r, c])", Format::Bf16));
    assert!(points("y[r, c] = bf16(x[r, c] * w[r, c])", Format::F16));
    assert!(points("y[r, c] = bf16(x[r, c]) + 1", Format::Bf16));
    assert!(!points("y[r, c] = x[r, c] + 1", Format::Bf16));
}
