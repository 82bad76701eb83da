//! What a benchmark stores: every sample of every kernel, what they say, and how two compare.
//!
//! A number is never NaN here. What could not be measured is `null`, and a reason says why.

use serde::{Deserialize, Serialize};

use crate::stored::{self, Unread};
use crate::{Conditions, ProbedDevice, Standing, Watched};

/// The schema of benchmarks that this version writes, and the newest that it reads.
pub const BENCH_SCHEMA: u32 = 1;

/// One run of `assay bench`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BenchRecord {
    /// The version of this layout.
    pub schema: u32,
    /// The version of Assay that wrote it.
    pub assay_version: String,
    /// The command line.
    pub command: String,
    /// When the run started, in UTC, as `2026-11-29T21:00:00Z`.
    pub date: String,
    /// The seed of every random choice: inputs, orders, the bootstrap.
    pub seed: u64,
    /// The device.
    pub device: ProbedDevice,
    /// What the device said of its state before the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Conditions>,
    /// What it said after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Conditions>,
    /// Why it said nothing of its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions_reason: Option<String>,
    /// The kernels, in the order asked for.
    pub timings: Vec<Timing>,
    /// How pairs of them compare.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versus: Vec<Versus>,
    /// Why the run ended before its last kernel, such as a device that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Time spent, in seconds.
    pub seconds: f64,
    /// The exit code of the run.
    pub exit_code: u8,
}

/// What was measured of one kernel at one size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// The kernel, with its size where it has several: `softmax/rows=64,cols=4096`.
    pub name: String,
    /// Whether it is known to be right.
    pub checked: Standing,
    /// What the caches held when a span began: `cold` or `warm`.
    pub cache: String,
    /// How long one run of the kernel takes.
    pub duration: Option<Series>,
    /// Why there is no duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_reason: Option<String>,
    /// From the start of one run to that of the next, where runs follow each other in a graph.
    pub period: Option<Series>,
    /// Why there is no period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_reason: Option<String>,
    /// How long one run takes by the device's own records of when kernels began and ended, where
    /// they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Series>,
    /// Why there are no such records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_reason: Option<String>,
    /// Bytes that one run must move, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Operations of one run, a multiply-add counted as two, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop: Option<f64>,
    /// Where that number is from: `stated` or `counted from the formula`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_source: Option<String>,
    /// The operations by kind, where they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_counted: Option<FlopCount>,
    /// Why they could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_reason: Option<String>,
    /// Bytes a second, over the median duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
    /// Operations a second, over the median duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_per_s: Option<f64>,
    /// Where the kernel stands under a device's roofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline: Option<Placement>,
    /// What makes the numbers doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// Operations of one run as its formula asks for them, a multiply-add counted as two.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlopCount {
    /// Additions and subtractions.
    pub additions: f64,
    /// Multiplications.
    pub multiplications: f64,
    /// Divisions.
    pub divisions: f64,
    /// Roots, exponentials and other functions, one each.
    pub functions: f64,
}

/// Samples of one quantity, and what they say. Times are in nanoseconds per run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// How they were taken, in words.
    pub method: String,
    /// The samples kept, in the order taken.
    pub duration_ns: Vec<f64>,
    /// The multiprocessors' clock around each, in MHz; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sm_clock_mhz: Vec<f64>,
    /// The samples rejected for their clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedSample>,
    /// Samples kept.
    pub n: u64,
    /// The median.
    pub median_ns: f64,
    /// The lower end of the median's interval.
    pub lower_ns: f64,
    /// The upper end of the median's interval.
    pub upper_ns: f64,
    /// The confidence of that interval.
    pub confidence: f64,
    /// The range between the quartiles.
    pub iqr_ns: f64,
    /// The value that 5 % of the samples lie below.
    pub p5_ns: f64,
    /// The value that 95 % of the samples lie below.
    pub p95_ns: f64,
    /// The median clock of the multiprocessors, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz_median: Option<f64>,
    /// The median in cycles of the multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<f64>,
    /// What was taken off each span for the bracket itself, in nanoseconds.
    pub bracket_ns: f64,
    /// The timer's smallest step, in nanoseconds.
    pub step_ns: f64,
    /// Runs of one span.
    pub launches_per_sample: u32,
    /// Whether a held stream hid the cost of launching.
    pub held: bool,
    /// Why no more samples were taken, in words.
    pub ended: String,
    /// Wall time, in seconds.
    pub seconds: f64,
    /// What the board told of itself between the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

