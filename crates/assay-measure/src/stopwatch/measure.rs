//! A whole measurement: warm up, take spans until enough is known, throw out what was taken at
//! another clock.

use std::time::Instant;

use assay_device::Device;

use super::graphs::Graphs;
use super::span::{Content, Span};
use super::{Stopwatch, Work};
use crate::MeasureError;
use crate::clock::{Taken, is_off, reference_clock};
use crate::plan::{Cache, Plan};
use crate::samples::{Ended, Method, Rejected, Samples};
use crate::statistics::{Noise, effective_samples, median_interval, quantile, sorted};
use crate::watch::Watch;

/// Samples between two looks at whether enough is known.
pub(super) const LOOK_EVERY: usize = 10;

/// The share of rejected samples from which on the clock counts as never settled.
const MOST_REJECTED: f64 = 0.5;

impl Stopwatch {
    /// Measures `work` as planned. It may be called more often than there are samples.
    ///
    /// # Errors
    /// [`MeasureError`]; what a held stream cannot run is [`MeasureError::Deadlock`], and a span
    /// no longer than an empty one [`MeasureError::NoWork`].
    pub fn measure(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        work: &mut Work<'_>,
    ) -> Result<Samples, MeasureError> {
        let began = Instant::now();
        self.prepare(device, plan, work)?;
        let graphs = if plan.graph { Some(self.capture(device, plan, work)?) } else { None };
        let taken = self.take(device, plan, graphs, work, began);
        let freed = graphs.map_or(Ok(()), |graphs| graphs.destroy(device));
        let (taken, ended) = taken?;
        freed?;
        self.refuse_nothing(plan, &taken)?;
        let mut samples = self.samples(plan, &taken, ended);
        samples.wall_s = began.elapsed().as_secs_f64();
        Ok(samples)
    }

    /// Everything before the first span.
    pub(super) fn prepare(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        work: &mut Work<'_>,
    ) -> Result<(), MeasureError> {
        plan.check()?;
        if plan.cache == Cache::Cold {
            self.prepare_flush(device)?;
        }
        for _ in 0..plan.warm_up_launches {
            work(device, self.stream)?;
        }
        device.synchronize()?;
        self.watch.iter_mut().for_each(Watch::begin);
        Ok(())
    }

    /// Reads the board's gauges if it is time, where a span has just ended.
    pub(crate) fn look_at_gauges(&mut self, taken: usize) {
        self.watch.iter_mut().for_each(|watch| watch.look(taken));
    }

    /// Takes spans until one of the plan's conditions ends it.
    fn take(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        graphs: Option<Graphs>,
        work: &mut Work<'_>,
        began: Instant,
    ) -> Result<(Vec<Taken>, Ended), MeasureError> {
        let mut taken = Vec::new();
        let mut noise = Noise::default();
        loop {
            let span = if let Some(graphs) = graphs {
                self.graph_span(device, plan, graphs)?
            } else {
                let mut content = Content::Calls(&mut *work, plan.launches_per_sample);
                self.span(device, plan.cache, plan.hold_limit_s, &mut content)?
            };
            taken.push(self.sample(span, plan));
            self.look_at_gauges(taken.len());
            let enough = taken.len() >= plan.least_samples as usize;
            if taken.len() >= plan.most_samples as usize {
                return Ok((taken, Ended::SampleLimit));
            }
            if began.elapsed().as_secs_f64() >= plan.time_limit_s && taken.len() >= 2 {
                return Ok((taken, Ended::TimeLimit));
            }
            if enough
                && taken.len().is_multiple_of(LOOK_EVERY)
                && let Some(ended) = self.look(plan, &taken, &mut noise)
            {
                return Ok((taken, ended));
            }
        }
    }

    /// A span as a sample: per launch, without the bracket.
    pub(crate) fn sample(&self, span: Span, plan: &Plan) -> Taken {
        let launches = f64::from(plan.launches_per_sample);
        let bracket_ns = if plan.graph { 0.0 } else { self.bracket.empty_ns };
        Taken {
            duration_ns: (span.elapsed_ns - bracket_ns) / launches,
            sm_clock_mhz: span.sm_clock_mhz,
        }
    }

