//! Runs in parts: what all parts say together is what the whole run says, and reports that make no
//! whole run are refused.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assay_record::Report;
use common::run;

/// A correct kernel and some that misbehave.
const MIXED: [&str; 5] = ["--manifest", "misbehaved.toml", "--gate", "repeat", "--gate=shapes"];
/// A correct kernel at one gate, which is quick.
const QUICK: [&str; 4] = ["--manifest", "doubles.toml", "--gate", "non-finite"];

/// An empty folder for one test's reports.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shards").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn read(path: &Path) -> Report {
    let text = fs::read_to_string(path).expect("a report was written");
    Report::from_json(&text).expect("it is a report")
}

/// Runs a check that writes its report to `path`, and gives its exit code and what it printed.
fn check(what: &[&str], more: &[&str], path: &Path) -> (Option<i32>, String) {
    let path = path.to_str().expect("a path in UTF-8");
    let output = run(&[&["check"], what, more, &["--json", path]].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Merges reports: exit code, stdout and stderr.
fn merge(reports: &[&Path], more: &[&str]) -> (Option<i32>, String, String) {
    let reports: Vec<&str> = reports.iter().map(|path| path.to_str().expect("UTF-8")).collect();
    let output = run(&[&["merge"], &reports[..], more].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A report without what differs from run to run.
fn verdicts(mut report: Report) -> Report {
    report.date.clear();
    report.command.clear();
    report.kernels.iter_mut().for_each(|kernel| kernel.seconds = 0.0);
    report
}

/// A text without the times in its table of kernels.
fn without_times(text: &str) -> Vec<String> {
    let seconds = |word: &str| word.trim().strip_suffix(" s").is_some();
    let line = |line: &str| match line.rsplit_once("  ") {
        Some((rest, last)) if seconds(last) => rest.trim_end().to_owned(),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect()
}

#[test]
fn three_parts_merged_say_what_the_whole_run_says() {
    let folder = scratch("merged");
    let whole = folder.join("whole.json");
    let (exit, shown) = check(&MIXED, &[], &whole);
    let parts: Vec<PathBuf> = (1..=3).map(|k| folder.join(format!("{k}.json"))).collect();
    for (index, path) in parts.iter().enumerate() {
        let part = format!("{}/3", index + 1);
        let (_, shown) = check(&MIXED, &["--shard", &part], path);
        let last = shown.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("PART {part} on emulator, no summary: ")), "{shown}");
        assert!(!shown.contains("SUMMARY"), "{shown}");
        assert_eq!(read(path).shard.expect("it says which part it is").part.to_string(), part);
    }
    let merged = folder.join("merged.json");
    let paths: Vec<&Path> = parts.iter().rev().map(PathBuf::as_path).collect();
    let json = merged.to_str().expect("UTF-8");
    let (merged_exit, merged_shown, errors) = merge(&paths, &["--json", json]);
    assert_eq!(merged_exit, exit, "{errors}");
    assert_eq!(verdicts(read(&merged)), verdicts(read(&whole)));
    assert!(merged_shown.contains("repro: assay check --manifest misbehaved.toml --repro "));
    assert_eq!(without_times(&merged_shown), without_times(&shown));
}

#[test]
fn the_parts_share_no_unit_and_each_has_some() {
    let folder = scratch("units");
    let mut seen = BTreeSet::new();
    for index in 1..=3 {
        let path = folder.join(format!("{index}.json"));
        check(&QUICK, &["--shard", &format!("{index}/3")], &path);
        let report = read(&path);
        assert!(report.kernels.iter().any(|kernel| !kernel.gates.is_empty()), "part {index}");
        for kernel in &report.kernels {
            for gate in &kernel.gates {
                assert!(seen.insert((kernel.kernel.clone(), gate.gate)), "{}", kernel.kernel);
            }
        }
    }
}

#[test]
fn reports_that_make_no_whole_run_are_refused_and_say_why() {
    let folder = scratch("refused");
    let part = |name: &str, more: &[&str]| {
        let path = folder.join(name);
        check(&QUICK, more, &path);
        path
    };
    let (one, two) = (part("1.json", &["--shard", "1/2"]), part("2.json", &["--shard", "2/2"]));
    let seed = part("seed.json", &["--shard", "2/2", "--seed", "7"]);
    let thirds = part("thirds.json", &["--shard", "2/3"]);
    let some = part("some.json", &["--shard", "2/2", "--only", "doubles"]);
    let device = part("device.json", &["--shard", "2/2", "--device", "emulator:sm_90"]);
    let whole = part("whole.json", &[]);
    let older = folder.join("older.json");
    let text = fs::read_to_string(&two).expect("it was written");
    let version = format!("\"assay_version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let changed = text.replace(&version, "\"assay_version\": \"0.0.1\"");
    fs::write(&older, changed).expect("written");
    let refusals: [(&[&Path], &str); 8] = [
        (&[&one, &seed], "the seed is 1 in the one, 7 in the other"),
        (&[&one, &older], "the version is"),
        (&[&one, &device], "the device is emulator (emulator, sm_80"),
        (&[&one, &thirds], "the number of parts is 2 in the one, 3 in the other"),
        (&[&one, &some], "the suite is"),
        (&[&one, &two, &one], "are both part 1/2"),
        (&[&one], "part 2/2 is missing"),
        (&[&one, &whole], "is the report of a whole run, no part of one"),
    ];
    for (reports, why) in refusals {
        let (exit, shown, errors) = merge(reports, &[]);
        assert_eq!(exit, Some(2), "{errors}");
        assert!(shown.is_empty() && errors.contains(why), "`{why}`:\n{errors}");
    }
    let (exit, _, errors) = merge(&[&folder.join("none.json")], &[]);
    assert_eq!(exit, Some(2), "{errors}");
    assert_ne!(merge(&[&two, &one], &[]).0, Some(2));
}

#[test]
fn a_part_that_there_cannot_be_is_a_wrong_request() {
    for part in ["0/3", "4/3", "1", "one/two"] {
        let output = run(&["check", "--shard", part]);
        assert_eq!(output.status.code(), Some(2));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains("is no part of a run, such as `1/3`"), "{errors}");
    }
}
