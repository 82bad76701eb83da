//! The functions compiled for AVX2 and FMA give the bits of the portable ones.

mod common;

use assay_emulator::{CompileOptions, LaunchConfig};
use assay_num::random::SplitMix64;
use common::{Out, run_ptx_with};
use proptest::prelude::*;

const INSTRUCTIONS: &[&str] = &[
    "add.f32 %r4, %r1, %r2;",
    "mul.ftz.f32 %r4, %r1, %r2;",
    "fma.rn.f32 %r4, %r1, %r2, %r3;",
    "fma.rn.ftz.f32 %r4, %r1, %r2, %r3;",
    "div.full.f32 %r4, %r1, %r2;",
    "max.f32 %r4, %r1, %r2;",
    "min.NaN.f32 %r4, %r1, %r2;",
    "ex2.approx.f32 %r4, %r1;",
    "rsqrt.approx.f32 %r4, %r1;",
    "cvt.rn.bf16x2.f32 %r4, %r1, %r2;",
    "cvt.rn.f16x2.f32 %r4, %r1, %r2;",
    "cvt.f32.f16 %r4, %h1;",
    "cvt.rzi.s32.f32 %r4, %r1;",
    "cvt.rn.f32.u32 %r4, %r1;",
    "fma.rn.f16x2 %r4, %r1, %r2, %r3;",
    "fma.rn.bf16x2 %r4, %r1, %r2, %r3;",
    "mad.lo.s32 %r4, %r1, %r2, %r3;",
    "mul.hi.s32 %r4, %r1, %r2;",
    "shf.l.wrap.b32 %r4, %r1, %r2, %r3;",
    "prmt.b32 %r4, %r1, %r2, %r3;",
    "bfe.s32 %r4, %r1, %r2, %r3;",
    "lop3.b32 %r4, %r1, %r2, %r3, 0xca;",
    "dp4a.s32.s32 %r4, %r1, %r2, %r3;",
    "setp.ltu.f32 %p1, %r1, %r2; selp.b32 %r4, %r1, %r3, %p1;",
    "popc.b32 %r4, %r1;",
    "clz.b32 %r4, %r1;",
];
const WIDE: &[&str] = &[
    "fma.rn.f64 %rd4, %rd1, %rd2, %rd3;",
    "mad.lo.s64 %rd4, %rd1, %rd2, %rd3;",
    "shr.s64 %rd4, %rd1, %r2;",
    "cvt.rn.f64.s32 %rd4, %r1;",
];

fn same(body: &str, out: Out, operands: &[[u64; 3]]) -> Result<(), TestCaseError> {
    let config = LaunchConfig::default();
    let run = |portable: bool| {
        let options = CompileOptions { portable, ..CompileOptions::default() };
        run_ptx_with(body, out, operands, &config, options)
    };
    prop_assert_eq!(run(false), run(true), "{}", body);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn wide_and_portable_functions_agree_bit_for_bit(seed: u64) {
        let mut random = SplitMix64::new(seed);
        let operands: Vec<[u64; 3]> = (0..512)
            .map(|_| {
                let exponent = random.below(3);
                [0; 3].map(|_| {
                    let bits = random.next_u64();
                    // A third anywhere, a third near one, a third with few bits.
                    match exponent {
                        0 => bits,
                        1 => bits & 0x80ff_ffff_80ff_ffff | 0x3f00_0000_3f00_0000,
                        _ => bits & 0xc000_001f_c000_001f,
                    }
                })
            })
            .collect();
        for body in INSTRUCTIONS {
            same(body, Out::Word, &operands)?;
        }
        for body in WIDE {
            same(body, Out::Wide, &operands)?;
        }
    }
}
