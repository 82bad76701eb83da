//! Registers of 128 bits, sums of halves and singles, and formats of eight bits and fewer: what
//! newer architectures added. No GPU here has most of these forms; the oracle is plain Rust.

mod common;

use assay_emulator::{FaultKind, LaunchConfig};
use common::{
    Bench, Out, check, check_on, f, f32_bits, line_of, pointer_kernel, run_ptx, wide_triples,
};
use half::{bf16, f16};

#[test]
fn a_128_bit_register_goes_through_moves_memory_and_back() {
    let body = "{ .reg .b128 %q<4>; .reg .b64 %low, %high;
        mov.b128 %q1, {%rd1, %rd2};
        mov.b128 %q2, %q1;
        mov.u64 %low, buffer;
        mad.wide.u32 %low, %i4, 16, %low;
        st.shared.b128 [%low], %q2;
        ld.shared.b128 %q3, [%low];
        mov.b128 {%low, %high}, %q3;
        xor.b64 %rd4, %low, %high; }";
    check_on(body, Out::Wide, &wide_triples(90), |a, b, _| a ^ b);
    let sink = "{ .reg .b128 %q1; mov.b128 %q1, {%rd1, %rd2}; mov.b128 {_, %rd4}, %q1; }";
    check_on(sink, Out::Wide, &wide_triples(91), |_, b, _| b);
}

#[test]
fn a_128_bit_exchange_compares_all_bits() {
    let body = |compared: &str| {
        format!(
            "{{ .reg .b128 %q<5>; .reg .b64 %at;
        mov.u64 %at, buffer;
        mad.wide.u32 %at, %i4, 16, %at;
        mov.b128 %q1, {{%rd1, %rd2}};
        st.shared.b128 [%at], %q1;
        mov.b128 %q2, {{{compared}}};
        mov.b128 %q3, {{%rd3, %rd3}};
        atom.shared.cas.b128 %q4, [%at], %q2, %q3;
        atom.shared.exch.b128 %q4, [%at], %q1;
        mov.b128 {{%rd4, _}}, %q4; }}"
        )
    };
    let differ = |[a, b, c]: [u64; 3]| a != b && a != c;
    let triples: Vec<[u64; 3]> = wide_triples(92).into_iter().filter(|t| differ(*t)).collect();
    let changed = run_ptx(&body("%rd1, %rd2"), Out::Wide, &triples);
    let kept = run_ptx(&body("%rd1, %rd1"), Out::Wide, &triples);
    for ([a, _, c], (changed, kept)) in triples.iter().zip(changed.iter().zip(&kept)) {
        assert_eq!((changed, kept), (c, a));
    }
}

#[test]
fn a_128_bit_access_at_half_its_size_is_misaligned_and_names_its_line() {
    for access in ["ld.global.b128 %q1, [%rd1+8];", "atom.global.exch.b128 %q1, [%rd1+8], %q1;"] {
        let body = format!("mov.b128 %q1, {{%rd1, %rd1}};\n{access}");
        let source = pointer_kernel(".reg .b128 %q<2>;", &body);
        let mut bench = Bench::new(64);
        let fault = bench.launch(&source, &LaunchConfig::default()).expect_err("it is misaligned");
        assert!(matches!(fault.kind, FaultKind::Misaligned { bytes: 16, .. }), "{fault}");
        assert_eq!(fault.line, Some(line_of(&source, access)), "{fault}");
    }
}

#[test]
fn half_operands_widen_exactly_before_a_single_precision_sum() {
    check("add.f32.f16 %r4, %h1, %r3;", |a, _, c| {
        f32_bits(f16::from_bits(a as u16).to_f32() + f(c))
    });
    check("sub.f32.bf16 %r4, %h1, %r3;", |a, _, c| {
        f32_bits(bf16::from_bits(a as u16).to_f32() - f(c))
    });
    check("fma.rn.f32.f16 %r4, %h1, %h2, %r3;", |a, b, c| {
        let [a, b] = [a, b].map(|x| f16::from_bits(x as u16).to_f32());
        f32_bits(a.mul_add(b, f(c)))
    });
    check("fma.rn.sat.f32.bf16 %r4, %h1, %h2, %r3;", |a, b, c| {
        let [a, b] = [a, b].map(|x| bf16::from_bits(x as u16).to_f32());
        let sum = a.mul_add(b, f(c));
        if sum > 0.0 { f32_bits(sum.min(1.0)) } else { 0 }
    });
}

