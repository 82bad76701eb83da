//! Intervals by drawing the samples again, in blocks, so that neighbours stay together.

use assay_num::random::SplitMix64;

use super::correlation::block_length;
use super::order::{quantile, sorted};

/// How often the samples are drawn again.
pub const RESAMPLES: usize = 1000;

/// The interval of a statistic of samples in the order taken, by a circular block bootstrap
/// (Politis and Romano 1992): blocks of neighbours, drawn with their order, wrapped at the end.
/// The percentiles of the statistic over all draws; the same for the same seed.
pub fn block_interval(
    values: &[f64],
    confidence: f64,
    seed: u64,
    statistic: impl Fn(&mut [f64]) -> f64,
) -> (f64, f64) {
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let length = block_length(values);
    let mut random = SplitMix64::new(seed).fork("block bootstrap");
    let mut drawn = vec![0.0; values.len()];
    let statistics: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw(values, length, &mut random, &mut drawn);
            statistic(&mut drawn)
        })
        .collect();
    let statistics = sorted(&statistics);
    let tail = (1.0 - confidence) / 2.0;
    (quantile(&statistics, tail), quantile(&statistics, 1.0 - tail))
}

/// Fills `drawn` with blocks from random places.
fn draw(values: &[f64], length: usize, random: &mut SplitMix64, drawn: &mut [f64]) {
    for block in drawn.chunks_mut(length) {
        let start = random.below(values.len() as u64) as usize;
        let around = values[start..].iter().chain(values);
        for (to, from) in block.iter_mut().zip(around) {
            *to = *from;
        }
    }
}
