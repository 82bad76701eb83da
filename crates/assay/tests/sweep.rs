//! `assay sweep` on the emulator, where instructions of warps stand for time.

mod common;

use std::path::Path;

const FILE: &str = "sweep/small.toml";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_fast_wrong_configuration_loses_to_a_right_one_and_the_cache_resumes() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (json, t4, cache) = (file("sweep.json"), file("t4.json"), file("cache.jsonl"));
    let _ = std::fs::remove_file(&cache);
    let given = ["sweep", FILE, "--device", "emulator", "--budget", "600", "--json", &json];
    let given = [&given[..], &["--t4", &t4, "--cache", &cache]].concat();
    let output = common::run(&given);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    assert!(out.contains("SUMMARY winner of both finals: threads="), "{out}");
    let read = |path: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
    };
    let record = read(&json);
    let rows = record["rows"].as_array().expect("rows");
    let of = |threads: i64, status: &str| {
        let here = |row: &&serde_json::Value| row["configuration"]["threads"] == threads;
        rows.iter().filter(here).all(|row| row["status"] == status)
    };
    assert!(of(32, "wrong"), "half of each row is not its sum: {out}");
    assert!(of(2048, "refused"), "there is no such kernel: {out}");
    assert!(record["verdict"]["configuration"]["threads"] != 32);
    assert_eq!(read(&t4)["results"].as_array().map(Vec::len), Some(rows.len()));
    let again = common::run(&given);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let again = read(&json);
    assert_eq!(again["verdict"]["configuration"], record["verdict"]["configuration"]);
    assert!(
        again["rows"].as_array().is_some_and(|rows| rows.iter().all(|r| r["from_cache"] == true))
    );
}

#[test]
fn wrong_requests_say_what_is_wrong() {
    let ran = |arguments: &[&str]| {
        let output = common::run(arguments);
        (output.status.code(), text(&output.stderr))
    };
    let (code, err) = ran(&["sweep", "no-such-file.toml"]);
    assert!(code == Some(2) && err.contains("no-such-file.toml"), "{err}");
    let (code, err) = ran(&["sweep", FILE, "--budget", "0"]);
    assert!(code == Some(2) && err.contains("no budget"), "{err}");
    if !common::has_driver() {
        let (code, err) = ran(&["sweep", FILE]);
        assert!(code == Some(3) && err.contains("--device emulator"), "{err}");
    }
    let listed = common::run(&["sweep", FILE, "--list"]);
    assert!(text(&listed.stdout).contains("threads=64 width=4"), "{}", text(&listed.stdout));
}
