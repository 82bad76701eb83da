//! Kernels broken on purpose, as a report stores what came of them.

use serde::{Deserialize, Serialize};

use crate::{Gate, GateResult, Number, Outcome};

/// What a run shows about a fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultVerdict {
    /// The gate that should catch it did.
    Caught,
    /// Some gate caught it, and the one that should did not.
    Elsewhere,
    /// No gate caught it, and its outputs are the correct kernel's, byte for byte, on all inputs of
    /// gate 3: there is nothing to catch.
    Equivalent,
    /// No gate caught it, although its outputs differ.
    Survived,
    /// It could not be judged.
    Unjudged,
}

impl FaultVerdict {
    /// The verdict as reports print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FaultVerdict::Caught => "caught",
            FaultVerdict::Elsewhere => "WRONG GATE",
            FaultVerdict::Equivalent => "equivalent",
            FaultVerdict::Survived => "SURVIVED",
            FaultVerdict::Unjudged => "UNJUDGED",
        }
    }

    /// Whether the run has a problem with it.
    #[must_use]
    pub fn is_problem(self) -> bool {
        !matches!(self, FaultVerdict::Caught | FaultVerdict::Equivalent)
    }
}

/// What a run found about one kernel broken on purpose.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FaultResult {
    /// The fault's name.
    pub fault: String,
    /// The kernel that it is a broken build of.
    pub of: String,
    /// The kind of fault, of the catalogue.
    pub kind: String,
    /// What is wrong, in one line.
    pub what: String,
    /// The gate that should catch it.
    pub gate: Gate,
    /// What came of it.
    pub verdict: FaultVerdict,
    /// The gates that it went through. That which should catch it ran whole if it measures a
    /// margin; the others stopped at the first case that failed.
    pub gates: Vec<GateResult>,
    /// The worst margin in the gate that should catch it, if a bound caught it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Number>,
    /// Why the margin may lie within ten times the correct kernel's, where the manifest says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close: Option<String>,
    /// Why it could not be judged, or how its outputs differ although no gate caught it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Time spent, in seconds.
    pub seconds: f64,
}

impl FaultResult {
    /// The result of a gate, if it was run.
    #[must_use]
    pub fn gate(&self, gate: Gate) -> Option<&GateResult> {
        self.gates.iter().find(|result| result.gate == gate)
    }

    /// Whether a gate caught it.
    #[must_use]
    pub fn is_caught_by(&self, gate: Gate) -> bool {
        self.gate(gate).is_some_and(|result| result.outcome == Outcome::Fail)
    }
}

/// How far one fault's margin lies from the correct kernel's in the gate that catches it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Discrimination {
    /// The kernel.
    pub kernel: String,
    /// The fault.
    pub fault: String,
    /// The gate that measured both.
    pub gate: Gate,
    /// The correct kernel's worst margin there.
    pub correct: Number,
    /// The fault's.
    pub broken: Number,
    /// `broken / correct`; infinite where the correct kernel has no error.
    pub ratio: Number,
    /// Why they are close, where the manifest says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub close: Option<String>,
}

impl Discrimination {
    /// How far apart a fault and the correct kernel have to be, unless that is explained.
    pub const LEAST_RATIO: f64 = 10.0;

    /// Whether the two are nearer than they should be.
    #[must_use]
    pub fn is_close(&self) -> bool {
        // A ratio that is no number shows nothing.
        self.ratio.0.is_nan() || self.ratio.0 < Self::LEAST_RATIO
    }

    /// Whether the two are near and nobody says why.
    #[must_use]
    pub fn is_problem(&self) -> bool {
        self.is_close() && self.close.is_none()
    }
}
