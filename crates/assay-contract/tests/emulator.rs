//! Manifest kernels on the emulator: hand-written PTX, right and wrong, and requests that cannot
//! be served.

use assay_contract::manifest::{EmbeddedFiles, ManifestKernel, parse_manifest};
use assay_contract::spec::Spec;
use assay_contract::{CheckOptions, Kernel, KernelOutcome, RunOutcome, Silent, run};
use assay_record::{ExitCode, Gate, GateResult, Outcome};

/// `body` for thread i < n, with x in `%rd1`, y in `%rd2`, the addresses of their element i in
/// `%rd4` and `%rd5`, n in `%r1` and i in `%r5`.
fn entry(name: &str, guard: &str, body: &str) -> String {
    format!(
        "
.visible .entry {name}(.param .u64 x, .param .u64 y, .param .u32 n)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<10>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<10>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.{guard}.s32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
{body}
DONE:
    ret;
}}
"
    )
}

fn ptx() -> String {
    let double = "    ld.global.f32 %f1, [%rd4];\n    add.f32 %f2, %f1, %f1;";
    let store = "    st.global.f32 [%rd5], %f2;";
    let wide = "    mul.wide.s32 %rd6, %r5, 8;\n    add.s64 %rd5, %rd2, %rd6;";
    let gap = "    sub.s32 %r6, %r1, 1;
    setp.lt.s32 %p3, %r5, %r6;
    @%p3 st.global.f32 [%rd5+4], %f2;";
    let next = "    add.s32 %r6, %r5, 1;
    rem.s32 %r7, %r6, %r1;
    mul.wide.s32 %rd6, %r7, 4;
    add.s64 %rd7, %rd1, %rd6;
    ld.global.f32 %f1, [%rd4];
    ld.global.f32 %f3, [%rd7];
    add.f32 %f2, %f1, %f3;";
    let entries = [
        entry("twice", "ge", &format!("{double}\n{store}")),
        entry("past_end", "gt", &format!("{double}\n{store}")),
        entry("writes_input", "ge", &format!("{double}\n{store}\n    st.global.f32 [%rd4], %f2;")),
        entry(
            "unwritten",
            "ge",
            &format!("{double}\n    setp.eq.s32 %p2, %r5, 2;\n    @!%p2 {}", store.trim()),
        ),
        entry("strided", "ge", &format!("{double}\n{wide}\n{store}")),
        entry("strided_gap", "ge", &format!("{double}\n{wide}\n{store}\n{gap}")),
        entry("neighbours", "ge", &format!("{next}\n{store}")),
        entry(
            "vectors",
            "ge",
            &format!("    ld.global.v2.f32 {{%f3, %f4}}, [%rd1];\n{double}\n{store}"),
        ),
        entry("forever", "ge", &format!("{double}\nAGAIN:\n    bra AGAIN;\n{store}")),
        entry("traps", "ge", "    trap;"),
    ];
    format!(".version 8.0\n.target sm_80\n.address_size 64\n{}", entries.concat())
}

const TWICE: &str = "y[i] = x[i] + x[i]";

/// What differs between the kernels here.
struct Case<'a> {
    symbol: &'a str,
    formula: &'a str,
    /// More keys of the arguments x and y.
    x: &'a str,
    y: &'a str,
    /// The launch's block and arguments.
    block: &'a str,
    passed: &'a str,
    served: &'a str,
    more: &'a str,
}

