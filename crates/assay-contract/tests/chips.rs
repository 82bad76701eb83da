//! Gate 5: launches against chips, from records and images, with no device and against one that
//! tells what it loaded.

mod common;

use std::sync::Arc;

use assay_contract::limits::{Compiled, ImageFacts, Images, NamedImage};
use assay_contract::manifest::{EmbeddedFiles, Manifest, RecordedFiles, parse_manifest};
use assay_contract::run::{replay, run_one, summarize};
use assay_contract::spec::Spec;
use assay_contract::{CheckOptions, Kernel, KernelOutcome, ManifestKernel, Silent, run};
use assay_device::Device;
use assay_image::{CudaImage, CudaKernel, HipImage, HipKernel};
use assay_limits::{Digest, MetalRecords, RecordSet, Records, SourceText};
use assay_record::{ExitCode, Gate, GateResult, Outcome};
use common::device::Canned;

const SOURCE: &[u8] = b"#include \"k.cuh\"\n__global__ void k();\n";
const HEADER: &[u8] = b"#pragma once\n";
const PTX: &[u8] = b".version 8.0\n.visible .entry k()\n.maxntid 256, 1, 1\n{ ret; }\n";
const FILES: &[(&str, &[u8])] =
    &[("k.cu", SOURCE), ("k.cuh", HEADER), ("k.ptx", PTX), ("broken.cubin", b"\x7fELF")];

fn kernel(registers: u32) -> CudaKernel {
    let max_threads = Some([256, 1, 1]);
    CudaKernel { name: "k".to_owned(), registers, max_threads, ..CudaKernel::default() }
}

/// What two releases made of `k` for some chips, from the source as it is or from another.
fn records(chips: &[&str], is_stale: bool) -> Records {
    let text = |path: &str, text: &[u8]| SourceText { path: path.to_owned(), text: text.to_vec() };
    let source = if is_stale { b"void old();".as_slice() } else { SOURCE };
    let options = vec!["-O3".to_owned()];
    let digest = Digest::of(&[text("k.cu", source), text("k.cuh", HEADER)], &options);
    let set = |release: &str, registers: u32| {
        let mut set = RecordSet::new(release.parse().expect("a release"), options.clone());
        set.sources.insert("k".to_owned(), digest);
        for chip in chips {
            set.insert("k", chip, kernel(registers));
        }
        set
    };
    Records { cuda: vec![set("13.0.88", 40), set("13.2.86", 44)], hip: Vec::new() }
}

/// A manifest of one kernel, launched as `launch` says.
fn manifest(launch: &str, more: &str, records: Records) -> Manifest {
    let text = format!(
        r#"schema = 1
[module.k]
cuda = "k.cu"
ptx = "k.ptx"
[kernel.k]
module = "k"
family = "rows.sum"
dims.rows = {{ served = [1, 70000] }}
dims.cols = {{ served = [100, 30000] }}
args = [
    {{ name = "x", role = "in", type = "f32", shape = ["rows", "cols"] }},
    {{ name = "y", role = "out", type = "f32", shape = ["rows"] }},
]
launches = [{{ symbol = "k", {launch}, args = ["x", "y"] }}]
{more}
"#
    );
    let files = RecordedFiles::new(EmbeddedFiles(FILES), Arc::new(records));
    parse_manifest("k.toml", &text, &files)
}

fn one(manifest: Manifest) -> ManifestKernel {
    let shown: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    manifest.kernels.into_iter().next().expect("one kernel is declared")
}

fn options() -> CheckOptions {
    CheckOptions { gates: vec![Gate::Limits], threads: 1, ..CheckOptions::default() }
}

/// The gate's outcome on a device that must not be asked for anything.
fn judge(kernel: &dyn Kernel) -> KernelOutcome {
    let outcome = run::run(
        &[kernel],
        &|_| Ok(Box::new(Canned::emulator()) as Box<dyn Device>),
        &options(),
        &Silent,
    );
    outcome.kernels.into_iter().next().expect("the kernel has an outcome")
}

fn limits(outcome: &KernelOutcome) -> &GateResult {
    outcome.result.gate(Gate::Limits).expect("gate 5 ran")
}

/// The chips of the findings of one outcome, each once.
fn chips_of(result: &GateResult, outcome: Outcome) -> Vec<&str> {
    let found = result.findings.iter().filter(|finding| finding.outcome == outcome);
    let mut chips: Vec<&str> = found.map(|finding| finding.case.fill.as_str()).collect();
    chips.dedup();
    chips
}

const ROWS: &str = "grid = [\"rows\"], block = [256]";

