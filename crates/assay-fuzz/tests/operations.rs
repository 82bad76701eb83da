//! Operations through the envelope: what is right passes, and each planted fault is found at the
//! shape that shows it.

use assay_fuzz::{
    Body, Candidate, Operation, OperationCandidate, OperationShapes, Options, Refusal, Runner,
    Silent, View, fuzz, fuzz_shapes, planted,
};
use assay_record::{
    FuzzCandidate, FuzzCase, FuzzShape, FuzzVerdict, Outcome, Recipe, Tolerance, ViewStep,
};

/// The seed of every run here.
const SEED: u64 = 20_261_130;

fn fuzzed(operation: Operation) -> FuzzCandidate {
    let candidate = OperationCandidate::of(vec![operation]).remove(0);
    let mut runner = candidate.clone();
    let options = Options { seed: SEED, ..Options::default() };
    fuzz(&candidate, &mut runner, &options, &Silent)
}

/// The smallest shape and view of the first failure of a kind.
fn smallest(found: &FuzzCandidate, verdict: FuzzVerdict) -> (Vec<u64>, Vec<ViewStep>) {
    let failure = found.failures.iter().find(|failure| failure.case.verdict == verdict);
    let failure = failure.unwrap_or_else(|| panic!("no {verdict:?} (seed {SEED}): {found:#?}"));
    let case = failure.smallest.as_ref().unwrap_or(&failure.case);
    let FuzzShape::Axes(axes) = &case.recipe.shape else { panic!("{case:?}") };
    (axes.clone(), case.recipe.view.clone())
}

#[test]
fn an_operation_that_is_right_has_no_failure_and_drops_no_case() {
    let found = fuzzed(planted::clean());
    assert_eq!(found.outcome, Outcome::Pass, "seed {SEED}: {}", found.reason);
    assert!(found.counts.passed > 300, "{:?}", found.counts);
    assert_eq!(found.counts.skipped, 0, "{:?}", found.skipped);
    assert!(found.huge.len() >= 5);
    assert!(found.huge.iter().all(|case| case.verdict == FuzzVerdict::Pass));
}

#[test]
fn an_operation_that_takes_operands_for_contiguous_is_found_at_two_elements() {
    let found = fuzzed(planted::contiguous());
    assert_eq!(found.outcome, Outcome::Fail);
    let (shape, view) = smallest(&found, FuzzVerdict::Fault);
    assert_eq!(shape.iter().product::<u64>(), 2, "{shape:?} {view:?}");
    assert!(!view.is_empty() && !view.contains(&ViewStep::Offset(1)), "{view:?}");
    // A transposed operand lies in its own memory: the values alone tell.
    let (shape, view) = smallest(&found, FuzzVerdict::Wrong);
    assert!(shape.iter().product::<u64>() <= 4, "{shape:?} {view:?}");
}

#[test]
fn an_operation_with_int32_offsets_is_found_past_2_to_the_31_without_the_memory() {
    let found = fuzzed(planted::int32());
    assert_eq!(found.outcome, Outcome::Fail);
    let broken = |case: &&assay_record::FuzzCase| case.verdict.is_failure();
    let huge: Vec<_> = found.huge.iter().filter(broken).collect();
    assert!(!huge.is_empty(), "{:#?}", found.huge);
    let below = |failure: &assay_record::FuzzFailure| {
        failure.case.elements < 1 << 31
            && !failure.case.recipe.view.iter().any(|step| matches!(step, ViewStep::Pitch(_)))
    };
    assert!(!found.failures.iter().any(below), "{:#?}", found.failures);
    let (shape, view) = smallest(&found, FuzzVerdict::Fault);
    assert_eq!((shape, view), (vec![3], vec![ViewStep::Pitch(1 << 30)]));
}

#[test]
fn an_operation_that_loads_vectors_from_any_address_is_found_one_element_off() {
    let found = fuzzed(planted::misaligned());
    let (shape, view) = smallest(&found, FuzzVerdict::Wrong);
    assert_eq!((shape.iter().product::<u64>(), view), (4, vec![ViewStep::Offset(1)]));
}

