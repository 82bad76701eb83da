//! Evaluation beyond the families: masks, gathers, rounding points, classes, replays, depths, and
//! inputs that cannot be evaluated.

use std::collections::BTreeMap;

use assay_num::{Class, Format};
use assay_reference::{
    Arithmetic, Bounded, Division, Drop, Evaluation, EvaluationError, Extent, Formula, Inputs,
    Order, ProblemKind, Program, Replay, Signature, Tensor, dims,
};

/// A formula over `n` and `m` with inputs x[n], w[n, m] and at[n], and the output y.
fn program_of(text: &str, output: &[&str], format: Format) -> Program {
    let tensor = |name, format, shape: &[&str]| Tensor::new(name, format, shape).unwrap();
    let signature = Signature {
        dims: vec!["n".into(), "m".into()],
        inputs: vec![
            tensor("x", Format::F32, &["n"]),
            tensor("w", Format::F32, &["n", "m"]),
            tensor("at", Format::I32, &["n"]),
        ],
        outputs: vec![tensor("y", format, output)],
        scalars: BTreeMap::from([("third".to_owned(), 1.0 / 3.0)]),
    };
    Formula::parse(text).unwrap().check(&signature).unwrap_or_else(|error| panic!("{error}"))
}

fn program(text: &str) -> Program {
    program_of(text, &["n"], Format::F32)
}

/// Inputs of 4 and 4 by 3 elements.
fn inputs() -> Inputs {
    Inputs::new([
        ("x", vec![1.0, -2.0, 3.0, 0.5]),
        ("w", (0..12).map(f64::from).collect()),
        ("at", vec![3.0, 0.0, 1.0, 1.0]),
    ])
}

