//! Scans: what they compute, in every domain, and what leaving a step out does.

use std::collections::BTreeMap;

use assay_num::{Class, Format};
use assay_reference::builder::{FormulaBuilder, carry, index, read, scan};
use assay_reference::{
    Arithmetic, Bounded, Dims, Drop, Evaluation, Formula, Inputs, Order, ProblemKind, Program,
    ReduceOperation, Replay, Signature, Tensor, dims,
};

const DECAYED: &str = "h[t, d] = scan(t, prev = h0[d]: a[d] * prev + x[t, d])";

/// A formula over x[steps, wide], a[wide] and h0[wide], with the output h of `axes`.
fn program_of(text: &str, output: &str, axes: &[&str]) -> Program {
    let tensor = |name, shape: &[&str]| Tensor::new(name, Format::F32, shape).unwrap();
    let signature = Signature {
        dims: vec!["steps".into(), "wide".into()],
        inputs: vec![
            tensor("x", &["steps", "wide"]),
            tensor("a", &["wide"]),
            tensor("h0", &["wide"]),
        ],
        outputs: vec![tensor(output, axes)],
        scalars: BTreeMap::new(),
    };
    Formula::parse(text).unwrap().check(&signature).unwrap_or_else(|error| panic!("{error}"))
}

fn program(text: &str) -> Program {
    program_of(text, "h", &["steps", "wide"])
}

fn shape(steps: i64, wide: i64) -> Dims {
    dims([("steps", steps), ("wide", wide)])
}

/// x[t, d] = t + 10 d, a[d] = 1/2, h0[d] = d.
fn inputs(steps: i64, wide: i64) -> Inputs {
    let x = (0..steps).flat_map(|t| (0..wide).map(move |d| (t + 10 * d) as f64)).collect();
    let h0 = (0..wide).map(|d| d as f64).collect();
    Inputs::new([("x", x), ("a", vec![0.5; wide as usize]), ("h0", h0)])
}

/// What [`DECAYED`] gives, with step `dropped` left out.
fn expected(steps: i64, wide: i64, dropped: Option<i64>) -> Vec<f64> {
    let mut state: Vec<f64> = (0..wide).map(|d| d as f64).collect();
    let mut found = Vec::new();
    for t in 0..steps {
        for (d, state) in state.iter_mut().enumerate() {
            if dropped != Some(t) {
                *state = 0.5 * *state + (t + 10 * d as i64) as f64;
            }
        }
        found.extend(&state);
    }
    found
}

fn values(program: &Program, (steps, wide): (i64, i64), output: &str) -> Vec<f64> {
    let (dims, inputs, how) = (shape(steps, wide), inputs(steps, wide), Arithmetic::default());
    program.value(&Evaluation::new(&dims, &inputs, &how)).unwrap().remove(output).unwrap()
}

#[test]
fn a_scan_carries_its_value_from_step_to_step() {
    for (steps, wide) in [(1, 1), (7, 3), (5, 300), (40, 12), (3, 129)] {
        let found = values(&program(DECAYED), (steps, wide), "h");
        assert_eq!(found, expected(steps, wide, None), "{steps} steps, {wide} wide");
    }
}

#[test]
fn the_walked_axis_may_be_any() {
    let last = program_of(
        "h[d, t] = scan(t, prev = h0[d]: a[d] * prev + x[t, d])",
        "h",
        &["wide", "steps"],
    );
    let middle = program_of(
        "h[b in 0..wide, t, d] = scan(t, prev = h0[d]: a[d] * prev + x[t, d])\n\
         y[b, t, d] = h[b, t, d] * b",
        "y",
        &["wide", "steps", "wide"],
    );
    for (steps, wide) in [(6, 4), (5, 300), (200, 13)] {
        let wanted = expected(steps, wide, None);
        let at = |t: i64, d: i64| wanted[(t * wide + d) as usize];
        let turned = (0..wide).flat_map(|d| (0..steps).map(move |t| at(t, d)));
        assert_eq!(values(&last, (steps, wide), "h"), turned.collect::<Vec<f64>>());
        let found = values(&middle, (steps, wide), "y");
        for (number, found) in found.into_iter().enumerate() {
            let number = number as i64;
            let (b, rest) = (number / (steps * wide), number % (steps * wide));
            assert_eq!(found, wanted[rest as usize] * b as f64, "element {number}");
        }
    }
}

