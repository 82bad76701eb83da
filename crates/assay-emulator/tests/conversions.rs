//! `cvt`, against Rust's casts, `half` and `float8`.

mod common;

use common::{
    Out, check, check_half, check_on, check_wide, f, f32_bits, ftz, run_ptx, wide_triples,
    word_triples,
};
use half::{bf16, f16};

#[test]
fn integers_widen_with_their_sign_and_narrow_by_cutting() {
    let words = word_triples(41);
    check("cvt.u32.u16 %r4, %h1;", |a, _, _| a & 0xffff);
    check("cvt.s32.s16 %r4, %h1;", |a, _, _| i32::from(a as i16) as u32);
    check("cvt.s32.s8 %r4, %r1;", |a, _, _| i32::from(a as i8) as u32);
    check("cvt.u32.u8 %r4, %r1;", |a, _, _| a & 0xff);
    check_on("cvt.u64.u32 %rd4, %r1;", Out::Wide, &words, |a, _, _| a);
    check_on("cvt.s64.s32 %rd4, %r1;", Out::Wide, &words, |a, _, _| i64::from(a as i32) as u64);
    check_on("cvt.u32.u64 %r4, %rd1;", Out::Word, &wide_triples(42), |a, _, _| a & 0xffff_ffff);
    check_on("cvt.u16.u32 %h4, %r1;", Out::Half, &words, |a, _, _| a & 0xffff);
    check_on("cvt.s16.s8 %h4, %r1;", Out::Half, &words, |a, _, _| i16::from(a as i8) as u16 as u64);
    // A destination wider than its type takes the sign along.
    check("cvt.s8.s32 %r4, %r1;", |a, _, _| i32::from(a as i8) as u32);
    check("cvt.u8.u32 %r4, %r1;", |a, _, _| a & 0xff);
}

#[test]
fn saturating_integer_conversions_clamp() {
    check("cvt.sat.u8.s32 %r4, %r1;", |a, _, _| (a as i32).clamp(0, 255) as u32);
    check("cvt.sat.s8.s32 %r4, %r1;", |a, _, _| (a as i32).clamp(-128, 127) as u32);
    check("cvt.sat.s32.u32 %r4, %r1;", |a, _, _| a.min(0x7fff_ffff));
    check("cvt.pack.sat.s16.s32 %r4, %r1, %r2;", |a, b, _| {
        let clamp = |x: u32| (x as i32).clamp(-0x8000, 0x7fff) as u32 & 0xffff;
        clamp(a) << 16 | clamp(b)
    });
    check("cvt.pack.sat.u8.s32.b32 %r4, %r1, %r2, %r3;", |a, b, c| {
        let clamp = |x: u32| (x as i32).clamp(0, 255) as u32;
        c << 16 | clamp(a) << 8 | clamp(b)
    });
}

#[test]
fn floats_become_integers_by_clamping_and_nan_becomes_zero() {
    type Round = fn(f32) -> f32;
    let modes: [(&str, Round); 4] = [
        ("rni", f32::round_ties_even),
        ("rzi", f32::trunc),
        ("rmi", f32::floor),
        ("rpi", f32::ceil),
    ];
    for (mode, round) in modes {
        check(&format!("cvt.{mode}.s32.f32 %r4, %r1;"), |a, _, _| round(f(a)) as i32 as u32);
        check(&format!("cvt.{mode}.u32.f32 %r4, %r1;"), |a, _, _| round(f(a)) as u32);
        check(&format!("cvt.{mode}.ftz.s32.f32 %r4, %r1;"), |a, _, _| {
            round(f(ftz(a))) as i32 as u32
        });
        check(&format!("cvt.{mode}.f32.f32 %r4, %r1;"), |a, _, _| f32_bits(round(f(a))));
    }
    check("cvt.rzi.u8.f32 %r4, %r1;", |a, _, _| u32::from(f(a) as u8));
    // ISA: NaN to 64 bits, and NaN from f64, is a one and zeros.
    check_on("cvt.rzi.s64.f32 %rd4, %r1;", Out::Wide, &word_triples(43), |a, _, _| {
        if f(a as u32).is_nan() { 1 << 63 } else { f(a as u32) as i64 as u64 }
    });
    check_on("cvt.rzi.s32.f64 %r4, %rd1;", Out::Word, &wide_triples(44), |a, _, _| {
        let x = f64::from_bits(a);
        u64::from(if x.is_nan() { 1 << 31 } else { x as i32 as u32 })
    });
}

