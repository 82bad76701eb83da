//! References for `formats.cu`, from the tables of the formats.

use assay_num::{Format, Overflow, Rounding};

use super::data::{normal, words};
use crate::case::{Case, exact, exact_bytes, pack};

pub(super) fn cases(_: u32) -> Vec<Case> {
    vec![fp8_rows(), fp8_back(), fp8_codes(), mxfp4(), nvfp4(), fp4_back()]
}

/// The nearest code, with everything past the largest value there.
fn code(format: Format, value: f64) -> u8 {
    format.encode(value, Rounding::NearestEven, Overflow::Saturate) as u8
}

fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |top: f64, v| top.max(v.abs()))
}

fn fp8_rows() -> Case {
    let x = normal(101, 3 * 64, Format::F32);
    let scales: Vec<f64> = x.chunks(64).map(|row| single(largest(row) / 448.0)).collect();
    let codes = x.iter().enumerate().map(|(i, v)| code(Format::E4m3, single(v / scales[i / 64])));
    let codes: Vec<u8> = codes.collect();
    Case::new("fp8_rows")
        .sized(3, 32)
        .reads_as(Format::F32, &x)
        .writes(exact(&codes))
        .writes(exact_bytes(pack(Format::F32, &scales)))
}

fn fp8_back() -> Case {
    // Every code but NaN's, which has no payload to speak of.
    let codes: Vec<u8> = (0..=255).map(|c: u8| if c & 0x7f > 0x7a { 0x11 } else { c }).collect();
    let small: Vec<f64> =
        codes.iter().step_by(2).map(|&c| Format::E5m2.decode(u64::from(c))).collect();
    Case::new("fp8_back")
        .sized(1, 128)
        .reads(&codes)
        .writes(exact_bytes(pack(Format::F16, &Format::E4m3.decode_slice(&codes))))
        .writes(exact_bytes(pack(Format::F32, &small)))
}

fn fp8_codes() -> Case {
    let mut x: Vec<f32> = words(102, 120).into_iter().map(f32::from_bits).collect();
    x.retain(|x| !x.is_nan());
    x.extend(normal(103, 100, Format::F32).iter().map(|&x| (x * 100.0) as f32));
    x.extend([448.0, 464.0, 465.0, -500.0, f32::INFINITY, 1e-3, 0.0]);
    let codes = |format| x.iter().map(|&x| code(format, f64::from(x))).collect::<Vec<_>>();
    let (e4m3, e5m2) = (codes(Format::E4m3), codes(Format::E5m2));
    let threads = x.len() as u32;
    Case::new("fp8_codes").sized(1, threads).reads(&x).writes(exact(&e4m3)).writes(exact(&e5m2))
}

/// Codes and scales of blocks of values, given how a block's largest value becomes its scale.
fn blocks(x: &[f64], width: usize, format: Format, rounding: Rounding) -> (Vec<u8>, Vec<u8>) {
    let (mut values, mut scales) = (Vec::new(), Vec::new());
    for block in x.chunks(width) {
        let scale = format.encode(single(largest(block) / 6.0), rounding, Overflow::Saturate);
        scales.push(scale as u8);
        let by = format.decode(scale);
        values.extend(block.iter().map(|v| if by == 0.0 { 0.0 } else { single(v / by) }));
    }
    let codes: Vec<u8> = values.iter().map(|&v| code(Format::E2m1, v)).collect();
    (codes.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect(), scales)
}

fn mxfp4() -> Case {
    let x: Vec<f64> = normal(104, 128, Format::F32)
        .iter()
        .enumerate()
        .map(|(i, x)| single(x * f64::from(1 << (i / 32))))
        .collect();
    let (codes, scales) = blocks(&x, 32, Format::E8m0, Rounding::Up);
    Case::new("mxfp4")
        .sized(4, 32)
        .reads_as(Format::F32, &x)
        .writes(exact(&codes))
        .writes(exact(&scales))
}

fn nvfp4() -> Case {
    let mut x = normal(105, 128, Format::F32);
    x[32..48].fill(0.0);
    let (codes, scales) = blocks(&x, 16, Format::E4m3, Rounding::NearestEven);
    Case::new("nvfp4")
        .sized(4, 32)
        .reads_as(Format::F32, &x)
        .writes(exact(&codes))
        .writes(exact(&scales))
}

fn fp4_back() -> Case {
    let codes: Vec<u8> = (0..=255).collect();
    Case::new("fp4_back")
        .sized(1, 256)
        .reads(&codes)
        .writes(exact_bytes(pack(Format::F16, &Format::E2m1.decode_slice(&codes))))
}
