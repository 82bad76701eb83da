//! Makes the inputs behind a failing case small: first the shape, then what the tensors hold.
//!
//! Every step is kept only if the same gate still fails the kernel in the same way, by a fault or
//! by a wrong result. Nothing is random, so a case shrinks to the same inputs every time.

mod contents;
mod crop;
mod shape;

use std::cell::RefCell;

use assay_record::{CaseName, Evidence, Outcome};
use assay_reference::{Dims, Inputs};

use crate::gates::given::{FILL, given};
use crate::gates::{Filter, GateContext, check};
use crate::subject::{RunError, RunRequest, RunResult, Subject, answers_as};

/// Runs that shrinking the shape may take.
const SHAPE_STEPS: usize = 300;
/// Runs that shrinking the contents may take.
const CONTENT_STEPS: usize = 1500;

/// The smallest inputs found on which a case still fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Shrunk {
    /// The case of these inputs; its fill is [`FILL`].
    pub case: CaseName,
    /// The shape.
    pub dims: Dims,
    /// The inputs.
    pub inputs: Inputs,
    /// What the gate finds on them.
    pub finding: Evidence,
    /// Runs it took to find them.
    pub steps: usize,
}

/// Runs a case again and shrinks the inputs it fails on. `None` if it does not fail, if its failure
/// lies in no single set of inputs, or if the device was lost to it.
pub fn shrink(subject: &mut dyn Subject, case: &CaseName) -> Option<Shrunk> {
    let (dims, inputs) = failing_inputs(subject, case)?;
    let mut search = Search::new(subject, case, dims, inputs)?;
    search.limit(SHAPE_STEPS);
    shape::shrink(&mut search);
    search.limit(CONTENT_STEPS);
    contents::shrink(&mut search);
    Some(search.best)
}

/// The inputs of the first run that a gate's case made: all runs of a case see the same.
fn failing_inputs(subject: &mut dyn Subject, case: &CaseName) -> Option<(Dims, Inputs)> {
    let seen = RefCell::new(None);
    let on_case = |_: &CaseName| ();
    let drawn_as = subject.spec().drawn_as.clone();
    let mut witness = Witness { subject, seen: &seen, lost: false };
    let context = GateContext::new(case.seed, &on_case)
        .drawn_as(drawn_as.as_deref())
        .only(Filter::Exactly(case));
    let result = check(case.gate, &mut witness, &context);
    if result.outcome != Outcome::Fail || witness.lost {
        return None;
    }
    seen.into_inner()
}

/// Passes everything on, and keeps what the kernel was last run on.
struct Witness<'a> {
    subject: &'a mut dyn Subject,
    seen: &'a RefCell<Option<(Dims, Inputs)>>,
    lost: bool,
}

impl Subject for Witness<'_> {
    answers_as!(subject);

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        *self.seen.borrow_mut() = Some((request.dims.clone(), request.inputs.clone()));
        let result = self.subject.run(request);
        self.lost |= matches!(result, Err(RunError::Fault { lost_device: true, .. }));
        result
    }

    fn run_replaced(&mut self, request: &RunRequest<'_>) -> Option<Result<RunResult, RunError>> {
        self.subject.run_replaced(request)
    }
}

/// The smallest failing inputs so far, and how many more may be tried.
struct Search<'a> {
    subject: &'a mut dyn Subject,
    best: Shrunk,
    /// Whether the kernel faults, as against giving a wrong result.
    faults: bool,
    left: usize,
}

impl<'a> Search<'a> {
    /// A search that starts from inputs on which the kernel must fail.
    fn new(
        subject: &'a mut dyn Subject,
        case: &CaseName,
        dims: Dims,
        inputs: Inputs,
    ) -> Option<Search<'a>> {
        let case = CaseName { fill: FILL.to_owned(), ..case.clone() };
        let finding = failure(subject, &case, (&dims, &inputs))?;
        let faults = finding.place.is_some();
        let best = Shrunk { case, dims, inputs, finding, steps: 0 };
        Some(Search { subject, best, faults, left: 0 })
    }

    fn limit(&mut self, steps: usize) {
        self.left = steps;
    }

    /// Keeps other inputs if the kernel fails on them in the same way; true if it does.
    fn keep(&mut self, dims: &Dims, inputs: Inputs) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.best.steps += 1;
        let sizes = dims.iter().map(|(name, size)| (name.clone(), *size)).collect();
        let case = CaseName { dims: sizes, ..self.best.case.clone() };
        let Some(finding) = failure(self.subject, &case, (dims, &inputs)) else { return false };
        if finding.place.is_some() != self.faults {
            return false;
        }
        let steps = self.best.steps;
        self.best = Shrunk { case, dims: dims.clone(), inputs, finding, steps };
        true
    }
}

/// How the kernel fails on these inputs, if it does.
fn failure(
    subject: &mut dyn Subject,
    case: &CaseName,
    (dims, inputs): (&Dims, &Inputs),
) -> Option<Evidence> {
    let findings = given(subject, case, (dims, inputs)).findings;
    findings.into_iter().find(|finding| finding.outcome == Outcome::Fail)
}
