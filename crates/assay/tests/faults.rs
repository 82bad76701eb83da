//! Kernels broken on purpose: what the real program makes of each kind of outcome, and that every
//! fault of the suite is caught.
//!
//! The suite's faults are built by nvcc; where it is missing the test says so on a line that starts
//! with SKIPPED. It calls the release build, since the dev build takes minutes longer, and compares
//! `docs/fault-matrix.md`: `ASSAY_BLESS=1 cargo test -p assay --test faults` writes it anew.

mod common;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assay_record::{FaultResult, FaultVerdict, Gate, Report};

/// A kernel that rounds twice, and faults in it that differ in what becomes of them.
const MANIFEST: &str = r#"schema = 1
[module.square]
cuda = "square.cu"
ptx = "square.ptx"
[kernel.square_plus]
module = "square"
formula = "y[i] = x[i] * x[i] + x[i]"
dims.n = { served = [1000], tile = 256, step = 1, least = 1 }
args = [
    { name = "x", role = "in", type = "f32", shape = ["n"] },
    { name = "y", role = "out", type = "f32", shape = ["n"] },
    { name = "n", role = "dim", type = "u32" },
]
launches = [
    { symbol = "square_plus", grid = ["(n + 255)/256"], block = [256], args = ["x", "y", "n"] },
]
"#;

const PTX: &str = "\
.version 7.0
.target sm_80
.address_size 64
.visible .entry square_plus(.param .u64 x_at, .param .u64 y_at, .param .u32 n_elements)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x_at];
    ld.param.u64 %rd2, [y_at];
    ld.param.u32 %r1, [n_elements];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra done;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    mul.rn.f32 %f2, %f1, %f1;
    add.rn.f32 %f3, %f2, %f1;
    st.global.f32 [%rd5], %f3;
done:
    ret;
}
";

const ADD: &str = "add.rn.f32 %f3, %f2, %f1;";

/// Faults by name: the gate that must catch each, and what stands in the sum's place.
const FAULTS: [(&str, &str, &str); 7] = [
    ("good_minus", "shapes", "sub.rn.f32 %f3, %f2, %f1;"),
    ("good_trap", "repeat", "trap;"),
    ("good_swapped", "shapes", "add.rn.f32 %f3, %f1, %f2;"),
    ("good_near", "shapes", "add.rn.f32 %f3, %f2, %f1; mul.rn.f32 %f3, %f3, 0f3F800002;"),
    ("bad_fused", "shapes", "fma.rn.f32 %f3, %f1, %f1, %f1;"),
    ("bad_gate", "repeat", "sub.rn.f32 %f3, %f2, %f1;"),
    ("bad_near", "shapes", "add.rn.f32 %f3, %f2, %f1; mul.rn.f32 %f3, %f3, 0f3F800002;"),
];

/// A folder with the manifest, the kernel and the builds of the faults in `builds/`.
fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults").join(name);
    let _ = fs::remove_dir_all(&folder);
    let builds = folder.join("builds/square");
    fs::create_dir_all(&builds).expect("the target folder can be written");
    let mut manifest = MANIFEST.to_owned();
    for (name, gate, code) in FAULTS {
        let close = if name == "good_near" { "close = \"two ulp\"\n" } else { "" };
        let _ = write!(
            manifest,
            "[fault.{name}]\nof = \"square_plus\"\nkind = \"other\"\ndefine = \"{name}\"\n\
             gate = \"{gate}\"\nwhat = \"made for this test\"\n{close}"
        );
        let ptx = PTX.replace(ADD, code);
        fs::write(builds.join(format!("{name}.ptx")), ptx).expect("written");
    }
    fs::write(folder.join("square.toml"), manifest).expect("written");
    fs::write(folder.join("square.ptx"), PTX).expect("written");
    folder
}

/// Runs `assay check` on the fixture's manifest and builds.
fn check(folder: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .args(["check", "--color", "never", "--manifest", "square.toml", "--faults", "builds"])
        .args(more)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn report(output: &Output) -> Report {
    let json = String::from_utf8_lossy(&output.stdout);
    Report::from_json(&json).unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

fn fault<'r>(report: &'r Report, name: &str) -> &'r FaultResult {
    let found = report.faults.iter().find(|fault| fault.fault == name);
    found.unwrap_or_else(|| panic!("no fault {name} in the report"))
}

#[test]
fn each_fault_gets_the_verdict_that_it_deserves() {
    let folder = fixture("verdicts");
    let output = check(&folder, &["--json", "-"]);
    let report = report(&output);
    let verdicts = [
        ("good_minus", FaultVerdict::Caught),
        ("good_trap", FaultVerdict::Caught),
        ("good_swapped", FaultVerdict::Equivalent),
        ("good_near", FaultVerdict::Caught),
        ("bad_fused", FaultVerdict::Survived),
        ("bad_gate", FaultVerdict::Elsewhere),
        ("bad_near", FaultVerdict::Caught),
    ];
    for (name, verdict) in verdicts {
        let fault = fault(&report, name);
        assert_eq!(fault.verdict, verdict, "{name}: {:?}", fault.remark);
    }
    assert_eq!((output.status.code(), report.exit_code), (Some(1), 1));
    assert_eq!(report.summary.passing, 1, "the kernel itself is right");
    let measured: Vec<&str> = report.discrimination.iter().map(|one| one.fault.as_str()).collect();
    assert_eq!(measured, ["good_minus", "good_near", "bad_near"]);
    let near = &report.discrimination[1];
    assert!(near.ratio.0 > 1.0 && near.is_close() && !near.is_problem(), "{near:?}");
    assert!(report.discrimination[2].is_problem());
}

