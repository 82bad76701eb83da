//! Cases of `products.py`. A sum on tensor cores may be off by a share of the sum of all terms'
//! sizes, which each case states.

use assay_num::Format;

use super::{Facts, integers, noise};
use crate::case::{Case, close, exact, judged, pack, rounded};

/// The case of a kernel of that file.
pub(super) fn case(facts: &Facts) -> Option<Case> {
    use Format::{Bf16, E4m3, E5m2, F16, F32, F64};
    Some(match facts.name.as_str() {
        "matmul_bf16" | "matmul_persistent" => {
            product(facts, &Shape::PLAIN, (Bf16, Bf16, F32), FINE)
        }
        "matmul_f16" | "matmul_descriptor" => product(facts, &Shape::PLAIN, (F16, F16, F16), FINE),
        "matmul_f16_short" => product(facts, &Shape::SHORT, (F16, F16, F32), FINE),
        // Every step along k is rounded to fp16.
        "matmul_f16_total" => product(facts, &Shape::PLAIN, (F16, F16, F16), 6.0 * 4.9e-4),
        "matmul_tf32" => product(facts, &Shape::PLAIN, (F32, F32, F32), 2.0 * TF32),
        "matmul_tf32x3" | "matmul_ieee" => product(facts, &Shape::SHORT, (F32, F32, F32), FINE),
        "matmul_f64" => product(facts, &Shape::SHORT, (F64, F64, F64), 1e-15),
        "matmul_e4m3" => product(facts, &Shape::TURNED, (E4m3, E4m3, F32), COARSE),
        "matmul_e5m2" => product(facts, &Shape::TURNED, (E5m2, E5m2, F32), COARSE),
        "matmul_int8" => int8(facts),
        "matmul_int4" => int4(facts),
        "matmul_cluster" => product(facts, &Shape::CLUSTER, (F16, F16, F32), FINE),
        "descriptor_reduce" => descriptor_reduce(facts),
        "matmul_mxfp8" => scaled(facts, (E4m3, E4m3), 32),
        "matmul_mxfp8_e5m2" => scaled(facts, (E5m2, E4m3), 32),
        "matmul_mxfp4" => scaled(facts, (Format::E2m1, Format::E2m1), 32),
        "matmul_mxfp8_mxfp4" => scaled(facts, (E4m3, Format::E2m1), 32),
        "matmul_nvfp4" => scaled(facts, (Format::E2m1, Format::E2m1), 16),
        _ => return None,
    })
}

/// Products are exact; sums of 80 terms are cut to 24 bits or more in every step.
const FINE: f64 = 80.0 * 1.2e-7;
/// Each factor is cut to 11 bits.
const TF32: f64 = 9.8e-4;
/// 8-bit floats are summed with 13 bits after the point of the largest term (`sm_89` to `sm_90`).
const COARSE: f64 = 3.0 * 1.3e-4;

/// Sizes, tiles, and how B lies.
struct Shape {
    m: usize,
    n: usize,
    k: usize,
    tile: [usize; 2],
    /// B is n by k.
    turned: bool,
}

impl Shape {
    const PLAIN: Shape = Shape { m: 70, n: 48, k: 80, tile: [64, 32], turned: false };
    const SHORT: Shape = Shape { m: 45, n: 48, k: 80, tile: [32, 32], turned: false };
    const TURNED: Shape = Shape { m: 70, n: 48, k: 80, tile: [64, 32], turned: true };
    const CLUSTER: Shape = Shape { m: 150, n: 48, k: 80, tile: [128, 32], turned: false };

    fn grid(&self) -> [u32; 3] {
        [self.m.div_ceil(self.tile[0]) as u32, self.n.div_ceil(self.tile[1]) as u32, 1]
    }

    fn b_at(&self, inner: usize, column: usize) -> usize {
        if self.turned { column * self.k + inner } else { inner * self.n + column }
    }

    /// The product, and the sum of the sizes of its terms.
    fn multiply(&self, a: &[f64], b: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut c, mut sizes) = (Vec::new(), Vec::new());
        for (row, column) in (0..self.m).flat_map(|row| (0..self.n).map(move |c| (row, c))) {
            let term = |inner: usize| a[row * self.k + inner] * b[self.b_at(inner, column)];
            c.push((0..self.k).map(term).sum());
            sizes.push((0..self.k).map(|inner| term(inner).abs()).sum());
        }
        (c, sizes)
    }

    fn end(&self, facts: &Facts, case: Case) -> Case {
        let case = case.value(self.m as i32).value(self.n as i32).value(self.k as i32);
        facts.end(case, self.launched(facts))
    }

    /// The persistent kernel has fewer programs than tiles.
    fn launched(&self, facts: &Facts) -> [u32; 3] {
        if facts.name == "matmul_persistent" { [3, 1, 1] } else { self.grid() }
    }
}