fn with<T>(inputs: &Inputs, arithmetic: &Arithmetic, run: impl Fn(&Evaluation<'_>) -> T) -> T {
    let dims = dims([("n", 4), ("m", 3)]);
    run(&Evaluation::new(&dims, inputs, arithmetic))
}

fn value(text: &str) -> Result<Vec<f64>, EvaluationError> {
    let program = program(text);
    let run = |evaluation: &Evaluation<'_>| program.value(evaluation);
    Ok(with(&inputs(), &Arithmetic::default(), run)?.remove("y").unwrap())
}

fn error_of(text: &str, x: [f64; 4], arithmetic: &Arithmetic) -> Bounded {
    let mut inputs = inputs();
    inputs.tensors.insert("x".into(), x.into());
    let program = program(text);
    let bounded = with(&inputs, arithmetic, |evaluation| program.error(evaluation));
    bounded.unwrap().remove("y").unwrap()
}

fn bounded(text: &str, x: [f64; 4]) -> Bounded {
    error_of(text, x, &Arithmetic::default())
}

#[test]
fn conditions_guard_the_reads_of_their_branches() {
    let shifted = "y[i] = select(i > 0, x[i - 1], 10)";
    assert_eq!(value(shifted).unwrap(), [10.0, 1.0, -2.0, 3.0]);
    let causal = "y[i] = sum(k in 0..n if k <= i && i - k < 2: x[i - k])";
    assert_eq!(value(causal).unwrap(), [1.0, -1.0, -1.0, -1.0]);
    let before = "y[i] = select(i >= 1, sum(k in 0..m: w[i - 1, k]), 0)";
    assert_eq!(value(before).unwrap(), [0.0, 3.0, 12.0, 21.0]);
    // An index that is the same for all elements, guarded by a condition that is not.
    assert_eq!(value("y[i] = select(i < 0, x[n + 3], 7)").unwrap(), [7.0; 4]);
    assert!(value("y[i] = select(i > 2, x[n + 3], 7)").is_err());
    let unguarded = value("y[i] = x[i - 1]").unwrap_err();
    let expected =
        EvaluationError::IndexOutOfRange { tensor: "x".into(), axis: 0, index: -1, extent: 4 };
    assert_eq!(unguarded, expected);
    assert!(
        unguarded.to_string().starts_with("`x` is read at index -1 of axis 0, whose extent is 4")
    );
}

#[test]
fn bounds_may_depend_on_other_indices() {
    let prefix = "y[i] = sum(k in 0..i + 1: x[k])";
    assert_eq!(value(prefix).unwrap(), [1.0, -1.0, 2.0, 2.5]);
    let nested = "y[i] = max(k in 0..m: sum(j in k..m: w[i, j]))";
    assert_eq!(value(nested).unwrap(), [3.0, 12.0, 21.0, 30.0]);
    assert_eq!(value("y[i] = sum(k in 2..1: x[k])").unwrap(), [0.0; 4]);
    assert_eq!(value("y[i] = prod(k in 0..0: x[k])").unwrap(), [1.0; 4]);
}

#[test]
fn gathers_read_where_another_tensor_points() {
    assert_eq!(value("y[i] = x[at[i]]").unwrap(), [0.5, 1.0, -2.0, -2.0]);
    assert_eq!(value("y[i] = sum(k in 0..at[i]: x[k])").unwrap(), [2.0, 0.0, 1.0, 1.0]);
    let outside = value("y[i] = x[2 * at[i]]").unwrap_err().to_string();
    assert!(outside.starts_with("`x` is read at index 6"), "{outside}");
    let negative = value("y[i] = select(i < 3, x[x[i]], 0)").unwrap_err();
    assert!(matches!(negative, EvaluationError::IndexOutOfRange { index: -2, .. }), "{negative}");
    let fraction = value("y[i] = select(i == 3, x[x[i]], 0)").unwrap_err();
    assert_eq!(fraction, EvaluationError::IndexNotWhole { tensor: "x".into(), value: 0.5 });
}

#[test]
fn index_division_by_zero_is_an_error_unless_guarded() {
    let error = value("y[i] = x[i / (n - 4)]").unwrap_err().to_string();
    assert!(error.contains("divides by zero"), "{error}");
    let guarded = value("y[i] = select(i > 0, x[4 / i - 1], 7)").unwrap();
    assert_eq!(guarded, [7.0, 0.5, -2.0, 1.0]);
}

#[test]
fn a_reduction_written_twice_is_computed_once() {
    let text = "y[i] = sum(k in 0..m: w[i, k]) * sum(q in 0..m: w[i, q])";
    assert_eq!(program(text).reductions().len(), 1);
    assert_eq!(value(text).unwrap(), [9.0, 144.0, 441.0, 900.0]);
    let two = program("y[i] = sum(k in 0..m: w[i, k]) + max(k in 0..m: w[i, k])");
    let names: Vec<&str> = two.reductions().iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["y.k", "y.k.2"]);
}

