//! Scans: emulated fp32 kernels, with and without fma, stay within the bounds that the rules give
//! step by step; a state kept in half, or a step lost, does not.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Bounded, Evaluation, Formula, Inputs, Program, Signature, Tensor, dims,
};

use crate::kernels::Approximation;

const SELECTIVE: &str = "\
h[t, d, n] = scan(t, prev = h0[d, n]: exp(dt[t, d] * a[d, n]) * prev + dt[t, d] * x[t, d] * b[t, n])
y[t, d] = sum(n in 0..states: h[t, d, n] * c[t, n])
";

/// Steps, channels, states.
type Sizes = (usize, usize, usize);

fn program() -> Program {
    let tensor = |name, shape: &[&str]| Tensor::new(name, Format::F32, shape).unwrap();
    let (over_time, over_states) = (&["time", "channels"], &["time", "states"]);
    let signature = Signature {
        dims: ["time", "channels", "states"].map(String::from).into(),
        inputs: vec![
            tensor("x", over_time),
            tensor("dt", over_time),
            tensor("a", &["channels", "states"]),
            tensor("b", over_states),
            tensor("c", over_states),
            tensor("h0", &["channels", "states"]),
        ],
        outputs: vec![tensor("y", over_time)],
        ..Signature::default()
    };
    Formula::parse(SELECTIVE).unwrap().check(&signature).unwrap_or_else(|error| panic!("{error}"))
}

type Tensors = BTreeMap<&'static str, Vec<f32>>;

/// Data as models have it (decays below 1), with growing states, or over many binades.
fn draw(seed: u64, (time, channels, states): Sizes) -> Tensors {
    let mut random = SplitMix64::new(seed);
    let kind = seed % 3;
    let mut tensor = |count: usize, low: f64, high: f64| -> Vec<f32> {
        let spread = if kind == 2 { 12.0 } else { 0.0 };
        let scale = |random: &mut SplitMix64| 2f64.powf(random.range(-spread, spread));
        (0..count).map(|_| (random.range(low, high) * scale(&mut random)) as f32).collect()
    };
    let growth = if kind == 1 { 0.5 } else { 0.0 };
    let mut drawn = Tensors::from([
        ("x", tensor(time * channels, -2.0, 2.0)),
        ("b", tensor(time * states, -1.0, 1.0)),
        ("c", tensor(time * states, -1.0, 1.0)),
        ("h0", tensor(channels * states, -1.0, 1.0)),
    ]);
    let mut plain = SplitMix64::new(seed + 1);
    let mut plain = |count: usize, low: f64, high: f64| -> Vec<f32> {
        (0..count).map(|_| plain.range(low, high) as f32).collect()
    };
    drawn.insert("dt", plain(time * channels, 0.001, 0.5));
    drawn.insert("a", plain(channels * states, -4.0, growth));
    drawn
}

/// How a kernel computes.
#[derive(Clone, Copy)]
struct How {
    fused: bool,
    /// The format that the state is kept in.
    state: Format,
    /// A step that is lost.
    lost: Option<usize>,
}

const PLAIN: How = How { fused: false, state: Format::F32, lost: None };

fn multiply_add(fused: bool, a: f32, b: f32, c: f32) -> f32 {
    if fused { a.mul_add(b, c) } else { a * b + c }
}

fn kernel(tensors: &Tensors, (time, channels, states): Sizes, how: How, seed: u64) -> Vec<f32> {
    let mut near = Approximation::new(seed);
    let of = |name: &str, at: usize| tensors[name][at];
    let mut y = vec![0f32; time * channels];
    for d in 0..channels {
        let mut h: Vec<f32> = (0..states).map(|n| of("h0", d * states + n)).collect();
        for t in 0..time {
            let (x, dt) = (of("x", t * channels + d), of("dt", t * channels + d));
            let mut sum = 0f32;
            for (n, h) in h.iter_mut().enumerate() {
                if how.lost != Some(t) {
                    let decay = near.exp(dt * of("a", d * states + n));
                    let next = multiply_add(how.fused, decay, *h, dt * x * of("b", t * states + n));
                    *h = how.state.round(f64::from(next)) as f32;
                }
                sum = multiply_add(how.fused, *h, of("c", t * states + n), sum);
            }
            y[t * channels + d] = sum;
        }
    }
    y
}

fn bounded(tensors: &Tensors, sizes: Sizes, how: &Arithmetic) -> Bounded {
    let wide = |values: &Vec<f32>| values.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>();
    let inputs = Inputs::new(tensors.iter().map(|(name, values)| (*name, wide(values))));
    let (time, channels, states) = sizes;
    let sizes = [("time", time), ("channels", channels), ("states", states)];
    let dims = dims(sizes.map(|(name, size)| (name, size as i64)));
    program().error(&Evaluation::new(&dims, &inputs, how)).unwrap().remove("y").unwrap()
}

/// The largest error over its bound.
fn margin(bounded: &Bounded, got: &[f32]) -> f64 {
    assert!(bounded.problems.is_empty(), "{:?}", bounded.problems);
    let each = got.iter().zip(&bounded.value).zip(&bounded.error);
    each.map(|((got, value), error)| (f64::from(*got) - value).abs() / error).fold(0.0, f64::max)
}

#[test]
fn emulated_scans_stay_within_their_bounds_with_and_without_fma() {
    let mut largest = 0f64;
    for seed in 0..60 {
        let sizes = (1 + seed as usize * 7 % 120, 3, 1 + seed as usize % 17);
        let tensors = draw(seed, sizes);
        let bounded = bounded(&tensors, sizes, &Arithmetic::default());
        for fused in [false, true] {
            let margin = margin(&bounded, &kernel(&tensors, sizes, How { fused, ..PLAIN }, seed));
            assert!(margin <= 1.0, "seed {seed}, fma {fused}: {margin}");
            largest = largest.max(margin);
        }
    }
    // The bound is of use: some kernel comes within a factor of 50.
    assert!(largest > 0.02, "{largest}");
}

#[test]
fn a_state_kept_in_half_is_far_beyond_the_bounds() {
    // Over many binades a state leaves f16's range, which the bound says in its own way.
    let seeds = (0..12).filter(|seed| seed % 3 != 2);
    for (seed, state) in seeds.flat_map(|s| [(s, Format::F16), (s, Format::Bf16)]) {
        let sizes = (64, 4, 8);
        let tensors = draw(seed, sizes);
        let got = kernel(&tensors, sizes, How { state, ..PLAIN }, seed);
        let plain = margin(&bounded(&tensors, sizes, &Arithmetic::default()), &got);
        assert!(plain > 10.0, "seed {seed}, {}: {plain}", state.name());
        // Where it is declared, the bound covers it.
        let accumulators = BTreeMap::from([("t".to_owned(), state)]);
        let declared = Arithmetic { accumulators, ..Arithmetic::default() };
        let declared = margin(&bounded(&tensors, sizes, &declared), &got);
        assert!(declared <= 1.0, "seed {seed}, {}: {declared}", state.name());
    }
}

#[test]
fn a_lost_step_is_far_beyond_the_bounds() {
    let sizes = (33, 4, 8);
    for (seed, lost) in (0..6).flat_map(|seed| [0, 15, 32].map(|lost| (seed, Some(lost)))) {
        let tensors = draw(seed, sizes);
        let bounded = bounded(&tensors, sizes, &Arithmetic::default());
        let margin = margin(&bounded, &kernel(&tensors, sizes, How { lost, ..PLAIN }, seed));
        assert!(margin > 100.0, "seed {seed}, step {lost:?}: {margin}");
    }
}
