//! `assay bench` with no GPU: what it refuses and in which words, and records held against each
//! other.

mod common;

use std::path::PathBuf;

use assay_record::{BENCH_SCHEMA, BenchRecord, ProbedDevice, Series, Standing, Timing, Verdict};
use common::{has_driver, run, skipped};

fn timing(name: &str, ns: f64) -> Timing {
    let duration_ns: Vec<f64> = (0..60).map(|n| ns * (1.0 + 1e-4 * f64::from(n % 7))).collect();
    let duration = Series {
        sm_clock_mhz: vec![1980.0; 60],
        n: 60,
        median_ns: ns,
        lower_ns: ns,
        upper_ns: ns,
        duration_ns,
        ..Series::default()
    };
    Timing {
        name: name.to_owned(),
        checked: Standing::unchecked("made up"),
        cache: "cold".to_owned(),
        duration: Some(duration),
        duration_reason: None,
        period: None,
        period_reason: None,
        recorded: None,
        recorded_reason: None,
        bytes: None,
        flop: None,
        flop_source: None,
        flop_counted: None,
        flop_reason: None,
        bytes_per_s: None,
        flop_per_s: None,
        roofline: None,
        doubts: Vec::new(),
    }
}

/// A record of kernels by name and nanoseconds, as a file.
fn file(name: &str, timings: &[(&str, f64)]) -> PathBuf {
    let record = BenchRecord {
        schema: BENCH_SCHEMA,
        assay_version: "0.1.0".to_owned(),
        command: "assay bench".to_owned(),
        date: "2026-11-30T12:00:00Z".to_owned(),
        seed: 1,
        device: ProbedDevice {
            name: "made up".to_owned(),
            backend: "cuda".to_owned(),
            architecture: "sm_90".to_owned(),
            driver: None,
            multiprocessors: 132,
            memory_bytes: 1,
            l2_bytes: None,
            sm_clock_max_mhz: None,
            memory_clock_max_mhz: None,
            memory_bus_bits: None,
        },
        before: None,
        after: None,
        conditions_reason: None,
        timings: timings.iter().map(|(name, ns)| timing(name, *ns)).collect(),
        versus: Vec::new(),
        incomplete: None,
        seconds: 1.0,
        exit_code: 0,
    };
    let path = std::env::temp_dir().join(format!("assay-bench-{}-{name}", std::process::id()));
    std::fs::write(&path, record.to_json().expect("a record is JSON")).expect("it is written");
    path
}

