//! Tests of fills whose terms are written out: scaled codes, gathers, conditions, attention.

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;

use super::{Layout, Term, shapes, sums};
use crate::{
    Arithmetic, Dims, Drop, Evaluation, Extent, Formula, Limits, Order, Program, Replay, Signature,
    Tensor,
};

const ORDERS: [Order; 3] = [Order::Chain, Order::Halves, Order::Lanes(32)];

const AFFINE: &str = "y[m] = sum(c in 0..cols: (w[m, c] * s[m, c/64] + b[m, c/64]) * x[c])";
const PAGED: &str = "
s[h, k in 0..cache] = 0.125 * sum(d in 0..64: q[h, d] * keys[table[k/16], k%16, h/2, d])
m[h] = max(a in max(0, length[0] - 100)..length[0]: s[h, a])
l[h] = sum(b in max(0, length[0] - 100)..length[0]: exp(s[h, b] - m[h]))
o[h, d] = sum(k in max(0, length[0] - 100)..length[0]:
    near(bf16, exp(s[h, k] - m[h])) * values[table[k/16], k%16, h/2, d]) / l[h]
";

fn program(text: &str, inputs: &[(&str, Format, &[&str])], output: (&str, &[&str])) -> Program {
    let tensor = |name: &str, format, shape: &[&str]| Tensor::new(name, format, shape).expect(name);
    let signature = Signature {
        dims: ["cols", "rows", "cache", "pool", "heads"].map(str::to_owned).into(),
        inputs: inputs.iter().map(|(name, format, shape)| tensor(name, *format, shape)).collect(),
        outputs: vec![tensor(output.0, Format::F32, output.1)],
        scalars: BTreeMap::new(),
    };
    let formula = Formula::parse(text).unwrap_or_else(|error| panic!("{error}"));
    formula.check(&signature).unwrap_or_else(|error| panic!("{error}"))
}

fn affine() -> Program {
    let inputs: [(&str, Format, &[&str]); 4] = [
        ("w", Format::U4, &["rows", "cols"]),
        ("s", Format::Bf16, &["rows", "cols/64"]),
        ("b", Format::Bf16, &["rows", "cols/64"]),
        ("x", Format::Bf16, &["cols"]),
    ];
    program(AFFINE, &inputs, ("y", &["rows"]))
}

fn paged() -> Program {
    let inputs: [(&str, Format, &[&str]); 5] = [
        ("q", Format::Bf16, &["heads", "64"]),
        ("keys", Format::Bf16, &["pool", "16", "heads/2", "64"]),
        ("values", Format::Bf16, &["pool", "16", "heads/2", "64"]),
        ("table", Format::I32, &["(cache + 15)/16"]),
        ("length", Format::I32, &["1"]),
    ];
    let range = |to: &str| [Extent::constant(0), Extent::parse(to).expect("an extent")];
    let mut limits = BTreeMap::new();
    let table = Limits { range: Some(range("pool")), distinct: true, exact: None };
    limits.insert("table".to_owned(), table);
    let length = Limits { range: Some(range("cache + 1")), ..Limits::default() };
    limits.insert("length".to_owned(), length);
    program(PAGED, &inputs, ("o", &["heads", "64"])).with_limits(limits)
}

fn shape() -> Dims {
    crate::dims([("cols", 256), ("rows", 3), ("cache", 200), ("pool", 20), ("heads", 4)])
}

fn layout(program: &Program) -> Layout {
    Layout::of(program, &shape(), (&BTreeMap::new(), 1)).expect("a layout")
}

