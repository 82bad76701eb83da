//! `assay stamps` on the emulator.

mod common;

use std::path::Path;

#[test]
fn the_demonstration_runs_without_a_gpu_and_is_drawn() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stamps");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (svg, json) = (file("timeline.svg"), file("stamps.json"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let given = ["stamps", "--device", "emulator:sm_90", "--svg", &svg, "--json", &json];
    let output = common::run(&given);
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", String::from_utf8_lossy(&output.stderr));
    for words in ["load", "reduce", "one stamp costs", "32 lanes"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(std::fs::read_to_string(&svg).is_ok_and(|svg| svg.contains("staged_sum on")));
    let json = std::fs::read_to_string(&json).expect("stamps");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["lanes"].as_array().map(Vec::len), Some(32));
}

#[test]
fn wrong_requests_are_told_apart() {
    let code = |arguments: &[&str]| common::run(arguments).status.code();
    assert_eq!(code(&["stamps", "--blocks", "0"]), Some(2));
    assert_eq!(code(&["stamps", "--blocks", "4294967295"]), Some(2));
    assert_eq!(code(&["stamps", "--device", "no-such"]), Some(3));
    let header = common::run(&["stamps", "--header"]);
    assert!(String::from_utf8_lossy(&header.stdout).starts_with("// Phase stamps"));
}
