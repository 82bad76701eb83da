//! What a check found.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of a gate or of one case of it. Only [`Pass`](Outcome::Pass) counts as passed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The kernel holds what the gate asks.
    Pass,
    /// It does not.
    Fail,
    /// It does not, and its spec says so.
    Known,
    /// The check could not have failed, so it shows nothing.
    Unproven,
    /// The device cannot run it.
    Unsupported,
    /// The gate asks nothing of this kernel.
    NotApplicable,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Outcome; 6] = [
        Outcome::Pass,
        Outcome::Fail,
        Outcome::Known,
        Outcome::Unproven,
        Outcome::Unsupported,
        Outcome::NotApplicable,
    ];
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Outcome::Pass => "PASS",
            Outcome::Fail => "FAIL",
            Outcome::Known => "KNOWN",
            Outcome::Unproven => "UNPROVEN",
            Outcome::Unsupported => "UNSUPPORTED",
            Outcome::NotApplicable => "NOT APPLICABLE",
        })
    }
}
