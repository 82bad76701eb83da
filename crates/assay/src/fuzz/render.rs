//! What fuzzing found, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use assay_record::{Comparison, FuzzCandidate, FuzzFailure, FuzzReport, FuzzVerdict, Outcome};
use comfy_table::CellAlignment;

use super::FuzzArguments;
use crate::render::{table, table_text as text};

/// Failures that are shown of one candidate.
const SHOWN: usize = 3;

/// The whole report.
pub(crate) fn report(report: &FuzzReport, arguments: &FuzzArguments) -> String {
    let (controls, own): (Vec<_>, Vec<_>) =
        report.candidates.iter().partition(|candidate| candidate.control_for.is_some());
    let mut sections = vec![candidates(&own), planted(&controls)];
    let shown = own
        .iter()
        .copied()
        .chain(controls.iter().copied().filter(|c| arguments.repro.is_some() || c.is_problem()));
    sections.extend(shown.map(|candidate| failures(candidate, arguments)));
    sections.push(notes(&report.candidates));
    sections.push(huge(&own));
    sections.push(skipped(&own));
    sections.push(budget(report, &controls));
    sections.push(summary(report));
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n") + "\n"
}

/// One line for each candidate.
fn candidates(own: &[&FuzzCandidate]) -> String {
    if own.is_empty() {
        return String::new();
    }
    let header =
        ["candidate", "verdict", "cases", "passed", "failed", "not run", "margin", "2^31", "time"];
    let mut table = table(&header.map(str::to_owned));
    for found in own {
        let counts = &found.counts;
        let rest = counts.cases - counts.passed - counts.failed;
        let margin = found.margin.map_or("-".to_owned(), |margin| format!("{margin:.2}"));
        table.add_row([
            found.candidate.clone(),
            found.outcome.to_string(),
            counts.cases.to_string(),
            counts.passed.to_string(),
            counts.failed.to_string(),
            rest.to_string(),
            margin,
            huge_cell(found),
            format!("{:.1} s", found.seconds),
        ]);
    }
    for column in 2..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text(&table)
}

