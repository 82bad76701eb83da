//! The gates every kernel must pass, and what they share: the case they are at, the seed, and the
//! tally that turns many cases into one result.

mod envelope;
pub mod fp32_sums;
pub mod given;
mod judge;
pub mod limits;
mod loudness;
pub mod non_finite;
pub mod repeat;
mod repeat_fill;
mod replays;
mod rules;
mod same_bytes;
pub mod shapes;
mod sweep;
mod target;
pub mod trial;
mod twin;

use std::cell::RefCell;

use assay_device::Schedule;
use assay_num::random::SplitMix64;
use assay_record::{CaseName, Evidence, Gate, GateResult, Number, Outcome};
use assay_reference::Dims;

use crate::spec::Spec;
use crate::subject::{RunError, Subject};

/// The worst findings a result keeps; the rest are only counted.
const FINDINGS_KEPT: usize = 4;

/// Runs one gate over every case it has for `subject`.
pub fn check(gate: Gate, subject: &mut dyn Subject, context: &GateContext<'_>) -> GateResult {
    match gate {
        Gate::NonFinite => non_finite::check(subject, context),
        Gate::Repeat => repeat::check(subject, context),
        Gate::Shapes => shapes::check(subject, context),
        Gate::Fp32Sums => fp32_sums::check(subject, context),
        Gate::Limits => limits::check(subject, context),
    }
}

/// Which cases of a gate run.
#[derive(Debug, Clone, Copy, Default)]
pub enum Filter<'a> {
    /// Every case.
    #[default]
    All,
    /// The cases whose name holds the text.
    Holding(&'a str),
    /// The one case of this name.
    Exactly(&'a CaseName),
}

impl Filter<'_> {
    /// True if `case` is to run.
    pub fn keeps(self, case: &CaseName) -> bool {
        match self {
            Filter::All => true,
            Filter::Holding(text) => case.matches(text),
            Filter::Exactly(wanted) => case == wanted,
        }
    }
}

/// How many of its cases a gate runs once one has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// None: that the gate fails is all that is asked.
    FirstFailure,
    /// Those of the other shapes, which show how far it reaches.
    #[default]
    EachShape,
    /// All: the worst margin of the whole gate is asked.
    Whole,
}

/// What a gate is told beside the subject.
pub struct GateContext<'a> {
    /// The seed every random choice of the run comes from.
    pub seed: u64,
    /// What happens after a failing case.
    effort: Effort,
    /// The kernel whose inputs are drawn, where it is not the one judged.
    drawn_as: Option<&'a str>,
    filter: Filter<'a>,
    on_case: &'a (dyn Fn(&CaseName) + Sync),
    listing: Option<RefCell<Vec<CaseName>>>,
}

