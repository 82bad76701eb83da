//! Floating-point opcodes, each against plain Rust and the `half` crate.
#![allow(
    clippy::double_comparisons,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::nonminimal_bool,
    reason = "unordered comparisons are the negations of ordered ones, and must be written so"
)]

mod common;

use assay_emulator::{Approximation, CompileOptions, LaunchConfig};
use assay_num::random::SplitMix64;
use common::{
    Out, check, check_bit, check_half, check_on, check_wide, f, f32_bits, ftz, run_ptx,
    run_ptx_with, wide_triples, word_triples,
};
use half::{bf16, f16};

#[test]
fn single_precision_rounds_to_nearest_and_keeps_subnormals() {
    check("add.rn.f32 %r4, %r1, %r2;", |a, b, _| f32_bits(f(a) + f(b)));
    check("sub.f32 %r4, %r1, %r2;", |a, b, _| f32_bits(f(a) - f(b)));
    check("mul.f32 %r4, %r1, %r2;", |a, b, _| f32_bits(f(a) * f(b)));
    check("fma.rn.f32 %r4, %r1, %r2, %r3;", |a, b, c| f32_bits(f(a).mul_add(f(b), f(c))));
    check("div.rn.f32 %r4, %r1, %r2;", |a, b, _| f32_bits(f(a) / f(b)));
    check("sqrt.rn.f32 %r4, %r1;", |a, _, _| f32_bits(f(a).sqrt()));
    check("rcp.rn.f32 %r4, %r1;", |a, _, _| f32_bits(1.0 / f(a)));
    check("mul.f32 %r4, %r1, 0f3F000000;", |a, _, _| f32_bits(f(a) * 0.5));
}

#[test]
fn ftz_flushes_operands_and_results() {
    let flushed = |x: f32| ftz(f32_bits(x));
    check("add.ftz.f32 %r4, %r1, %r2;", |a, b, _| flushed(f(ftz(a)) + f(ftz(b))));
    check("mul.rn.ftz.f32 %r4, %r1, %r2;", |a, b, _| flushed(f(ftz(a)) * f(ftz(b))));
    check("fma.rn.ftz.f32 %r4, %r1, %r2, %r3;", |a, b, c| {
        flushed(f(ftz(a)).mul_add(f(ftz(b)), f(ftz(c))))
    });
    check("abs.ftz.f32 %r4, %r1;", |a, _, _| ftz(f32_bits(f(a).abs())));
}

#[test]
fn sat_clamps_to_the_unit_interval_and_turns_nan_to_zero() {
    let clamp = |x: f32| {
        if x >= 1.0 {
            1.0_f32
        } else if x > 0.0 {
            x
        } else {
            0.0
        }
    };
    check("add.sat.f32 %r4, %r1, %r2;", |a, b, _| clamp(f(a) + f(b)).to_bits());
    check("fma.rn.sat.f32 %r4, %r1, %r2, %r3;", |a, b, c| {
        clamp(f(a).mul_add(f(b), f(c))).to_bits()
    });
}

/// `value` exactly is `high + low`; rounds it in a direction.
fn directed(high: f64, low: f64, mode: &str) -> f32 {
    let nearest = high as f32;
    if !high.is_finite() || (f64::from(nearest) == high && low == 0.0) {
        return nearest;
    }
    let difference = high - f64::from(nearest);
    let above = if difference == 0.0 { low > 0.0 } else { difference > 0.0 };
    // `nearest` lies below the value when `above`.
    let (down, up) =
        if above { (nearest, nearest.next_up()) } else { (nearest.next_down(), nearest) };
    match mode {
        "rm" => down,
        "rp" => up,
        _ => {
            if high > 0.0 {
                down
            } else {
                up
            }
        }
    }
}

