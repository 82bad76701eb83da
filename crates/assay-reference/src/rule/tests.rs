//! Tests of the named rules.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;

use super::{Rule, RuleError};
use crate::{Dims, Extent, Inputs, Signature, Tensor};

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

fn tensor(name: &str, format: Format, shape: &[&str]) -> Tensor {
    let shape = shape.iter().map(|text| Extent::parse(text).expect("an extent")).collect();
    Tensor { name: name.to_owned(), format, shape }
}

fn signature() -> Signature {
    Signature {
        dims: vec!["rows".to_owned(), "cols".to_owned(), "k".to_owned()],
        inputs: vec![tensor("x", Format::Bf16, &["rows", "cols"])],
        outputs: vec![
            tensor("values", Format::Bf16, &["rows", "k"]),
            tensor("indices", Format::I32, &["rows", "k"]),
        ],
        scalars: BTreeMap::new(),
    }
}

fn rule(name: &str, parameters: &[(&str, &str)]) -> Result<Rule, RuleError> {
    let owned = parameters.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Rule::named(name, &owned.collect(), &signature())
}

fn setting(row: &[f64], k: i64) -> (Dims, Inputs) {
    let sizes = [("rows", 1), ("cols", row.len() as i64), ("k", k)];
    let dims = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let tensors = BTreeMap::from([("x".to_owned(), row.to_vec())]);
    (dims, Inputs { tensors })
}

fn indices(name: &str, parameters: &[(&str, &str)], row: &[f64], k: i64) -> Vec<f64> {
    let (dims, inputs) = setting(row, k);
    let rule = rule(name, parameters).expect("a rule");
    rule.expected(&dims, &inputs).expect("outputs")["indices"].clone()
}

#[test]
fn top_k_takes_the_largest_first_and_ties_in_order_of_index() {
    let row = [1.0, 3.0, 2.0, 3.0, -1.0];
    assert_eq!(indices("top_k", &[("k", "k")], &row, 3), [1.0, 3.0, 2.0]);
    assert_eq!(indices("top_k", &[("k", "k")], &row, 5), [1.0, 3.0, 2.0, 0.0, 4.0]);
}

#[test]
fn nan_ranks_above_infinity_unless_the_rule_says_smallest() {
    let row = [0.0, INFINITY, NAN, -INFINITY, NAN];
    let k = ("k", "k");
    assert_eq!(indices("top_k", &[k], &row, 4), [2.0, 4.0, 1.0, 0.0]);
    assert_eq!(indices("top_k", &[k, ("nan", "smallest")], &row, 4), [1.0, 0.0, 3.0, 2.0]);
}

#[test]
fn zeros_are_equal_unless_the_rule_says_signed() {
    let row = [-1.0, -0.0, 0.0];
    let k = ("k", "k");
    assert_eq!(indices("top_k", &[k], &row, 2), [1.0, 2.0]);
    assert_eq!(indices("top_k", &[k, ("zeros", "signed")], &row, 2), [2.0, 1.0]);
}

#[test]
fn argmax_is_top_k_of_one() {
    let mut random = SplitMix64::new(7);
    for _ in 0..200 {
        let length = 1 + random.below(40) as usize;
        let row: Vec<f64> = (0..length)
            .map(|_| [NAN, INFINITY, -INFINITY, 0.0, -0.0, 1.0][random.below(6) as usize])
            .collect();
        for nan in ["largest", "smallest"] {
            let top = indices("top_k", &[("k", "1"), ("nan", nan)], &row, 1);
            assert_eq!(indices("argmax", &[("nan", nan)], &row, 1), top, "{row:?}");
        }
    }
}

#[test]
fn a_wrong_index_and_a_dropped_nan_are_violations() {
    let (dims, inputs) = setting(&[2.0, NAN, 2.0], 2);
    let rule = rule("top_k", &[("k", "k")]).expect("a rule");
    let mut outputs = rule.expected(&dims, &inputs).expect("outputs");
    assert_eq!(rule.check(&dims, &inputs, &outputs, 9), Ok(vec![]));
    outputs.insert("values".to_owned(), vec![2.0, 2.0]);
    outputs.insert("indices".to_owned(), vec![0.0, 2.0]);
    let violations = rule.check(&dims, &inputs, &outputs, 9).expect("comparable");
    let places: Vec<_> = violations.iter().map(|v| (v.output.as_str(), v.element[1])).collect();
    assert_eq!(places, [("indices", 0), ("indices", 1), ("values", 0)]);
}

#[test]
fn places_past_the_last_element_are_empty() {
    let (dims, inputs) = setting(&[1.0, 2.0], 3);
    let rule = rule("top_k", &[("k", "k")]).expect("a rule");
    let outputs = rule.expected(&dims, &inputs).expect("outputs");
    assert_eq!(outputs["values"], [2.0, 1.0, -INFINITY]);
    assert_eq!(outputs["indices"], [1.0, 0.0, -1.0]);
}

#[test]
fn requests_that_cannot_be_are_named() {
    let text = |result: Result<Rule, RuleError>| result.expect_err("an error").to_string();
    assert!(text(rule("topk", &[])).contains("the rules are argmax and top_k"));
    assert!(text(rule("top_k", &[])).contains("`k` is missing"));
    assert!(text(rule("argmax", &[("k", "1")])).contains("unknown parameter `k`"));
    assert!(text(rule("argmax", &[("nan", "first")])).contains("`largest` or `smallest`"));
    let (dims, inputs) = setting(&[1.0, 2.0], 0);
    let error = rule("top_k", &[("k", "k")]).expect("a rule").expected(&dims, &inputs);
    assert!(error.expect_err("no place").to_string().contains("at least one place"));
}
