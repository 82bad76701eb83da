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
    assert!(!out.contains(".assay-sweep-"), "the manifest is called by its own name: {out}");
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
    let (code, err) = ran(&["sweep", FILE, "--device", "emulator", "--t4", "no-such-folder/t4"]);
    assert!(code == Some(2) && err.contains("cannot write no-such-folder/t4"), "{err}");
    assert!(!err.contains("gate of"), "it is said before anything is run: {err}");
    if !common::has_driver() {
        let (code, err) = ran(&["sweep", FILE]);
        assert!(code == Some(3) && err.contains("--device emulator"), "{err}");
    }
    let listed = common::run(&["sweep", FILE, "--list"]);
    assert!(text(&listed.stdout).contains("threads=64 width=4"), "{}", text(&listed.stdout));
}

/// A sweep like that of `FILE`, in a folder of its own: a search that is killed leaves files there.
fn copied(folder: &Path) -> std::io::Result<String> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["sweep_sum.toml", "sweep_sum.ptx", "sweep_sum.cu"] {
        std::fs::copy(root.join("../../kernels/measure").join(name), folder.join(name))?;
    }
    let text = std::fs::read_to_string(root.join("tests/fixtures").join(FILE))?;
    let axes = text.replace("../../../../../kernels/measure/", "");
    let file = folder.join("axes.toml");
    std::fs::write(&file, axes)?;
    Ok(file.to_string_lossy().into_owned())
}

#[test]
fn a_search_that_is_killed_goes_on_where_it_was_and_asks_no_gate_twice() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep-killed");
    let file = copied(&folder).expect("the sweep is copied");
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (json, cache) = (path("sweep.json"), path("cache.jsonl"));
    let given = ["sweep", &file, "--device", "emulator", "--budget", "600", "--json", &json];
    let given = [&given[..], &["--cache", &cache]].concat();
    let known = || std::fs::read_to_string(&cache).unwrap_or_default();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(&given)
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program starts");
    let began = std::time::Instant::now();
    while known().lines().count() < 3 && began.elapsed().as_secs() < 300 {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it was killed");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    let before = known();
    assert!(!Path::new(&json).exists(), "control: it was killed in the middle");
    let gates = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let gates = lines.filter(|line: &serde_json::Value| line["gate"].is_string());
        gates.map(|line| line["configuration"].to_string()).collect()
    };
    assert!(gates(&before).len() >= 3, "{before}");
    let output = common::run(&given);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let after = known();
    assert!(after.starts_with(&before), "what was known stays");
    let mut asked = gates(&after);
    let record = std::fs::read_to_string(&json).expect("the record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let rows = record["rows"].as_array().expect("rows");
    assert_eq!(asked.len(), rows.len(), "each configuration has been asked once");
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), rows.len());
    let cached = rows.iter().filter(|row| row["from_cache"] == true);
    let cached: Vec<String> = cached.map(|row| row["configuration"].to_string()).collect();
    assert!(gates(&before).iter().all(|known| cached.contains(known)), "{cached:?}");
    assert!(cached.len() < rows.len(), "control: those not reached before were asked now");
}