#[test]
fn launches_that_fit_pass_on_every_chip_that_has_a_record() {
    let kernel = one(manifest(ROWS, "", records(&["sm_80", "sm_120"], false)));
    let outcome = judge(&kernel);
    let result = limits(&outcome);
    assert_eq!((result.outcome, outcome.exit), (Outcome::Pass, ExitCode::Holds), "{result:?}");
    let chips: Vec<&str> = result.chips.iter().map(|fit| fit.chip.as_str()).collect();
    assert_eq!(chips, ["sm_80", "sm_120"]);
    assert_eq!(result.cases, 2);
    let fit = &result.chips[0];
    // One row or 70,000: the columns change no launch.
    assert_eq!((fit.launches, fit.problems), (2, 0));
    assert_eq!(fit.compiled_by, ["nvcc 13.0.88", "nvcc 13.2.86"]);
    let occupancy = fit.occupancy.as_ref().expect("a multiprocessor holds some");
    // 44 registers, given to warps in steps of 256: 5 blocks of 8 warps in 65,536 registers.
    assert_eq!((occupancy.blocks, occupancy.warps, occupancy.warps_max), (5, 40, 64));
    assert_eq!(occupancy.binding, ["registers"]);
}

#[test]
fn a_launch_that_passes_a_limit_is_one_line_with_launch_chip_rule_asked_and_limit() {
    let launch = "grid = [1, \"rows\"], block = [256], shared = \"cols*4\"";
    let kernel = one(manifest(launch, "", records(&["sm_80", "sm_86"], false)));
    let outcome = judge(&kernel);
    let result = limits(&outcome);
    assert_eq!((result.outcome, outcome.exit), (Outcome::Fail, ExitCode::Problems));
    let reasons: Vec<&str> = result.findings.iter().map(|f| f.reason.as_str()).collect();
    assert_eq!(reasons.len(), 3, "{reasons:#?}");
    let shared = reasons.iter().find(|reason| reason.contains("breaks shared of sm_86"));
    let shared = shared.expect("sm_86 has no 120,000 bytes");
    for part in ["`k` at cols=30000,rows=1", "120,000", "101,376", "(nvcc 13.0.88)"] {
        assert!(shared.contains(part), "{shared}");
    }
    assert!(reasons.iter().any(|r| r.contains("grid-y of sm_80: 70,000 blocks")), "{reasons:#?}");
    assert_eq!(result.findings[0].case.to_string(), "k/limits/-/sm_80/seed=1/launches");
    assert_eq!(summarize(std::slice::from_ref(&outcome)).0.limit_problems, 3);
}

#[test]
fn one_case_runs_again_by_its_name() {
    let launch = "grid = [\"rows\"], block = [256], shared = \"cols*4\"";
    let kernel = one(manifest(launch, "", records(&["sm_80", "sm_86"], false)));
    let case = "k/limits/-/sm_86/seed=1/launches".parse().expect("a case");
    let mut device = Canned::emulator();
    let again = replay(&case, &[&kernel], &mut device, &Silent).expect("it is known");
    let result = limits(&again);
    assert_eq!((result.cases, result.outcome), (1, Outcome::Fail), "{result:?}");
    assert_eq!(chips_of(result, Outcome::Fail), ["sm_86"]);
}

#[test]
fn a_record_of_another_source_is_stale_and_names_the_command() {
    let outcome = judge(&one(manifest(ROWS, "", records(&["sm_80"], true))));
    let result = limits(&outcome);
    assert_eq!((result.outcome, outcome.exit), (Outcome::Fail, ExitCode::Problems));
    assert_eq!(result.findings.len(), 2, "each release has a stale set");
    assert!(result.reason.contains("stale records of nvcc 13.0.88"), "{}", result.reason);
    assert!(result.reason.contains("cargo xtask records"), "{}", result.reason);
}

#[test]
fn a_chip_without_a_record_is_unknown_and_never_passes() {
    let more = "chips = [\"sm_80\", \"sm_90\", \"gfx1100\"]";
    let outcome = judge(&one(manifest(ROWS, more, records(&["sm_80"], false))));
    let result = limits(&outcome);
    assert_eq!((result.outcome, outcome.exit), (Outcome::Unproven, ExitCode::Problems));
    assert_eq!(chips_of(result, Outcome::Unproven), ["sm_90", "gfx1100"]);
    assert!(result.reason.contains("unknown on sm_90 until it is compiled"), "{}", result.reason);
}

#[test]
fn what_is_declared_is_checked_where_nobody_compiled_the_kernel() {
    let outcome = judge(&one(manifest(ROWS, "", Records::default())));
    let result = limits(&outcome);
    assert_eq!((result.outcome, outcome.exit), (Outcome::NotApplicable, ExitCode::Holds));
    assert!(result.reason.contains("name its `images`"), "{}", result.reason);
    for (launch, rule) in [
        ("grid = [1, \"rows\"], block = [256]", "breaks grid-y of sm_80 and 8 more"),
        ("grid = [1], block = [512]", "breaks launch-bounds of sm_80 and 8 more: 512 threads"),
        ("grid = [1], block = [1024, 2]", "breaks block-threads of sm_80"),
    ] {
        let outcome = judge(&one(manifest(launch, "", Records::default())));
        let result = limits(&outcome);
        assert_eq!(result.outcome, Outcome::Fail, "{launch}");
        let found = result.findings.iter().any(|finding| finding.reason.contains(rule));
        assert!(found, "{rule}: {:#?}", result.findings);
    }
}