#[test]
fn the_tables_show_what_caught_each_fault_and_every_problem() {
    let folder = fixture("tables");
    let shown = text(&check(&folder, &["--matrix", "matrix.md"]));
    for line in [
        "WRONG GATE bad_gate (other in square_plus)",
        "gate repeat must catch it, and only non-finite, shapes did",
        "SURVIVED bad_fused (other in square_plus)",
        "bytes of `y` differ at n=1000, within every bound and rule",
        "CLOSE square_plus: bad_near",
        "close: good_near (",
        "4 of 7 faults caught, 1 equivalent, 1 caught by the wrong gate, 1 survived",
    ] {
        assert!(shown.contains(line), "`{line}` is missing:\n{shown}");
    }
    let matrix = fs::read_to_string(folder.join("matrix.md")).expect("it was written");
    let line = "| `good_minus`: made for this test | other | red | pass | **Red** | n/a |  |";
    assert!(matrix.contains(line), "{matrix}");
}

#[test]
fn faults_that_are_caught_or_no_faults_at_all_are_no_problem() {
    let output = check(&fixture("good"), &["--only", "good_"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

#[test]
fn isolated_faults_get_the_same_verdicts() {
    let folder = fixture("isolated");
    let results = |more: &[&str]| {
        let mut report = report(&check(&folder, &[&["--json", "-"], more].concat()));
        report.faults.iter_mut().for_each(|fault| fault.seconds = 0.0);
        (report.faults, report.discrimination, report.exit_code)
    };
    assert_eq!(results(&[]), results(&["--isolate"]));
}

#[test]
fn a_fault_whose_build_is_the_correct_kernel_is_reported() {
    let folder = fixture("unbroken");
    fs::write(folder.join("builds/square/good_minus.ptx"), format!("// Another build\n{PTX}"))
        .expect("written");
    let output = check(&folder, &["--only", "good_"]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(
        shown.contains("good_minus.ptx: the build is the correct kernel's own code"),
        "{shown}"
    );
    assert!(shown.contains("2 of 3 faults caught, 1 equivalent"), "{shown}");
}

#[test]
fn a_fault_without_a_build_is_reported_and_the_others_run() {
    let folder = fixture("missing");
    fs::remove_file(folder.join("builds/square/good_minus.ptx")).expect("removed");
    let output = check(&folder, &["--only", "good_"]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(shown.contains("the fault good_minus cannot be run: there is no build"), "{shown}");
    assert!(shown.contains("cargo xtask faults"), "{shown}");
    fs::remove_dir_all(folder.join("builds")).expect("removed");
    assert_eq!(check(&folder, &[]).status.code(), Some(2));
}

#[test]
fn the_failing_case_of_a_fault_runs_again_by_its_name() {
    let folder = fixture("again");
    let report = report(&check(&folder, &["--only", "good_minus", "--json", "-"]));
    let fault = fault(&report, "good_minus");
    let case = fault.gate(Gate::Shapes).expect("gate 3 ran").findings[0].case.to_string();
    for more in [&["--repro", &case][..], &["--repro", &case, "--isolate"]] {
        let output = check(&folder, more);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("FAIL good_minus: shapes"), "{}", text(&output));
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cargo(arguments: &[&str]) -> Output {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(repository()).args(arguments).output().expect("cargo starts")
}

#[test]
fn every_fault_of_the_suite_is_caught_by_its_gate_and_the_matrix_in_the_docs_says_so() {
    let test = "every_fault_of_the_suite";
    let built = cargo(&["run", "--quiet", "--package", "xtask", "--", "faults"]);
    if built.status.code() == Some(3) {
        common::skipped(test, String::from_utf8_lossy(&built.stderr).trim());
        return;
    }
    assert!(built.status.success(), "{}", text(&built));
    let shown = text(&built);
    let builds = shown.lines().rev().find_map(|line| line.split_once(" builds in "));
    let builds = builds.expect("it says where the builds are").1;
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fault-matrix.md");
    let matrix = scratch.to_str().expect("a path in UTF-8");
    let run = ["run", "--quiet", "--release", "--package", "assay", "--", "check"];
    let options = ["--color", "never", "--faults", builds, "--matrix", matrix];
    let output = cargo(&[&run[..], &options].concat());
    let _ = writeln!(std::io::stdout(), "{}", text(&output));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let matrix = fs::read_to_string(&scratch).expect("the matrix was written");
    let pinned = repository().join("docs/fault-matrix.md");
    if std::env::var_os("ASSAY_BLESS").is_some() {
        fs::write(&pinned, &matrix).expect("docs/ can be written");
    }
    let pinned = fs::read_to_string(&pinned).unwrap_or_default();
    let differs = matrix.lines().zip(pinned.lines()).find(|(new, old)| new != old);
    let hint = "ASSAY_BLESS=1 cargo test -p assay --test faults";
    assert_eq!(differs, None, "docs/fault-matrix.md is of another suite: {hint}");
    assert_eq!(matrix.lines().count(), pinned.lines().count(), "{hint}");
}