#[test]
fn directed_roundings_take_the_neighbour_on_their_side() {
    let ordinary: Vec<[u64; 3]> = {
        let mut random = SplitMix64::new(5);
        let mut next = || u64::from((random.range(-4.0, 4.0) as f32).to_bits());
        (0..4000).map(|_| [next(), next(), next()]).collect()
    };
    for mode in ["rz", "rm", "rp"] {
        let sum = format!("add.{mode}.f32 %r4, %r1, %r2;");
        check_on(&sum, Out::Word, &ordinary, |a, b, _| {
            let (x, y) = (f64::from(f(a as u32)), f64::from(f(b as u32)));
            directed(x + y, 0.0, mode).to_bits().into()
        });
        let product = format!("mul.{mode}.f32 %r4, %r1, %r2;");
        check_on(&product, Out::Word, &ordinary, |a, b, _| {
            directed(f64::from(f(a as u32)) * f64::from(f(b as u32)), 0.0, mode).to_bits().into()
        });
        let fused = format!("fma.{mode}.f32 %r4, %r1, %r2, %r3;");
        check_on(&fused, Out::Word, &ordinary, |a, b, c| {
            let product = f64::from(f(a as u32)) * f64::from(f(b as u32));
            let c = f64::from(f(c as u32));
            let sum = product + c;
            let part = sum - product;
            let low = (product - (sum - part)) + (c - part);
            directed(sum, low, mode).to_bits().into()
        });
        let quotient = format!("div.{mode}.f32 %r4, %r1, %r2;");
        check_on(&quotient, Out::Word, &ordinary, |a, b, _| {
            let (x, y) = (f64::from(f(a as u32)), f64::from(f(b as u32)));
            directed(x / y, 0.0, mode).to_bits().into()
        });
    }
}

#[test]
fn minimum_and_maximum_prefer_numbers_and_order_zeros() {
    let pick = |a: u32, b: u32, largest: bool| {
        let (x, y) = (f(a), f(b));
        match (x.is_nan(), y.is_nan()) {
            (true, true) => 0x7fff_ffff,
            (true, false) => b,
            (false, true) => a,
            _ if x == y => {
                if largest {
                    a & b
                } else {
                    a | b
                }
            }
            _ => {
                if (x > y) == largest {
                    a
                } else {
                    b
                }
            }
        }
    };
    check("max.f32 %r4, %r1, %r2;", |a, b, _| pick(a, b, true));
    check("min.f32 %r4, %r1, %r2;", |a, b, _| pick(a, b, false));
    check("max.NaN.f32 %r4, %r1, %r2;", |a, b, _| {
        if f(a).is_nan() || f(b).is_nan() { 0x7fff_ffff } else { pick(a, b, true) }
    });
    check("min.ftz.f32 %r4, %r1, %r2;", |a, b, _| pick(ftz(a), ftz(b), false));
    check("min.xorsign.abs.f32 %r4, %r1, %r2;", |a, b, _| {
        let least = pick(a & 0x7fff_ffff, b & 0x7fff_ffff, false);
        if f(least).is_nan() { least } else { least & 0x7fff_ffff | (a ^ b) & 0x8000_0000 }
    });
}

#[test]
fn signs_move_without_arithmetic() {
    // But for NaN, which becomes the canonical one, or stays as it is in f64.
    check("neg.f32 %r4, %r1;", |a, _, _| f32_bits(-f(a)));
    check("abs.f32 %r4, %r1;", |a, _, _| f32_bits(f(a).abs()));
    check("copysign.f32 %r4, %r1, %r2;", |a, b, _| a & 0x8000_0000 | b & 0x7fff_ffff);
    check_wide("neg.f64 %rd4, %rd1;", |a, _, _| {
        if f64::from_bits(a).is_nan() { a | 1 << 51 } else { a ^ 1 << 63 }
    });
    check_wide("copysign.f64 %rd4, %rd1, %rd2;", |a, b, _| a & 1 << 63 | b & !(1 << 63));
}

