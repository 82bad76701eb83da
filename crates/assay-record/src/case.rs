//! The name of a case, which is all that is needed to run the case again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Gate, UnknownGate};

/// What identifies one case: `kernel/gate/rows=7,cols=4096/fill/seed=1/schedule`.
///
/// The text is the case's name in reports, what `--only` searches and what `--repro` takes. No part
/// may hold a slash or white space; a kernel without dims has `-` in their place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CaseName {
    /// The kernel under test.
    pub kernel: String,
    /// The gate.
    pub gate: Gate,
    /// The shape: dims with their values, in the manifest's order.
    pub dims: Vec<(String, i64)>,
    /// How the inputs were filled.
    pub fill: String,
    /// The seed that the inputs were drawn from.
    pub seed: u64,
    /// The order in which the device ran blocks and warps.
    pub schedule: String,
}

impl CaseName {
    /// Whether the name holds `text`, as `--only` asks.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.to_string().contains(text)
    }
}

impl fmt::Display for CaseName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/", self.kernel, self.gate)?;
        if self.dims.is_empty() {
            formatter.write_str("-")?;
        }
        for (index, (name, value)) in self.dims.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{name}={value}")?;
        }
        write!(formatter, "/{}/seed={}/{}", self.fill, self.seed, self.schedule)
    }
}

/// Why a text is not the name of a case.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseNameError {
    /// It has too few or too many parts.
    #[error(
        "`{text}` has {parts} parts; a case is \
         `kernel/gate/dim=1,dim=2/fill/seed=1/schedule`, with `-` for no dims"
    )]
    Parts {
        /// The whole text.
        text: String,
        /// How many parts it has.
        parts: usize,
    },
    /// A part is empty or has white space in it.
    #[error("`{text}` has an empty {part}, or white space in it")]
    Blank {
        /// The whole text.
        text: String,
        /// Which part.
        part: &'static str,
    },
    /// The second part names no gate.
    #[error(transparent)]
    Gate(#[from] UnknownGate),
    /// A dim is not `name=value`.
    #[error("`{dim}` is not a dim with its value, such as `rows=7`")]
    Dim {
        /// The text of the dim.
        dim: String,
    },
    /// The fifth part is not a seed.
    #[error("`{seed}` is not a seed, such as `seed=1`")]
    Seed {
        /// The text of the seed.
        seed: String,
    },
}

impl FromStr for CaseName {
    type Err = CaseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        let [kernel, gate, dims, fill, seed, schedule] = parts[..] else {
            return Err(CaseNameError::Parts { text: text.to_owned(), parts: parts.len() });
        };
        for (part, name) in [(kernel, "kernel"), (fill, "fill"), (schedule, "schedule")] {
            if is_blank(part) {
                return Err(CaseNameError::Blank { text: text.to_owned(), part: name });
            }
        }
        Ok(CaseName {
            kernel: kernel.to_owned(),
            gate: gate.parse()?,
            dims: parse_dims(dims)?,
            fill: fill.to_owned(),
            seed: parse_seed(seed)?,
            schedule: schedule.to_owned(),
        })
    }
}

fn parse_dims(text: &str) -> Result<Vec<(String, i64)>, CaseNameError> {
    if text == "-" {
        return Ok(Vec::new());
    }
    text.split(',').map(parse_dim).collect()
}

fn parse_dim(text: &str) -> Result<(String, i64), CaseNameError> {
    dim_of(text).ok_or_else(|| CaseNameError::Dim { dim: text.to_owned() })
}

/// A dim and its size, of `rows=7`.
pub(crate) fn dim_of(text: &str) -> Option<(String, i64)> {
    let (name, size) = text.split_once('=')?;
    let named = !is_blank(name);
    named.then_some((name.to_owned(), size.parse().ok()?))
}

/// Whether a part of a name says nothing, or has white space in it.
pub(crate) fn is_blank(part: &str) -> bool {
    part.is_empty() || part.contains(char::is_whitespace)
}

/// The seed of `seed=1`.
pub(crate) fn seed_of(text: &str) -> Option<u64> {
    text.strip_prefix("seed=")?.parse().ok()
}

fn parse_seed(text: &str) -> Result<u64, CaseNameError> {
    seed_of(text).ok_or_else(|| CaseNameError::Seed { seed: text.to_owned() })
}

impl From<CaseName> for String {
    fn from(case: CaseName) -> String {
        case.to_string()
    }
}

impl TryFrom<String> for CaseName {
    type Error = CaseNameError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}
