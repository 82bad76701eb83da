//! `check --repro`: a failing case is shrunk, written to a file, and fails again from that file.

mod common;

use std::path::PathBuf;

use assay_record::{Outcome, Report};
use common::run;

/// An empty folder for one test's files.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("repro").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn report(arguments: &[&str]) -> Report {
    let output = run(&[&["check", "--json", "-"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    Report::from_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs a failing case again, then the file it was shrunk to; the shape it was shrunk to.
fn shrunk(case: &str, folder: &str) -> Vec<(String, i64)> {
    let folder = scratch(folder);
    let save = folder.to_str().expect("the path is text");
    let smallest = report(&["--repro", case, "--save", save]).smallest.expect("it is shrunk");
    assert!(smallest.file_bytes < 10_000, "{smallest:?}");
    let again = report(&["--inputs", &smallest.file]);
    let finding = &again.kernels[0].gates[0].findings[0];
    assert_eq!(finding.outcome, Outcome::Fail);
    assert_eq!(*finding, smallest.finding);
    smallest.finding.case.dims
}

fn dims(sizes: &[(&str, i64)]) -> Vec<(String, i64)> {
    sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

#[test]
fn a_class_shrinks_to_the_infinity_that_shows_it() {
    let case = "softmax_unguarded_f32/non-finite/cols=513,rows=3/plants-x-1/seed=1/in-order";
    assert_eq!(shrunk(case, "class"), dims(&[("cols", 2), ("rows", 1)]));
}

#[test]
fn an_order_of_sums_shrinks_to_the_shape_that_has_one() {
    let case = "row_sum_atomic_f32/repeat/cols=1000,rows=5/plain/seed=1/5-runs";
    assert_eq!(shrunk(case, "order"), dims(&[("cols", 513), ("rows", 1)]));
}

#[test]
fn a_lost_tail_shrinks_to_one_element() {
    let case = "row_sum_short_tail_f32/shapes/cols=1000,rows=3/mixed-0/seed=1/in-order";
    assert_eq!(shrunk(case, "tail"), dims(&[("cols", 1), ("rows", 1)]));
}

#[test]
fn a_sum_in_half_shrinks_to_three_terms() {
    let case = "row_dot_in_half_f32/fp32-sums/cols=2051,rows=3/c-reflected/seed=1/in-order";
    assert_eq!(shrunk(case, "half"), dims(&[("cols", 3), ("rows", 1)]));
}

#[test]
fn a_fault_shrinks_to_the_same_fault() {
    let case = "row_sum_past_end_f32/repeat/cols=1000,rows=3/plain/seed=1/5-runs";
    assert_eq!(shrunk(case, "fault"), dims(&[("cols", 1), ("rows", 1)]));
}

#[test]
fn a_case_that_holds_is_not_shrunk() {
    let case = "row_sum_f32/shapes/cols=1000,rows=1/mixed-0/seed=1/in-order";
    let folder = scratch("holds");
    let report = report(&["--repro", case, "--save", folder.to_str().expect("text")]);
    assert_eq!((report.smallest, report.exit_code), (None, 0));
    assert!(!folder.exists());
}

#[test]
fn a_file_that_holds_no_inputs_is_a_wrong_request() {
    let folder = scratch("broken");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let file = folder.join("broken.npz");
    std::fs::write(&file, "not an archive").expect("the file can be written");
    for path in [file, folder.join("missing.npz")] {
        let output = run(&["check", "--inputs", path.to_str().expect("the path is text")]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with("error: cannot use the inputs in ") && text.contains("hint: "));
    }
}
