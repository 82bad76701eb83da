//! Tests of the fills on the families' formulas.

use std::collections::{BTreeMap, BTreeSet};

use assay_num::Format;
use assay_num::random::SplitMix64;

use super::{Layout, Term, non_finite, shapes, sums};
use crate::{Dims, Formula, Order, Program, Signature, Tensor};

const ORDERS: [Order; 4] =
    [Order::Chain, Order::Halves, Order::Lanes(32), Order::Strided { threads: 64, vector: 4 }];

fn tensor(name: &str, format: Format, shape: &[&str]) -> Tensor {
    Tensor::new(name, format, shape).expect("extents parse")
}

fn program(family: &str, format: Format) -> Program {
    let matrix = |name: &str| tensor(name, format, &["rows", "cols"]);
    let vector = |name: &str, dim: &str| tensor(name, Format::F32, &[dim]);
    let (inputs, output) = match family {
        "rows.dot" => (vec![matrix("a"), matrix("b")], vector("y", "rows")),
        "dense.gemv" => (vec![matrix("w"), vector("x", "cols")], vector("y", "rows")),
        "rows.softmax" => (vec![matrix("x")], matrix("y")),
        "rows.rms_norm" => (vec![matrix("x"), vector("w", "cols")], matrix("y")),
        "rows.layer_norm" => {
            (vec![matrix("x"), vector("w", "cols"), vector("b", "cols")], matrix("y"))
        }
        _ => (vec![matrix("x")], vector("y", "rows")),
    };
    let signature = Signature {
        dims: vec!["rows".to_owned(), "cols".to_owned()],
        inputs,
        outputs: vec![output],
        scalars: BTreeMap::from([("eps".to_owned(), 1e-6)]),
    };
    let formula = Formula::family(family).expect("a family");
    formula.check(&signature).unwrap_or_else(|error| panic!("{family}: {error}"))
}

fn layout(family: &str, format: Format, rows: i64, cols: i64) -> Layout {
    let dims: Dims = crate::dims([("rows", rows), ("cols", cols)]);
    let tiles = BTreeMap::from([("cols".to_owned(), 256)]);
    Layout::of(&program(family, format), &dims, (&tiles, 1)).expect("a layout")
}

/// The terms of each row of a sum, as the fill's values make them.
fn terms(layout: &Layout, inputs: &crate::Inputs, term: &Term) -> Vec<Vec<f64>> {
    let names = term.tensors();
    let factor = |name: &str, row: usize, cols: usize| {
        let values = &inputs.tensors[name];
        let start = if values.len() == cols { 0 } else { row * cols };
        values[start..start + cols].to_vec()
    };
    let cols = layout.reductions[0].terms;
    (0..layout.rows)
        .map(|row| match term {
            Term::Square(x) | Term::Deviation(x) => {
                factor(x, row, cols).iter().map(|value| value * value).collect()
            }
            _ => names.iter().fold(vec![1.0; cols], |product, name| {
                let factor = factor(name, row, cols);
                product.iter().zip(factor).map(|(a, b)| a * b).collect()
            }),
        })
        .collect()
}

fn every_value_is_held_exactly(layout: &Layout, inputs: &crate::Inputs) {
    for tensor in &layout.tensors {
        let values = &inputs.tensors[&tensor.name];
        assert_eq!(values.len(), tensor.count());
        for value in values {
            assert_eq!(tensor.format.round(*value), *value, "{} {value}", tensor.name);
        }
    }
}

#[test]
fn the_terms_of_every_family_are_recognised() {
    let terms = |family: &str| -> Vec<Term> {
        let layout = layout(family, Format::F32, 2, 8);
        layout.reductions.into_iter().map(|reduction| reduction.term).collect()
    };
    let x = || "x".to_owned();
    assert_eq!(terms("rows.sum"), [Term::Linear(x())]);
    assert_eq!(terms("rows.max"), [Term::Linear(x())]);
    assert_eq!(terms("rows.dot"), [Term::Product(vec!["a".to_owned(), "b".to_owned()])]);
    assert_eq!(terms("dense.gemv"), [Term::Product(vec!["w".to_owned(), x()])]);
    assert_eq!(terms("rows.softmax"), [Term::Linear(x()), Term::Exponential(x())]);
    assert_eq!(terms("rows.rms_norm"), [Term::Square(x())]);
    assert_eq!(terms("rows.layer_norm"), [Term::Linear(x()), Term::Deviation(x())]);
}

