//! `assay limits` as people type it: on a library that NVIDIA ships, on what it cannot read, and on
//! the built-in suite.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{recorded, run, skipped};
use serde_json::Value;

/// A library with kernels for ten architectures; `None`, said past the harness, where missing.
fn library(test: &str) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = std::env::var_os("ASSAY_TOOLCHAIN")
        .map_or_else(|| repository.join(".toolchain"), PathBuf::from);
    let library = root.join("nvjpeg-13.3.2.43/nvidia/cu13/lib/libnvjpeg.so.13");
    if !library.exists() {
        skipped(test, "nvjpeg is not installed (cargo xtask toolchain)");
        return None;
    }
    Some(fs::canonicalize(library).expect("it exists"))
}

/// The exit code and the JSON of a run.
fn json(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(&[&["limits", "--json", "-"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {words}"));
    (output.status.code(), value)
}

fn launches(value: &Value) -> &[Value] {
    value["launches"].as_array().expect("a list of launches")
}

#[test]
fn a_library_that_nvidia_ships_fits_every_chip_it_has_code_for() {
    let Some(library) = library("third_party_limits") else { return };
    let library = library.to_str().expect("a path in UTF-8");
    let (code, value) = json(&[library]);
    let launches = launches(&value);
    assert!(launches.len() > 1000, "{} launches", launches.len());
    let verdict = |word: &str| launches.iter().filter(|launch| launch["verdict"] == word).count();
    assert_eq!((verdict("does-not-fit"), verdict("unknown-until-compiled")), (0, 0));
    assert!(verdict("fits") > 1000);
    assert_eq!(code, Some(0));
}

#[test]
fn a_block_of_1024_threads_is_too_much_for_the_registers_of_some_kernels() {
    let Some(library) = library("third_party_block") else { return };
    let library = library.to_str().expect("a path in UTF-8");
    let (code, value) = json(&[library, "--chip", "sm_90", "--block", "2048"]);
    assert!(launches(&value).iter().all(|launch| launch["verdict"] != "fits"));
    assert_eq!(code, Some(1));
    let (code, value) = json(&[library, "--chip", "sm_90", "--shared", "300000"]);
    assert!(launches(&value).iter().all(|launch| launch["verdict"] != "fits"));
    assert_eq!(code, Some(1));
}

#[test]
fn a_chip_without_code_is_not_called_fitting() {
    let Some(library) = library("third_party_no_code") else { return };
    let library = library.to_str().expect("a path in UTF-8");
    let (code, value) = json(&[library, "--chip", "gfx1100"]);
    assert!(launches(&value).iter().all(|launch| launch["verdict"] == "no-code"));
    assert_eq!(code, Some(1));
}

#[test]
fn what_cannot_be_read_is_an_error_with_a_hint() {
    let text = recorded(&["limits", "doubles.ptx"]);
    assert!(text.contains("exit code: 2"), "{text}");
    assert!(text.contains("error: cannot read images from doubles.ptx"), "{text}");
    assert!(text.contains("caused by: at byte 0x0, `magic` starts no ELF file"), "{text}");
    assert!(text.contains("hint: what is read:"), "{text}");
    let text = recorded(&["limits", "no-such-file.cubin"]);
    assert!(text.contains("exit code: 2") && text.contains("caused by:"), "{text}");
    let text = recorded(&["limits", "doubles.ptx", "--block", "many"]);
    assert!(text.contains("exit code: 2") && text.contains("a block is one to three"), "{text}");
    let text = recorded(&["limits", "doubles.ptx", "--chip", "sm_1"]);
    assert!(text.contains("unknown chip `sm_1`") && text.contains("sm_90"), "{text}");
}

#[test]
fn options_of_an_image_need_an_image() {
    let text = recorded(&["limits", "--block", "64"]);
    assert!(text.contains("exit code: 2"), "{text}");
    assert!(text.contains("error: --block, --shared, --chip and --chips need an image"), "{text}");
}
