//! What is pinned of the comparison's speed on real hardware, beside torch's in the same run.

use serde_json::Value;

const RECORD: &str = include_str!("../../../records/h200-compare.jsonl");

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn number(line: &Value, path: &str) -> f64 {
    line.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

fn named<'a>(lines: &'a [Value], what: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["what"] == what).collect()
}

/// The lines of this program of a format, with a tolerance or with none.
fn ours<'a>(lines: &'a [Value], format: &str, tolerant: bool) -> Vec<&'a Value> {
    let mut all = named(lines, "assay");
    all.retain(|line| line["format"] == format && (number(line, "/rtol") > 0.0) == tolerant);
    all
}

/// The median of whole calls, in milliseconds.
const MS: &str = "/call_ms/median";

/// What the documentation says of whole calls of 2^28 fp32 elements, or what of it does not hold.
fn claims(lines: &[Value]) -> Result<(), String> {
    let near = ours(lines, "f32", true);
    let median = |what: &str| named(lines, what).first().map_or(f64::NAN, |line| number(line, MS));
    if near.is_empty() {
        return Err("there is no line of f32".to_owned());
    }
    let exact = ours(lines, "f32", false);
    let exact = exact.first().map_or(f64::NAN, |line| number(line, MS));
    for line in near {
        let call = number(line, MS);
        let kernel = number(line, "/kernel_ms/compare_f32/median");
        let holds = [
            ("a call takes 0.6 ms at most", call <= 0.6),
            ("one without a tolerance takes a tenth more at most", exact <= 1.1 * call),
            ("the kernel takes most of it", kernel <= call && kernel > 0.8 * call),
            ("assert_close takes 8 times that", median("torch.testing.assert_close") > 8.0 * call),
            ("allclose takes 8 times that", median("torch.allclose") > 8.0 * call),
            ("equal, which only says yes or no, takes as long", median("torch.equal") > 0.9 * call),
        ];
        if let Some((claim, _)) = holds.iter().find(|(_, holds)| !holds) {
            return Err(format!("{claim}: {line}"));
        }
    }
    Ok(())
}

#[test]
fn a_quarter_of_a_billion_elements_take_less_than_six_tenths_of_a_millisecond() {
    claims(&lines(RECORD)).expect("all of it holds");
}

#[test]
fn a_record_of_slower_calls_or_faster_peers_would_not_do() {
    for (what, path, factor) in [
        ("assay", "/call_ms/median", 1.2),
        ("assay without a tolerance", "/call_ms/median", 1.2),
        ("assay", "/kernel_ms/compare_f32/median", 0.5),
        ("torch.testing.assert_close", "/call_ms/median", 0.5),
        ("torch.equal", "/call_ms/median", 0.5),
    ] {
        let mut lines = lines(RECORD);
        let is_meant = |line: &Value| match what.split_once(" without") {
            Some((what, _)) => line["what"] == what && number(line, "/rtol") == 0.0,
            None => line["what"] == what,
        };
        for line in lines.iter_mut().filter(|line| is_meant(line)) {
            let changed = Value::from(number(line, path) * factor);
            if let Some(value) = line.pointer_mut(path) {
                *value = changed;
            }
        }
        assert!(claims(&lines).is_err(), "{what} {path}");
    }
    assert!(claims(&[]).is_err());
}

#[test]
fn every_figure_says_how_often_it_was_taken_and_at_which_clock() {
    let lines = lines(RECORD);
    let formats = ["f32", "bf16", "f16", "f64", "tf32", "e4m3", "i8", "i32", "i64", "u4"];
    for format in formats {
        assert!(!ours(&lines, format, true).is_empty(), "{format}");
    }
    assert!(!ours(&lines, "f32", false).is_empty());
    for line in lines.iter().filter(|line| line["what"] != "torch") {
        assert!(number(line, "/sm_clock_mhz") > 1000.0, "{line}");
        assert_eq!(line["elements"], 1u64 << 28);
        let times = [line.get("call_ms"), line.get("device_ms")].into_iter().flatten();
        for time in times {
            let [least, median, most] =
                ["/least", "/median", "/most"].map(|path| number(time, path));
            assert!(least <= median && median <= most && number(time, "/n") >= 31.0, "{line}");
        }
    }
}
