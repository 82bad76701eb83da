//! Operations as candidates: a case from its recipe to its verdict.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::{FuzzCase, FuzzKind, FuzzShape, FuzzVerdict, Recipe, ViewStep};

use crate::candidate::{Candidate, Planned, Runner, panic_words, timed};
use crate::envelope::envelope;
use crate::judge::Judged;
use crate::operands::operands;
use crate::operation::{Body, Operation, OperationShapes, Refusal};
use crate::shrink;
use crate::tensor::View;

/// How operands of operations are filled.
const FILL: &str = "values";
/// Outputs of so many elements are judged whole; of larger ones, windows.
const WHOLE: u64 = 1 << 18;
/// Elements asked for at a time.
const WINDOW: u64 = 1024;
/// Windows at random places of a large output.
const DRAWN: usize = 8;

/// An operation in one of its formats.
#[derive(Clone)]
pub struct OperationCandidate {
    operation: Arc<Operation>,
    format: Format,
}

impl OperationCandidate {
    /// A candidate for each format of each operation.
    pub fn of(operations: Vec<Operation>) -> Vec<OperationCandidate> {
        let each = |operation: Operation| {
            let operation = Arc::new(operation);
            let formats = operation.formats.clone().into_iter();
            formats
                .map(move |format| OperationCandidate { operation: Arc::clone(&operation), format })
        };
        operations.into_iter().flat_map(each).collect()
    }

    fn shapes(&self, recipe: &Recipe) -> Result<OperationShapes, String> {
        let FuzzShape::Axes(axes) = &recipe.shape else {
            return Err("an operation's shape is sizes, such as `7x33`".to_owned());
        };
        (self.operation.shapes)(axes).ok_or_else(|| "it takes no such shape".to_owned())
    }

    /// Runs a case; the error is the reason why there was none.
    fn try_run(&self, recipe: &Recipe) -> Result<FuzzCase, String> {
        let shapes = self.shapes(recipe)?;
        misunderstood(recipe).map_or(Ok(()), Err)?;
        let random = SplitMix64::new(recipe.seed).fork(&recipe.to_string());
        let (own, steps) = (&self.operation, &recipe.view);
        let views = operands(own, &shapes.operands, steps, self.format, &random)?;
        let elements = elements(&shapes.output);
        if matches!(self.operation.body, Body::Whole(_)) && elements > WHOLE {
            return Err(format!("it computes all {elements} elements of its output at once"));
        }
        let mut judged = Judged::new(self.format, self.operation.tolerance, &shapes.output);
        let mut case = match self.take(&views, elements, &random, &mut judged) {
            Ok(()) => judged.verdict(recipe)?,
            Err((verdict, why)) => FuzzCase::new(recipe.clone(), verdict, why),
        };
        let mut strays = views.iter().enumerate();
        if let Some((number, (count, first))) =
            strays.find_map(|(number, view)| Some((number, view.storage.strays()?)))
            && case.verdict != FuzzVerdict::Panic
        {
            case.verdict = FuzzVerdict::Fault;
            case.reason = format!(
                "{count} loads outside the memory of operand {number}, the first at place {first}"
            );
        }
        let largest = shapes.operands.iter().map(|shape| self::elements(shape)).max();
        case.elements = elements.max(largest.unwrap_or(0));
        Ok(case)
    }

    /// Has the output's windows computed, each beside what is right there.
    fn take(
        &self,
        views: &[View],
        elements: u64,
        random: &SplitMix64,
        judged: &mut Judged,
    ) -> Result<(), (FuzzVerdict, String)> {
        let mut take = |start: u64, outputs: &[f64]| {
            judged.take(start, outputs, |place| (self.operation.reference)(views, place));
        };
        match &self.operation.body {
            Body::Whole(op) => {
                let outputs = guarded(|| op(views))?;
                let count = outputs.len() as u64;
                if count != elements {
                    let why = format!("it gives {count} elements, its output has {elements}");
                    return Err((FuzzVerdict::Wrong, why));
                }
                take(0, &outputs);
            }
            Body::Range(op) => {
                for (start, length) in windows(elements, &mut random.fork("windows")) {
                    let mut outputs = vec![f64::NAN; length as usize];
                    guarded(|| op(views, start, &mut outputs))?;
                    take(start, &outputs);
                }
            }
        }
        Ok(())
    }
}

