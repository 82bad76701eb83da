//! Triton sources in manifests: compiled ahead of time for three chips and judged by every gate.
//!
//! Where Triton is missing (`cargo xtask toolchain --triton`) a test says so on a line that starts
//! with SKIPPED.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assay_record::{Gate, KernelResult, Outcome, Report};

const TARGETS: [&str; 3] = ["sm_80", "sm_90", "sm_120"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn toolchains() -> PathBuf {
    std::env::var_os("ASSAY_TOOLCHAIN")
        .map_or_else(|| repository().join(".toolchain"), PathBuf::from)
}

/// Whether Triton is installed; says, past the test harness, that a test is skipped where not.
fn triton_is_there(test: &str) -> bool {
    let there = toolchains().join("triton-3.6.0/assay-stamp").exists();
    if !there {
        let reason = "Triton is not installed (cargo xtask toolchain --triton)";
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
    }
    there
}

/// A folder of a test's own, empty.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("triton").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// `assay` with a cache that the tests share.
fn assay(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command
        .args(arguments)
        .env("ASSAY_TOOLCHAIN", toolchains())
        .env("ASSAY_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("triton-cache"));
    command
}

/// Runs `assay check` on a manifest: its exit code, report and words.
fn check(manifest: &Path, folder: &Path, more: &[&str]) -> (Option<i32>, Report, String) {
    let json = folder.join("report.json");
    let output = assay(&["check", "--color", "never", "--manifest"])
        .arg(manifest)
        .arg("--json")
        .arg(&json)
        .args(more)
        .output()
        .expect("assay starts");
    let words = words(&output);
    let text = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}\n{words}"));
    (output.status.code(), Report::from_json(&text).expect("a report"), words)
}

fn words(output: &Output) -> String {
    let words = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&words).into_owned()
}

fn result<'r>(report: &'r Report, kernel: &str) -> &'r KernelResult {
    let found = report.kernels.iter().find(|result| result.kernel == kernel);
    found.unwrap_or_else(|| panic!("no {kernel} in the report"))
}

/// Asserts that a kernel gets these outcomes at the five gates.
fn assert_gates(report: &Report, kernel: &str, fp32_sums: Outcome) {
    let result = result(report, kernel);
    assert_eq!(result.error, None, "{kernel}");
    for gate in Gate::ALL {
        let found = result.gate(gate).unwrap_or_else(|| panic!("{kernel}: {gate} was not run"));
        let want = if gate == Gate::Fp32Sums { fp32_sums } else { Outcome::Pass };
        let (reason, findings) = (&found.reason, &found.findings);
        assert_eq!(found.outcome, want, "{kernel} {gate}: {reason} {findings:?}");
    }
}

/// A manifest with the softmax of the examples, with one text replaced by another, in a folder.
fn softmax_with(folder: &Path, from: &str, to: &str) -> PathBuf {
    let examples = repository().join("examples/triton");
    let text = fs::read_to_string(examples.join("triton.toml")).expect("an example");
    let end = text.find("[module.layer_norm").expect("the second module");
    let softmax = &text[..end];
    assert!(from.is_empty() || softmax.contains(from), "`{from}` is in the example");
    let manifest = folder.join("triton.toml");
    fs::write(&manifest, softmax.replacen(from, to, 1)).expect("written");
    fs::copy(examples.join("softmax.py"), folder.join("softmax.py")).expect("copied");
    manifest
}

#[test]
fn the_examples_pass_every_gate_for_three_chips_and_the_short_tail_is_caught() {
    let name = "the_examples_pass_every_gate_for_three_chips_and_the_short_tail_is_caught";
    if !triton_is_there(name) {
        return;
    }
    let manifest = repository().join("examples/triton/triton.toml");
    let (code, report, words) = check(&manifest, &scratch(name), &[]);
    for target in TARGETS {
        for kernel in ["softmax", "layer_norm", "matmul"] {
            assert_gates(&report, &format!("{kernel}@{target}"), Outcome::Pass);
        }
        let control = result(&report, &format!("softmax_short_tail@{target}"));
        assert!(control.is_red(), "{target}: {control:?}");
    }
    assert_eq!(code, Some(0), "{words}");
}

#[test]
fn a_case_of_one_target_is_run_again_by_its_name() {
    let name = "a_case_of_one_target_is_run_again_by_its_name";
    if !triton_is_there(name) {
        return;
    }
    let manifest = repository().join("examples/triton/triton.toml");
    let case = "softmax@sm_90/shapes/cols=781,rows=7/mixed-0/seed=1/in-order";
    let (code, report, words) = check(&manifest, &scratch(name), &["--repro", case]);
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(report.kernels.len(), 1);
}

#[test]
fn without_triton_its_kernels_are_unsupported_and_say_what_to_install() {
    let folder = scratch("without_triton");
    let manifest = softmax_with(&folder, "", "");
    let json = folder.join("report.json");
    let output = assay(&["check", "--gate", "shapes", "--manifest"])
        .arg(&manifest)
        .arg("--json")
        .arg(&json)
        // Neither a toolchain nor a Python.
        .env("ASSAY_TOOLCHAIN", &folder)
        .env("PATH", &folder)
        .output()
        .expect("assay starts");
    let report = fs::read_to_string(&json).unwrap_or_else(|_| panic!("{}", words(&output)));
    let report = Report::from_json(&report).expect("a report");
    for target in TARGETS {
        let shapes = result(&report, &format!("softmax@{target}")).gate(Gate::Shapes);
        let shapes = shapes.expect("the gate has a result");
        assert_eq!(shapes.outcome, Outcome::Unsupported);
        assert!(shapes.reason.contains("pip install triton"), "{}", shapes.reason);
    }
    assert_eq!(output.status.code(), Some(1));
}

