//! What a benchmark's record gives to draw: the samples of a kernel, two kernels side by side, and
//! kernels as points under a roofline.

use assay_record::{Dossier, Series, Timing, Versus};

use crate::distributions::{Distribution, Distributions, Effects};
use crate::histogram::Histogram;
use crate::roofline::{Roofline, RooflinePoint};

impl Histogram {
    /// The samples of a series, with those that its board was throttled next to.
    pub fn of(title: &str, series: &Series) -> Histogram {
        Histogram {
            title: title.to_owned(),
            accepted_ns: series.duration_ns.clone(),
            throttled_ns: throttled(series),
            rejected_ns: rejected(series),
            median_interval_ns: Some((series.lower_ns, series.upper_ns)),
        }
    }
}

fn rejected(series: &Series) -> Vec<f64> {
    series.rejected.iter().map(|sample| sample.duration_ns).collect()
}

/// The kept samples that are marked: what was rejected has its place, the others fill the rest.
fn throttled(series: &Series) -> Vec<f64> {
    let Some(watched) = &series.watched else { return Vec::new() };
    let rejected: Vec<u64> = series.rejected.iter().map(|sample| sample.place).collect();
    let kept = (0u64..).filter(|place| rejected.binary_search(place).is_err());
    let placed = kept.zip(&series.duration_ns);
    let marked = placed.filter(|(place, _)| watched.throttled.binary_search(place).is_ok());
    marked.map(|(_, ns)| *ns).collect()
}

impl Distributions {
    /// The rounds of a comparison in turns: the baseline, the candidate, and the baseline again as
    /// the control. `None` where the record holds no rounds.
    pub fn of(versus: &Versus) -> Option<Distributions> {
        let rounds = versus.samples.as_ref()?;
        let row = |name: String, all: &[f64]| {
            let (rejected, accepted): (Vec<_>, Vec<_>) = (0u64..)
                .zip(all.iter().copied())
                .partition(|(place, _)| rounds.rejected.binary_search(place).is_ok());
            let values = |placed: Vec<(u64, f64)>| placed.into_iter().map(|(_, ns)| ns).collect();
            Distribution { name, accepted_ns: values(accepted), rejected_ns: values(rejected) }
        };
        let rows = vec![
            row(versus.baseline.clone(), &rounds.baseline_ns),
            row(versus.candidate.clone(), &rounds.candidate_ns),
            row(format!("{} again", versus.baseline), &rounds.again_ns),
        ];
        Some(Distributions { rows, ..Distributions::judged(versus) })
    }

    /// Two series that were not taken in turns, with what was made of them.
    pub fn of_series(versus: &Versus, baseline: &Series, candidate: &Series) -> Distributions {
        let row = |name: &str, series: &Series| Distribution {
            name: name.to_owned(),
            accepted_ns: series.duration_ns.clone(),
            rejected_ns: rejected(series),
        };
        let rows = vec![row(&versus.baseline, baseline), row(&versus.candidate, candidate)];
        Distributions { rows, ..Distributions::judged(versus) }
    }

    /// The verdict and its effects, with no samples yet.
    fn judged(versus: &Versus) -> Distributions {
        let title = format!("{}: {}", versus.candidate, versus.verdict);
        let all = [
            ("difference in time", Some(versus.time)),
            ("difference in cycles", versus.cycles),
            ("the baseline from itself", versus.control),
        ];
        let bars = all.into_iter().filter_map(|(name, effect)| Some((name.to_owned(), effect?)));
        let effects = Effects { bars: bars.collect(), threshold_rel: versus.threshold_rel };
        Distributions { title, said: versus.reason.clone(), rows: Vec::new(), effects }
    }
}

impl Roofline {
    /// The roofs of a dossier with the kernels that have a duration, bytes and operations, under
    /// the compute roof of that name and DRAM.
    pub fn with_kernels(dossier: &Dossier, timings: &[Timing], compute: &str) -> Roofline {
        let mut roofline = Roofline::of(dossier);
        let has = |name: &str| roofline.roofs.iter().any(|roof| roof.name == name);
        let compute = has(compute).then(|| compute.to_owned());
        let memory = has("dram_read").then(|| "dram_read".to_owned());
        let point = |timing: &Timing| {
            Some(RooflinePoint {
                name: timing.name.clone(),
                bytes: timing.bytes?,
                flops: timing.flop?,
                seconds: timing.duration.as_ref()?.median_ns / 1e9,
                compute: compute.clone(),
                memory: memory.clone(),
            })
        };
        roofline.points = timings.iter().filter_map(point).collect();
        roofline
    }
}
