//! What is pinned of the stopwatch's truth on real hardware: durations against a profiler's, and
//! verdicts on kernels of known difference.

use std::collections::BTreeMap;

use serde_json::Value;

const RECORD: &str = include_str!("../../../records/h200-timing.jsonl");

fn lines() -> Vec<Value> {
    RECORD.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn number(line: &Value, path: &str) -> f64 {
    line.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

/// Whether a duration is the profiler's, to 2 % or 300 ns.
fn agrees(line: &Value, own: f64) -> bool {
    let profiled = number(line, "/profiled_ns_median");
    (own - profiled).abs() <= (0.02 * profiled).max(300.0)
}

/// The kernels of each run.
fn runs() -> BTreeMap<u64, Vec<Value>> {
    let mut runs: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for line in lines().into_iter().filter(|line| line.get("kernel").is_some()) {
        runs.entry(line["run"].as_u64().unwrap_or(0)).or_default().push(line);
    }
    runs
}

#[test]
fn durations_from_a_microsecond_to_ten_milliseconds_are_a_profilers() {
    assert!(runs().len() >= 2);
    for (run, kernels) in runs() {
        let cold = |line: &&Value| agrees(line, number(line, "/cold/median_ns"));
        let right: Vec<&Value> = kernels.iter().filter(cold).collect();
        assert!(right.len() >= 19, "run {run}: {} of {}", right.len(), kernels.len());
        let span = right.iter().map(|line| number(line, "/profiled_ns_median"));
        let (least, most) = span.fold((f64::MAX, 0.0f64), |(l, m), ns| (l.min(ns), m.max(ns)));
        assert!(least < 2000.0 && most > 1e7, "run {run}: {least} to {most}");
    }
}

#[test]
fn timers_that_leave_the_launch_in_are_not() {
    let kernels: Vec<Value> = runs().into_values().flatten().collect();
    let timed = kernels.iter().filter(|line| line.get("do_bench_ns").is_some());
    let (mut right, mut all) = (0, 0);
    for line in timed {
        all += 1;
        right += u32::from(agrees(line, number(line, "/do_bench_ns")));
    }
    assert!(all >= 20 && right < all * 3 / 4, "{right} of {all}");
}

/// Trials and how many of them had a verdict, of the lines that `keep` keeps.
fn trials(what: &str, verdict: &[&str], keep: impl Fn(&Value) -> bool) -> (u64, u64) {
    let wanted = lines().into_iter().filter(|line| line["what"] == what && keep(line));
    wanted.fold((0, 0), |(trials, hits), line| {
        let of = |name: &&str| line["verdicts"].get(*name).and_then(Value::as_u64).unwrap_or(0);
        let found: u64 = verdict.iter().map(of).sum();
        (trials + line["trials"].as_u64().unwrap_or(0), hits + found)
    })
}

#[test]
fn kernels_differ_from_themselves_at_most_once_in_five_hundred_times() {
    let (trials, alarms) = trials("same", &["FAST", "SLOW"], |_| true);
    assert!(trials >= 500 && alarms * 500 <= trials, "{alarms} of {trials}");
}

#[test]
fn kernels_slowed_by_two_percent_are_called_slow() {
    // Those that came out slower by what was asked for: for others the way to slow them was wrong.
    let two = |line: &Value| (0.018..=0.0225).contains(&number(line, "/rel_median"));
    let (trials, slow) = trials("slower", &["SLOW"], two);
    assert!(trials >= 100 && slow * 100 >= trials * 95, "{slow} of {trials}");
}