#[test]
fn a_scan_of_one_axis_walks_it_alone() {
    let text = "h[t] = scan(t, prev = 3: prev + x[t, 0] * (t + 1))";
    let found = values(&program_of(text, "h", &["steps"]), (5, 2), "h");
    assert_eq!(found, [3.0, 5.0, 11.0, 23.0, 43.0]);
}

#[test]
fn a_step_may_read_its_index_and_choose_by_the_carry() {
    let text = "h[t, d] = scan(t, prev = 0: select(prev > 4, 0, prev + t + a[d]))";
    let found = values(&program(text), (5, 1), "h");
    assert_eq!(found, [0.5, 2.0, 4.5, 0.0, 4.5]);
}

#[test]
fn rows_of_a_scan_are_those_of_the_whole() {
    let (dims, inputs, how) = (shape(9, 5), inputs(9, 5), Arithmetic::default());
    let program = program(DECAYED);
    let mut evaluation = Evaluation::new(&dims, &inputs, &how);
    evaluation.rows = Some(6..8);
    assert_eq!(program.value(&evaluation).unwrap()["h"], expected(9, 5, None)[30..40]);
    assert_eq!(program.error(&evaluation).unwrap()["h"].value, expected(9, 5, None)[30..40]);
}

#[test]
fn an_output_with_another_first_axis_is_whole_whatever_the_rows() {
    let tensor = |name, shape: &[&str]| Tensor::new(name, Format::F32, shape).unwrap();
    let signature = Signature {
        dims: vec!["steps".into(), "wide".into()],
        inputs: vec![tensor("x", &["steps", "wide"])],
        outputs: vec![tensor("y", &["steps"]), tensor("last", &["wide"])],
        ..Signature::default()
    };
    let text = "h[t, d] = scan(t, prev = 0: prev + x[t, d])\n\
                y[t] = sum(k in 0..wide: h[t, k])\nlast[d] = h[steps - 1, d]";
    let program = Formula::parse(text).unwrap().check(&signature).unwrap();
    let (dims, inputs, how) = (shape(9, 2), inputs(9, 2), Arithmetic::default());
    let mut evaluation = Evaluation::new(&dims, &inputs, &how);
    evaluation.rows = Some(5..6);
    let found = program.value(&evaluation).unwrap();
    assert_eq!(found["y"], [15.0 + 75.0]);
    assert_eq!(found["last"], [36.0, 126.0]);
}

#[test]
fn a_step_left_out_leaves_the_carry_as_it_was() {
    let (dims, inputs, how) = (shape(6, 140), inputs(6, 140), Arithmetic::default());
    let program = program(DECAYED);
    for term in 0..6 {
        let mut evaluation = Evaluation::new(&dims, &inputs, &how);
        evaluation.drop = Some(Drop { reduction: "t".to_owned(), term });
        let found = &program.value(&evaluation).unwrap()["h"];
        assert_eq!(*found, expected(6, 140, Some(term)), "step {term}");
    }
}

#[test]
fn a_scan_is_described_as_a_reduction_over_its_steps() {
    let text = "h[t, d] = scan(t, prev = h0[d]: a[d] * prev + x[t, d])\n\
                y[t] = sum(k in 0..wide: h[t, k])";
    let program = program_of(text, "y", &["steps"]);
    let described = &program.reductions()[0];
    assert_eq!((described.name.as_str(), described.operation), ("t", ReduceOperation::Scan));
    assert_eq!((described.from.text(), described.to.text()), ("0", "steps"));
    assert_eq!(described.outputs, ["y"]);
    let walked: Vec<_> = described.reads.iter().map(|r| (r.tensor.as_str(), r.axis)).collect();
    assert_eq!(walked, [("h0", None), ("a", None), ("x", Some(0))]);
    assert_eq!(program.reductions()[1].name, "k");
}

#[test]
fn a_scan_prints_and_builds_as_it_reads() {
    let (t, d) = (index("t"), index("d"));
    let step = read("a", [&d]) * carry("prev") + read("x", [&t, &d]);
    let value = scan("t", "prev", read("h0", [&d]), step);
    let built = FormulaBuilder::new().define("h", ["t", "d"], value).build().unwrap();
    assert_eq!(built.text(), DECAYED);
    assert_eq!(Formula::parse(DECAYED).unwrap().canonical(), DECAYED);
}