impl<'a> GateContext<'a> {
    /// A context for every case, telling `on_case` of each before it runs.
    pub fn new(seed: u64, on_case: &'a (dyn Fn(&CaseName) + Sync)) -> GateContext<'a> {
        let (effort, drawn_as, filter) = (Effort::default(), None, Filter::All);
        GateContext { seed, effort, drawn_as, filter, on_case, listing: None }
    }

    /// Keeps only some cases.
    #[must_use]
    pub fn only(mut self, filter: Filter<'a>) -> GateContext<'a> {
        self.filter = filter;
        self
    }

    /// Says how many cases run once one has failed.
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> GateContext<'a> {
        self.effort = effort;
        self
    }

    /// Draws the inputs that the kernel called `name` gets; its own where there is none.
    #[must_use]
    pub fn drawn_as(mut self, name: Option<&'a str>) -> GateContext<'a> {
        self.drawn_as = name;
        self
    }

    /// True if a shape is left at its first failing case.
    pub fn leaves_failed_shapes(&self) -> bool {
        self.effort != Effort::Whole
    }

    /// True if what was found is all that was asked, so that no further shape is visited.
    pub fn has_enough(&self, tally: &Tally) -> bool {
        self.effort == Effort::FirstFailure && tally.failed()
    }

    /// True if a gate may draw its inputs again, as cases of their own, where chance hid a fault.
    pub fn draws_again(&self) -> bool {
        !matches!(self.filter, Filter::Holding(_)) && self.listing.is_none()
    }

    /// True if the context leaves some cases out, so that nothing follows from their absence.
    pub fn is_partial(&self) -> bool {
        !matches!(self.filter, Filter::All) || self.listing.is_some()
    }

    /// A context that runs no case and writes down the name of each; read them with
    /// [`GateContext::listed`].
    pub fn listing(seed: u64) -> GateContext<'static> {
        let listing = Some(RefCell::new(Vec::new()));
        GateContext { listing, ..GateContext::new(seed, &|_| ()) }
    }

    /// The names of all cases that were asked for.
    pub fn listed(&self) -> Vec<CaseName> {
        self.listing.as_ref().map(|names| names.borrow().clone()).unwrap_or_default()
    }

    /// True if `case` is to run now. Ask before any work for the case is done; a gate that is
    /// only being listed is always told no.
    pub fn wants(&self, case: &CaseName) -> bool {
        if !self.filter.keeps(case) {
            return false;
        }
        if let Some(listing) = &self.listing {
            listing.borrow_mut().push(case.clone());
            return false;
        }
        (self.on_case)(case);
        true
    }

    /// The name of a case; it holds all that is needed to run it again.
    pub fn case(&self, spec: &Spec, gate: Gate, dims: &Dims, at: (&str, Schedule)) -> CaseName {
        let (fill, schedule) = at;
        CaseName {
            kernel: spec.name.clone(),
            gate,
            dims: dims.iter().map(|(name, size)| (name.clone(), *size)).collect(),
            fill: fill.to_owned(),
            seed: self.seed,
            schedule: schedule_name(schedule),
        }
    }

    /// Random numbers that depend on the case's seed, kernel, gate, shape and fill, and on no
    /// other case; the schedule is left out, so that all schedules of a shape see equal inputs.
    pub fn random(&self, case: &CaseName) -> SplitMix64 {
        let mut case = CaseName { schedule: String::new(), ..case.clone() };
        if let Some(name) = self.drawn_as {
            name.clone_into(&mut case.kernel);
        }
        let label = case.to_string();
        SplitMix64::new(case.seed).fork(&label)
    }
}

/// A schedule as case names spell it: `in-order`, `reversed`, `seeded-7`.
pub fn schedule_name(schedule: Schedule) -> String {
    match schedule {
        Schedule::InOrder => "in-order".to_owned(),
        Schedule::Reversed => "reversed".to_owned(),
        Schedule::Seeded(seed) => format!("seeded-{seed}"),
    }
}

/// Judges the part of an output that repeats one period, the `at.0`th of `at.1` elements each, by
/// the bound on the period.
pub(crate) fn judge_part(
    tally: &mut Tally,
    case: &CaseName,
    (tensor, bounded): (&assay_reference::Tensor, &assay_reference::Bounded),
    ((number, length), bytes): ((u64, u64), &[u8]),
) {
    let elements = tensor.format.decode_slice(bytes).len().min(bounded.value.len());
    let part = assay_reference::Bounded {
        value: bounded.value[..elements].to_vec(),
        error: bounded.error[..elements].to_vec(),
        ..bounded.clone()
    };
    let verdict = judge::judge(tensor.format, &part, bytes);
    tally.margin(verdict.margin);
    if let Some(worst) = verdict.worst.filter(|_| verdict.rejected > 0) {
        let place = number * length + worst.place as u64;
        let reason = format!(
            "`{}` holds {:e} at place {place} of its memory, where {:e} is right, within {:.3e}",
            tensor.name, worst.got, worst.value, worst.error
        );
        let mut finding = evidence(case, Outcome::Fail, reason);
        finding.output = Some(tensor.name.clone());
        finding.got = Some(Number(worst.got));
        finding.value = Some(Number(worst.value));
        finding.error = Some(Number(worst.error));
        finding.margin = Some(Number(worst.margin));
        tally.find(finding);
    }
}

/// A result that says why the gate has nothing to check.
pub fn not_applicable(gate: Gate, reason: &str) -> GateResult {
    let mut tally = Tally::new(gate);
    tally.not_applicable(reason);
    tally.finish()
}

/// A finding without numbers; fill in what is known.
pub fn evidence(case: &CaseName, outcome: Outcome, reason: impl Into<String>) -> Evidence {
    Evidence::new(case.clone(), outcome, reason)
}

/// Collects what the cases of one gate showed.
///
/// The outcome is the gravest one seen: FAIL, then UNSUPPORTED, UNPROVEN, and PASS if at least one
/// case ran. A gate with no case at all is UNPROVEN, since nothing could have failed.
#[derive(Debug)]
pub struct Tally {
    gate: Gate,
    cases: u64,
    margin: Option<f64>,
    findings: Vec<Evidence>,
    notes: Vec<String>,
    not_applicable: Option<String>,
}

impl Tally {
    /// Nothing seen yet.
    pub fn new(gate: Gate) -> Tally {
        let (findings, notes) = (Vec::new(), Vec::new());
        Tally { gate, cases: 0, margin: None, findings, notes, not_applicable: None }
    }

