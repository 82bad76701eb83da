//! The statistics on noise of known truth: intervals that hold it as often as they say, whatever
//! the samples look like, and controls that show that a simpler way would not.

use assay_measure::statistics::{
    Noise, block_interval, block_length, effective_samples, median, median_interval, midmean,
    quantile, sorted,
};
use assay_measure::{Taken, is_off, reference_clock};
use assay_num::random::SplitMix64;
use proptest::prelude::*;

/// A first-order process around 1.
fn correlated(random: &mut SplitMix64, n: usize, correlation: f64, spread: f64) -> Vec<f64> {
    let own = (1.0 - correlation * correlation).sqrt();
    let mut deviation = random.normal();
    let mut next = || {
        deviation = correlation * deviation + own * random.normal();
        1.0 + spread * deviation
    };
    (0..n).map(|_| next()).collect()
}

/// How many of 200 intervals hold the true median, 1.
fn covered(correlation: f64, interval: impl Fn(&[f64], u64) -> (f64, f64)) -> u32 {
    let mut random = SplitMix64::new(7);
    let mut hits = 0;
    for seed in 0..200 {
        let values = correlated(&mut random, 300, correlation, 0.01);
        let (lower, upper) = interval(&values, seed);
        hits += u32::from(lower <= 1.0 && 1.0 <= upper);
    }
    hits
}

#[test]
fn the_block_bootstrap_holds_the_truth_where_samples_depend_on_each_other() {
    let blocks = |values: &[f64], seed| block_interval(values, 0.95, seed, |drawn| median(drawn));
    let independent = covered(0.0, blocks);
    assert!((180..=199).contains(&independent), "{independent} of 200");
    let correlated = covered(0.8, blocks);
    assert!(correlated >= 170, "{correlated} of 200");
    // The control: as if they were independent.
    let blind = |values: &[f64], _| median_interval(&sorted(values), values.len() as f64, 0.95);
    let (fair, fooled) = (covered(0.0, blind), covered(0.8, blind));
    assert!(fair >= 180 && fooled <= 140, "{fair} and {fooled} of 200");
}

#[test]
fn the_quick_interval_counts_only_as_many_samples_as_there_are() {
    let quick =
        |values: &[f64], _| median_interval(&sorted(values), effective_samples(values), 0.95);
    assert!(covered(0.0, quick) >= 180);
    assert!(covered(0.8, quick) >= 175);
}

#[test]
fn outliers_move_a_mean_and_no_median() {
    let mut random = SplitMix64::new(3);
    let mut values = correlated(&mut random, 400, 0.0, 0.005);
    for value in values.iter_mut().step_by(20) {
        *value *= 3.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    assert!(mean > 1.05);
    assert!((median(&values) - 1.0).abs() < 0.002 && (midmean(&values) - 1.0).abs() < 0.002);
    let (lower, upper) = block_interval(&values, 0.95, 1, |drawn| median(drawn));
    assert!(lower < 1.0005 && upper > 0.9995 && upper - lower < 0.004, "{lower} {upper}");
}

#[test]
fn drift_is_no_precision() {
    let drifting: Vec<f64> = (0..300).map(|n| 1.0 + f64::from(n) * 1e-4).collect();
    let shuffled = {
        let mut values = drifting.clone();
        SplitMix64::new(1).shuffle(&mut values);
        values
    };
    let width = |values: &[f64]| {
        let (lower, upper) = block_interval(values, 0.95, 1, |drawn| median(drawn));
        upper - lower
    };
    assert!(width(&drifting) > 3.0 * width(&shuffled));
    assert!(effective_samples(&drifting) < 5.0 && effective_samples(&shuffled) > 200.0);
    assert!(block_length(&drifting) > 20 && block_length(&shuffled) <= 3);
}

#[test]
fn of_two_clocks_the_faster_is_kept_unless_it_is_rare() {
    let taken = |clocks: &[f64]| -> Vec<Taken> {
        let sample = |clock: &f64| Taken { duration_ns: 1.0, sm_clock_mhz: Some(*clock) };
        clocks.iter().map(sample).collect()
    };
    let half: Vec<f64> = (0..100).map(|n| if n % 2 == 0 { 1980.0 } else { 1700.0 }).collect();
    let samples = taken(&half);
    let reference = reference_clock(&samples);
    assert_eq!(reference, Some(1980.0));
    let off = samples.iter().filter(|sample| is_off(sample, reference, 0.01)).count();
    assert_eq!(off, 50);
    let rare: Vec<f64> = (0..100).map(|n| if n % 10 == 0 { 1980.0 } else { 1700.0 }).collect();
    assert_eq!(reference_clock(&taken(&rare)), Some(1700.0));
    assert_eq!(reference_clock(&[]), None);
    let unknown = Taken { duration_ns: 1.0, sm_clock_mhz: None };
    assert!(is_off(&unknown, Some(1980.0), 0.01) && !is_off(&unknown, None, 0.01));
}

#[test]
fn noise_that_stays_is_settled_and_noise_that_grows_is_not() {
    let mut random = SplitMix64::new(5);
    let (mut steady, mut growing) = (Noise::default(), Noise::default());
    for look in 1..=20u32 {
        steady.look(&sorted(&correlated(&mut random, 4000, 0.0, 0.01)));
        let spread = 0.01 * 1.2f64.powi(look as i32);
        growing.look(&sorted(&correlated(&mut random, 4000, 0.0, spread)));
    }
    assert!(steady.is_settled() && !growing.is_settled());
    assert!(!Noise::default().is_settled());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_interval_holds_its_estimate_and_grows_with_its_confidence(
        values in prop::collection::vec(0.1f64..1e9, 2..80), seed in any::<u64>(),
    ) {
        let middle = median(&values);
        let interval = |confidence| block_interval(&values, confidence, seed, |d| median(d));
        let (narrow, wide) = (interval(0.8), interval(0.99));
        prop_assert!(wide.0 <= narrow.0 && narrow.1 <= wide.1);
        prop_assert!(wide.0 <= middle && middle <= wide.1);
        let all = sorted(&values);
        prop_assert!(all[0] <= wide.0 && wide.1 <= all[all.len() - 1]);
        prop_assert_eq!(wide, interval(0.99));
    }

    #[test]
    fn statistics_scale_with_their_samples_and_survive_anything(
        values in prop::collection::vec(prop::num::f64::ANY, 0..40), seed in any::<u64>(),
    ) {
        let ascending = sorted(&values);
        let _ = (median(&values), midmean(&values), quantile(&ascending, 0.3));
        let _ = (block_length(&values), effective_samples(&values));
        let _ = block_interval(&values, 0.9, seed, |drawn| midmean(drawn));
        let plain = |value: &f64| (1e-100..1e100).contains(&value.abs());
        let finite: Vec<f64> = values.into_iter().filter(plain).collect();
        let doubled: Vec<f64> = finite.iter().map(|value| value * 2.0).collect();
        prop_assert_eq!(median(&doubled), 2.0 * median(&finite));
        prop_assert_eq!(midmean(&doubled), 2.0 * midmean(&finite));
    }
}