#[test]
fn bits_are_fields_of_a_whole_number() {
    let text = "y[i] = bits(228, i, 2)";
    assert_eq!(value(text).unwrap(), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(value("y[i] = bits(at[i], 40, 2)").unwrap(), [0.0; 4]);
}

#[test]
fn rounding_points_round_and_near_ones_do_not() {
    assert_eq!(value("y[i] = bf16(third)").unwrap(), [Format::Bf16.round(1.0 / 3.0); 4]);
    assert_eq!(value("y[i] = near(bf16, third)").unwrap(), [1.0 / 3.0; 4]);
}

#[test]
fn evaluations_that_cannot_be_say_what_is_missing() {
    let program = program("y[i] = x[i] + w[i, 0]");
    let arithmetic = Arithmetic::default();
    let run = |n: i64, m: Option<i64>, inputs: &Inputs| {
        let mut dims = dims([("n", n)]);
        dims.extend(m.map(|m| ("m".to_owned(), m)));
        program.value(&Evaluation::new(&dims, inputs, &arithmetic)).unwrap_err().to_string()
    };
    assert!(run(4, None, &inputs()).starts_with("dimension `m` has no value"));
    assert!(run(-4, Some(3), &inputs()).starts_with("dimension `n` is -4"));
    let wrong = "input `x` has 4 elements, but its shape [5] holds 5";
    assert_eq!(run(5, Some(3), &inputs()), wrong);
    let mut lacking = inputs();
    lacking.tensors.remove("w");
    assert!(run(4, Some(3), &lacking).starts_with("input `w` is missing"));
    let huge = run(i64::MAX, Some(i64::MAX), &inputs());
    assert!(huge.starts_with("input `x` has 4 elements"), "{huge}");
}

#[test]
fn huge_formulas_are_refused_before_anything_is_allocated() {
    let refused = value("y[i] = sum(k in 0..1000000000000: x[0])").unwrap_err().to_string();
    assert!(refused.starts_with("visiting every term"), "{refused}");
    let held = "t[a in 0..100000, b in 0..100000] = x[0]\ny[i] = sum(k in 0..10: t[10000*k, 9])";
    assert!(value(held).is_ok(), "only the needed part is held");
    let held = "t[a in 0..100000, b in 0..100000] = x[0]\n\
                y[i] = sum(k in 0..n: t[99999 * at[k], at[k]])";
    let refused = value(held).unwrap_err().to_string();
    assert!(refused.starts_with("holding the formula's statements"), "{refused}");
    let gathered = program("y[i] = sum(k in 0..at[i]: x[0])");
    let mut inputs = inputs();
    inputs.tensors.insert("at".into(), vec![1e18; 4]);
    let refused = with(&inputs, &Arithmetic::default(), |e| gathered.value(e)).unwrap_err();
    assert!(matches!(refused, EvaluationError::TooLarge { .. }), "{refused}");
    let overflow = value("y[i] = x[i * 9223372036854775807]").unwrap_err();
    assert!(
        matches!(
            overflow,
            EvaluationError::IndexOutOfRange { .. } | EvaluationError::IntegerOverflow { .. }
        ),
        "{overflow}"
    );
}

#[test]
fn empty_extents_give_empty_outputs() {
    let program = program("y[i] = x[i] + sum(k in 0..m: w[i, k])");
    let (dims, arithmetic) = (dims([("n", 0), ("m", 3)]), Arithmetic::default());
    let none = Inputs::new([("x", vec![]), ("w", vec![]), ("at", vec![])]);
    let evaluation = Evaluation::new(&dims, &none, &arithmetic);
    assert!(program.value(&evaluation).unwrap()["y"].is_empty());
    assert!(program.error(&evaluation).unwrap()["y"].value.is_empty());
    assert!(program.classes(&evaluation).unwrap()["y"].is_empty());
}

#[test]
fn rows_agree_with_the_whole() {
    let text = "s[i] = sum(k in 0..m: w[i, k])\ny[i] = s[i] / s[n - 1] + x[i]";
    let program = program(text);
    let whole = value(text).unwrap();
    let (inputs, arithmetic) = (inputs(), Arithmetic::default());
    for rows in [0..1, 1..3, 3..4, 2..2] {
        let part = with(&inputs, &arithmetic, |evaluation| {
            let evaluation = Evaluation { rows: Some(rows.clone()), ..evaluation.clone() };
            program.value(&evaluation).unwrap().remove("y").unwrap()
        });
        assert_eq!(part, whole[rows.start as usize..rows.end as usize]);
    }
}

// Classes.

fn classes(text: &str, format: Format, x: [f64; 4]) -> Vec<Class> {
    let mut inputs = inputs();
    inputs.tensors.insert("x".into(), x.into());
    let program = program_of(text, &["n"], format);
    with(&inputs, &Arithmetic::default(), |e| program.classes(e)).unwrap().remove("y").unwrap()
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

#[test]
fn classes_propagate_through_maxima_and_clamp_every_node_to_fp32() {
    use Class::{Finite, NaN, NegativeInfinity, PositiveInfinity};
    let x = [NAN, INF, -INF, 1.0];
    let kept = classes("y[i] = max(x[i], 0)", Format::F32, x);
    assert_eq!(kept, [NaN, PositiveInfinity, Finite, Finite]);
    let all = classes("y[i] = max(k in 0..n: x[k])", Format::F32, x);
    assert_eq!(all, [NaN; 4]);
    // In fp32 exp(100) overflows and exp(-200) is 0, though f64 holds both.
    let over = classes("y[i] = exp(100 * x[i])", Format::F32, [1.0, -2.0, 0.0, -INF]);
    assert_eq!(over, [PositiveInfinity, Finite, Finite, Finite]);
    let under = classes("y[i] = exp(-200 * x[i]) * inf", Format::F32, [1.0, 0.0, -1.0, -INF]);
    assert_eq!(under, [NaN, PositiveInfinity, PositiveInfinity, PositiveInfinity]);
    let negative = classes("y[i] = x[i]", Format::F32, [-INF, 1.0, 2.0, -INF]);
    assert_eq!(negative, [NegativeInfinity, Finite, Finite, NegativeInfinity]);
}

#[test]
fn classes_are_taken_after_output_rounding() {
    use Class::{Finite, PositiveInfinity};
    let x = [65519.0, 65520.0, 1.0, INF];
    let half = classes("y[i] = x[i]", Format::F16, x);
    assert_eq!(half, [Finite, PositiveInfinity, Finite, PositiveInfinity]);
    let single = classes("y[i] = x[i]", Format::F32, x);
    assert_eq!(single, [Finite, Finite, Finite, PositiveInfinity]);
}

// Errors.

const U: f64 = 1.0 / 16_777_216.0;

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-5 * expected.abs() + 1e-44, "{got:e} and {expected:e}");
}

