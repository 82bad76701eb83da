//! Tiles that make tensor cores err.

use assay_num::Format;
use assay_num::random::SplitMix64;

use crate::forms::Form;

/// What the values of a tile are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Normal,
    /// Exponents of all sizes that sums have room for.
    Wide,
    /// Neighbouring products cancel but for a little.
    Cancelling,
    /// Subnormal elements beside large ones and zeros.
    Subnormal,
    /// One product of the first instruction far above all others, which lie around the last bit
    /// that is kept and have the same sign.
    Edge,
}

pub(crate) const CLASSES: [Class; 5] =
    [Class::Normal, Class::Wide, Class::Cancelling, Class::Subnormal, Class::Edge];

/// Rows of A and columns of B of some tiles, one after the other.
pub(crate) struct Tiles {
    pub(crate) count: usize,
    pub(crate) depth: usize,
    pub(crate) a: Vec<f64>,
    pub(crate) b: Vec<f64>,
}

/// The exponents of a format's largest power of two, least normal and least subnormal value.
struct Reach {
    high: i32,
    normal: i32,
    least: i32,
}

fn reach(form: &Form) -> Reach {
    let (high, normal, fraction) = match form.elements {
        Format::F16 => (15, -14, 10),
        Format::Bf16 => (127, -126, 7),
        Format::E4m3 => (7, -6, 3),
        Format::E5m2 => (14, -14, 2),
        _ => (127, -126, 10),
    };
    let high = if form.half { 3 } else { high.min(60) };
    Reach { high, normal, least: normal - fraction }
}

fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

impl Tiles {
    pub(crate) fn draw(
        form: &Form,
        class: Class,
        count: usize,
        depth: usize,
        random: &mut SplitMix64,
    ) -> Tiles {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for tile in 0..count {
            let mut line = |second| line(form, class, (tile, depth, second), random);
            (0..form.rows()).for_each(|_| a.extend(line(false)));
            (0..8).for_each(|_| b.extend(line(true)));
        }
        // Every other tile of tf32 has bits that tensor cores ignore.
        let per_tile = |of: &[f64]| of.len() / count;
        let stored = |values: Vec<f64>| -> Vec<f64> {
            let size = per_tile(&values);
            let each = values.into_iter().enumerate().map(|(at, value)| {
                let ignored = form.elements == Format::Tf32 && at / size % 2 == 1;
                let format = if ignored { Format::F32 } else { form.elements };
                format.round(value)
            });
            each.collect()
        };
        Tiles { count, depth, a: stored(a), b: stored(b) }
    }

    /// The sum of the products' sizes, of each element of D.
    pub(crate) fn sizes(&self, form: &Form) -> Vec<f64> {
        let rows = self.a.chunks(self.depth).enumerate();
        let tile = |row: usize| &self.b[row / form.rows() * 8 * self.depth..];
        let sums = rows.flat_map(|(row, a)| {
            tile(row)
                .chunks(self.depth)
                .take(8)
                .map(move |b| a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum::<f64>())
        });
        sums.collect()
    }
}

/// One row of A, or as the `second` one column of B.
fn line(
    form: &Form,
    class: Class,
    (tile, depth, second): (usize, usize, bool),
    random: &mut SplitMix64,
) -> Vec<f64> {
    let Reach { high, least, .. } = reach(form);
    let mut values: Vec<f64> = (0..depth).map(|_| random.normal()).collect();
    match class {
        Class::Normal => {}
        Class::Wide => {
            let low = least.max(-60);
            for value in &mut values {
                *value *= pick(random, low, high - 2);
            }
        }
        Class::Cancelling => {
            for pair in values.chunks_exact_mut(2) {
                pair[1] = if second { -pair[0] } else { pair[0] };
            }
            let at = random.below(depth as u64) as usize;
            values[at] *= 1.0 + power(-3);
        }
        Class::Subnormal => {
            for (at, value) in values.iter_mut().enumerate() {
                *value *= match random.below(8) {
                    0 => 0.0,
                    _ => subnormal(&reach(form), (tile, at, second), random),
                };
            }
        }
        Class::Edge => edge(form, (tile, second), &mut values, random),
    }
    values
}

/// A power of two among these.
fn pick(random: &mut SplitMix64, from: i32, to: i32) -> f64 {
    power(from + random.below((to - from + 1) as u64) as i32)
}

/// Every other tile has tiny elements beside large ones at every fourth place, and between them
/// normal products of about that size: those are cut as if the tiny elements were normal.
fn subnormal(
    reach: &Reach,
    (tile, at, second): (usize, usize, bool),
    random: &mut SplitMix64,
) -> f64 {
    let Reach { high, normal, least } = *reach;
    match (tile % 2, at % 4, second) {
        (0, _, _) if random.below(4) == 0 => pick(random, high - 3, high - 2),
        (0, ..) => pick(random, least, normal),
        (_, 0, false) => pick(random, least, least + 1),
        (_, 0, true) => pick(random, high - 4, high - 3),
        (_, _, false) => power(normal + 3),
        _ => pick(random, (least + high - 18 - normal).max(normal), least + high - 6 - normal),
    }
}

/// A first product of 1 or 2^8 and others whose last bits lie where some model cuts.
fn edge(form: &Form, (tile, second): (usize, bool), values: &mut [f64], random: &mut SplitMix64) {
    let byte = matches!(form.elements, Format::E4m3 | Format::E5m2);
    let (from, places) = match (byte, form.half) {
        (true, _) => (8, 9),
        (_, true) => (11, 6),
        _ => (20, 8),
    };
    let below = from + (tile % places) as i32;
    // Bytes have few exponents below 1.
    let top = if byte { 4 } else { 0 };
    let exponent = top - if second { below / 2 } else { below - below / 2 };
    for (at, value) in values.iter_mut().enumerate() {
        // As many ones as the format has, or a little less.
        let ones = 2.0 - form.elements.unit_roundoff() * 2.0 * (1 + random.below(2)) as f64;
        *value = if at == 0 { power(top) } else { ones * power(exponent) };
    }
}
