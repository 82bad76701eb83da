//! A report as text: a table of kernels, a table of controls, every problem, and the summary.

mod notes;
mod problems;
mod summary;
mod tables;

use assay_record::Report;

pub(crate) use problems::Repro;
use summary::summary_line;

/// The whole report as a person reads it; its last line is the summary.
pub(crate) fn report(report: &Report, repro: &Repro<'_>, with_notes: bool) -> String {
    let sections = [
        heading(report),
        tables::kernels(report),
        tables::controls(report),
        problems::problems(report, repro),
        if with_notes { notes::all(report) } else { notes::count(report) },
        summary_line(report),
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