#[test]
fn exact_operations_have_no_error() {
    let exact = bounded("y[i] = x[i] * 3 + n - floor(x[i] / 4)", [1.0, -2.0, 8.0, 4096.0]);
    assert_eq!(exact.error, [0.0; 4]);
    assert!(exact.problems.is_empty());
    // A product of 25 bits is rounded, by one unit and half the least subnormal.
    let x = 4097.0;
    let rounded = bounded("y[i] = x[i] * x[i]", [x, 2.0, 0.0, -1.0]);
    assert_close(rounded.error[0], U * x * x);
    assert_eq!(rounded.error[1..], [0.0; 3]);
}

#[test]
fn inexact_scalars_and_subnormals_err_as_leaves() {
    let third = bounded("y[i] = third", [1.0; 4]);
    assert_close(third.error[0], U / 3.0);
    let tiny = Format::F32.min_subnormal();
    let flushing = Arithmetic { flush_subnormals: true, ..Arithmetic::default() };
    let flushed = error_of("y[i] = x[i]", [tiny, 1.0, 0.0, -tiny], &flushing);
    assert_eq!(flushed.error[1..3], [0.0; 2]);
    assert_close(flushed.error[0], tiny);
    assert_eq!(bounded("y[i] = x[i]", [tiny; 4]).error, [0.0; 4]);
}

#[test]
fn a_vanishing_denominator_is_a_problem_with_its_place() {
    let text = "d[i] = third + x[i]\ny[i] = 1 / (d[i] - third)";
    let found = bounded(text, [1.0, 0.0, 2.0, 1e-9]);
    assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
    let problem = &found.problems[0];
    assert_eq!(problem.kind, ProblemKind::Vanishing);
    assert_eq!((problem.statement.as_str(), &problem.element[..]), ("y", &[1][..]));
    assert_eq!((problem.expression.as_str(), problem.count), ("1 / (d[i] - third)", 2));
    assert!(!found.error[1].is_finite(), "no bound lets it pass");
    // A branch not taken is no problem.
    assert!(bounded("y[i] = select(x[i] == 0, 0, 1 / x[i])", [0.0; 4]).problems.is_empty());
    assert_eq!(bounded("y[i] = log(x[i])", [0.0, 1.0, 1.0, 1.0]).problems[0].element, [0]);
    assert_eq!(bounded("y[i] = sqrt(x[i])", [0.0, 4.0, 1.0, 2.0]).problems, []);
}

