//! Whole runs of the real program on the emulator.

mod common;

use assay_record::{Outcome, Report};
use common::{recorded, run};

/// The report that a run writes to stdout as JSON.
fn report(arguments: &[&str]) -> Report {
    let output = run(&[&["check", "--json", "-"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let report = Report::from_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(Some(i32::from(report.exit_code)), output.status.code());
    report
}

/// What a report says, without what differs from run to run.
fn verdicts(mut report: Report) -> Report {
    report.date.clear();
    report.command.clear();
    for kernel in &mut report.kernels {
        kernel.seconds = 0.0;
    }
    report
}

const DOUBLES: [&str; 4] = ["--manifest", "doubles.toml", "--gate", "shapes"];

#[test]
fn a_correct_kernel_of_a_manifest_passes_and_the_controls_are_red() {
    insta::assert_snapshot!(recorded(&[&["check"], &DOUBLES[..]].concat()));
}

#[test]
fn the_last_line_of_a_run_is_its_summary() {
    let output = run(&[&["check"], &DOUBLES[..]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with("SUMMARY emulator: 1 of 1 kernels pass gate 3, "), "{text}");
}

#[test]
fn a_control_that_is_a_correct_kernel_fails_the_run() {
    let report = report(&["--manifest", "green_control.toml", "--gate", "repeat"]);
    assert_eq!(report.exit_code, 1);
    assert_eq!(report.summary.passing, 1);
    assert_eq!(report.summary.controls_red + 1, report.summary.controls);
    let arguments = ["--repro", "harmless/repeat/n=1000/plain/seed=1/5-runs"];
    let manifest = ["check", "--manifest", "green_control.toml"];
    insta::assert_snapshot!(recorded(&[&manifest, &arguments[..]].concat()));
}

#[test]
fn one_seed_gives_one_report() {
    let (first, second) = (verdicts(report(&DOUBLES)), verdicts(report(&DOUBLES)));
    assert_eq!(first, second);
    let other = verdicts(report(&[&DOUBLES[..], &["--seed", "2"]].concat()));
    assert_eq!(other.seed, 2);
    assert_eq!(other.exit_code, 0);
}

#[test]
fn isolated_kernels_get_the_same_verdicts() {
    let isolated = [&DOUBLES[..], &["--isolate"]].concat();
    assert_eq!(verdicts(report(&DOUBLES)), verdicts(report(&isolated)));
}

#[test]
fn a_report_is_written_to_a_file_beside_the_tables() {
    let path = std::env::temp_dir().join(format!("assay-report-{}.json", std::process::id()));
    let file = path.to_string_lossy().into_owned();
    let output = run(&[&["check", "--json", &file], &DOUBLES[..]].concat());
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nSUMMARY emulator: "));
    let text = std::fs::read_to_string(&path).expect("the report was written");
    std::fs::remove_file(&path).expect("the report can be removed");
    assert_eq!(Report::from_json(&text).expect("it is a report").summary.passing, 1);
}

#[test]
fn misbehaving_kernels_are_reported_with_their_line_and_the_others_run() {
    let report = report(&["--manifest", "misbehaved.toml", "--gate", "repeat"]);
    assert_eq!(report.exit_code, 1);
    let outcome = |name: &str| {
        let kernel = report.kernels.iter().find(|kernel| kernel.kernel == name);
        kernel.map(|kernel| kernel.gates[0].outcome)
    };
    for name in ["far_away", "endless", "waits_for_itself", "traps"] {
        assert_eq!(outcome(name), Some(Outcome::Fail), "{name}");
    }
    assert_eq!(outcome("doubles"), Some(Outcome::Pass));
    assert_eq!(report.summary.controls_red, report.summary.controls);
}

#[test]
fn each_misbehaving_kernel_says_what_it_did_and_where() {
    for name in ["far_away", "endless", "waits_for_itself", "traps"] {
        let case = format!("{name}/repeat/n=1000/plain/seed=1/5-runs");
        let arguments = ["check", "--manifest", "misbehaved.toml", "--repro", &case];
        insta::assert_snapshot!(name, recorded(&arguments));
    }
}

#[test]
fn launches_and_allocations_that_cannot_be_are_refused_one_by_one() {
    for (name, n) in [("no_threads", "1000"), ("many_threads", "1000"), ("huge", "1099511627776")] {
        let case = format!("{name}/repeat/n={n}/plain/seed=1/5-runs");
        let arguments = ["check", "--manifest", "launches.toml", "--repro", &case];
        insta::assert_snapshot!(name, recorded(&arguments));
    }
}

#[test]
fn a_symbol_that_the_module_lacks_is_named_with_those_it_has() {
    let case = "misspelt/repeat/n=1000/plain/seed=1/5-runs";
    insta::assert_snapshot!(recorded(&[
        "check",
        "--manifest",
        "missing_symbol.toml",
        "--repro",
        case
    ]));
}

#[test]
fn ptx_that_does_not_parse_is_shown_with_its_line() {
    let case = "nonsense/repeat/n=1000/plain/seed=1/5-runs";
    insta::assert_snapshot!(recorded(&["check", "--manifest", "nonsense.toml", "--repro", case]));
}

#[test]
fn a_case_that_a_kernel_does_not_have_is_a_wrong_request() {
    let case = "doubles/shapes/n=77/mixed-0/seed=1/in-order";
    insta::assert_snapshot!(recorded(&["check", "--manifest", "doubles.toml", "--repro", case]));
}