#[test]
fn integers_become_floats_in_every_rounding() {
    check("cvt.rn.f32.s32 %r4, %r1;", |a, _, _| (a as i32 as f32).to_bits());
    check("cvt.rn.f32.u32 %r4, %r1;", |a, _, _| (a as f32).to_bits());
    check("cvt.rz.f32.u32 %r4, %r1;", |a, _, _| {
        let nearest = a as f32;
        (if f64::from(nearest) > f64::from(a) { nearest.next_down() } else { nearest }).to_bits()
    });
    check_wide("cvt.rn.f64.s64 %rd4, %rd1;", |a, _, _| (a as i64 as f64).to_bits());
    check_on("cvt.rn.f32.u64 %r4, %rd1;", Out::Word, &wide_triples(45), |a, _, _| {
        (a as f32).to_bits().into()
    });
    check_on("cvt.rn.f64.u32 %rd4, %r1;", Out::Wide, &word_triples(46), |a, _, _| {
        (a as f64).to_bits()
    });
    check_on("cvt.rn.f16.s32 %h4, %r1;", Out::Half, &word_triples(47), |a, _, _| {
        f16::from_f64(f64::from(a as i32)).to_bits().into()
    });
}

#[test]
fn floats_of_other_widths_round_to_nearest_even() {
    check_on("cvt.rn.f32.f64 %r4, %rd1;", Out::Word, &wide_triples(48), |a, _, _| {
        let x = f64::from_bits(a);
        // NaN keeps its sign and the top of its payload.
        let nan = a >> 32 & 0x8000_0000 | 0x7fc0_0000 | a >> 29 & 0x3f_ffff;
        if x.is_nan() { nan } else { (x as f32).to_bits().into() }
    });
    check_on("cvt.f64.f32 %rd4, %r1;", Out::Wide, &not_nan(49), |a, _, _| {
        f64::from(f(a as u32)).to_bits()
    });
    let words = word_triples(50);
    check_on("cvt.rn.f16.f32 %h4, %r1;", Out::Half, &words, |a, _, _| half(f(a as u32)).into());
    check_on("cvt.rn.bf16.f32 %h4, %r1;", Out::Half, &words, |a, _, _| bhalf(f(a as u32)).into());
    check("cvt.f32.f16 %r4, %h1;", |a, _, _| f32_bits(f16::from_bits(a as u16).to_f32()));
    check("cvt.f32.bf16 %r4, %h1;", |a, _, _| a << 16);
    check("cvt.rn.bf16x2.f32 %r4, %r1, %r2;", |a, b, _| {
        u32::from(bhalf(f(a))) << 16 | u32::from(bhalf(f(b)))
    });
    check("cvt.rn.f16x2.f32 %r4, %r1, %r2;", |a, b, _| {
        u32::from(half(f(a))) << 16 | u32::from(half(f(b)))
    });
    check("cvt.rn.relu.bf16x2.f32 %r4, %r1, %r2;", |a, b, _| {
        let relu = |x: u16| if x & 0x8000 != 0 && x & 0x7fff <= 0x7f80 { 0 } else { x };
        u32::from(relu(bhalf(f(a)))) << 16 | u32::from(relu(bhalf(f(b))))
    });
}

fn not_nan(seed: u64) -> Vec<[u64; 3]> {
    word_triples(seed).into_iter().filter(|t| !f(t[0] as u32).is_nan()).collect()
}

fn half(x: f32) -> u16 {
    if x.is_nan() { 0x7fff } else { f16::from_f32(x).to_bits() }
}

fn bhalf(x: f32) -> u16 {
    if x.is_nan() { 0x7fff } else { bf16::from_f32(x).to_bits() }
}

#[test]
fn every_half_survives_a_trip_through_f32() {
    let all: Vec<[u64; 3]> = (0..0x1_0000).map(|bits| [bits, 0, 0]).collect();
    for name in ["f16", "bf16"] {
        let trip = format!("cvt.f32.{name} %r5, %h1; cvt.rn.{name}.f32 %h4, %r5;");
        let nan = |bits: u64| match name {
            "f16" => f16::from_bits(bits as u16).is_nan(),
            _ => bf16::from_bits(bits as u16).is_nan(),
        };
        check_on(&trip, Out::Half, &all, |a, _, _| if nan(a) { 0x7fff } else { a });
    }
}