#[test]
fn overflow_is_a_problem_of_values_and_of_sums() {
    let big = 3e38f32.into();
    let found = bounded("y[i] = x[i] + x[i]", [1.0, big, 1.0, 1.0]);
    assert_eq!(found.problems[0].kind, ProblemKind::Overflow);
    assert_eq!(found.problems[0].element, [1]);
    // The total is small, but some order of additions overflows.
    let found = bounded("y[i] = sum(k in 0..n: x[k])", [big, big, -big, -big]);
    assert_eq!(found.problems[0].kind, ProblemKind::Overflow);
    assert_eq!(found.problems[0].count, 1, "the sum does not depend on i");
}

#[test]
fn an_undecided_comparison_covers_both_branches() {
    let text = "y[i] = select(third + x[i] > third, 5, 1)";
    let found = bounded(text, [0.0, 1.0, -1.0, 1e-10]);
    assert_eq!(found.error, [4.0, 0.0, 0.0, 4.0].map(|e| e * (1.0 + 2f64.powi(-40))));
    assert_eq!(found.undecided, 2);
    // Exact operands decide, ties too.
    assert_eq!(bounded("y[i] = select(x[i] > 0, 5, 1)", [0.0; 4]).error, [0.0; 4]);
    // The branch that might be taken may have the larger error.
    let text = "y[i] = select(third > third + x[i], 1, cos(x[i] / 3))";
    let found = bounded(text, [0.0, 1.0, 1.0, 1.0]);
    assert!(found.error[0] > U && found.undecided == 1);
    // Certain operands decide a conjunction, whatever the other is.
    let text = "y[i] = select(x[i] > 1 && third > third + x[i], 1, 2)";
    assert_eq!(bounded(text, [0.0; 4]).undecided, 0);
    let text = "y[i] = select(x[i] < 1 || third > third + x[i], 1, 2)";
    assert_eq!(bounded(text, [0.0; 4]).undecided, 0);
}

#[test]
fn sums_on_a_grid_are_exact_and_others_say_so() {
    let text = "y[i] = sum(k in 0..m: w[i, k] * x[i])";
    let exact = bounded(text, [1.0, -2.0, 3.0, 0.5]);
    assert_eq!((&exact.error[..], &exact.exact_sums[..]), (&[0.0; 4][..], &[true; 4][..]));
    let text = "s[i] = sum(k in 0..m: w[i, k] * x[0])\ny[i] = s[i] - s[0]";
    let mixed = bounded(text, [4097.5, 0.0, 0.0, 0.0]);
    assert!(mixed.exact_sums.iter().all(|exact| *exact), "{:?}", mixed.exact_sums);
    // 2^24 + 1 needs 25 bits: only the first row is exact.
    let text = "y[i] = sum(k in 0..m: w[i, k] * select(k == 0, 8388608, 0.5))";
    let mixed = bounded(text, [0.0; 4]);
    assert_eq!(mixed.exact_sums, [true, false, false, false]);
    assert_eq!(mixed.error[0], 0.0);
    assert!(mixed.error[1] > 0.0);
    let text = "s[i] = sum(k in 0..m: w[i, k] * select(k == 0, 8388608, 0.5))\n\
                y[i] = max(s[i], 0) * x[i]";
    assert_eq!(bounded(text, [1.0; 4]).exact_sums, [true, false, false, false]);
}

#[test]
fn a_sum_errs_by_gamma_of_its_declared_depth() {
    let text = "y[i] = sum(k in 0..m: w[i, k] + third)";
    let depth = |d: i64| Arithmetic {
        depth: BTreeMap::from([("k".to_owned(), Extent::constant(d))]),
        ..Arithmetic::default()
    };
    let error = |arithmetic: &Arithmetic| error_of(text, [0.0; 4], arithmetic).error[1];
    // Three leaves of a third, the terms 10/3, 13/3 and 16/3, and five roundings of the sum.
    assert_close(error(&depth(5)), U * (1.0 + 13.0 + 5.0 * 13.0));
    assert_eq!(error(&Arithmetic::default()), error(&depth(3)));
    let unknown = Arithmetic {
        depth: BTreeMap::from([("q".to_owned(), Extent::constant(1))]),
        ..Arithmetic::default()
    };
    let program = program(text);
    let error = with(&inputs(), &unknown, |e| program.error(e)).unwrap_err().to_string();
    assert_eq!(error, "no single reduction is called `q`; there are: k");
}