#[test]
fn an_operation_that_drops_its_tail_is_found_at_one_element() {
    let found = fuzzed(planted::tail());
    let (shape, view) = smallest(&found, FuzzVerdict::Wrong);
    assert_eq!((shape.iter().product::<u64>(), view), (1, vec![]));
}

#[test]
fn an_operation_that_panics_is_a_verdict_and_the_other_cases_still_run() {
    let found = fuzzed(planted::empty());
    let (shape, view) = smallest(&found, FuzzVerdict::Panic);
    assert!(shape.iter().product::<u64>() <= 1 && view.is_empty(), "{shape:?}");
    assert!(found.counts.passed > 200, "{:?}", found.counts);
}

#[test]
fn an_operation_that_computes_its_output_at_once_skips_the_huge_cases_and_says_so() {
    let whole = |views: &[View]| {
        Ok((0..views[0].elements()).map(|place| 2.0 * views[0].linear(place)).collect())
    };
    let operation = Operation { body: Body::Whole(Box::new(whole)), ..planted::contiguous() };
    let operation = Operation { control_for: None, ..operation };
    let found = fuzzed(operation);
    assert_eq!(found.outcome, Outcome::Pass, "{}", found.reason);
    let skipped = found.huge.iter().filter(|case| case.verdict == FuzzVerdict::Skipped).count();
    assert!(skipped >= 5 && found.counts.skipped >= 5, "{:?}", found.skipped);
    assert!(found.skipped[0].reason.contains("at once"), "{:?}", found.skipped);
}

#[test]
fn an_operation_that_refuses_everything_proves_nothing() {
    let refuses = |_: &[View], _: u64, _: &mut [f64]| Err(Refusal("no".to_owned()));
    let found = fuzzed(Operation::elementwise("refuses", 1, refuses, |_, _| 0.0));
    assert_eq!(found.outcome, Outcome::Unproven, "empty outputs are no evidence: {found:?}");
    assert!(found.is_problem());
}

#[test]
fn an_output_of_another_length_is_wrong() {
    let operation = Operation {
        body: Body::Whole(Box::new(|_: &[View]| Ok(vec![0.0]))),
        ..Operation::elementwise("short", 1, |_, _, _| Ok(()), |_, _| 0.0)
    };
    let found = fuzzed(operation);
    assert_eq!(found.outcome, Outcome::Fail);
    assert!(found.failures[0].case.reason.contains("it gives 1 elements"), "{found:?}");
}

#[test]
fn a_product_of_matrices_takes_shapes_of_its_own() {
    let found = fuzzed(product(|views, row, column| {
        let depth = views[0].shape()[1];
        (0..depth).map(|k| views[0].at(&[row, k]) * views[1].at(&[k, column])).sum()
    }));
    assert_eq!(found.outcome, Outcome::Pass, "seed {SEED}: {}", found.reason);
    assert!(found.counts.passed > 60 && found.counts.skipped > 0, "{:?}", found.counts);
    let broken = fuzzed(product(|views, row, column| {
        let depth = views[0].shape()[1].min(64);
        (0..depth).map(|k| views[0].at(&[row, k]) * views[1].at(&[k, column])).sum()
    }));
    let (shape, _) = smallest(&broken, FuzzVerdict::Wrong);
    assert_eq!(shape, [1, 65], "the depth past its tile");
}

/// `[m, k] x [k, m]`, a few units in the last place allowed.
fn product(element: fn(&[View], u64, u64) -> f64) -> Operation {
    let at = move |views: &[View], place: u64| {
        let columns = views[1].shape()[1];
        element(views, place / columns, place % columns)
    };
    let exact = |views: &[View], place: u64| {
        let (depth, columns) = (views[0].shape()[1], views[1].shape()[1]);
        let (row, column) = (place / columns, place % columns);
        (0..depth).map(|k| views[0].at(&[row, k]) * views[1].at(&[k, column])).sum()
    };
    let op = move |views: &[View], start: u64, outputs: &mut [f64]| {
        for (place, output) in (start..).zip(outputs) {
            *output = at(views, place);
        }
        Ok(())
    };
    let shapes = |shape: &[u64]| match *shape {
        [rows, depth] if rows * rows < 20_000 && rows * rows * depth < 1 << 20 => {
            let operands = vec![vec![rows, depth], vec![depth, rows]];
            Some(OperationShapes { operands, output: vec![rows, rows] })
        }
        _ => None,
    };
    let shapes = Box::new(shapes);
    Operation { shapes, ..Operation::elementwise("product", 2, op, exact) }
        .within(Tolerance::ulp(4))
}

