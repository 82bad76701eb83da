//! A report as text: a table of kernels, a table of controls, every problem, and the summary.

mod faults;
mod limits;
mod matrix;
mod notes;
mod problems;
mod summary;
pub(crate) mod tables;

use std::path::{Path, PathBuf};

use assay_record::{Gate, Report};

pub(crate) use matrix::matrix;
use summary::summary_line;
pub(crate) use tables::{table, text as table_text};

/// What a report does not hold, and its reader needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The gates that were asked for.
    pub(crate) gates: &'a [Gate],
    /// The device, unless it is the default one.
    pub(crate) device: Option<&'a str>,
    /// The file of inputs that was given.
    pub(crate) inputs: Option<&'a Path>,
    /// The manifests that were given.
    pub(crate) manifests: &'a [PathBuf],
    /// The folder of the faults' builds, where faults were asked for.
    pub(crate) faults: Option<&'a Path>,
    /// Whether every note is shown.
    pub(crate) notes: bool,
}

/// The whole report as a person reads it; its last line is the summary.
pub(crate) fn report(report: &Report, view: &View<'_>) -> String {
    let sections = [
        heading(report),
        tables::kernels(report, view.gates),
        limits::used(report),
        tables::controls(report),
        faults::faults(report, view),
        faults::discrimination(report),
        problems::problems(report, view),
        faults::problems(report, view),
        problems::smallest(report, view),
        if view.notes { limits::occupancies(report) } else { String::new() },
        if view.notes { notes::all(report) } else { notes::count(report) },
        summary_line(report, view.gates),
    ];
    let shown = sections.into_iter().filter(|section| !section.is_empty());
    shown.collect::<Vec<_>>().join("\n\n") + "\n"
}

fn heading(report: &Report) -> String {
    let device = &report.device;
    let driver = device.driver.as_ref().map(|driver| format!(", {driver}")).unwrap_or_default();
    let name = if device.name == device.backend { "" } else { device.name.as_str() };
    let space = if name.is_empty() { "" } else { " " };
    format!(
        "assay {} on {}{space}{name} ({}{driver}), seed {}",
        report.assay_version, device.backend, device.architecture, report.seed
    )
}

#[cfg(test)]
mod tests;