#[test]
fn double_precision_is_the_host_s() {
    let d = f64::from_bits;
    let check = |instruction: &str, want: &dyn Fn(f64, f64, f64) -> f64| {
        let triples: Vec<_> = wide_triples(31)
            .into_iter()
            .filter(|t| !want(d(t[0]), d(t[1]), d(t[2])).is_nan())
            .collect();
        check_on(instruction, Out::Wide, &triples, |a, b, c| want(d(a), d(b), d(c)).to_bits());
    };
    check("add.f64 %rd4, %rd1, %rd2;", &|a, b, _| a + b);
    check("sub.rn.f64 %rd4, %rd1, %rd2;", &|a, b, _| a - b);
    check("mul.f64 %rd4, %rd1, %rd2;", &|a, b, _| a * b);
    check("fma.rn.f64 %rd4, %rd1, %rd2, %rd3;", &|a, b, c| a.mul_add(b, c));
    check("div.rn.f64 %rd4, %rd1, %rd2;", &|a, b, _| a / b);
    check("sqrt.rn.f64 %rd4, %rd1;", &|a, _, _| a.sqrt());
    check("rcp.rn.f64 %rd4, %rd1;", &|a, _, _| 1.0 / a);
    check("abs.f64 %rd4, %rd1;", &|a, _, _| a.abs());
    check("max.f64 %rd4, %rd1, %rd2;", &|a, b, _| {
        if a == b { f64::from_bits(a.to_bits() & b.to_bits()) } else { a.max(b) }
    });
    check_on(
        "add.rp.f64 %rd4, %rd1, 0d3CA0000000000000;",
        Out::Wide,
        &[[d(0.0_f64.to_bits()).to_bits(), 0, 0], [1.0_f64.to_bits(), 0, 0]],
        |a, _, _| {
            if a == 0 { 0x3ca0_0000_0000_0000 } else { 1.0_f64.next_up().to_bits() }
        },
    );
}

#[test]
fn double_precision_passes_nan_payloads_on() {
    let (x, y, z) = (0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0002, 0x7ff8_0000_0000_0003);
    let one = 1.0_f64.to_bits();
    let run = |text: &str, a, b, c| run_ptx(text, Out::Wide, &[[a, b, c]])[0];
    for add in ["add.rn.f64 %rd4, %rd1, %rd2;", "add.rm.f64 %rd4, %rd1, %rd2;"] {
        assert_eq!(run(add, x, y, 0), y);
        assert_eq!(run(add, x, one, 0), x);
    }
    for fma in ["fma.rn.f64 %rd4, %rd1, %rd2, %rd3;", "fma.rp.f64 %rd4, %rd1, %rd2, %rd3;"] {
        assert_eq!(run(fma, x, y, z), y);
        assert_eq!(run(fma, x, one, z), z);
        assert_eq!(run(fma, x, one, one), x);
    }
    let infinity = f64::INFINITY.to_bits();
    assert_eq!(run("sub.f64 %rd4, %rd1, %rd2;", infinity, infinity, 0), 0xfff8_0000_0000_0000);
}

#[test]
fn packed_single_precision_works_on_both_halves() {
    check_wide("add.rn.f32x2 %rd4, %rd1, %rd2;", |a, b, _| {
        let part = |n: u32| u64::from(f32_bits(f((a >> n) as u32) + f((b >> n) as u32)));
        part(0) | part(32) << 32
    });
}

#[test]
fn comparisons_are_ordered_unless_they_say_so() {
    type Test = fn(f32, f32) -> bool;
    let all: [(&str, Test); 14] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a < b || a > b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
        ("equ", |a, b| !(a < b || a > b)),
        ("neu", |a, b| a != b),
        ("ltu", |a, b| !(a >= b)),
        ("leu", |a, b| !(a > b)),
        ("gtu", |a, b| !(a <= b)),
        ("geu", |a, b| !(a < b)),
        ("num", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan", |a, b| a.is_nan() || b.is_nan()),
    ];
    for (name, test) in all {
        check_bit(&format!("setp.{name}.f32 %p1, %r1, %r2;"), |a, b, _| test(f(a), f(b)));
        check_bit(&format!("setp.{name}.ftz.f32 %p1, %r1, %r2;"), |a, b, _| {
            test(f(ftz(a)), f(ftz(b)))
        });
        let half = format!("setp.{name}.bf16 %p1, %h1, %h2;");
        check_on(&half, Out::Bit, &word_triples(32), |a, b, _| {
            test(bf16::from_bits(a as u16).to_f32(), bf16::from_bits(b as u16).to_f32()).into()
        });
    }
    check_bit("setp.hs.u32 %p1, %r1, %r2;", |a, b, _| a >= b);
    check_bit("setp.ne.s32 %p1, %r1, %r2;", |a, b, _| a != b);
    check_on("setp.gt.u64 %p1, %rd1, %rd2;", Out::Bit, &wide_triples(33), |a, b, _| (a > b).into());
    check_on("setp.le.s16 %p1, %h1, %h2;", Out::Bit, &word_triples(34), |a, b, _| {
        (a as i16 <= b as i16).into()
    });
}