impl<'a> Case<'a> {
    fn of(symbol: &'a str) -> Case<'a> {
        Case {
            symbol,
            formula: TWICE,
            x: "",
            y: "",
            block: "32",
            passed: "\"x\", \"y\", \"n\"",
            served: "5, 100",
            more: "",
        }
    }

    fn manifest(&self) -> String {
        let Case { symbol, formula, x, y, block, passed, served, more } = self;
        format!(
            r#"schema = 1
[module.test]
ptx = "test.ptx"
[kernel.k]
module = "test"
formula = "{formula}"
dims.n = {{ served = [{served}] }}
args = [
    {{ name = "x", role = "in", type = "f32", shape = ["n"]{x} }},
    {{ name = "y", role = "out", type = "f32", shape = ["n"]{y} }},
    {{ name = "n", role = "dim", type = "i32" }},
]
launches = [{{ symbol = "{symbol}", grid = ["(n + 31)/32"], block = [{block}], args = [{passed}] }}]
{more}
"#
        )
    }

    fn load(&self, ptx: &str) -> ManifestKernel {
        let files: [(&str, &[u8]); 1] = [("test.ptx", ptx.as_bytes())];
        let manifest = parse_manifest("test.toml", &self.manifest(), &EmbeddedFiles(&files));
        let errors: Vec<String> = manifest.errors.iter().map(ToString::to_string).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
        manifest.kernels.into_iter().next().expect("one kernel is declared")
    }

    /// Runs gate 2, or all gates.
    fn check(&self, gates: &[Gate]) -> KernelOutcome {
        let options = CheckOptions { gates: gates.to_vec(), threads: 1, ..CheckOptions::default() };
        let kernel = self.load(&ptx());
        let run = on_emulator(&[&kernel], &options);
        run.kernels.into_iter().next().expect("one kernel ran")
    }

    fn repeat(&self) -> GateResult {
        let outcome = self.check(&[Gate::Repeat]);
        assert_eq!(outcome.result.error, None);
        outcome.result.gates.into_iter().next().expect("the gate ran")
    }

    /// The error and hint of a request that cannot be served.
    fn refused(&self) -> (String, String) {
        let outcome = self.check(&[Gate::Repeat]);
        assert_eq!(outcome.exit, ExitCode::Request);
        (outcome.result.error.unwrap_or_default(), outcome.hint.unwrap_or_default())
    }
}

fn on_emulator(kernels: &[&dyn Kernel], options: &CheckOptions) -> RunOutcome {
    run::run(kernels, &|_| assay_device::open("emulator"), options, &Silent)
}

#[track_caller]
fn assert_red(result: &GateResult, words: &str) {
    assert_eq!(result.outcome, Outcome::Fail, "{}", result.reason);
    assert!(result.reason.contains(words), "{}", result.reason);
}

#[test]
fn a_correct_kernel_passes_every_gate_on_the_emulator() {
    let outcome = Case::of("twice").check(&run::GATES_THAT_RUN);
    let seen: Vec<_> = outcome.result.gates.iter().map(|gate| gate.outcome).collect();
    let expected = [Outcome::Pass, Outcome::Pass, Outcome::Pass, Outcome::NotApplicable];
    assert_eq!((seen.as_slice(), outcome.exit), (expected.as_slice(), ExitCode::Holds));
}

#[test]
fn a_write_one_past_the_end_names_the_ptx_line() {
    let result = Case::of("past_end").repeat();
    assert_red(&result, "out-of-bounds");
    let place = result.findings[0].place.as_deref().unwrap_or_default();
    assert!(place.starts_with("test.ptx:"), "{place}");
}

#[test]
fn a_kernel_that_writes_its_input_is_red() {
    assert_red(&Case::of("writes_input").repeat(), "the input x[0] changed from");
}

#[test]
fn an_element_that_is_never_written_is_red() {
    assert_red(&Case::of("unwritten").repeat(), "y[2] was never written");
}

#[test]
fn a_strided_output_is_read_back_and_its_gaps_are_guarded() {
    let strided = Case { y: ", strides = [2]", ..Case::of("strided") };
    let outcome = strided.check(&[Gate::Repeat, Gate::Shapes]);
    assert_eq!(outcome.exit, ExitCode::Holds, "{:?}", outcome.result);
    let gap = Case { symbol: "strided_gap", ..strided };
    assert_red(&gap.repeat(), "outside `y`: byte 4, between two elements");
}

#[test]
fn a_kernel_that_may_write_in_place_is_run_in_place() {
    let in_place = "in_place = [[\"y\", \"x\"]]";
    let safe = Case { more: in_place, ..Case::of("twice") };
    assert_eq!(safe.repeat().outcome, Outcome::Pass);
    let formula = "y[i] = x[i] + x[(i + 1) % n]";
    let unsafe_in_place = Case { formula, more: in_place, ..Case::of("neighbours") };
    assert_red(&unsafe_in_place.repeat(), "in place");
    let apart = Case { more: "", ..unsafe_in_place };
    assert_eq!(apart.repeat().outcome, Outcome::Pass);
}

#[test]
fn an_inout_argument_is_overwritten_by_its_output() {
    let case = Case { more: "in_place = [[\"y\", \"x\"]]", ..Case::of("twice") };
    let case = Case { passed: "\"x\", \"x\", \"n\"", ..case };
    let manifest = case.manifest().replace("role = \"in\"", "role = \"inout\"");
    let text = ptx();
    let files: [(&str, &[u8]); 1] = [("test.ptx", text.as_bytes())];
    let kernels = parse_manifest("test.toml", &manifest, &EmbeddedFiles(&files)).kernels;
    let options = CheckOptions {
        gates: vec![Gate::Repeat, Gate::Shapes],
        threads: 1,
        ..CheckOptions::default()
    };
    let run = on_emulator(&[&kernels[0]], &options);
    assert_eq!(run.exit, ExitCode::Holds, "{:?}", run.kernels[0].result);
}

#[test]
fn loads_wider_than_the_alignment_promised_are_red() {
    let aligned = Case::of("vectors");
    assert_eq!(aligned.repeat().outcome, Outcome::Pass);
    let narrow = Case { x: ", align = 4", ..aligned };
    assert_red(&narrow.repeat(), "misaligned");
}

#[test]
fn a_kernel_that_never_ends_is_stopped_by_its_budget() {
    let case = Case { more: "budget = \"10000\"", ..Case::of("forever") };
    assert_red(&case.repeat(), "after 10000 warp instructions");
}

#[test]
fn a_trap_is_a_failure() {
    let result = Case::of("traps").repeat();
    assert_red(&result, "trap");
}

#[test]
fn a_missing_symbol_is_a_wrong_request_that_lists_the_symbols() {
    let (error, hint) = Case::of("thrice").refused();
    assert_eq!(error, "test.toml:13:24: the module has no kernel thrice");
    assert!(hint.contains("twice"), "{hint}");
}

#[test]
fn arguments_that_do_not_fit_the_symbol_are_a_wrong_request() {
    let few = Case { passed: "\"x\", \"y\"", ..Case::of("twice") };
    let (error, _) = few.refused();
    assert_eq!(error, "test.toml:13:24: the launch passes 2 arguments, `twice` takes 3");
    let order = Case { passed: "\"x\", \"n\", \"y\"", ..Case::of("twice") };
    let (error, _) = order.refused();
    assert_eq!(error, "test.toml:13:24: argument `n` has 4 bytes, `twice` takes 8 in its place");
}

#[test]
fn too_many_threads_are_a_wrong_request() {
    let (error, hint) = Case { block: "2048", ..Case::of("twice") }.refused();
    assert!(error.starts_with("test.toml:13:24: the launch of twice is invalid"), "{error}");
    assert!(!hint.is_empty());
}

#[test]
fn more_memory_than_there_is_is_a_wrong_request() {
    let case = Case { served: "1099511627776", ..Case::of("twice") };
    let (error, _) = case.refused();
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn ptx_that_does_not_parse_is_a_wrong_request_with_its_line() {
    let broken = ptx().replace("ld.param.u64 %rd1, [x];", "ld.parm.u64 %rd1, [x];");
    let bad = Case::of("twice").load(&broken).into_spec();
    let bad = ManifestKernel::new(Spec { name: "bad".to_owned(), ..bad });
    let good = Case::of("twice").load(&ptx());
    let options = CheckOptions { gates: vec![Gate::Repeat], threads: 1, ..CheckOptions::default() };
    let run = on_emulator(&[&bad, &good], &options);
    assert_eq!(run.exit, ExitCode::Request);
    let error = run.kernels[0].result.error.as_deref().unwrap_or_default();
    assert!(error.starts_with("test.ptx:11: "), "{error}");
    assert_eq!(run.kernels[1].result.gates[0].outcome, Outcome::Pass);
}