    /// Counts one case that ran.
    pub fn count(&mut self) {
        self.cases += 1;
    }

    /// Remembers the worst ratio of excess to error bound.
    pub fn margin(&mut self, margin: f64) {
        let worst = self.margin.is_none_or(|seen| margin > seen || margin.is_nan());
        self.margin = if worst { Some(margin) } else { self.margin };
    }

    /// Adds a finding of any outcome.
    pub fn find(&mut self, finding: Evidence) {
        self.findings.push(finding);
    }

    /// Adds a FAIL at `case`.
    pub fn fail(&mut self, case: &CaseName, reason: impl Into<String>) {
        self.find(evidence(case, Outcome::Fail, reason));
    }

    /// Adds an UNPROVEN at `case`: the check could not have failed.
    pub fn unproven(&mut self, case: &CaseName, reason: impl Into<String>) {
        self.find(evidence(case, Outcome::Unproven, reason));
    }

    /// Adds what a run that made no outputs means: UNSUPPORTED if the device is to blame, else
    /// FAIL with the guilty line.
    pub fn run_error(&mut self, case: &CaseName, error: &RunError) {
        let outcome = match error {
            RunError::Unsupported { .. } => Outcome::Unsupported,
            RunError::Stopped => Outcome::Unproven,
            _ => Outcome::Fail,
        };
        let mut finding = evidence(case, outcome, error.to_string());
        finding.place = error.place().map(str::to_owned);
        self.find(finding);
    }

    /// Adds a remark that a person should read beside the outcome.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Says that the gate has nothing to check, and why.
    pub fn not_applicable(&mut self, reason: impl Into<String>) {
        self.not_applicable = Some(reason.into());
    }

    /// True if a case ran and nothing was found.
    pub fn all_pass(&self) -> bool {
        self.cases > 0 && self.findings.is_empty()
    }

    /// True if a FAIL was seen.
    pub fn failed(&self) -> bool {
        self.findings.iter().any(|finding| finding.outcome == Outcome::Fail)
    }

    /// The gate's result: its gravest outcome with the worst findings of each kind first.
    pub fn finish(mut self) -> GateResult {
        let outcome = self.outcome();
        let reason = self.reason(outcome);
        self.findings.sort_by_key(|finding| gravity(finding.outcome));
        self.findings.truncate(FINDINGS_KEPT);
        GateResult {
            gate: self.gate,
            outcome,
            reason,
            cases: self.cases,
            margin: self.margin.map(Number),
            findings: self.findings,
            notes: self.notes,
            chips: Vec::new(),
        }
    }

    fn outcome(&self) -> Outcome {
        let gravest =
            self.findings.iter().map(|finding| finding.outcome).min_by_key(|o| gravity(*o));
        match (gravest, &self.not_applicable) {
            (Some(outcome), _) if outcome != Outcome::Pass => outcome,
            (_, Some(_)) => Outcome::NotApplicable,
            _ if self.cases == 0 => Outcome::Unproven,
            _ => Outcome::Pass,
        }
    }

    fn reason(&self, outcome: Outcome) -> String {
        let of_outcome = self.findings.iter().filter(|finding| finding.outcome == outcome);
        let count = of_outcome.clone().count();
        match (of_outcome.into_iter().next(), outcome) {
            (Some(first), _) if count > 1 => format!("{} (and {} more)", first.reason, count - 1),
            (Some(first), _) => first.reason.clone(),
            (None, Outcome::NotApplicable) => self.not_applicable.clone().unwrap_or_default(),
            (None, Outcome::Unproven) => "no case ran".to_owned(),
            (None, _) => format!("{} cases hold", self.cases),
        }
    }
}

/// Smaller is graver.
fn gravity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Fail => 0,
        Outcome::Known => 1,
        Outcome::Unsupported => 2,
        Outcome::Unproven => 3,
        Outcome::NotApplicable => 4,
        Outcome::Pass => 5,
    }
}

/// The layout of a kernel's tensors at a shape, for inputs of no gate.
pub(crate) fn ordinary_layout(
    spec: &Spec,
    dims: &Dims,
    seed: u64,
) -> Result<assay_reference::fill::Layout, String> {
    target::Target::of(spec, seed)?.layout(dims).map_err(|error| error.to_string())
}
