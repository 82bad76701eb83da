//! Integer opcodes, each against plain Rust.

mod common;

use common::{Out, check, check_half, check_on, check_wide, wide_triples, word_triples};

#[test]
fn sums_and_differences_wrap() {
    check("add.s32 %r4, %r1, %r2;", |a, b, _| a.wrapping_add(b));
    check("sub.u32 %r4, %r1, %r2;", |a, b, _| a.wrapping_sub(b));
    check("add.s32 %r4, %r1, -7;", |a, _, _| a.wrapping_sub(7));
    check_half("add.s16 %h4, %h1, %h2;", |a, b, _| a.wrapping_add(b));
    check_half("sub.u16 %h4, %h1, %h2;", |a, b, _| a.wrapping_sub(b));
    check_wide("add.s64 %rd4, %rd1, %rd2;", |a, b, _| a.wrapping_add(b));
    check_wide("sub.u64 %rd4, %rd1, %rd2;", |a, b, _| a.wrapping_sub(b));
}

#[test]
fn saturating_sums_stop_at_the_ends() {
    check("add.sat.s32 %r4, %r1, %r2;", |a, b, _| (a as i32).saturating_add(b as i32) as u32);
    check("sub.sat.s32 %r4, %r1, %r2;", |a, b, _| (a as i32).saturating_sub(b as i32) as u32);
}

#[test]
fn products_have_low_high_and_wide_forms() {
    check("mul.lo.s32 %r4, %r1, %r2;", |a, b, _| a.wrapping_mul(b));
    check("mul.hi.u32 %r4, %r1, %r2;", |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32);
    check("mul.hi.s32 %r4, %r1, %r2;", |a, b, _| {
        ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
    });
    check_half("mul.lo.u16 %h4, %h1, %h2;", |a, b, _| a.wrapping_mul(b));
    check_half("mul.hi.s16 %h4, %h1, %h2;", |a, b, _| {
        ((i32::from(a as i16) * i32::from(b as i16)) >> 16) as u16
    });
    check_wide("mul.lo.u64 %rd4, %rd1, %rd2;", |a, b, _| a.wrapping_mul(b));
    check_wide("mul.hi.u64 %rd4, %rd1, %rd2;", |a, b, _| {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    });
    check_wide("mul.hi.s64 %rd4, %rd1, %rd2;", |a, b, _| {
        ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
    });
    let words = word_triples(21);
    check_on("mul.wide.u32 %rd4, %r1, %r2;", Out::Wide, &words, |a, b, _| a * b);
    check_on("mul.wide.s32 %rd4, %r1, %r2;", Out::Wide, &words, |a, b, _| {
        (i64::from(a as i32) * i64::from(b as i32)) as u64
    });
    check_on("mul.wide.u16 %r4, %h1, %h2;", Out::Word, &words, |a, b, _| {
        u64::from(a as u16) * u64::from(b as u16)
    });
    check_on("mul.wide.s16 %r4, %h1, %h2;", Out::Word, &words, |a, b, _| {
        u64::from((i32::from(a as i16) * i32::from(b as i16)) as u32)
    });
}

#[test]
fn multiply_adds_add_the_third_operand() {
    check("mad.lo.s32 %r4, %r1, %r2, %r3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    check("mad.hi.u32 %r4, %r1, %r2, %r3;", |a, b, c| {
        (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c)
    });
    check("mad.hi.sat.s32 %r4, %r1, %r2, %r3;", |a, b, c| {
        let high = ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as i32;
        high.saturating_add(c as i32) as u32
    });
    check_wide("mad.lo.s64 %rd4, %rd1, %rd2, %rd3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c));
    check_on("mad.wide.s32 %rd4, %r1, %r2, %rd3;", Out::Wide, &word_triples(22), |a, b, c| {
        ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)
    });
    let low = |x: u32| i64::from((x << 8) as i32 >> 8);
    check("mul24.lo.s32 %r4, %r1, %r2;", |a, b, _| (low(a) * low(b)) as u32);
    check("mul24.hi.s32 %r4, %r1, %r2;", |a, b, _| ((low(a) * low(b)) >> 16) as u32);
    check("mad24.lo.u32 %r4, %r1, %r2, %r3;", |a, b, c| {
        ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) as u32).wrapping_add(c)
    });
}

