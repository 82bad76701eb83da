//! What paired samples of two kernels say: SAME, FAST, SLOW or AMBIGUOUS, and why.

use assay_record::{Effect, Verdict};

use crate::statistics::{block_interval, midmean};

/// Paired samples of a comparison, round by round: logarithms of ratios.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pairs {
    /// The candidate over the baseline, in time.
    pub time: Vec<f64>,
    /// The same in cycles; empty where clocks are not known.
    pub cycles: Vec<f64>,
    /// The baseline over itself, in time.
    pub control: Vec<f64>,
}

/// How sure a verdict has to be, and of how much.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bar {
    /// The smallest difference that counts: 0.01 is 1 %.
    pub threshold_rel: f64,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// The seed of the bootstrap.
    pub seed: u64,
}

impl Default for Bar {
    fn default() -> Self {
        Bar { threshold_rel: 0.01, confidence: 0.99, seed: 1 }
    }
}

/// The verdict on paired samples, with all that it stands on.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// The difference in time.
    pub time: Effect,
    /// The difference in cycles.
    pub cycles: Option<Effect>,
    /// The baseline's difference from itself.
    pub control: Option<Effect>,
}

/// The difference that logarithms of ratios show: their midmean, with an interval from a block
/// bootstrap.
pub fn effect(logarithms: &[f64], bar: &Bar) -> Effect {
    let (lower, upper) =
        block_interval(logarithms, bar.confidence, bar.seed, |drawn| midmean(drawn));
    let rel = midmean(logarithms).exp_m1();
    Effect { rel, lower: lower.exp_m1().min(rel), upper: upper.exp_m1().max(rel) }
}

/// Judges paired samples.
pub fn judge(pairs: &Pairs, bar: &Bar) -> Judged {
    let effect_of = |values: &[f64]| (!values.is_empty()).then(|| effect(values, bar));
    let time = effect(&pairs.time, bar);
    let (cycles, control) = (effect_of(&pairs.cycles), effect_of(&pairs.control));
    let (verdict, reason) = if pairs.time.is_empty() {
        (Verdict::Ambiguous, "no round was kept".to_owned())
    } else {
        decide(&time, cycles.as_ref(), control.as_ref(), bar)
    };
    Judged { verdict, reason, time, cycles, control }
}

/// The verdict on effects.
pub fn decide(
    time: &Effect,
    cycles: Option<&Effect>,
    control: Option<&Effect>,
    bar: &Bar,
) -> (Verdict, String) {
    let threshold = bar.threshold_rel;
    let floor = control.map_or(0.0, |control| control.lower.abs().max(control.upper.abs()));
    let needed = threshold.max(floor);
    let shown = format!("{} in time ({})", percent(time.rel), interval(time));
    if time.lower >= -threshold && time.upper <= threshold && floor <= threshold {
        return (Verdict::Same, format!("{shown}, all of it within {}", percent(threshold)));
    }
    let verdict = if time.lower > needed {
        Verdict::Slow
    } else if time.upper < -needed {
        Verdict::Fast
    } else {
        return (Verdict::Ambiguous, unclear(&shown, floor, threshold));
    };
    match cycles {
        Some(cycles) if !same_side(time, cycles) => {
            let (rel, range) = (percent(cycles.rel), interval(cycles));
            let reason = format!("{shown}, but {rel} in cycles ({range}): the clock differs");
            (Verdict::Ambiguous, reason)
        }
        Some(cycles) => {
            let rel = percent(cycles.rel);
            (verdict, format!("{shown}, {rel} in cycles; the noise floor is {}", percent(floor)))
        }
        None => (verdict, format!("{shown}; the noise floor is {}", percent(floor))),
    }
}

/// Whether the cycles' interval lies on the side of zero that the time's does.
fn same_side(time: &Effect, cycles: &Effect) -> bool {
    if time.rel > 0.0 { cycles.lower > 0.0 } else { cycles.upper < 0.0 }
}

fn unclear(shown: &str, floor: f64, threshold: f64) -> String {
    if floor > threshold {
        return format!(
            "{shown}, and the baseline differs from itself by up to {}: take more samples, or a \
             quieter device",
            percent(floor)
        );
    }
    format!("{shown}, which leaves open whether it exceeds {}", percent(threshold))
}

fn percent(rel: f64) -> String {
    format!("{:+.2} %", rel * 100.0)
}

fn interval(effect: &Effect) -> String {
    format!("{} to {}", percent(effect.lower), percent(effect.upper))
}
