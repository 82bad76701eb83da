//! What is stored of two outputs held against each other.

use serde::{Deserialize, Serialize};

use crate::stored;
use crate::{Number, Outcome};

/// The schema of [`Comparison`] and [`ComparisonReport`] that this version writes.
pub const COMPARISON_SCHEMA: u32 = 1;

/// What a comparison allows.
///
/// An element is inside if its distance in ulp is at most `max_ulp`, or if its error is at most
/// `atol + rtol * |reference|` (`zero_atol` where the reference is zero).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tolerance {
    /// Absolute error allowed everywhere.
    pub atol: f64,
    /// Error allowed as a part of the reference's magnitude.
    pub rtol: f64,
    /// Absolute error allowed where the reference is zero.
    pub zero_atol: f64,
    /// Distance in ulp allowed everywhere.
    pub max_ulp: u64,
}

impl Tolerance {
    /// Nothing but equality.
    pub const EXACT: Tolerance = Tolerance { atol: 0.0, rtol: 0.0, zero_atol: 0.0, max_ulp: 0 };

    /// An absolute and a relative tolerance.
    #[must_use]
    pub const fn new(atol: f64, rtol: f64) -> Tolerance {
        Tolerance { atol, rtol, zero_atol: atol, max_ulp: 0 }
    }

    /// A distance in ulp.
    #[must_use]
    pub const fn ulp(max_ulp: u64) -> Tolerance {
        Tolerance { max_ulp, ..Tolerance::EXACT }
    }
}

/// In which way a candidate is wrong, or why nothing is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A NaN or an infinity stands against something else.
    Class,
    /// NaN stands against NaN where that is not allowed.
    Nan,
    /// Elements lie outside the tolerance.
    Tolerance,
    /// Zeros differ in sign.
    ZeroSign,
    /// Exact zeros stand where the reference holds more than rounding explains.
    Zeroed,
    /// Elements lie outside their own band of reduction order.
    Band,
    /// The whole tensor leans to one side.
    Bias,
    /// A tensor of zeros would pass too, so that passing shows nothing.
    Vacuous,
    /// Every element of the reference is NaN, or there is no element.
    Nothing,
}

/// One way in which a candidate is wrong.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// In which way.
    pub kind: FindingKind,
    /// What this finding alone makes of the comparison: a failure, or nothing shown.
    pub outcome: Outcome,
    /// One sentence for a person.
    pub reason: String,
    /// How many elements it is about.
    pub elements: u64,
    /// The first of them, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Vec<u64>>,
}

/// How many elements have this class in the reference and that one in the candidate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClassPair {
    /// `finite`, `NaN`, `+Inf` or `-Inf`.
    pub reference: String,
    /// The same of the candidate.
    pub candidate: String,
    /// How many.
    pub count: u64,
}

/// Distances of the elements that are finite in both, in units in the last place of their format.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct UlpEvidence {
    /// The largest.
    pub max: u64,
    /// The mean.
    pub mean: Option<f64>,
    /// The mean with its sign: positive where the candidate is larger.
    pub mean_signed: Option<f64>,
    /// `histogram[0]` counts distance 0, `histogram[k]` distances from `2^(k-1)` to `2^k - 1`. It
    /// ends at the last bin that is not empty.
    pub histogram: Vec<u64>,
    /// Elements where the candidate is larger.
    pub above: u64,
    /// Elements where it is smaller.
    pub below: u64,
}

/// Errors of the elements that are finite in both.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ErrorEvidence {
    /// The largest magnitude.
    pub max: Number,
    /// Root mean square of the errors.
    pub rms: Number,
    /// Root mean square of the reference.
    pub reference_rms: Number,
    /// The Frobenius norm of the errors over that of the reference; none if that is zero.
    pub relative_frobenius: Option<Number>,
    /// The part of the errors' energy (the sum of their squares) in the worst 0.1 % of the
    /// elements: a lower and an upper bound, from a histogram by half octaves. None without any
    /// error.
    pub top_energy: Option<[f64; 2]>,
    /// How many elements are 0.1 %, at least 1.
    pub top_elements: u64,
    /// Elements that are exactly zero where the reference is not.
    pub zeroed: u64,
    /// The part of the reference's energy that those hold.
    pub zeroed_energy: Option<f64>,
}

/// What rounding to the output's format alone makes of a small difference, for context.
///
/// Two results that differ by `delta` before they are rounded to steps of `ulp` come out one step
/// apart with probability `delta / ulp`, so their root mean square difference is
/// `sqrt(delta * ulp)`, which is larger than `delta`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OutputFloor {
    /// The difference before the rounding of the output that is assumed.
    pub delta: f64,
    /// A step of the output's format at the reference's root mean square.
    pub ulp: f64,
    /// `sqrt(delta * ulp)`.
    pub floor: f64,
    /// The `delta` at which the floor would be the error seen: `rms^2 / ulp`.
    pub delta_seen: f64,
}