#[test]
fn a_rounding_point_errs_by_where_its_interval_rounds() {
    // Exactly on a tie, any error lets the computed value round either way.
    let tie = 1.0 + 2f64.powi(-8);
    let exact = bounded("y[i] = bf16(x[i])", [tie, 1.0, 3.0, 1e30]);
    assert_eq!(exact.error, [0.0; 4]);
    let found = bounded("y[i] = bf16(x[i] + third - third)", [tie, 1.0, 1.25, 1.5]);
    assert_close(found.error[0], 2f64.powi(-7));
    assert_eq!(found.error[1], 0.0, "far from ties the error is rounded away");
    // Just above a tie the value rounds up, and the computed value may round down.
    let found = bounded("y[i] = bf16(x[i] + third - third)", [tie * (1.0 + U), 1.0, 1.0, 1.0]);
    assert!(found.value[0] > tie);
    assert_close(found.error[0], 2f64.powi(-7));
    let near = bounded("y[i] = near(bf16, x[i])", [tie, 1.0, 3.0, 1e30]);
    assert_close(near.error[0], tie * 2f64.powi(-8));
    assert_eq!(near.error[1], 0.0);
}

#[test]
fn approximate_division_gives_nothing_for_large_divisors() {
    let approximate = Arithmetic { division: Division::Approx, ..Arithmetic::default() };
    let big = 2f64.powi(126) * 1.5;
    let found = error_of("y[i] = x[0] / x[i]", [3.0, 7.0, big, 1.0], &approximate);
    assert_close(found.error[1], 4.0 * U * 3.0 / 7.0);
    assert!(found.error[2] >= 3.0 / big);
    let reciprocal = error_of("y[i] = 1 / x[i]", [3.0, 7.0, 5.0, 1.0], &approximate);
    assert_close(reciprocal.error[1], 2.0 * U / 7.0);
}

#[test]
fn a_variance_is_recognised_however_its_mean_is_written() {
    let written = [
        "a[i] = sum(j in 0..m: w[i, j]) / m\n\
         y[i] = sum(k in 0..m: (w[i, k] - a[i]) * (w[i, k] - a[i]))",
        "y[i] = sum(k in 0..m: (sum(j in 0..m: w[i, j]) / m - w[i, k]) * \
         (w[i, k] - sum(j in 0..m: w[i, j]) / m))",
        "a[i] = sum(j in 0..m: w[i, j]) / m\n\
         d[i, c] = w[i, c] - a[i]\n\
         y[i] = sum(k in 0..m: d[i, k] * d[i, k]) / m",
        "t[i] = sum(j in 0..m: w[i, j])\na[i] = t[i] / m\n\
         y[i] = sum(k in 0..m: (w[i, k] - a[i]) * (w[i, k] - a[i])) / m",
    ];
    for text in written {
        let found = program(text);
        let variances = found.reductions().iter().filter(|r| r.variance_of.is_some()).count();
        assert_eq!(variances, 1, "{text}");
    }
    let others = [
        // Another row's mean, another count, another tensor.
        "a[i] = sum(j in 0..m: w[i, j]) / m\n\
         y[i] = sum(k in 0..m: (w[i, k] - a[0]) * (w[i, k] - a[0]))",
        "a[i] = sum(j in 0..m: w[i, j]) / n\n\
         y[i] = sum(k in 0..m: (w[i, k] - a[i]) * (w[i, k] - a[i]))",
        "a[i] = sum(j in 0..m: w[i, j] + 1) / m\n\
         y[i] = sum(k in 0..m: (w[i, k] - a[i]) * (w[i, k] - a[i]))",
        "a[i] = sum(j in 0..m: w[i, j]) / m\n\
         y[i] = sum(k in 0..m - 1: (w[i, k] - a[i]) * (w[i, k] - a[i]))",
        "a[i] = sum(j in 0..m: w[i, j]) / m\n\
         y[i] = sum(k in 0..m: (w[i, k] - a[i]) * (w[i, k] + a[i]))",
    ];
    for text in others {
        assert!(program(text).reductions().iter().all(|r| r.variance_of.is_none()), "{text}");
    }
}