    /// Whether what was taken so far is enough.
    pub(super) fn look(&self, plan: &Plan, taken: &[Taken], noise: &mut Noise) -> Option<Ended> {
        let reference = reference_clock(taken);
        let kept: Vec<f64> = taken
            .iter()
            .filter(|sample| !is_off(sample, reference, plan.clock_tolerance_rel))
            .map(|sample| sample.duration_ns)
            .collect();
        if kept.len() < plan.least_samples as usize {
            return None;
        }
        let ascending = sorted(&kept);
        noise.look(&ascending);
        let (lower, upper) = median_interval(&ascending, effective_samples(&kept), plan.confidence);
        let half_width = (upper - lower) / 2.0;
        let step = self.bracket.step_ns / f64::from(plan.launches_per_sample);
        if half_width <= (plan.interval_rel * quantile(&ascending, 0.5)).max(step / 2.0) {
            return Some(Ended::Interval);
        }
        noise.is_settled().then_some(Ended::NoiseSettled)
    }

    /// A span that takes no longer than an empty one holds no work.
    fn refuse_nothing(&self, plan: &Plan, taken: &[Taken]) -> Result<(), MeasureError> {
        let launches = f64::from(plan.launches_per_sample);
        let spans: Vec<f64> = taken.iter().map(|sample| sample.duration_ns * launches).collect();
        let over_ns = quantile(&sorted(&spans), 0.5);
        if over_ns > self.bracket.spread_ns.max(self.bracket.step_ns) {
            return Ok(());
        }
        let empty_ns = self.bracket.empty_ns;
        Err(MeasureError::NoWork { span_ns: over_ns + empty_ns, empty_ns })
    }

    /// Parts what was taken into kept and rejected samples.
    pub(super) fn samples(&mut self, plan: &Plan, taken: &[Taken], ended: Ended) -> Samples {
        let reference = reference_clock(taken);
        let mut samples = Samples {
            clock_reference_mhz: reference,
            bracket_ns: if plan.graph { 0.0 } else { self.bracket.empty_ns },
            step_ns: self.bracket.step_ns,
            launches_per_sample: plan.launches_per_sample,
            method: if plan.graph { Method::GraphReplay } else { Method::EventBracket },
            held: self.holds(),
            ended,
            seed: plan.seed,
            confidence: plan.confidence,
            watched: self.watch.as_mut().map(|watch| watch.end(taken.len())),
            ..Samples::default()
        };
        for (place, sample) in taken.iter().enumerate() {
            let clock = sample.sm_clock_mhz;
            if is_off(sample, reference, plan.clock_tolerance_rel) {
                let sm_clock_mhz = clock.unwrap_or(0.0);
                let duration_ns = sample.duration_ns;
                samples.rejected.push(Rejected { duration_ns, sm_clock_mhz, place });
            } else {
                samples.duration_ns.push(sample.duration_ns);
                samples.sm_clock_mhz.extend(clock);
            }
        }
        note_doubts(&mut samples, plan);
        samples
    }
}

/// Says what makes the samples doubtful.
fn note_doubts(samples: &mut Samples, plan: &Plan) {
    let (taken, rejected) = (samples.taken(), samples.rejected.len());
    if rejected as f64 >= MOST_REJECTED * taken as f64 && taken > 0 {
        let clocks = samples.sm_clock_mhz.iter().copied();
        let clocks: Vec<f64> =
            clocks.chain(samples.rejected.iter().map(|r| r.sm_clock_mhz)).collect();
        let clocks = sorted(&clocks);
        samples.doubts.push(format!(
            "the clock never settled: {rejected} of {taken} samples lie more than {:.1} % off, \
             between {:.0} and {:.0} MHz",
            plan.clock_tolerance_rel * 100.0,
            quantile(&clocks, 0.0),
            quantile(&clocks, 1.0),
        ));
    }
    let kept = samples.duration_ns.len();
    if kept < plan.least_samples as usize {
        samples.doubts.push(format!(
            "only {kept} samples were kept of the {} that were asked for",
            plan.least_samples
        ));
    }
}