#[test]
fn a_failing_case_fails_again_by_its_recipe_alone() {
    let found = fuzzed(planted::misaligned());
    let failure = &found.failures[0];
    let mut fresh = OperationCandidate::of(vec![planted::misaligned()]).remove(0);
    let text = failure.case.recipe.to_string();
    let again = fresh.run(&text.parse().expect("a recipe"));
    assert_eq!((again.verdict, again.got), (failure.case.verdict, failure.case.got));
}

#[test]
fn a_recipe_of_another_kind_is_skipped_in_words() {
    let mut candidate = OperationCandidate::of(vec![planted::clean()]).remove(0);
    for text in [
        "n=3/dense/values",
        "2147483648/strided:2/values",
        "3x4/misalign:1/values",
        "3x4/aliased/values",
        "3x4/broadcast:2/values",
        "3x4/strided:0/values",
        "3x4/dense/mixed",
    ] {
        let recipe = format!("fuzz_clean:f32/{text}/seed=1");
        let case = candidate.run(&recipe.parse().expect("a recipe"));
        assert_eq!(case.verdict, FuzzVerdict::Skipped, "{recipe}");
    }
    for text in ["3x4/broadcast:1/values", "3x4/strided:1/values", "3x4/transposed/values"] {
        let recipe = format!("fuzz_clean:f32/{text}/seed=1");
        let case = candidate.run(&recipe.parse().expect("a recipe"));
        assert_eq!(case.verdict, FuzzVerdict::Pass, "control: {recipe}");
    }
}

#[test]
fn what_the_budget_leaves_out_is_counted() {
    let candidate = OperationCandidate::of(vec![planted::clean()]).remove(0);
    let budget = Some(std::time::Duration::ZERO);
    let options = Options { budget, seed: SEED, ..Options::default() };
    let found = fuzz(&candidate, &mut candidate.clone(), &options, &Silent);
    assert_eq!(found.counts.skipped, candidate.cases(SEED).len() as u64);
    assert!(found.skipped[0].reason.contains("--budget"), "{:?}", found.skipped);
    assert!(found.is_problem(), "nothing was shown");
}

#[test]
fn a_wrong_output_keeps_the_whole_evidence_of_where_and_how_wrong_it_is() {
    let found = fuzzed(planted::tail());
    let failure = found.failures.iter().find(|f| f.case.verdict == FuzzVerdict::Wrong);
    let case = &failure.expect("it is wrong").case;
    let comparison = case.comparison.as_ref().expect("the evidence");
    assert_eq!(comparison.outcome, Outcome::Fail);
    assert!(comparison.census.iter().any(|pair| pair.candidate == "NaN" && pair.count > 0));
    let first = comparison.first_outside.clone().expect("a place");
    assert_eq!(comparison.worst_ulp[0].coordinates, first, "unwritten from there on");
    let written = serde_json::to_string(&found).expect("JSON");
    assert_eq!(serde_json::from_str::<FuzzCandidate>(&written).expect("it reads"), found);
}

