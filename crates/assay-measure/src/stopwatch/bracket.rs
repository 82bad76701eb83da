//! What a span costs by itself: measured empty, and around a kernel that does nothing.

use assay_device::{Device, DeviceError, Launch, StreamId};

use super::span::Content;
use super::{Stopwatch, Work};
use crate::MeasureError;
use crate::plan::Cache;
use crate::statistics::{median, quantile, sorted};

/// Empty spans that are measured.
const SPANS: usize = 64;

/// How long the calibration's own launches may hold the stream, in seconds.
const HOLD_LIMIT_S: f64 = 5.0;

/// The cost of a span by itself, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Bracket {
    /// The median of spans with nothing in them.
    pub empty_ns: f64,
    /// The range that nine in ten empty spans lie in.
    pub spread_ns: f64,
    /// The median of spans around a kernel of one thread that does nothing.
    pub nothing_ns: f64,
    /// The smallest step seen between two spans.
    pub step_ns: f64,
}

/// Measures the spans of nothing.
pub(super) fn calibrate(
    stopwatch: &mut Stopwatch,
    device: &mut dyn Device,
) -> Result<Bracket, MeasureError> {
    let module = stopwatch.module;
    let mut nothing = |device: &mut dyn Device, stream: StreamId| -> Result<(), DeviceError> {
        device.launch(stream, &Launch::new(module, "nothing")).map(|_| ())
    };
    let work: &mut Work<'_> = &mut nothing;
    let mut around = Content::Calls(work, 1);
    let (mut empty, mut full) = (Vec::new(), Vec::new());
    for _ in 0..SPANS {
        empty.push(stopwatch.span(device, Cache::Warm, HOLD_LIMIT_S, &mut Content::Empty)?);
        full.push(stopwatch.span(device, Cache::Warm, HOLD_LIMIT_S, &mut around)?);
    }
    // The first spans load code.
    let times = |spans: &[super::span::Span]| -> Vec<f64> {
        spans[SPANS / 4..].iter().map(|span| span.elapsed_ns).collect()
    };
    let (empty, full) = (sorted(&times(&empty)), sorted(&times(&full)));
    let step = smallest_step(&sorted(&[&empty[..], &full[..]].concat()));
    Ok(Bracket {
        empty_ns: median(&empty),
        spread_ns: quantile(&empty, 0.95) - quantile(&empty, 0.05),
        nothing_ns: median(&full),
        step_ns: step,
    })
}

/// The smallest difference between two different values; 1 where all are the same.
fn smallest_step(ascending: &[f64]) -> f64 {
    let steps = ascending.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    let smallest = steps.fold(f64::INFINITY, f64::min);
    if smallest.is_finite() { smallest } else { 1.0 }
}