#[test]
fn a_formula_of_ones_own_is_understood_through_its_statements() {
    let text = "m[r] = max(k in 0..cols: x[r, k])\n\
                e[r, c] = exp((x[r, c] - m[r]) * 0.5)\n\
                y[r] = sum(k in 0..cols: e[r, k])\n";
    let signature = Signature {
        dims: vec!["rows".to_owned(), "cols".to_owned()],
        inputs: vec![tensor("x", Format::F32, &["rows", "cols"])],
        outputs: vec![tensor("y", Format::F32, &["rows"])],
        scalars: BTreeMap::new(),
    };
    let program = Formula::parse(text).expect("text").check(&signature).expect("a program");
    let dims = crate::dims([("rows", 3), ("cols", 10)]);
    let layout = Layout::of(&program, &dims, (&BTreeMap::new(), 1)).expect("a layout");
    assert_eq!(layout.reductions[1].term, Term::Exponential("x".to_owned()));
    assert_eq!(layout.reductions[1].reads, [("x".to_owned(), 1)]);
    assert_eq!(layout.tensors[0].row_axis, Some(0));
}

#[test]
fn rows_and_walked_axes_are_found() {
    let layout = layout("dense.gemv", Format::Bf16, 5, 700);
    let (w, x) = (layout.tensor("w").expect("w"), layout.tensor("x").expect("x"));
    assert_eq!((w.row_axis, &w.walked[..], w.tiles[1]), (Some(0), &[1][..], Some(256)));
    assert_eq!((x.row_axis, &x.walked[..]), (None, &[0][..]));
    assert_eq!(layout.reductions[0].critical_terms(), [0, 255, 256, 511, 512, 699]);
    assert_eq!(w.lines(1)[3].row, Some(3));
    assert_eq!(w.element(2 * 700 + 9), [2, 9]);
}

#[test]
fn sums_of_a_fill_are_exact_in_fp32_and_partials_are_large() {
    for family in ["rows.sum", "rows.dot", "dense.gemv", "rows.rms_norm", "rows.layer_norm"] {
        for (format, cols) in [(Format::F32, 1000), (Format::Bf16, 1025), (Format::F16, 77)] {
            let layout = layout(family, format, 6, cols);
            let mut random = SplitMix64::new(3);
            for reduction in &layout.reductions {
                for recipe in sums::recipes(reduction, &ORDERS) {
                    let inputs = sums::build(&layout, reduction, &recipe, &mut random);
                    every_value_is_held_exactly(&layout, &inputs);
                    let context = format!("{family} {cols} {} {}", format.name(), recipe.name());
                    check_rows(&terms(&layout, &inputs, &reduction.term), &recipe, &context);
                }
            }
        }
    }
}

fn check_rows(rows: &[Vec<f64>], recipe: &sums::Recipe, context: &str) {
    let largest = |row: &[f64]| row.iter().fold(0f64, |most, term| most.max(term.abs()));
    for row in rows {
        let unit = row.iter().filter(|term| **term != 0.0).fold(1f64, |unit, term| {
            if term.fract() == 0.0 { unit } else { unit.min(2f64.powi(-20)) }
        });
        let magnitude: f64 = row.iter().map(|term| term.abs()).sum();
        assert!(magnitude < 2f64.powi(24) && unit <= 1.0, "{context}: {magnitude}");
        let total: f64 = row.iter().sum();
        if matches!(recipe, sums::Recipe::Reflected | sums::Recipe::Pairs) {
            assert!(total.abs() <= 8.0, "{context}: total {total}");
            assert!(magnitude >= 2f64.powi(18), "{context}: {magnitude}");
        } else {
            assert!(largest(row) >= 256.0, "{context}: {}", largest(row));
        }
    }
}

#[test]
fn a_centred_fill_has_a_mean_of_zero() {
    let layout = layout("rows.layer_norm", Format::F32, 4, 1001);
    let mut random = SplitMix64::new(5);
    for recipe in sums::recipes(&layout.reductions[1], &ORDERS) {
        let inputs = sums::build(&layout, &layout.reductions[1], &recipe, &mut random);
        for row in inputs.tensors["x"].chunks_exact(1001) {
            assert_eq!(row.iter().sum::<f64>(), 0.0, "{}", recipe.name());
        }
    }
}

