//! Every problem with its numbers, its place and the command that shows it again.

use std::fmt::Write as _;

use assay_record::{Evidence, GateResult, KernelResult, Number, Outcome, Report, Smallest};

use super::View;

/// The command that runs a case again.
fn command(evidence: &Evidence, view: &View<'_>) -> String {
    if let Some(file) = view.inputs {
        return with_inputs(&file.to_string_lossy(), view);
    }
    format!("{} --repro {}", base_command(view), quoted(&evidence.case.to_string()))
}

/// The command that checks what was checked, up to what selects a part of it.
pub(super) fn base_command(view: &View<'_>) -> String {
    let mut command = "assay check".to_owned();
    if let Some(device) = view.device {
        let _ = write!(command, " --device {device}");
    }
    for manifest in view.manifests {
        let _ = write!(command, " --manifest {}", quoted(&manifest.to_string_lossy()));
    }
    if let Some(folder) = view.faults {
        let _ = write!(command, " --faults {}", quoted(&folder.to_string_lossy()));
    }
    command
}

/// The command that runs the case of a file of inputs.
fn with_inputs(file: &str, view: &View<'_>) -> String {
    format!("{} --inputs {}", base_command(view), quoted(file))
}

/// The smallest inputs behind the case that was run again, and how to run those.
pub(super) fn smallest(report: &Report, view: &View<'_>) -> String {
    let Some(Smallest { finding, inputs, file, file_bytes, runs }) = &report.smallest else {
        return String::new();
    };
    let sizes: Vec<String> =
        finding.case.dims.iter().map(|(name, size)| format!("{name}={size}")).collect();
    let lines = [
        format!("SMALLEST {}: {} at {}", finding.case.kernel, finding.case.gate, sizes.join(",")),
        indented(&finding.reason),
        format!("with {inputs}"),
        format!("found in {runs} runs, written to {file} ({file_bytes} bytes)"),
        format!("repro: {}", with_inputs(file, view)),
    ];
    lines.join("\n  ")
}

/// A word as a shell reads it back.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=,:+@%".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// All problems, one block each. Red controls are no problem.
pub(super) fn problems(report: &Report, view: &View<'_>) -> String {
    let blocks = report.kernels.iter().flat_map(|kernel| kernel_problems(kernel, view));
    blocks.collect::<Vec<_>>().join("\n\n")
}

fn kernel_problems(kernel: &KernelResult, view: &View<'_>) -> Vec<String> {
    let mut blocks = Vec::new();
    if let Some(error) = &kernel.error {
        blocks.push(format!("ERROR {}\n  {}", kernel.kernel, indented(error)));
    }
    for result in &kernel.gates {
        let expected = kernel.is_red() && kernel.control_for == Some(result.gate);
        if !expected && (kernel.control_for.is_none() || kernel.control_for == Some(result.gate)) {
            blocks.extend(gate_problem(kernel, result, view));
        }
    }
    blocks
}

fn gate_problem(kernel: &KernelResult, result: &GateResult, view: &View<'_>) -> Option<String> {
    let is_control = kernel.control_for.is_some();
    let name = format!("{}: {}", kernel.kernel, result.gate);
    let mut block = match result.outcome {
        Outcome::Pass if is_control => {
            format!("GREEN {name}\n  this planted control must fail the gate, and passed it")
        }
        Outcome::Pass | Outcome::NotApplicable => return None,
        outcome => format!("{outcome} {name}\n  {}", indented(&result.reason)),
    };
    for finding in result.findings.iter().filter(|finding| finding.outcome != Outcome::Pass) {
        block.push_str(&evidence(finding, &result.reason, view));
    }
    Some(block)
}

/// One finding: what it says, unless the gate has said it already, its numbers, and how to see it.
fn evidence(finding: &Evidence, said: &str, view: &View<'_>) -> String {
    let mut lines = Vec::new();
    if !said.starts_with(finding.reason.as_str()) {
        lines.push(indented(&finding.reason));
    }
    lines.extend(numbers(finding));
    if let Some(place) = &finding.place {
        lines.push(format!("at {place}"));
    }
    lines.push(format!("repro: {}", command(finding, view)));
    lines.iter().fold(String::new(), |text, line| text + "\n  " + line)
}

/// The element and its numbers, as far as they are known.
fn numbers(finding: &Evidence) -> Option<String> {
    let element = finding.element.as_ref().map(|index| {
        let index: Vec<String> = index.iter().map(i64::to_string).collect();
        format!("[{}]", index.join(","))
    });
    let place = match (&finding.output, element) {
        (None, None) => None,
        (output, element) => {
            Some(output.clone().unwrap_or_default() + &element.unwrap_or_default())
        }
    };
    let number =
        |label: &str, number: Option<Number>| number.map(|number| format!("{label} {number:.9}"));
    let parts = [
        place,
        number("got", finding.got),
        number("value", finding.value),
        number("error", finding.error),
        finding.margin.map(|margin| format!("margin {margin:.3}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("  "))
}

/// A text of several lines, indented as the block that it stands in.
pub(super) fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}
