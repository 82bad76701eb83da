//! What fuzzing over ugly shapes found, as it is stored.

use serde::{Deserialize, Serialize};

use crate::stored;
use crate::{Comparison, DeviceRecord, Number, Outcome, ReadError, Recipe};

/// The schema of a [`FuzzReport`] that this version writes, and the newest that it reads.
pub const FUZZ_SCHEMA: u32 = 1;

/// What became of one case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FuzzVerdict {
    /// Every element judged is within what is allowed, and nothing else was touched.
    Pass,
    /// An element is not.
    Wrong,
    /// It read or wrote memory that is not its own, deadlocked, trapped.
    Fault,
    /// The launch that its manifest states for this shape is none that the device makes.
    Launch,
    /// It panicked.
    Panic,
    /// It did not end within its time.
    Hang,
    /// Its process died.
    Crash,
    /// It declined the case in so many words, which is no failure.
    Refused,
    /// The device cannot run it.
    Unsupported,
    /// Nothing says what would be right here.
    Unproven,
    /// It was not run, for a reason that is no verdict.
    Skipped,
}

impl FuzzVerdict {
    /// The verdict as reports print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FuzzVerdict::Pass => "pass",
            FuzzVerdict::Wrong => "WRONG",
            FuzzVerdict::Fault => "FAULT",
            FuzzVerdict::Launch => "NO LAUNCH",
            FuzzVerdict::Panic => "PANIC",
            FuzzVerdict::Hang => "HANG",
            FuzzVerdict::Crash => "CRASH",
            FuzzVerdict::Refused => "refused",
            FuzzVerdict::Unsupported => "unsupported",
            FuzzVerdict::Unproven => "unproven",
            FuzzVerdict::Skipped => "skipped",
        }
    }

    /// Whether it says something of the candidate.
    #[must_use]
    pub fn has_run(self) -> bool {
        self == FuzzVerdict::Pass || self.is_failure()
    }

    /// Whether the candidate is to blame.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            FuzzVerdict::Wrong
                | FuzzVerdict::Fault
                | FuzzVerdict::Launch
                | FuzzVerdict::Panic
                | FuzzVerdict::Hang
                | FuzzVerdict::Crash
        )
    }
}

/// One case and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FuzzCase {
    /// What repeats it.
    pub recipe: Recipe,
    /// What became of it.
    pub verdict: FuzzVerdict,
    /// Why, in one sentence.
    pub reason: String,
    /// Logical elements of its largest tensor.
    pub elements: u64,
    /// The output in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The index of the worst element in that output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<Vec<i64>>,
    /// What the candidate gave there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<Number>,
    /// What the reference gives there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Number>,
    /// The error allowed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Number>,
    /// The largest error over what is allowed; above 1 is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Number>,
    /// A place in the candidate's code, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Where and how wrong the output is, in full, where an operation's is. Of a large output only
    /// parts are compared; coordinates are those of the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Box<Comparison>>,
    /// Time it took, in seconds.
    pub seconds: f64,
}

impl FuzzCase {
    /// A case without measurements.
    #[must_use]
    pub fn new(recipe: Recipe, verdict: FuzzVerdict, reason: impl Into<String>) -> FuzzCase {
        FuzzCase {
            recipe,
            verdict,
            reason: reason.into(),
            elements: 0,
            output: None,
            element: None,
            got: None,
            value: None,
            error: None,
            margin: None,
            place: None,
            comparison: None,
            seconds: 0.0,
        }
    }
}

/// A case that failed, and the smallest that fails in the same way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FuzzFailure {
    /// The case as it was met.
    pub case: FuzzCase,
    /// The smallest found; none where nothing smaller was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<FuzzCase>,
    /// Runs that it took to find it.
    pub shrink_runs: u64,
}

/// Cases left out for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FuzzSkip {
    /// The reason, in a sentence.
    pub reason: String,
    /// How many.
    pub cases: u64,
    /// The first of them.
    pub first: Recipe,
}

/// How many cases ended how.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct FuzzCounts {
    /// All of the envelope, those left out counted too.
    pub cases: u64,
    /// Passed.
    pub passed: u64,
    /// Failed, in whatever way.
    pub failed: u64,
    /// Declined by the candidate.
    pub refused: u64,
    /// Without anything to judge them by.
    pub unproven: u64,
    /// Not supported by the device.
    pub unsupported: u64,
    /// Not run.
    pub skipped: u64,
}

impl FuzzCounts {
    /// Counts one case.
    pub fn count(&mut self, verdict: FuzzVerdict) {
        self.cases += 1;
        let counter = match verdict {
            FuzzVerdict::Pass => &mut self.passed,
            FuzzVerdict::Refused => &mut self.refused,
            FuzzVerdict::Unproven => &mut self.unproven,
            FuzzVerdict::Unsupported => &mut self.unsupported,
            FuzzVerdict::Skipped => &mut self.skipped,
            _ => &mut self.failed,
        };
        *counter += 1;
    }

