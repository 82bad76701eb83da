//! What the gates say besides their verdicts: what they could show, and with what inputs.

use assay_record::Report;

/// Every remark once, with the kernels and gates that it is about.
pub(super) fn all(report: &Report) -> String {
    let lines = grouped(report);
    let lines = lines.iter().map(|(note, names)| format!("note: {note}: {}", names.join(", ")));
    lines.collect::<Vec<_>>().join("\n")
}

/// One line that says how many remarks there are, and how to see them.
pub(super) fn count(report: &Report) -> String {
    match grouped(report).len() {
        0 => String::new(),
        1 => "1 note on what the gates could show: --notes prints it".to_owned(),
        count => format!("{count} notes on what the gates could show: --notes prints them"),
    }
}

fn grouped(report: &Report) -> Vec<(&str, Vec<String>)> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for kernel in report.kernels.iter().filter(|kernel| kernel.control_for.is_none()) {
        for result in &kernel.gates {
            for note in &result.notes {
                let name = format!("{} ({})", kernel.kernel, result.gate);
                match notes.iter_mut().find(|(text, _)| text == note) {
                    Some((_, names)) => names.push(name),
                    None => notes.push((note, vec![name])),
                }
            }
        }
    }
    notes
}
