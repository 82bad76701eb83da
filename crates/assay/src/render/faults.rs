//! The tables of kernels broken on purpose: what caught each, and by how much.

use std::collections::{BTreeMap, BTreeSet};

use assay_record::{Discrimination, FaultResult, FaultVerdict, Gate, Number, Report};

use super::View;
use super::problems::{base_command, indented, quoted};
use super::tables::{table, text};
use crate::faults::word;

/// One line per fault, one column per gate.
pub(super) fn faults(report: &Report, view: &View<'_>) -> String {
    if report.faults.is_empty() {
        return String::new();
    }
    let mut header = ["fault", "kind", "must fail"].map(str::to_owned).to_vec();
    let gates: Vec<Gate> = view.gates.iter().copied().filter(|g| *g != Gate::Limits).collect();
    header.extend(gates.iter().map(ToString::to_string));
    header.push("is".to_owned());
    let mut table = table(&header);
    for fault in &report.faults {
        let mut row = vec![fault.fault.clone(), fault.kind.clone(), fault.gate.to_string()];
        row.extend(gates.iter().map(|gate| cell(fault, *gate)));
        row.push(fault.verdict.name().to_owned());
        table.add_row(row);
    }
    text(&table)
}

/// A gate's word, with the margin in the gate that must catch the fault.
fn cell(fault: &FaultResult, gate: Gate) -> String {
    let word = word(fault, gate);
    match fault.margin.filter(|_| gate == fault.gate) {
        Some(margin) => format!("{word} {margin:.2}"),
        None => word.to_owned(),
    }
}

/// One line per kernel with faults: its own margin and the nearest fault's.
pub(super) fn discrimination(report: &Report) -> String {
    let mut nearest: BTreeMap<&str, &Discrimination> = BTreeMap::new();
    for one in &report.discrimination {
        let kept = nearest.entry(&one.kernel).or_insert(one);
        if one.ratio.0 < kept.ratio.0 || one.ratio.0.is_nan() {
            *kept = one;
        }
    }
    if nearest.is_empty() {
        return String::new();
    }
    let header = ["kernel", "correct", "nearest fault that a bound catches", "broken", "apart"];
    let mut table = table(&header.map(str::to_owned));
    for kernel in &report.kernels {
        let Some(one) = nearest.get(kernel.kernel.as_str()) else { continue };
        let fault = format!("{} ({})", one.fault, one.gate);
        let margin = |margin: Number| format!("{margin:.2}");
        let apart = format!("{}{}", times(one), if one.is_close() { " (close)" } else { "" });
        let (correct, broken) = (margin(one.correct), margin(one.broken));
        table.add_row([one.kernel.clone(), correct, fault, broken, apart]);
    }
    let mut lines = vec![text(&table)];
    lines.push(
        "A fault's margin is the worst of all cases of the gate that must catch it.".to_owned(),
    );
    lines.extend(without_margin(report));
    lines.extend(report.discrimination.iter().filter_map(explained));
    lines.join("\n")
}

fn times(one: &Discrimination) -> String {
    // The correct kernel has no error at all, or the fault breaks a bound of none.
    if one.ratio.0.is_infinite() { "beyond all".to_owned() } else { format!("{:.2}x", one.ratio) }
}

/// The kernels whose faults are caught by classes, bytes or crashes only.
fn without_margin(report: &Report) -> Option<String> {
    let names: BTreeSet<&str> = report.faults.iter().map(|fault| fault.of.as_str()).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.retain(|name| report.discrimination.iter().all(|one| one.kernel != *name));
    (!names.is_empty())
        .then(|| format!("No margin, since no fault is caught by a bound: {}.", names.join(", ")))
}

fn explained(one: &Discrimination) -> Option<String> {
    let (fault, times) = (&one.fault, times(one));
    match &one.close {
        Some(why) if one.is_close() => Some(format!("close: {fault} ({times}): {why}")),
        Some(_) => Some(format!("close: {fault} is {times} apart, so its `close` can go")),
        None => None,
    }
}

/// A block for each fault that the run has a problem with, and for each that is near its kernel
/// for no stated reason.
pub(super) fn problems(report: &Report, view: &View<'_>) -> String {
    let verdicts = report.faults.iter().filter(|fault| fault.verdict.is_problem());
    let verdicts = verdicts.map(|fault| verdict(fault, view));
    let near = report.discrimination.iter().filter(|one| one.is_problem());
    verdicts.chain(near.map(too_near)).collect::<Vec<_>>().join("\n\n")
}

fn verdict(fault: &FaultResult, view: &View<'_>) -> String {
    let says = match fault.verdict {
        FaultVerdict::Elsewhere => {
            let caught = fault.gates.iter().filter(|result| fault.is_caught_by(result.gate));
            let caught: Vec<String> = caught.map(|result| result.gate.to_string()).collect();
            format!("gate {} must catch it, and only {} did", fault.gate, caught.join(", "))
        }
        FaultVerdict::Survived => {
            format!("no gate caught it; {} must", fault.gate)
        }
        _ => format!("gate {} must catch it, and could not judge it", fault.gate),
    };
    let mut lines = vec![
        format!("{} {} ({} in {})", fault.verdict.name(), fault.fault, fault.kind, fault.of),
        fault.what.clone(),
        says,
    ];
    lines.extend(fault.remark.as_ref().map(|remark| indented(remark)));
    lines.push(format!("again: {} --only {}", base_command(view), quoted(&fault.fault)));
    lines.join("\n  ")
}

fn too_near(one: &Discrimination) -> String {
    format!(
        "CLOSE {}: {}\n  in gate {} its margin is {:.3} and the correct kernel's is {:.3}, less \
         than {} times apart\n  state why in the fault's `close`, or look for what the bound gives \
         away",
        one.kernel,
        one.fault,
        one.gate,
        one.broken,
        one.correct,
        Discrimination::LEAST_RATIO,
    )
}
