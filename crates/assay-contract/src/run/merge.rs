//! Puts the reports of all parts of a run together again.

use std::collections::BTreeMap;

use assay_record::{ExitCode, FaultResult, KernelResult, Part, Report, Shard, Summary};
use thiserror::Error;

use super::faults::{discriminate, faults_exit};
use super::{KernelOutcome, summarize};

/// Why reports do not make one run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// No report at all.
    #[error("there is no report to merge")]
    Nothing,
    /// A report of a whole run.
    #[error("{0} is the report of a whole run, no part of one")]
    Whole(String),
    /// Two reports that do not belong together.
    #[error(
        "{first} and {other} are of different runs: \
         the {what} is {one} in the one, {two} in the other"
    )]
    Different {
        /// The first report.
        first: String,
        /// The report that differs.
        other: String,
        /// What differs.
        what: &'static str,
        /// The first report's.
        one: String,
        /// The other's.
        two: String,
    },
    /// Two reports of one part.
    #[error("{first} and {other} are both part {part}")]
    Twice {
        /// The first report.
        first: String,
        /// The other.
        other: String,
        /// The part.
        part: Part,
    },
    /// A part without a report.
    #[error("part {0} is missing")]
    Missing(Part),
    /// A kernel or fault that the whole run has and no part.
    #[error("no part holds `{0}`, which the run has")]
    Lost(String),
}

/// One report and the name that it goes by in messages.
pub type Named = (String, Report);

/// The report that the unsharded run would have written, apart from its date, its command and its
/// times. Its date is the earliest.
///
/// # Errors
/// Reports of different runs, of whole ones, of a part twice, or not of every part.
pub fn merge(reports: Vec<Named>) -> Result<Report, MergeError> {
    let shard = check(&reports)?;
    let mut merged =
        reports.first().map(|(_, report)| report.clone()).ok_or(MergeError::Nothing)?;
    let mut kernels: BTreeMap<String, KernelResult> = BTreeMap::new();
    let mut faults: BTreeMap<String, FaultResult> = BTreeMap::new();
    let mut exit = ExitCode::Holds;
    for (_, report) in reports {
        exit = exit.worst(ExitCode::from_code(report.exit_code).unwrap_or(ExitCode::Internal));
        merged.date = merged.date.min(report.date);
        faults.extend(report.faults.into_iter().map(|fault| (fault.fault.clone(), fault)));
        for kernel in report.kernels {
            join(&mut kernels, kernel);
        }
    }
    merged.kernels = in_order(&shard.kernels, kernels)?;
    merged.faults = in_order(&shard.faults, faults)?;
    merged.discrimination = discriminate(&merged.kernels, &merged.faults);
    merged.summary = summary(&merged.kernels);
    merged.exit_code = exit.worst(faults_exit(&merged.faults, &merged.discrimination)).code();
    merged.shard = None;
    Ok(merged)
}

/// The gates that the run of these reports asks.
pub fn merged_gates(reports: &[Named]) -> Vec<assay_record::Gate> {
    let shard = reports.iter().find_map(|(_, report)| report.shard.as_ref());
    shard.map(|shard| shard.gates.clone()).unwrap_or_default()
}

/// Adds what one part found of a kernel to what others did.
fn join(kernels: &mut BTreeMap<String, KernelResult>, found: KernelResult) {
    let Some(kernel) = kernels.get_mut(&found.kernel) else {
        kernels.insert(found.kernel.clone(), found);
        return;
    };
    kernel.gates.extend(found.gates);
    kernel.gates.sort_by_key(|result| result.gate);
    kernel.error = kernel.error.take().or(found.error);
    kernel.build = kernel.build.take().or(found.build);
    kernel.seconds += found.seconds;
}

fn in_order<T>(names: &[String], mut found: BTreeMap<String, T>) -> Result<Vec<T>, MergeError> {
    let take = |name: &String| found.remove(name).ok_or_else(|| MergeError::Lost(name.clone()));
    names.iter().map(take).collect()
}

fn summary(kernels: &[KernelResult]) -> Summary {
    let outcome = |result: &KernelResult| KernelOutcome {
        skipped: result.is_skipped(),
        result: result.clone(),
        exit: ExitCode::Holds,
        hint: None,
    };
    summarize(&kernels.iter().map(outcome).collect::<Vec<_>>()).0
}

/// Makes sure that the reports are all parts of one run.
fn check(reports: &[Named]) -> Result<Shard, MergeError> {
    let (first, report) = reports.first().ok_or(MergeError::Nothing)?;
    let shard = report.shard.as_ref().ok_or_else(|| MergeError::Whole(first.clone()))?;
    let mut seen: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, other) in reports {
        let other_shard = other.shard.as_ref().ok_or_else(|| MergeError::Whole(name.clone()))?;
        same((first, report, shard), (name, other, other_shard))?;
        if let Some(first) = seen.insert(other_shard.part.index, name) {
            let (first, other) = (first.to_owned(), name.clone());
            return Err(MergeError::Twice { first, other, part: other_shard.part });
        }
    }
    let of = shard.part.of;
    match (1..=of).find(|index| !seen.contains_key(index)) {
        Some(index) => Err(MergeError::Missing(Part { index, of })),
        None => Ok(shard.clone()),
    }
}

type At<'a> = (&'a str, &'a Report, &'a Shard);

/// Refuses a report that differs from the first in what all parts share.
fn same((first, a, a_shard): At<'_>, (other, b, b_shard): At<'_>) -> Result<(), MergeError> {
    let device = |report: &Report| {
        let device = &report.device;
        let driver = device.driver.as_deref().unwrap_or("no driver");
        format!("{} ({}, {}, {driver})", device.name, device.backend, device.architecture)
    };
    let count = |shard: &Shard| {
        format!("{} of {} kernels, {} faults", shard.suite, shard.kernels.len(), shard.faults.len())
    };
    let facts: [(&'static str, String, String); 5] = [
        ("version", a.assay_version.clone(), b.assay_version.clone()),
        ("seed", a.seed.to_string(), b.seed.to_string()),
        ("device", device(a), device(b)),
        ("number of parts", a_shard.part.of.to_string(), b_shard.part.of.to_string()),
        ("suite", count(a_shard), count(b_shard)),
    ];
    match facts.into_iter().find(|(_, one, two)| one != two) {
        None => Ok(()),
        Some((what, one, two)) => {
            let (first, other) = (first.to_owned(), other.to_owned());
            Err(MergeError::Different { first, other, what, one, two })
        }
    }
}