#[test]
fn a_known_problem_is_known_until_it_is_gone() {
    let known = "known = [{ gate = \"limits\", what = \"rows in y\", since = \"2026-11\", \
                 link = \"#1\" }]";
    let judged = |launch: &str| {
        let outcome = judge(&one(manifest(launch, known, records(&["sm_80"], false))));
        (limits(&outcome).outcome, outcome.exit, summarize(&[outcome]).0.limit_problems)
    };
    let down = judged("grid = [1, \"rows\"], block = [256]");
    assert_eq!(down, (Outcome::Known, ExitCode::Holds, 0));
    assert_eq!(judged(ROWS).0, Outcome::Fail, "the entry has to go");
}

#[test]
fn a_control_has_to_be_red_on_exactly_its_chips() {
    let launch = "grid = [1], block = [256], shared = \"cols*4\"";
    let control = |chips: &str| {
        let more = format!("control = {{ gate = \"limits\", of = \"row_sum\", chips = {chips} }}");
        judge(&one(manifest(launch, &more, records(&["sm_80", "sm_86", "sm_89"], false))))
    };
    let right = control("[\"sm_86\", \"sm_89\"]");
    assert!(right.result.is_red() && right.exit == ExitCode::Holds, "{:?}", right.result);
    for chips in ["[\"sm_86\"]", "[\"sm_80\", \"sm_86\", \"sm_89\"]"] {
        let wrong = control(chips);
        assert!(!wrong.result.is_red() && wrong.exit == ExitCode::Problems);
        let reason = &limits(&wrong).reason;
        assert!(reason.starts_with("red on sm_86, sm_89, to be red on "), "{reason}");
    }
}

/// The kernel of a manifest with images in place of records.
fn with_images(launch: &str, chips: &str, images: Vec<ImageFacts>) -> KernelOutcome {
    let mut spec: Spec = one(manifest(launch, chips, Records::default())).into_spec();
    let mut module = spec.module.as_deref().cloned().expect("a module");
    let named = |(at, facts)| NamedImage { name: format!("{at}.bin"), facts };
    let images = images.into_iter().enumerate().map(named).collect();
    let stale = Vec::new();
    module.compiled = Compiled::Images(Arc::new(Images { all: images, stale }));
    spec.module = Some(Arc::new(module));
    judge(&ManifestKernel::new(spec))
}

fn cuda(architecture: &str, kernel: CudaKernel) -> ImageFacts {
    let (architecture, kernels) = (architecture.to_owned(), vec![kernel]);
    ImageFacts::Cuda(CudaImage { architecture, kernels, ..CudaImage::default() })
}

#[test]
fn an_image_serves_its_chip_and_where_asked_the_later_ones_of_its_generation() {
    let images = || vec![cuda("sm_80", kernel(40)), cuda("sm_90a", kernel(32))];
    let by_default = with_images(ROWS, "", images());
    let chips: Vec<&str> = limits(&by_default).chips.iter().map(|fit| &*fit.chip).collect();
    assert_eq!(chips, ["sm_80", "sm_90"]);
    let asked = with_images(ROWS, "chips = [\"sm_86\", \"sm_89\"]", images());
    assert_eq!(limits(&asked).outcome, Outcome::Pass);
    assert_eq!(limits(&asked).chips[0].compiled_by, ["0.bin"]);
    let newer = with_images(ROWS, "chips = [\"sm_100\"]", images());
    assert_eq!(limits(&newer).outcome, Outcome::Unproven);
}

#[test]
fn a_kernel_is_held_to_the_chips_of_every_maker() {
    let work_group = HipKernel {
        name: "k".to_owned(),
        vgprs: 24,
        max_workgroup: 128,
        wave_size: 32,
        ..HipKernel::default()
    };
    let (architecture, kernels) = ("gfx1100".to_owned(), vec![work_group]);
    let hip = ImageFacts::Hip(HipImage { architecture, kernels, ..HipImage::default() });
    let outcome = with_images(ROWS, "", vec![hip]);
    assert_eq!(chips_of(limits(&outcome), Outcome::Fail), ["gfx1100"]);
    let metal = "{\"schema\":1,\"pipelines\":{\"k\":{\"chips\":{\"M1\":{\"max_threads\":128}}}}}";
    let metal = MetalRecords::parse(metal, "k.json").expect("it is one");
    let outcome = with_images(ROWS, "", vec![ImageFacts::Metal(metal)]);
    assert_eq!(chips_of(limits(&outcome), Outcome::Fail), ["M1"]);
}