/// The code of an e2m1 number nearest to a value, ties to the even code.
fn e2m1(value: f32) -> u32 {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    if value.is_nan() {
        return 7;
    }
    let distance = |code: usize| (value.abs().min(6.0) - MAGNITUDES[code]).abs();
    let nearer = |best: usize, code: usize| {
        let tie = distance(code) == distance(best) && code.is_multiple_of(2);
        if distance(code) < distance(best) || tie { code } else { best }
    };
    let code = (1..8).fold(0, nearer);
    code as u32 | u32::from(value.is_sign_negative()) << 3
}

#[test]
fn e2m1_takes_the_nearest_of_its_sixteen_values_and_nan_the_largest() {
    let body = "{ .reg .b8 %byte; cvt.rn.satfinite.e2m1x2.f32 %byte, %r1, %r2;
        cvt.u32.u8 %r4, %byte; }";
    check(body, |a, b, _| e2m1(f(a)) << 4 | e2m1(f(b)));
    let back = "{ .reg .b8 %byte; cvt.u8.u32 %byte, %r1; cvt.rn.f16x2.e2m1x2 %r4, %byte; }";
    check(back, |a, _, _| {
        let value = |code: u32| {
            let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code as usize & 7];
            let bits = f16::from_f32(magnitude).to_bits();
            u32::from(bits | if code & 8 == 0 { 0 } else { 0x8000 })
        };
        value(a >> 4 & 15) << 16 | value(a & 15)
    });
}

#[test]
fn a_block_scale_is_a_power_of_two_that_a_conversion_multiplies_by() {
    let body = "{ .reg .b16 %s; .reg .b8 %byte;
        cvt.rp.satfinite.ue8m0x2.f32 %s, %r1, %r1;
        mov.b16 %h5, 0x22;
        cvt.u8.u16 %byte, %h5;
        cvt.rn.scaled::n2::ue8m0.bf16x2.e2m1x2 %r4, %byte, %s; }";
    // The code 2 is 1.0: the result is the scale itself, in both halves.
    check(body, |a, _, _| {
        let magnitude = f(a).abs();
        let power = match magnitude {
            x if x.is_nan() => return 0x7fff_7fff,
            x if x > 2_f32.powi(127) => 2_f32.powi(127),
            x if x <= 2_f32.powi(-127) => 2_f32.powi(-127),
            x => {
                let down = f32::from_bits(x.to_bits() & 0x7f80_0000).max(2_f32.powi(-127));
                if down == x { down } else { down * 2.0 }
            }
        };
        let bits = u32::from(bf16::from_f32(power).to_bits());
        bits << 16 | bits
    });
}

#[test]
fn stochastic_rounding_with_no_random_bits_cuts_and_with_all_of_them_goes_away_from_zero() {
    let cut = "mov.b32 %r5, 0; cvt.rs.bf16x2.f32 %r4, %r1, %r1, %r5;";
    check(cut, |a, _, _| {
        let bits = if f(a).is_nan() { 0x7fff } else { a >> 16 };
        bits << 16 | bits
    });
    let four = "{ .reg .b32 %x; cvt.rs.satfinite.e4m3x4.f32 %x, {%r1, %r2, %r1, %r2}, %r3;
        shr.u32 %r4, %x, 16; and.b32 %x, %x, 0xffff; xor.b32 %r4, %r4, %x; }";
    // With the same random bits for both pairs, both are the same.
    let triples: Vec<[u64; 3]> =
        wide_triples(93).iter().map(|[a, b, _]| [*a, *b, 0x1234_1234]).collect();
    check_on(four, Out::Word, &triples, |_, _, _| 0);
}
