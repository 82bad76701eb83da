//! The ways in which public comparers are fooled: each is found here, with no bands needed.

use assay_compare::{Options, Tensor, compare};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::{Comparison, FindingKind, Outcome, Tolerance};

const SEED: u64 = 20_261_130;

fn uniform(count: usize) -> Vec<f32> {
    let mut random = SplitMix64::new(SEED);
    (0..count).map(|_| random.range(-1.0, 1.0) as f32).collect()
}

fn held(reference: &[f32], candidate: &[f32], tolerance: Tolerance) -> Comparison {
    let shape = [reference.len() as u64];
    let reference = Tensor::from_f32(&shape, reference).expect("a tensor");
    let candidate = Tensor::from_f32(&shape, candidate).expect("a tensor");
    let options = Options { tolerance, ..Options::default() };
    compare(&reference.view(), &candidate.view(), &options).expect("compared")
}

#[test]
fn equal_tensors_pass_and_are_counted_identical() {
    let values = uniform(1 << 15);
    let comparison = held(&values, &values, Tolerance::EXACT);
    assert_eq!(comparison.outcome, Outcome::Pass, "{:?}", comparison.findings);
    assert_eq!(comparison.identical, 1 << 15);
    assert_eq!(comparison.first_different, None);
    assert_eq!(comparison.ulp.histogram, [1 << 15]);
    assert!(comparison.worst_ulp.is_empty() && comparison.worst_error.is_empty());
}

#[test]
fn a_zero_output_does_not_pass_under_a_small_absolute_tolerance() {
    // A softmax over 2^18 elements: its largest output lies far below an atol of 1e-2.
    let reference: Vec<f32> = uniform(1 << 18).iter().map(|x| x.exp() / 3.1e5).collect();
    let zeros = vec![0.0; reference.len()];
    let comparison = held(&reference, &zeros, Tolerance::new(1e-2, 1e-2));
    assert_eq!(comparison.outside, 0, "the tolerance alone lets it through");
    assert_eq!(comparison.outcome, Outcome::Fail);
    assert!(comparison.finds(FindingKind::Zeroed));
    assert!(comparison.finds(FindingKind::Vacuous));
    assert_eq!(comparison.error.relative_frobenius.map(|n| n.0), Some(1.0));
    // A right candidate under a tolerance that cannot fail shows nothing.
    let right = held(&reference, &reference, Tolerance::new(1e-2, 1e-2));
    assert_eq!(right.outcome, Outcome::Unproven);
    let proper = held(&reference, &reference, Tolerance::new(1e-9, 1e-5));
    assert_eq!(proper.outcome, Outcome::Pass);
}

#[test]
fn one_wrong_element_of_a_million_is_found_with_its_coordinates() {
    let reference = uniform(1 << 20);
    let mut candidate = reference.clone();
    candidate[777_777] += 0.25;
    let shape = [1024, 1024];
    let (reference, candidate) = (
        Tensor::from_f32(&shape, &reference).expect("a tensor"),
        Tensor::from_f32(&shape, &candidate).expect("a tensor"),
    );
    let options = Options { tolerance: Tolerance::new(1e-5, 1e-5), ..Options::default() };
    let comparison = compare(&reference.view(), &candidate.view(), &options).expect("compared");
    assert_eq!(comparison.outcome, Outcome::Fail);
    assert_eq!(comparison.outside, 1);
    let place = vec![777_777 / 1024, 777_777 % 1024];
    assert_eq!(comparison.first_outside, Some(place.clone()));
    assert_eq!(comparison.worst_error[0].coordinates, place);
    assert_eq!(comparison.error.top_energy, Some([1.0, 1.0]));
}

#[test]
fn nan_against_nan_is_found_unless_it_is_allowed() {
    let mut values = uniform(4096);
    values[99] = f32::NAN;
    let comparison = held(&values, &values, Tolerance::new(1e-2, 1e-2));
    assert_eq!(comparison.outcome, Outcome::Fail);
    assert!(comparison.finds(FindingKind::Nan));
    assert_eq!(comparison.first_different, Some(vec![99]));
    let tensor = Tensor::from_f32(&[4096], &values).expect("a tensor");
    let options = Options { equal_nan: true, ..Options::default() };
    let allowed = compare(&tensor.view(), &tensor.view(), &options).expect("compared");
    assert_eq!(allowed.outcome, Outcome::Pass, "{:?}", allowed.findings);
}

#[test]
fn nan_against_a_number_and_infinity_against_a_large_number_are_found_both_ways() {
    for (one, other) in [
        (f32::NAN, 1.0),
        (f32::INFINITY, f32::MAX),
        (f32::NEG_INFINITY, f32::MIN),
        (f32::INFINITY, f32::NEG_INFINITY),
        (f32::NAN, f32::INFINITY),
    ] {
        for (one, other) in [(one, other), (other, one)] {
            let mut reference = uniform(4096);
            let mut candidate = reference.clone();
            (reference[4000], candidate[4000]) = (one, other);
            let tolerance = Tolerance { atol: 1e30, rtol: 1e30, zero_atol: 1e30, max_ulp: 1 << 40 };
            let comparison = held(&reference, &candidate, tolerance);
            assert_eq!(comparison.outcome, Outcome::Fail, "{one} against {other}");
            assert!(comparison.finds(FindingKind::Class), "{one} against {other}");
            assert_eq!(comparison.first_outside, Some(vec![4000]));
            assert_eq!(comparison.worst_ulp[0].coordinates, [4000]);
            assert_eq!(comparison.census.iter().map(|pair| pair.count).sum::<u64>(), 4096);
        }
    }
}

