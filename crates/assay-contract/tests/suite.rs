//! The built-in suite's first slice on the emulator, from its manifests to the exit code: row sum
//! and every control planted for it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use assay_contract::manifest::{DiskFiles, RecordedFiles, parse_manifest};
use assay_contract::spec::Spec;
use assay_contract::{CheckOptions, Kernel, ManifestKernel, RunOutcome, Silent, run};
use assay_limits::Records;
use assay_record::{ExitCode, Gate, Outcome};

fn load(file: &str) -> Vec<ManifestKernel> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda");
    let text = std::fs::read_to_string(folder.join(file)).expect("the manifest is there");
    let records = Records::built_in().expect("the records can be read");
    let files = RecordedFiles::new(DiskFiles::new(folder), Arc::new(records));
    let manifest = parse_manifest(file, &text, &files);
    assert_eq!(manifest.errors, []);
    manifest.kernels
}

/// The planted controls of the gates that run kernels.
fn controls_that_run() -> Vec<ManifestKernel> {
    let runs = |kernel: &ManifestKernel| kernel.spec().control_for != Some(Gate::Limits);
    load("controls.toml").into_iter().filter(runs).collect()
}

/// The kernels of every manifest but the controls'.
fn suite() -> Vec<ManifestKernel> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda");
    let entries = folder.read_dir().expect("the suite is there");
    let names =
        entries.map(|entry| entry.expect("a name").file_name().into_string().expect("ASCII"));
    let manifests =
        names.filter(|name| name.strip_suffix(".toml").is_some_and(|source| source != "controls"));
    manifests.flat_map(|name| load(&name)).collect()
}

/// Row sum and its controls.
fn row_sum() -> Vec<ManifestKernel> {
    let all = load("row_sum.toml").into_iter().chain(load("controls.toml"));
    let concerns = |spec: &Spec| {
        let limits = spec.control_for == Some(Gate::Limits);
        let is_control = spec.control_of.as_deref() == Some("row_sum_f32") && !limits;
        spec.name == "row_sum_f32" || is_control
    };
    all.filter(|kernel| concerns(kernel.spec())).collect()
}

fn check(kernels: &[ManifestKernel], options: &CheckOptions) -> RunOutcome {
    let kernels: Vec<&dyn Kernel> = kernels.iter().map(|kernel| kernel as &dyn Kernel).collect();
    run::run(&kernels, &|_| assay_device::open("emulator"), options, &Silent)
}

/// What went otherwise than it should, for a failing test to print.
fn problems(run: &RunOutcome) -> String {
    let outcomes = run.kernels.iter().filter(|outcome| outcome.exit != ExitCode::Holds);
    let shown = outcomes.map(|outcome| format!("{:#?}\n", outcome.result));
    shown.collect()
}

#[test]
fn row_sum_passes_every_gate_and_every_control_is_red() {
    let kernels = row_sum();
    assert!(kernels.len() > 5, "row sum has controls");
    let run = check(&kernels, &CheckOptions::default());
    assert_eq!(run.exit, ExitCode::Holds, "{}", problems(&run));
    assert_eq!((run.summary.passing, run.summary.kernels), (1, 1));
    assert_eq!(run.summary.controls_red as usize, kernels.len() - 1);
}

#[test]
fn every_control_replaced_by_the_correct_kernel_fails_the_run() {
    let suite: Vec<Spec> = suite().into_iter().map(ManifestKernel::into_spec).collect();
    for control in controls_that_run() {
        let control = control.into_spec();
        let name = control.name.clone();
        let correct = suite.iter().find(|spec| control.control_of.as_ref() == Some(&spec.name));
        let correct = correct.expect("a control is a broken copy of a kernel in the suite");
        let gate = control.control_for.expect("controls.toml holds controls only");
        let (module, launches) = (correct.module.clone(), correct.launches.clone());
        let green = ManifestKernel::new(Spec { module, launches, ..control });
        let options = CheckOptions { gates: vec![gate], ..CheckOptions::default() };
        let run = check(&[green], &options);
        assert_eq!(run.exit, ExitCode::Problems, "{name} stays red with correct code");
        assert_eq!((run.summary.controls_red, run.summary.controls), (0, 1), "{name}");
        let result = run.kernels[0].result.gate(gate).expect("the gate ran");
        assert_eq!(result.outcome, Outcome::Pass, "{name}: {}", result.reason);
    }
}

#[test]
fn every_control_is_red_at_more_than_one_shape() {
    let controls = controls_that_run();
    let run = check(&controls, &CheckOptions::default());
    assert_eq!(run.exit, ExitCode::Holds, "{}", problems(&run));
    for outcome in &run.kernels {
        let (name, gate) = (&outcome.result.kernel, outcome.result.control_for);
        let result = gate.and_then(|gate| outcome.result.gate(gate)).expect("the gate ran");
        let shapes: BTreeSet<_> = result.findings.iter().map(|f| f.case.dims.clone()).collect();
        assert!(shapes.len() > 1, "{name} is red at {shapes:?} only");
        let odd = shapes.iter().flatten().any(|(_, size)| size % 2 == 1 && *size > 1);
        assert!(odd, "{name} is red at no odd size: {shapes:?}");
    }
}

/// Gate 5 alone, which opens no device.
fn check_limits(kernels: &[ManifestKernel]) -> RunOutcome {
    check(kernels, &CheckOptions { gates: vec![Gate::Limits], ..CheckOptions::default() })
}

#[test]
fn every_control_of_gate_5_is_red_on_exactly_the_chips_that_it_names() {
    let is_of_limits = |kernel: &ManifestKernel| kernel.spec().control_for == Some(Gate::Limits);
    let controls: Vec<_> = load("controls.toml").into_iter().filter(is_of_limits).collect();
    let run = check_limits(&controls);
    assert_eq!(run.exit, ExitCode::Holds, "{}", problems(&run));
    assert_eq!(run.summary.controls_red as usize, controls.len());
    let partial = |control: &ManifestKernel| {
        let spec = control.spec();
        !spec.control_chips.is_empty() && spec.control_chips != spec.chips
    };
    assert!(controls.iter().any(partial), "some control tells chips apart");
}

#[test]
fn every_launch_of_the_suite_fits_every_chip_that_is_recorded_in_well_under_a_second() {
    let suite = suite();
    let start = std::time::Instant::now();
    let run = check_limits(&suite);
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(run.exit, ExitCode::Holds, "{}", problems(&run));
    assert_eq!(run.summary.limit_problems, 0);
    let gates = run.kernels.iter().flat_map(|kernel| &kernel.result.gates);
    let chips: usize = gates.map(|gate| gate.chips.len()).sum();
    assert!(chips >= 9 * suite.len(), "{chips} pairs of {} kernels and chips", suite.len());
    assert!(seconds < 1.0, "{seconds} s for {chips} pairs of a kernel and a chip");
}

#[test]
fn every_kernel_of_the_suite_agrees_with_the_gpu_that_loads_it_gpu() {
    if let Err(error) = assay_device::open("cuda:0") {
        let test = "every_kernel_of_the_suite_agrees_with_the_gpu_that_loads_it_gpu";
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {error}");
        return;
    }
    let suite = suite();
    let kernels: Vec<&dyn Kernel> = suite.iter().map(|kernel| kernel as &dyn Kernel).collect();
    let options = CheckOptions { gates: vec![Gate::Limits], ..CheckOptions::default() };
    let run = run::run(&kernels, &|_| assay_device::open("cuda:0"), &options, &Silent);
    assert_eq!(run.exit, ExitCode::Holds, "{}", problems(&run));
}
