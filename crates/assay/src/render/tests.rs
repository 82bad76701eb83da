//! Reports that were never run, as they are shown.

use std::path::PathBuf;

use assay_record::{
    DeviceRecord, Evidence, Gate, GateResult, KernelResult, Number, Outcome, Report, SCHEMA,
    Summary,
};

use super::summary::gate_range;
use super::{View, report};

const VIEW: View<'static> = View {
    gates: &[Gate::NonFinite, Gate::Repeat, Gate::Shapes, Gate::Fp32Sums],
    device: None,
    inputs: None,
    manifests: &[],
    faults: None,
    notes: false,
};

fn gate(gate: Gate, outcome: Outcome, reason: &str) -> GateResult {
    GateResult {
        gate,
        outcome,
        reason: reason.to_owned(),
        cases: 12,
        margin: None,
        findings: Vec::new(),
        notes: Vec::new(),
        chips: Vec::new(),
    }
}

fn kernel(name: &str, gates: Vec<GateResult>) -> KernelResult {
    let (kernel, error, build) = (name.to_owned(), None, None);
    KernelResult { kernel, control_for: None, gates, error, build, seconds: 0.25 }
}

fn passing() -> Vec<GateResult> {
    let passes = |of| gate(of, Outcome::Pass, "12 cases hold");
    let mut gates: Vec<GateResult> = Gate::ALL[..4].iter().map(|of| passes(*of)).collect();
    gates[2].margin = Some(Number(0.123_456));
    gates
}

fn finding(case: &str, outcome: Outcome, reason: &str) -> Evidence {
    let case = case.parse().expect("the test names a case");
    Evidence::new(case, outcome, reason)
}

fn whole(kernels: Vec<KernelResult>, summary: Summary) -> Report {
    Report {
        schema: SCHEMA,
        assay_version: "0.1.0".to_owned(),
        command: "assay check".to_owned(),
        date: "2026-11-29T21:00:00Z".to_owned(),
        seed: 1,
        device: DeviceRecord {
            name: "emulator".to_owned(),
            backend: "emulator".to_owned(),
            driver: None,
            architecture: "sm_80".to_owned(),
        },
        shard: None,
        kernels,
        faults: Vec::new(),
        discrimination: Vec::new(),
        summary,
        smallest: None,
        exit_code: 0,
    }
}

fn red_control() -> KernelResult {
    let mut shapes = gate(Gate::Shapes, Outcome::Fail, "y misses the sum");
    for shape in ["rows=3,cols=1023", "rows=3,cols=1025"] {
        let case = format!("row_sum_drops_tail_f32/shapes/{shape}/loud/seed=1/in-order");
        shapes.findings.push(finding(&case, Outcome::Fail, "y misses the sum"));
    }
    KernelResult {
        control_for: Some(Gate::Shapes),
        ..kernel("row_sum_drops_tail_f32", vec![shapes])
    }
}

#[test]
fn a_run_in_which_all_holds_is_two_tables_and_a_line() {
    let mut noted = kernel("softmax_bf16", passing());
    noted.gates[3].notes.push("the output's rounding hides the sum".to_owned());
    let mut bare = kernel("row_max_f32", passing());
    bare.gates[3] = gate(Gate::Fp32Sums, Outcome::NotApplicable, "there is no sum");
    let kernels = vec![kernel("row_sum_f32", passing()), bare, noted, red_control()];
    let summary =
        Summary { passing: 3, kernels: 3, controls_red: 1, controls: 1, ..Summary::default() };
    insta::assert_snapshot!(report(&whole(kernels, summary), &View { notes: true, ..VIEW }));
}

#[test]
fn every_problem_has_its_numbers_its_place_and_its_command() {
    let mut wrong = kernel("row_sum_f32", passing());
    let mut finding = finding(
        "row_sum_f32/shapes/rows=7,cols=1023/loud/seed=1/in-order",
        Outcome::Fail,
        "y is further from the sum than rounding explains",
    );
    finding.output = Some("y".to_owned());
    finding.element = Some(vec![6]);
    finding.got = Some(Number(0.5));
    finding.value = Some(Number(f64::NAN));
    finding.error = Some(Number(1.0 / 3e9));
    finding.margin = Some(Number(f64::INFINITY));
    finding.place = Some("row_sum.ptx:41".to_owned());
    let reason = "y is further from the sum than rounding explains (and 2 more)";
    wrong.gates[2] = gate(Gate::Shapes, Outcome::Fail, reason);
    wrong.gates[2].margin = Some(Number(f64::INFINITY));
    wrong.gates[2].findings.push(finding);
    wrong.gates[3] = gate(Gate::Fp32Sums, Outcome::Unproven, "no replay misses");
    let mut broken = kernel("no_such_symbol", Vec::new());
    broken.error =
        Some("suite.toml:9:1: the module has no kernel `f`\nhint: it has `g`".to_owned());
    let green = KernelResult {
        control_for: Some(Gate::Repeat),
        ..kernel("harmless", vec![gate(Gate::Repeat, Outcome::Pass, "5 cases hold")])
    };
    let known = kernel("softmax", vec![gate(Gate::NonFinite, Outcome::Known, "NaN is dropped")]);
    let summary = Summary {
        kernels: 3,
        controls: 1,
        unproven: 1,
        known: 1,
        skipped: 2,
        ..Summary::default()
    };
    let manifests = [PathBuf::from("my kernels.toml")];
    let view = View { device: Some("cuda:0"), manifests: &manifests, ..VIEW };
    let kernels = vec![wrong, broken, known, green];
    insta::assert_snapshot!(report(&whole(kernels, summary), &view));
}

#[test]
fn gates_are_named_by_ranges() {
    let range = |gates: &[usize]| {
        gate_range(&gates.iter().map(|gate| Gate::ALL[gate - 1]).collect::<Vec<_>>())
    };
    assert_eq!(range(&[]), "no gate");
    assert_eq!(range(&[2]), "gate 2");
    assert_eq!(range(&[1, 2]), "gates 1 and 2");
    assert_eq!(range(&[1, 2, 3, 4]), "gates 1 to 4");
    assert_eq!(range(&[1, 3, 4]), "gates 1, 3 and 4");
}

#[test]
fn a_gpu_is_named_with_its_driver() {
    let mut whole = whole(Vec::new(), Summary::default());
    whole.device = DeviceRecord {
        name: "NVIDIA H200".to_owned(),
        backend: "cuda".to_owned(),
        driver: Some("CUDA 13.0".to_owned()),
        architecture: "sm_90".to_owned(),
    };
    let text = report(&whole, &View { gates: &[], ..VIEW });
    assert!(text.starts_with("assay 0.1.0 on cuda NVIDIA H200 (sm_90, CUDA 13.0), seed 1\n"));
    assert!(text.contains("\nSUMMARY NVIDIA H200: 0 of 0 kernels pass no gate, "), "{text}");
}
