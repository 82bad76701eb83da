//! Measurements as they are stored: samples as a series, a kernel under a device's roofs, and a
//! verdict from two series that were not taken in turns.

use assay_record::{Dossier, Effect, Placement, RejectedSample, Series, Versus};

use crate::samples::{Ended, Method, Samples};
use crate::statistics::{block_interval, midmean};
use crate::summary::Summary;
use crate::verdict::{Bar, decide};

/// Samples with what they say.
pub fn series(samples: &Samples) -> Series {
    let summary = Summary::of(samples);
    let rejected = samples.rejected.iter().map(|sample| RejectedSample {
        duration_ns: sample.duration_ns,
        sm_clock_mhz: (sample.sm_clock_mhz > 0.0).then_some(sample.sm_clock_mhz),
        place: sample.place as u64,
    });
    Series {
        method: method(samples.method).to_owned(),
        duration_ns: samples.duration_ns.clone(),
        sm_clock_mhz: samples.sm_clock_mhz.clone(),
        rejected: rejected.collect(),
        n: summary.n as u64,
        median_ns: summary.median_ns,
        lower_ns: summary.lower_ns,
        upper_ns: summary.upper_ns,
        confidence: samples.confidence,
        iqr_ns: summary.iqr_ns,
        p5_ns: summary.p5_ns,
        p95_ns: summary.p95_ns,
        sm_clock_mhz_median: summary.sm_clock_mhz,
        cycles: summary.cycles,
        bracket_ns: samples.bracket_ns,
        step_ns: samples.step_ns,
        launches_per_sample: samples.launches_per_sample,
        held: samples.held,
        ended: ended(samples.ended).to_owned(),
        seconds: samples.wall_s,
        watched: samples.watched.clone(),
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::EventBracket => "events around the launch, less the median of an empty bracket",
        Method::GraphReplay => "replays of a graph, less those of one without the launches",
        Method::Activity => "the device's own records of when kernels began and ended",
    }
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Interval => "the interval is narrow enough",
        Ended::NoiseSettled => "the noise has settled",
        Ended::SampleLimit => "the most samples were taken",
        Ended::TimeLimit => "the time was up",
    }
}

/// How far over a roof, over it, a kernel may lie before its counts are doubted: the roofs are
/// measured too.
const ABOVE: f64 = 0.05;

/// Where a kernel that moves so many bytes and does so many operations in a time stands under a
/// dossier's roofs: that of memory, `dram_read` or `dram_copy`, whichever is higher, and the entry
/// `compute`. `None` where nothing is known to hold it against.
pub fn place(
    dossier: &Dossier,
    compute: &str,
    (bytes, flop): (Option<f64>, Option<f64>),
    seconds: f64,
) -> Option<Placement> {
    let positive = |value: &f64| value.is_finite() && *value > 0.0;
    let (bytes, flop) = (bytes.filter(positive), flop.filter(positive));
    let memory = ["dram_read", "dram_copy"].into_iter().filter_map(|name| {
        let value = dossier.value(name).filter(positive)?;
        bytes.map(|bytes| (name, "B/s", bytes, value))
    });
    let memory = memory.max_by(|a, b| a.3.total_cmp(&b.3));
    let compute = dossier
        .value(compute)
        .filter(positive)
        .and_then(|value| flop.map(|flop| (compute, "FLOP/s", flop, value)));
    // The roof that a kernel meets first is the one that asks for more time.
    let needs = |roof: &(&str, &str, f64, f64)| roof.2 / roof.3;
    let roofs = memory.into_iter().chain(compute);
    let (roof, unit, amount, value) = roofs.max_by(|a, b| needs(a).total_cmp(&needs(b)))?;
    positive(&seconds).then(|| {
        let part = amount / seconds / value;
        Placement {
            intensity: bytes.and_then(|bytes| Some(flop? / bytes)),
            roof: roof.to_owned(),
            roof_value: value,
            unit: unit.to_owned(),
            part,
            above: part > 1.0 + ABOVE,
        }
    })
}

/// Compares two series that were not taken in turns: whatever changed between them besides the
/// kernel is in the difference too, so only what shows in time and in cycles counts.
pub fn versus_series(
    (baseline, a): (&str, &Series),
    (candidate, b): (&str, &Series),
    bar: &Bar,
) -> Versus {
    let apart = |from: &[f64], to: &[f64]| (!from.is_empty()).then(|| difference(from, to, bar));
    let time = apart(&a.duration_ns, &b.duration_ns).unwrap_or_default();
    let cycles = |series: &Series| -> Vec<f64> {
        let both = series.duration_ns.iter().zip(&series.sm_clock_mhz);
        both.map(|(ns, mhz)| ns * mhz / 1000.0).collect()
    };
    let (a_cycles, b_cycles) = (cycles(a), cycles(b));
    let cycles = if b_cycles.is_empty() { None } else { apart(&a_cycles, &b_cycles) };
    let (verdict, reason) = decide(&time, cycles.as_ref(), None, bar);
    Versus {
        baseline: baseline.to_owned(),
        candidate: candidate.to_owned(),
        verdict,
        reason: format!("{reason}; the samples were not taken in turns"),
        time,
        cycles,
        control: None,
        threshold_rel: bar.threshold_rel,
        confidence: bar.confidence,
        rounds: a.n.min(b.n),
        rejected_rounds: (a.rejected.len() + b.rejected.len()) as u64,
        interleaved: false,
        samples: None,
        watched: None,
    }
}