#[test]
fn comparisons_combine_with_a_predicate_and_give_their_inverse() {
    let setup = "setp.gt.u32 %p2, %r3, 1000;";
    check_bit(&format!("{setup} setp.lt.and.s32 %p1|%p3, %r1, %r2, %p2;"), |a, b, c| {
        (a as i32) < (b as i32) && c > 1000
    });
    check_bit(&format!("{setup} setp.lt.or.s32 %p3|%p1, %r1, %r2, !%p2;"), |a, b, c| {
        (a as i32) >= (b as i32) || c <= 1000
    });
    check_bit(&format!("{setup} setp.eq.xor.s32 %p1, %r1, %r2, %p2;"), |a, b, c| {
        (a == b) ^ (c > 1000)
    });
    check_bit(&format!("{setup} setp.lt.u32 %p3, %r1, %r2; and.pred %p1, %p2, %p3;"), |a, b, c| {
        a < b && c > 1000
    });
    check_bit(&format!("{setup} not.pred %p1, %p2;"), |_, _, c| c <= 1000);
    check_bit(&format!("{setup} mov.pred %p1, %p2;"), |_, _, c| c > 1000);
    check(
        "set.lt.u32.s32 %r4, %r1, %r2;",
        |a, b, _| {
            if (a as i32) < (b as i32) { u32::MAX } else { 0 }
        },
    );
    check(
        "set.gt.f32.f32 %r4, %r1, %r2;",
        |a, b, _| {
            if f(a) > f(b) { 1.0_f32.to_bits() } else { 0 }
        },
    );
    check("set.gt.f16x2.f16x2 %r4, %r1, %r2;", |a, b, _| {
        let part = |n: u32| {
            let (x, y) = (f16::from_bits((a >> n) as u16), f16::from_bits((b >> n) as u16));
            if x > y { 0x3c00 << n } else { 0 }
        };
        part(0) | part(16)
    });
}

#[test]
fn testp_tells_the_classes_of_numbers() {
    check_bit("testp.finite.f32 %p1, %r1;", |a, _, _| f(a).is_finite());
    check_bit("testp.infinite.f32 %p1, %r1;", |a, _, _| f(a).is_infinite());
    check_bit("testp.number.f32 %p1, %r1;", |a, _, _| !f(a).is_nan());
    check_bit("testp.notanumber.f32 %p1, %r1;", |a, _, _| f(a).is_nan());
    check_bit("testp.normal.f32 %p1, %r1;", |a, _, _| f(a).is_normal() || f(a) == 0.0);
    check_bit("testp.subnormal.f32 %p1, %r1;", |a, _, _| f(a).is_subnormal());
}

/// `x * y + z` in f64, moved one place towards what was lost: rounds on to 16 bits as the exact
/// value does.
fn fused(x: f64, y: f64, z: f64) -> f64 {
    let product = x * y;
    let sum = product + z;
    let part = sum - product;
    let lost = (product - (sum - part)) + (z - part);
    if !sum.is_finite() || lost == 0.0 {
        sum
    } else if lost > 0.0 {
        sum.next_up()
    } else {
        sum.next_down()
    }
}

/// To f32, keeping in its last bit that something was lost (`half` itself goes through fewer bits).
fn sticky(x: f64) -> f32 {
    let nearest = x as f32;
    if f64::from(nearest) == x {
        return nearest;
    }
    let shorter = f64::from(nearest).abs() > x.abs();
    f32::from_bits((nearest.to_bits() - u32::from(shorter)) | 1)
}

fn half_of(x: f64) -> u16 {
    if x.is_nan() { 0x7fff } else { f16::from_f32(sticky(x)).to_bits() }
}

