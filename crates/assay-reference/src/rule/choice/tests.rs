//! Tests of choices: no right choice is refused, and each broken kernel's choice is.

use std::collections::{BTreeMap, BTreeSet};

use assay_num::Format;
use assay_num::random::SplitMix64;

use super::ordered::{is_ambiguous, pick, wrong_place};
use super::score::Score;
use super::{Choice, ChoiceError};
use crate::rule::NanPlace;
use crate::{Arithmetic, Dims, Evaluation, Formula, Inputs, Program, Signature, Tensor, dims};

const NAN: f64 = f64::NAN;
const LARGEST: NanPlace = NanPlace::Largest;

fn exact(values: &[f64]) -> Vec<Score> {
    values.iter().map(|value| Score::exact(*value)).collect()
}

#[test]
fn equal_scores_are_taken_in_order_of_index() {
    let scores = exact(&[1.0, 3.0, 2.0, 3.0]);
    assert_eq!(pick(LARGEST, &scores, 3), [1.0, 3.0, 2.0]);
    assert_eq!(wrong_place(LARGEST, &scores, &[1.0, 3.0, 2.0]), None);
    assert_eq!(wrong_place(LARGEST, &scores, &[3.0, 1.0, 2.0]), Some(1), "ties reversed");
    assert_eq!(wrong_place(LARGEST, &scores, &[1.0, 3.0, 0.0]), Some(2), "a smaller one");
    assert_eq!(wrong_place(LARGEST, &scores, &[1.0, 1.0, 2.0]), Some(1), "one taken twice");
    assert_eq!(wrong_place(LARGEST, &scores, &[1.0, 4.0, 2.0]), Some(1), "past the end");
    assert_eq!(wrong_place(LARGEST, &scores, &[NAN, 3.0, 2.0]), Some(0), "never written");
}

#[test]
fn nan_is_chosen_first_or_last_as_stated() {
    let scores = exact(&[1.0, NAN, f64::INFINITY, NAN]);
    assert_eq!(pick(LARGEST, &scores, 3), [1.0, 3.0, 2.0]);
    assert_eq!(pick(NanPlace::Smallest, &scores, 3), [2.0, 0.0, 1.0]);
    assert_eq!(wrong_place(LARGEST, &scores, &[2.0, 0.0, 1.0]), Some(2), "NaN dropped");
    assert!(wrong_place(NanPlace::Smallest, &scores, &[1.0, 3.0, 2.0]).is_some());
}

#[test]
fn places_past_the_last_score_hold_minus_one() {
    let scores = exact(&[1.0, 2.0]);
    assert_eq!(pick(LARGEST, &scores, 3), [1.0, 0.0, -1.0]);
    assert_eq!(wrong_place(LARGEST, &scores, &[1.0, 0.0, -1.0]), None);
    assert_eq!(wrong_place(LARGEST, &scores, &[1.0, 0.0, 0.0]), Some(2));
}

#[test]
fn a_near_tie_has_two_right_answers_and_a_clear_one_does_not() {
    let scores = |gap: f64| vec![Score::within(1.0, 0.1), Score::within(1.0 + gap, 0.1)];
    for choice in [[0.0], [1.0]] {
        assert_eq!(wrong_place(LARGEST, &scores(0.15), &choice), None);
    }
    assert!(is_ambiguous(LARGEST, &scores(0.15), &[1.0]));
    assert_eq!(wrong_place(LARGEST, &scores(0.25), &[0.0]), Some(0));
    assert!(!is_ambiguous(LARGEST, &scores(0.25), &[1.0]));
}