/// Within the share of the sum of sizes, and half a unit of the result's format.
fn near(format: Format, want: Vec<f64>, sizes: Vec<f64>, share: f64) -> crate::case::Want {
    judged(format.storage_bytes(want.len()), move |got| {
        for (at, got) in format.decode_slice(got).into_iter().enumerate() {
            let allowed = sizes[at] * share + want[at].abs() * format.unit_roundoff();
            let is_near = (got - want[at]).abs() <= allowed;
            if !is_near {
                return Err(format!("element {at} is {got}, not {} within {allowed}", want[at]));
            }
        }
        Ok(())
    })
}

fn product(
    facts: &Facts,
    shape: &Shape,
    (fa, fb, fc): (Format, Format, Format),
    share: f64,
) -> Case {
    let a = rounded(fa, &noise(31, shape.m * shape.k));
    let b = rounded(fb, &noise(32, shape.k * shape.n));
    let (c, sizes) = shape.multiply(&a, &b);
    let case = facts.launch(shape.launched(facts)).reads_as(fa, &a).reads_as(fb, &b);
    shape.end(facts, case.writes(near(fc, c, sizes, share)))
}

fn int8(facts: &Facts) -> Case {
    let shape = Shape::TURNED;
    let [a, b] = [(33, shape.m), (34, shape.n)].map(|(seed, count)| -> Vec<f64> {
        integers(seed, count * shape.k, -128, 128).into_iter().map(f64::from).collect()
    });
    let c: Vec<i32> = shape.multiply(&a, &b).0.into_iter().map(|value| value as i32).collect();
    let case = facts.launch(shape.grid()).reads_as(Format::I8, &a).reads_as(Format::I8, &b);
    shape.end(facts, case.writes(exact(&c)))
}

fn int4(facts: &Facts) -> Case {
    let shape = Shape { k: 96, ..Shape::PLAIN };
    let a = rounded(Format::F16, &noise(35, shape.m * shape.k));
    let packed: Vec<i8> =
        integers(36, shape.k / 2 * shape.n, -128, 128).into_iter().map(|v| v as i8).collect();
    let scales: Vec<f64> = integers(37, shape.k / 32 * shape.n, -4, 2)
        .into_iter()
        .map(|e| f64::from(e).exp2())
        .collect();
    let mut b = Vec::new();
    for (inner, column) in (0..shape.k).flat_map(|inner| (0..shape.n).map(move |c| (inner, c))) {
        let byte = packed[inner / 2 * shape.n + column];
        let bits = (byte >> (inner % 2 * 4)) & 15;
        b.push(f64::from(bits - 8) * scales[inner / 32 * shape.n + column]);
    }
    let (c, sizes) = shape.multiply(&a, &b);
    let case = facts.launch(shape.grid()).reads_as(Format::F16, &a).reads(&packed);
    let case = case.reads_as(Format::F16, &scales);
    shape.end(facts, case.writes(near(Format::F16, c, sizes, FINE)))
}

fn descriptor_reduce(facts: &Facts) -> Case {
    let (rows, cols) = (20, 48);
    let whole = |seed| -> Vec<f64> {
        integers(seed, rows * cols, -50, 50).into_iter().map(f64::from).collect()
    };
    let (x, y) = (whole(38), whole(39));
    let sums: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
    let grid = [2, 2, 1];
    let case = facts.launch(grid).reads_as(Format::F32, &x);
    let want = close(Format::F32, &sums, 0.0, 0.0);
    let case = case.updates(pack(Format::F32, &y), want);
    facts.end(case.value(rows as i32).value(cols as i32), grid)
}

/// One tile of 128 x 32 x 128 with a scale for every `block` elements along k.
fn scaled(facts: &Facts, (fa, fb): (Format, Format), block: usize) -> Case {
    let (m, n, k) = (128, 32, 128);
    let scale = if block == 32 { Format::E8m0 } else { Format::E4m3 };
    let elements =
        |format: Format, seed, count| rounded(format, &scaled_noise(format, seed, count));
    let (a, b) = (elements(fa, 51, m * k), elements(fb, 52, n * k));
    let scales = |seed, count: usize| -> Vec<f64> {
        integers(seed, count, -3, 4).into_iter().map(|e| f64::from(e).exp2()).collect()
    };
    let (sa, sb) = (scales(53, m * k / block), scales(54, n * k / block));
    let (mut c, mut sizes) = (Vec::new(), Vec::new());
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let term = |i: usize| {
            let (a_at, b_at) = (row * k + i, column * k + i);
            a[a_at] * sa[a_at / block] * b[b_at] * sb[b_at / block]
        };
        c.push((0..k).map(term).sum());
        sizes.push((0..k).map(|i| term(i).abs()).sum());
    }
    let grid = [1, 1, 1];
    let case = facts.launch(grid).reads_as(fa, &a).reads_as(scale, &sa);
    let case = case.reads_as(fb, &b).reads_as(scale, &sb);
    let case = case.writes(near(Format::F32, c, sizes, FINE));
    facts.end(case.value(n as i32), grid)
}

/// Values that fill the format's range without reaching its end.
fn scaled_noise(format: Format, seed: u64, count: usize) -> Vec<f64> {
    let by = if format == Format::E2m1 { 6.0 } else { 8.0 };
    noise(seed, count).into_iter().map(|value| value * by).collect()
}
