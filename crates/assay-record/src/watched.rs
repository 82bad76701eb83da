//! What a device's management library told between the samples of a measurement.

use serde::{Deserialize, Serialize};

/// The state of a board through a measurement. Every reading was made between two samples, never
/// inside one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Watched {
    /// Readings made.
    pub readings: u64,
    /// The power drawn, in watts, averaged by the board over its own window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<Spread>,
    /// The temperature, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<Spread>,
    /// What one reading took, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading_us: Option<Spread>,
    /// Every reason for which clocks were what they were, idleness too, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonSeen>,
    /// The samples (of a comparison, the spans) with a reading next to them, before or after, that
    /// tells a reason other than idleness: their places among all taken, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<u64>,
    /// Samples (of a comparison, spans) taken in all, kept or not.
    pub samples: u64,
    /// What could not be told, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A quantity over several readings.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The 5th percentile.
    pub p5: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The largest.
    pub max: f64,
    /// Readings that told it.
    pub n: u64,
}

/// A reason for which clocks are what they are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReasonSeen {
    /// One word or phrase, such as `software power cap`.
    pub reason: String,
    /// Whether it holds clocks down; idleness does not.
    pub throttles: bool,
    /// Readings that told it.
    pub readings: u64,
}

impl Watched {
    /// The reasons that hold clocks down.
    pub fn throttling(&self) -> impl Iterator<Item = &ReasonSeen> {
        self.reasons.iter().filter(|seen| seen.throttles)
    }
}
