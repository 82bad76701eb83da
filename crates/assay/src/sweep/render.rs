//! A sweep as a person reads it.

use std::fmt::Write as _;

use assay_record::{Configuration, Number, RowStatus, SweepRecord, SweepRow, SweepVerdict};
use comfy_table::CellAlignment;

use crate::render::{table, table_text};

/// What would be tried.
pub(super) fn configurations(all: &[Configuration], excluded: u64) -> String {
    let mut text: String = all.iter().map(|one| words(one) + "\n").collect();
    let _ = writeln!(text, "{} configurations, {excluded} ruled out by constraints", all.len());
    text
}

/// `block=128 items=4`
fn words(configuration: &Configuration) -> String {
    let words: Vec<String> = configuration.iter().map(|(k, v)| format!("{k}={v}")).collect();
    words.join(" ")
}

/// Every row, then the verdict.
pub(super) fn sweep(record: &SweepRecord) -> String {
    let driver = record.driver.as_deref().map(|driver| format!(", {driver}")).unwrap_or_default();
    let sizes: Vec<String> = record.dims.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let mut text =
        format!("{} at {} on {}{driver}\n\n", record.kernel, sizes.join(","), record.device);
    let mut header: Vec<String> = record.axes.keys().cloned().collect();
    header.extend(["median us", "interval us", "n", "result"].map(str::to_owned));
    let mut table = table(&header);
    for row in &record.rows {
        table.add_row(line(record, row));
    }
    for column in 0..record.axes.len() + 3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text.push_str(&table_text(&table));
    text.push_str("\n\n");
    for note in &record.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text + &verdict(record)
}

fn line(record: &SweepRecord, row: &SweepRow) -> Vec<String> {
    let value = |axis: &String| row.configuration.get(axis).map_or(String::new(), i64::to_string);
    let mut line: Vec<String> = record.axes.keys().map(value).collect();
    let us = |ns: f64| format!("{:.5}", Number(ns / 1e3));
    line.push(row.median_ns.map_or("-".to_owned(), us));
    line.push(row.interval_ns.map_or("-".to_owned(), |(a, b)| format!("{} to {}", us(a), us(b))));
    line.push(row.duration_ns.len().to_string());
    let word = match row.status {
        RowStatus::Finalist => "final",
        RowStatus::Pruned => "pruned",
        RowStatus::Wrong => "FAIL",
        RowStatus::Refused => "UNSUPPORTED",
        RowStatus::Unreached => "not reached",
    };
    let cached = if row.from_cache { " (cached)" } else { "" };
    let reason: String = row.reason.lines().next().unwrap_or_default().chars().take(90).collect();
    line.push(format!("{word}{cached}: {reason}"));
    line
}

fn verdict(record: &SweepRecord) -> String {
    let tried = record.rows.len();
    let wrong = record.rows.iter().filter(|row| row.status == RowStatus::Wrong).count();
    let counts = format!(
        "{tried} configurations, {} ruled out by constraints, {wrong} wrong, {:.1} s",
        record.excluded, record.spent_s
    );
    match &record.verdict {
        SweepVerdict::Winner { configuration, lead } => {
            let lead = lead.map_or(String::new(), |lead| format!(", {:.1} % ahead", 100.0 * lead));
            format!("SUMMARY winner of both finals: {}{lead}; {counts}\n", words(configuration))
        }
        SweepVerdict::Ambiguous { configurations, reason } => {
            let all: Vec<String> = configurations.iter().map(words).collect();
            format!("SUMMARY AMBIGUOUS, {reason}: {}; {counts}\n", all.join(" or "))
        }
        SweepVerdict::Nothing { reason } => format!("SUMMARY no winner: {reason}; {counts}\n"),
    }
}
