//! How far elements move from shuffle to shuffle: their means and deviations, and what all of them
//! together give.

use assay_num::Format;

use super::lanes::{BLOCK, BlockSum};
use crate::counts::class_index;
use crate::judge::ulp_at;
use crate::{student, wander};

/// Deviations from zero at which no order turns a sign.
const CLEAR: f64 = 16.0;

/// The bands of some elements, in row-major order.
#[derive(Clone, Default, Debug)]
pub(super) struct Spread {
    pub(super) mean: Vec<f64>,
    /// The larger of the standard deviation and half a step of the format.
    pub(super) deviation: Vec<f64>,
    /// The classes seen at each element, a bit each.
    pub(super) classes: Vec<u8>,
}

/// What all elements with a band give together.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    /// How far each shuffle leans: the sum of its distances from the mean, in deviations.
    pub(super) leans: Vec<BlockSum>,
    /// The same of magnitudes: positive away from zero.
    pub(super) outward: Vec<BlockSum>,
    /// Elements with a band or without.
    elements: u64,
    /// Elements with a band.
    pub(super) finite: u64,
    /// The widest band's deviation, in steps of the format.
    pub(super) widest_ulp: f64,
}

/// How far a right candidate may lean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lean {
    /// The mean of the shuffles' own leans.
    pub(super) mean: f64,
    /// How far from it the candidate's may lie.
    pub(super) limit: f64,
}

/// Which way from zero an element lies, where its order cannot turn that round; 0 elsewhere.
pub(super) fn side(mean: f64, spread: f64) -> f64 {
    if mean.abs() > CLEAR * spread { mean.signum() } else { 0.0 }
}

/// A candidate's distance is that from a mean of `shuffles` that is itself uncertain.
fn prediction(shuffles: usize) -> f64 {
    (1.0 + 1.0 / shuffles as f64).sqrt()
}

/// Standard deviations that a band is wide to either side, so that a right candidate of so many
/// elements leaves one with at most half the false alarms.
pub(super) fn width(shuffles: usize, elements: u64, false_alarm: f64) -> f64 {
    let tail = false_alarm / (4.0 * elements.max(1) as f64);
    // The deviations are measured, and errors have heavier tails than normal numbers.
    student::quantile(shuffles as u32 - 1, tail) * wander::excess(tail) * prediction(shuffles)
}

impl Totals {
    pub(super) fn new(shuffles: usize) -> Totals {
        let leans = vec![BlockSum::new(); shuffles];
        Totals { outward: leans.clone(), leans, elements: 0, finite: 0, widest_ulp: 0.0 }
    }

    /// How far a candidate may lean, in values and in magnitudes.
    pub(super) fn leans(&self, false_alarm: f64) -> [Lean; 2] {
        [&self.leans, &self.outward].map(|leans| {
            let leans: Vec<f64> = leans.iter().map(BlockSum::total).collect();
            lean(&leans, self.finite, false_alarm)
        })
    }

    fn pass(&mut self) {
        self.elements += 1;
        if self.elements.is_multiple_of(BLOCK) {
            self.leans.iter_mut().chain(&mut self.outward).for_each(BlockSum::end_block);
        }
    }
}

/// How far a candidate may lean, from how far each shuffle leans against all others.
fn lean(leans: &[f64], finite: u64, false_alarm: f64) -> Lean {
    let count = leans.len() as f64;
    let root = (finite.max(1) as f64).sqrt();
    // Against the mean of the others a shuffle lies farther out than against that of all.
    let scale = count / (count - 1.0) / root;
    let scaled = || leans.iter().map(|lean| lean * scale);
    let mean = scaled().sum::<f64>() / count;
    let square: f64 = scaled().map(|lean| (lean - mean) * (lean - mean)).sum();
    let deviation = (square / (count - 1.0)).sqrt();
    // Two ways to lean, each to two sides, have half the false alarms.
    let quantile = student::quantile(leans.len() as u32 - 1, false_alarm / 8.0);
    // Elements whose rounding alone moves them lean by up to 1, though no shuffle shows it.
    let limit = quantile * prediction(leans.len()) * deviation.max(1.0);
    Lean { mean, limit }
}

impl Spread {
    /// Adds elements, whose values `values` holds for every shuffle.
    pub(super) fn add(&mut self, format: Format, values: &[Vec<f64>], totals: &mut Totals) {
        let shuffles = values.len() as f64;
        for at in 0..values.first().map_or(0, Vec::len) {
            let all = || values.iter().map(|output| output[at]);
            let classes = all().fold(0u8, |seen, value| seen | 1 << class_index(value));
            let mean = all().sum::<f64>() / shuffles;
            let square = all().map(|value| (value - mean) * (value - mean)).sum::<f64>();
            let deviation = (square / (shuffles - 1.0)).sqrt();
            let ulp = ulp_at(format, mean);
            let spread = if format.is_float() { deviation.max(0.5 * ulp) } else { deviation };
            if classes == 1 {
                totals.finite += 1;
                if spread > 0.0 {
                    let side = side(mean, spread);
                    let leans = totals.leans.iter_mut().zip(&mut totals.outward);
                    for ((lean, outward), value) in leans.zip(all()) {
                        let distance = (value - mean) / spread;
                        lean.add(totals.elements, distance);
                        outward.add(totals.elements, side * distance);
                    }
                    totals.widest_ulp = totals.widest_ulp.max(spread / ulp);
                }
            }
            self.mean.push(mean);
            self.deviation.push(spread);
            self.classes.push(classes);
            totals.pass();
        }
    }
}
