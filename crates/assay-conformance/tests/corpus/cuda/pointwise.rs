//! References for `pointwise.cu`.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use assay_num::Format;

use super::data::{normal, uniform};
use crate::case::{Case, close, exact, exact_bytes, pack, rounded};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![
        activations(2e-6),
        rope(),
        packed("half2_ops", Format::F16),
        packed("bf162_ops", Format::Bf16),
        half_math(),
        float_math(3e-6),
        double_math(),
        conversions(),
    ]
}

/// As [`cases`], for what `-use_fast_math` makes of them.
pub(super) fn fast_cases(_: u32) -> Vec<Case> {
    vec![
        activations(2e-3),
        packed("half2_ops", Format::F16),
        packed("bf162_ops", Format::Bf16),
        half_math(),
        float_math(2e-4),
        double_math(),
        conversions(),
    ]
}

/// The error function, by its series or its continued fraction (Abramowitz and Stegun 7.1.5 and
/// 7.1.14).
fn erf(x: f64) -> f64 {
    if x.abs() < 2.5 {
        let term = |n: i32, last: f64| -last * x * x / f64::from(n);
        let (mut power, mut sum) = (x, x);
        for n in 1..80 {
            power = term(n, power);
            sum += power / f64::from(2 * n + 1);
        }
        return 2.0 / PI.sqrt() * sum;
    }
    let fraction = (1..200).rev().fold(0.0, |tail, k| f64::from(k) / 2.0 / (x.abs() + tail));
    x.signum() * (1.0 - (-x * x).exp() / PI.sqrt() / (x.abs() + fraction))
}

/// The gamma function for x > 0, by Stirling's series from x + 30 down.
fn gamma(x: f64) -> f64 {
    let (z, below) = (x + 30.0, (0..30).map(|i| x + f64::from(i)).product::<f64>());
    let series = 1.0 / (12.0 * z) - 1.0 / (360.0 * z.powi(3)) + 1.0 / (1260.0 * z.powi(5))
        - 1.0 / (1680.0 * z.powi(7));
    ((z - 0.5) * z.ln() - z + 0.5 * (2.0 * PI).ln() + series).exp() / below
}

/// Each function of every value, one function after the other.
fn table(x: &[f64], functions: &[&dyn Fn(f64) -> f64]) -> Vec<f64> {
    functions.iter().flat_map(|function| x.iter().map(|&x| function(x))).collect()
}

fn activations(relative: f64) -> Case {
    let x = normal(21, 300, Format::F32);
    let y = table(
        &x,
        &[
            &|v| v.max(0.0),
            &|v| v / (1.0 + (-v).exp()),
            &|v| 0.5 * v * (1.0 + erf(v * FRAC_1_SQRT_2)),
            &|v| 0.5 * v * (1.0 + (0.797_884_56 * (v + 0.044_715 * v * v * v)).tanh()),
            &|v| v.exp().ln_1p(),
            &|v| if v > 0.0 { v } else { v.exp_m1() },
        ],
    );
    Case::new("activations")
        .sized(2, 64)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &y, relative, relative / 4.0))
        .value(300)
}

fn rope() -> Case {
    let (positions, dim) = ([0_i32, 1, 77, 1000], 48_usize);
    let x = normal(22, positions.len() * dim, Format::F32);
    let mut y = vec![0.0; x.len()];
    for (row, position) in positions.iter().enumerate() {
        for i in 0..dim / 2 {
            let angle = f64::from(*position) * 10_000_f64.powf(-2.0 * i as f64 / dim as f64);
            let (s, c) = angle.sin_cos();
            let (a, b) = (x[row * dim + i], x[row * dim + dim / 2 + i]);
            y[row * dim + i] = a * c - b * s;
            y[row * dim + dim / 2 + i] = b * c + a * s;
        }
    }
    // The angle itself is rounded: 1000 radians to 3e-5.
    Case::new("rope")
        .sized(4, 32)
        .reads_as(Format::F32, &x)
        .reads(&positions)
        .writes(close(Format::F32, &y, 1e-6, 4e-4))
        .value(48)
}