#[test]
fn plants_reach_every_critical_place_of_every_input_and_leave_rows_finite() {
    let layout = layout("rows.rms_norm", Format::F32, 7, 600);
    let mut random = SplitMix64::new(9);
    let base = non_finite::base(&layout, &mut random);
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    for run in non_finite::runs(&layout, &mut random) {
        let inputs = run.apply(&base, |value| value);
        for tensor in &layout.tensors {
            let planted = inputs.tensors[&tensor.name].iter().any(|value| !value.is_finite());
            assert_eq!(planted, tensor.name == run.tensor, "one input at a time");
        }
        let finite = inputs.tensors["x"].chunks_exact(600);
        let finite = finite.filter(|row| row.iter().all(|value| value.is_finite())).count();
        assert!(finite >= 2 || run.tensor == "w");
        seen.extend(run.plants.iter().map(|(plant, _)| (run.tensor.clone(), plant.name.clone())));
    }
    for place in [0, 255, 256, 511, 512, 599] {
        for kind in ["nan", "+inf", "-inf"] {
            for tensor in ["x", "w"] {
                let name = format!("{kind}@{place}");
                assert!(seen.contains(&(tensor.to_owned(), name.clone())), "{tensor} {name}");
            }
        }
    }
    for name in ["+inf@0 -inf@599", "-inf@0..256", "-inf@0..600"] {
        assert!(seen.contains(&("x".to_owned(), name.to_owned())), "{name}");
    }
}

#[test]
fn an_input_that_all_rows_share_and_a_sum_walks_holds_one_plant_a_run() {
    let layout = layout("dense.gemv", Format::F32, 5, 300);
    let runs = non_finite::runs(&layout, &mut SplitMix64::new(1));
    assert!(runs.iter().filter(|run| run.tensor == "x").all(|run| run.plants.len() == 1));
    assert!(runs.iter().filter(|run| run.tensor == "w").any(|run| run.plants.len() > 1));
}

#[test]
fn rows_have_their_styles_and_loud_terms_stand_out() {
    let layout = layout("rows.softmax", Format::Bf16, 6, 300);
    let styles = shapes::styles(&layout);
    let mut inputs = shapes::build(&layout, &styles, 1e-3, &mut SplitMix64::new(4));
    let plain = inputs.clone();
    let loud = shapes::Loud { reduction: 0, term: 299, level: 2, negative: false };
    let changed = shapes::make_loud(&layout, &mut inputs, 5, &loud);
    let mut undone = inputs.clone();
    shapes::undo(&mut undone, &changed);
    assert_eq!(undone, plain);
    every_value_is_held_exactly(&layout, &inputs);
    let x: Vec<&[f64]> = inputs.tensors["x"].chunks_exact(300).collect();
    let mean = |row: &[f64]| row.iter().sum::<f64>() / 300.0;
    let deviation = |row: &[f64]| {
        let mean = mean(row);
        (row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 300.0).sqrt()
    };
    assert!(x[0].iter().all(|value| (0.5..2.0).contains(&value.abs())));
    assert!(x[2].iter().all(|value| *value <= -110.0));
    assert!(deviation(x[3]) < 2e-3);
    assert!(mean(x[4]).abs() / deviation(x[4]) >= 300.0);
    assert!(x[5][299] > x[5][..299].iter().fold(0.0, |a: f64, b| a.max(*b)) + 100.0);
}

#[test]
fn inputs_that_a_sum_adds_up_are_tiny_together_in_some_row() {
    let text = "s[r] = sum(k in 0..cols: (x[r, k] + z[r, k]) * (x[r, k] + z[r, k]))\n\
                y[r, c] = (x[r, c] + z[r, c]) * rsqrt(s[r] + eps)\n";
    let signature = Signature {
        dims: vec!["rows".to_owned(), "cols".to_owned()],
        inputs: ["x", "z"].map(|name| tensor(name, Format::F32, &["rows", "cols"])).into(),
        outputs: vec![tensor("y", Format::F32, &["rows", "cols"])],
        scalars: BTreeMap::from([("eps".to_owned(), 1e-6)]),
    };
    let program = Formula::parse(text).expect("text").check(&signature).expect("a program");
    let dims = crate::dims([("rows", 8), ("cols", 10)]);
    let together = Layout::of(&program, &dims, (&BTreeMap::new(), 1)).expect("a layout");
    let styles = shapes::styles(&together);
    let row = styles.iter().position(|style| *style == shapes::Style::TinyTogether);
    let row = row.expect("the style is tried");
    let inputs = shapes::build(&together, &styles, 1e-3, &mut SplitMix64::new(4));
    for name in ["x", "z"] {
        let row = &inputs.tensors[name][row * 10..row * 10 + 10];
        assert!(row.iter().all(|value| value.abs() < 2e-3), "{name}: {row:?}");
    }
    let alone = layout("rows.rms_norm", Format::F32, 8, 10);
    assert!(!shapes::styles(&alone).contains(&shapes::Style::TinyTogether));
}
