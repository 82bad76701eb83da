//! Kernels with a manifest through the envelope, on the emulator: right ones hold, a control of the
//! suite is found, strides and overlaps are met where a manifest declares them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assay_contract::manifest::{EmbeddedFiles, ManifestKernel};
use assay_contract::{DeviceSubject, Kernel, load_manifest, parse_manifest};
use assay_fuzz::{Candidate, KernelCandidate, KernelRunner, Limits, Options, Runner, Silent, fuzz};
use assay_record::{FuzzCandidate, FuzzVerdict, Outcome};

/// The seed of every run here.
const SEED: u64 = 20_261_130;
/// Small enough for a debug build.
const LIMITS: Limits = Limits { elements: 1 << 13, bytes: 1 << 30 };

fn suite(manifest: &str, name: &str) -> ManifestKernel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda");
    let path: PathBuf = folder.join(manifest);
    let manifest = load_manifest(&path);
    let found = manifest.kernels.into_iter().find(|kernel| kernel.spec().name == name);
    found.unwrap_or_else(|| panic!("{name} is registered"))
}

fn fuzzed(kernel: &dyn Kernel, only: Option<&str>) -> FuzzCandidate {
    let mut device = assay_device::open("emulator").expect("an emulator");
    let subject = DeviceSubject::bind(kernel, None, device.as_mut()).expect("it is bound");
    let candidate = KernelCandidate::new(kernel.spec(), LIMITS);
    let options = Options { seed: SEED, only: only.map(str::to_owned), ..Options::default() };
    fuzz(&candidate, &mut KernelRunner::new(subject), &options, &Silent)
}

#[test]
fn a_kernel_of_the_suite_holds_at_every_ugly_shape_and_counts_what_is_left_out() {
    let found = fuzzed(&suite("row_sum.toml", "row_sum_f32"), None);
    assert_eq!(found.outcome, Outcome::Pass, "seed {SEED}: {found:#?}");
    assert!(found.counts.passed > 50, "{:?}", found.counts);
    assert_eq!(found.huge.len(), 1, "{:?}", found.huge);
    assert_eq!(found.huge[0].verdict, FuzzVerdict::Skipped);
    assert!(found.huge[0].reason.contains("bytes"), "{:?}", found.huge);
    let empty = found.skipped.iter().any(|skip| skip.reason.contains("from 1 on"));
    assert!(empty, "zero sizes are counted: {:?}", found.skipped);
}

#[test]
fn a_control_of_the_suite_is_found_at_a_small_shape() {
    let found = fuzzed(&suite("controls.toml", "row_max_from_zero_f32"), Some("cols"));
    assert_eq!(found.outcome, Outcome::Fail, "seed {SEED}: {found:#?}");
    let failure = &found.failures[0];
    assert_eq!(failure.case.verdict, FuzzVerdict::Wrong);
    let smallest = failure.smallest.as_ref().unwrap_or(&failure.case);
    assert_eq!(smallest.recipe.shape.product(), 1, "one element below zero is enough");
    assert!(!found.is_problem(), "it is planted");
}

#[test]
fn a_kernel_that_repeats_along_rows_is_judged_past_what_a_reference_goes_through() {
    let kernel = suite("row_sum.toml", "row_sum_f32");
    let mut device = assay_device::open("emulator").expect("an emulator");
    let subject = DeviceSubject::bind(&kernel, None, device.as_mut()).expect("it is bound");
    let mut runner = KernelRunner::new(subject);
    let run =
        |runner: &mut KernelRunner<'_>, text: &str| runner.run(&text.parse().expect("a recipe"));
    let case = run(&mut runner, "row_sum_f32/cols=37,rows=1000/repeated:7/mixed/seed=3");
    assert_eq!(case.verdict, FuzzVerdict::Pass, "{case:?}");
    assert!(case.reason.contains("whose bytes differ: 0"), "{case:?}");
    let case = run(&mut runner, "row_sum_f32/cols=0,rows=1000/repeated:7/mixed/seed=3");
    assert_eq!(case.verdict, FuzzVerdict::Skipped, "{case:?}");
    for text in ["3x4/dense/mixed", "cols=3,rows=3/transposed/mixed", "cols=3,rows=3/dense/values"]
    {
        let case = run(&mut runner, &format!("row_sum_f32/{text}/seed=3"));
        assert_eq!(case.verdict, FuzzVerdict::Skipped, "{case:?}");
    }
    let case = run(&mut runner, "row_sum_f32/cols=3,rows=3/aliased/mixed/seed=3");
    assert!(case.reason.contains("in_place"), "{case:?}");
}

/// `body` for thread i < n, with x in `%rd1`, y in `%rd2`, the pitch of x in `%r6`, i in `%r5`.
fn twice(offset: &str) -> String {
    format!(
        "
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 pitch)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r6, [pitch];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
{offset}
    mul.wide.s32 %rd3, %r7, 4;
    mul.wide.s32 %rd6, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd6;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd5], %f2;
DONE:
    ret;
}}
"
    )
}

/// Twice a vector of any stride, which the manifest declares.
fn strided(offset: &str) -> ManifestKernel {
    registered(MANIFEST, offset)
}

/// Twice a dense vector.
fn dense(offset: &str) -> ManifestKernel {
    registered(&MANIFEST.replace(", strides = [\"pitch - 1\"]", ""), offset)
}

