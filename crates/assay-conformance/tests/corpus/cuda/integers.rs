//! References for `integers.cu`.

use assay_num::Format;

use super::data::{integers, normal, uniform, whole, words};
use crate::case::{Case, bytes, close, exact, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![
        histogram(),
        scan(),
        bitonic(),
        radix_select(),
        int4_gemv(),
        int4_lop3(),
        q8_dp4a(),
        bits(),
    ]
}

fn histogram() -> Case {
    let x: Vec<u8> = integers(41, 1000, 0, 200).into_iter().map(|v| (v * v / 200) as u8).collect();
    let mut bins = vec![3_u32; 256];
    for &v in &x {
        bins[usize::from(v)] += 1;
    }
    Case::new("histogram")
        .sized(3, 96)
        .reads(&x)
        .updates(bytes(&[3_u32; 256]), exact(&bins))
        .value(1000)
}

fn scan() -> Case {
    let x = whole(42, 256, -1000, 1000);
    let y: Vec<i32> = (0..256).map(|i| x[..i].iter().sum()).collect();
    Case::new("scan").sized(1, 128).reads(&x).writes(exact(&y))
}

fn bitonic() -> Case {
    let mut keys: Vec<u64> =
        words(43, 256).into_iter().map(|v| u64::from(v).wrapping_mul(0x1_0000_0101)).collect();
    let first = bytes(&keys);
    keys.sort_unstable();
    Case::new("bitonic").sized(1, 256).updates(first, exact(&keys))
}

fn radix_select() -> Case {
    let x: Vec<u32> = words(44, 1000).into_iter().map(|v| v & 0xff00_1fff).collect();
    let mut sorted = x.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    Case::new("radix_select")
        .sized(1, 256)
        .reads(&x)
        .writes(exact(&[sorted[99]]))
        .value(1000)
        .value(100)
}

fn int4_gemv() -> Case {
    let (rows, columns) = (6, 512);
    let codes = words(45, rows * columns / 8);
    let scale = uniform(46, rows * columns / 64, 0.01, 0.1, Format::F32);
    let bias = normal(47, rows * columns / 64, Format::F32);
    let x = normal(48, columns, Format::F32);
    let weight = |at: usize| {
        let code = codes[at / 8] >> (4 * (at % 8)) & 15;
        scale[at / 64] * f64::from(code) + bias[at / 64]
    };
    let dot = |row| (0..columns).map(|column| weight(row * columns + column) * x[column]).sum();
    let y: Vec<f64> = (0..rows).map(dot).collect();
    Case::new("int4_gemv")
        .sized(6, 32)
        .reads(&codes)
        .reads_as(Format::F32, &scale)
        .reads_as(Format::F32, &bias)
        .reads_as(Format::F32, &x)
        .writes(close(Format::F32, &y, 1e-5, 1e-4))
        .value(512)
}

fn int4_lop3() -> Case {
    let codes = words(49, 32);
    let code = |word: u32, place: u32| f64::from(word >> (4 * place) & 15) - 8.0;
    let y = codes.iter().flat_map(|&word| [0, 4, 1, 5, 2, 6, 3, 7].map(|place| code(word, place)));
    let y: Vec<f64> = y.collect();
    Case::new("int4_lop3").sized(1, 32).reads(&codes).writes(exact_bytes(pack(Format::F16, &y)))
}

fn q8_dp4a() -> Case {
    let (rows, n) = (4, 400);
    let a: Vec<i8> = integers(50, rows * n, -128, 128).into_iter().map(|v| v as i8).collect();
    let b: Vec<i8> = integers(51, n, -128, 128).into_iter().map(|v| v as i8).collect();
    let scale = [0.5_f32, 0.25, 2.0, -1.0];
    let y = a.chunks(n).zip(scale).map(|(row, scale)| {
        let sum: i32 = row.iter().zip(&b).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
        sum as f32 * scale
    });
    let y: Vec<f32> = y.collect();
    Case::new("q8_dp4a").sized(4, 32).reads(&a).reads(&b).reads(&scale).writes(exact(&y)).value(400)
}

fn lanes<const N: usize>(v: u32, w: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    let width = 32 / N as u32;
    let mask = (1_u32 << width) - 1;
    let lane = |i: u32| (f(v >> (i * width) & mask, w >> (i * width) & mask) & mask) << (i * width);
    (0..N as u32).map(lane).fold(0, |all, lane| all | lane)
}

fn divisions(v: u32, w: u32) -> u32 {
    let signed = (v as i32 / 7) as u32;
    (v / (w | 1)).wrapping_add(v % 10).wrapping_add(signed).wrapping_add((v as i32 % -3) as u32)
}

fn wide(v: u32, w: u32) -> [u32; 2] {
    let wide = u64::from(v) << 32 | u64::from(w);
    let high = (u128::from(wide) * u128::from(wide)) >> 64;
    let huge = (i128::from(wide)).wrapping_mul(i128::from(w as i32));
    [(wide / u64::from(v | 1)) as u32 ^ high as u32 ^ wide.count_ones(), (huge >> 70) as u32]
}

fn bits() -> Case {
    let mut x = words(52, 64);
    x[5] = 0;
    x[6] = 0x8000_0000;
    let pairs: Vec<(u32, u32)> = (0..64).map(|i| (x[i], x[(i + 1) % 64])).collect();
    let mut y = Vec::new();
    let mut each = |f: &dyn Fn(u32, u32) -> u32| y.extend(pairs.iter().map(|&(v, w)| f(v, w)));
    each(&|v, _| {
        let first = if v == 0 { 0 } else { v.trailing_zeros() + 1 };
        v.count_ones() | v.leading_zeros() << 8 | first << 16
    });
    each(&|v, _| v.reverse_bits());
    each(&|v, w| {
        u32::from_le_bytes([
            v.to_le_bytes()[0],
            w.to_le_bytes()[0],
            v.to_le_bytes()[1],
            w.to_le_bytes()[1],
        ])
    });
    each(&|v, w| ((u64::from(w) << 32 | u64::from(v)) << (w & 31) >> 32) as u32);
    each(&|v, w| ((u64::from(v) * u64::from(w)) >> 32) as u32);
    each(&|v, w| ((i64::from(v as i32) * i64::from(w as i32)) >> 32) as u32);
    each(&|v, w| lanes::<4>(v, w, u32::wrapping_add));
    each(&|v, w| lanes::<2>(v, w, |a, b| (a as i16).max(b as i16) as u32));
    each(&|v, w| lanes::<4>(v, w, u32::abs_diff));
    each(&|v, w| v.abs_diff(w).wrapping_add(5));
    each(&divisions);
    each(&|v, w| wide(v, w)[0]);
    each(&|v, w| wide(v, w)[1]);
    Case::new("bits").sized(1, 64).reads(&x).writes(exact(&y))
}
