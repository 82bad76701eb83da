//! The reports pinned under `records/`: they can be read, say where they come from, and give the
//! verdicts that the emulator gives.

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use assay_image::CudaKernel;
use assay_limits::{Chip, Chips, CudaChip, Launch, fit_cuda};
use assay_record::{Gate, LoadedKernel, LoadedOccupancy, Outcome, Report};
use common::run;

/// The text of every pinned JSON record, with its path.
fn texts() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records");
    let inside = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).expect("records/ is there");
        entries.map(|entry| entry.expect("records/ can be read").path())
    };
    let paths = inside(folder.clone()).chain(inside(folder.join("dossiers")));
    let records = paths.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a record can be read");
        (path.display().to_string(), text)
    };
    records.map(read).collect()
}

fn field<'a>(record: &'a serde_json::Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_default()
}

/// The pinned reports of `assay check` with their paths.
fn records() -> Vec<(String, Report)> {
    let is_check = |text: &str| {
        let record: serde_json::Value = serde_json::from_str(text).expect("a record is JSON");
        field(&record, "command").starts_with("assay check")
    };
    let reports = texts().into_iter().filter(|(_, text)| is_check(text));
    let read = |(path, text): (String, String)| {
        let report = Report::from_json(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        (path, report)
    };
    reports.map(read).collect()
}

#[test]
fn every_json_record_has_a_schema_a_date_and_a_command_without_a_machines_paths() {
    for (path, text) in texts() {
        let record: serde_json::Value = serde_json::from_str(&text).expect("a record is JSON");
        assert!(record["schema"].is_u64(), "{path} names no schema");
        assert!(field(&record, "date").starts_with("20"), "{path} names no date");
        let command = field(&record, "command");
        assert!(!command.is_empty() && !command.contains(" /"), "{path}: {command}");
        assert!(!text.contains("/root/") && !text.contains("/tmp/"), "{path} names a path");
    }
}

#[test]
fn every_record_says_its_device_driver_date_and_command() {
    assert!(!records().is_empty(), "the suite was run on hardware");
    for (path, report) in records() {
        assert!(report.device.driver.is_some(), "{path} names no driver");
        assert!(report.date.starts_with("20") && report.date.ends_with('Z'), "{path}");
        assert!(report.command.starts_with("assay check --device cuda"), "{path}");
        assert!(!report.command.contains(" /"), "{path} names a path of some machine");
    }
}

/// A report of gate 5 alone has none of the other gates' controls.
fn is_of_limits_alone(report: &Report) -> bool {
    let mut gates = report.kernels.iter().flat_map(|kernel| &kernel.gates);
    gates.all(|result| result.gate == Gate::Limits)
}

#[test]
fn every_record_holds_what_the_suite_holds_now() {
    let listed = String::from_utf8_lossy(&run(&["check", "--list"]).stdout).into_owned();
    // The controls of gate 5 run on no device.
    let runs = listed.lines().filter(|case| !case.contains("/limits/"));
    let suite: BTreeSet<_> = runs.filter_map(|case| case.split('/').next()).collect();
    for (path, report) in records() {
        if is_of_limits_alone(&report) {
            continue;
        }
        let runs = report.kernels.iter().filter(|k| k.control_for != Some(Gate::Limits));
        let names: BTreeSet<_> = runs.map(|k| k.kernel.as_str()).collect();
        assert_eq!(names, suite, "{path}: run the suite there again");
    }
}

/// A known finding has to fail there too.
fn holds(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Pass | Outcome::Known | Outcome::NotApplicable)
}

#[test]
fn every_record_passes_every_kernel_and_catches_every_control_as_the_emulator_does() {
    for (path, report) in records() {
        for kernel in &report.kernels {
            let name = &kernel.kernel;
            if kernel.control_for.is_some() {
                assert!(kernel.is_red(), "{path}: {name} is green");
                continue;
            }
            let wrong = kernel.gates.iter().find(|gate| !holds(gate.outcome));
            assert!(wrong.is_none(), "{path}: {name}: {wrong:?}");
        }
        assert_eq!(report.exit_code, 0, "{path}");
    }
}

#[test]
fn every_occupancy_that_a_gpu_told_is_what_its_chips_table_gives() {
    let chips = Chips::built_in();
    for (path, report) in records() {
        let limits = report.kernels.iter().filter_map(|kernel| kernel.gate(Gate::Limits));
        for fit in limits.flat_map(|result| &result.chips) {
            let Some(Chip::Cuda(chip)) = chips.chip(&fit.chip) else { continue };
            for loaded in &fit.loaded {
                for told in &loaded.occupancies {
                    let given = occupancy(chip, loaded, told);
                    assert_eq!(given, told.blocks, "{path}: {loaded:?} on {}", chip.name);
                }
            }
        }
    }
}

/// The blocks that a multiprocessor holds by the chip's table.
fn occupancy(chip: &CudaChip, loaded: &LoadedKernel, told: &LoadedOccupancy) -> u32 {
    let kernel = CudaKernel {
        registers: loaded.registers,
        static_shared_bytes: loaded.static_shared_bytes,
        stack_bytes: loaded.local_bytes,
        max_threads: Some([loaded.max_threads, 1, 1]),
        ..CudaKernel::default()
    };
    let launch = Launch {
        grid: [1; 3],
        block: [told.block_threads.into(), 1, 1],
        cluster: [1; 3],
        dynamic_shared_bytes: told.dynamic_shared_bytes.into(),
    };
    fit_cuda(chip, &kernel, &launch).occupancy.map_or(0, |occupancy| occupancy.blocks)
}