/// A sample that was not kept.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RejectedSample {
    /// What it would have said, in nanoseconds per run.
    pub duration_ns: f64,
    /// The clock around it, in MHz; `null` where it could not be read.
    pub sm_clock_mhz: Option<f64>,
    /// Its place among all samples taken, from 0.
    pub place: u64,
}

/// Where a kernel stands under the roofs of a dossier.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// Operations per byte; `null` where operations are not known.
    pub intensity: Option<f64>,
    /// The dossier's entry that bounds it.
    pub roof: String,
    /// What that roof allows here, in `unit`.
    pub roof_value: f64,
    /// `B/s` or `FLOP/s`.
    pub unit: String,
    /// What the kernel reaches, over what the roof allows.
    pub part: f64,
    /// Whether it reaches more than the roof allows: bytes or operations are counted wrong, or the
    /// data came from a cache.
    pub above: bool,
}

/// How the second of a pair compares with the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// As fast, within what counts.
    Same,
    /// Surely faster.
    Fast,
    /// Surely slower.
    Slow,
    /// The samples do not say.
    Ambiguous,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(match self {
            Verdict::Same => "SAME",
            Verdict::Fast => "FAST",
            Verdict::Slow => "SLOW",
            Verdict::Ambiguous => "AMBIGUOUS",
        })
    }
}

/// A relative difference with its interval: 0.02 is 2 % slower.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Effect {
    /// The estimate.
    pub rel: f64,
    /// The lower end of its interval.
    pub lower: f64,
    /// The upper end of its interval.
    pub upper: f64,
}

/// How two kernels compare.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Versus {
    /// The first of the pair, the one held against.
    pub baseline: String,
    /// The second.
    pub candidate: String,
    /// How the second compares.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The difference in time.
    pub time: Effect,
    /// The difference in cycles, where clocks are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<Effect>,
    /// The first against itself, taken between the others: the noise floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Effect>,
    /// The smallest difference that counts.
    pub threshold_rel: f64,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// Rounds kept, each with a sample of every series.
    pub rounds: u64,
    /// Rounds rejected for a clock that was off.
    pub rejected_rounds: u64,
    /// Whether the samples were taken in turns; from two records they were not.
    pub interleaved: bool,
    /// Every round, where they were taken in turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<Rounds>,
    /// What the board told of itself between the spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

/// The rounds of a comparison, in the order taken. Times are in nanoseconds per run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Rounds {
    /// The baseline's, one a round.
    pub baseline_ns: Vec<f64>,
    /// The candidate's.
    pub candidate_ns: Vec<f64>,
    /// The baseline's second one, the control.
    pub again_ns: Vec<f64>,
    /// The rounds rejected for a clock that was off, by place, from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<u64>,
}

/// Why a text could not be read as a benchmark.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The record was written by a later version.
    #[error(
        "the benchmark has schema {found}, and this version of assay reads schemas up to \
         {BENCH_SCHEMA}; read it with the version that wrote it, or a later one"
    )]
    Newer {
        /// The schema of the record.
        found: u64,
    },
    /// There is no schema that was ever written.
    #[error("this is not a benchmark of assay: it has no `schema` key with a number from 1")]
    NoSchema,
    /// It is not JSON, or a key is missing or of the wrong kind.
    #[error("the benchmark does not read as schema {BENCH_SCHEMA}: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl From<Unread> for BenchError {
    fn from(unread: Unread) -> BenchError {
        match unread {
            Unread::Newer(found) => BenchError::Newer { found },
            Unread::NoSchema => BenchError::NoSchema,
            Unread::Malformed(error) => BenchError::Malformed(error),
        }
    }
}

impl BenchRecord {
    /// The record as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// None in practice: the types here all have JSON forms.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }

    /// Reads a record that this version or an earlier one wrote. Unknown keys are ignored.
    ///
    /// # Errors
    /// If the text is not JSON, is no benchmark, or is of a newer schema.
    pub fn from_json(text: &str) -> Result<BenchRecord, BenchError> {
        Ok(stored::from_json(text, BENCH_SCHEMA)?)
    }
}
