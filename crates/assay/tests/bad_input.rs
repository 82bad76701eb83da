//! What every command does with input that it cannot serve: words that say what was wrong, the
//! documented exit code, and no panic.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{has_driver, run, skipped};

/// A request cannot be served.
const REQUEST: i32 = 2;
/// There is no such device.
const NO_DEVICE: i32 = 3;

/// Asserts that the program refuses, in words, with the exit code.
fn refuses(arguments: &[&str], exit: i32) {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {errors}");
    assert!(errors.contains("error:"), "{arguments:?}: {errors}");
    assert!(!errors.contains("panicked"), "{arguments:?}: {errors}");
}

/// Files that are no record of anything: not there, no text, no JSON, of no and of a newer schema.
fn no_records() -> Vec<String> {
    let folder = std::env::temp_dir().join(format!("assay-bad-input-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for the files");
    let file = |name: &str, bytes: &[u8]| {
        let path: PathBuf = folder.join(name);
        fs::write(&path, bytes).expect("it is written");
        path.to_string_lossy().into_owned()
    };
    vec![
        "no-such-file".to_owned(),
        file("bytes", &[0xff, 0x00, 0xfe, 0x93, 0x4e]),
        file("text", b"not a record"),
        file("empty", b""),
        file("no-schema.json", b"{}"),
        file("newer.json", br#"{"schema": 999}"#),
    ]
}

#[test]
fn a_device_that_is_none_is_named_by_every_command_that_takes_one() {
    for arguments in [
        &["check", "--manifest", "doubles.toml"][..],
        &["fuzz", "--only", "row_sum_f32"],
        &["probe"],
        &["stamps"],
        &["bench", "row_sum_f32"],
        &["certify"],
    ] {
        refuses(&[arguments, &["--device", "toaster"]].concat(), NO_DEVICE);
    }
}

#[test]
fn a_machine_without_a_gpu_is_told_so_by_every_command_that_asks_for_one() {
    if has_driver() {
        let why = "this machine has a driver";
        return skipped("a_machine_without_a_gpu_is_told_so_by_every_command", why);
    }
    for arguments in [
        &["check", "--manifest", "doubles.toml"][..],
        &["fuzz", "--only", "row_sum_f32"],
        &["probe"],
        &["stamps"],
        &["bench", "row_sum_f32"],
        &["certify"],
    ] {
        refuses(&[arguments, &["--device", "cuda"]].concat(), NO_DEVICE);
    }
}

#[test]
fn files_that_are_no_records_are_refused_by_every_command_that_reads_them() {
    for file in no_records() {
        let file = file.as_str();
        refuses(&["merge", file], REQUEST);
        refuses(&["certify", "--dossier", file], REQUEST);
        refuses(&["bench", "--compare", file, file], REQUEST);
        refuses(&["compare", file, file], REQUEST);
        refuses(&["sweep", file, "--list"], REQUEST);
        refuses(&["fuzz", "--manifest", file, "--list"], REQUEST);
        refuses(&["check", "--manifest", file, "--list"], REQUEST);
    }
}

#[test]
fn outputs_that_cannot_be_written_are_errors_of_the_request() {
    let twice = "twice/n=3/dense/mixed/seed=1";
    for arguments in
        [&["fuzz", "--manifest", "deadly.toml", "--repro", twice][..], &["stamps", "--blocks", "1"]]
    {
        refuses(&[arguments, &["--json", "no-such-folder/file"]].concat(), REQUEST);
    }
}

#[test]
fn numbers_that_are_none_are_refused() {
    for arguments in [
        &["fuzz", "--budget", "nan"][..],
        &["fuzz", "--budget", "0"],
        &["fuzz", "--timeout", "inf"],
        &["fuzz", "--seed", "-"],
        &["certify", "--tolerance", "nan"],
        &["sweep", "no-such-file", "--budget", "nan"],
        &["stamps", "--blocks", "0"],
        &["bench", "row_sum_f32", "--time", "0"],
    ] {
        refuses(arguments, REQUEST);
    }
}
