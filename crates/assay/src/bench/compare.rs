//! Two records held against each other.

use std::path::{Path, PathBuf};

use assay_measure::{Bar, versus_series};
use assay_record::{BENCH_SCHEMA, BenchRecord, ExitCode, Timing, Versus};

use super::{Arguments, read};
use crate::failure::Failure;
use crate::{VERSION, command_line, date};

/// Reads a record.
pub(super) fn load(path: &Path) -> Result<BenchRecord, Failure> {
    let text = read(path)?;
    BenchRecord::from_json(&text).map_err(|error| {
        Failure::request(format!("cannot read {} as a benchmark", path.display()))
            .caused_by(&error)
            .hint("`assay bench KERNEL --json FILE` writes one".to_owned())
    })
}

/// Samples of other records than the one at hand, for pictures.
#[derive(Default)]
pub(super) struct Others {
    /// Those held against.
    pub(super) before: Vec<Timing>,
    /// Those that are compared with them, where they are not the record's own.
    pub(super) after: Option<Vec<Timing>>,
}

/// The record of a comparison of two files.
pub(super) fn records(
    files: &[PathBuf],
    arguments: &Arguments,
    others: &mut Others,
) -> Result<BenchRecord, Failure> {
    let [before, after] = files else {
        return Err(Failure::request("--compare takes two records"));
    };
    let (before, after) = (load(before)?, load(after)?);
    let versus = by_name(&before, &after, arguments);
    if versus.is_empty() {
        return Err(Failure::request("the records have no timed kernel in common"));
    }
    let timings = after.timings.clone();
    let mut record = BenchRecord {
        schema: BENCH_SCHEMA,
        assay_version: VERSION.to_owned(),
        command: command_line(),
        date: date::now(),
        seed: arguments.seed,
        timings: Vec::new(),
        versus,
        incomplete: None,
        seconds: 0.0,
        exit_code: ExitCode::Holds.code(),
        ..after
    };
    if before.device.name != record.device.name {
        let (from, to) = (&before.device.name, &record.device.name);
        record.incomplete = Some(format!("the records are of different devices: {from}, {to}"));
    }
    (others.before, others.after) = (before.timings, Some(timings));
    Ok(record)
}

/// Every kernel that both records have timed, with the same caches.
pub(super) fn by_name(
    before: &BenchRecord,
    after: &BenchRecord,
    arguments: &Arguments,
) -> Vec<Versus> {
    let bar = bar(arguments);
    let pairs = after.timings.iter().filter_map(|new| {
        let same = |old: &&Timing| old.name == new.name && old.cache == new.cache;
        let old = before.timings.iter().find(same)?;
        Some((old.duration.as_ref()?, new.duration.as_ref()?, new))
    });
    pairs
        .map(|(old, new, timing)| {
            let baseline = format!("{} before", timing.name);
            versus_series((&baseline, old), (&timing.name, new), &bar)
        })
        .collect()
}

/// What a verdict needs.
pub(super) fn bar(arguments: &Arguments) -> Bar {
    Bar { threshold_rel: arguments.threshold / 100.0, seed: arguments.seed, ..Bar::default() }
}