#[test]
fn mistakes_in_the_keys_of_gate_5_are_errors_with_their_line() {
    let error = |more: &str| {
        let manifest = manifest(ROWS, more, Records::default());
        manifest.errors.first().map(ToString::to_string).unwrap_or_default()
    };
    let unknown = error("chips = [\"sm_84\"]");
    assert!(unknown.starts_with("k.toml:15:10: kernel `k`: there is no chip `sm_84`"), "{unknown}");
    assert!(error("chips = []").contains("`chips` is empty"));
    let elsewhere = error("control = { gate = \"shapes\", chips = [\"cuda\"] }");
    assert!(elsewhere.contains("only controls of gate `limits` name chips"), "{elsewhere}");
    for (key, says) in [
        ("images = [\"missing.cubin\"]", "cannot read missing.cubin"),
        ("images = [\"broken.cubin\"]", "broken.cubin: "),
        ("images = [\"k.ptx\"]", "k.ptx"),
        ("chips = [\"volta\"]", "there is no chip `volta`"),
        ("records = \"k.ptx\"\ncuda = \"k.cu\"\nptx = \"k.ptx\"", "records k.ptx: "),
    ] {
        let text = format!("schema = 1\n[module.k]\n{key}\n[kernel.k]\nmodule = \"k\"\n");
        let manifest = parse_manifest("k.toml", &text, &EmbeddedFiles(FILES));
        let errors: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
        let found = errors.iter().any(|e| e.contains(says) && e.starts_with("k.toml:3:"));
        assert!(found || key.starts_with("chips"), "{key}: {errors:#?}");
    }
}

/// The gate on a device that tells what it loaded.
fn on(mut device: Canned) -> KernelOutcome {
    let kernel = one(manifest(ROWS, "", records(&["sm_90"], false)));
    run_one(&kernel, &[&kernel], &mut device, &options(), &Silent)
}

#[test]
fn a_device_that_agrees_with_table_and_record_passes_and_its_numbers_are_kept() {
    let outcome = on(Canned::h200());
    let result = limits(&outcome);
    assert_eq!(result.outcome, Outcome::Pass, "{result:#?}");
    assert_eq!(result.notes, [""; 0]);
    let loaded = &result.chips[0].loaded[0];
    assert_eq!((loaded.symbol.as_str(), loaded.registers, loaded.max_threads), ("k", 40, 256));
    assert_eq!(loaded.occupancies[0].blocks, 6);
}

#[test]
fn registers_that_the_driver_allots_otherwise_are_noted_with_both_numbers() {
    let mut device = Canned::h200();
    (device.kernel.registers, device.blocks) = (42, 5);
    let outcome = on(device);
    assert_eq!(limits(&outcome).outcome, Outcome::Pass, "{:#?}", limits(&outcome));
    let notes = &limits(&outcome).notes;
    assert_eq!(
        notes[0],
        "`k` has 42 registers as the driver compiles it for sm_90, 40 by nvcc 13.0.88"
    );
    assert_eq!(notes.len(), 2, "and by 13.2.86: {notes:?}");
}

#[test]
fn a_device_that_counts_otherwise_than_the_table_fails() {
    let mut fewer = Canned::h200();
    fewer.blocks = 5;
    let mut bound = Canned::h200();
    bound.kernel.max_threads = 128;
    let mut small = Canned::h200();
    small.facts.shared_per_block_opt_in = 101_376;
    for (device, says) in [
        (fewer, "holds 5 blocks by the driver and 6 by the table of sm_90, at 256 threads of 40"),
        (bound, "as loaded it breaks launch-bounds: 256 threads"),
        (small, "may opt in to: the device says 101376, the table of sm_90 232448"),
    ] {
        let outcome = on(device);
        let result = limits(&outcome);
        assert_eq!((result.outcome, outcome.exit), (Outcome::Fail, ExitCode::Problems), "{says}");
        let finding = result.findings.iter().find(|finding| finding.reason.contains(says));
        let finding = finding.unwrap_or_else(|| panic!("{says}: {:#?}", result.findings));
        assert_eq!(finding.case.to_string(), "k/limits/-/loaded/seed=1/launches");
    }
}

#[test]
fn a_device_without_a_table_is_not_compared_and_says_so() {
    let mut device = Canned::h200();
    device.facts.architecture = "sm_75".to_owned();
    let outcome = on(device);
    assert_eq!(limits(&outcome).outcome, Outcome::Pass);
    assert!(limits(&outcome).notes[0].contains("sm_75 is no chip with a table"));
}
