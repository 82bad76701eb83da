//! Values of the families and of small formulas, against plain loops.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Drop, Evaluation, EvaluationError, Formula, Inputs, Program, Signature, Tensor,
    dims,
};

/// A signature of fp32 tensors.
fn signature(dims: &[&str], inputs: &[(&str, &[&str])], outputs: &[(&str, &[&str])]) -> Signature {
    let tensors = |list: &[(&str, &[&str])]| {
        list.iter().map(|(name, shape)| Tensor::new(name, Format::F32, shape).unwrap()).collect()
    };
    Signature {
        dims: dims.iter().map(ToString::to_string).collect(),
        inputs: tensors(inputs),
        outputs: tensors(outputs),
        scalars: BTreeMap::new(),
    }
}

const ROWS: &[&str] = &["rows"];
const MATRIX: &[&str] = &["rows", "cols"];

fn rows_program(family: &str) -> Program {
    let signature = signature(&["rows", "cols"], &[("x", MATRIX)], &[("y", ROWS)]);
    Formula::family(family).unwrap().check(&signature).unwrap()
}

fn value(program: &Program, dims: &[(&str, i64)], inputs: &Inputs) -> Vec<f64> {
    let dims = assay_reference::dims(dims.iter().copied());
    let arithmetic = Arithmetic::default();
    program.value(&Evaluation::new(&dims, inputs, &arithmetic)).unwrap().remove("y").unwrap()
}

fn integers(count: usize, seed: u64) -> Vec<f64> {
    let mut random = SplitMix64::new(seed);
    (0..count).map(|_| random.below(2001) as f64 - 1000.0).collect()
}

#[test]
fn a_row_sum_adds_each_row() {
    let x = integers(7 * 1000, 1);
    let inputs = Inputs::new([("x", x.clone())]);
    let sums: Vec<f64> = x.chunks(1000).map(|row| row.iter().sum()).collect();
    assert_eq!(value(&rows_program("rows.sum"), &[("rows", 7), ("cols", 1000)], &inputs), sums);
}

#[test]
fn a_row_maximum_of_nothing_is_minus_infinity() {
    let x = integers(5 * 300, 2);
    let inputs = Inputs::new([("x", x.clone())]);
    let most: Vec<f64> =
        x.chunks(300).map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect();
    let program = rows_program("rows.max");
    assert_eq!(value(&program, &[("rows", 5), ("cols", 300)], &inputs), most);
    let empty = Inputs::new([("x", Vec::new())]);
    assert_eq!(value(&program, &[("rows", 2), ("cols", 0)], &empty), [f64::NEG_INFINITY; 2]);
    assert!(value(&program, &[("rows", 0), ("cols", 9)], &empty).is_empty());
}

#[test]
fn rows_and_a_dropped_term_restrict_a_sum() {
    let x: Vec<f64> = (0..40).map(f64::from).collect();
    let (dims, inputs) = (dims([("rows", 4), ("cols", 10)]), Inputs::new([("x", x)]));
    let (program, arithmetic) = (rows_program("rows.sum"), Arithmetic::default());
    let mut evaluation = Evaluation::new(&dims, &inputs, &arithmetic);
    evaluation.rows = Some(1..3);
    assert_eq!(program.value(&evaluation).unwrap()["y"], [145.0, 245.0]);
    evaluation.drop = Some(Drop { reduction: "c".into(), term: 9 });
    assert_eq!(program.value(&evaluation).unwrap()["y"], [145.0 - 19.0, 245.0 - 29.0]);
    evaluation.drop = Some(Drop { reduction: "y.c".into(), term: 0 });
    assert_eq!(program.value(&evaluation).unwrap()["y"], [145.0 - 10.0, 245.0 - 20.0]);
    evaluation.drop = Some(Drop { reduction: "k".into(), term: 0 });
    let error = program.value(&evaluation).unwrap_err();
    assert!(matches!(error, EvaluationError::Request { .. }), "{error}");
    evaluation.drop = None;
    evaluation.rows = Some(3..5);
    let error = program.value(&evaluation).unwrap_err().to_string();
    assert!(error.contains("rows 3..5"), "{error}");
}