/// What is printed for a manifest that Triton does not compile, which exits with 2.
fn refusal(name: &str, from: &str, to: &str) -> Option<String> {
    if !triton_is_there(name) {
        return None;
    }
    let manifest = softmax_with(&scratch(name), from, to);
    let output = assay(&["check", "--color", "never", "--gate", "shapes", "--only", "softmax"])
        .arg("--manifest")
        .arg(&manifest)
        .output()
        .expect("assay starts");
    let words = words(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    Some(words)
}

#[test]
fn a_constexpr_without_a_value_is_named() {
    let from = "constexprs = { BLOCK = 256 }";
    let Some(words) = refusal("a_constexpr_without_a_value_is_named", from, "") else { return };
    assert!(
        words.contains("module `softmax`: Triton, for sm_80, sm_90, sm_120: constexpr `BLOCK`")
    );
    assert!(words.contains("hint: give it in `constexprs`"), "{words}");
}

#[test]
fn a_function_that_is_not_there_is_answered_with_those_that_are() {
    let name = "a_function_that_is_not_there_is_answered_with_those_that_are";
    let Some(words) = refusal(name, "softmax_kernel", "soft_kernel") else { return };
    assert!(words.contains("function `soft_kernel` is not in the source"), "{words}");
    assert!(words.contains("its @triton.jit functions: `softmax_kernel`"), "{words}");
}

#[test]
fn a_kernel_that_triton_does_not_compile_gives_its_last_lines() {
    let name = "a_kernel_that_triton_does_not_compile_gives_its_last_lines";
    let Some(words) = refusal(name, "BLOCK = 256", "BLOCK = 250") else { return };
    assert!(words.contains("arange's range must be a power of 2"), "{words}");
}

#[test]
fn a_source_with_a_syntax_error_gives_the_line() {
    let name = "a_source_with_a_syntax_error_gives_the_line";
    if !triton_is_there(name) {
        return;
    }
    let folder = scratch(name);
    let manifest = softmax_with(&folder, "", "");
    fs::write(folder.join("softmax.py"), "import triton\n\ndef softmax_kernel(:\n")
        .expect("written");
    let output = assay(&["check", "--manifest"]).arg(&manifest).output().expect("assay starts");
    let words = words(&output);
    assert!(words.contains("line 3") && words.contains("SyntaxError"), "{words}");
    assert_eq!(output.status.code(), Some(2), "{words}");
}

#[test]
fn a_target_that_triton_refuses_leaves_the_others() {
    let name = "a_target_that_triton_refuses_leaves_the_others";
    if !triton_is_there(name) {
        return;
    }
    let folder = scratch(name);
    fs::write(folder.join("widen.py"), WIDEN).expect("written");
    let manifest = folder.join("widen.toml");
    fs::write(&manifest, WIDEN_MANIFEST).expect("written");
    let output =
        assay(&["check", "--list", "--manifest"]).arg(&manifest).output().expect("assay starts");
    let words = words(&output);
    assert!(words.contains("type fp8e4nv not supported in this architecture"), "{words}");
    assert!(words.contains("widen@sm_90/") && !words.contains("widen@sm_80/"), "{words}");
    assert_eq!(output.status.code(), Some(2), "{words}");
}

/// `sm_80` has no such numbers.
const WIDEN: &str = "\
import triton
import triton.language as tl


@triton.jit
def widen(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n).to(tl.float32), mask=at < n)
";

const WIDEN_MANIFEST: &str = r#"schema = 1
[module.widen.triton]
file = "widen.py"
function = "widen"
signature = ["*fp8e4nv", "*fp32", "i32"]
constexprs = { BLOCK = 128 }
[kernel.widen]
module = "widen"
formula = "y[i] = x[i]"
dims.n = { served = [100] }
args = [
    { name = "x", role = "in", type = "e4m3", shape = ["n"] },
    { name = "y", role = "out", type = "f32", shape = ["n"] },
    { name = "n", role = "dim", type = "i32" },
]
launches = [{ grid = ["(n + 127)/128"], args = ["x", "y", "n"] }]
"#;

#[test]
fn a_changed_source_is_compiled_again_and_an_unchanged_one_is_not() {
    let name = "a_changed_source_is_compiled_again_and_an_unchanged_one_is_not";
    if !triton_is_there(name) {
        return;
    }
    let folder = scratch(name);
    let manifest = softmax_with(&folder, "", "");
    let cache = folder.join("cache");
    let builds = || {
        let output = assay(&["check", "--list", "--manifest"])
            .arg(&manifest)
            .env("ASSAY_CACHE", &cache)
            .output()
            .expect("assay starts");
        assert_eq!(output.status.code(), Some(0), "{}", words(&output));
        fs::read_dir(cache.join("triton")).expect("a cache").count()
    };
    assert_eq!([builds(), builds()], [3, 3]);
    let source = fs::read_to_string(folder.join("softmax.py")).expect("a source");
    fs::write(folder.join("softmax.py"), source + "\n# changed\n").expect("written");
    assert_eq!(builds(), 6);
}
