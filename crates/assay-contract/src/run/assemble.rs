//! From gate results to verdicts: known findings, controls, counts and the exit code.

use assay_record::{ExitCode, Gate, GateResult, KernelResult, Outcome, Summary};

use super::KernelOutcome;
use super::unit::UnitResult;
use crate::spec::Spec;
use crate::subject::RunError;

/// One kernel's outcome from the results of its gates.
pub(super) fn assemble(spec: &Spec, units: Vec<UnitResult>) -> KernelOutcome {
    // Folded from +0.0: the sum of no numbers is -0.0.
    let seconds = units.iter().fold(0.0, |sum, unit| sum + unit.seconds);
    // Gate 5 needs no device, so it is never left out.
    let mut on_device = units.iter().filter(|unit| unit.gate != Gate::Limits).peekable();
    let asked = on_device.peek().is_some() || units.is_empty();
    let skipped = asked && on_device.all(|unit| unit.skipped);
    let mut outcome = KernelOutcome {
        result: KernelResult {
            kernel: spec.name.clone(),
            control_for: spec.control_for,
            gates: Vec::new(),
            error: None,
            build: crate::build(spec),
            seconds,
        },
        exit: ExitCode::Holds,
        hint: None,
        skipped,
    };
    if skipped {
        let only = spec.backends.join(", ");
        outcome.result.error = Some(match units.len() {
            0 => "skipped: no gate that was asked for is one of the kernel's".to_owned(),
            _ => format!("skipped: the kernel runs only on {only}"),
        });
        if spec.is_control() {
            return outcome;
        }
    }
    for unit in units.into_iter().filter(|unit| !unit.skipped) {
        match unit.result {
            Ok(result) => outcome.result.gates.push(with_known(spec, result, unit.partial)),
            Err(error) => blame(&mut outcome, &error),
        }
    }
    outcome.exit = outcome.exit.worst(verdict(&outcome.result));
    outcome
}

fn blame(outcome: &mut KernelOutcome, error: &RunError) {
    outcome.exit = outcome.exit.worst(exit_of(error));
    if outcome.result.error.is_none() {
        outcome.result.error = Some(error.to_string());
        if let RunError::Request { hint, .. } = error {
            outcome.hint.clone_from(hint);
        }
    }
}

fn exit_of(error: &RunError) -> ExitCode {
    match error {
        RunError::Request { .. } => ExitCode::Request,
        RunError::Device { .. } => ExitCode::NoDevice,
        RunError::Internal { .. } => ExitCode::Internal,
        RunError::Fault { .. } | RunError::Unsupported { .. } | RunError::Stopped => {
            ExitCode::Problems
        }
    }
}

/// A known failure becomes KNOWN; a known entry whose gate passes is stale and fails, unless the
/// cases that fail may be among those left out.
fn with_known(spec: &Spec, mut result: GateResult, partial: bool) -> GateResult {
    let Some(known) = spec.known_for(result.gate) else { return result };
    match result.outcome {
        Outcome::Fail => {
            result.outcome = Outcome::Known;
            let (what, since, link) = (&known.what, &known.since, &known.link);
            result.reason = format!("{what} (known since {since}, {link})");
        }
        Outcome::Pass if !partial => {
            result.outcome = Outcome::Fail;
            let what = &known.what;
            result.reason = format!("the known finding no longer fails, remove its entry: {what}");
        }
        _ => {}
    }
    result
}

/// The exit code of one kernel's gates. Anything but PASS, KNOWN and NOT APPLICABLE is a problem:
/// a gate that proved nothing or could not run does not hold.
fn verdict(result: &KernelResult) -> ExitCode {
    let holds = if result.control_for.is_some() {
        result.is_red()
    } else {
        let fine = [Outcome::Pass, Outcome::Known, Outcome::NotApplicable];
        result.gates.iter().all(|gate| fine.contains(&gate.outcome))
    };
    if holds { ExitCode::Holds } else { ExitCode::Problems }
}

/// The counts of a run and its exit code.
pub fn summarize(outcomes: &[KernelOutcome]) -> (Summary, ExitCode) {
    let mut summary = Summary::default();
    let mut exit = ExitCode::Holds;
    for outcome in outcomes {
        exit = exit.worst(outcome.exit);
        count(&mut summary, outcome);
    }
    (summary, exit)
}

fn count(summary: &mut Summary, outcome: &KernelOutcome) {
    let result = &outcome.result;
    let is_control = result.control_for.is_some();
    summary.limit_problems += if is_control { 0 } else { limit_problems(result) };
    if outcome.skipped {
        summary.skipped += 1;
    } else if result.control_for.is_some() {
        summary.controls += 1;
        summary.controls_red += u32::from(result.is_red());
    } else {
        let gates = |outcome: Outcome| {
            result.gates.iter().filter(|gate| gate.outcome == outcome).count() as u32
        };
        summary.kernels += 1;
        summary.passing += u32::from(result.passes());
        summary.known += gates(Outcome::Known);
        summary.unproven += gates(Outcome::Unproven);
        summary.unsupported += gates(Outcome::Unsupported);
    }
}

/// What gate 5 found that is not known: each launch, rule and chip by itself.
fn limit_problems(result: &KernelResult) -> u32 {
    let failed = result.gate(Gate::Limits).filter(|gate| gate.outcome == Outcome::Fail);
    let findings = failed.into_iter().flat_map(|gate| &gate.findings);
    findings.filter(|finding| finding.outcome == Outcome::Fail).count() as u32
}