fn bhalf_of(x: f64) -> u16 {
    if x.is_nan() { 0x7fff } else { bf16::from_f32(sticky(x)).to_bits() }
}

#[test]
fn half_precision_rounds_once() {
    let d = |x: u16| f16::from_bits(x).to_f64();
    check_half("add.f16 %h4, %h1, %h2;", |a, b, _| half_of(d(a) + d(b)));
    check_half("sub.f16 %h4, %h1, %h2;", |a, b, _| half_of(d(a) - d(b)));
    check_half("mul.f16 %h4, %h1, %h2;", |a, b, _| half_of(d(a) * d(b)));
    check_half("fma.rn.f16 %h4, %h1, %h2, %h3;", |a, b, c| half_of(fused(d(a), d(b), d(c))));
    check_half("neg.f16 %h4, %h1;", |a, _, _| if d(a).is_nan() { 0x7fff } else { a ^ 0x8000 });
    check_half("neg.ftz.f16 %h4, %h1;", |a, _, _| match a & 0x7fff {
        0x7c01.. => 0x7fff,
        0..=0x3ff => a & 0x8000 ^ 0x8000,
        _ => a ^ 0x8000,
    });
    check("fma.rn.f16x2 %r4, %r1, %r2, %r3;", |a, b, c| {
        let part = |n: u32| {
            let [x, y, z] = [a, b, c].map(|x| d((x >> n) as u16));
            u32::from(half_of(fused(x, y, z))) << n
        };
        part(0) | part(16)
    });
    check("fma.rn.relu.f16x2 %r4, %r1, %r2, %r3;", |a, b, c| {
        let part = |n: u32| {
            let [x, y, z] = [a, b, c].map(|x| d((x >> n) as u16));
            let result = half_of(fused(x, y, z));
            let negative = result & 0x8000 != 0 && result & 0x7fff <= 0x7c00;
            u32::from(if negative { 0 } else { result }) << n
        };
        part(0) | part(16)
    });
}

#[test]
fn bfloat16_rounds_once() {
    let d = |x: u16| bf16::from_bits(x).to_f64();
    check_half("mul.bf16 %h4, %h1, %h2;", |a, b, _| bhalf_of(d(a) * d(b)));
    check_half("fma.rn.bf16 %h4, %h1, %h2, %h3;", |a, b, c| bhalf_of(fused(d(a), d(b), d(c))));
    check_half("add.bf16 %h4, %h1, %h2;", |a, b, _| bhalf_of(fused(d(a), 1.0, d(b))));
    check("mul.bf16x2 %r4, %r1, %r2;", |a, b, _| {
        let part = |n: u32| u32::from(bhalf_of(d((a >> n) as u16) * d((b >> n) as u16))) << n;
        part(0) | part(16)
    });
}

#[test]
fn half_minimum_and_maximum_follow_the_rules_of_f32() {
    let widen = |x: u16| bf16::from_bits(x).to_f32();
    check_half("max.bf16 %h4, %h1, %h2;", |a, b, _| match (widen(a).is_nan(), widen(b).is_nan()) {
        (true, true) => 0x7fff,
        (true, false) => b,
        (false, true) => a,
        _ if widen(a) == widen(b) => a & b,
        _ => {
            if widen(a) > widen(b) {
                a
            } else {
                b
            }
        }
    });
    check_half("min.NaN.bf16 %h4, %h1, %h2;", |a, b, _| {
        if widen(a).is_nan() || widen(b).is_nan() {
            0x7fff
        } else if widen(a) == widen(b) {
            a | b
        } else if widen(a) < widen(b) {
            a
        } else {
            b
        }
    });
}

/// Operands where the approximate functions do real work.
fn moderate(low: f64, high: f64) -> Vec<[u64; 3]> {
    let mut random = SplitMix64::new(6);
    let mut next = || u64::from((random.range(low, high) as f32).to_bits());
    (0..5000).map(|_| [next(), next(), next()]).collect()
}

