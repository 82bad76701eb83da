//! Inputs, from seeds.

use assay_num::Format;
use assay_num::random::SplitMix64;

use crate::case::rounded;

/// Normal values of a format.
pub(super) fn normal(seed: u64, count: usize, format: Format) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
    rounded(format, &values)
}

/// Values of a format, evenly from `low` to `high`.
pub(super) fn uniform(seed: u64, count: usize, low: f64, high: f64, format: Format) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    let values: Vec<f64> = (0..count).map(|_| random.range(low, high)).collect();
    rounded(format, &values)
}

/// Whole numbers from `low` up to but not including `high`.
pub(super) fn integers(seed: u64, count: usize, low: i64, high: i64) -> Vec<i64> {
    let mut random = SplitMix64::new(seed);
    (0..count).map(|_| low + random.below((high - low) as u64) as i64).collect()
}

/// As [`integers`], in 32 bits.
pub(super) fn whole(seed: u64, count: usize, low: i64, high: i64) -> Vec<i32> {
    integers(seed, count, low, high).into_iter().map(|value| value as i32).collect()
}

/// Words of random bits.
pub(super) fn words(seed: u64, count: usize) -> Vec<u32> {
    let mut random = SplitMix64::new(seed);
    (0..count).map(|_| (random.next_u64() >> 32) as u32).collect()
}
