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

/// A manifest of the repository.
fn manifest(name: &str) -> String {
    format!("{}/../../kernels/measure/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Exit code and all that was said.
fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output = common::run(arguments);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_manifests_kernel_is_right_and_its_phases_are_stamped() {
    let manifest = manifest("row_softmax.toml");
    let checked = ["check", "--manifest", &manifest, "--only", "row_softmax/", "--color", "never"];
    let (code, text) = said(&checked);
    assert_eq!(code, Some(0), "{text}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stamped");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    std::fs::create_dir_all(&folder).expect("a folder");
    let (svg, json) = (file("row_softmax.svg"), file("row_softmax.json"));
    let dims = ["--dims", "rows=3,cols=600", "--svg", &svg, "--json", &json];
    let stamp = ["stamps", "row_softmax", "--manifest", &manifest];
    let (code, text) = said(&[&stamp[..], &dims].concat());
    assert_eq!(code, Some(0), "{text}");
    for words in ["load", "maximum", "sum", "store", "24 lanes", "all 7200 bytes of its outputs"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let svg = std::fs::read_to_string(&svg).expect("a timeline");
    assert!(svg.contains("row_softmax/cols=600,rows=3 on"), "{svg}");
    let record = std::fs::read_to_string(&json).expect("stamps");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    assert_eq!(record["equal_output_bytes"], 7200);
    assert_eq!(record["seed"], 1);
    let spans = |phase: usize| record["statistics"][phase]["spans"].as_u64();
    assert_eq!((0..4).map(spans).collect::<Vec<_>>(), [Some(24); 4]);
}

/// A copy of the example's manifest and modules, with something done to it; says what stamping it
/// gives.
fn doctored(name: &str, change: impl Fn(&str, String) -> String) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in ["row_softmax.toml", "row_softmax.ptx", "row_softmax_stamped.ptx"] {
        let text = std::fs::read_to_string(manifest(file)).expect("a file of the repository");
        std::fs::write(folder.join(file), change(file, text)).expect("it is written");
    }
    let manifest = folder.join("row_softmax.toml").to_string_lossy().into_owned();
    said(&["stamps", "row_softmax", "--manifest", &manifest, "--dims", "rows=1,cols=300"])
}

#[test]
fn a_stamped_build_that_computes_something_else_gives_no_statistics() {
    let (code, text) = doctored("stamps-same", |_, text| text);
    assert_eq!(code, Some(0), "the control: {text}");
    let (code, text) = doctored("stamps-other", |file, text| {
        // One rounding is another one: a difference in the last place of some elements.
        let stamped = file == "row_softmax_stamped.ptx";
        if stamped { text.replace("div.rn.f32", "div.rz.f32") } else { text }
    });
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the stamped build computes something else"), "{text}");
    assert!(!text.contains("p95"), "{text}");
}

#[test]
fn builds_that_take_no_stamps_or_name_none_are_refused() {
    let (code, text) = doctored("stamps-none", |file, text| {
        let manifest = file == "row_softmax.toml";
        if manifest {
            text.replace("module = \"row_softmax_stamped\",", "module = \"row_softmax\",")
        } else {
            text
        }
    });
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("takes 3 parameters") && text.contains("ASSAY_STAMPS"), "{text}");
    let (code, text) = doctored("stamps-unknown", |file, text| {
        let manifest = file == "row_softmax.toml";
        if manifest {
            text.replace("module = \"row_softmax_stamped\",", "module = \"row_softmix\",")
        } else {
            text
        }
    });
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("there is no [module.row_softmix]"), "{text}");
    let (code, text) = said(&["stamps", "row_sum_f32"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("no stamped build") && text.contains("hint: "), "{text}");
    assert_eq!(said(&["stamps", "no_such_kernel"]).0, Some(2));
    assert_eq!(said(&["stamps", "--manifest", "x.toml"]).0, Some(2));
}
