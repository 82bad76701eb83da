//! `assay compare` in careless and hostile hands: nothing that was found is lost, nothing that is
//! compared is destroyed, and a request that makes no sense is refused with what to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = format!("assay-hostile-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).expect("a folder");
        Scratch(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.0.join(name), bytes).expect("written");
        name.to_owned()
    }

    /// The exit code, stdout and stderr, in this folder.
    fn assay(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command.arg("compare").args(arguments).current_dir(&self.0).env("NO_COLOR", "1");
        let Output { status, stdout, stderr } = command.output().expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (status.code().unwrap_or(-1), text(stdout), text(stderr))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn npy(shape: &str, values: &[f32]) -> Vec<u8> {
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{text:<117}\n").bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn line(values: &[f32]) -> Vec<u8> {
    npy(&format!("({},)", values.len()), values)
}

/// Tensors of one element each.
fn safetensors(tensors: &[(String, f32)]) -> Vec<u8> {
    let header: Vec<String> = tensors
        .iter()
        .enumerate()
        .map(|(at, (name, _))| {
            let (from, to) = (4 * at, 4 * at + 4);
            format!("{name:?}:{{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[{from},{to}]}}")
        })
        .collect();
    let header = format!("{{{}}}", header.join(","));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.extend(tensors.iter().flat_map(|(_, value)| value.to_le_bytes()));
    bytes
}

#[test]
fn what_was_found_is_shown_though_the_picture_cannot_be_drawn_or_written() {
    let scratch = Scratch::new("picture");
    let one = scratch.file("one.npy", &line(&[1.0, 2.0]));
    let other = scratch.file("other.npy", &line(&[1.0, 3.0]));
    // A folder that is not there is found out before anything is compared.
    for bad in ["nowhere/map.svg", ".", "-"] {
        let (code, out, error) = scratch.assay(&[&one, &other, "--svg", bad]);
        assert_eq!((code, out.as_str()), (2, ""), "{bad}: {error}");
        assert!(error.contains("error: ") && error.contains("hint: "), "{bad}: {error}");
    }
    if Path::new("/dev/full").exists() {
        let all = ["--json", "report.json", "--svg", "/dev/full"];
        let (code, out, error) = scratch.assay(&[&[one.as_str(), &other], &all[..]].concat());
        assert_eq!(code, 2, "{error}");
        assert!(out.contains("SUMMARY FAIL") && error.contains("cannot write /dev/full"));
        assert!(fs::read_to_string(scratch.0.join("report.json")).expect("there").contains("ulp"));
    }
}

#[test]
fn no_file_that_is_compared_is_written_over() {
    let scratch = Scratch::new("over");
    let one = scratch.file("one.npy", &line(&[1.0, 2.0]));
    let other = scratch.file("other.npy", &line(&[1.0, 3.0]));
    fs::create_dir(scratch.0.join("folder")).expect("made");
    for option in ["--json", "--svg"] {
        for bad in ["one.npy", "./other.npy", "folder/../other.npy"] {
            let (code, _, error) = scratch.assay(&[&one, &other, option, bad]);
            assert_eq!(code, 2, "{error}");
            assert!(error.contains("is one of the files that are compared"), "{error}");
        }
        let (code, _, error) = scratch.assay(&["--sum-of", &one, &other, option, &one]);
        assert!(code == 2 && error.contains("one of the files"), "{error}");
        let (code, _, error) = scratch.assay(&[&one, &other, "--shuffled", &one, option, &one]);
        assert!(code == 2 && error.contains("one of the files"), "{error}");
    }
    let (code, _, error) = scratch.assay(&[&one, &other, "--json", "out", "--svg", "out"]);
    assert!(code == 2 && error.contains("--json and --svg are both out"), "{error}");
    assert_eq!(scratch.assay(&[&one, &other]).0, 1, "both are there still");
}

#[test]
fn numbers_out_of_range_are_refused_at_once_with_the_range() {
    let scratch = Scratch::new("numbers");
    let one = scratch.file("one.npy", &line(&[1.0, 2.0]));
    let cases = [
        (["--atol", "-1"], "a number from 0"),
        (["--atol=-1e-6", "--equal-nan"], "a number from 0"),
        (["--atol", "nan"], "a number from 0"),
        (["--rtol", "inf"], "a number from 0"),
        (["--rtol", "1e400"], "a number from 0"),
        (["--zero-atol", "x"], "a number from 0"),
        (["--max-ulp", "-1"], "-1"),
        (["--worst", "18446744073709551615"], "from 0 to 10000"),
        (["--worst", "-3"], "-3"),
    ];
    for (arguments, expected) in cases {
        let (code, out, error) = scratch.assay(&[&[one.as_str(), &one], &arguments[..]].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    for (arguments, expected) in [
        (["--shuffles", "3"], "take at least 4"),
        (["--shuffles", "4000000000"], "take at least 4"),
        (["--false-alarm", "0"], "between 0 and 1"),
        (["--false-alarm", "nan"], "between 0 and 1"),
        (["--accumulate", "i8"], "f16, bf16, f32 or f64"),
    ] {
        let computed = ["--sum-of", one.as_str(), one.as_str()];
        let (code, _, error) = scratch.assay(&[&computed, &arguments[..]].concat());
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    for arguments in [["--atol", "-0.0"], ["--worst", "10000"], ["--max-ulp", "0"]] {
        let (code, _, error) = scratch.assay(&[&[one.as_str(), &one], &arguments[..]].concat());
        assert_eq!(code, 0, "{arguments:?}: {error}");
    }
}

#[test]
fn a_name_that_no_file_has_is_refused_and_one_that_is_not_meant_is_not_read() {
    let scratch = Scratch::new("names");
    let tensors = |value| [("x".to_owned(), value), ("y".to_owned(), 2.0)];
    let one = scratch.file("one.st", &safetensors(&tensors(1.0)));
    let other = scratch.file("other.st", &safetensors(&tensors(1.0)));
    let plain = scratch.file("plain.npy", &line(&[1.0]));
    for files in [[plain.as_str(), &plain], [&one, &other], [&plain, &one], [&one, &plain]] {
        let (code, _, error) = scratch.assay(&[&files[..], &["--tensor", "w"]].concat());
        assert_eq!(code, 2, "{files:?}");
        assert!(error.contains("`w`") && error.contains("hint: "), "{files:?}: {error}");
    }
    assert_eq!(scratch.assay(&[&plain, &one, "--tensor", "x"]).0, 0);
    // `FILE:y` means that array and no other.
    let (code, out, error) = scratch.assay(&[&one, "other.st:y", "--tensor", "x"]);
    assert_eq!(code, 2, "{out}{error}");
    assert!(out.contains("no array `x`"), "{out}{error}");
    assert_eq!(scratch.assay(&["one.st:x", "other.st:y"]).0, 1);
    // One that is asked for twice is compared once.
    let (code, out, _) = scratch.assay(&[&one, &other, "--tensor", "x", "--tensor", "x"]);
    assert!(code == 0 && out.contains("1 of 1 tensors pass"), "{out}");
    for empty in ["{}", "{\"__metadata__\":{\"a\":\"b\"}}"] {
        let mut bytes = (empty.len() as u64).to_le_bytes().to_vec();
        bytes.extend(empty.bytes());
        let empty = scratch.file("empty.st", &bytes);
        let (code, _, error) = scratch.assay(&[&one, &empty]);
        assert!(code == 2 && error.contains("empty.st holds no array"), "{error}");
    }
}

#[test]
fn what_is_missing_from_the_request_is_said_with_what_to_type() {
    let scratch = Scratch::new("missing");
    let one = scratch.file("one.npy", &line(&[1.0]));
    for (arguments, expected) in [
        (&[][..], "assay compare REFERENCE CANDIDATE"),
        (&[one.as_str()], "assay compare REFERENCE CANDIDATE"),
        (&["--matmul-of", &one, &one], "there is no CANDIDATE"),
        (&["--sum-of", &one], "there is no CANDIDATE"),
        (&["--sum-of", &one, &one, &one], "only CANDIDATE is to be named"),
        (&["--matmul-of", &one], "2 values"),
        (&[".", &one], "hint: name a file in it"),
        (&[&one, "/dev/null"], "hint: write it to a file first"),
    ] {
        let (code, _, error) = scratch.assay(arguments);
        assert_eq!(code, 2, "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn the_help_shows_every_way_to_ask_and_options_under_their_own_heading() {
    let scratch = Scratch::new("help");
    let (code, out, _) = scratch.assay(&["--help"]);
    assert_eq!(code, 0);
    for way in ["<REFERENCE> <CANDIDATE>", "--sum-of <X> <CANDIDATE>", "--matmul-of <A> <B> <"] {
        assert!(out.contains(&format!("assay compare [OPTIONS] {way}")), "{out}");
    }
    let (own, bands) = out.split_once("Bands: ").expect("a heading");
    for option in ["--json", "--svg", "--device", "--color", "--help"] {
        assert!(own.contains(option) && !bands.contains(&format!("{option} ")), "{option}: {out}");
    }
    assert!(bands.contains("--shuffles") && !own.contains("--shuffles"), "{out}");
}

#[test]
fn a_reference_that_would_not_fit_into_memory_is_not_computed() {
    let scratch = Scratch::new("memory");
    let one = scratch.file("one.npy", &line(&[1.0]));
    let wide = scratch.file("wide.npy", &npy("(1099511627776, 0)", &[]));
    let turned = scratch.file("turned.npy", &npy("(0, 1099511627776)", &[]));
    let (code, out, error) = scratch.assay(&["--sum-of", &wide, &one]);
    assert!(code == 2 && out.contains("has the shape [1099511627776]"), "{out}{error}");
    let (code, out, error) = scratch.assay(&["--matmul-of", &wide, &turned, &one]);
    assert!(code == 2 && out.contains("1099511627776, 1099511627776]"), "{out}{error}");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let scratch = Scratch::new("control");
    let names = |last: &str| {
        let header = format!(
            "{{\"a\\n\\u001b[31mred\\u0007\":{{\"dtype\":\"F32\",\"shape\":[1],\
             \"data_offsets\":[0,4]}},\"{last}\\u001b[2J\":{{\"dtype\":\"F32\",\"shape\":[1],\
             \"data_offsets\":[4,8]}}}}"
        );
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.bytes());
        bytes.extend([0, 0, 128, 63, 0, 0, 128, 63]);
        bytes
    };
    let one = scratch.file("one.st", &names("b"));
    let other = scratch.file("other.st", &names("c"));
    let (code, out, error) = scratch.assay(&[&one, &other]);
    assert_eq!(code, 1, "{out}");
    let (_, _, refused) = scratch.assay(&[&one, &other, "--tensor", "w"]);
    for text in [&out, &error, &refused] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    assert!(out.contains("PASS a\\n\\u{1b}[31mred\\u{7}: f32"), "{out}");
}

#[test]
fn thousands_of_tensors_take_seconds_and_a_screen_and_the_record_has_all() {
    let scratch = Scratch::new("many");
    let count = 20_000;
    let tensors = |wrong: f32| -> Vec<(String, f32)> {
        let value = |at: usize| if at % 200 == 7 { wrong } else { 1.0 };
        (0..count).map(|at| (format!("layer.{at}"), value(at))).collect()
    };
    let one = scratch.file("one.st", &safetensors(&tensors(1.0)));
    let other = scratch.file("other.st", &safetensors(&tensors(2.0)));
    let start = std::time::Instant::now();
    let (code, out, error) = scratch.assay(&[&one, &other, "--json", "report.json"]);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(code, 1, "{error}");
    assert!(out.contains("SUMMARY FAIL: 19900 of 20000 tensors pass, 0 not compared"), "{out}");
    assert!(out.lines().count() < 1000 && out.contains("more tensors: --json FILE has"), "{out}");
    assert!(seconds < 30.0, "{seconds} s");
    let text = fs::read_to_string(scratch.0.join("report.json")).expect("written");
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["comparisons"].as_array().map(Vec::len), Some(count));
}
