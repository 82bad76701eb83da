//! `assay compare` as a program: what it prints, writes and returns.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = format!("assay-compare-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).expect("a folder");
        Scratch(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("written");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A `.npy` file as numpy writes it.
fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(10 + length - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(data);
    bytes
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn plain(values: &[f32]) -> Vec<u8> {
    npy("'<f4'", "False", &format!("({},)", values.len()), &floats(values))
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn assay(arguments: &[&str], files: &[&Path]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.arg("compare").args(files).args(arguments).env("NO_COLOR", "1");
    let Output { status, stdout, stderr } = command.output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

#[test]
fn equal_files_pass_and_different_ones_say_where_and_how_far() {
    let scratch = Scratch::new("plain");
    let one = scratch.file("one.npy", &plain(&[1.0, 2.0, 3.0, -4.0]));
    let other = scratch.file("other.npy", &plain(&[1.0, 2.0, 3.5, -4.0]));
    let (code, out, _) = assay(&[], &[&one, &one]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("SUMMARY PASS"), "{out}");
    let (code, out, _) = assay(&["--rtol", "1e-3"], &[&one, &other]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("first at [2]") && out.contains("error          0.5"), "{out}");
    let (code, _, _) = assay(&["--atol", "0.5"], &[&one, &other]);
    assert_eq!(code, 0);
}

#[test]
fn a_record_and_a_picture_are_written_though_the_exit_code_is_not_zero() {
    let scratch = Scratch::new("record");
    let one = scratch.file("one.npy", &plain(&[1.0, 2.0]));
    let other = scratch.file("other.npy", &plain(&[1.0, f32::NAN]));
    let (json, svg) = (scratch.0.join("report.json"), scratch.0.join("map.svg"));
    let json_text = json.display().to_string();
    let svg_text = svg.display().to_string();
    let (code, out, error) = assay(&["--json", &json_text, "--svg", &svg_text], &[&one, &other]);
    assert_eq!(code, 1, "{out}{error}");
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(json).expect("written")).expect("JSON");
    assert_eq!(report["schema"], 1);
    assert_eq!(report["comparisons"][0]["findings"][0]["kind"], "class");
    assert!(fs::read_to_string(svg).expect("written").contains("<svg"));
}

#[test]
fn tensors_are_paired_by_name_and_what_is_missing_is_said() {
    let scratch = Scratch::new("names");
    let header = |second: &str| {
        format!(
            "{{\"__metadata__\":{{\"format\":\"pt\"}},\
             \"w\":{{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}},\
             \"{second}\":{{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}}}"
        )
    };
    let data = [0x80, 0x3f, 0x00, 0x40, 0, 0, 0x80, 0x3f];
    let one = scratch.file("one.safetensors", &safetensors(&header("b"), &data));
    let same = scratch.file("same.safetensors", &safetensors(&header("b"), &data));
    let other = scratch.file("other.safetensors", &safetensors(&header("c"), &data));
    assert_eq!(assay(&[], &[&one, &same]).0, 0);
    let (code, out, _) = assay(&[], &[&one, &other]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("PASS w: bf16 [2]"), "{out}");
    assert!(out.contains("no array `b`") && out.contains("only the candidate"), "{out}");
    assert_eq!(assay(&["--tensor", "w"], &[&one, &other]).0, 0);
    assert_eq!(assay(&["--tensor", "x"], &[&one, &other]).0, 2);
}

#[test]
fn fortran_order_big_endian_and_other_formats_are_served() {
    let scratch = Scratch::new("orders");
    let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let one = scratch.file("c.npy", &npy("'<f4'", "False", "(2, 3)", &floats(&values)));
    let turned = floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let fortran = scratch.file("f.npy", &npy("'<f4'", "True", "(2, 3)", &turned));
    let swapped: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
    let big = scratch.file("b.npy", &npy("'>f4'", "False", "(2, 3)", &swapped));
    for other in [&fortran, &big] {
        let (code, out, _) = assay(&[], &[&one, other]);
        assert_eq!(code, 0, "{out}");
    }
    let doubles: Vec<u8> = values.iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect();
    let wide = scratch.file("d.npy", &npy("'<f8'", "False", "(2, 3)", &doubles));
    let (code, out, _) = assay(&[], &[&wide, &one]);
    assert!(code == 2 && out.contains("--round"), "{out}");
    assert_eq!(assay(&["--round"], &[&wide, &one]).0, 0);
    let halves = scratch.file("v.npy", &npy("'|V2'", "False", "(2,)", &[0x80, 0x3f, 0, 0x40]));
    assert_eq!(assay(&[], &[&halves, &halves]).0, 2);
    let (code, out, _) = assay(&["--format", "bf16"], &[&halves, &halves]);
    assert!(code == 0 && out.contains("bf16"), "{out}");
}

#[test]
fn files_that_lie_or_hold_no_numbers_are_refused_with_the_reason() {
    let scratch = Scratch::new("bad");
    let good = scratch.file("good.npy", &plain(&[1.0, 2.0]));
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("text", b"hello, world".to_vec(), "no .npy, .npz or .safetensors"),
        ("objects", npy("'|O'", "False", "(2,)", &[0; 16]), "Python objects"),
        ("records", npy("[('a', '<f4')]", "False", "(2,)", &[0; 8]), "no one format"),
        ("complex", npy("'<c8'", "False", "(2,)", &[0; 16]), "complex"),
        ("more", npy("'<f4'", "False", "(2,)", &[0; 12]), "takes 8 bytes of f32, and there are 12"),
        ("huge", npy("'<f4'", "False", "(18446744073709551615, 4)", &[]), "more elements"),
        ("shape", npy("'<f4'", "False", "(3,)", &[0; 12]), "the shape [2] and the candidate [3]"),
        ("header", safetensors("{\"w\":", &[]), "no JSON"),
        ("length", [&u64::MAX.to_le_bytes()[..], b"{"].concat(), "its header takes"),
    ];
    for (name, bytes, reason) in cases {
        let bad = scratch.file(name, &bytes);
        let (code, out, error) = assay(&[], &[&good, &bad]);
        assert_eq!(code, 2, "{name}: {out}{error}");
        assert!(format!("{out}{error}").contains(reason), "{name}: {out}{error}");
    }
    assert_eq!(assay(&[], &[&good, Path::new("/nowhere/at/all")]).0, 2);
    assert_eq!(assay(&["--atol", "nan"], &[&good, &good]).0, 2);
}

#[test]
fn a_file_that_ends_early_is_compared_as_far_as_it_goes() {
    let scratch = Scratch::new("short");
    let count = 3_000_000;
    let values = vec![1.5f32; count];
    let whole = plain(&values);
    let one = scratch.file("whole.npy", &whole);
    let short = scratch.file("short.npy", &whole[..whole.len() - 100]);
    let (code, out, _) = assay(&[], &[&one, &short]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("UNPROVEN") && out.contains("cannot be read further"), "{out}");
}

/// A report without what differs from run to run.
fn settled(path: &Path) -> serde_json::Value {
    let mut report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(path).expect("written")).expect("JSON");
    for name in ["command", "date", "seconds", "device"] {
        report.as_object_mut().map(|all| all.remove(name));
    }
    report
}

#[test]
fn a_device_gives_the_report_of_the_cpu() {
    let scratch = Scratch::new("device");
    let values: Vec<f32> = (0..40_000).map(|at| (at as f32 * 0.37).sin()).collect();
    let changed: Vec<f32> = values.iter().map(|value| value * 1.000_01 + 1e-7).collect();
    let (one, other) = (plain(&values), plain(&changed));
    let (one, other) = (scratch.file("one.npy", &one), scratch.file("other.npy", &other));
    let mut reports = Vec::new();
    for device in [&[][..], &["--device", "emulator:sm_90"]] {
        let json = scratch.0.join("report.json").display().to_string();
        let tolerance = ["--rtol", "1e-5", "--json", &json];
        let (code, out, error) = assay(&[device, &tolerance].concat(), &[&one, &other]);
        assert_eq!(code, 1, "{out}{error}");
        reports.push(settled(Path::new(&json)));
    }
    assert!(reports[0]["comparisons"][0]["outside"].as_u64() > Some(0));
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn a_device_that_is_not_there_is_exit_code_3_with_words() {
    let scratch = Scratch::new("no-device");
    let one = scratch.file("one.npy", &plain(&[1.0]));
    let (code, _, error) = assay(&["--device", "cuda:99"], &[&one, &one]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("cannot use the device cuda:99") && error.contains("hint:"), "{error}");
}
