//! The figures of docs/comparing.md, computed again: which broken outputs the rules of public
//! graders let through, and what `compare` says of the same outputs.

use assay_compare::{Options, Tensor, compare};
use assay_num::random::SplitMix64;
use assay_num::{Format, power_of_two};
use assay_record::{Comparison, FindingKind, Outcome, Tolerance};

const DOCUMENT: &str = include_str!("../../../docs/comparing.md");
const SEED: u64 = 1;
const COUNT: usize = 1 << 20;

/// A figure must be in the document as written, and what is computed within `slack` of it.
fn figure(written: &str, value: f64, computed: f64, slack: f64) {
    assert!(DOCUMENT.contains(written), "docs/comparing.md does not say `{written}`");
    let off = (computed / value - 1.0).abs();
    assert!(off <= slack, "`{written}`: computed {computed}, seed {SEED}");
}

fn uniform() -> Vec<f32> {
    let mut random = SplitMix64::new(SEED);
    (0..COUNT).map(|_| random.range(-1.0, 1.0) as f32).collect()
}

fn normal() -> Vec<f64> {
    let mut random = SplitMix64::new(SEED);
    (0..COUNT).map(|_| random.normal()).collect()
}

fn held(reference: &[f32], candidate: &[f32], tolerance: Tolerance) -> Comparison {
    let shape = [reference.len() as u64];
    let tensor = |values| Tensor::from_f32(&shape, values).expect("a tensor");
    let options = Options { tolerance, ..Options::default() };
    compare(&tensor(reference).view(), &tensor(candidate).view(), &options).expect("compared")
}

/// The normalised mean square error.
fn nmse(reference: &[f32], candidate: &[f32]) -> f64 {
    let square = |value: f64| value * value;
    let pairs = reference.iter().zip(candidate);
    let error: f64 = pairs.map(|(r, c)| square(f64::from(*c) - f64::from(*r))).sum();
    error / reference.iter().map(|r| square(f64::from(*r))).sum::<f64>()
}

/// `|c - r| <= atol + rtol |r|` for every element.
fn allclose(reference: &[f32], candidate: &[f32], atol: f64, rtol: f64) -> bool {
    reference.iter().zip(candidate).all(|(r, c)| {
        let (r, c) = (f64::from(*r), f64::from(*c));
        (c - r).abs() <= atol + rtol * r.abs()
    })
}

#[test]
fn a_mean_square_hides_five_hundred_zeroed_outputs() {
    let reference = uniform();
    let mut candidate = reference.clone();
    candidate.iter_mut().skip(1000).step_by(2000).take(500).for_each(|value| *value = 0.0);
    let hidden = nmse(&reference, &candidate);
    figure("about 4.8e-4", 4.8e-4, hidden, 0.06);
    assert!(hidden <= 5e-4, "the rule passes it");
    let comparison = held(&reference, &candidate, Tolerance::new(1e-5, 1e-5));
    assert!(comparison.finds(FindingKind::Tolerance) && comparison.finds(FindingKind::Zeroed));
    // One element of 4096 whose square is 5e-4 of a sum of 4096 thirds.
    figure("by 0.83", 0.83, (5e-4 * 4096.0 / 3.0f64).sqrt(), 0.01);
}

