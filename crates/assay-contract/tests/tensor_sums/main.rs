//! The error domain's rule for tensor cores against the emulator's models of them: no model errs
//! by more, on tiles made to make them err, and the rule is not far above what some model does.

#![expect(clippy::print_stdout, reason = "a seed and how close models come are printed")]

mod forms;
mod tiles;

use std::collections::BTreeMap;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{
    Arithmetic, Bounded, Evaluation, Extent, Formula, Inputs, Program, Signature, Tensor,
    TensorCores, dims,
};
use forms::{FORMS, Form, MODELS};
use tiles::{CLASSES, Class, Tiles};

const SEED: u64 = 20_261_130;
/// Tiles of each class, and instructions along the depth of each.
const TILES: usize = 24;
const STEPS: usize = 4;

fn program(form: &Form) -> Program {
    let stored = if form.elements == Format::Tf32 { Format::F32 } else { form.elements };
    let output = if form.half { Format::F16 } else { Format::F32 };
    let tensor = |name: &str, format, shape: &[&str]| Tensor::new(name, format, shape).unwrap();
    let signature = Signature {
        dims: ["t", "m", "n", "depth"].map(str::to_owned).into(),
        inputs: vec![
            tensor("a", stored, &["t", "m", "depth"]),
            tensor("b", stored, &["t", "n", "depth"]),
        ],
        outputs: vec![tensor("y", output, &["t", "m", "n"])],
        scalars: BTreeMap::new(),
    };
    let text = "y[g, i, j] = sum(k in 0..depth: a[g, i, k] * b[g, j, k])";
    Formula::parse(text).unwrap().check(&signature).unwrap()
}

fn declared(form: &Form, elements: Format) -> Arithmetic {
    let name = || "k".to_owned();
    let chain = Some(Extent::constant(STEPS as i64));
    let cores = TensorCores { elements, depth: form.depth as u32, chain };
    Arithmetic {
        depth: BTreeMap::from([(name(), Extent::constant(0))]),
        accumulators: BTreeMap::from([(name(), form.accumulator())]),
        tensor_cores: BTreeMap::from([(name(), cores)]),
        ..Arithmetic::default()
    }
}

/// What a program for fp32 additions, in any order, would be held to.
fn plain(form: &Form) -> Arithmetic {
    let accumulators = BTreeMap::from([("k".to_owned(), form.accumulator())]);
    Arithmetic { accumulators, ..Arithmetic::default() }
}

fn bound(form: &Form, tiles: &Tiles, arithmetic: &Arithmetic) -> Bounded {
    let sizes = [
        ("t", tiles.count as i64),
        ("m", form.rows() as i64),
        ("n", 8),
        ("depth", tiles.depth as i64),
    ];
    let (dims, [a, b]) = (dims(sizes), [&tiles.a, &tiles.b].map(Clone::clone));
    let inputs = Inputs::new([("a", a), ("b", b)]);
    let evaluation = Evaluation::new(&dims, &inputs, arithmetic);
    let mut bounded = program(form).error(&evaluation).unwrap();
    let bounded = bounded.remove("y").unwrap();
    assert!(bounded.problems.is_empty(), "{} {:?}", form.name, bounded.problems);
    bounded
}

/// The largest error over its bound; 0 over 0 is no error, anything else over 0 infinite.
fn worst(bounded: &Bounded, got: &[f64]) -> f64 {
    let shares = bounded.value.iter().zip(&bounded.error).zip(got).map(|((value, error), got)| {
        let off = (got - value).abs();
        if off == 0.0 { 0.0 } else { off / error }
    });
    shares.fold(0.0, |worst, share| if share.is_nan() { f64::INFINITY } else { worst.max(share) })
}

fn tiles(form: &Form, class: Class) -> Tiles {
    let mut random = SplitMix64::new(SEED).fork(&format!("{} {class:?}", form.name));
    Tiles::draw(form, class, TILES, form.depth * STEPS, &mut random)
}

fn form(name: &str) -> &'static Form {
    FORMS.iter().find(|form| form.name == name).unwrap()
}

#[test]
fn no_model_of_tensor_cores_errs_by_more_than_the_rule_says() {
    println!("seed {SEED}, {TILES} tiles of {STEPS} instructions a form and class");
    let mut elements = 0;
    for form in FORMS {
        let mut closest = (0.0, "no model", Class::Normal);
        for class in CLASSES {
            let tiles = tiles(form, class);
            let bounded = bound(form, &tiles, &declared(form, form.elements));
            for model in MODELS {
                let got = form.run(model, &tiles, STEPS);
                let share = worst(&bounded, &got);
                assert!(share <= 1.0, "{} {class:?} {model}: {share} of the bound", form.name);
                elements += got.len();
                if share > closest.0 {
                    closest = (share, model, class);
                }
            }
        }
        let (share, model, class) = closest;
        println!("{}: {model} comes to {share:.3} of its bound on {class:?}", form.name);
        // Half the bound would be too small, and a rule of other elements is another rule.
        assert!(share > 0.5, "{}: nothing comes near its bound, {share}", form.name);
    }
    println!("{elements} sums");
}

#[test]
fn the_rule_for_sums_in_fp32_does_not_hold_on_tensor_cores() {
    let cases = [("f32.f16", "volta"), ("f32.tf32", "volta"), ("wgmma f32.e4m3", "hopper")];
    for (name, model) in cases {
        let form = form(name);
        let tiles = tiles(form, Class::Edge);
        let share = worst(&bound(form, &tiles, &plain(form)), &form.run(model, &tiles, STEPS));
        println!("{name} {model}: {share:.2} of the fp32 rule's bound");
        assert!(share > 1.0, "{name} {model}: {share}");
    }
}

#[test]
fn the_rule_of_halves_is_too_small_for_bytes() {
    let form = form("wgmma f32.e4m3");
    let tiles = tiles(form, Class::Edge);
    let wrong = declared(form, Format::F16);
    let got = form.run("hopper", &tiles, STEPS);
    assert!(worst(&bound(form, &tiles, &wrong), &got) > 1.0);
}

#[test]
fn subnormal_elements_are_aligned_as_if_they_were_normal_and_cost_more_than_their_size() {
    let form = form("f32.f16");
    let tiles = tiles(form, Class::Subnormal);
    let bounded = bound(form, &tiles, &declared(form, form.elements));
    let got = form.run("hopper", &tiles, STEPS);
    // The published rule by the terms' own sizes: ((k + 1) 2^(24 - F) + 2) u sum|t| a step.
    let depth = form.depth as f64;
    let growth = STEPS as f64 * (0.5 * (depth + 1.0) + 2.0) / f64::from(1_u32 << 24);
    let sizes = tiles.sizes(form);
    let sums = bounded.value.iter().zip(&sizes).zip(&got);
    let exceeds = sums.filter(|((value, size), got)| (*got - *value).abs() > growth * **size);
    assert!(exceeds.count() > 0, "no sum shows that elements are not normalised");
    assert!(worst(&bounded, &got) <= 1.0);
}
