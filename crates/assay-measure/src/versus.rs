//! Two kernels in turns: the candidate, the baseline, and the baseline once more as a control.

use std::time::Instant;

use assay_device::Device;
use assay_num::random::SplitMix64;
use assay_record::{Rounds, Versus};

use crate::MeasureError;
use crate::clock::{Taken, is_off, reference_clock};
use crate::plan::{Cache, Plan};
use crate::stopwatch::span::Content;
use crate::stopwatch::{Stopwatch, Work};
use crate::verdict::{Bar, Judged, Pairs, effect, judge};
use crate::watch::Watch;

/// How two kernels are to be compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VersusPlan {
    /// How each span is taken; its limits of samples count rounds.
    pub plan: Plan,
    /// What a verdict needs.
    pub bar: Bar,
    /// The half width of the difference's interval at which to stop, over the threshold.
    pub narrow: f64,
}

impl Default for VersusPlan {
    fn default() -> Self {
        let plan = Plan { least_samples: 32, most_samples: 1024, ..Plan::default() };
        VersusPlan { plan, bar: Bar::default(), narrow: 0.25 }
    }
}

/// A round's spans: the baseline, the candidate, the baseline again, whatever their order was.
type Round = [Taken; 3];

impl Stopwatch {
    /// Compares a candidate with a baseline, in rounds of three spans in random order. It stops
    /// when the difference is known narrowly enough, whichever way it points.
    ///
    /// # Errors
    /// As [`Stopwatch::measure`].
    pub fn versus(
        &mut self,
        device: &mut dyn Device,
        asked: &VersusPlan,
        (baseline, a): (&str, &mut Work<'_>),
        (candidate, b): (&str, &mut Work<'_>),
    ) -> Result<Versus, MeasureError> {
        let plan = &asked.plan;
        plan.check()?;
        self.ready(device, plan)?;
        for _ in 0..plan.warm_up_launches {
            a(device, self.stream())?;
            b(device, self.stream())?;
        }
        device.synchronize()?;
        self.watch.iter_mut().for_each(Watch::begin);
        let (began, mut look_at) = (Instant::now(), plan.least_samples as usize);
        let mut random = SplitMix64::new(plan.seed).fork("order of rounds");
        let mut rounds: Vec<Round> = Vec::new();
        let last = loop {
            let before = 3 * rounds.len();
            rounds.push(self.round(device, (plan, before), &mut random, (&mut *a, &mut *b))?);
            let late = began.elapsed().as_secs_f64() >= plan.time_limit_s;
            let full = rounds.len() >= plan.most_samples as usize;
            if rounds.len() >= look_at || late || full {
                // Looks grow apart, so that there are few of them.
                look_at = rounds.len() * 2;
                let paired = pair(&rounds, plan.clock_tolerance_rel);
                if late || full || is_narrow(&paired, asked) {
                    break paired;
                }
            }
        };
        let judged = judge(&last.pairs, &asked.bar);
        let spans = 3 * rounds.len();
        let watched = self.watch.as_mut().map(|watch| watch.end(spans));
        let samples = Some(columns(&rounds, last.rejected));
        let record = record(asked, judged, (baseline, candidate), samples);
        Ok(Versus { watched, ..record })
    }

    fn round(
        &mut self,
        device: &mut dyn Device,
        (plan, before): (&Plan, usize),
        random: &mut SplitMix64,
        (a, b): (&mut Work<'_>, &mut Work<'_>),
    ) -> Result<Round, MeasureError> {
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        let mut round = [Taken { duration_ns: 0.0, sm_clock_mhz: None }; 3];
        for (done, which) in (before + 1..).zip(order) {
            let work: &mut Work<'_> = if which == 1 { &mut *b } else { &mut *a };
            let mut content = Content::Calls(work, plan.launches_per_sample);
            let span = self.span(device, plan.cache, plan.hold_limit_s, &mut content)?;
            round[which] = self.sample(span, plan);
            self.look_at_gauges(done);
        }
        Ok(round)
    }

    fn ready(&mut self, device: &mut dyn Device, plan: &Plan) -> Result<(), MeasureError> {
        if plan.cache == Cache::Cold {
            self.prepare_flush(device)?;
        }
        Ok(())
    }
}

/// What the rounds say.
struct Paired {
    pairs: Pairs,
    /// Rounds kept.
    kept: usize,
    /// The places of the others.
    rejected: Vec<u64>,
}

/// The rounds whose spans were all taken at one clock, as logarithms of ratios.
fn pair(rounds: &[Round], tolerance: f64) -> Paired {
    let all: Vec<Taken> = rounds.iter().flatten().copied().collect();
    let reference = reference_clock(&all);
    let mut paired = Paired { pairs: Pairs::default(), kept: 0, rejected: Vec::new() };
    for (place, [a, b, again]) in (0..).zip(rounds) {
        let spans = [a, b, again];
        let positive = spans.iter().all(|span| span.duration_ns > 0.0);
        if !positive || spans.iter().any(|span| is_off(span, reference, tolerance)) {
            paired.rejected.push(place);
            continue;
        }
        paired.kept += 1;
        let pairs = &mut paired.pairs;
        let baseline = f64::midpoint(a.duration_ns.ln(), again.duration_ns.ln());
        pairs.time.push(b.duration_ns.ln() - baseline);
        pairs.control.push(again.duration_ns.ln() - a.duration_ns.ln());
        if let [Some(a_clock), Some(b_clock), Some(again_clock)] =
            spans.map(|span| span.sm_clock_mhz)
        {
            let clocks = b_clock.ln() - f64::midpoint(a_clock.ln(), again_clock.ln());
            pairs.cycles.push(b.duration_ns.ln() - baseline + clocks);
        }
    }
    paired
}

/// Whether the difference is known as narrowly as asked, and the control too.
fn is_narrow(paired: &Paired, asked: &VersusPlan) -> bool {
    if paired.kept < asked.plan.least_samples as usize {
        return false;
    }
    let most = asked.narrow * asked.bar.threshold_rel;
    [&paired.pairs.time, &paired.pairs.control].into_iter().all(|values| {
        let effect = effect(values, &asked.bar);
        (effect.upper - effect.lower) / 2.0 <= most
    })
}

/// The rounds as they are stored.
fn columns(rounds: &[Round], rejected: Vec<u64>) -> Rounds {
    let column = |which: usize| rounds.iter().map(|round| round[which].duration_ns).collect();
    Rounds { baseline_ns: column(0), candidate_ns: column(1), again_ns: column(2), rejected }
}

fn record(
    asked: &VersusPlan,
    judged: Judged,
    (baseline, candidate): (&str, &str),
    samples: Option<Rounds>,
) -> Versus {
    let (taken, rejected) = samples
        .as_ref()
        .map_or((0, 0), |rounds| (rounds.baseline_ns.len() as u64, rounds.rejected.len() as u64));
    Versus {
        baseline: baseline.to_owned(),
        candidate: candidate.to_owned(),
        verdict: judged.verdict,
        reason: judged.reason,
        time: judged.time,
        cycles: judged.cycles,
        control: judged.control,
        threshold_rel: asked.bar.threshold_rel,
        confidence: asked.bar.confidence,
        rounds: taken - rejected,
        rejected_rounds: rejected,
        interleaved: true,
        samples,
        watched: None,
    }
}
