//! Which samples were taken at another clock than the rest.

use crate::statistics::{quantile, sorted};

/// A sample as it was taken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Taken {
    /// Nanoseconds per launch.
    pub duration_ns: f64,
    /// The multiprocessors' clock around it in MHz, where it is known.
    pub sm_clock_mhz: Option<f64>,
}

/// Where in the order of clocks the reference is looked for: high, since clocks sag and do not
/// rise, and below the top, since the highest reading of many is the one read wrong.
const REFERENCE_QUANTILE: f64 = 0.75;

/// The clock that samples are held against: the upper quartile of all. `None` without a clock.
pub fn reference_clock(samples: &[Taken]) -> Option<f64> {
    let clocks: Vec<f64> = samples.iter().filter_map(|sample| sample.sm_clock_mhz).collect();
    (!clocks.is_empty()).then(|| quantile(&sorted(&clocks), REFERENCE_QUANTILE))
}

/// Whether a sample's clock lies further from `reference` than `tolerance` of it. A sample of
/// unknown clock is off where others have one.
pub fn is_off(sample: &Taken, reference: Option<f64>, tolerance: f64) -> bool {
    match (sample.sm_clock_mhz, reference) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(clock), Some(reference)) => (clock - reference).abs() > tolerance * reference,
    }
}
