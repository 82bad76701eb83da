//! What the real program does: exit code, stdout and stderr, recorded together.

mod common;

use common::{has_driver, recorded, skipped};

#[test]
fn help_names_the_exit_codes() {
    insta::assert_snapshot!(recorded(&["help"]));
}

#[test]
fn help_of_check_names_every_option() {
    insta::assert_snapshot!(recorded(&["help", "check"]));
}

#[test]
fn an_unknown_option_is_a_wrong_request() {
    insta::assert_snapshot!(recorded(&["check", "--divice", "emulator"]));
}

#[test]
fn an_unknown_gate_is_a_wrong_request() {
    insta::assert_snapshot!(recorded(&["check", "--gate", "speed"]));
}

#[test]
fn a_wrong_case_name_is_a_wrong_request() {
    insta::assert_snapshot!(recorded(&["check", "--repro", "row_sum_f32"]));
}

#[test]
fn a_list_holds_one_case_a_line() {
    let arguments = ["check", "--manifest", "doubles.toml", "--list", "--only", "doubles/"];
    insta::assert_snapshot!(recorded(&arguments));
}

#[test]
fn a_filter_that_matches_nothing_is_a_wrong_request() {
    insta::assert_snapshot!(recorded(&["check", "--only", "no_such_kernel"]));
    insta::assert_snapshot!(recorded(&["check", "--list", "--only", "no_such_kernel"]));
}

#[test]
fn a_case_of_no_kernel_is_a_wrong_request() {
    let case = "no_such_kernel/repeat/n=1/x/seed=1/in-order";
    insta::assert_snapshot!(recorded(&["check", "--repro", case]));
}

#[test]
fn a_missing_manifest_is_a_wrong_request() {
    insta::assert_snapshot!(recorded(&["check", "--manifest", "no_such_file.toml"]));
}

#[test]
fn an_unknown_key_is_shown_with_its_place_and_the_nearest_key() {
    let arguments = ["check", "--manifest", "unknown_key.toml", "--list", "--only", "doubles/rep"];
    insta::assert_snapshot!(recorded(&arguments));
}

#[test]
fn a_wrong_formula_is_shown_with_a_caret() {
    insta::assert_snapshot!(recorded(&["check", "--manifest", "wrong_formula.toml"]));
}

#[test]
fn dims_that_cannot_be_are_refused() {
    insta::assert_snapshot!(recorded(&["check", "--manifest", "impossible_dims.toml"]));
}

#[test]
fn a_name_registered_twice_is_refused() {
    let twice = ["--manifest", "doubles.toml", "--manifest", "doubles.toml"];
    let list = ["check", "--list", "--only", "doubles/repeat"];
    insta::assert_snapshot!(recorded(&[&list[..], &twice[..]].concat()));
}

#[test]
fn a_device_that_there_is_not_has_an_exit_code_of_its_own() {
    insta::assert_snapshot!(recorded(&["check", "--device", "abacus"]));
}

#[test]
fn a_machine_without_a_driver_says_so() {
    if has_driver() {
        return skipped("a_machine_without_a_driver_says_so", "this machine has a driver");
    }
    insta::assert_snapshot!(recorded(&["check", "--device", "cuda:0"]));
}

#[test]
fn the_child_command_is_not_for_people() {
    insta::assert_snapshot!(recorded(&["child"]));
}

#[test]
fn the_doctor_says_what_there_is_and_what_to_install() {
    if has_driver() {
        let test = "the_doctor_says_what_there_is_and_what_to_install";
        return skipped(test, "this machine has a driver");
    }
    let text = recorded(&["doctor"]);
    // The processor is this machine's own.
    let lines = text.lines().map(|line| match line.split_once(" on ") {
        Some(("assay VERSION", _)) => "assay VERSION on PROCESSOR",
        _ => line,
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}