#[test]
fn approximate_functions_are_correctly_rounded_by_default() {
    type Function = fn(f64) -> f64;
    let all: [(&str, f64, f64, Function); 8] = [
        ("ex2.approx.f32", -140.0, 140.0, f64::exp2),
        ("lg2.approx.f32", 1e-3, 1e6, f64::log2),
        ("sin.approx.f32", -20.0, 20.0, f64::sin),
        ("cos.approx.f32", -20.0, 20.0, f64::cos),
        ("tanh.approx.f32", -9.0, 9.0, f64::tanh),
        ("rsqrt.approx.f32", 1e-6, 1e6, |x| 1.0 / x.sqrt()),
        ("rcp.approx.f32", -10.0, 10.0, |x| 1.0 / x),
        ("sqrt.approx.f32", 0.0, 1e6, f64::sqrt),
    ];
    for (name, low, high, function) in all {
        let instruction = format!("{name} %r4, %r1;");
        check_on(&instruction, Out::Word, &moderate(low, high), |a, _, _| {
            u64::from((function(f64::from(f(a as u32))) as f32).to_bits())
        });
    }
}

#[test]
fn approximate_functions_keep_their_special_values() {
    let one = |instruction: &str, a: f32| {
        f(run_ptx(instruction, Out::Word, &[[a.to_bits().into(), 0, 0]])[0] as u32)
    };
    assert_eq!(one("ex2.approx.f32 %r4, %r1;", -0.0), 1.0);
    assert_eq!(one("ex2.approx.f32 %r4, %r1;", f32::NEG_INFINITY), 0.0);
    assert_eq!(one("ex2.approx.f32 %r4, %r1;", f32::INFINITY), f32::INFINITY);
    assert_eq!(one("ex2.approx.ftz.f32 %r4, %r1;", -130.0), 0.0);
    assert!(one("ex2.approx.f32 %r4, %r1;", -130.0) > 0.0);
    assert!(one("ex2.approx.f32 %r4, %r1;", f32::NAN).is_nan());
    assert_eq!(one("lg2.approx.f32 %r4, %r1;", 0.0), f32::NEG_INFINITY);
    assert!(one("lg2.approx.f32 %r4, %r1;", -1.0).is_nan());
    assert!(one("sin.approx.f32 %r4, %r1;", f32::INFINITY).is_nan());
    assert!(one("sqrt.approx.f32 %r4, %r1;", -1.0).is_nan());
    assert_eq!(one("rsqrt.approx.f32 %r4, %r1;", 0.0), f32::INFINITY);
    assert_eq!(one("rcp.approx.f32 %r4, %r1;", f32::NEG_INFINITY).to_bits(), 0x8000_0000);
    // A huge divisor gives 0, or NaN under infinity.
    assert_eq!(one("div.approx.f32 %r4, %r1, 0f7F000000;", 1e38), 0.0);
    assert!(one("div.approx.f32 %r4, %r1, 0f7F000000;", f32::INFINITY).is_nan());
    assert_eq!(one("div.full.f32 %r4, %r1, 0f7F000000;", 1.0), 1.0 / f(0x7f00_0000));
}

#[test]
fn a_seed_moves_approximate_results_inside_their_bounds() {
    let seeded = |seed: u64| LaunchConfig {
        approximation: Approximation::Seeded(seed),
        ..LaunchConfig::default()
    };
    let run = |instruction: &str, operands: &[[u64; 3]], seed: u64| {
        run_ptx_with(instruction, Out::Word, operands, &seeded(seed), CompileOptions::default())
    };
    let operands = moderate(-5.0, 5.0);
    let values = run("ex2.approx.f32 %r4, %r1;", &operands, 1);
    let mut moved = 0;
    for (operand, got) in operands.iter().zip(&values) {
        let want = f64::from(f(operand[0] as u32)).exp2();
        let got = f(*got as u32);
        let ulp = f64::from(got.next_up()) - f64::from(got);
        assert!((f64::from(got) - want).abs() <= 2.0 * ulp);
        moved += u32::from(got != want as f32);
    }
    assert!(moved > 1000, "a seed that moves nothing tests nothing");
    assert_eq!(values, run("ex2.approx.f32 %r4, %r1;", &operands, 1), "the same seed differs");
    assert_ne!(values, run("ex2.approx.f32 %r4, %r1;", &operands, 2), "seeds are all the same");
    let exact = run("add.rn.f32 %r4, %r1, %r2;", &operands, 1);
    assert_eq!(exact, run_ptx("add.rn.f32 %r4, %r1, %r2;", Out::Word, &operands));
}