#[test]
fn five_hundred_zeroed_outputs_are_found_even_under_a_tolerance_as_wide_as_the_values() {
    let reference = uniform(1 << 20);
    let mut candidate = reference.clone();
    candidate.iter_mut().skip(1000).step_by(2000).take(500).for_each(|value| *value = 0.0);
    let exact = held(&reference, &candidate, Tolerance::new(1e-5, 1e-5));
    assert_eq!(exact.outcome, Outcome::Fail);
    assert!(exact.outside >= 490, "{}", exact.outside);
    let wide = held(&reference, &candidate, Tolerance::new(1.0, 0.0));
    assert_eq!(wide.outside, 0);
    assert!(wide.finds(FindingKind::Zeroed));
    assert_eq!(wide.error.zeroed, 500);
    // What the rule that sees only this norm would say: below 5e-4.
    let nmse = exact.error.relative_frobenius.expect("a norm").0.powi(2);
    assert!(nmse < 5e-4, "{nmse}");
}

#[test]
fn a_sign_flip_at_zero_is_found_unless_it_is_allowed() {
    let mut reference = uniform(4096);
    reference[17] = 0.0;
    let mut candidate = reference.clone();
    candidate[17] = -0.0;
    let comparison = held(&reference, &candidate, Tolerance::new(1e-2, 1e-2));
    assert_eq!(comparison.outcome, Outcome::Fail);
    assert!(comparison.finds(FindingKind::ZeroSign));
    assert_eq!((comparison.ulp.max, comparison.identical), (0, 4095));
    assert_eq!(comparison.first_different, Some(vec![17]));
}

#[test]
fn a_transposed_output_of_equal_norm_is_found() {
    let reference = uniform(512 * 512);
    let transposed: Vec<f32> =
        (0..512 * 512).map(|at| reference[at % 512 * 512 + at / 512]).collect();
    let comparison = held(&reference, &transposed, Tolerance::new(1e-3, 1e-3));
    assert_eq!(comparison.outcome, Outcome::Fail);
    assert!(comparison.outside > 250_000);
}

#[test]
fn a_bias_is_noted_with_its_side() {
    let reference: Vec<f32> = uniform(1 << 16).iter().map(|x| x.abs() + 0.5).collect();
    let up = |(at, x): (usize, &f32)| f32::from_bits(x.to_bits() + (at % 2) as u32);
    let candidate: Vec<f32> = reference.iter().enumerate().map(up).collect();
    let comparison = held(&reference, &candidate, Tolerance::ulp(2));
    assert_eq!(comparison.ulp.mean_signed, Some(0.5));
    assert!(comparison.notes.iter().any(|note| note.contains("above")), "{:?}", comparison.notes);
    assert!(held(&reference, &candidate, Tolerance::EXACT).outside == 1 << 15);
}

#[test]
fn an_empty_tensor_and_one_of_nothing_but_nan_show_nothing() {
    let empty = held(&[], &[], Tolerance::EXACT);
    assert_eq!(empty.outcome, Outcome::Unproven);
    let nan = Tensor::from_f32(&[64], &[f32::NAN; 64]).expect("a tensor");
    let options = Options { equal_nan: true, ..Options::default() };
    let comparison = compare(&nan.view(), &nan.view(), &options).expect("compared");
    assert_eq!(comparison.outcome, Outcome::Unproven);
    assert!(comparison.finds(FindingKind::Nothing));
}

#[test]
fn other_shapes_other_formats_and_senseless_tolerances_are_refused() {
    let one = Tensor::from_f32(&[2, 3], &[0.0; 6]).expect("a tensor");
    let other = Tensor::from_f32(&[3, 2], &[0.0; 6]).expect("a tensor");
    let wide = Tensor::from_f64(&[2, 3], &[0.0; 6]).expect("a tensor");
    let refused = |a: &Tensor, b: &Tensor, options: &Options| {
        compare(&a.view(), &b.view(), options).expect_err("refused").to_string()
    };
    let options = Options::default();
    assert!(refused(&one, &other, &options).contains("[2, 3]"));
    assert!(refused(&wide, &one, &options).contains("f64"));
    for tolerance in [Tolerance::new(f64::NAN, 0.0), Tolerance::new(0.0, -1.0)] {
        let options = Options { tolerance, ..Options::default() };
        assert!(refused(&one, &one, &options).contains("tol"));
    }
    let rounding = Options { round_reference: true, ..Options::default() };
    let rounded = compare(&wide.view(), &one.view(), &rounding).expect("compared");
    assert_eq!(rounded.rounded_from.as_deref(), Some(Format::F64.name()));
}
