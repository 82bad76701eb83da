//! The language: what reads, what the errors say, and that no text panics.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_reference::{
    Arithmetic, Evaluation, Formula, Inputs, Order, Replay, Signature, Tensor, dims,
};
use proptest::prelude::*;

fn signature() -> Signature {
    let tensor = |name, format, shape: &[&str]| Tensor::new(name, format, shape).unwrap();
    Signature {
        dims: ["rows", "cols", "n"].map(String::from).into(),
        inputs: vec![
            tensor("x", Format::F32, &["rows", "cols"]),
            tensor("w", Format::F32, &["cols"]),
            tensor("at", Format::I32, &["n"]),
        ],
        outputs: vec![tensor("y", Format::F32, &["rows", "cols"])],
        scalars: BTreeMap::from([("eps".to_owned(), 1e-6)]),
    }
}

/// The drawn error of a formula that is wrong.
fn complaint(text: &str) -> String {
    match Formula::parse(text).and_then(|formula| formula.check(&signature())) {
        Ok(_) => panic!("{text} is accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_unbound_index_points_at_its_column() {
    let expected = "\
`k` is no index, dimension or tensor here (line 2, column 22)
  |
2 | y[r, c] = x[r, c] * w[k] + mean[r]
  |                       ^";
    let drawn =
        complaint("mean[r] = sum(k in 0..cols: x[r, k])\ny[r, c] = x[r, c] * w[k] + mean[r]");
    let expected = expected.replace("column 22", "column 23");
    assert!(drawn.starts_with(&expected), "{drawn}");
    assert!(
        drawn.ends_with("hint: known here: at, c, cols, eps, mean, n, r, rows, w, x"),
        "{drawn}"
    );
}

#[test]
fn a_read_of_another_rank_says_the_shape() {
    let drawn = complaint("y[r, c] = x[r]");
    assert!(drawn.starts_with("`x` has 2 axes, but is read with 1 indices (line 1, column 11)"));
    assert!(drawn.ends_with("hint: its shape is [rows, cols]"), "{drawn}");
}

#[test]
fn an_index_that_runs_past_an_axis_is_an_error_before_anything_runs() {
    let drawn = complaint("y[r, c] = x[c, r]");
    let expected = "index `c` runs to cols, but axis 0 of `x` has rows elements";
    assert!(drawn.starts_with(expected), "{drawn}");
    let drawn = complaint("y[r, c] = sum(k in 0..2*cols: w[k]) + x[r, c]");
    assert!(drawn.starts_with("index `k` runs to 2 * cols, but axis 0 of `w`"), "{drawn}");
    // Part of an axis is no error.
    let half = Formula::parse("y[r, c] = sum(k in 0..cols/2: w[k]) + x[r, c]").unwrap();
    assert!(half.check(&signature()).is_ok());
}

#[test]
fn every_mistake_has_its_own_sentence() {
    let cases = [
        ("", "the formula is empty"),
        ("y[r, c] = ", "expected an expression, found the end of the formula"),
        ("y[r, c] = x[r, c", "expected `,`, found the end of the formula"),
        ("y[r, c] = (x[r, c]", "expected `)`, found the end of the formula"),
        ("y[r, c] = 2x[r, c]", "`2` is followed by a letter"),
        ("y[r, c] = x[r, c] $ 2", "`$` means nothing in a formula"),
        ("y[r, c] = expp(x[r, c])", "there is no function `expp`"),
        ("y[r, c] = exp(x[r, c], 1)", "`exp` takes 1 arguments, not 2"),
        ("y[r, c] = select(x[r, c], 1, 2)", "expected a condition"),
        ("y[r, c] = x[r, c] < 1", "a condition is no value"),
        ("y[r, c] = select(1 < x[r, c] < 2, 1, 2)", "comparisons do not chain"),
        ("y[r, c] = x[r, 1.5]", "this is no whole number"),
        ("y[r, c] = x[r, eps]", "this is no whole number"),
        ("y[r, c] = x[r, c] % 2", "`%` is for whole numbers"),
        ("y[r] = 1", "output `y` has 2 axes, not 1"),
        ("z[r, c] = x[r, c]", "output `y` is never defined"),
        ("y[r, c] = 1 z[r, c] = x[r, c]", "`z` is computed but never used"),
        ("y[r, c] = 1 y[r, c] = 2", "the name `y` is already in use"),
        ("y[r, r] = 1", "the name `r` is already in use"),
        ("y[r, rows] = 1", "the name `rows` is already in use"),
        ("y[r, c] = sum(c in 0..cols: w[c])", "the name `c` is already in use"),
        ("y[r, c] = sum(k in 0..cols: sum(k in 0..cols: w[k]))", "the name `k` is already in use"),
        ("m[i] = 1 y[r, c] = m[r]", "cannot tell how far index `i` runs"),
        ("y[r, c in 0..rows] = 1", "this axis of output `y` has cols elements"),
        ("y[r, c] = scan(c in 0..cols; s = 0: s)", "expected `,`, found `in`"),
        ("y[r, c] = 2 * scan(c, p = 0: p + w[c])", "a scan is the whole right side of a statement"),
        ("y[r, c] = scan(c, p = 0: p + w[c]) / 2", "a scan is the whole right side of a statement"),
        ("y[r, c] = scan(k, p = 0: p + w[c])", "`k` is no index of this statement"),
        ("y[r, c] = scan(c, p = w[c]: p + 1)", "the initial value comes before every step"),
        ("y[r, c] = scan(c, w = 0: w + 1)", "the name `w` is already in use"),
        ("y[r, c] = scan(c, r = 0: r + 1)", "the name `r` is already in use"),
        ("y[r, c] = scan(c, y = 0: y + 1)", "the name `y` is already in use"),
        ("y[r, c] = scan(c, p = 0: w[c])", "the step never uses `p`"),
        ("y[r, c] = scan(c, p = p: p + w[c])", "`p` is no index, dimension or tensor here"),
        ("y[r, c] = scan(c, p = 0: p[c] + w[c])", "`p` is the value of the step before and has no"),
        ("y[r, c] = scan(c, p = 0: p + w[p])", "this is no whole number"),
        ("y[r, c] = scan(c, p = 0: p + y[r, c-1])", "`y` cannot read itself"),
        ("y[r, c] = y[r, c-1] + w[c]", "`y` cannot read itself"),
        (
            "y[r, c] = scan(c, p = 0: sum(k in 0..cols: p * w[k]))",
            "`p` cannot be used inside a red",
        ),
        ("y[r, c] = scan(c, p = 0: p + sum(p in 0..cols: w[p]))", "the name `p` is already in use"),
        ("y[r, c] = scan(c, scan = 0: w[c])", "`scan` is a word of the language"),
        ("y[r, c] = near(x[r, c])", "`near` needs a number format first"),
        ("y[r, c] = f64(x[r, c])", "there is no function `f64`"),
        ("y[r, c] = sum(x[r, c])", "`sum` needs an index"),
        ("y[in, c] = 1", "`in` is a word of the language and cannot be an index"),
        ("m = y[0, 0] y[r, c] = m", "`y` is no index, dimension or tensor here"),
        ("y[r, c] = 99999999999999999999", "this number is too large"),
    ];
    for (text, expected) in cases {
        let drawn = complaint(text);
        assert!(drawn.starts_with(expected), "{text}: {drawn}");
    }
}

#[test]
fn near_misses_are_suggested() {
    assert!(complaint("y[r, c] = tanhh(x[r, c])").ends_with("hint: did you mean `tanh`?"));
    assert!(complaint("y[r, c] = x[r, c] + epss").ends_with("hint: did you mean `eps`?"));
}

#[test]
fn deep_and_long_texts_are_refused_and_never_overflow_the_stack() {
    let nested = format!("y[r, c] = {}1{}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(complaint(&nested).starts_with("the expression nests deeper than 128 levels"));
    let minus = format!("y[r, c] = {}1", "-".repeat(20_000));
    assert!(complaint(&minus).starts_with("the expression nests deeper than 128 levels"));
    let chain = format!("y[r, c] = 1{}", " + 1".repeat(10_000));
    assert!(complaint(&chain).starts_with("the expression nests deeper than 128 levels"));
    let long = format!("y[r, c] = 1{}", " ".repeat(70_000));
    assert!(complaint(&long).starts_with("the formula is longer than 65536 bytes"));
    // Sums in conditions of sums are planned again for each guard; the plan stays bounded.
    let mut guarded = "x[r, c]".to_owned();
    for level in 0..24 {
        guarded = format!(
            "select(sum(k{level} in 0..cols: w[k{level}]) > {guarded}, \
             sum(j{level} in 0..cols: x[r, j{level}]), 1)"
        );
    }
    let text = format!("y[r, c] = {guarded}");
    let _ = Formula::parse(&text).and_then(|formula| formula.check(&signature()));
}

#[test]
fn every_family_reads_back_from_its_canonical_text() {
    for name in Formula::family_names() {
        let formula = Formula::family(name).unwrap();
        let again = Formula::parse(&formula.canonical()).unwrap();
        assert_eq!(formula.canonical(), again.canonical(), "{name}");
    }
    assert!(Formula::family("rows.nothing").is_none());
}

/// Random expressions of the language as text, with more parentheses than needed.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x[r, c]".to_owned()),
        Just("w[(c + 3) % cols]".to_owned()),
        Just("eps".to_owned()),
        Just("cols".to_owned()),
        Just("inf".to_owned()),
        (0u32..1000).prop_map(|n| n.to_string()),
        (0.0f64..1e6).prop_map(|n| format!("{n:?}")),
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), "[-+*/]").prop_map(|((a, b), o)| format!("({a}) {o} ({b})")),
            (pair.clone(), "[-+*/]").prop_map(|((a, b), o)| format!("({a} {o} {b})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            inner.clone().prop_map(|a| format!("bf16(exp({a}))")),
            inner.clone().prop_map(|a| format!("near(e4m3, {a})")),
            pair.clone().prop_map(|(a, b)| format!("select(!({a} < {b}) && r != 0, {a}, {b})")),
            pair.clone().prop_map(|(a, b)| format!("max({a}, {b}, 0)")),
            inner.prop_map(|a| format!("sum(k in 0..cols if k > r: ({a}) * w[k])")),
        ]
    })
}