#[test]
fn a_choice_is_right_exactly_if_some_scores_within_bounds_give_it() {
    let mut random = SplitMix64::new(11);
    for case in 0..300 {
        let scores: Vec<Score> = (0..3)
            .map(|_| {
                let low = random.below(3) as f64;
                Score { low, high: low + random.below(3) as f64 }
            })
            .collect();
        let mut given = BTreeSet::new();
        for code in 0..17 * 17 * 17 {
            let steps = [code % 17, code / 17 % 17, code / 289];
            let values = |i: usize| f64::from(steps[i]) / 8.0 + scores[i].low;
            let values = [values(0), values(1), values(2)];
            if values.iter().zip(&scores).all(|(value, score)| *value <= score.high) {
                let chosen = pick(LARGEST, &exact(&values), 2);
                given.insert([chosen[0] as i64, chosen[1] as i64]);
            }
        }
        for (a, b) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            let right = wrong_place(LARGEST, &scores, &[a as f64, b as f64]).is_none();
            assert_eq!(right, given.contains(&[a, b]), "case {case}: {scores:?}, {a} {b}");
        }
    }
}

fn sampler(parameters: &[(&str, &str)]) -> Result<Program, ChoiceError> {
    let tensor = |name, format, shape: &[&str]| Tensor::new(name, format, shape).expect("extents");
    let signature = Signature {
        dims: vec!["rows".to_owned(), "cols".to_owned()],
        inputs: vec![
            tensor("x", Format::F32, &["rows", "cols"]),
            tensor("bits", Format::U32, &["rows"]),
        ],
        outputs: vec![
            tensor("token", Format::I32, &["rows"]),
            tensor("chance", Format::F32, &["rows"]),
        ],
        scalars: BTreeMap::from([("enough".to_owned(), 0.9)]),
    };
    let text = "m[r] = max(j in 0..cols: x[r, j])\n\
                l[r] = sum(c in 0..cols: exp(x[r, c] - m[r]))\n\
                p[r, c] = exp(x[r, c] - m[r]) / l[r]\n\
                chance[r] = p[r, token[r]]\n";
    let formula = Formula::parse(text).expect("a formula");
    let pairs = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Choice::bind("top_p", &pairs.collect(), &formula, &signature)
}

const STATED: [(&str, &str); 5] =
    [("of", "p"), ("into", "token"), ("p", "enough"), ("draw", "bits"), ("order", "x")];

fn rows(random: &mut SplitMix64, count: usize, length: usize) -> (Dims, Inputs) {
    let x: Vec<f64> = (0..count * length).map(|_| random.below(13) as f64 / 4.0).collect();
    let bits: Vec<f64> = (0..count).map(|_| random.below(1 << 32) as f64).collect();
    let sizes = dims([("rows", count as i64), ("cols", length as i64)]);
    (sizes, Inputs::new([("x", x), ("bits", bits)]))
}

/// How a sampler goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The nucleus ends before the token that reaches p.
    ShortPrefix,
    /// The nucleus ends a token late.
    LongPrefix,
    /// The draw is scaled by the whole mass.
    Unnormalised,
    /// Equal logits in falling order of index.
    TiesReversed,
    /// Sorted from the smallest.
    Ascending,
}

/// A sampler in fp32, one row.
fn sample(x: &[f64], bits: f64, fault: Fault) -> f64 {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weight: Vec<f32> = x.iter().map(|x| ((x - largest) as f32).exp()).collect();
    let total: f32 = weight.iter().sum();
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|a, b| x[*b].total_cmp(&x[*a]));
    match fault {
        Fault::TiesReversed => {
            order.sort_by(|a, b| x[*b].total_cmp(&x[*a]).then(b.cmp(a)));
        }
        Fault::Ascending => order.reverse(),
        _ => {}
    }
    let mut masses: Vec<f32> = Vec::new();
    for index in &order {
        masses.push(masses.last().copied().unwrap_or(0.0) + weight[*index] / total);
    }
    let mut last = masses.iter().position(|mass| *mass >= 0.9).unwrap_or(x.len() - 1);
    match fault {
        Fault::ShortPrefix => last = last.saturating_sub(1),
        Fault::LongPrefix => last = (last + 1).min(x.len() - 1),
        _ => {}
    }
    let nucleus = if fault == Fault::Unnormalised { 1.0 } else { masses[last] };
    let target = bits as f32 / (1u64 << 32) as f32 * nucleus;
    let place = masses.iter().position(|mass| *mass > target).unwrap_or(last).min(last);
    order[place] as f64
}