/// Packed operations, each exactly the value rounded once.
fn packed(kernel: &'static str, format: Format) -> Case {
    let (a, b) = (normal(23, 128, format), normal(24, 128, format));
    let mut y = Vec::new();
    let mut each = |f: &dyn Fn(f64, f64) -> f64| y.extend(a.iter().zip(&b).map(|(&a, &b)| f(a, b)));
    each(&|a, b| a + b);
    each(&|a, b| a * b);
    each(&|a, b| a * b + a);
    each(&f64::max);
    each(&f64::min);
    each(&|a, b| -format.round(a - b).abs());
    each(&|a, b| (a * b + b).max(0.0));
    let halves = a.chunks(2).zip(b.chunks(2));
    if format == Format::F16 {
        y.extend(halves.flat_map(|(a, b)| [a[0], b[0]]));
    } else {
        y.extend(halves.flat_map(|(a, b)| [a[1], b[1]]));
    }
    let mut each = |f: &dyn Fn(f64, f64) -> f64| y.extend(a.iter().zip(&b).map(|(&a, &b)| f(a, b)));
    if format == Format::F16 {
        each(&|a, b| (a + b).clamp(0.0, 1.0));
        each(&|a, b| a / b);
        each(&|a, b| f64::from(u8::from(a > b)));
        each(&|a, _| a);
    } else {
        each(&f64::max);
    }
    Case::new(kernel).sized(1, 64).reads_as(format, &a).reads_as(format, &b).writes(close(
        format,
        &rounded(format, &y),
        if format == Format::F16 { 1e-3 } else { 0.0 },
        0.0,
    ))
}

fn half_math() -> Case {
    let x = uniform(25, 64, 0.01, 9.0, Format::F16);
    let y = table(
        &x,
        &[
            &f64::exp,
            &f64::ln,
            &f64::sqrt,
            &|v| v.sqrt().recip(),
            &f64::sin,
            &f64::round_ties_even,
            &f64::trunc,
            &f64::trunc,
        ],
    );
    Case::new("half_math").sized(1, 64).reads_as(Format::F16, &x).writes(close(
        Format::F16,
        &y,
        1.1e-3,
        1e-3,
    ))
}

fn float_math(relative: f64) -> Case {
    let x = uniform(26, 96, 0.01, 3.0, Format::F32);
    let y = table(
        &x,
        &[
            &f64::ln,
            &f64::sqrt,
            &f64::cbrt,
            &f64::sin,
            &f64::cos,
            &|v| v.atan2(0.5),
            &|v| v.powf(f64::from(1.7_f32)),
            &|v| v % f64::from(0.3_f32),
            &f64::recip,
            &|v| v.hypot(2.0),
            &|v| v * 32.0 + v.round_ties_even(),
        ],
    );
    Case::new("float_math").sized(1, 96).reads_as(Format::F32, &x).writes(close(
        Format::F32,
        &y,
        relative,
        relative / 10.0,
    ))
}

fn double_math() -> Case {
    let x = uniform(27, 64, 0.01, 3.0, Format::F64);
    let y = table(
        &x,
        &[
            &f64::exp,
            &f64::ln,
            &f64::sqrt,
            &f64::sin,
            &|v| v.powf(2.5),
            &f64::recip,
            &|v| v.mul_add(v, -v),
            &gamma,
            &|v| (v * 100.0).trunc() + v.floor() + (v * 1e10).trunc(),
            &erf,
        ],
    );
    Case::new("double_math").sized(1, 64).reads_as(Format::F64, &x).writes(close(
        Format::F64,
        &y,
        5e-14,
        1e-15,
    ))
}

fn conversions() -> Case {
    let mut x: Vec<f32> =
        uniform(28, 28, -300.0, 300.0, Format::F32).iter().map(|&x| x as f32).collect();
    x.extend([0.5, -2.5, 3e9, f32::INFINITY]);
    let mut y = Vec::new();
    let mut each = |f: &dyn Fn(f32) -> i32| y.extend(x.iter().map(|&x| f(x)));
    each(&|v| v.round_ties_even() as i32);
    each(&|v| v as i32);
    each(&|v| v.ceil() as i32);
    each(&|v| v.floor() as i32);
    each(&|v| v as u32 as i32);
    each(&|v| i32::from(Format::F16.round(f64::from(v)) > 1.0));
    each(&|v| i32::from(v as i32 as i8));
    each(&|v| (v as i64 >> 3) as i32);
    each(&|v| v.clamp(0.0, 1.0).to_bits() as i32);
    each(&|v| {
        let whole = (v.round_ties_even() as i32).wrapping_mul(16_777_217);
        let near = whole as f32;
        let below = if f64::from(near) > f64::from(whole) { near.next_down() } else { near };
        below.to_bits() as i32
    });
    let bytes = pack(Format::F32, &x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    Case::new("conversions")
        .sized(1, 32)
        .updates(bytes.clone(), exact_bytes(bytes))
        .writes(exact(&y))
}
