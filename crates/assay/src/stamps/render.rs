//! Stamps as a person reads them.

use std::fmt::Write as _;

use assay_record::{Number, PhaseStatistics, StampRecord};
use comfy_table::CellAlignment;

use crate::render::{table, table_text};

/// A line for each phase, what a stamp costs, and what is not as it should be.
pub(super) fn stamps(record: &StampRecord) -> String {
    let driver = record.driver.as_deref().map(|driver| format!(", {driver}")).unwrap_or_default();
    let mut text =
        format!("{} on {}{driver}: {} lanes\n\n", record.kernel, record.device, record.lanes.len());
    let header = ["phase", "spans", "cycles", "p5", "p95", "most", "of all"];
    let mut table = table(&header.map(str::to_owned));
    for phase in &record.statistics {
        table.add_row(row(phase));
    }
    for column in 1..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text.push_str(&table_text(&table));
    text.push_str("\n\n");
    if let Some(cost) = record.overhead {
        let _ = writeln!(
            text,
            "one stamp costs {} cycles (p5 {}, p95 {}, n = {}), which every span includes once",
            Number(cost.cycles_median),
            Number(cost.cycles_p5),
            Number(cost.cycles_p95),
            cost.samples
        );
    }
    if let Some(bytes) = record.equal_output_bytes {
        let _ = writeln!(
            text,
            "all {bytes} bytes of its outputs are those of the build that is not stamped"
        );
    }
    match record.sm_clock_mhz {
        Some(clock) => {
            let _ = writeln!(text, "SM clock {clock:.0} MHz, by the longest lane");
        }
        None => text.push_str("no lane lasted the 10 us that its SM clock takes to tell\n"),
    }
    for warning in &record.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

fn row(phase: &PhaseStatistics) -> Vec<String> {
    let cycles = |cycles: f64| format!("{:.5}", Number(cycles));
    vec![
        phase.phase.clone(),
        phase.spans.to_string(),
        cycles(phase.cycles_median),
        cycles(phase.cycles_p5),
        cycles(phase.cycles_p95),
        cycles(phase.cycles_max),
        format!("{:.1} %", 100.0 * phase.share),
    ]
}
