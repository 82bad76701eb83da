//! The gates of the kernel contract.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A check that every kernel must pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// NaNs and infinities reach every output that the formula says they reach, and no other.
    NonFinite,
    /// The same bytes on every run, and no byte written where none belongs.
    Repeat,
    /// Every served shape and every tile edge, within the proven error.
    Shapes,
    /// Sums are carried in 32-bit floating point.
    #[serde(rename = "fp32-sums")]
    Fp32Sums,
    /// Every launch fits every chip served.
    Limits,
}

impl Gate {
    /// All gates in order of their numbers.
    pub const ALL: [Gate; 5] =
        [Gate::NonFinite, Gate::Repeat, Gate::Shapes, Gate::Fp32Sums, Gate::Limits];

    /// The gate's number in the contract, from 1.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Gate::NonFinite => 1,
            Gate::Repeat => 2,
            Gate::Shapes => 3,
            Gate::Fp32Sums => 4,
            Gate::Limits => 5,
        }
    }

    /// The gate's name in case names, manifests and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Gate::NonFinite => "non-finite",
            Gate::Repeat => "repeat",
            Gate::Shapes => "shapes",
            Gate::Fp32Sums => "fp32-sums",
            Gate::Limits => "limits",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A word that names no gate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no gate `{0}`; the gates are non-finite, repeat, shapes, fp32-sums and limits")]
pub struct UnknownGate(pub String);

impl FromStr for Gate {
    type Err = UnknownGate;

    /// Reads a gate's name or its number.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = |gate: &Gate| gate.name() == text || gate.number().to_string() == text;
        Gate::ALL.into_iter().find(known).ok_or_else(|| UnknownGate(text.to_owned()))
    }
}
