//! `assay fuzz` as a person types it: verdicts, exit codes, files, and what it survives.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use assay_record::{FuzzReport, FuzzVerdict, Outcome};
use common::{recorded, run};

/// The report that a run writes to stdout.
fn report(arguments: &[&str]) -> (FuzzReport, i32) {
    let mut all = vec!["fuzz", "--json", "-"];
    all.extend_from_slice(arguments);
    let output = run(&all);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let report = FuzzReport::from_json(&text).unwrap_or_else(|error| panic!("{error}: {errors}"));
    (report, output.status.code().unwrap_or(-1))
}

fn verdict(report: &FuzzReport, candidate: &str) -> (Outcome, FuzzVerdict, u64) {
    let found = report.candidates.iter().find(|found| found.candidate == candidate);
    let found = found.unwrap_or_else(|| panic!("no {candidate}: {report:#?}"));
    let first = found.failures.first().map_or(FuzzVerdict::Pass, |failure| failure.case.verdict);
    (found.outcome, first, found.counts.passed)
}

#[test]
fn kernels_that_trap_stray_or_never_end_are_verdicts_and_the_rest_is_kept() {
    for isolate in [false, true] {
        let mut arguments = vec!["--manifest", "deadly.toml", "--only", "/n="];
        arguments.extend(isolate.then_some("--isolate"));
        let (report, exit) = report(&arguments);
        assert_eq!(exit, 1);
        assert_eq!(report.isolated, isolate);
        assert_eq!(verdict(&report, "twice").0, Outcome::Pass);
        for name in ["traps", "astray", "forever"] {
            let (outcome, first, passed) = verdict(&report, name);
            assert_eq!((outcome, first), (Outcome::Fail, FuzzVerdict::Fault), "{name}");
            assert!(passed > 20, "{name}: only {passed} cases besides");
        }
        assert_eq!(report.summary.controls_found, report.summary.controls, "{report:#?}");
        assert!(report.summary.controls >= 5);
    }
}

#[test]
fn operations_that_hang_or_end_their_process_are_survived_in_processes_of_their_own() {
    let arguments = ["--isolate", "--timeout", "2", "--only"];
    let (report_of_hangs, _) = report(&[&arguments[..], &["fuzz_hangs:f32/63/"]].concat());
    let (outcome, first, _) = verdict(&report_of_hangs, "fuzz_hangs:f32");
    assert_eq!((outcome, first), (Outcome::Fail, FuzzVerdict::Hang));
    let (report_of_aborts, _) = report(&[&arguments[..], &["fuzz_aborts:f32/3"]].concat());
    let (outcome, first, passed) = verdict(&report_of_aborts, "fuzz_aborts:f32");
    assert_eq!((outcome, first), (Outcome::Fail, FuzzVerdict::Crash));
    assert!(passed > 5, "the cases after the crash ran too: {passed}");
}

#[test]
fn a_recipe_runs_its_one_case_again_and_shrinks_it() {
    let recipe = "traps/n=33/misalign:3/mixed/seed=1";
    let (report, exit) = report(&["--manifest", "deadly.toml", "--repro", recipe]);
    assert_eq!((exit, report.candidates.len()), (1, 1));
    let failure = &report.candidates[0].failures[0];
    assert_eq!(failure.case.recipe.to_string(), recipe);
    let smallest = failure.smallest.as_ref().expect("the misalignment is not needed");
    assert_eq!(smallest.recipe.to_string(), "traps/n=33/dense/mixed/seed=1");
    let holds = ["--manifest", "deadly.toml", "--repro", "traps/n=32/dense/mixed/seed=1"];
    assert_eq!(self::report(&holds).1, 0);
}