#[test]
fn carries_chain_through_a_long_sum_and_product() {
    check_wide(
        "mov.b64 {%r5, %r6}, %rd1; mov.b64 {%r7, %r8}, %rd2;
         add.cc.u32 %r9, %r5, %r7; addc.u32 %r10, %r6, %r8; mov.b64 %rd4, {%r9, %r10};",
        |a, b, _| a.wrapping_add(b),
    );
    check_wide(
        "mov.b64 {%r5, %r6}, %rd1; mov.b64 {%r7, %r8}, %rd2;
         sub.cc.u32 %r9, %r5, %r7; subc.u32 %r10, %r6, %r8; mov.b64 %rd4, {%r9, %r10};",
        |a, b, _| a.wrapping_sub(b),
    );
    check_on(
        "mov.u32 %r5, 0; mad.lo.cc.u32 %r6, %r1, %r2, %r3; madc.hi.u32 %r7, %r1, %r2, 0;
         mov.b64 %rd4, {%r6, %r7};",
        Out::Wide,
        &word_triples(23),
        |a, b, c| a * b + c,
    );
    check_wide("add.cc.u64 %rd5, %rd1, %rd2; addc.u64 %rd4, 0, 0;", |a, b, _| {
        u64::from(a.checked_add(b).is_none())
    });
}

#[test]
fn division_by_zero_gives_all_ones() {
    check("div.u32 %r4, %r1, %r2;", |a, b, _| a.checked_div(b).unwrap_or(u32::MAX));
    check("div.s32 %r4, %r1, %r2;", |a, b, _| {
        if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
    });
    check("rem.u32 %r4, %r1, %r2;", |a, b, _| a.checked_rem(b).unwrap_or(u32::MAX));
    check("rem.s32 %r4, %r1, %r2;", |a, b, _| {
        if b == 0 { u32::MAX } else { (a as i32).wrapping_rem(b as i32) as u32 }
    });
    check_wide("div.s64 %rd4, %rd1, %rd2;", |a, b, _| {
        if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
    });
    check_wide("rem.u64 %rd4, %rd1, %rd2;", |a, b, _| a.checked_rem(b).unwrap_or(u64::MAX));
    check_half("div.u16 %h4, %h1, %h2;", |a, b, _| a.checked_div(b).unwrap_or(u16::MAX));
}

#[test]
fn minimum_maximum_and_magnitude_follow_the_sign_of_the_type() {
    check("min.s32 %r4, %r1, %r2;", |a, b, _| (a as i32).min(b as i32) as u32);
    check("min.u32 %r4, %r1, %r2;", |a, b, _| a.min(b));
    check("max.s32 %r4, %r1, %r2;", |a, b, _| (a as i32).max(b as i32) as u32);
    check("max.relu.s32 %r4, %r1, %r2;", |a, b, _| (a as i32).max(b as i32).max(0) as u32);
    check_half("max.s16 %h4, %h1, %h2;", |a, b, _| (a as i16).max(b as i16) as u16);
    check_wide("max.u64 %rd4, %rd1, %rd2;", |a, b, _| a.max(b));
    check_wide("min.s64 %rd4, %rd1, %rd2;", |a, b, _| (a as i64).min(b as i64) as u64);
    check("abs.s32 %r4, %r1;", |a, _, _| (a as i32).wrapping_abs() as u32);
    check("neg.s32 %r4, %r1;", |a, _, _| a.wrapping_neg());
    check_half("neg.s16 %h4, %h1;", |a, _, _| a.wrapping_neg());
    check_wide("abs.s64 %rd4, %rd1;", |a, _, _| (a as i64).wrapping_abs() as u64);
    check("sad.u32 %r4, %r1, %r2, %r3;", |a, b, c| a.abs_diff(b).wrapping_add(c));
    check("sad.s32 %r4, %r1, %r2, %r3;", |a, b, c| (a as i32).abs_diff(b as i32).wrapping_add(c));
}

#[test]
fn packed_halves_do_not_carry_into_each_other() {
    let both = |a: u32, b: u32, op: fn(u16, u16) -> u16| {
        u32::from(op(a as u16, b as u16)) | u32::from(op((a >> 16) as u16, (b >> 16) as u16)) << 16
    };
    check("add.u16x2 %r4, %r1, %r2;", |a, b, _| both(a, b, u16::wrapping_add));
    check("min.u16x2 %r4, %r1, %r2;", |a, b, _| both(a, b, u16::min));
    check("max.s16x2 %r4, %r1, %r2;", |a, b, _| both(a, b, |a, b| (a as i16).max(b as i16) as u16));
}