#[test]
fn directed_roundings_reach_the_narrow_formats() {
    check_on("cvt.rz.f16.f32 %h4, %r1;", Out::Half, &not_nan(51), |a, _, _| {
        let x = f(a as u32);
        let nearest = f16::from_f32(x);
        let past = nearest.to_f64().abs() > f64::from(x).abs() && x.is_finite();
        (if past { nearest.to_bits() - 1 } else { nearest.to_bits() }).into()
    });
    check("cvt.rna.tf32.f32 %r4, %r1;", |a, _, _| {
        let x = f(a);
        // The hardware cuts the payload of NaN, even when an infinity is left.
        if x.is_nan() || x.is_infinite() { a & !0x1fff } else { a.wrapping_add(0x1000) & !0x1fff }
    });
    check("cvt.rn.satfinite.f16x2.f32 %r4, %r1, %r2;", |a, b, _| {
        let clamp = |x: f32| {
            let bits = half(x);
            if bits & 0x7fff == 0x7c00 { bits - 1 } else { bits }
        };
        u32::from(clamp(f(a))) << 16 | u32::from(clamp(f(b)))
    });
    check_half("cvt.sat.f16.f16 %h4, %h1;", |a, _, _| {
        let x = f16::from_bits(a).to_f32();
        f16::from_f32(if x >= 1.0 {
            1.0
        } else if x > 0.0 {
            x
        } else {
            0.0
        })
        .to_bits()
    });
    check("cvt.sat.f32.f32 %r4, %r1;", |a, _, _| {
        let x = f(a);
        (if x >= 1.0 {
            1.0_f32
        } else if x > 0.0 {
            x
        } else {
            0.0
        })
        .to_bits()
    });
}

#[test]
fn eight_bit_floats_saturate_and_keep_nan() {
    use float8::{F8E4M3, F8E5M2};
    let e4m3 = |x: f32| -> u32 {
        if x.is_nan() { 0x7f } else { F8E4M3::from_f32(x.clamp(-448.0, 448.0)).to_bits().into() }
    };
    let e5m2 = |x: f32| -> u32 {
        if x.is_nan() {
            0x7f
        } else {
            F8E5M2::from_f32(x.clamp(-57344.0, 57344.0)).to_bits().into()
        }
    };
    let near: Vec<[u64; 3]> = (0..20_000_u64)
        .map(|n| {
            let spread = (n * 0x9e37_79b9) as u32;
            [
                u64::from(spread & 0x8fff_ffff | 0x3800_0000),
                u64::from(spread.rotate_left(9) & 0xcfff_ffff),
                0,
            ]
        })
        .chain(word_triples(52))
        .collect();
    check_on("cvt.rn.satfinite.e4m3x2.f32 %h4, %r1, %r2;", Out::Half, &near, |a, b, _| {
        u64::from(e4m3(f(a as u32)) << 8 | e4m3(f(b as u32)))
    });
    check_on("cvt.rn.satfinite.e5m2x2.f32 %h4, %r1, %r2;", Out::Half, &near, |a, b, _| {
        u64::from(e5m2(f(a as u32)) << 8 | e5m2(f(b as u32)))
    });
    let all: Vec<[u64; 3]> = (0..0x1_0000).map(|bits| [bits, 0, 0]).collect();
    check_on("cvt.rn.f16x2.e4m3x2 %r4, %h1;", Out::Word, &all, |a, _, _| {
        let part = |bits: u64| u64::from(half(F8E4M3::from_bits(bits as u8).to_f32()));
        part(a >> 8) << 16 | part(a)
    });
    check_on("cvt.rn.f16x2.e5m2x2 %r4, %h1;", Out::Word, &all, |a, _, _| {
        let part = |bits: u64| u64::from(half(F8E5M2::from_bits(bits as u8).to_f32()));
        part(a >> 8) << 16 | part(a)
    });
}

#[test]
fn a_negative_overflow_under_relu_is_zero_and_the_largest_tf32_has_zeros_at_its_end() {
    let overflows = [0xc77f_f000_u64, 0xff80_0000, 0x477f_f000, 0x7f80_0000].map(|a| [a, 0, 0]);
    let want = [0, 0, 0x7bff, 0x7bff];
    let got = run_ptx("cvt.rn.relu.satfinite.f16.f32 %h4, %r1;", Out::Half, &overflows);
    assert_eq!(got, want);
    let overflows = [0xff7f_ffff_u64, 0xff80_0000, 0x7f7f_ffff, 0x7f80_0000].map(|a| [a, 0, 0]);
    let got = run_ptx("cvt.rn.relu.satfinite.bf16.f32 %h4, %r1;", Out::Half, &overflows);
    assert_eq!(got, [0, 0, 0x7f7f, 0x7f7f]);
    let got = run_ptx("cvt.rna.satfinite.tf32.f32 %r4, %r1;", Out::Word, &overflows);
    assert_eq!(got, [0xff7f_e000, 0xff7f_e000, 0x7f7f_e000, 0x7f7f_e000]);
}
