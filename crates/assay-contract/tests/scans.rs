//! A selective scan, as a Rust function with a manifest's contract, through gates 1 to 4: correct
//! ones pass, each broken one fails the gate that is there for it. And host twins: a kernel that
//! adds in another order than its twin fails, however small the difference.

use std::collections::BTreeMap;

use assay_contract::gates::{GateContext, check};
use assay_contract::manifest::{EmbeddedFiles, parse_manifest};
use assay_contract::spec::Spec;
use assay_contract::subject::{RunError, RunRequest, RunResult, Subject};
use assay_num::Format;
use assay_record::{Gate, GateResult, Outcome};

const SEEDS: u64 = 3;

/// A kernel that is a Rust function of fp32 tensors.
struct Function {
    spec: Spec,
    compute: Compute,
}

type Tensors = BTreeMap<String, Vec<f32>>;
type Compute = Box<dyn Fn(&RunRequest<'_>, &Tensors) -> Tensors>;

impl Subject for Function {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        let narrow = |values: &Vec<f64>| values.iter().map(|value| *value as f32).collect();
        let tensors = &request.inputs.tensors;
        let tensors = tensors.iter().map(|(name, values)| (name.clone(), narrow(values))).collect();
        let outputs = (self.compute)(request, &tensors).into_iter().map(|(name, values)| {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            (name, Format::F32.encode_slice(&values))
        });
        Ok(RunResult { outputs: outputs.collect(), ..RunResult::default() })
    }
}

fn parsed(text: &str) -> Result<Spec, String> {
    let manifest = parse_manifest("test.toml", text, &EmbeddedFiles(&[("none.ptx", b"")]));
    let shown: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
    if !shown.is_empty() {
        return Err(shown.join("\n"));
    }
    Ok(manifest.kernels.into_iter().next().expect("one kernel").into_spec())
}

