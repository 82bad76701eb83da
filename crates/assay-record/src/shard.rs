//! Parts of a run that spreads over machines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Gate;

/// One of several equal parts of a run: `2/3` is the second of three.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Which part, from 1.
    pub index: u32,
    /// How many parts there are.
    pub of: u32,
}

impl fmt::Display for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.of)
    }
}

/// A text that names no part.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is no part of a run, such as `1/3` for the first of three")]
pub struct NoPart(pub String);

impl FromStr for Part {
    type Err = NoPart;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NoPart(text.to_owned());
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
        let (index, of) = (number(index)?, number(of)?);
        if index == 0 || index > of { Err(wrong()) } else { Ok(Part { index, of }) }
    }
}

/// What a report of one part says of the whole run, so that all parts can be put together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shard {
    /// Which part the report is of.
    pub part: Part,
    /// A fingerprint of everything that the whole run judges.
    pub suite: String,
    /// The gates that the whole run asks.
    pub gates: Vec<Gate>,
    /// The kernels and planted controls of the whole run, in order.
    pub kernels: Vec<String>,
    /// The faults of the whole run, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// The manifests that were given, as paths: the commands of its cases name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<String>,
    /// The folder of the faults' builds that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builds: Option<String>,
}