/// The difference of two independent samples' midmeans, with the interval in which it lies if each
/// midmean lies in its own.
fn difference(from: &[f64], to: &[f64], bar: &Bar) -> Effect {
    let logarithms = |values: &[f64]| -> Vec<f64> {
        values.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect()
    };
    let (from, to) = (logarithms(from), logarithms(to));
    let interval =
        |values: &[f64]| block_interval(values, bar.confidence, bar.seed, |drawn| midmean(drawn));
    let (a, b) = (midmean(&from), midmean(&to));
    let ((a_low, a_high), (b_low, b_high)) = (interval(&from), interval(&to));
    // Independent errors add up in squares.
    let below = (b - b_low).hypot(a_high - a);
    let above = (b_high - b).hypot(a - a_low);
    let middle = b - a;
    Effect {
        rel: middle.exp_m1(),
        lower: (middle - below).exp_m1(),
        upper: (middle + above).exp_m1(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_num::random::SplitMix64;
    use assay_record::{DOSSIER_SCHEMA, Entry, Figure, ProbedDevice, Verdict};

    fn taken(seed: u64, ns: f64, clock: f64) -> Series {
        let mut random = SplitMix64::new(seed);
        let duration_ns = (0..80).map(|_| ns * (1.0 + 0.003 * random.normal())).collect();
        let sm_clock_mhz = vec![clock; 80];
        series(&Samples { duration_ns, sm_clock_mhz, ..Samples::default() })
    }

    #[test]
    fn two_records_say_same_slow_fast_or_that_the_clock_differs() {
        let bar = Bar::default();
        let verdict =
            |b: &Series| versus_series(("a", &taken(1, 1e4, 1980.0)), ("b", b), &bar).verdict;
        assert_eq!(verdict(&taken(2, 1e4, 1980.0)), Verdict::Same);
        assert_eq!(verdict(&taken(2, 1.03e4, 1980.0)), Verdict::Slow);
        assert_eq!(verdict(&taken(2, 0.97e4, 1980.0)), Verdict::Fast);
        assert_eq!(verdict(&taken(2, 1.1e4, 1800.0)), Verdict::Ambiguous);
    }

    fn dossier() -> Dossier {
        let entry = |name: &str, unit: &str, value: f64| {
            let sm_clock_mhz = None;
            let figure = Figure { value, samples: 9, p5: value, p95: value, sm_clock_mhz };
            Entry::measured(name, unit, "made up", figure)
        };
        Dossier {
            schema: DOSSIER_SCHEMA,
            assay_version: String::new(),
            command: String::new(),
            date: String::new(),
            seed: 1,
            quick: false,
            device: ProbedDevice {
                name: "made up".to_owned(),
                backend: "cuda".to_owned(),
                architecture: "sm_90".to_owned(),
                driver: None,
                multiprocessors: 1,
                memory_bytes: 1,
                l2_bytes: None,
                sm_clock_max_mhz: None,
                memory_clock_max_mhz: None,
                memory_bus_bits: None,
            },
            before: None,
            after: None,
            entries: vec![
                entry("dram_read", "B/s", 4e12),
                entry("dram_copy", "B/s", 3e12),
                entry("fma_f32", "FLOP/s", 6e13),
            ],
            peers: Vec::new(),
            peers_missing: Vec::new(),
            incomplete: None,
            seconds: 0.0,
        }
    }

    #[test]
    fn a_kernel_stands_under_the_roof_that_asks_for_more_time() {
        let place = |bytes, flop, seconds| place(&dossier(), "fma_f32", (bytes, flop), seconds);
        let streams = place(Some(4e9), Some(1e9), 2e-3).expect("a roof");
        assert_eq!((streams.roof.as_str(), streams.part, streams.above), ("dram_read", 0.5, false));
        let computes = place(Some(4e6), Some(6e10), 2e-3).expect("a roof");
        assert_eq!((computes.roof.as_str(), computes.part), ("fma_f32", 0.5));
        assert_eq!(computes.intensity, Some(15_000.0));
        let bytes_alone = place(Some(4e9), None, 1e-3).expect("a roof");
        assert_eq!((bytes_alone.intensity, bytes_alone.part), (None, 1.0));
        assert!(place(Some(8e9), None, 1e-3).is_some_and(|placed| placed.above));
        assert_eq!(place(None, None, 1e-3), None);
        assert_eq!(place(Some(4e9), None, 0.0), None);
    }
}
