//! Durations from the device's own records of when each kernel began and ended.

use std::time::Instant;

use assay_device::Device;
use assay_device::cupti::{Activity, ActivityError, KernelRecord};

use super::measure::LOOK_EVERY;
use super::span::Content;
use super::{Stopwatch, Work};
use crate::MeasureError;
use crate::clock::Taken;
use crate::plan::{Cache, Plan};
use crate::samples::{Ended, Method, Samples};
use crate::statistics::Noise;

impl Stopwatch {
    /// As [`Stopwatch::measure`], with durations from activity records: from the start of the
    /// first kernel of a span to the end of its last. Every kernel is recorded, so a launch costs
    /// the host more, which the held stream hides.
    ///
    /// # Errors
    /// As [`Stopwatch::measure`], and [`MeasureError::NoSamples`] where records are not to be had
    /// or do not fit what was launched.
    pub fn measure_activity(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        work: &mut Work<'_>,
    ) -> Result<Samples, MeasureError> {
        let plan = Plan { graph: false, ..*plan };
        let began = Instant::now();
        self.prepare(device, &plan, work)?;
        let mut activity = Activity::start().map_err(|error| no_records(&error))?;
        let (mut taken, mut noise) = (Vec::new(), Noise::default());
        let ended = loop {
            self.recorded(device, &plan, work, (&mut activity, &mut taken))?;
            if taken.len() >= plan.most_samples as usize {
                break Ended::SampleLimit;
            }
            if began.elapsed().as_secs_f64() >= plan.time_limit_s {
                break Ended::TimeLimit;
            }
            if taken.len() >= plan.least_samples as usize
                && let Some(ended) = self.look(&plan, &taken, &mut noise)
            {
                break ended;
            }
        };
        let mut samples = self.samples(&plan, &taken, ended);
        (samples.method, samples.bracket_ns) = (Method::Activity, 0.0);
        samples.wall_s = began.elapsed().as_secs_f64();
        Ok(samples)
    }

    /// Takes some spans and then their records.
    fn recorded(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        work: &mut Work<'_>,
        (activity, taken): (&mut Activity, &mut Vec<Taken>),
    ) -> Result<(), MeasureError> {
        let mut spans = Vec::new();
        for _ in 0..LOOK_EVERY {
            let mut content = Content::Calls(&mut *work, plan.launches_per_sample);
            spans.push(self.span(device, plan.cache, plan.hold_limit_s, &mut content)?);
            self.look_at_gauges(taken.len() + spans.len());
        }
        let records = activity.take().map_err(|error| no_records(&error))?;
        let busy = busy_ns(records, plan.cache == Cache::Cold);
        if busy.len() != spans.len() {
            let (found, wanted) = (busy.len(), spans.len());
            let reason = format!("the device recorded {found} spans of the {wanted} launched");
            return Err(MeasureError::NoSamples { reason });
        }
        let launches = f64::from(plan.launches_per_sample);
        taken.extend(spans.iter().zip(busy).map(|(span, busy_ns)| Taken {
            duration_ns: busy_ns / launches,
            sm_clock_mhz: span.sm_clock_mhz,
        }));
        Ok(())
    }
}

fn no_records(error: &ActivityError) -> MeasureError {
    MeasureError::NoSamples { reason: error.to_string() }
}

/// From the start of the first kernel to the end of the last, of every span that has any: what
/// lies between a hold, or the flush after it, and a stamp.
fn busy_ns(mut records: Vec<KernelRecord>, flushed: bool) -> Vec<f64> {
    records.sort_by_key(|record| record.start_ns);
    let mut spans = Vec::new();
    let mut open: Option<(u64, u64)> = None;
    let opens = if flushed { "flush" } else { "hold" };
    let mut inside = false;
    for record in records {
        match record.name.as_str() {
            "stamp" => {
                spans.extend(open.take().map(|(start, end)| end.saturating_sub(start) as f64));
                inside = false;
            }
            name if name == opens && !inside => inside = true,
            "hold" => {}
            _ if inside => {
                let (start, end) = open.unwrap_or((record.start_ns, record.end_ns));
                open = Some((start, end.max(record.end_ns)));
            }
            _ => {}
        }
    }
    spans
}