/// Exit code, stdout and stderr.
fn said(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_machine_without_a_gpu_times_nothing_and_says_so() {
    let (code, _, stderr) = said(&["bench", "softmax_f32", "--device", "emulator"]);
    let kernel = if stderr.contains("there is no kernel") { "row_sum_f32" } else { "softmax_f32" };
    let (code_again, _, stderr) = said(&["bench", kernel, "--device", "emulator"]);
    assert_eq!(code_again.or(code), Some(3), "{stderr}");
    assert!(stderr.contains("no clock") && stderr.contains("hint: "), "{stderr}");
    if has_driver() {
        return skipped("a_machine_without_a_gpu_times_nothing", "this machine has a driver");
    }
    let (code, _, stderr) = said(&["bench", kernel]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("cannot use the device cuda"), "{stderr}");
}

#[test]
fn wrong_requests_are_refused_with_a_hint() {
    for (arguments, words) in [
        (vec!["bench", "no_such_kernel"], "there is no kernel `no_such_kernel`"),
        (vec!["bench", "row_sum_f32", "--dims", "nonsense=3"], "has no dim `nonsense`"),
        (vec!["bench", "row_sum_f32", "--dims", "rows"], "rows=64"),
        (vec!["bench", "row_sum_f32", "--time", "0"], "--time"),
        (vec!["bench", "row_sum_f32", "--threshold", "nan"], "--threshold"),
        (vec!["bench", "row_sum_f32", "--flop", "0"], "--flop"),
        (vec!["bench", "row_sum_f32", "--versus"], "at least two"),
        (vec!["bench", "row_sum_f32", "--baseline", "no-such-file"], "cannot read no-such-file"),
        (vec!["bench"], "required"),
        (vec!["bench", "--compare", "a", "b"], "cannot read a"),
    ] {
        let (code, _, stderr) = said(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

#[test]
fn two_records_are_compared_and_only_a_wish_makes_slow_an_error() {
    let before = file("before", &[("a/n=1", 1e4), ("b/n=1", 1e4), ("c/n=1", 1e4)]);
    let after = file("after", &[("a/n=1", 1.05e4), ("b/n=1", 1e4), ("c/n=1", 0.9e4)]);
    let (before, after) = (before.to_string_lossy(), after.to_string_lossy());
    let compare = ["bench", "--compare", &before, &after];
    let (code, stdout, stderr) = said(&compare);
    assert_eq!(code, Some(0), "{stderr}");
    for word in ["SLOW", "SAME", "FAST", "not taken in turns"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    let json = [&compare[..], &["--fail-on-slow", "--json", "-"]].concat();
    let (code, stdout, stderr) = said(&json);
    assert_eq!(code, Some(1), "{stderr}");
    let record = BenchRecord::from_json(&stdout).expect("the record reads back");
    assert_eq!(record.exit_code, 1);
    let verdicts: Vec<Verdict> = record.versus.iter().map(|versus| versus.verdict).collect();
    assert_eq!(verdicts, [Verdict::Slow, Verdict::Same, Verdict::Fast]);
    let wide = [&compare[..], &["--threshold", "20", "--fail-on-slow"]].concat();
    assert_eq!(said(&wide).0, Some(0));
}

#[test]
fn two_records_are_drawn_side_by_side_without_a_gpu() {
    let before = file("drawn-before", &[("a/n=1", 1e4), ("b/n=1", 1e4)]);
    let after = file("drawn-after", &[("a/n=1", 1.05e4), ("b/n=1", 1e4)]);
    let (before, after) = (before.to_string_lossy(), after.to_string_lossy());
    let compare = ["bench", "--compare", &before, &after];
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-svg");
    let shown = folder.to_string_lossy();
    let (code, _, stderr) = said(&[&compare[..], &["--svg", &shown]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let picture = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let slow = picture("a-n=1-against-a-n=1-before.svg");
    assert!(slow.contains("a/n=1: SLOW") && slow.contains("difference in time"), "{slow}");
    assert!(picture("b-n=1-against-b-n=1-before.svg").contains("b/n=1: SAME"));
    let one = folder.join("one.svg").to_string_lossy().into_owned();
    let (code, _, stderr) = said(&[&compare[..], &["--svg", &one]].concat());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("one picture") && stderr.contains("folder"), "{stderr}");
    let both = ["bench", "row_sum_f32", "row_max_f32", "--svg", &one];
    let (code, _, stderr) = said(&both);
    assert_eq!(code, Some(2), "before anything is run: {stderr}");
    let single = file("drawn-single", &[("b/n=1", 1e4)]);
    let alone = ["bench", "--compare", &before, &single.to_string_lossy(), "--svg", &one];
    let (code, _, stderr) = said(&alone);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(std::fs::read_to_string(&one).is_ok_and(|svg| svg.contains("b/n=1: SAME")));
}

/// A manifest of one kernel in a folder of its own; `change` does something to its PTX.
fn built(folder: &str, change: impl Fn(String) -> String) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../kernels/measure");
    let read = |name: &str| std::fs::read_to_string(from.join(name)).expect("a file");
    let write = |name: &str, text: String| {
        std::fs::write(folder.join(name), text).expect("it is written");
    };
    write("row_softmax.toml", read("row_softmax.toml"));
    write("row_softmax_stamped.ptx", read("row_softmax_stamped.ptx"));
    write("row_softmax.ptx", change(read("row_softmax.ptx")));
    folder.join("row_softmax.toml").to_string_lossy().into_owned()
}

#[test]
fn a_trusted_report_is_of_this_build_to_the_byte_or_refused() {
    let manifest = built("report-same", |text| text);
    let report = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report.json");
    let report = report.to_string_lossy().into_owned();
    let only = ["--only", "row_softmax/shapes", "--json", &report];
    let (code, _, stderr) = said(&[&["check", "--manifest", &manifest], &only[..]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let bench = |manifest: &str| {
        let trusted = ["--device", "emulator", "--report", &report];
        said(&[&["bench", "row_softmax", "--manifest", manifest], &trusted[..]].concat())
    };
    // The control: the same build gets as far as the device, which has no clock.
    let (code, _, stderr) = bench(&manifest);
    assert_eq!(code, Some(3), "{stderr}");
    let other = built("report-other", |text| text.replacen("NVIDIA NVVM", "NVIDIA nVVM", 1));
    let (code, _, stderr) = bench(&other);
    assert_eq!(code, Some(2), "{stderr}");
    for words in ["another `row_softmax`", "its code has the digest", "hint: assay check"] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    let text = std::fs::read_to_string(&manifest).expect("it was written");
    for (from, to, words) in [
        ("served = [1000, 2048]", "served = [1000, 2048, 4096]", "it was judged at"),
        ("block = [256]", "block = [128]", "its arguments, launches, formula or promises"),
    ] {
        std::fs::write(&manifest, text.replace(from, to)).expect("it is written");
        let (code, _, stderr) = bench(&manifest);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    let old = std::fs::read_to_string(&report).expect("a report").replace("\"build\"", "\"b\"");
    std::fs::write(&report, old).expect("it is written");
    let (code, _, stderr) = bench(&other);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("does not say which build"), "{stderr}");
}

#[test]
fn records_that_are_none_or_too_new_are_refused() {
    let good = file("good", &[("a/n=1", 1e4)]);
    let text = std::fs::read_to_string(&good).expect("it was written");
    let good = good.to_string_lossy();
    for (name, text, words) in [
        ("newer", text.replace("\"schema\": 1", "\"schema\": 99"), "schema 99"),
        ("none", "{}".to_owned(), "no `schema` key"),
        ("broken", "{".to_owned(), "does not read"),
    ] {
        let path = std::env::temp_dir().join(format!("assay-{name}-{}", std::process::id()));
        std::fs::write(&path, text).expect("it is written");
        let (code, _, stderr) = said(&["bench", "--compare", &good, &path.to_string_lossy()]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(words), "{name}: {stderr}");
    }
    let other = file("other", &[("b/n=1", 1e4)]);
    let (code, _, stderr) = said(&["bench", "--compare", &good, &other.to_string_lossy()]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("in common"), "{stderr}");
}