/// Random integer expressions, most of which leave their axis or divide by zero somewhere.
fn indices() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("r".to_owned()),
        Just("c".to_owned()),
        Just("cols".to_owned()),
        Just("at[0]".to_owned()),
        Just("at[c]".to_owned()),
        Just("9223372036854775807".to_owned()),
        (0u32..5).prop_map(|n| n.to_string()),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), "[-+*/%]").prop_map(|((a, b), o)| format!("({a} {o} {b})")),
            (pair, "max|min").prop_map(|((a, b), f)| format!("{f}({a}, {b})")),
            inner.prop_map(|a| format!("(-{a})")),
        ]
    })
}

/// Evaluates a formula in every domain; only panics are failures.
fn evaluate(text: &str, sizes: [i64; 3], fill: f64) {
    let checked = Formula::parse(text).and_then(|formula| formula.check(&signature()));
    let Ok(program) = checked else { return };
    let [rows, cols, n] = sizes;
    let dims = dims([("rows", rows), ("cols", cols), ("n", n)]);
    let mixed = |count: i64| {
        let values = [1.0, fill, -2.5, f64::from(f32::MAX), 0.0, 1e-42];
        (0..count).map(|at| values[at as usize % values.len()]).collect()
    };
    let at = (0..n).map(|at| (at % 3) as f64).collect();
    let inputs = Inputs::new([("x", mixed(rows * cols)), ("w", mixed(cols)), ("at", at)]);
    let arithmetic = Arithmetic::default();
    let evaluation = Evaluation::new(&dims, &inputs, &arithmetic);
    let replay = Replay { accumulator: Format::F16, order: Order::Lanes(32), partials_fp32: true };
    let value = program.value(&evaluation).map(|found| found["y"].len());
    let classes = program.classes(&evaluation).map(|found| found["y"].len());
    let error = program.error(&evaluation).map(|found| found["y"].value.len());
    let replayed = program.replay(&evaluation, &replay).map(|found| found["y"].len());
    assert_eq!(value, classes);
    assert_eq!(value, error);
    assert_eq!(value, replayed);
    if let Ok(count) = value {
        assert_eq!(count as i64, rows * cols);
    }
    let _ = program.depth(&dims, &arithmetic);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn canonical_text_reads_back_as_itself(text in expressions()) {
        if let Ok(formula) = Formula::parse(&format!("y[r, c] = {text}")) {
            let canonical = formula.canonical();
            let again = Formula::parse(&canonical).unwrap();
            prop_assert_eq!(&canonical, &again.canonical());
            prop_assert_eq!(formula.check(&signature()).is_ok(), again.check(&signature()).is_ok());
        }
    }

    #[test]
    fn no_evaluation_panics(
        text in expressions(),
        index in indices(),
        sizes in [0i64..4, 0i64..140, 0i64..4],
        fill in prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-0.0), -1e3f64..1e3],
    ) {
        let text = text.replace("w[(c + 3) % cols]", &format!("w[{index}]"));
        evaluate(&format!("y[r, c] = {text}"), sizes, fill);
        let guarded = format!("select({index} >= 0 && {index} < cols, w[{index}], 1)");
        evaluate(&format!("y[r, c] = {guarded}"), sizes, fill);
        evaluate(&format!("y[r, c] = sum(k in {index}..{index} + 3: x[r, k] * w[k])"), sizes, fill);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,60}") {
        let _ = Formula::parse(&text).map(|formula| formula.check(&signature()).is_ok());
    }

    #[test]
    fn no_mangled_formula_panics(
        text in expressions(),
        at in 0usize..400,
        put in r"[\[\](){}=:,;.0-9a-z %!&|<>]{0,3}",
    ) {
        let mut text = format!("y[r, c] = {text}");
        let at = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.insert_str(at, &put);
        if let Err(error) = Formula::parse(&text).and_then(|formula| formula.check(&signature())) {
            prop_assert!(error.line >= 1 && error.column >= 1);
            prop_assert!(error.to_string().contains('^'));
        }
    }
}
