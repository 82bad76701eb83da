//! Kernels in other people's styles, compiled here and judged through a manifest like any other.
//!
//! The sources and manifests are in `tests/foreign/`. The compilers come from
//! `cargo xtask toolchain`; where one is missing the test says so on a line that starts with
//! SKIPPED.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assay_record::{Gate, KernelResult, Outcome, Report};

const JUDGED: [Gate; 4] = [Gate::NonFinite, Gate::Repeat, Gate::Shapes, Gate::Fp32Sums];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn foreign(file: &str) -> PathBuf {
    repository().join("tests/foreign").join(file)
}

/// The folder of one toolchain, if it is completely installed.
fn toolchain(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ASSAY_TOOLCHAIN")
        .map_or_else(|| repository().join(".toolchain"), PathBuf::from);
    let folder = root.join(name);
    folder.join("assay-stamp").exists().then_some(folder)
}

/// An empty folder for one test's files.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Says, past the test harness, that a test was skipped and why.
fn skip(name: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {name}: {reason}");
}

fn succeed(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

/// Compiles the CUB row sum into a folder with its manifest; `None` where nvcc is missing.
fn compile_cub(name: &str) -> Option<PathBuf> {
    let Some(cuda) = toolchain("cuda-13.0.88") else {
        skip(name, "nvcc is not installed (cargo xtask toolchain)");
        return None;
    };
    let folder = scratch(name);
    let output = Command::new(cuda.join("nvidia/cu13/bin/nvcc"))
        .args(["-arch=compute_80", "-ptx", "-O3", "-std=c++17", "-o"])
        .arg(folder.join("row_sum_cub.ptx"))
        .arg(foreign("row_sum_cub.cu"))
        .output()
        .expect("nvcc starts");
    if String::from_utf8_lossy(&output.stderr).contains("host compiler") {
        skip(name, "nvcc finds no host C++ compiler (install g++)");
        return None;
    }
    succeed(&output);
    fs::copy(foreign("foreign_cub.toml"), folder.join("foreign_cub.toml")).expect("copied");
    Some(folder)
}

/// Compiles the Triton softmax into a folder with its manifest; `None` where Triton is missing.
fn compile_triton(name: &str) -> Option<PathBuf> {
    let Some(triton) = toolchain("triton-3.6.0") else {
        skip(name, "Triton is not installed (cargo xtask toolchain --triton)");
        return None;
    };
    let folder = scratch(name);
    let output = Command::new("python3")
        .arg(foreign("softmax_triton.py"))
        .arg(&folder)
        .env("PYTHONPATH", triton)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TRITON_CACHE_DIR", folder.join("cache"))
        .output()
        .expect("python3 starts");
    succeed(&output);
    fs::copy(foreign("foreign_triton.toml"), folder.join("foreign_triton.toml")).expect("copied");
    Some(folder)
}

/// Runs `assay check` on a manifest: its exit code and report.
fn check(manifest: &Path) -> (Option<i32>, Report) {
    let json = manifest.with_extension("json");
    let output = Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["check", "--color", "never", "--manifest"])
        .arg(manifest)
        .arg("--json")
        .arg(&json)
        .output()
        .expect("assay starts");
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    let text = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}\n{words}"));
    (output.status.code(), Report::from_json(&text).expect("a report"))
}

fn result<'r>(report: &'r Report, kernel: &str) -> &'r KernelResult {
    let found = report.kernels.iter().find(|result| result.kernel == kernel);
    found.unwrap_or_else(|| panic!("no {kernel} in the report"))
}

/// Asserts that a kernel passes all four gates, or says which one it does not pass and why.
fn assert_passes(report: &Report, kernel: &str) {
    let result = result(report, kernel);
    assert_eq!(result.error, None);
    for gate in JUDGED {
        let found = result.gate(gate).unwrap_or_else(|| panic!("{gate} was not run"));
        assert_eq!(found.outcome, Outcome::Pass, "{gate}: {} {:?}", found.reason, found.findings);
    }
}

#[test]
fn a_row_sum_made_of_cub_primitives_passes() {
    let Some(folder) = compile_cub("foreign_cub") else { return };
    let (code, report) = check(&folder.join("foreign_cub.toml"));
    assert_passes(&report, "row_sum_cub");
    assert_eq!(code, Some(0));
}

#[test]
fn a_row_softmax_made_by_triton_passes() {
    let Some(folder) = compile_triton("foreign_triton") else { return };
    let launch = fs::read_to_string(folder.join("softmax_triton.json")).expect("Triton's metadata");
    assert_eq!(launch.trim(), r#"{"symbol": "softmax_kernel", "block": 128, "shared": 16}"#);
    let (code, report) = check(&folder.join("foreign_triton.toml"));
    assert_passes(&report, "softmax_triton");
    assert_eq!(code, Some(0));
}

#[test]
fn a_foreign_kernel_that_subtracts_instead_of_adding_fails() {
    let Some(folder) = compile_cub("foreign_broken") else { return };
    let ptx = folder.join("row_sum_cub.ptx");
    let text = fs::read_to_string(&ptx).expect("nvcc wrote it");
    fs::write(&ptx, text.replace("add.f32", "sub.f32")).expect("written");
    let (code, report) = check(&folder.join("foreign_cub.toml"));
    let shapes = result(&report, "row_sum_cub").gate(Gate::Shapes).expect("gate 3 was run");
    assert_eq!(shapes.outcome, Outcome::Fail, "{}", shapes.reason);
    assert_eq!(code, Some(1));
}
