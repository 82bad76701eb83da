//! Takes a candidate through its envelope: every case run or counted as left out, failures shrunk.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use assay_record::{
    FuzzCandidate, FuzzCase, FuzzCounts, FuzzFailure, FuzzSkip, FuzzVerdict, Number, Outcome,
    Recipe,
};

use crate::candidate::{Candidate, HUGE, Planned, Runner};
use crate::shrink::shrink;

/// Hangs after which a candidate's other cases are left: each costs the whole time that a case may
/// take.
const MOST_HANGS: u64 = 2;

/// How far past its time a candidate may go without a word about it.
const TOLERATED: Duration = Duration::from_millis(100);

/// How a candidate is fuzzed.
#[derive(Debug, Clone)]
pub struct Options {
    /// What every random choice comes from.
    pub seed: u64,
    /// Only recipes that hold this text.
    pub only: Option<String>,
    /// How long the candidate may take. A launch on the emulator and a process of its own are
    /// stopped when it is spent; a closure in this process cannot be, and is waited for.
    pub budget: Option<Duration>,
    /// Whether the cases after the first failure are left, as where one is known to be planted.
    pub until_found: bool,
    /// Runs that shrinking one failure may take.
    pub shrink_runs: u64,
    /// Failures of one kind that are kept, the first of them shrunk.
    pub failures_kept: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 1,
            only: None,
            budget: None,
            until_found: false,
            shrink_runs: 200,
            failures_kept: 3,
        }
    }
}

/// Hears of every case before it runs.
pub trait Progress {
    /// A case is about to run, so many of so many being done.
    fn case(&self, _recipe: &Recipe, _done: usize, _of: usize) {}
}

/// Hears of nothing.
pub struct Silent;

impl Progress for Silent {}

/// The cases that the options keep.
pub fn selected(candidate: &dyn Candidate, options: &Options) -> Vec<Planned> {
    let mut cases = candidate.cases(options.seed);
    if let Some(text) = &options.only {
        cases.retain(|planned| planned.recipe.to_string().contains(text.as_str()));
    }
    cases
}

/// Cases that lie so far apart in an envelope are run first where one that fails is looked for:
/// of those beside each other most find the same, or nothing.
const STRIDE: usize = 16;

/// Puts every so-manieth case first, then those behind each, and so on.
fn spread(cases: &mut Vec<Planned>) {
    let mut placed: Vec<(usize, Planned)> = cases.drain(..).enumerate().collect();
    placed.sort_by_key(|(at, _)| at % STRIDE);
    cases.extend(placed.into_iter().map(|(_, planned)| planned));
}

/// Runs a candidate's cases.
pub fn fuzz(
    candidate: &dyn Candidate,
    runner: &mut dyn Runner,
    options: &Options,
    progress: &dyn Progress,
) -> FuzzCandidate {
    let start = Instant::now();
    let deadline = options.budget.map(|budget| start + budget);
    let mut run = Run { options, deadline, ..Run::new(options) };
    let runner = &mut Timed { runner, deadline, overrun: None };
    let mut cases = selected(candidate, options);
    if options.until_found {
        spread(&mut cases);
    }
    let of = cases.len();
    for (done, planned) in cases.into_iter().enumerate() {
        let huge = planned.elements >= HUGE;
        let case = if let Some(why) = run.reason_to_skip(&planned) {
            skipped(&planned, why)
        } else {
            progress.case(&planned.recipe, done, of);
            let case = runner.run(&planned.recipe);
            FuzzCase { elements: case.elements.max(planned.elements), ..case }
        };
        run.take(case, huge, (candidate, &mut *runner));
    }
    run.notes.extend(runner.overrun.take().map(|(_, note)| note));
    run.finish(candidate, start)
}

/// Holds every case to the time that is left, and remembers the one that could not be held to it.
struct Timed<'a> {
    runner: &'a mut dyn Runner,
    deadline: Option<Instant>,
    /// The longest time past the deadline, and what to say of it.
    overrun: Option<(Duration, String)>,
}

impl Runner for Timed<'_> {
    fn run(&mut self, recipe: &Recipe) -> FuzzCase {
        let Some(deadline) = self.deadline else { return self.runner.run(recipe) };
        let left = deadline.saturating_duration_since(Instant::now());
        let stops = self.runner.limit(Some(left));
        let case = self.runner.run(recipe);
        let over = Instant::now().saturating_duration_since(deadline);
        let tolerated = if stops { 5 * TOLERATED } else { TOLERATED };
        let longest = self.overrun.as_ref().map_or(tolerated, |(longest, _)| *longest);
        if !self.runner.is_apart() && over > longest {
            let what = if stops { "what is no launch and" } else { "what" };
            let note = format!(
                "{recipe} ended {:.1} s after the time for all cases was spent: {what} runs in \
                 this process cannot be interrupted, in a process of its own it can (--isolate)",
                over.as_secs_f64()
            );
            self.overrun = Some((over, note));
        }
        case
    }
}

fn skipped(planned: &Planned, why: String) -> FuzzCase {
    let mut case = FuzzCase::new(planned.recipe.clone(), FuzzVerdict::Skipped, why);
    case.elements = planned.elements;
    case
}