fn spec(text: &str) -> Spec {
    parsed(text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn result(gate: Gate, subject: &mut dyn Subject, seed: u64) -> GateResult {
    check(gate, subject, &GateContext::new(seed, &|_| ()))
}

fn must_be(outcome: Outcome, gate: Gate, subject: &mut Function) {
    for seed in 0..SEEDS {
        let result = result(gate, subject, seed);
        let findings: Vec<String> =
            result.findings.iter().map(|f| format!("  {} {}", f.case, f.reason)).collect();
        assert_eq!(
            result.outcome,
            outcome,
            "{gate} seed {seed}: {}\n{}\n{:?}",
            result.reason,
            findings.join("\n"),
            result.notes
        );
    }
}

/// The contract of a selective scan, with more lines.
fn selective(more: &str) -> String {
    format!(
        r#"schema = 1
[module.none]
ptx = "none.ptx"
[kernel.selective_scan]
module = "none"
formula = """
h[t, d, n] = scan(t, prev = h0[d, n]: exp(dt[t, d] * a[d, n]) * prev + dt[t, d] * x[t, d] * b[t, n])
y[t, d] = sum(n in 0..states: h[t, d, n] * c[t, n]) + skip[d] * x[t, d]
state[d, n] = h[time - 1, d, n]
"""
dims.time = {{ served = [1, 13, 64], tile = 8 }}
dims.channels = {{ served = [6] }}
dims.states = {{ served = [4] }}
args = [
    {{ name = "x", role = "in", type = "f32", shape = ["time", "channels"] }},
    {{ name = "dt", role = "in", type = "f32", shape = ["time", "channels"] }},
    {{ name = "a", role = "in", type = "f32", shape = ["channels", "states"], exact = 0.0 }},
    {{ name = "b", role = "in", type = "f32", shape = ["time", "states"] }},
    {{ name = "c", role = "in", type = "f32", shape = ["time", "states"] }},
    {{ name = "skip", role = "in", type = "f32", shape = ["channels"] }},
    {{ name = "h0", role = "in", type = "f32", shape = ["channels", "states"] }},
    {{ name = "y", role = "out", type = "f32", shape = ["time", "channels"] }},
    {{ name = "state", role = "out", type = "f32", shape = ["channels", "states"] }},
]
launches = [{{ symbol = "none", grid = [1], block = [1],
    args = ["x", "dt", "a", "b", "c", "skip", "h0", "y", "state"] }}]
{more}
"#
    )
}

/// How a kernel differs from the right one.
#[derive(Clone, Copy)]
struct How {
    /// What becomes of the state after each step.
    keep: fn(f32) -> f32,
    /// Whether step t of so many is done.
    does: fn(usize, usize) -> bool,
    /// The step done as number t of so many.
    step: fn(usize, usize) -> usize,
}

const RIGHT: How = How { keep: |h| h, does: |_, _| true, step: |t, _| t };

fn scan(request: &RunRequest<'_>, tensors: &Tensors, how: How) -> Tensors {
    let size = |name: &str| request.dims[name] as usize;
    let (time, channels, states) = (size("time"), size("channels"), size("states"));
    let of = |name: &str, at: usize| tensors[name][at];
    let mut state: Vec<f32> = tensors["h0"].iter().map(|h| (how.keep)(*h)).collect();
    let mut y = vec![0f32; time * channels];
    for d in 0..channels {
        for t in (0..time).map(|t| (how.step)(t, time)) {
            let at = t * channels + d;
            let u = of("dt", at) * of("x", at);
            let mut sum = 0f32;
            for n in 0..states {
                let h = &mut state[d * states + n];
                if (how.does)(t, time) {
                    let decay = (of("dt", at) * of("a", d * states + n)).exp();
                    *h = (how.keep)(decay.mul_add(*h, u * of("b", t * states + n)));
                }
                sum = h.mul_add(of("c", t * states + n), sum);
            }
            y[at] = of("skip", d).mul_add(of("x", at), sum);
        }
    }
    Tensors::from([("y".to_owned(), y), ("state".to_owned(), state)])
}

fn kernel(how: How) -> Function {
    let compute: Compute = Box::new(move |request, tensors| scan(request, tensors, how));
    Function { spec: spec(&selective("")), compute }
}

#[test]
fn a_correct_selective_scan_passes_gates_1_to_4() {
    for gate in [Gate::NonFinite, Gate::Repeat, Gate::Shapes, Gate::Fp32Sums] {
        must_be(Outcome::Pass, gate, &mut kernel(RIGHT));
    }
}

#[test]
fn a_state_in_half_fails_the_sums_gate() {
    let half: How = How { keep: |h| Format::F16.round(f64::from(h)) as f32, ..RIGHT };
    let bfloat: How = How { keep: |h| Format::Bf16.round(f64::from(h)) as f32, ..RIGHT };
    for how in [half, bfloat] {
        must_be(Outcome::Fail, Gate::Fp32Sums, &mut kernel(how));
        must_be(Outcome::Fail, Gate::Shapes, &mut kernel(how));
    }
}

#[test]
fn a_lost_step_fails_the_shapes_gate() {
    let last = How { does: |t, time| t + 1 < time, ..RIGHT };
    let first = How { does: |t, _| t > 0, ..RIGHT };
    let edge = How { does: |t, _| t != 8, ..RIGHT };
    for how in [last, first, edge] {
        must_be(Outcome::Fail, Gate::Shapes, &mut kernel(how));
    }
}

#[test]
fn a_state_that_drops_nan_fails_the_non_finite_gate() {
    let how = How { keep: |h| if h.is_nan() { 0.0 } else { h }, ..RIGHT };
    must_be(Outcome::Fail, Gate::NonFinite, &mut kernel(how));
}

#[test]
fn time_in_reverse_fails_the_shapes_gate() {
    let how = How { step: |t, time| time - 1 - t, ..RIGHT };
    must_be(Outcome::Fail, Gate::Shapes, &mut kernel(how));
}

/// The contract of the split-K product, with its twin.
fn split_k() -> Spec {
    spec(
        r#"schema = 1
[module.none]
ptx = "none.ptx"
[kernel.split_k]
module = "none"
family = "dense.gemv"
twin = "split_k_gemv"
dims.rows = { served = [5] }
dims.cols = { served = [1000, 2051], tile = 512 }
args = [
    { name = "w", role = "in", type = "bf16", shape = ["rows", "cols"] },
    { name = "x", role = "in", type = "f32", shape = ["cols"] },
    { name = "y", role = "out", type = "f32", shape = ["rows"] },
]
launches = [{ symbol = "none", grid = [1], block = [1], args = ["w", "x", "y"] }]
"#,
    )
}

/// A row's product by slices, whose sums `merge` joins.
fn sliced(tensors: &Tensors, merge: fn(&[f32]) -> f32) -> Tensors {
    let x = &tensors["x"];
    let row = |row: &[f32]| {
        let slices = row.chunks(512).zip(x.chunks(512));
        let sums: Vec<f32> = slices.map(|(row, x)| warp(row, x)).collect();
        merge(&sums)
    };
    Tensors::from([("y".to_owned(), tensors["w"].chunks(x.len()).map(row).collect())])
}

/// A slice by 32 lanes of 8 neighbours, then a butterfly: written apart from the twin.
fn warp(row: &[f32], x: &[f32]) -> f32 {
    let mut lanes = [0f32; 32];
    for at in 0..row.len() {
        let lane = &mut lanes[at / 8 % 32];
        *lane = row[at].mul_add(x[at], *lane);
    }
    let mut width = 32;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}

fn split_k_kernel(merge: fn(&[f32]) -> f32) -> Function {
    let compute: Compute = Box::new(move |_, tensors| sliced(tensors, merge));
    Function { spec: split_k(), compute }
}

#[test]
fn a_kernel_with_the_bytes_of_its_twin_passes() {
    let mut kernel = split_k_kernel(|sums| sums[1..].iter().fold(sums[0], |sum, next| sum + next));
    must_be(Outcome::Pass, Gate::Shapes, &mut kernel);
}

#[test]
fn a_kernel_that_adds_its_slices_in_another_order_fails_its_twin() {
    let mut kernel = split_k_kernel(|sums| sums.iter().rev().fold(0.0, |sum, next| sum + next));
    must_be(Outcome::Fail, Gate::Shapes, &mut kernel);
    let result = result(Gate::Shapes, &mut kernel, 1);
    assert!(result.reason.contains("the twin `split_k_gemv` gives"), "{}", result.reason);
    let finding = &result.findings[0];
    assert!(finding.element.is_some() && finding.got != finding.value, "{finding:?}");
    // Without the twin its bytes are as good as any other's.
    kernel.spec.twin = None;
    must_be(Outcome::Pass, Gate::Shapes, &mut kernel);
}

#[test]
fn a_selective_scan_equals_its_twin_or_says_where_not() {
    let mut other = kernel(RIGHT);
    other.spec = spec(&selective("twin = \"selective_scan\""));
    // The host's own exponential is not the one that the twin states.
    must_be(Outcome::Fail, Gate::Shapes, &mut other);
    let twin = other.spec.twin.expect("a twin");
    let signature = other.spec.signature.clone();
    other.compute = Box::new(move |request, _| {
        let bytes = twin.bytes(&signature, request.dims, request.inputs).expect("its tensors");
        let values = |bytes: &Vec<u8>| {
            Format::F32.decode_slice(bytes).into_iter().map(|value| value as f32).collect()
        };
        bytes.iter().map(|(name, bytes)| (name.clone(), values(bytes))).collect()
    });
    for gate in [Gate::NonFinite, Gate::Shapes, Gate::Fp32Sums] {
        must_be(Outcome::Pass, gate, &mut other);
    }
}

#[test]
fn an_unknown_twin_is_an_error_that_lists_the_known_ones() {
    let error = parsed(&selective("twin = \"selective\"")).expect_err("no such twin");
    assert!(error.contains("unknown twin `selective`"), "{error}");
    assert!(error.contains("`split_k_gemv`, `selective_scan`"), "{error}");
    let error = parsed(&selective("twin = \"split_k_gemv\"")).expect_err("another kernel's twin");
    assert!(error.contains("needs an input `w` with 2 axes"), "{error}");
}

#[test]
fn a_depth_of_a_scan_is_an_error() {
    let error = parsed(&selective("depth = { t = \"time\" }")).expect_err("no depth");
    assert!(error.contains("`t` is a scan, which has no depth"), "{error}");
}
