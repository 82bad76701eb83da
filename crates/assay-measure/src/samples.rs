//! What was measured, sample by sample, and how it ended.

use assay_record::Watched;

/// How durations were obtained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// The time between two events around the launches, less that of the bracket itself.
    #[default]
    EventBracket,
    /// The same around the replay of a graph, over its launches.
    GraphReplay,
    /// The device's own records of when the kernel began and ended.
    Activity,
}

/// Why no more samples were taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ended {
    /// The interval of the median is as narrow as asked.
    Interval,
    /// The noise is what it is: more samples would change it no further.
    NoiseSettled,
    /// The most samples were taken.
    #[default]
    SampleLimit,
    /// The time was up.
    TimeLimit,
}

/// A sample that was taken and not kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rejected {
    /// What it would have said, in nanoseconds per launch.
    pub duration_ns: f64,
    /// The multiprocessors' clock around it, in MHz.
    pub sm_clock_mhz: f64,
    /// Its place among all samples taken, from 0.
    pub place: usize,
}

/// The samples of one measurement, in the order taken.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Samples {
    /// The kept samples, in nanoseconds per launch.
    pub duration_ns: Vec<f64>,
    /// The multiprocessors' clock around each kept sample, in MHz; empty where it is not known.
    pub sm_clock_mhz: Vec<f64>,
    /// The samples whose clock was off.
    pub rejected: Vec<Rejected>,
    /// The clock that the kept samples agree on, in MHz.
    pub clock_reference_mhz: Option<f64>,
    /// What was taken off each span for the bracket itself, in nanoseconds.
    pub bracket_ns: f64,
    /// The smallest step between two times, in nanoseconds.
    pub step_ns: f64,
    /// Launches of one span.
    pub launches_per_sample: u32,
    /// How durations were obtained.
    pub method: Method,
    /// Whether a held stream hid the cost of launching.
    pub held: bool,
    /// Why no more samples were taken.
    pub ended: Ended,
    /// Wall time of the whole measurement, in seconds.
    pub wall_s: f64,
    /// The seed of every random choice.
    pub seed: u64,
    /// The confidence of every interval.
    pub confidence: f64,
    /// What makes the numbers doubtful: clocks that never settled, a time limit that came first.
    pub doubts: Vec<String>,
    /// What the board told of itself between the samples, where something was to ask.
    pub watched: Option<Watched>,
}

impl Samples {
    /// Samples taken, kept or not.
    pub fn taken(&self) -> usize {
        self.duration_ns.len() + self.rejected.len()
    }
}
