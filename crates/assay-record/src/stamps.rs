//! What a kernel's phase stamps said: when each warp or block was where.

use serde::{Deserialize, Serialize};

use crate::stored;

/// The schema of stamp records that this version writes, and the newest that it reads.
pub const STAMPS_SCHEMA: u32 = 1;

/// The stamps of one launch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StampRecord {
    /// The version of this layout.
    pub schema: u32,
    /// The kernel.
    pub kernel: String,
    /// The device, as it calls itself.
    pub device: String,
    /// The driver, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// When, in UTC.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The seed of the inputs, of a kernel that a manifest registers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Bytes of outputs of the stamped build that were held against the build that ships; all of
    /// them are the same, or there would be no record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_output_bytes: Option<u64>,
    /// The phases' names; a mark holds an index into them.
    pub phases: Vec<String>,
    /// One lane per warp or block that stamped.
    pub lanes: Vec<StampLane>,
    /// Marks that did not fit the buffer, of all lanes.
    pub dropped: u64,
    /// The SM clock over the launch from both clocks of its longest lane, in MHz.
    pub sm_clock_mhz: Option<f64>,
    /// What one stamp costs, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead: Option<StampOverhead>,
    /// What each phase took, over all lanes.
    pub statistics: Vec<PhaseStatistics>,
    /// What is not as it should be, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The marks of one warp or block, in the order in which it made them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StampLane {
    /// The lane's number in the buffer.
    pub lane: u32,
    /// The multiprocessor on which it ran.
    pub multiprocessor: u32,
    /// The marks. Each begins a phase and ends the one before it; the last has no phase.
    pub marks: Vec<Mark>,
}

/// One stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// The phase that begins; `None` ends the lane's last phase.
    pub phase: Option<u32>,
    /// The multiprocessor's own cycle counter.
    pub cycles: u64,
    /// The device's clock, in nanoseconds; it advances in steps that may be coarse.
    pub time_ns: u64,
}

/// What one stamp costs the kernel, found with many stamps and none.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct StampOverhead {
    /// Cycles from one stamp to the next with nothing between: the median.
    pub cycles_median: f64,
    /// The 5th percentile.
    pub cycles_p5: f64,
    /// The 95th percentile.
    pub cycles_p95: f64,
    /// Pairs of stamps.
    pub samples: u64,
}

/// One phase over all lanes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PhaseStatistics {
    /// The phase's name.
    pub phase: String,
    /// How often it ran.
    pub spans: u64,
    /// Cycles of one span: the median, no overhead taken off.
    pub cycles_median: f64,
    /// The 5th percentile.
    pub cycles_p5: f64,
    /// The 95th percentile.
    pub cycles_p95: f64,
    /// The longest.
    pub cycles_max: f64,
    /// The phase's part of all stamped cycles, from 0 to 1.
    pub share: f64,
}

impl StampRecord {
    /// The record as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// None in practice: the types here all have JSON forms.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }
}