#[test]
fn requests_that_cannot_be_served_say_so() {
    for (arguments, exit, words) in [
        (&["--only", "no_such_thing"][..], 2, "no recipe has `no_such_thing`"),
        (&["--repro", "nonsense"][..], 2, "a recipe is `candidate/shape/view/fill/seed=1`"),
        (&["--repro", "nobody/n=3/dense/mixed/seed=1"][..], 2, "no candidate `nobody`"),
        (&["--repro", "row_sum_f32/cols=0,rows=3/dense/mixed/seed=1"][..], 2, "from 1 on"),
        (&["--repro", "row_sum_f32/rows=3/dense/mixed/seed=1"][..], 2, "no size of `cols`"),
        (&["--repro", "row_sum_f32/cols=3,rows=3,x=2/dense/mixed/seed=1"][..], 2, "no dim `x`"),
        (&["--repro", "row_sum_f32/cols=3,cols=4,rows=3/dense/mixed/seed=1"][..], 2, "two sizes"),
        (&["--repro", "row_sum_f32/cols=7,rows=3/repeated:0/mixed/seed=1"][..], 2, "no part of 3"),
        (
            &["--repro", "row_sum_f32/cols=7,rows=3/repeated:18446744073709551615/mixed/seed=1"],
            2,
            "no part of 3 places along `rows`",
        ),
        (&["--repro", "fuzz_hangs:f32/63/dense/values/seed=1"][..], 2, "with --isolate alone"),
        (&["--budget", "0"][..], 2, "a number of seconds"),
        (&["--timeout", "nan"][..], 2, "a number of seconds"),
        (&["--only", "fuzz_hangs"][..], 2, "runs with --isolate alone"),
        (&["--device", "toaster", "--only", "row_sum_f32"][..], 3, "toaster"),
        (&["--manifest", "no_such.toml", "--only", "x"][..], 2, "no_such.toml"),
        (
            &["--only", "fuzz_clean:f32/-", "--json", "no-such-folder/report.json"][..],
            2,
            "cannot write no-such-folder/report.json",
        ),
    ] {
        let output = run(&[&["fuzz"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}

#[test]
fn a_list_holds_one_recipe_a_line() {
    let output = run(&["fuzz", "--manifest", "deadly.toml", "--list", "--only", "twice/"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("twice/n=65/misalign:"), "{text}");
    assert!(text.contains("skipped: "), "what is known not to run is listed as such: {text}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn the_tables_name_verdicts_recipes_and_the_seed() {
    let arguments =
        ["fuzz", "--manifest", "deadly.toml", "--repro", "traps/n=33/dense/mixed/seed=7"];
    let text = recorded(&arguments);
    for words in [
        "FAIL traps: FAULT",
        "repeat    assay fuzz --manifest deadly.toml --repro traps/n=33/dense/mixed/seed=7",
        "0 of 1 candidates hold",
        "seed 7",
        "exit code: 1",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_a_budget_leaves_out_is_counted_and_no_huge_case_is_dropped() {
    let (report, exit) = report(&["--manifest", "deadly.toml", "--budget", "0.001"]);
    let cases = &report.summary.cases;
    assert!(cases.skipped > 0 && cases.passed + cases.failed < cases.cases, "{cases:?}");
    assert!(report.candidates.iter().all(|found| !found.huge.is_empty()), "{report:#?}");
    assert_eq!(report.summary.controls_found, report.summary.controls, "they run all the same");
    assert_eq!(exit, 1, "nothing was shown of the kernels");
}

#[test]
fn a_budget_is_held_but_for_the_controls_and_says_what_they_took() {
    let arguments = ["fuzz", "--manifest", "deadly.toml", "--budget", "0.5"];
    let start = Instant::now();
    let text = recorded(&arguments);
    let took = start.elapsed().as_secs_f64();
    assert!(
        text.contains("budget: 0.5 s asked for, ") && text.contains("planted controls"),
        "{text}"
    );
    let (report, _) = report(&arguments[1..]);
    let seconds = |planted: bool| -> f64 {
        let all = report.candidates.iter();
        let those = all.filter(|found| found.control_for.is_some() == planted);
        those.map(|found| found.seconds).sum()
    };
    let taken = report.seconds.expect("a time");
    assert!(taken < 0.5 + seconds(true) + 3.0, "{taken} s of 0.5, {} s of controls", seconds(true));
    assert!(took < 20.0, "{took}");
    // Without a budget no more is made of what is found, unless it is asked for.
    let whole = |only: &str| {
        let (report, _) = self::report(&["--manifest", "deadly.toml", "--only", only]);
        let found =
            report.candidates.iter().find(|found| found.candidate == "fuzz_dropped_tail:f32");
        found.expect("it runs").counts
    };
    assert!(whole("twice/n=5").skipped > 300);
    assert!(whole("fuzz_dropped_tail:f32/").skipped == 0, "what is asked for runs as a whole");
    let clean = report.candidates.iter().find(|found| found.candidate == "fuzz_clean:f32");
    let counts = &clean.expect("it runs").counts;
    assert!(counts.passed > 0 && counts.skipped > 0, "what is right has its share: {counts:?}");
    assert_eq!(report.summary.controls_found, report.summary.controls);
}

#[test]
fn a_kernel_whose_code_is_cut_off_is_unproven_with_the_reason_in_one_line() {
    let folder = std::env::temp_dir().join(format!("assay-fuzz-cut-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/deadly");
    let code = std::fs::read(format!("{fixtures}.ptx")).expect("code");
    std::fs::write(folder.join("deadly.ptx"), &code[..code.len() / 2]).expect("written");
    std::fs::copy(format!("{fixtures}.toml"), folder.join("deadly.toml")).expect("copied");
    let manifest = folder.join("deadly.toml").display().to_string();
    let output = run(&["fuzz", "--manifest", &manifest, "--only", "twice/"]);
    let _ = std::fs::remove_dir_all(&folder);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let (_, reasons) = text.split_once("not run:\n").expect("a section");
    let (reasons, _) = reasons.split_once("\n\n").expect("an end");
    let is_counted = |line: &str| line.trim().starts_with(|c: char| c.is_ascii_digit());
    assert!(reasons.lines().all(is_counted) && reasons.contains("deadly.ptx:"), "{reasons}");
}

#[test]
fn a_run_that_is_ended_from_outside_leaves_what_it_had_found() {
    let path = std::env::temp_dir().join(format!("assay-fuzz-ended-{}.json", std::process::id()));
    let mut running = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["fuzz", "--json"])
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let start = Instant::now();
    while !path.exists() && start.elapsed().as_secs() < 120 {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = running.kill();
    let status = running.wait().expect("it ended");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    let report = FuzzReport::from_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(!status.success() && report.exit_code == 1, "{status}");
    assert!(!report.candidates.is_empty() && report.unfinished.len() > 10);
    let done = &report.candidates[0];
    assert!(done.candidate.starts_with("fuzz_") && done.counts.cases > 100, "{done:?}");
}

/// What Linux says of a process: how it is (0), and whose child (1).
fn state(id: u32, field: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
}

/// The processes whose parent is `parent`, as Linux lists them.
fn children(parent: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |id: &u32| state(*id, 1) == Some(parent.to_string());
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_case_that_never_ends_ends_with_the_run_that_is_killed() {
    let wait = |is_over: &mut dyn FnMut() -> bool| {
        let start = Instant::now();
        while !is_over() && start.elapsed().as_secs() < 60 {
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let mut running = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["fuzz", "--isolate", "--timeout", "600"])
        .args(["--repro", "fuzz_hangs:f32/63/dense/values/seed=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut found = Vec::new();
    wait(&mut || {
        found = children(running.id());
        !found.is_empty()
    });
    // It is in its case by then, and hears nothing of its stdin.
    std::thread::sleep(Duration::from_secs(2));
    // One that has ended may wait for somebody who asks how.
    let there = |id: &u32| state(*id, 0).is_some_and(|state| state != "Z");
    assert!(found.len() == 1 && found.iter().all(there), "{found:?}");
    running.kill().expect("killed");
    let _ = running.wait();
    wait(&mut || !found.iter().any(there));
    assert!(!found.iter().any(there), "{found:?} go on");
}

#[test]
fn the_pinned_run_on_a_gpu_found_every_control_and_no_candidate_that_fails() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../records/h200-fuzz.json");
    let text = std::fs::read_to_string(path).expect("a record");
    let report = FuzzReport::from_json(&text).expect("a report");
    let summary = &report.summary;
    assert_eq!(report.device.name, "NVIDIA H200");
    assert!(report.isolated && summary.controls >= 9);
    assert_eq!(summary.controls_found, summary.controls, "every control is found");
    let problems = report.candidates.iter().filter(|found| found.is_problem());
    let names: Vec<&str> = problems.map(|found| found.candidate.as_str()).collect();
    assert!(names.is_empty() && report.exit_code == 0, "{names:?}");
    assert!(summary.huge_run >= 10, "2^31 elements were met: {}", summary.huge_run);
    let every = report.candidates.iter().filter(|found| found.control_for.is_none());
    assert!(every.into_iter().all(|found| !found.huge.is_empty()), "run or skipped, never dropped");
}
