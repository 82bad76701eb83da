//! What a manifest may promise of inputs, and the form in which a kernel computes its formula.

use assay_contract::Kernel;
use assay_contract::manifest::{EmbeddedFiles, Manifest, parse_manifest};
use assay_num::Format;
use assay_reference::{Evaluation, Inputs, ProblemKind, dims};

const FILES: EmbeddedFiles<'static> = EmbeddedFiles(&[("k.ptx", b".version 8.0")]);

/// A gather of rows of packed codes with a scale; `args` replaces the index's own keys.
fn manifest(index: &str, formula: &str) -> Manifest {
    let text = format!(
        r#"schema = 1
[module.k]
ptx = "k.ptx"
[kernel.rows]
module = "k"
formula = {formula}
dims.n = {{ served = [3] }}
dims.pool = {{ served = [9] }}
args = [
    {{ name = "w", role = "in", type = "u4", shape = ["pool", 8] }},
    {{ name = "s", role = "in", type = "f32", shape = ["pool"], exact = 1.0 }},
    {{ name = "rows", role = "in", type = "i32", shape = ["n"]{index} }},
    {{ name = "y", role = "out", type = "f32", shape = ["n"] }},
]
launches = [{{ symbol = "k", grid = [1], block = [32], args = ["w", "s", "rows", "y"] }}]
"#
    );
    parse_manifest("m.toml", &text, &FILES)
}

const FORMULA: &str = "\"y[i] = sum(c in 0..8: w[rows[i], c] * s[rows[i]])\"";
const RANGE: &str = ", range = [0, \"pool\"], distinct = true";

fn error(index: &str) -> String {
    let manifest = manifest(index, FORMULA);
    assert!(manifest.kernels.is_empty(), "`{index}` loaded");
    manifest.errors[0].to_string()
}

#[test]
fn promises_are_read_and_reach_the_program() {
    let manifest = manifest(RANGE, FORMULA);
    assert_eq!(manifest.errors, []);
    let spec = manifest.kernels[0].spec().limits();
    assert_eq!(spec["rows"].range_at(&dims([("n", 3), ("pool", 9)])), Some(0..9));
    assert!(spec["rows"].distinct);
    assert_eq!(spec["s"].exact, Some(1.0));
}

#[test]
fn packed_codes_are_a_type() {
    let manifest = manifest(RANGE, FORMULA);
    assert_eq!(manifest.kernels[0].spec().arguments[0].format, Format::U4);
}

#[test]
fn an_index_without_a_range_is_refused() {
    let text = error("");
    assert!(text.contains("takes indices from `rows`, which states no range"), "{text}");
    assert!(text.contains("m.toml:12:"), "{text}");
}

#[test]
fn promises_that_cannot_be_kept_are_refused() {
    let mistakes = [
        (", range = [0]", "a range is [from, to]"),
        (", range = [4, 4]", "gives 4 at"),
        (", range = [0, 2], distinct = true", "3 elements, but 2 distinct values"),
        (", distinct = true", "need a `range`"),
        (", range = [0, 9], exact = 0.5", "0.5 is no value of i32"),
    ];
    for (index, message) in mistakes {
        let text = error(index);
        assert!(text.contains(message), "{index}: {text}");
    }
}

#[test]
fn two_forms_of_a_formula_agree_or_the_fixture_says_where_not() {
    let with = |other: &str| manifest(RANGE, &format!("{FORMULA}\ncomputed_as = \"{other}\""));
    let inputs = Inputs::new([
        ("w", (0..72).map(|code| f64::from(code % 16)).collect()),
        ("s", vec![0.5; 9]),
        ("rows", vec![4.0, 8.0, 0.0]),
    ]);
    let dims = dims([("n", 3), ("pool", 9)]);
    let problems = |other: &str| {
        let manifest = with(other);
        assert_eq!(manifest.errors, []);
        let spec = manifest.kernels[0].spec();
        let evaluation = Evaluation::new(&dims, &inputs, &spec.arithmetic);
        let bounded = spec.bounds(&evaluation).expect("a formula").expect("inputs fit");
        bounded["y"].problems.iter().map(|problem| problem.kind).collect::<Vec<_>>()
    };
    let factored = "y[i] = s[rows[i]] * sum(c in 0..8: w[rows[i], c])";
    assert_eq!(problems(factored), []);
    let wrong = "y[i] = s[rows[i]] * sum(c in 0..7: w[rows[i], c])";
    assert_eq!(problems(wrong), [ProblemKind::Disagreement]);
}

#[test]
fn another_form_beside_a_rule_is_refused() {
    let text = |more: &str| {
        format!(
            r#"schema = 1
[module.k]
ptx = "k.ptx"
[kernel.largest]
module = "k"
rule = {{ name = "argmax", nan = "largest", zeros = "equal" }}
{more}
dims.n = {{ served = [3] }}
args = [
    {{ name = "x", role = "in", type = "f32", shape = ["n", 8] }},
    {{ name = "indices", role = "out", type = "i32", shape = ["n"] }},
]
launches = [{{ symbol = "k", grid = [1], block = [32], args = ["x", "indices"] }}]
"#
        )
    };
    assert_eq!(parse_manifest("m.toml", &text(""), &FILES).errors, []);
    let refused = parse_manifest("m.toml", &text("computed_as = \"indices[i] = 0\""), &FILES);
    assert!(refused.kernels.is_empty());
    let error = refused.errors[0].to_string();
    assert!(error.contains("m.toml:7:"), "{error}");
    assert!(error.contains("`computed_as` has no formula beside it"), "{error}");
}