#[test]
fn an_absolute_tolerance_hides_whole_operators() {
    let values = normal();
    let exponentials: Vec<f64> = values.iter().map(|x| x.exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    let norm = values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let softmax: Vec<f32> = exponentials.iter().map(|e| (e / sum) as f32).collect();
    let normalised: Vec<f32> = values.iter().map(|x| (x / norm) as f32).collect();
    let largest = |all: &[f32]| all.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    figure("8.5e-5", 8.5e-5, f64::from(largest(&softmax)), 0.35);
    figure("5.0e-3", 5.0e-3, f64::from(largest(&normalised)), 0.1);
    let zeros = vec![0.0; COUNT];
    assert!(allclose(&softmax, &zeros, 1e-2, 1e-2) && allclose(&softmax, &zeros, 1.2e-4, 1e-4));
    assert!(allclose(&normalised, &zeros, 1e-2, 1e-2));
    for reference in [softmax, normalised] {
        let zeroed = held(&reference, &zeros, Tolerance::new(1e-2, 1e-2));
        assert_eq!(zeroed.outcome, Outcome::Fail);
        let right = held(&reference, &reference, Tolerance::new(1e-2, 1e-2));
        assert_eq!(right.outcome, Outcome::Unproven);
    }
}

#[test]
fn comparisons_with_nan_are_false_so_a_rule_that_asks_for_more_passes_it() {
    let reference = uniform();
    let candidate = vec![f32::NAN; COUNT];
    let mismatches =
        reference.iter().zip(&candidate).filter(|(r, c)| (*c - *r).abs() > 1e-2).count();
    assert_eq!(mismatches, 0, "`diff > tol` counts no NaN");
    assert!(held(&reference, &candidate, Tolerance::new(1e-2, 0.0)).finds(FindingKind::Class));
}

#[test]
fn a_rule_that_wants_both_errors_large_takes_zeros_and_any_answer_to_infinity() {
    let fails = |r: f64, c: f64| {
        let error = (c - r).abs();
        error > 1e-2 && error / r.abs().max(1e-30) > 1e-2
    };
    assert!(!fails(0.01, 0.0) && !fails(f64::INFINITY, 3.0) && !fails(f64::NAN, 3.0));
    for (r, c) in [(0.01, 0.0), (f32::INFINITY, 3.0), (f32::NAN, 3.0)] {
        let (mut reference, mut candidate) = (vec![1.0; 64], vec![1.0; 64]);
        (reference[9], candidate[9]) = (r, c);
        let comparison = held(&reference, &candidate, Tolerance::new(1e-3, 1e-2));
        assert_eq!(comparison.outcome, Outcome::Fail, "{r} against {c}");
    }
}

#[test]
fn a_multiplication_modulo_a_size_that_is_no_power_of_two_is_no_permutation() {
    let missed = |blocks: u32| {
        let mut seen = vec![false; blocks as usize];
        for block in 0..blocks {
            seen[(block.wrapping_mul(2_654_435_761) % blocks) as usize] = true;
        }
        seen.iter().filter(|seen| !**seen).count() as f64 / f64::from(blocks) * 100.0
    };
    for (written, blocks, percent) in [
        ("| 352 | 36.6 % |", 352, 36.6),
        ("| 1,000 | 27.1 % |", 1000, 27.1),
        ("| 3,000 | 5.3 % |", 3000, 5.3),
        ("| 10,000 | 6.9 % |", 10_000, 6.9),
        ("| 49,999 | 82.9 % |", 49_999, 82.9),
    ] {
        figure(written, percent, missed(blocks), 0.01);
    }
    assert!([1024, 4096, 65_536].into_iter().all(|blocks| missed(blocks) == 0.0));
}

#[test]
fn a_tolerance_scaled_by_the_ratio_of_epsilons_allows_anything() {
    let epsilon = |format: Format| 2.0 * format.unit_roundoff();
    let scaled = 1e-3 * epsilon(Format::F16) / epsilon(Format::F32);
    figure("8.192", 8.192, scaled, 1e-9);
    assert!(scaled > power_of_two(3));
}

#[test]
fn a_quota_of_mismatches_lets_a_wrong_tile_through() {
    let reference = uniform();
    let mut candidate = reference.clone();
    candidate[..COUNT / 20].iter_mut().for_each(|value| *value = 1e30);
    let right = reference.iter().zip(&candidate).filter(|(r, c)| r == c).count();
    assert!(right as f64 >= 0.95 * COUNT as f64, "a quota of 95 % passes it");
    let comparison = held(&reference, &candidate, Tolerance::new(1e-2, 1e-2));
    assert_eq!(comparison.outside, (COUNT / 20) as u64);
}

#[test]
fn a_bias_of_half_an_ulp_is_far_inside_usual_tolerances() {
    let reference: Vec<f32> = uniform().iter().map(|x| x.abs() + 0.5).collect();
    let up = |(at, x): (usize, &f32)| f32::from_bits(x.to_bits() + (at % 2) as u32);
    let candidate: Vec<f32> = reference.iter().enumerate().map(up).collect();
    assert!(allclose(&reference, &candidate, 1e-5, 1.3e-6));
    let comparison = held(&reference, &candidate, Tolerance::new(1e-5, 1.3e-6));
    assert_eq!(comparison.ulp.mean_signed, Some(0.5));
    assert!(!comparison.notes.is_empty(), "the lean is noted");
}
