//! The tables of kernels and of planted controls.

use std::collections::BTreeSet;

use assay_record::{CaseName, Gate, GateResult, KernelResult, Outcome, Report};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};

/// A table with a line under its header and no other lines.
pub(crate) fn table(header: &[String]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    for line in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        table.set_style(line, '─');
    }
    table.set_header(header);
    table
}

/// The text of a table without the blanks that end its lines.
pub(crate) fn text(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn is_control(kernel: &KernelResult) -> bool {
    kernel.control_for.is_some()
}

/// One line per kernel, one column per gate.
pub(super) fn kernels(report: &Report, gates: &[Gate]) -> String {
    let kernels: Vec<&KernelResult> =
        report.kernels.iter().filter(|kernel| !is_control(kernel)).collect();
    if kernels.is_empty() {
        return String::new();
    }
    let mut header = vec!["kernel".to_owned()];
    header.extend(gates.iter().map(Gate::to_string));
    header.push("time".to_owned());
    let mut table = table(&header);
    for kernel in kernels {
        let mut row = vec![kernel.kernel.clone()];
        row.extend(gates.iter().map(|gate| cell(kernel, *gate)));
        row.push(seconds(kernel.seconds));
        table.add_row(row);
    }
    if let Some(column) = table.column_mut(header.len() - 1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let legend = "A number is the worst error seen over the error proven possible; above 1 fails.";
    let measured = report.kernels.iter().flat_map(|kernel| &kernel.gates);
    let has_margin = measured.clone().any(|result| margin(result).is_some());
    if has_margin { text(&table) + "\n" + legend } else { text(&table) }
}

fn cell(kernel: &KernelResult, gate: Gate) -> String {
    match kernel.gate(gate) {
        None if kernel.error.is_some() => "ERROR".to_owned(),
        None => "-".to_owned(),
        Some(result) if result.outcome == Outcome::NotApplicable => "n/a".to_owned(),
        Some(result) => match margin(result) {
            Some(margin) => format!("{} {margin}", result.outcome),
            None => result.outcome.to_string(),
        },
    }
}

fn margin(result: &GateResult) -> Option<String> {
    result.margin.map(|margin| format!("{margin:.2}"))
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1} s")
}

/// One line per planted control: the gate it must fail, whether it did, and on what.
pub(super) fn controls(report: &Report) -> String {
    let controls: Vec<&KernelResult> =
        report.kernels.iter().filter(|kernel| is_control(kernel)).collect();
    if controls.is_empty() {
        return String::new();
    }
    let header = ["planted control", "must fail", "is", "caught by"].map(str::to_owned);
    let mut table = table(&header);
    for control in controls {
        let gate = control.control_for.map(|gate| gate.to_string()).unwrap_or_default();
        table.add_row([control.kernel.clone(), gate, state(control), evidence(control)]);
    }
    text(&table)
}

fn state(control: &KernelResult) -> String {
    let outcome = control.control_for.and_then(|gate| control.gate(gate));
    match outcome.map(|result| result.outcome) {
        _ if control.error.is_some() => "ERROR".to_owned(),
        Some(Outcome::Fail) => "red".to_owned(),
        Some(Outcome::Pass) => "GREEN".to_owned(),
        Some(outcome) => outcome.to_string(),
        None => "-".to_owned(),
    }
}

/// The first finding of a red control, and at how many other shapes it was caught.
fn evidence(control: &KernelResult) -> String {
    let result = control.control_for.and_then(|gate| control.gate(gate));
    let Some(result) = result.filter(|_| control.is_red()) else { return String::new() };
    let failed = result.findings.iter().filter(|finding| finding.outcome == Outcome::Fail);
    let cases: Vec<&CaseName> = failed.map(|finding| &finding.case).collect();
    let Some(first) = cases.first() else { return String::new() };
    if first.gate == Gate::Limits {
        return chips(&cases);
    }
    let dims: Vec<String> =
        first.dims.iter().map(|(name, size)| format!("{name}={size}")).collect();
    let shapes: BTreeSet<&[(String, i64)]> = cases.iter().map(|case| &case.dims[..]).collect();
    let more = match shapes.len() {
        0 | 1 => String::new(),
        2 => ", 1 more shape".to_owned(),
        count => format!(", {} more shapes", count - 1),
    };
    format!("{} {}{more}", dims.join(","), first.fill)
}

/// The chips that a control of gate 5 was caught on.
fn chips(cases: &[&CaseName]) -> String {
    const SHOWN: usize = 6;
    let mut chips: Vec<&str> = cases.iter().map(|case| case.fill.as_str()).collect();
    chips.dedup();
    let more = chips.len().saturating_sub(SHOWN);
    chips.truncate(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    chips.join(", ") + &more
}