/// The largest miss, in bounds, of each narrow replay of a reduction over all of its fills.
fn worst_proof(program: &Program, name: &str) -> f64 {
    let (layout, dims) = (layout(program), shape());
    let reduction = layout.reductions.iter().find(|r| r.name == name).expect(name);
    let mut arithmetic = Arithmetic::default();
    for other in program.reductions().iter().filter(|other| other.name != name) {
        arithmetic.accumulators.insert(other.name.clone(), Format::F64);
    }
    let mut missed: BTreeMap<String, f64> = BTreeMap::new();
    for recipe in sums::recipes(reduction, &ORDERS) {
        let inputs = sums::build(&layout, reduction, &recipe, &mut SplitMix64::new(7));
        let plain = Arithmetic::default();
        let evaluation = Evaluation::new(&dims, &inputs, &plain);
        let bounded = program.error(&evaluation).expect("bounds");
        let bounded = bounded.values().next().expect("an output");
        assert!(bounded.problems.is_empty(), "{name} {}: {:?}", recipe.name(), bounded.problems);
        for accumulator in [Format::F16, Format::Bf16] {
            for order in ORDERS {
                let replay = Replay { accumulator, order, partials_fp32: false };
                let narrow = Evaluation { arithmetic: &arithmetic, ..evaluation.clone() };
                let got = program.replay(&narrow, &replay).expect("a replay");
                let got = got.values().next().expect("an output");
                let miss =
                    got.iter().zip(&bounded.value).zip(&bounded.error).map(|((got, v), e)| {
                        let bound = e.max(Format::F32.ulp(*v) / 2.0);
                        if got.is_finite() { (got - v).abs() / bound } else { f64::INFINITY }
                    });
                let most = missed.entry(format!("{accumulator} {order:?}")).or_default();
                *most = most.max(miss.fold(0.0, f64::max));
            }
        }
    }
    missed.into_values().fold(f64::INFINITY, f64::min)
}

#[test]
fn scaled_codes_are_steered_by_what_they_are_multiplied_with() {
    let layout = layout(&affine());
    let term = layout.reductions[0].shaped_term();
    assert_eq!(term, Term::Product(vec!["x".to_owned(), "w".to_owned()]));
    assert!(layout.places(&layout.reductions[0]).contains(&(64, None)), "a group's edge");
}

#[test]
fn narrow_sums_of_scaled_codes_show() {
    assert!(worst_proof(&affine(), "c") >= 100.0);
}

#[test]
fn narrow_scores_of_an_attention_show() {
    let program = paged();
    let scores = program.reductions().iter().find(|reduction| reduction.is_named("s.d"));
    let proof = worst_proof(&program, &scores.expect("the scores are a sum").name);
    assert!(proof >= 100.0, "{proof}");
}

#[test]
fn edge_keys_of_a_window_over_pages_can_be_made_loud() {
    let program = paged();
    let (layout, dims, arithmetic) = (layout(&program), shape(), Arithmetic::default());
    let mut inputs =
        shapes::build(&layout, &[shapes::Style::Ordinary; 4], 1e-3, &mut SplitMix64::new(3));
    let length = inputs.tensors["length"][0];
    assert!((198.0..=200.0).contains(&length));
    for (number, reduction) in layout.reductions.iter().enumerate() {
        let places = layout.places(reduction);
        assert!(!places.is_empty(), "{}", reduction.name);
        for (term, row) in places {
            let row = row.unwrap_or(1);
            let loud = (0..=shapes::LOUDEST).any(|level| {
                let loud = shapes::Loud { reduction: number, term, level, negative: false };
                let changed = shapes::make_loud(&layout, &mut inputs, row, &loud);
                let shows = loses(&program, (&dims, &arithmetic, &inputs), (reduction, term, row));
                shapes::undo(&mut inputs, &changed);
                shows
            });
            assert!(loud, "term {term} of {} in row {row}", reduction.name);
        }
    }
}

/// True if losing the term moves an output of the row by ten bounds, or makes it no number.
fn loses(
    program: &Program,
    (dims, arithmetic, inputs): (&Dims, &Arithmetic, &crate::Inputs),
    (reduction, term, row): (&super::ReductionLayout, usize, usize),
) -> bool {
    let mut evaluation = Evaluation::new(dims, inputs, arithmetic);
    evaluation.rows = Some(row as i64..row as i64 + 1);
    let whole = program.error(&evaluation).expect("bounds");
    let whole = &whole["o"];
    if !whole.problems.is_empty() {
        return false;
    }
    evaluation.drop = Some(Drop { reduction: reduction.name.clone(), term: term as i64 });
    let without = program.value(&evaluation).expect("values");
    let moved = |((v, e), without): ((&f64, &f64), &f64)| (v - without).abs() >= 10.0 * e;
    let values = whole.value.iter().zip(&whole.error).zip(&without["o"]);
    let classes = program.classes(&evaluation).expect("classes");
    let finite = classes["o"].iter().all(|class| *class == assay_num::Class::Finite);
    !finite || values.into_iter().any(moved)
}