#[test]
fn a_variance_errs_by_its_own_rule() {
    let text = "a[i] = sum(j in 0..m: w[i, j] * w[i, j]) / m\n\
                y[i] = sum(k in 0..m: (w[i, k] * w[i, k] - a[i]) * (w[i, k] * w[i, k] - a[i]))";
    // Row 0 holds 0, 1 and 4: squared differences from 5/3 sum to 78/9. Differences, squares and
    // three additions count 2 + 1 + 3 units of that.
    assert_close(bounded(text, [0.0; 4]).error[0], 6.0 * U * 78.0 / 9.0);
}

#[test]
fn a_dropped_term_moves_the_value_by_itself() {
    let program = program("y[i] = sum(k in 0..m: w[i, k])");
    let (inputs, arithmetic) = (inputs(), Arithmetic::default());
    let dropped = with(&inputs, &arithmetic, |evaluation| {
        let drop = Some(Drop { reduction: "k".into(), term: 2 });
        program.value(&Evaluation { drop, ..evaluation.clone() }).unwrap().remove("y").unwrap()
    });
    assert_eq!(dropped, [1.0, 7.0, 13.0, 19.0]);
}

#[test]
fn f64_accumulators_keep_what_f64_sums_would_lose() {
    let text = "y[i] = sum(k in 0..n: x[k] * 1)";
    let x = [1e25f32.into(), 1.0, (-1e25f32).into(), 1.0];
    let wide = Arithmetic {
        accumulators: BTreeMap::from([("k".to_owned(), Format::F64)]),
        ..Arithmetic::default()
    };
    let found = error_of(text, x, &wide);
    assert_eq!(found.value, [2.0; 4]);
    assert!(found.error[0] > 1e8, "a kernel in f64 loses the ones");
    assert!(found.error[0] < 1e25 * 2f64.powi(-48));
}

// Replays and depths.

#[test]
fn a_replay_carries_sums_in_its_accumulator_and_the_rest_in_fp32() {
    let program = program("y[i] = sum(k in 0..n: x[k]) / 3");
    let mut inputs = inputs();
    inputs.tensors.insert("x".into(), vec![256.0, 1.0, 1.0, 1.0]);
    let replayed = |accumulator, order| {
        let replay = Replay { accumulator, order, partials_fp32: false };
        let run = |evaluation: &Evaluation<'_>| program.replay(evaluation, &replay);
        Ok::<_, EvaluationError>(with(&inputs, &Arithmetic::default(), run)?["y"][0])
    };
    let third = |sum: f64| f64::from((sum / 3.0) as f32);
    assert_eq!(replayed(Format::Bf16, Order::Chain), Ok(third(256.0)));
    assert_eq!(replayed(Format::Bf16, Order::Halves), Ok(third(258.0)));
    assert_eq!(replayed(Format::F16, Order::Chain), Ok(third(259.0)));
    assert!(replayed(Format::I8, Order::Chain).is_err());
}

#[test]
fn depth_counts_every_rounding_on_the_longest_way() {
    let program = program("s[i] = sum(k in 0..m: w[i, k] * x[i])\ny[i] = exp(s[i]) / 3 + x[i]");
    let (dims, mut arithmetic) = (dims([("n", 4), ("m", 3)]), Arithmetic::default());
    // A product, 3 terms, an exponential of 2 ulp, a quotient, a sum.
    assert_eq!(program.depth(&dims, &arithmetic)["y"], 1.0 + 3.0 + 4.0 + 1.0 + 1.0);
    arithmetic.depth.insert("k".into(), Extent::parse("m / 3 + 1").unwrap());
    arithmetic.division = Division::Approx;
    assert_eq!(program.depth(&dims, &arithmetic)["y"], 1.0 + 2.0 + 4.0 + 4.0 + 1.0);
}