/// What became of the cases of 2^31 elements: `6 pass`, `1 FAULT`, `skipped`.
fn huge_cell(found: &FuzzCandidate) -> String {
    let mut counts: BTreeMap<FuzzVerdict, u32> = BTreeMap::new();
    for case in &found.huge {
        *counts.entry(case.verdict).or_default() += 1;
    }
    let words = counts.iter().map(|(verdict, count)| format!("{count} {}", verdict.name()));
    let words: Vec<String> = words.collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

/// One line for each planted control: what is wrong with it, and the smallest case that shows it.
fn planted(controls: &[&FuzzCandidate]) -> String {
    if controls.is_empty() {
        return String::new();
    }
    let header = ["planted control", "found", "what is wrong", "smallest case"];
    let mut table = table(&header.map(str::to_owned));
    for found in controls {
        let word = if found.is_problem() { "MISSED" } else { "found" };
        let smallest = found.failures.first().map(|failure| {
            let case = failure.smallest.as_ref().unwrap_or(&failure.case);
            case.recipe.to_string()
        });
        table.add_row([
            found.candidate.clone(),
            word.to_owned(),
            found.control_for.clone().unwrap_or_default(),
            smallest.unwrap_or_default(),
        ]);
    }
    text(&table)
}

/// A candidate's failures, each with what repeats it.
fn failures(found: &FuzzCandidate, arguments: &FuzzArguments) -> String {
    let mut lines = String::new();
    match found.outcome {
        Outcome::Fail => {}
        Outcome::Unproven | Outcome::Unsupported => {
            return format!("{} {}: {}", found.outcome, found.candidate, found.reason);
        }
        _ => return lines,
    }
    for failure in found.failures.iter().take(SHOWN) {
        lines += &one_failure(found, failure, arguments);
    }
    lines.trim_end().to_owned()
}

fn one_failure(found: &FuzzCandidate, failure: &FuzzFailure, arguments: &FuzzArguments) -> String {
    let case = failure.smallest.as_ref().unwrap_or(&failure.case);
    let mut lines = format!("FAIL {}: {} {}\n", found.candidate, case.verdict.name(), case.reason);
    let _ = writeln!(lines, "  case      {}", failure.case.recipe);
    if failure.smallest.is_some() {
        let runs = failure.shrink_runs;
        let _ = writeln!(lines, "  smallest  {} (after {runs} runs)", case.recipe);
    }
    if let Some(comparison) = &case.comparison {
        lines += &how_wrong(comparison);
    }
    let _ = writeln!(lines, "  repeat    {} --repro {}", command(arguments), case.recipe);
    lines
}

/// How many elements are wrong, from where on, in which way, and the worst of them.
fn how_wrong(comparison: &Comparison) -> String {
    let place = |at: &[u64]| {
        let words: Vec<String> = at.iter().map(ToString::to_string).collect();
        format!("[{}]", words.join(", "))
    };
    let classes = comparison.census.iter().filter(|pair| pair.reference != pair.candidate);
    let others: u64 = classes.map(|pair| pair.count).sum();
    let wrong = comparison.outside + others;
    let mut line = format!("  wrong     {wrong} of {}", comparison.compared);
    if let Some(first) = &comparison.first_outside {
        let _ = write!(line, ", the first at {}", place(first));
    }
    if comparison.ulp.max > 0 {
        let _ = write!(line, ", up to {} ulp off", comparison.ulp.max);
    }
    line.push('\n');
    let worst = comparison.worst_ulp.iter().filter(|element| element.ulp != Some(0));
    let words: Vec<String> = worst
        .map(|element| {
            let distance = element.ulp.map_or(String::new(), |ulp| format!(" ({ulp} ulp)"));
            let (got, right) = (element.candidate.0, element.reference.0);
            format!("{} {got:e} for {right:e}{distance}", place(&element.coordinates))
        })
        .collect();
    if !words.is_empty() {
        let _ = writeln!(line, "  worst     {}", words.join("; "));
    }
    line
}

/// What else there is to say of candidates.
fn notes(candidates: &[FuzzCandidate]) -> String {
    let all = candidates.iter().flat_map(|found| &found.notes);
    all.map(|note| format!("note: {note}")).collect::<Vec<_>>().join("\n")
}

/// The command that has the same kernels on the same device.
fn command(arguments: &FuzzArguments) -> String {
    let mut words = vec!["assay fuzz".to_owned()];
    if arguments.device != "emulator" {
        words.push(format!("--device {}", arguments.device));
    }
    words.extend(arguments.manifest.iter().map(|path| format!("--manifest {}", path.display())));
    if arguments.isolate {
        words.push("--isolate".to_owned());
    }
    words.join(" ")
}

/// Every case of 2^31 elements and more: those that ran by name, those that did not by reason.
fn huge(own: &[&FuzzCandidate]) -> String {
    let cases: Vec<_> = own.iter().flat_map(|found| &found.huge).collect();
    if cases.is_empty() {
        return String::new();
    }
    let mut lines = "2^31 elements and more:\n".to_owned();
    for case in cases.iter().filter(|case| case.verdict.has_run()) {
        let (name, seconds) = (case.verdict.name(), case.seconds);
        let _ = writeln!(
            lines,
            "  {name}  {} ({} elements, {seconds:.1} s)",
            case.recipe, case.elements
        );
    }
    let mut reasons: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for case in cases.iter().filter(|case| !case.verdict.has_run()) {
        let key = (case.verdict.name(), first_line(&case.reason));
        reasons.entry(key).or_default().push(&case.recipe.candidate);
    }
    for ((verdict, reason), names) in reasons {
        let _ = writeln!(lines, "  {verdict}  {reason}: {}", names.join(", "));
    }
    lines.trim_end().to_owned()
}

/// A reason without the lines of source that it may show.
fn first_line(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default()
}

/// What else was not run, by reason.
fn skipped(own: &[&FuzzCandidate]) -> String {
    let mut reasons: BTreeMap<&str, (u64, String)> = BTreeMap::new();
    for skip in own.iter().flat_map(|found| &found.skipped) {
        let new = || (0, skip.first.to_string());
        reasons.entry(first_line(&skip.reason)).or_insert_with(new).0 += skip.cases;
    }
    if reasons.is_empty() {
        return String::new();
    }
    let mut lines = "not run:\n".to_owned();
    for (reason, (count, first)) in reasons {
        let _ = writeln!(lines, "  {count:>5}  {reason}, such as {first}");
    }
    lines.trim_end().to_owned()
}

/// What a budget came to: what was asked for, and what it took.
fn budget(report: &FuzzReport, controls: &[&FuzzCandidate]) -> String {
    let (Some(asked), Some(took)) = (report.budget_s, report.seconds) else {
        return String::new();
    };
    let controls: f64 = controls.iter().map(|found| found.seconds).sum();
    let all: f64 = report.candidates.iter().map(|found| found.seconds).sum();
    format!(
        "budget: {asked} s asked for, {took:.1} s taken; of {all:.1} s of all candidates, several \
         at a time, {controls:.1} s for the planted controls, which run whatever it is"
    )
}

fn summary(report: &FuzzReport) -> String {
    let (summary, device) = (&report.summary, &report.device);
    let cases = &summary.cases;
    format!(
        "SUMMARY {} ({}): {} of {} candidates hold; of {} cases {} passed, {} failed, {} refused, \
         {} unproven, {} unsupported, {} not run; {} of {} controls found; 2^31 elements: {} run, \
         {} skipped; seed {}",
        device.name,
        device.architecture,
        summary.passing,
        summary.candidates,
        cases.cases,
        cases.passed,
        cases.failed,
        cases.refused,
        cases.unproven,
        cases.unsupported,
        cases.skipped,
        summary.controls_found,
        summary.controls,
        summary.huge_run,
        summary.huge_skipped,
        report.seed
    )
}