fn refused(fault: Fault) -> usize {
    let program = sampler(&STATED).expect("a sampler");
    let mut random = SplitMix64::new(5);
    let mut refused = 0;
    for _ in 0..20 {
        let (sizes, inputs) = rows(&mut random, 64, 50);
        let arithmetic = Arithmetic::default();
        let evaluation = Evaluation::new(&sizes, &inputs, &arithmetic);
        let (x, bits) = (&inputs.tensors["x"], &inputs.tensors["bits"]);
        let got: Vec<f64> =
            x.chunks(50).zip(bits).map(|(x, bits)| sample(x, *bits, fault)).collect();
        let judged = program.choice().expect("one").judge(&evaluation, &got).expect("judged");
        assert!(judged.ambiguous * 20 <= judged.rows, "{} ambiguous", judged.ambiguous);
        refused += judged.violations.len();
    }
    refused
}

#[test]
fn a_sampler_in_fp32_is_never_refused_and_each_broken_one_is() {
    assert_eq!(refused(Fault::None), 0);
    for fault in [
        Fault::ShortPrefix,
        Fault::LongPrefix,
        Fault::Unnormalised,
        Fault::TiesReversed,
        Fault::Ascending,
    ] {
        assert!(refused(fault) > 20, "{fault:?}: {}", refused(fault));
    }
}

#[test]
fn a_row_with_a_nan_draws_the_first_token_that_is_one() {
    let program = sampler(&STATED).expect("a sampler");
    let (sizes, mut inputs) = rows(&mut SplitMix64::new(3), 2, 8);
    inputs.tensors.get_mut("x").expect("x")[13] = NAN;
    let arithmetic = Arithmetic::default();
    let evaluation = Evaluation::new(&sizes, &inputs, &arithmetic);
    let choice = program.choice().expect("one");
    let expected = choice.expected(&evaluation).expect("a choice");
    // One NaN makes every probability of its row one, so the first is drawn.
    assert_eq!(expected[1], 0.0);
    let judged = choice.judge(&evaluation, &[expected[0], 5.0]).expect("judged");
    assert_eq!(judged.violations.len(), 1);
    assert_eq!(
        (judged.violations[0].element.as_slice(), judged.violations[0].got),
        (&[1][..], 5.0)
    );
}

#[test]
fn outputs_are_judged_given_the_choice() {
    let program = sampler(&STATED).expect("a sampler");
    let (sizes, mut inputs) = rows(&mut SplitMix64::new(9), 4, 8);
    let arithmetic = Arithmetic::default();
    let chance = |inputs: &Inputs| {
        program.value(&Evaluation::new(&sizes, inputs, &arithmetic)).expect("values")["chance"][0]
    };
    let by_rule = chance(&inputs);
    assert!(by_rule > 0.0 && by_rule < 1.0);
    let x = inputs.tensors["x"][..8].to_vec();
    let least = (0..8).min_by(|a, b| x[*a].total_cmp(&x[*b])).expect("one");
    inputs.tensors.insert("token".to_owned(), vec![least as f64, 0.0, 0.0, 0.0]);
    assert!(chance(&inputs) < by_rule);
}

#[test]
fn choices_that_cannot_be_bound_are_named() {
    let text = |changed: &[(&str, &str)]| {
        let mut parameters: BTreeMap<&str, &str> = STATED.into_iter().collect();
        parameters.extend(changed.iter().copied());
        let pairs: Vec<_> = parameters.into_iter().collect();
        sampler(&pairs).expect_err("an error").to_string()
    };
    assert!(text(&[("of", "q")]).contains("no statement `q`"), "{}", text(&[("of", "q")]));
    assert!(text(&[("into", "chance")]).contains("no integer output"));
    assert!(text(&[("p", "1.5")]).contains("0 < p <= 1"));
    assert!(text(&[("draw", "u")]).contains("no input"));
    assert!(text(&[("order", "bits")]).contains("the scores' axes"));
    assert!(text(&[("nan", "largest")]).contains("unknown parameter `nan`"));
    assert!(text(&[("of", "l")]).contains("axes"), "{}", text(&[("of", "l")]));
}