const MANIFEST: &str = r#"
schema = 1
[module.twice]
ptx = "twice.ptx"
[kernel.twice]
module = "twice"
formula = "y[i] = x[i] + x[i]"
dims.n = { served = [5, 300], tile = 64 }
dims.pitch = { served = [1, 3] }
args = [
    { name = "x", role = "in", type = "f32", shape = ["n"], strides = ["pitch - 1"], align = 4 },
    { name = "y", role = "out", type = "f32", shape = ["n"], align = 4 },
    { name = "n", role = "dim", type = "i32" },
    { name = "pitch", role = "dim", type = "i32" },
]
[[kernel.twice.launches]]
symbol = "twice"
grid = ["(n + 63)/64"]
block = [64]
args = ["x", "y", "n", "pitch"]
"#;

fn registered(manifest: &str, offset: &str) -> ManifestKernel {
    let ptx = twice(offset);
    let files: &'static [(&str, &[u8])] = Box::leak(
        vec![("twice.ptx", Box::leak(ptx.into_bytes().into_boxed_slice()) as &[u8])].into(),
    );
    let parsed = parse_manifest("twice.toml", manifest, &EmbeddedFiles(files));
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    parsed.kernels.into_iter().next().expect("a kernel")
}

#[test]
fn a_kernel_with_declared_strides_is_tried_at_a_stride_of_zero() {
    let right = strided("    sub.s32 %r8, %r6, 1;\n    mul.lo.s32 %r7, %r5, %r8;");
    let found = fuzzed(&right, None);
    assert_eq!(found.outcome, Outcome::Pass, "seed {SEED}: {found:#?}");
    let candidate = KernelCandidate::new(right.spec(), LIMITS);
    let recipes = candidate.cases(SEED).into_iter().map(|planned| planned.recipe.to_string());
    assert!(recipes.into_iter().any(|recipe| recipe.contains("pitch=1")), "stride 0");
}

#[test]
fn a_kernel_that_ignores_its_stride_is_found_at_the_smallest_that_shows_it() {
    let broken = strided("    mov.u32 %r7, %r5;");
    let found = fuzzed(&broken, None);
    assert_eq!(found.outcome, Outcome::Fail, "seed {SEED}: {found:#?}");
    let smallest = found.failures.iter().find_map(|failure| failure.smallest.clone());
    let recipe = smallest.expect("it is shrunk").recipe.to_string();
    assert!(recipe.contains("n=2,"), "{recipe}");
}

#[test]
fn an_offset_that_wraps_is_found_where_no_reference_goes() {
    let right = "    mov.u32 %r7, %r5;";
    let wraps = "    and.b32 %r7, %r5, 4095;";
    for (offset, verdict) in [(right, FuzzVerdict::Pass), (wraps, FuzzVerdict::Wrong)] {
        let kernel = dense(offset);
        let mut device = assay_device::open("emulator").expect("an emulator");
        let subject = DeviceSubject::bind(&kernel, None, device.as_mut()).expect("it is bound");
        let mut runner = KernelRunner::new(subject);
        let recipe = "twice/n=5000,pitch=1/repeated:61/mixed/seed=3".parse().expect("a recipe");
        let case = runner.run(&recipe);
        assert_eq!(case.verdict, verdict, "{case:?}");
    }
}

/// Goes round before the copy, 2^30 times from `n` = 64 on.
const LONG: &str = "
    mov.u32 %r7, %r5;
    mov.u32 %r8, 0;
    setp.lt.s32 %p2, %r1, 64;
    @%p2 bra COPY;
AGAIN:
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p2, %r8, 1073741824;
    @%p2 bra AGAIN;
COPY:
";

#[test]
fn a_launch_that_outlasts_the_budget_is_stopped_and_is_no_failure() {
    let budget = Duration::from_secs(3);
    let fuzzed = |budget: Option<Duration>, own: &str, only: &str| {
        let manifest = MANIFEST.replace("formula", &format!("budget = \"{own}\"\nformula"));
        let kernel = registered(&manifest.replace(", strides = [\"pitch - 1\"]", ""), LONG);
        let mut device = assay_device::open("emulator").expect("an emulator");
        let subject = DeviceSubject::bind(&kernel, None, device.as_mut()).expect("it is bound");
        let candidate = KernelCandidate::new(kernel.spec(), LIMITS);
        let only = Some(only.to_owned());
        let options = Options { seed: SEED, budget, only, ..Options::default() };
        let start = Instant::now();
        let found = fuzz(&candidate, &mut KernelRunner::new(subject), &options, &Silent);
        (found, start.elapsed())
    };
    let (found, time) = fuzzed(Some(budget), "100000000000", "pitch=1/dense");
    assert_eq!((found.outcome, found.counts.failed), (Outcome::Pass, 0), "{found:#?}");
    assert!(time < 20 * budget, "{time:?}");
    let stopped = found.skipped.iter().find(|skip| skip.reason.contains("stopped in its launch"));
    assert!(stopped.is_some_and(|skip| skip.cases >= 1), "{found:#?}");
    let all = found.counts;
    assert_eq!(all.cases, all.passed + all.skipped, "none is dropped: {all:?}");
    // The same end by the kernel's own limit is its fault, budget or none.
    for budget in [None, Some(Duration::from_secs(60))] {
        let (found, _) = fuzzed(budget, "200000", "n=64,pitch=1/dense");
        assert_eq!(found.outcome, Outcome::Fail, "{found:#?}");
        assert_eq!(found.failures[0].case.verdict, FuzzVerdict::Fault);
    }
}
