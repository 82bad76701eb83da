//! What a kernel prints, and the assertion that stops it, in the report and in the table: in this
//! process and in a child.

mod common;

use assay_record::{GateResult, Outcome, Report};
use common::run;

const PRINTS: [&str; 5] = ["check", "--manifest", "prints.toml", "--gate", "repeat"];

/// The gate of a kernel in the report that a run writes as JSON.
fn gate(kernel: &str, more: &[&str]) -> GateResult {
    let output = run(&[&PRINTS[..], &["--json", "-"], more].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let report = Report::from_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let found = report.kernels.into_iter().find(|found| found.kernel == kernel);
    found.expect("the kernel was run").gates.remove(0)
}

#[test]
fn the_text_of_printf_reaches_the_json_report_in_process_and_from_a_child() {
    for more in [&[][..], &["--isolate"]] {
        let gate = gate("says", more);
        assert_eq!(gate.outcome, Outcome::Pass);
        let said = gate.notes.iter().find(|note| note.contains("printed"));
        assert!(said.is_some_and(|note| note.ends_with(": n is 1000")), "{:?}", gate.notes);
    }
}

#[test]
fn the_text_of_an_assertion_reaches_the_json_report_in_process_and_from_a_child() {
    for more in [&[][..], &["--isolate"]] {
        let gate = gate("asserts", more);
        assert_eq!(gate.outcome, Outcome::Fail);
        let said = format!("{} {:?}", gate.reason, gate.findings);
        for part in ["a.cu", "12", "x > 0"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn the_tables_show_what_was_printed_and_what_was_asserted() {
    for more in [&[][..], &["--isolate"]] {
        let output = run(&[&PRINTS[..], &["--notes"], more].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("n is 1000"), "{text}");
        assert!(text.contains("x > 0") && text.contains("a.cu"), "{text}");
    }
}

#[test]
fn a_kernel_that_prints_nothing_has_no_such_note() {
    for more in [&[][..], &["--isolate"]] {
        let gate = gate("asserts", more);
        assert!(gate.notes.iter().all(|note| !note.contains("printed")), "{:?}", gate.notes);
    }
}
