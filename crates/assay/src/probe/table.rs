//! A dossier as a person reads it.

use std::fmt::Write as _;

use assay_measure::probe::Quantity;
use assay_record::{Conditions, Dossier, Entry, EntryStatus};
use comfy_table::CellAlignment;

use crate::render::{table, table_text};

/// The device, a line for each entry, and a line for each that has no value.
pub(super) fn dossier(dossier: &Dossier) -> String {
    let header = ["entry", "value", "unit", "p5", "p95", "n", "SM MHz", "of limit", "confidence"];
    let mut table = table(&header.map(str::to_owned));
    for entry in &dossier.entries {
        table.add_row(row(entry));
    }
    for column in 1..header.len() {
        if let Some(column) = table.column_mut(column).filter(|_| column != 2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = heading(dossier) + "\n\n" + &table_text(&table) + "\n";
    for entry in dossier.entries.iter().filter(|entry| entry.reason.is_some()) {
        let word = word(entry.status);
        let reason = entry.reason.as_deref().unwrap_or_default();
        let _ = write!(text, "\n{word} {}: {reason}", entry.name);
    }
    let unsettled = |entry: &&Entry| entry.confidence_reason.contains("clock never settled");
    for entry in dossier.entries.iter().filter(unsettled) {
        let _ = write!(text, "\nUNSTABLE {}: {}", entry.name, entry.confidence_reason);
    }
    text.push_str("\n\n");
    text + &summary(dossier) + "\n"
}

/// A line for each quantity.
pub(super) fn quantities(quantities: &[&Quantity]) -> String {
    let mut table = table(&["quantity", "unit", "method"].map(str::to_owned));
    for quantity in quantities {
        table.add_row([quantity.name, quantity.unit, quantity.method]);
    }
    table_text(&table) + "\n"
}

fn word(status: EntryStatus) -> &'static str {
    match status {
        EntryStatus::Measured => "PASS",
        EntryStatus::Unsupported => "UNSUPPORTED",
        EntryStatus::Failed => "FAIL",
    }
}

fn row(entry: &Entry) -> Vec<String> {
    let (scale, unit) = scaled(entry);
    let number = |value: Option<f64>| match value {
        Some(value) => format!("{:.4}", assay_record::Number(value / scale)),
        None => "-".to_owned(),
    };
    let value = match entry.status {
        EntryStatus::Measured => number(entry.value),
        status => word(status).to_owned(),
    };
    let part =
        entry.part_of_limit().map_or("-".to_owned(), |part| format!("{:.1} %", 100.0 * part));
    let measured = entry.status == EntryStatus::Measured;
    vec![
        entry.name.clone(),
        value,
        unit,
        number(entry.p5),
        number(entry.p95),
        if measured { entry.samples.to_string() } else { "-".to_owned() },
        entry.sm_clock_mhz.map_or("-".to_owned(), |clock| format!("{clock:.0}")),
        part,
        if measured { format!("{:.2}", entry.confidence) } else { "-".to_owned() },
    ]
}

/// What to divide a value by for reading, and the unit that it then has.
fn scaled(entry: &Entry) -> (f64, String) {
    let unit = entry.unit.as_str();
    let large = entry.value.unwrap_or(0.0).abs();
    if unit == "bytes" && large >= 1024.0 {
        return (1024.0 * 1024.0, "MiB".to_owned());
    }
    if !unit.ends_with("/s") {
        return (1.0, unit.to_owned());
    }
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let found = prefixes.into_iter().find(|(scale, _)| large >= *scale);
    let (scale, prefix) = found.unwrap_or((1.0, ""));
    (scale, format!("{prefix}{unit}"))
}

fn heading(dossier: &Dossier) -> String {
    let device = &dossier.device;
    let driver = device.driver.as_ref().map(|driver| format!(", {driver}")).unwrap_or_default();
    let mut text = format!(
        "assay {} probe{} of {} ({}{driver}), {} multiprocessors, {} GiB",
        dossier.assay_version,
        if dossier.quick { " --quick" } else { "" },
        device.name,
        device.architecture,
        device.multiprocessors,
        device.memory_bytes >> 30,
    );
    for (when, state) in [("before", &dossier.before), ("after", &dossier.after)] {
        if let Some(state) = state {
            let _ = write!(text, "\n{when}: {}", conditions(state));
        }
    }
    text
}

fn conditions(state: &Conditions) -> String {
    let number = |value: Option<f64>, unit: &str| value.map(|value| format!("{value:.0} {unit}"));
    let limit = match (state.power_limit_w, state.power_limit_default_w) {
        (Some(limit), Some(default)) if limit < default - 1.0 => {
            Some(format!("limit {limit:.0} W, LOWER than its default of {default:.0} W"))
        }
        (Some(limit), _) => Some(format!("limit {limit:.0} W")),
        _ => None,
    };
    let reasons = (!state.throttle.is_empty())
        .then(|| format!("clocks held down by: {}", state.throttle.join(", ")));
    let missing =
        (!state.missing.is_empty()).then(|| format!("not known: {}", state.missing.join(", ")));
    let parts = [
        number(state.sm_clock_mhz, "MHz"),
        number(state.memory_clock_mhz, "MHz memory"),
        number(state.power_w, "W"),
        limit,
        number(state.temperature_c, "C"),
        reasons,
        missing,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn summary(dossier: &Dossier) -> String {
    let count = |status| dossier.entries.iter().filter(|entry| entry.status == status).count();
    format!(
        "SUMMARY {} measured, {} unsupported, {} failed, in {:.1} s",
        count(EntryStatus::Measured),
        count(EntryStatus::Unsupported),
        count(EntryStatus::Failed),
        dossier.seconds
    )
}
