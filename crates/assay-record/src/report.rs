//! A run's results as they are stored: evidence, gates, kernels, and the report of all of them.

use serde::{Deserialize, Serialize};

use crate::stored::{self, Unread};
use crate::{CaseName, ChipFit, Discrimination, FaultResult, Gate, Number, Outcome, Shard};

/// The schema that this version writes, and the newest that it reads.
pub const SCHEMA: u32 = 1;

/// One thing that a gate saw: where, what came out, what should have, and by how much it misses.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// The case, which is also its repro command.
    pub case: CaseName,
    /// What this case shows by itself.
    pub outcome: Outcome,
    /// One sentence for a person.
    pub reason: String,
    /// The output in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The index of the element in that output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<Vec<i64>>,
    /// What the kernel wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<Number>,
    /// What the formula gives in real numbers, before output rounding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Number>,
    /// The proven bound on the error of a correct kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Number>,
    /// The distance from `value` to the reals that round to `got`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<Number>,
    /// `excess / error`; above 1 fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Number>,
    /// A place in a source, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl Evidence {
    /// Evidence with a reason and no measurement.
    #[must_use]
    pub fn new(case: CaseName, outcome: Outcome, reason: impl Into<String>) -> Self {
        Evidence {
            case,
            outcome,
            reason: reason.into(),
            output: None,
            element: None,
            got: None,
            value: None,
            error: None,
            excess: None,
            margin: None,
            place: None,
        }
    }
}

/// The smallest inputs found on which a case still fails.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Smallest {
    /// What the gate finds on them; its case has the shape.
    pub finding: Evidence,
    /// What the inputs hold, in words.
    pub inputs: String,
    /// The file that holds them.
    pub file: String,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// Runs of the kernel that it took to find them.
    pub runs: u64,
}

/// What one gate found about one kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GateResult {
    /// The gate.
    pub gate: Gate,
    /// What it found.
    pub outcome: Outcome,
    /// Why, in one sentence.
    pub reason: String,
    /// How many cases were run.
    pub cases: u64,
    /// The largest `excess / error` over all elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Number>,
    /// The worst few things seen.
    #[serde(default)]
    pub findings: Vec<Evidence>,
    /// What a reader should know besides: what could not be shown, and why.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How the launches fit each chip served; of gate 5 only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chips: Vec<ChipFit>,
}

/// What a run found about one kernel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelResult {
    /// The kernel's name.
    pub kernel: String,
    /// The gate that this kernel is built to fail, if it is a planted control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_for: Option<Gate>,
    /// The gates that were run, in order.
    pub gates: Vec<GateResult>,
    /// Why no gate could be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The build that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Time spent, in seconds.
    pub seconds: f64,
}

/// What a result is of: a kernel of the same name with another build is another kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Build {
    /// The digest of the compiled code: its PTX, cubin or fatbin, byte for byte.
    pub code: String,
    /// The digest of the contract: arguments, launches, and the formula or rule that judges it.
    pub contract: String,
    /// The shapes that it promises to be right at, and those that it was called at, in words.
    pub shapes: String,
}

impl KernelResult {
    /// The result of a gate, if it was run.
    #[must_use]
    pub fn gate(&self, gate: Gate) -> Option<&GateResult> {
        self.gates.iter().find(|result| result.gate == gate)
    }

    /// Whether every gate that was run passed or asks nothing, and at least one passed.
    #[must_use]
    pub fn passes(&self) -> bool {
        let holds = |outcome| matches!(outcome, Outcome::Pass | Outcome::NotApplicable);
        self.error.is_none()
            && self.gates.iter().all(|result| holds(result.outcome))
            && self.gates.iter().any(|result| result.outcome == Outcome::Pass)
    }

    /// Whether the kernel was left out, for a reason that is no verdict on it.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        let reason = self.error.as_deref().unwrap_or_default();
        // Gate 5 needs no device, so it also judges what no device here can run.
        let ran = self.gates.iter().any(|result| result.gate != Gate::Limits);
        !ran && reason.starts_with("skipped: ")
    }

    /// Whether this planted control failed the gate that it was built to fail.
    #[must_use]
    pub fn is_red(&self) -> bool {
        let gate = self.control_for.and_then(|gate| self.gate(gate));
        gate.is_some_and(|result| result.outcome == Outcome::Fail)
    }
}

/// The device that a run used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// The device's name, such as `NVIDIA H200`.
    pub name: String,
    /// What drives it, such as `emulator` or `cuda`.
    pub backend: String,
    /// The driver's version, if there is a driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The architecture, such as `sm_90`.
    pub architecture: String,
}

/// The counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Kernels that pass every gate asked.
    pub passing: u32,
    /// Kernels, planted controls not counted.
    pub kernels: u32,
    /// Gates that fail as the kernel's spec says they do.
    pub known: u32,
    /// Planted controls that failed their gate, as they must.
    pub controls_red: u32,
    /// Planted controls.
    pub controls: u32,
    /// Gates that could not have failed.
    pub unproven: u32,
    /// Gates that the device cannot run.
    pub unsupported: u32,
    /// Launches that do not fit a chip served.
    pub limit_problems: u32,
    /// Kernels that were not run, for a reason that is no verdict on them.
    pub skipped: u32,
}

/// A whole run, as `--json` writes it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
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
    /// Which part of the run this is, where it is not the whole. Kernels, counts and exit code are
    /// then of this part alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The kernels in the order of their manifests.
    pub kernels: Vec<KernelResult>,
    /// The kernels broken on purpose, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultResult>,
    /// How far the faults that a bound catches lie from their kernels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discrimination: Vec<Discrimination>,
    /// The counts.
    pub summary: Summary,
    /// The smallest inputs behind the one case that was run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<Smallest>,
    /// The exit code of the run.
    pub exit_code: u8,
}

/// Why a text could not be read as a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The record was written by a later version.
    #[error(
        "the report has schema {found}, and this version of assay reads schemas up to {known}; \
         read it with the version that wrote it, or a later one"
    )]
    Newer {
        /// The schema of the record.
        found: u64,
        /// The newest schema that this version reads.
        known: u32,
    },
    /// There is no schema that was ever written.
    #[error("this is not a report of assay: it has no `schema` key with a number from 1")]
    NoSchema,
    /// It is not JSON, or a key is missing or of the wrong kind.
    #[error("the report does not read as schema {SCHEMA}: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl ReadError {
    pub(crate) fn of(unread: Unread, known: u32) -> ReadError {
        match unread {
            Unread::Newer(found) => ReadError::Newer { found, known },
            Unread::NoSchema => ReadError::NoSchema,
            Unread::Malformed(error) => ReadError::Malformed(error),
        }
    }
}

impl Report {
    /// The report as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// None in practice: the types here all have JSON forms.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }

    /// Reads a report that this version or an earlier one wrote. Unknown keys are ignored.
    ///
    /// # Errors
    /// If the text is not JSON, is no report, or is of a newer schema.
    pub fn from_json(text: &str) -> Result<Report, ReadError> {
        stored::from_json(text, SCHEMA).map_err(|unread| ReadError::of(unread, SCHEMA))
    }
}