/// One element, in full.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorstElement {
    /// Its place in row-major order.
    pub index: u64,
    /// Its coordinates.
    pub coordinates: Vec<u64>,
    /// The reference's value.
    pub reference: Number,
    /// The candidate's value.
    pub candidate: Number,
    /// The distance; none where either is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ulp: Option<u64>,
    /// Candidate less reference.
    pub error: Number,
    /// The magnitude of the error over what is allowed there, where anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Number>,
}

/// Every element held against its own band of reduction order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BandEvidence {
    /// How the reference's inputs were shuffled: `given` where its outputs for them were.
    pub shuffle: String,
    /// How many shuffles the bands come from.
    pub shuffles: u32,
    /// The seed of the permutations, where they were made here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Standard deviations that a band is wide to either side, set by the number of elements.
    pub z: f64,
    /// Elements outside their band.
    pub outside: u64,
    /// The first of them.
    pub first_outside: Option<Vec<u64>>,
    /// The largest distance from the mean, in half widths of the element's band.
    pub max_bands: Option<Number>,
    /// The widest band's standard deviation, in ulp of the output.
    pub widest_ulp: Option<f64>,
    /// The candidate's lean: the sum of all distances, each in standard deviations of its element,
    /// over the square root of the number of elements.
    pub bias: Option<f64>,
    /// The mean of the shuffles' own leans.
    pub bias_mean: Option<f64>,
    /// How far from that mean the candidate's may lie.
    pub bias_limit: Option<f64>,
    /// The same lean of magnitudes, positive away from zero, of the elements whose sign no order
    /// turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_outward: Option<f64>,
    /// How far that may lie from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bias_outward_limit: Option<f64>,
    /// The elements farthest outside, in bands: `margin` is the distance in half widths.
    pub worst: Vec<WorstElement>,
}

/// Two tensors held against each other.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The version of this layout.
    pub schema: u32,
    /// What the tensors are called, where they have a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The format in which they were compared: the candidate's.
    pub format: String,
    /// The reference's own format, where it was rounded to the candidate's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounded_from: Option<String>,
    /// Their shape.
    pub shape: Vec<u64>,
    /// How many elements that is.
    pub elements: u64,
    /// How many were compared: fewer only where the comparison broke off.
    pub compared: u64,
    /// Why it broke off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_off: Option<String>,
    /// What all of it comes to.
    pub outcome: Outcome,
    /// In which ways the candidate is wrong; empty where it passes.
    pub findings: Vec<Finding>,
    /// What else a reader should know.
    pub notes: Vec<String>,
    /// What was allowed.
    pub tolerance: Tolerance,
    /// Elements of equal value, zeros of equal sign; NaN equals nothing.
    pub identical: u64,
    /// Elements outside the tolerance, where both are finite.
    pub outside: u64,
    /// The first element, in row-major order, that is not identical.
    pub first_different: Option<Vec<u64>>,
    /// The first element outside the tolerance or of another class.
    pub first_outside: Option<Vec<u64>>,
    /// Elements by their classes in both, those that there are.
    pub census: Vec<ClassPair>,
    /// Zeros whose sign differs.
    pub zero_signs: u64,
    /// Elements of the reference in whose place a zero would be outside the tolerance.
    pub zero_would_fail: u64,
    /// Distances in ulp.
    pub ulp: UlpEvidence,
    /// Errors.
    pub error: ErrorEvidence,
    /// What rounding of the output alone explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<OutputFloor>,
    /// The elements of the largest distance in ulp; other classes first.
    pub worst_ulp: Vec<WorstElement>,
    /// The elements of the largest error.
    pub worst_error: Vec<WorstElement>,
    /// The bands, where the inputs were shuffled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<BandEvidence>,
}

impl Comparison {
    /// Whether there is a finding of that kind.
    #[must_use]
    pub fn finds(&self, kind: FindingKind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    /// Whether the candidate passes.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.outcome == Outcome::Pass
    }
}

/// A tensor that could not be compared.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotCompared {
    /// The tensor's name, where it has one.
    pub name: Option<String>,
    /// Why not.
    pub reason: String,
}

/// All tensors of two files, as `assay compare --json` writes them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ComparisonReport {
    /// The version of this layout.
    pub schema: u32,
    /// The version of Assay that wrote it.
    pub assay_version: String,
    /// The command line.
    pub command: String,
    /// When, in UTC, as `2026-11-29T21:00:00Z`.
    pub date: String,
    /// Where the reference comes from.
    pub reference: String,
    /// Where the candidate comes from.
    pub candidate: String,
    /// What the device was, where one compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The tensors that were compared, in the reference's order.
    pub comparisons: Vec<Comparison>,
    /// Those that were not.
    pub not_compared: Vec<NotCompared>,
    /// What else there is to say of the files: that one was cut off, so that it may have held more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What all of it comes to.
    pub outcome: Outcome,
    /// Time spent, in seconds.
    pub seconds: f64,
    /// The exit code of the run.
    pub exit_code: u8,
}

impl ComparisonReport {
    /// The report as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// None in practice: the types here all have JSON forms.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }
}
