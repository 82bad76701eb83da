//! From stamps to a rate: how long a kernel of compute is run, how often, and what is kept.

use super::ProbeError;
use super::span::{Spans, median};
use crate::probe::context::figure;
use assay_record::Figure;

/// Samples of a rate, each of one launch.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Rate {
    /// Operations in a second, of the whole device.
    pub per_second: Vec<f64>,
    /// Operations in a cycle, of one multiprocessor.
    pub per_clock: Vec<f64>,
    /// The multiprocessors' clock in MHz.
    pub sm_clock_mhz: Vec<f64>,
}

impl Rate {
    /// Adds a launch that made `operations` on `multiprocessors`.
    ///
    /// # Errors
    /// [`ProbeError::Wrong`] where the stamps span no time, or not every multiprocessor took part.
    pub(crate) fn add(
        &mut self,
        spans: &Spans,
        operations: f64,
        multiprocessors: u32,
    ) -> Result<(), ProbeError> {
        if spans.multiprocessors() < multiprocessors as usize {
            return Err(ProbeError::Wrong("blocks shared a multiprocessor: others idled".into()));
        }
        let (ns, cycles) = (spans.duration_ns(), spans.cycles());
        if ns < 1.0 || cycles < 1.0 {
            return Err(ProbeError::Wrong("the kernel took no time that its clocks show".into()));
        }
        self.per_second.push(operations / ns * 1e9);
        self.per_clock.push(operations / f64::from(multiprocessors) / cycles);
        self.sm_clock_mhz.push(spans.sm_clock_mhz());
        Ok(())
    }

    /// The median of the samples' clocks, in MHz.
    pub(crate) fn clock_mhz(&self) -> f64 {
        median(self.sm_clock_mhz.iter().copied())
    }

    /// The figure of operations in a second.
    pub(crate) fn second(&self) -> Figure {
        figure(&self.per_second, Some(self.clock_mhz()))
    }

    /// The figure of operations in a cycle of one multiprocessor.
    pub(crate) fn clock(&self) -> Figure {
        figure(&self.per_clock, Some(self.clock_mhz()))
    }
}

/// How often a kernel's loop must run to take `target_ns`, from a short run of it; once for 0.
///
/// # Errors
/// Those of the run.
pub(crate) fn calibrate(
    target_ns: f64,
    most: u32,
    mut run: impl FnMut(u32) -> Result<Spans, ProbeError>,
) -> Result<u32, ProbeError> {
    let mut rounds = 1;
    if target_ns <= 0.0 {
        return Ok(rounds);
    }
    run(rounds)?;
    loop {
        let ns = run(rounds)?.duration_ns();
        if ns < 1.0 && rounds >= 16 {
            return Err(ProbeError::Wrong("the device's nanoseconds stand still".into()));
        }
        let ns = ns.max(1.0);
        if ns >= target_ns / 8.0 || rounds >= most {
            let scaled = (f64::from(rounds) * target_ns / ns).ceil();
            return Ok(scaled.clamp(1.0, f64::from(most)) as u32);
        }
        rounds = rounds.saturating_mul(4).min(most);
    }
}