#[test]
fn shifts_clamp_their_count() {
    check("shl.b32 %r4, %r1, %r2;", |a, b, _| a.checked_shl(b).unwrap_or(0));
    check("shr.u32 %r4, %r1, %r2;", |a, b, _| a.checked_shr(b).unwrap_or(0));
    check("shr.s32 %r4, %r1, %r2;", |a, b, _| ((a as i32) >> b.min(31)) as u32);
    let words = word_triples(24);
    check_on("shl.b16 %h4, %h1, %r2;", Out::Half, &words, |a, b, _| {
        u64::from((a as u16).checked_shl(b as u32).unwrap_or(0))
    });
    check_on("shr.s16 %h4, %h1, %r2;", Out::Half, &words, |a, b, _| {
        u64::from(((a as i16) >> b.min(15)) as u16)
    });
    check_on("shl.b64 %rd4, %rd1, %r2;", Out::Wide, &wide_triples(25), |a, b, _| {
        a.checked_shl(b as u32).unwrap_or(0)
    });
    check_on("shr.s64 %rd4, %rd1, %r2;", Out::Wide, &wide_triples(26), |a, b, _| {
        ((a as i64) >> (b as u32).min(63)) as u64
    });
}

#[test]
fn funnel_shifts_clamp_or_wrap() {
    let joined = |a: u32, b: u32| u64::from(b) << 32 | u64::from(a);
    check("shf.l.wrap.b32 %r4, %r1, %r2, %r3;", |a, b, c| {
        ((joined(a, b) << (c & 31)) >> 32) as u32
    });
    check("shf.r.wrap.b32 %r4, %r1, %r2, %r3;", |a, b, c| (joined(a, b) >> (c & 31)) as u32);
    check("shf.l.clamp.b32 %r4, %r1, %r2, %r3;", |a, b, c| {
        ((u128::from(joined(a, b)) << c.min(32)) >> 32) as u32
    });
    check("shf.r.clamp.b32 %r4, %r1, %r2, %r3;", |a, b, c| (joined(a, b) >> c.min(32)) as u32);
}

#[test]
fn logic_works_bit_by_bit() {
    check("and.b32 %r4, %r1, %r2;", |a, b, _| a & b);
    check("or.b32 %r4, %r1, %r2;", |a, b, _| a | b);
    check("xor.b32 %r4, %r1, %r2;", |a, b, _| a ^ b);
    check("not.b32 %r4, %r1;", |a, _, _| !a);
    check("cnot.b32 %r4, %r1;", |a, _, _| u32::from(a == 0));
    check_wide("xor.b64 %rd4, %rd1, %rd2;", |a, b, _| a ^ b);
    check_wide("not.b64 %rd4, %rd1;", |a, _, _| !a);
    check_half("and.b16 %h4, %h1, %h2;", |a, b, _| a & b);
    check_half("not.b16 %h4, %h1;", |a, _, _| !a);
}

#[test]
fn every_table_of_lop3_is_a_truth_table() {
    for table in [0x00, 0x01, 0x78, 0xea, 0x96, 0xca, 0xe8, 0x80, 0xfe, 0x1b, 0xff] {
        check(&format!("lop3.b32 %r4, %r1, %r2, %r3, {table:#x};"), |a, b, c| {
            (0..32).fold(0, |result, bit| {
                let index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1);
                result | (table >> index & 1) << bit
            })
        });
    }
}

#[test]
fn lop3_can_give_a_predicate_too() {
    check(
        "setp.gt.u32 %p2, %r3, 99; lop3.and.b32 %r5|%p1, %r1, %r2, %r3, 0xc0, %p2;
         selp.b32 %r4, %r5, 7, %p1;",
        |a, b, c| if a & b != 0 && c > 99 { a & b } else { 7 },
    );
}

