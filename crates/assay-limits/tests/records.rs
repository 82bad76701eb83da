//! The records that the program carries are those of the repository, and cover the suite.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assay_limits::{Chip, Chips, Records};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_file_of_records_is_embedded_and_is_written_as_it_was_read() {
    let embedded = Records::built_in().unwrap().write();
    let folder = repository().join("records/limits");
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    let names =
        |files: &[(String, String)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&embedded), names(&files), "BUILT_IN lists every file of records/limits");
    for (embedded, file) in embedded.iter().zip(&files) {
        assert!(embedded.1 == file.1, "{} is not as `cargo xtask records` writes it", file.0);
    }
}

/// Module and symbol of every kernel in the suite's PTX.
fn kernels_of_the_suite() -> BTreeSet<(String, String)> {
    let suite = repository().join("kernels/cuda");
    let mut found = BTreeSet::new();
    for (folder, prefix) in [(suite.clone(), ""), (suite.join("controls"), "controls/")] {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "ptx") {
                continue;
            }
            let module = format!("{prefix}{}", path.file_stem().unwrap().to_string_lossy());
            let text = fs::read_to_string(&path).unwrap();
            let entries = text.lines().filter_map(|line| line.split_once(".entry "));
            for (_, rest) in entries {
                let symbol = rest.split('(').next().unwrap_or_default();
                found.insert((module.clone(), symbol.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_release_of_nvcc_has_a_record_of_every_kernel_of_the_suite_on_every_chip() {
    let records = Records::built_in().unwrap();
    let kernels = kernels_of_the_suite();
    assert!(kernels.len() >= 100, "{} kernels were found in the PTX", kernels.len());
    let chips = Chips::built_in();
    let chips = chips.all().iter().filter(|chip| matches!(chip, Chip::Cuda(_)));
    let chips: BTreeSet<&str> = chips.map(Chip::name).collect();
    assert_eq!(records.cuda.len(), 4);
    for set in &records.cuda {
        let recorded: BTreeSet<(String, String)> = set
            .iter()
            .map(|(module, _, kernel)| (module.to_owned(), kernel.name.clone()))
            .collect();
        assert_eq!(recorded, kernels, "nvcc {}: `cargo xtask records`", set.release);
        for (module, symbol) in &recorded {
            let on: BTreeSet<&str> = set.chips(module, symbol).collect();
            assert_eq!(on, chips, "{module}/{symbol}, nvcc {}", set.release);
        }
    }
}

#[test]
fn an_image_of_a_release_without_a_set_is_checked_against_an_older_set_and_it_is_said() {
    let records = Records::built_in().unwrap();
    let chosen = records.cuda_for("13.4.92".parse().ok()).unwrap();
    assert_eq!(chosen.to_string(), "records of nvcc 13.3.73, the newest at or below 13.4.92");
    assert!(chosen.get("rms_norm", "rms_norm_warp_f32", "sm_90").is_some());
    let error = records.cuda_for("12.9.86".parse().ok()).unwrap_err().to_string();
    assert!(error.contains("the oldest are of 13.0.88; install that release"), "{error}");
}