#[test]
fn a_nan_or_an_infinity_lasts_from_its_step_on() {
    let (dims, how) = (shape(6, 3), Arithmetic::default());
    let mut inputs = inputs(6, 3);
    let x = inputs.tensors.get_mut("x").unwrap();
    (x[2 * 3], x[3 * 3 + 1]) = (f64::NAN, f64::INFINITY);
    let found = program(DECAYED).classes(&Evaluation::new(&dims, &inputs, &how)).unwrap();
    for (at, class) in found["h"].iter().enumerate() {
        let wanted = match (at % 3, at / 3) {
            (0, 2..) => Class::NaN,
            (1, 3..) => Class::PositiveInfinity,
            _ => Class::Finite,
        };
        assert_eq!(*class, wanted, "step {}, element {}", at / 3, at % 3);
    }
}

fn bounded(text: &str, inputs: &Inputs, dims: &Dims, how: &Arithmetic) -> Bounded {
    let found = program(text).error(&Evaluation::new(dims, inputs, how));
    found.unwrap().remove("h").unwrap()
}

#[test]
fn exact_steps_have_no_error_and_inexact_ones_add_up() {
    let (dims, how) = (shape(20, 2), Arithmetic::default());
    let mut inputs = inputs(20, 2);
    inputs.tensors.insert("a".into(), vec![1.0, 0.9f32.into()]);
    let found = bounded(DECAYED, &inputs, &dims, &how);
    for t in 0..20 {
        let (exact, decayed) = (found.error[2 * t], found.error[2 * t + 1]);
        assert_eq!(exact, 0.0, "step {t}");
        assert!(decayed > 0.0 && decayed < 2.0 * 20.0 * 2f64.powi(-24) * 200.0, "{decayed:e}");
    }
    // The order of a recurrence is fixed, so nothing depends on an order of additions.
    assert!(found.exact_sums.iter().all(|exact| *exact));
}

#[test]
fn an_exponential_of_exactly_zero_is_exactly_one() {
    let text = "h[t, d] = scan(t, prev = h0[d]: exp(a[d] * x[t, d]) * prev + x[t, d])";
    let (dims, how) = (shape(20, 2), Arithmetic::default());
    let mut inputs = inputs(20, 2);
    inputs.tensors.insert("a".into(), vec![0.0; 2]);
    assert_eq!(bounded(text, &inputs, &dims, &how).error, vec![0.0; 40]);
}

#[test]
fn a_scan_that_overflows_says_at_which_element() {
    let (dims, how) = (shape(200, 2), Arithmetic::default());
    let mut inputs = inputs(200, 2);
    inputs.tensors.insert("a".into(), vec![0.5, 4.0]);
    let problems = bounded(DECAYED, &inputs, &dims, &how).problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].kind, ProblemKind::Overflow);
    assert_eq!(problems[0].element[1], 1);
    assert!(problems[0].element[0] > 50, "{:?}", problems[0]);
    assert!(problems[0].expression.contains("prev"), "{:?}", problems[0]);
}

#[test]
fn a_replayed_scan_rounds_its_state_after_every_step() {
    let text = "h[t, d] = scan(t, prev = 0: prev + a[d])";
    let (dims, how) = (shape(600, 2), Arithmetic::default());
    let mut inputs = inputs(600, 2);
    inputs.tensors.insert("a".into(), vec![1.0, 1.0]);
    let replayed = |accumulator: Format, how: &Arithmetic| {
        let replay = Replay { accumulator, order: Order::Halves, partials_fp32: true };
        let evaluation = Evaluation::new(&dims, &inputs, how);
        program(text).replay(&evaluation, &replay).unwrap()["h"][1199]
    };
    // Where one is half a step, bf16 stops growing.
    assert_eq!(replayed(Format::Bf16, &how), 256.0);
    assert_eq!(replayed(Format::F16, &how), 600.0);
    assert_eq!(replayed(Format::F32, &how), 600.0);
    // A scan that is declared wide is left as it is.
    let wide = Arithmetic { accumulators: [("t".to_owned(), Format::F64)].into(), ..how };
    assert_eq!(replayed(Format::Bf16, &wide), 600.0);
}

#[test]
fn the_depth_of_a_scan_grows_with_its_steps() {
    let depth = |steps: i64| program(DECAYED).depth(&shape(steps, 4), &Arithmetic::default())["h"];
    assert_eq!(depth(1), 2.0);
    assert_eq!(depth(100), 200.0);
}
