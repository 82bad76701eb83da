//! Approximate functions at the edge of their documented errors, flushed subnormals, and
//! accumulators other than fp32.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Bounded, Division, Evaluation, Exponential, Formula, HyperbolicTangent, Inputs,
    Order, Program, Replay, Root, Signature, Tensor, dims,
};

const COUNT: usize = 512;

fn program(text: &str, output: &[&str]) -> Program {
    let tensor = |name, shape: &[&str]| Tensor::new(name, Format::F32, shape).unwrap();
    let signature = Signature {
        dims: vec!["n".into()],
        inputs: vec![tensor("x", &["n"]), tensor("w", &["n"])],
        outputs: vec![tensor("y", output)],
        ..Signature::default()
    };
    Formula::parse(text).unwrap().check(&signature).unwrap()
}

fn with<T>(x: &[f32], w: &[f32], how: &Arithmetic, run: impl Fn(&Evaluation<'_>) -> T) -> T {
    let dims = dims([("n", x.len() as i64)]);
    let wide = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
    run(&Evaluation::new(&dims, &Inputs::new([("x", wide(x)), ("w", wide(w))]), how))
}

fn bound(program: &Program, x: &[f32], w: &[f32], how: &Arithmetic) -> Bounded {
    with(x, w, how, |e| program.error(e).unwrap().remove("y").unwrap())
}

/// fp32 numbers between `low` and `high`.
fn draw(seed: u64, low: f64, high: f64) -> Vec<f32> {
    let mut random = SplitMix64::new(seed);
    (0..COUNT).map(|_| random.range(low, high) as f32).collect()
}

/// `exact` moved by `units` ulp and rounded to fp32.
fn moved(exact: f64, units: f64) -> f32 {
    (exact + units * Format::F32.ulp(exact)) as f32
}

#[track_caller]
fn assert_within(what: &str, bounded: &Bounded, got: impl Iterator<Item = f32>) {
    assert!(bounded.problems.is_empty(), "{what}: {:?}", bounded.problems);
    for (at, got) in got.enumerate() {
        let off = (f64::from(got) - bounded.value[at]).abs();
        assert!(off <= bounded.error[at], "{what} at {at}: {off:e} over {:e}", bounded.error[at]);
    }
}

/// A function's name and value, the ends of its argument, and its documented error in ulp.
type Function = (&'static str, fn(f64) -> f64, f64, f64, f64);

/// An expression, the ends of its argument, and what an instruction at one side of its bound gives.
type Approximate<'a> = (&'static str, f64, f64, &'a dyn Fn(f32, f32, f64) -> f32);

/// The argument of every function is a rounded sum, so that it carries an error of its own.
#[test]
fn functions_at_the_edge_of_their_documented_errors_stay_within_their_bounds() {
    let functions: [Function; 12] = [
        ("exp", libm::exp, -80.0, 80.0, 1.5),
        ("exp2", libm::exp2, -120.0, 120.0, 2.5),
        ("log", libm::log, 0.001, 1000.0, 1.5),
        ("log", libm::log, 0.9, 1.1, 1.5),
        ("log2", libm::log2, 0.5, 1e30, 1.5),
        ("sqrt", f64::sqrt, 0.0, 1e20, 0.5),
        ("rsqrt", |x| 1.0 / x.sqrt(), 1e-20, 1e3, 0.5),
        ("tanh", libm::tanh, -10.0, 10.0, 2.5),
        ("sin", libm::sin, -100.0, 100.0, 2.5),
        ("cos", libm::cos, -10.0, 10.0, 2.5),
        ("erf", libm::erf, -3.0, 3.0, 2.5),
        ("abs", f64::abs, -3.0, 3.0, 0.0),
    ];
    for (name, function, low, high, ulps) in functions {
        let program = program(&format!("y[i] = {name}(x[i] + w[i])"), &["n"]);
        let (x, w) = (draw(1, low, high), draw(2, 0.0, 1e-3));
        let bounded = bound(&program, &x, &w, &Arithmetic::default());
        for side in [-1.0, 1.0] {
            let computed = x.iter().zip(&w).map(|(x, w)| {
                let exact = function(f64::from(x + w));
                // A correctly rounded result is half an ulp away by itself.
                moved(exact, if ulps > 0.5 { side * (ulps - 0.5) } else { 0.0 })
            });
            assert_within(name, &bounded, computed);
        }
    }
}

#[test]
fn approximate_instructions_stay_within_their_bounds() {
    let how = Arithmetic {
        division: Division::Approx,
        sqrt: Root::Approx,
        rsqrt: Root::Approx,
        exp: Exponential::Ex2,
        tanh: HyperbolicTangent::Approx,
        ..Arithmetic::default()
    };
    let relative = |exact: f64, by: f64| (exact * (1.0 + by)) as f32;
    let log2e = std::f32::consts::LOG2_E;
    let cases: [Approximate<'_>; 6] = [
        ("exp(x[i])", -80.0, 80.0, &|x, _, side| {
            moved(libm::exp2(f64::from(x * log2e)), side * 1.5)
        }),
        ("tanh(x[i])", -5.0, 5.0, &|x, _, side| {
            relative(libm::tanh(f64::from(x)), side * (2f64.powi(-11) - 2f64.powi(-24)))
        }),
        ("sqrt(x[i])", 0.0, 1e10, &|x, _, side| {
            relative(f64::from(x).sqrt(), side * 2f64.powi(-24))
        }),
        ("rsqrt(x[i])", 1e-10, 1e10, &|x, _, side| {
            let reach = 2f64.powf(-22.9) - 2f64.powi(-24);
            relative(1.0 / f64::from(x).sqrt(), side * reach)
        }),
        ("x[i] / w[i]", -1e10, 1e10, &|x, w, side| moved(f64::from(x) / f64::from(w), side * 1.5)),
        ("1 / w[i]", -1.0, 1.0, &|_, w, side| moved(1.0 / f64::from(w), side * 0.5)),
    ];
    for (text, low, high, compute) in cases {
        let program = program(&format!("y[i] = {text}"), &["n"]);
        let (x, w) = (draw(3, low, high), draw(4, 0.5, 3e5));
        let bounded = bound(&program, &x, &w, &how);
        for side in [-1.0, 1.0] {
            let pairs = x.iter().zip(&w);
            assert_within(text, &bounded, pairs.map(|(x, w)| compute(*x, *w, side)));
        }
    }
    // The accurate bound is exceeded: approximations have to be declared.
    let program = program("y[i] = tanh(x[i])", &["n"]);
    let x = draw(5, 0.5, 1.0);
    let bounded = bound(&program, &x, &x, &Arithmetic::default());
    let off = f64::from(relative(bounded.value[0], 2f64.powi(-12))) - bounded.value[0];
    assert!(off > bounded.error[0]);
}

fn flushed(value: f32) -> f32 {
    if value.is_subnormal() { 0.0 } else { value }
}

#[test]
fn kernels_that_flush_subnormals_stay_within_their_bounds() {
    let how = Arithmetic { flush_subnormals: true, ..Arithmetic::default() };
    let mut random = SplitMix64::new(6);
    let mut tiny = || -> Vec<f32> {
        let value =
            |random: &mut SplitMix64| random.normal() * 2f64.powf(random.range(-150.0, -40.0));
        (0..COUNT).map(|_| value(&mut random) as f32).collect()
    };
    let (x, w) = (tiny(), tiny());
    let pairs = || x.iter().zip(&w).map(|(x, w)| (flushed(*x), flushed(*w)));
    let bounded = |text: &str| bound(&program(text, &["n"]), &x, &w, &how);
    assert_within("*", &bounded("y[i] = x[i] * w[i]"), pairs().map(|(x, w)| flushed(x * w)));
    assert_within("+", &bounded("y[i] = x[i] + w[i]"), pairs().map(|(x, w)| flushed(x + w)));
    let dot = bound(&program("y = sum(k in 0..n: x[k] * w[k])", &[]), &x, &w, &how);
    let chain = pairs().fold(0.0, |sum, (x, w)| flushed(sum + flushed(x * w)));
    assert_within("dot", &dot, std::iter::once(chain));
    let sum = bound(&program("y = sum(k in 0..n: x[k])", &[]), &x, &w, &how);
    let chain = x.iter().fold(0.0, |sum, x| flushed(sum + flushed(*x)));
    assert_within("sum", &sum, std::iter::once(chain));
    // Without flushing the same kernel is outside.
    let plain = bound(&program("y[i] = x[i] * w[i]", &["n"]), &x, &w, &Arithmetic::default());
    let outside = |(at, (x, w)): (usize, (f32, f32))| {
        (f64::from(flushed(x * w)) - plain.value[at]).abs() > plain.error[at]
    };
    assert!(pairs().enumerate().any(outside));
}

#[test]
fn sums_in_other_accumulators_stay_within_their_bounds() {
    let program = program("y = sum(k in 0..n: x[k] * w[k])", &[]);
    let orders = [Order::Chain, Order::Halves, Order::Lanes(32), Order::Chunked { threads: 7 }];
    for (seed, accumulator) in (0..40).flat_map(|s| {
        [Format::F16, Format::Bf16, Format::F32, Format::F64].map(|format| (s, format))
    }) {
        let how = Arithmetic {
            accumulators: BTreeMap::from([("k".to_owned(), accumulator)]),
            ..Arithmetic::default()
        };
        let count = 1 + (seed * 7 % 100) as usize;
        let spread = if seed % 2 == 0 { 1.0 } else { 1e-6 };
        let (x, w) = (draw(seed, -2.0, 2.0), draw(seed + 100, -spread, spread));
        let (x, w) = (&x[..count], &w[..count]);
        let bounded = bound(&program, x, w, &how);
        for order in orders {
            let replay = Replay { accumulator, order, partials_fp32: false };
            let got = with(x, w, &how, |e| program.replay(e, &replay).unwrap()["y"][0]);
            assert_within(accumulator.name(), &bounded, std::iter::once(got as f32));
        }
    }
}

#[test]
fn products_stay_within_their_bounds() {
    let program = program("y = prod(k in 0..n: x[k] + w[k])", &[]);
    for seed in 0..200 {
        let count = 1 + seed as usize % 20;
        let (low, high) = [(-2.0, 2.0), (-1e-9, 1e-9), (1.0, 3.0)][seed as usize % 3];
        let (x, w) = (draw(seed, low, high), draw(seed + 1000, -1e-3, 1e-3));
        let bounded = bound(&program, &x[..count], &w[..count], &Arithmetic::default());
        let factors = || x[..count].iter().zip(&w).map(|(x, w)| x + w);
        let (forward, backward) = (factors().product(), factors().rev().product());
        assert_within("forward", &bounded, std::iter::once(forward));
        assert_within("backward", &bounded, std::iter::once(backward));
    }
    let program = self::program("y = prod(k in 0..n: exp(x[k]))", &[]);
    for (seed, side) in (0..50).flat_map(|seed| [(seed, -1.0), (seed, 1.0)]) {
        let count = 1 + seed as usize % 4;
        let x = &draw(seed, -3.0, 3.0)[..count];
        let bounded = bound(&program, x, x, &Arithmetic::default());
        let factors = x.iter().map(|x| moved(libm::exp(f64::from(*x)), side));
        assert_within("exponentials", &bounded, std::iter::once(factors.product()));
    }
}