#[test]
fn bit_fields_are_cut_out_and_put_in() {
    let cut = |a: i128, width: u32, position: u32, length: u32, signed: bool| -> i128 {
        // ISA 9.7.1.18, bit by bit.
        let bit = |n: u32| (a >> n.min(width - 1)) & 1;
        let sign =
            if !signed || length == 0 { 0 } else { bit((position + length - 1).min(width - 1)) };
        (0..width).fold(0, |result, n| {
            let inside = n < length && position + n < width;
            result | (if inside { bit(position + n) } else { sign }) << n
        })
    };
    check("bfe.u32 %r4, %r1, %r2, %r3;", |a, b, c| {
        cut(a.into(), 32, b & 0xff, c & 0xff, false) as u32
    });
    check("bfe.s32 %r4, %r1, %r2, %r3;", |a, b, c| {
        cut(a.into(), 32, b & 0xff, c & 0xff, true) as u32
    });
    check_on("bfe.s64 %rd4, %rd1, %r2, %r3;", Out::Wide, &wide_triples(27), |a, b, c| {
        cut(a.into(), 64, (b as u32).min(255), (c as u32).min(255), true) as u64
    });
    let put = |a: u64, b: u64, position: u32, length: u32, width: u32| {
        (0..width).fold(0, |result, n| {
            let inside = n >= position && n - position < length;
            let bit = if inside { a >> (n - position) } else { b >> n };
            result | (bit & 1) << n
        })
    };
    check("bfi.b32 %r4, %r1, %r2, %r3, 9;", |a, b, c| {
        put(a.into(), b.into(), c & 0xff, 9, 32) as u32
    });
    check_on("bfi.b64 %rd4, %rd1, %rd2, 17, %r3;", Out::Wide, &wide_triples(28), |a, b, c| {
        put(a, b, 17, (c as u32).min(255), 64)
    });
    check("bmsk.clamp.b32 %r4, %r1, %r2;", |a, b, _| {
        let ones = if b >= 32 { u32::MAX } else { (1 << b) - 1 };
        ones.checked_shl(a).unwrap_or(0)
    });
    check("szext.wrap.s32 %r4, %r1, %r2;", |a, b, _| match b & 31 {
        0 => 0,
        bits => (((a << (32 - bits)) as i32) >> (32 - bits)) as u32,
    });
}

#[test]
fn bits_are_counted_found_and_reversed() {
    check("popc.b32 %r4, %r1;", |a, _, _| a.count_ones());
    check("clz.b32 %r4, %r1;", |a, _, _| a.leading_zeros());
    check("brev.b32 %r4, %r1;", |a, _, _| a.reverse_bits());
    check("bfind.u32 %r4, %r1;", |a, _, _| a.checked_ilog2().unwrap_or(u32::MAX));
    check("bfind.shiftamt.u32 %r4, %r1;", |a, _, _| a.checked_ilog2().map_or(u32::MAX, |n| 31 - n));
    check("bfind.s32 %r4, %r1;", |a, _, _| {
        let a = if (a as i32) < 0 { !a } else { a };
        a.checked_ilog2().unwrap_or(u32::MAX)
    });
    let wide = wide_triples(29);
    check_on("popc.b64 %r4, %rd1;", Out::Word, &wide, |a, _, _| a.count_ones().into());
    check_on("clz.b64 %r4, %rd1;", Out::Word, &wide, |a, _, _| a.leading_zeros().into());
    check_on("bfind.u64 %r4, %rd1;", Out::Word, &wide, |a, _, _| {
        a.checked_ilog2().unwrap_or(u32::MAX).into()
    });
    check_wide("brev.b64 %rd4, %rd1;", |a, _, _| a.reverse_bits());
    check("fns.b32 %r4, %r1, 3, 2;", |a, _, _| {
        (3..32).filter(|n| a >> n & 1 == 1).nth(1).unwrap_or(u32::MAX)
    });
    check("fns.b32 %r4, %r1, 20, -1;", |a, _, _| {
        (0..=20).rev().find(|n| a >> n & 1 == 1).unwrap_or(u32::MAX)
    });
}

#[test]
fn prmt_picks_bytes_and_replicates_signs() {
    check("prmt.b32 %r4, %r1, %r2, %r3;", |a, b, c| {
        let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
        let picked = [0, 4, 8, 12].map(|shift| {
            let selector = c >> shift & 0xf;
            let byte = bytes[selector as usize & 7];
            if selector & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
        });
        u32::from_le_bytes(picked)
    });
    check("prmt.b32.f4e %r4, %r1, %r2, %r3;", |a, b, c| {
        ((u64::from(b) << 32 | u64::from(a)) >> (8 * (c & 3))) as u32
    });
    check("prmt.b32.rc8 %r4, %r1, %r2, %r3;", |a, _, c| (a >> (8 * (c & 3)) & 0xff) * 0x0101_0101);
    check("prmt.b32.rc16 %r4, %r1, %r2, %r3;", |a, _, c| {
        (a >> (16 * (c & 1)) & 0xffff) * 0x0001_0001
    });
}

