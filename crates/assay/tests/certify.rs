//! `assay certify` on dossiers that need no GPU: one that holds, and what breaks it.

mod common;

use std::path::{Path, PathBuf};

use assay_measure::certify::model;
use assay_record::{Dossier, Entry};

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("certify").join(test);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn stored(test: &str, name: &str, dossier: &Dossier) -> String {
    let path = folder(test).join(name);
    std::fs::write(&path, dossier.to_json().expect("JSON")).expect("a file");
    path.to_string_lossy().into_owned()
}

fn set(dossier: &mut Dossier, name: &str, factor: f64) {
    let entry = dossier.entries.iter_mut().find(|entry| entry.name == name).expect("an entry");
    entry.value = entry.value.map(|value| factor * value);
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn ran(arguments: &[&str]) -> Ran {
    let output = common::run(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

#[test]
fn a_sound_dossier_is_certified_and_every_control_is_red() {
    let dossier = stored("sound", "dossier.json", &model());
    let pictures = folder("sound").join("pictures").to_string_lossy().into_owned();
    let given = ["certify", "--dossier", &dossier, "--gemm-flops", "7e14", "--pictures", &pictures];
    let ran = ran(&given);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("SUMMARY 11 hold, 0 broken"), "{}", ran.out);
    assert!(ran.out.matches("control red").count() == 11 && !ran.out.contains("control GREEN"));
    for name in ["roofline.svg", "latencies.svg"] {
        let svg = std::fs::read_to_string(Path::new(&pictures).join(name)).expect("a picture");
        assert!(svg.contains("a model of a device"), "{name}");
    }
}

#[test]
fn a_doctored_dossier_is_refused_with_a_certificate_written_first() {
    let mut dossier = model();
    set(&mut dossier, "l2_read", 0.4);
    let path = stored("doctored", "dossier.json", &dossier);
    let json = folder("doctored").join("certificate.json").to_string_lossy().into_owned();
    let ran = ran(&["certify", "--dossier", &path, "--json", &json]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("FAIL l2_over_dram"), "{}", ran.out);
    let certificate = std::fs::read_to_string(&json).expect("a certificate");
    let value: serde_json::Value = serde_json::from_str(&certificate).expect("JSON");
    assert_eq!(value["invariants"][0]["standing"], "broken", "{certificate}");
}

#[test]
fn a_dossier_that_drifted_for_the_worse_is_refused_unless_the_tolerance_allows_it() {
    let pinned = stored("drift", "pinned.json", &model());
    let mut now = model();
    set(&mut now, "dram_write", 0.8);
    set(&mut now, "fma_f32", 1.15);
    set(&mut now, "fma_f64", 1.15);
    let now = stored("drift", "now.json", &now);
    let given = ["certify", "--dossier", &now, "--pinned", &pinned];
    let worse = ran(&given);
    assert_eq!(worse.code, Some(1), "{}{}", worse.out, worse.err);
    assert!(worse.out.contains("WORSE") && worse.out.contains("-20.0 %"), "{}", worse.out);
    let tolerant = ran(&[&given[..], &["--tolerance", "0.25"]].concat());
    assert_eq!(tolerant.code, Some(0), "{}{}", tolerant.out, tolerant.err);
}

#[test]
fn a_failed_probe_leaves_the_certificate_unproven() {
    let mut dossier = model();
    let entry = dossier.entries.iter_mut().find(|entry| entry.name == "l2_read");
    *entry.expect("an entry") = Entry::failed("l2_read", "B/s", "", "no steady clock");
    let path = stored("failed", "dossier.json", &dossier);
    let ran = ran(&["certify", "--dossier", &path]);
    assert_eq!(ran.code, Some(4), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("no steady clock"), "{}", ran.out);
}

#[test]
fn wrong_requests_say_what_is_wrong_and_what_to_do() {
    let sound = stored("wrong", "dossier.json", &model());
    let other = folder("wrong").join("other.json").to_string_lossy().into_owned();
    std::fs::write(&other, "{\"schema\": 99}").expect("a file");
    let cases: [(&[&str], &str); 5] = [
        (&["certify", "--dossier", "no-such-file"], "hint: `assay probe --json FILE`"),
        (&["certify", "--dossier", &other], "schema 99"),
        (&["certify", "--dossier", &sound, "--pinned", "no-such"], "hint: give a file, or the"),
        (&["certify", "--dossier", &sound, "--tolerance", "NaN"], "a tolerance of NaN"),
        (&["certify", "--dossier", &sound, "--gemm-flops", "0"], "no rate of a GEMM"),
    ];
    for (arguments, words) in cases {
        let ran = ran(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(words), "{arguments:?}: {}", ran.err);
    }
}