/// What a recipe asks for that an operation's case has not: nothing else is run in its place.
fn misunderstood(recipe: &Recipe) -> Option<String> {
    let FuzzShape::Axes(axes) = &recipe.shape else { return None };
    if recipe.fill != FILL {
        return Some(format!("an operation's operands are filled as `{FILL}`"));
    }
    recipe.view.iter().find_map(|step| match step {
        ViewStep::Misalign(_) | ViewStep::Aliased | ViewStep::Repeated(_) => {
            Some("`misalign`, `aliased` and `repeated` are views of kernels".to_owned())
        }
        ViewStep::Broadcast(axis) if *axis >= axes.len() as u64 => {
            Some(format!("there is no axis {axis} to broadcast"))
        }
        ViewStep::Pitch(_) if axes.is_empty() => Some("a scalar has no pitch".to_owned()),
        ViewStep::Strided(0) => Some("a stride of 0 is `broadcast`".to_owned()),
        _ => None,
    })
}

/// Runs the candidate's own code, which may panic or decline.
fn guarded<T>(run: impl FnOnce() -> Result<T, Refusal>) -> Result<T, (FuzzVerdict, String)> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(Refusal(why))) => Err((FuzzVerdict::Refused, why)),
        Err(panic) => {
            let words = panic_words(&*panic);
            Err((FuzzVerdict::Panic, format!("it panicked: {words}")))
        }
    }
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |all, size| all.saturating_mul(*size))
}

/// The parts of an output that are asked for: all of it, or its ends, what lies around every
/// number that a counter of fewer bits would wrap at, and some places at random.
fn windows(elements: u64, random: &mut SplitMix64) -> Vec<(u64, u64)> {
    let within = |start: u64| (start, WINDOW.min(elements - start));
    if elements == 0 {
        // Nothing to compute is something to get wrong.
        return vec![(0, 0)];
    }
    if elements <= WHOLE {
        return (0..elements.div_ceil(WINDOW)).map(|number| within(number * WINDOW)).collect();
    }
    let wraps = [15, 16, 24, 31, 32, 33].map(|bits| (1u64 << bits) - WINDOW / 2);
    let mut starts: Vec<u64> = wraps.into_iter().filter(|start| *start < elements).collect();
    starts.extend([0, elements - WINDOW]);
    starts.extend((0..DRAWN).map(|_| random.below(elements)));
    starts.sort_unstable();
    let mut windows: Vec<(u64, u64)> = Vec::new();
    for (start, length) in starts.into_iter().map(within) {
        // No element is counted twice.
        let from = windows.last().map_or(start, |(last, length)| start.max(last + length));
        if start + length > from {
            windows.push((from, start + length - from));
        }
    }
    windows
}

impl Candidate for OperationCandidate {
    fn name(&self) -> String {
        format!("{}:{}", self.operation.name, self.format.name())
    }

    fn kind(&self) -> FuzzKind {
        FuzzKind::Operation
    }

    fn control_for(&self) -> Option<String> {
        self.operation.control_for.clone()
    }

    fn cases(&self, seed: u64) -> Vec<Planned> {
        let planned = |ugly: crate::envelope::Ugly| {
            let elements = elements(&ugly.shape);
            let recipe = Recipe {
                candidate: self.name(),
                shape: FuzzShape::Axes(ugly.shape),
                view: ugly.view,
                fill: FILL.to_owned(),
                seed,
            };
            let skip = self.shapes(&recipe).err();
            Planned { recipe, elements, skip }
        };
        envelope(seed).into_iter().map(planned).collect()
    }

    fn smaller(&self, recipe: &Recipe) -> Vec<Recipe> {
        let takes = |recipe: &Recipe| self.shapes(recipe).is_ok();
        shrink::smaller_axes(recipe).into_iter().filter(takes).collect()
    }
}

impl Runner for OperationCandidate {
    fn run(&mut self, recipe: &Recipe) -> FuzzCase {
        let skipped = |why| FuzzCase::new(recipe.clone(), FuzzVerdict::Skipped, why);
        timed(|| self.try_run(recipe).unwrap_or_else(skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_a_small_output_and_the_wraps_of_a_huge_one() {
        let mut random = SplitMix64::new(1);
        let small: u64 = windows(5000, &mut random).iter().map(|(_, length)| length).sum();
        assert_eq!(small, 5000);
        assert_eq!(windows(0, &mut random), [(0, 0)]);
        let huge = windows((1 << 31) + 3, &mut random);
        assert!(huge.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{huge:?}");
        let holds = |place: u64| huge.iter().any(|(s, length)| (*s..s + length).contains(&place));
        for place in [0, (1 << 16) - 1, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 31) + 2] {
            assert!(holds(place), "{place}");
        }
    }
}