    /// Adds the counts of another candidate.
    pub fn add(&mut self, other: &FuzzCounts) {
        self.cases += other.cases;
        self.passed += other.passed;
        self.failed += other.failed;
        self.refused += other.refused;
        self.unproven += other.unproven;
        self.unsupported += other.unsupported;
        self.skipped += other.skipped;
    }
}

/// What kind of thing was fuzzed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FuzzKind {
    /// A kernel with a manifest.
    Kernel,
    /// A function of Rust.
    Operation,
}

/// What fuzzing found about one candidate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FuzzCandidate {
    /// Its name.
    pub candidate: String,
    /// What it is.
    pub kind: FuzzKind,
    /// What is wrong with it, if it is a planted control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_for: Option<String>,
    /// FAIL if a case failed, UNPROVEN if none passed, UNSUPPORTED if the device runs none.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
    /// How many cases ended how.
    pub counts: FuzzCounts,
    /// Every case of 2^31 elements and more, run or skipped: none is dropped in silence.
    pub huge: Vec<FuzzCase>,
    /// The first failures of each kind, each with the smallest case that fails in the same way.
    pub failures: Vec<FuzzFailure>,
    /// What was not run, and why.
    pub skipped: Vec<FuzzSkip>,
    /// What else a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The largest error over what is allowed, of all cases that did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Number>,
    /// Time spent, in seconds.
    pub seconds: f64,
}

impl FuzzCandidate {
    /// Whether the run has a problem with it: a failure, a control that was not found, or nothing
    /// shown.
    #[must_use]
    pub fn is_problem(&self) -> bool {
        match (self.control_for.is_some(), self.outcome) {
            (true, outcome) => outcome != Outcome::Fail,
            (false, outcome) => matches!(outcome, Outcome::Fail | Outcome::Unproven),
        }
    }
}

/// The counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct FuzzSummary {
    /// Candidates, planted controls not counted.
    pub candidates: u32,
    /// Those without a failure, in which something passed.
    pub passing: u32,
    /// Planted controls.
    pub controls: u32,
    /// Planted controls that were found.
    pub controls_found: u32,
    /// The cases of all candidates, controls not counted.
    pub cases: FuzzCounts,
    /// Cases of 2^31 elements and more that ran, controls not counted.
    pub huge_run: u32,
    /// Those that were skipped, or that nothing could judge.
    pub huge_skipped: u32,
}

impl FuzzSummary {
    /// The counts of some candidates.
    #[must_use]
    pub fn of(candidates: &[FuzzCandidate]) -> FuzzSummary {
        let mut summary = FuzzSummary::default();
        for candidate in candidates {
            if candidate.control_for.is_some() {
                summary.controls += 1;
                summary.controls_found += u32::from(!candidate.is_problem());
                continue;
            }
            summary.candidates += 1;
            summary.passing += u32::from(candidate.outcome == Outcome::Pass);
            summary.cases.add(&candidate.counts);
            let skipped = |case: &&FuzzCase| !case.verdict.has_run();
            let left = candidate.huge.iter().filter(skipped).count() as u32;
            summary.huge_skipped += left;
            summary.huge_run += candidate.huge.len() as u32 - left;
        }
        summary
    }
}

/// A whole run of `assay fuzz`, as `--json` writes it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FuzzReport {
    /// The version of this layout.
    pub schema: u32,
    /// The version of Assay that wrote it.
    pub assay_version: String,
    /// The command line.
    pub command: String,
    /// When the run started, in UTC, as `2026-11-29T21:00:00Z`.
    pub date: String,
    /// The seed that every random choice came from.
    pub seed: u64,
    /// The device.
    pub device: DeviceRecord,
    /// Whether cases ran in processes of their own.
    pub isolated: bool,
    /// The time that the run was given, in seconds, if it was limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_s: Option<f64>,
    /// The time that it took, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Candidates that were not done when this was written, as the run went on. A report that ends
    /// so is of a run that was ended from outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// What was fuzzed, in order.
    pub candidates: Vec<FuzzCandidate>,
    /// The counts.
    pub summary: FuzzSummary,
    /// The exit code of the run.
    pub exit_code: u8,
}

impl FuzzReport {
    /// The report as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// A time that is no number, which JSON does not have.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }

    /// Reads a report that this version or an earlier one wrote. Unknown keys are ignored.
    ///
    /// # Errors
    /// If the text is not JSON, is no report, or is of a newer schema.
    pub fn from_json(text: &str) -> Result<FuzzReport, ReadError> {
        stored::from_json(text, FUZZ_SCHEMA).map_err(|unread| ReadError::of(unread, FUZZ_SCHEMA))
    }
}