#[test]
fn a_closure_within_its_tolerance_holds_and_one_beyond_it_does_not() {
    let near = |by: f64| {
        move |views: &[View]| {
            (0..views[0].elements()).map(|at| views[0].linear(at) * (1.0 + by)).collect()
        }
    };
    let right = |views: &[View], at: u64| views[0].linear(at);
    let within = fuzz_shapes("near", 1, near(1e-5), right, Tolerance::new(0.0, 1e-4));
    assert_eq!(within.outcome, Outcome::Pass, "{}", within.reason);
    let Some(assay_record::Number(margin)) = within.margin else { panic!("{within:?}") };
    assert!((0.05..0.2).contains(&margin), "a tenth of what is allowed: {margin}");
    let beyond = fuzz_shapes("far", 1, near(1e-3), right, Tolerance::new(0.0, 1e-4));
    assert_eq!(beyond.outcome, Outcome::Fail);
    let vacuous = fuzz_shapes("zero", 1, near(0.0), right, Tolerance::new(1e9, 0.0));
    assert_eq!(vacuous.outcome, Outcome::Unproven, "zeros would pass: {}", vacuous.reason);
    let none = fuzz_shapes("none", 1, near(0.0), right, Tolerance::new(f64::NAN, 0.0));
    assert_eq!(none.outcome, Outcome::Unproven);
    assert!(none.reason.contains("atol"), "{}", none.reason);
}

#[test]
fn a_closure_that_outstays_its_time_is_waited_for_and_that_is_said() {
    let slow = |views: &[View]| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        (0..views[0].elements()).map(|at| views[0].linear(at)).collect()
    };
    let fast = |views: &[View]| (0..views[0].elements()).map(|at| views[0].linear(at)).collect();
    let fuzzed = |body: fn(&[View]) -> Vec<f64>| {
        let body = Body::Whole(Box::new(move |views| Ok(body(views))));
        let right = |views: &[View], at: u64| views[0].linear(at);
        let operation =
            Operation { body, ..Operation::elementwise("slow", 1, |_, _, _| Ok(()), right) };
        let budget = Some(std::time::Duration::from_millis(100));
        operation.fuzz(&Options { budget, seed: SEED, ..Options::default() }).remove(0)
    };
    let found = fuzzed(slow);
    assert_eq!(found.counts.failed, 0);
    assert!(found.notes.iter().any(|note| note.contains("cannot be interrupted")), "{found:#?}");
    assert!(fuzzed(fast).notes.is_empty(), "control: cases of microseconds outstay nothing");
}

/// Takes its time over one case, whatever it was given.
struct Slow {
    stops: bool,
    apart: bool,
}

impl Runner for Slow {
    fn run(&mut self, recipe: &Recipe) -> FuzzCase {
        std::thread::sleep(std::time::Duration::from_millis(800));
        FuzzCase::new(recipe.clone(), FuzzVerdict::Pass, String::new())
    }

    fn limit(&mut self, _left: Option<std::time::Duration>) -> bool {
        self.stops
    }

    fn is_apart(&self) -> bool {
        self.apart
    }
}

#[test]
fn a_case_whose_launches_stop_in_time_and_whose_reference_does_not_is_told_of_too() {
    let notes = |stops, apart| {
        let candidate = OperationCandidate::of(vec![planted::clean()]).remove(0);
        let budget = Some(std::time::Duration::from_millis(50));
        let options = Options { seed: SEED, budget, ..Options::default() };
        fuzz(&candidate, &mut Slow { stops, apart }, &options, &Silent).notes
    };
    assert!(notes(true, false)[0].contains("what is no launch and runs in this process"));
    assert!(notes(false, false)[0].contains("what runs in this process"));
    assert!(notes(true, true).is_empty(), "a process of its own is ended");
}

#[test]
fn what_is_planted_may_be_left_once_it_is_found_and_its_other_cases_are_counted() {
    let fuzzed = |operation| {
        let candidate = OperationCandidate::of(vec![operation]).remove(0);
        let options = Options { seed: SEED, until_found: true, ..Options::default() };
        fuzz(&candidate, &mut candidate.clone(), &options, &Silent)
    };
    let found = fuzzed(planted::tail());
    assert_eq!((found.outcome, found.counts.failed), (Outcome::Fail, 1));
    assert!(found.counts.skipped > 300, "{:?}", found.counts);
    assert!(found.failures[0].smallest.is_some() || found.failures[0].case.elements <= 1);
    assert!(!found.huge.is_empty(), "none is dropped");
    let clean = fuzzed(planted::clean());
    assert_eq!(clean.counts.skipped, 0, "control: nothing is found, nothing is left");
}