#[test]
fn dot_products_of_bytes_mix_signs() {
    let dot = |a: u32, b: u32, c: u32, signed: (bool, bool)| {
        let byte = |x: u8, signed: bool| if signed { i32::from(x as i8) } else { i32::from(x) };
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        (0..4).fold(c, |sum, n| {
            sum.wrapping_add((byte(a[n], signed.0) * byte(b[n], signed.1)) as u32)
        })
    };
    check("dp4a.s32.s32 %r4, %r1, %r2, %r3;", |a, b, c| dot(a, b, c, (true, true)));
    check("dp4a.u32.u32 %r4, %r1, %r2, %r3;", |a, b, c| dot(a, b, c, (false, false)));
    check("dp4a.s32.u32 %r4, %r1, %r2, %r3;", |a, b, c| dot(a, b, c, (true, false)));
    check("dp2a.hi.s32.s32 %r4, %r1, %r2, %r3;", |a, b, c| {
        let bytes = b.to_le_bytes();
        let low = i32::from(a as i16) * i32::from(bytes[2] as i8);
        let high = i32::from((a >> 16) as i16) * i32::from(bytes[3] as i8);
        c.wrapping_add(low as u32).wrapping_add(high as u32)
    });
}

#[test]
fn moves_pack_and_unpack() {
    check_on("mov.b64 %rd4, {%r1, %r2};", Out::Wide, &word_triples(30), |a, b, _| b << 32 | a);
    check_wide("mov.b64 {%r5, %r6}, %rd1; mov.b64 %rd4, {%r6, %r5};", |a, _, _| a.rotate_left(32));
    check("mov.b32 %r4, {%h1, %h2};", |a, b, _| a & 0xffff | b << 16);
    check("mov.b32 {%h5, %h6}, %r1; mov.b32 %r4, {%h6, %h5};", |a, _, _| a.rotate_left(16));
    check("mov.b32 {_, %h5}, %r1; cvt.u32.u16 %r4, %h5;", |a, _, _| a >> 16);
    check_wide(
        "mov.b64 {%h5, %h6, %h7, %h8}, %rd1; mov.b64 %rd4, {%h8, %h7, %h6, %h5};",
        |a, _, _| {
            let [p, q, r, s] = [0, 16, 32, 48].map(|n| a >> n & 0xffff);
            p << 48 | q << 32 | r << 16 | s
        },
    );
}

#[test]
fn selections_follow_predicates_and_signs() {
    check("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r4, %r1, %r2, %p1;", |a, b, _| {
        if (a as i32) < (b as i32) { a } else { b }
    });
    check(
        "setp.lt.u32 %p1, %r1, %r2; selp.b32 %r4, %r1, 5, !%p1;",
        |a, b, _| {
            if a < b { 5 } else { a }
        },
    );
    check("slct.s32.s32 %r4, %r1, %r2, %r3;", |a, b, c| if c as i32 >= 0 { a } else { b });
    check(
        "slct.b32.f32 %r4, %r1, %r2, %r3;",
        |a, b, c| {
            if f32::from_bits(c) >= 0.0 { a } else { b }
        },
    );
}

#[test]
fn video_instructions_work_on_bytes_and_halves() {
    let bytes = |a: u32, b: u32, op: fn(u8, u8) -> u8| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        u32::from_le_bytes([0, 1, 2, 3].map(|n| op(a[n], b[n])))
    };
    check("vabsdiff4.u32.u32.u32 %r4, %r1, %r2, %r3;", |a, b, _| bytes(a, b, u8::abs_diff));
    check("vadd4.u32.u32.u32.sat %r4, %r1, %r2, %r3;", |a, b, _| bytes(a, b, u8::saturating_add));
    check("vabsdiff4.u32.u32.u32.add %r4, %r1, %r2, %r3;", |a, b, c| {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        (0..4).fold(c, |sum, n| sum.wrapping_add(a[n].abs_diff(b[n]).into()))
    });
    check("vset4.s32.s32.lt %r4, %r1, %r2, %r3;", |a, b, _| {
        bytes(a, b, |a, b| ((a as i8) < (b as i8)).into())
    });
    check("vmax2.s32.s32.s32 %r4, %r1, %r2, %r3;", |a, b, _| {
        let part = |n: u32| u32::from(((a >> n) as i16).max((b >> n) as i16) as u16) << n;
        part(0) | part(16)
    });
}
