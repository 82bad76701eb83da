//! Samples in a few numbers, each with its interval.

use crate::samples::Samples;
use crate::statistics::{block_interval, median, quantile, sorted};

/// What the kept samples say. Times are in nanoseconds per launch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    /// Samples kept.
    pub n: usize,
    /// Samples rejected for their clock.
    pub rejected: usize,
    /// The median.
    pub median_ns: f64,
    /// The lower end of the median's interval.
    pub lower_ns: f64,
    /// The upper end of the median's interval.
    pub upper_ns: f64,
    /// The range between the quartiles.
    pub iqr_ns: f64,
    /// The value that 5 % of the samples lie below.
    pub p5_ns: f64,
    /// The value that 95 % of the samples lie below.
    pub p95_ns: f64,
    /// The multiprocessors' median clock, in MHz, where it is known.
    pub sm_clock_mhz: Option<f64>,
    /// The median in cycles of the multiprocessors, where their clock is known.
    pub cycles: Option<f64>,
}

impl Summary {
    /// Sums samples up. The interval comes from a block bootstrap of the samples' seed; it is
    /// never narrower than the timer's step.
    pub fn of(samples: &Samples) -> Summary {
        let ascending = sorted(&samples.duration_ns);
        let middle = quantile(&ascending, 0.5);
        let confidence = if samples.confidence > 0.0 { samples.confidence } else { 0.95 };
        let (lower, upper) =
            block_interval(&samples.duration_ns, confidence, samples.seed, |drawn| median(drawn));
        let half_step = samples.step_ns / f64::from(samples.launches_per_sample.max(1)) / 2.0;
        let sm_clock_mhz =
            (!samples.sm_clock_mhz.is_empty()).then(|| median(&samples.sm_clock_mhz));
        Summary {
            n: ascending.len(),
            rejected: samples.rejected.len(),
            median_ns: middle,
            lower_ns: lower.min(middle - half_step),
            upper_ns: upper.max(middle + half_step),
            iqr_ns: quantile(&ascending, 0.75) - quantile(&ascending, 0.25),
            p5_ns: quantile(&ascending, 0.05),
            p95_ns: quantile(&ascending, 0.95),
            sm_clock_mhz,
            cycles: sm_clock_mhz.map(|clock| middle * clock / 1000.0),
        }
    }

    /// The half width of the median's interval, over the median.
    pub fn interval_rel(&self) -> f64 {
        if self.median_ns > 0.0 {
            (self.upper_ns - self.lower_ns) / 2.0 / self.median_ns
        } else {
            f64::INFINITY
        }
    }
}