#[test]
fn contraction_fuses_bare_products_only_when_asked() {
    let operands = moderate(-2.0, 2.0);
    let bare = "mul.f32 %r5, %r1, %r2; add.f32 %r4, %r5, %r3;";
    let kept = "mul.rn.f32 %r5, %r1, %r2; add.rn.f32 %r4, %r5, %r3;";
    let fused = "fma.rn.f32 %r4, %r1, %r2, %r3;";
    let plain = run_ptx(bare, Out::Word, &operands);
    assert_eq!(plain, run_ptx(kept, Out::Word, &operands));
    let with = |body: &str, seed: u64| {
        let config = LaunchConfig { contract_multiply_add: Some(seed), ..LaunchConfig::default() };
        run_ptx_with(body, Out::Word, &operands, &config, CompileOptions::default())
    };
    let fused = run_ptx(fused, Out::Word, &operands);
    assert_ne!(plain, fused, "operands that cannot tell");
    let outcomes: Vec<_> = (0..12).map(|seed| with(bare, seed)).collect();
    assert!(outcomes.contains(&fused) && outcomes.contains(&plain));
    assert!(outcomes.iter().all(|outcome| *outcome == fused || *outcome == plain));
    assert_eq!(with(kept, 1), plain);
    // Differences fuse too, with the sign where it belongs.
    for (bare, fused) in [
        (
            "mul.f32 %r5, %r1, %r2; sub.f32 %r4, %r5, %r3;",
            "neg.f32 %r6, %r3; fma.rn.f32 %r4, %r1, %r2, %r6;",
        ),
        (
            "mul.f32 %r5, %r1, %r2; sub.f32 %r4, %r3, %r5;",
            "neg.f32 %r6, %r1; fma.rn.f32 %r4, %r6, %r2, %r3;",
        ),
    ] {
        let fused = run_ptx(fused, Out::Word, &operands);
        assert!((0..12).any(|seed| with(bare, seed) == fused), "{bare}");
    }
    // The product's operand is overwritten in between: there is nothing left to fuse.
    let changed = "mul.f32 %r5, %r1, %r2; mov.b32 %r1, 0; add.f32 %r4, %r5, %r3;";
    assert!((0..12).all(|seed| with(changed, seed) == plain));
}

#[test]
fn comparisons_of_f16_flush_subnormals_where_they_are_told_to() {
    let flushed = |x: u64| {
        let bits = x as u16;
        f16::from_bits(if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }).to_f32()
    };
    check_on("setp.lt.ftz.f16 %p1, %h1, %h2;", Out::Bit, &word_triples(61), |a, b, _| {
        u64::from(flushed(a) < flushed(b))
    });
    check_on("set.eq.ftz.u32.f16 %r4, %h1, %h2;", Out::Word, &word_triples(62), |a, b, _| {
        if flushed(a) == flushed(b) { 0xffff_ffff } else { 0 }
    });
    let both = "setp.ge.ftz.f16x2 %p2|%p3, %r1, %r2; and.pred %p1, %p2, %p3;";
    check_on(both, Out::Bit, &word_triples(63), |a, b, _| {
        u64::from(flushed(a) >= flushed(b) && flushed(a >> 16) >= flushed(b >> 16))
    });
}

#[test]
fn a_reciprocal_is_flushed_by_its_quotient_and_not_by_what_rounding_makes_of_it() {
    let large = [0xfe80_0001_u64, 0x7e80_0001, 0x7e80_0000, 0x7f80_0000].map(|a| [a, 0, 0]);
    let down = run_ptx("rcp.rm.ftz.f32 %r4, %r1;", Out::Word, &large);
    assert_eq!(down, [0x8000_0000, 0, 0x0080_0000, 0]);
    let up = run_ptx("rcp.rp.ftz.f32 %r4, %r1;", Out::Word, &large);
    assert_eq!(up, [0x8000_0000, 0, 0x0080_0000, 0]);
}