/// A candidate's run so far.
struct Run<'a> {
    options: &'a Options,
    deadline: Option<Instant>,
    counts: FuzzCounts,
    hangs: u64,
    /// Cases that passed with an element to be wrong in.
    shown: u64,
    huge: Vec<FuzzCase>,
    failures: Vec<FuzzFailure>,
    skips: BTreeMap<String, FuzzSkip>,
    /// The first reason for each verdict.
    reasons: BTreeMap<FuzzVerdict, String>,
    margin: Option<f64>,
    notes: Vec<String>,
}

impl<'a> Run<'a> {
    fn new(options: &'a Options) -> Run<'a> {
        Run {
            options,
            deadline: None,
            counts: FuzzCounts::default(),
            hangs: 0,
            shown: 0,
            huge: Vec::new(),
            failures: Vec::new(),
            skips: BTreeMap::new(),
            reasons: BTreeMap::new(),
            margin: None,
            notes: Vec::new(),
        }
    }

    fn reason_to_skip(&self, planned: &Planned) -> Option<String> {
        let late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if let Some(why) = &planned.skip {
            return Some(why.clone());
        }
        if self.hangs >= MOST_HANGS {
            return Some(format!("it hung in {MOST_HANGS} cases, and would cost as much in more"));
        }
        if self.options.until_found && !self.failures.is_empty() {
            return Some("what is planted was found before it".to_owned());
        }
        late().then(|| "the time for it was spent (--budget)".to_owned())
    }

    fn take(
        &mut self,
        case: FuzzCase,
        huge: bool,
        (candidate, runner): (&dyn Candidate, &mut dyn Runner),
    ) {
        self.counts.count(case.verdict);
        self.hangs += u64::from(case.verdict == FuzzVerdict::Hang);
        self.shown += u64::from(case.verdict == FuzzVerdict::Pass && case.elements > 0);
        self.reasons.entry(case.verdict).or_insert_with(|| case.reason.clone());
        if case.verdict == FuzzVerdict::Skipped {
            let first = case.recipe.clone();
            let new = FuzzSkip { reason: case.reason.clone(), cases: 0, first };
            self.skips.entry(case.reason.clone()).or_insert(new).cases += 1;
        }
        if huge {
            self.huge.push(case.clone());
        }
        if case.verdict.is_failure() {
            self.fail(case, candidate, runner);
        } else if let Some(Number(margin)) = case.margin {
            self.margin = Some(self.margin.map_or(margin, |worst| worst.max(margin)));
        }
    }

    fn fail(&mut self, case: FuzzCase, candidate: &dyn Candidate, runner: &mut dyn Runner) {
        let alike = self.failures.iter().filter(|failure| failure.case.verdict == case.verdict);
        let alike = alike.count();
        if alike >= self.options.failures_kept {
            return;
        }
        let (mut smallest, mut shrink_runs) = (None, 0);
        // A hang costs too much to be met again and again.
        if alike == 0 && case.verdict != FuzzVerdict::Hang {
            let mut left = self.options.shrink_runs;
            let deadline = self.deadline;
            let mut more = || {
                let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
                left = left.saturating_sub(1);
                left > 0 && !late
            };
            (smallest, shrink_runs) = shrink(candidate, runner, &case, &mut more);
        }
        self.failures.push(FuzzFailure { case, smallest, shrink_runs });
    }

    fn finish(self, candidate: &dyn Candidate, start: Instant) -> FuzzCandidate {
        let (outcome, reason) = self.outcome();
        FuzzCandidate {
            candidate: candidate.name(),
            kind: candidate.kind(),
            control_for: candidate.control_for(),
            outcome,
            reason,
            counts: self.counts,
            huge: self.huge,
            failures: self.failures,
            skipped: self.skips.into_values().collect(),
            notes: self.notes,
            margin: self.margin.map(Number),
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    fn outcome(&self) -> (Outcome, String) {
        if let Some(first) = self.failures.first() {
            let smallest = first.smallest.as_ref().unwrap_or(&first.case);
            let (count, reason) = (self.counts.failed, &smallest.reason);
            return (Outcome::Fail, format!("{count} cases fail; {reason}"));
        }
        let of = |verdict: FuzzVerdict| self.reasons.get(&verdict).cloned().unwrap_or_default();
        let FuzzCounts { passed, unsupported, refused, unproven, .. } = self.counts;
        match (self.shown, unsupported, refused, unproven) {
            (0, 1.., _, _) => (Outcome::Unsupported, of(FuzzVerdict::Unsupported)),
            (0, _, 1.., _) => {
                (Outcome::Unproven, format!("it refused: {}", of(FuzzVerdict::Refused)))
            }
            (0, _, _, 1..) => (Outcome::Unproven, of(FuzzVerdict::Unproven)),
            (0, ..) => {
                let what = if passed > 0 { "only empty cases hold" } else { "no case ran" };
                let most = self.skips.values().max_by_key(|skip| skip.cases);
                let why = most.map_or("there is none", |skip| skip.reason.as_str());
                (Outcome::Unproven, format!("{what}: {why}"))
            }
            _ => (Outcome::Pass, format!("{passed} cases hold")),
        }
    }
}
