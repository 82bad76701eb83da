//! The one line that says how a run ended.

use std::fmt::Write as _;

use assay_record::{FaultVerdict, Gate, Outcome, Report, Shard};

/// The summary of a run, as the last line of its output.
pub(super) fn summary_line(report: &Report, gates: &[Gate]) -> String {
    if let Some(shard) = &report.shard {
        return part_line(report, shard);
    }
    let summary = &report.summary;
    let limits = if gates.contains(&Gate::Limits) {
        limits(report)
    } else {
        "limits not checked".to_owned()
    };
    let mut line = format!(
        "SUMMARY {}: {} of {} kernels pass {}, {} known findings, {} of {} controls red, \
         {} unproven, {} unsupported, {limits}",
        device(report),
        summary.passing,
        summary.kernels,
        gate_range(gates),
        summary.known,
        summary.controls_red,
        summary.controls,
        summary.unproven,
        summary.unsupported,
    );
    if summary.skipped > 0 {
        let _ = write!(line, ", {} skipped", summary.skipped);
    }
    if !report.faults.is_empty() {
        let _ = write!(line, ", {}", faults(report));
    }
    line
}

/// The launches that do not fit, and the kernels of which nobody knows.
fn limits(report: &Report) -> String {
    let own = report.kernels.iter().filter(|kernel| kernel.control_for.is_none());
    let unknown = own.filter_map(|kernel| kernel.gate(Gate::Limits));
    let unknown = unknown.filter(|gate| gate.outcome == Outcome::NotApplicable).count();
    let problems = report.summary.limit_problems;
    match unknown {
        0 => format!("{problems} limit problems"),
        1 => format!("{problems} limit problems, limits of 1 kernel unknown"),
        _ => format!("{problems} limit problems, limits of {unknown} kernels unknown"),
    }
}

/// What stands in the summary's place where only a part of the run was done: whatever it counts is
/// no statement about any kernel as a whole.
fn part_line(report: &Report, shard: &Shard) -> String {
    let kernels = report.kernels.iter().filter(|kernel| kernel.control_for.is_none());
    let gates: Vec<Outcome> = kernels.flat_map(|k| &k.gates).map(|gate| gate.outcome).collect();
    let asks = |outcome: &&Outcome| **outcome != Outcome::NotApplicable;
    let passed = gates.iter().filter(|outcome| **outcome == Outcome::Pass).count();
    let mut line = format!(
        "PART {} on {}, no summary: {passed} of {} gates of kernels pass, {} of {} controls red",
        shard.part,
        device(report),
        gates.iter().filter(asks).count(),
        report.summary.controls_red,
        report.summary.controls,
    );
    if !report.faults.is_empty() {
        let _ = write!(line, ", {}", faults(report));
    }
    line + "; `assay merge` makes the summary of all parts"
}

/// How many faults were caught, and what became of the others.
fn faults(report: &Report) -> String {
    let count = |verdict| report.faults.iter().filter(|fault| fault.verdict == verdict).count();
    let mut text =
        format!("{} of {} faults caught", count(FaultVerdict::Caught), report.faults.len());
    let others = [
        (FaultVerdict::Equivalent, "equivalent"),
        (FaultVerdict::Elsewhere, "caught by the wrong gate"),
        (FaultVerdict::Survived, "survived"),
        (FaultVerdict::Unjudged, "unjudged"),
    ];
    for (verdict, word) in others {
        if count(verdict) > 0 {
            let _ = write!(text, ", {} {word}", count(verdict));
        }
    }
    text
}

/// The device as its line names it: the emulator by itself, a GPU by its name.
fn device(report: &Report) -> &str {
    let device = &report.device;
    if device.backend == "emulator" { &device.backend } else { &device.name }
}

/// Gates by their numbers: `gates 1 to 4`, `gates 1 and 3`, `gate 2`, `no gate`.
pub(super) fn gate_range(gates: &[Gate]) -> String {
    let numbers: Vec<u32> = gates.iter().map(|gate| gate.number()).collect();
    let consecutive = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match numbers[..] {
        [] => "no gate".to_owned(),
        [one] => format!("gate {one}"),
        [first, .., last] if consecutive && numbers.len() > 2 => format!("gates {first} to {last}"),
        [ref rest @ .., last] => {
            let rest: Vec<String> = rest.iter().map(u32::to_string).collect();
            format!("gates {} and {last}", rest.join(", "))
        }
    }
}
