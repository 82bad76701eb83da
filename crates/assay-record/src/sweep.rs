//! A search over launch configurations: every row, what became of it, and who won.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stored;

/// The schema of sweeps that this version writes, and the newest that it reads.
pub const SWEEP_SCHEMA: u32 = 1;

/// One configuration: a value for each axis.
pub type Configuration = BTreeMap<String, i64>;

/// A whole search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SweepRecord {
    /// The version of this layout.
    pub schema: u32,
    /// The version of Assay that wrote it.
    pub assay_version: String,
    /// The command line.
    pub command: String,
    /// When it began, in UTC.
    pub date: String,
    /// The kernel.
    pub kernel: String,
    /// The sizes it ran at.
    pub dims: BTreeMap<String, i64>,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What a cached row must share to be used: of the source, the device and the driver.
    pub key: String,
    /// The axes with their values.
    pub axes: BTreeMap<String, Vec<i64>>,
    /// What every configuration satisfies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// Configurations that a constraint ruled out.
    pub excluded: u64,
    /// Whether it was a race.
    pub race: bool,
    /// The wall time allowed, in seconds.
    pub budget_s: f64,
    /// The wall time spent, in seconds.
    pub spent_s: f64,
    /// Every configuration that the constraints allow, the fastest first, those not timed last.
    pub rows: Vec<SweepRow>,
    /// Who won.
    pub verdict: SweepVerdict,
    /// What else there is to say, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of a configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowStatus {
    /// It was in the finals.
    Finalist,
    /// Others were faster.
    Pruned,
    /// It failed its correctness gate and was not timed.
    Wrong,
    /// It does not compile, load or launch here.
    Refused,
    /// The budget ended before its turn.
    Unreached,
}

/// One configuration's row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SweepRow {
    /// The configuration.
    pub configuration: Configuration,
    /// What became of it.
    pub status: RowStatus,
    /// Why.
    pub reason: String,
    /// The round after which it left, from 1; 0 where it was never timed.
    pub rounds: u32,
    /// The median of all its samples, in nanoseconds.
    pub median_ns: Option<f64>,
    /// The interval of that median, in nanoseconds.
    pub interval_ns: Option<(f64, f64)>,
    /// Its samples, in nanoseconds, in the order in which they were taken.
    pub duration_ns: Vec<f64>,
    /// Whether its gate or samples came from the cache.
    pub from_cache: bool,
}

/// Who won.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum SweepVerdict {
    /// The same configuration won both finals.
    Winner {
        /// The configuration.
        configuration: Configuration,
        /// The runner-up's median over the winner's, less 1; none where it ran alone.
        lead: Option<f64>,
    },
    /// There is no one winner.
    Ambiguous {
        /// Those that may be the fastest.
        configurations: Vec<Configuration>,
        /// Why.
        reason: String,
    },
    /// Nothing could be timed.
    Nothing {
        /// Why.
        reason: String,
    },
}

impl SweepRecord {
    /// The record as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// None in practice: the types here all have JSON forms.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }
}
