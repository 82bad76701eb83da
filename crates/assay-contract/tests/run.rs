//! The whole run on kernels that are Rust functions: verdicts, controls, known findings, exit
//! codes, selection and replay.

mod common;

use assay_contract::manifest::ManifestKernel;
use assay_contract::run::{self, list, replay, replay_given, select, summarize};
use assay_contract::subject::{Change, RunError, RunRequest, RunResult};
use assay_contract::{CheckOptions, FunctionKernel, Kernel, RunOutcome, Silent};
use assay_record::{CaseName, ExitCode, Gate, Outcome};
use assay_reference::Inputs;

use common::device::no_device;
use common::{by_arrival, check, correct, options, result, row_sum_spec, spec_of, sums};

const CONTROL: &str = "control = { gate = \"repeat\", of = \"row_sum\" }";
const KNOWN: &str =
    "known = [{ gate = \"repeat\", what = \"order shows\", since = \"2026-11\", link = \"#1\" }]";

fn repeat() -> CheckOptions {
    CheckOptions { gates: vec![Gate::Repeat], ..options() }
}

fn outcome(run: &RunOutcome, kernel: usize, gate: Gate) -> (Outcome, String) {
    let result = run.kernels[kernel].result.gate(gate).expect("the gate ran");
    (result.outcome, result.reason.clone())
}

#[test]
fn a_correct_kernel_passes_every_gate() {
    let run = check(&[&correct("row_sum", "")], &options());
    for gate in run::GATES_THAT_RUN {
        let (outcome, reason) = outcome(&run, 0, gate);
        assert_eq!(outcome, Outcome::Pass, "{gate}: {reason}");
    }
    assert_eq!((run.exit, run.summary.passing, run.summary.kernels), (ExitCode::Holds, 1, 1));
}

#[test]
fn a_sum_that_depends_on_arrival_fails_gate_2() {
    let run = check(&[&by_arrival("row_sum", "")], &repeat());
    let (outcome, reason) = outcome(&run, 0, Gate::Repeat);
    assert_eq!(outcome, Outcome::Fail);
    assert!(reason.contains("run 2 (reversed, alignment class 1) gives y[0] = "), "{reason}");
    assert_eq!(run.exit, ExitCode::Problems);
}

#[test]
fn a_sum_of_two_terms_has_no_order_to_show() {
    let spec = row_sum_spec("row_sum", "cases = [{ rows = 3, cols = 2 }]");
    let kernel = FunctionKernel::new(spec, |request| Ok(result(&sums(request, false))));
    let result = &check(&[&kernel], &repeat()).kernels[0].result.gates[0];
    assert_eq!((result.outcome, result.cases), (Outcome::Pass, 1));
}

#[test]
fn sums_whose_order_no_input_shows_are_unproven_unless_they_are_exact() {
    let outcome_of = |formula: &str| {
        let spec = spec_of("k", &format!("formula = \"{formula}\""), "");
        let zeros =
            |request: &RunRequest<'_>| Ok(result(&vec![0.0; request.dims["rows"] as usize]));
        outcome(&check(&[&FunctionKernel::new(spec, zeros)], &repeat()), 0, Gate::Repeat)
    };
    let (vanishing, reason) = outcome_of("y[r] = sum(c in 0..cols: exp(-200 - x[r,c]*x[r,c]))");
    assert_eq!(vanishing, Outcome::Unproven);
    assert_eq!(reason, "no input lets the order of the sums show");
    let (count, _) = outcome_of("y[r] = sum(c in 0..cols: select(x[r,c] > 0, 1, 0))");
    assert_eq!(count, Outcome::Pass);
}

#[test]
fn a_changed_input_fails_gate_2() {
    let change =
        Change { tensor: "x".to_owned(), element: vec![0, 3], before: 0x3f80_0000, after: 0 };
    let kernel = FunctionKernel::new(row_sum_spec("row_sum", ""), move |request| {
        let changed_inputs = vec![change.clone()];
        Ok(RunResult { changed_inputs, ..result(&sums(request, false)) })
    });
    let (outcome, reason) = outcome(&check(&[&kernel], &repeat()), 0, Gate::Repeat);
    assert_eq!(outcome, Outcome::Fail);
    assert!(reason.contains("x[0, 3] changed from 0x3f800000 to 0x0"), "{reason}");
}

#[test]
fn an_output_that_is_never_written_fails_gate_2() {
    let kernel = FunctionKernel::new(row_sum_spec("row_sum", ""), |request| {
        let mut result = result(&sums(request, false));
        let y = result.outputs.get_mut("y").expect("y is the output");
        let last = y.len() - 4;
        y[last..].fill(request.poison);
        Ok(result)
    });
    let (outcome, reason) = outcome(&check(&[&kernel], &repeat()), 0, Gate::Repeat);
    assert_eq!(outcome, Outcome::Fail);
    assert!(reason.starts_with("y[0] was never written: it holds 0x55555555"), "{reason}");
}

#[test]
fn a_write_one_past_the_end_fails_gate_2() {
    let kernel = FunctionKernel::new(row_sum_spec("row_sum", ""), |request| {
        let damage = ("y".to_owned(), "1 byte after the buffer now holds 0x00".to_owned());
        Ok(RunResult { guard_damage: vec![damage], ..result(&sums(request, false)) })
    });
    let (outcome, reason) = outcome(&check(&[&kernel], &repeat()), 0, Gate::Repeat);
    assert_eq!(outcome, Outcome::Fail);
    assert!(reason.contains("outside `y`: 1 byte after the buffer"), "{reason}");
}

#[test]
fn a_fault_fails_with_the_guilty_line_as_place() {
    let fault = |_: &RunRequest<'_>| {
        Err(RunError::Fault {
            description: "out of bounds".to_owned(),
            place: Some("row_sum.ptx:41".to_owned()),
            lost_device: false,
        })
    };
    let run = check(&[&FunctionKernel::new(row_sum_spec("row_sum", ""), fault)], &options());
    for gate in run::GATES_THAT_RUN {
        let result = run.kernels[0].result.gate(gate).expect("the gate ran");
        assert_eq!(result.outcome, Outcome::Fail, "{gate}: {}", result.reason);
        assert_eq!(result.findings[0].place.as_deref(), Some("row_sum.ptx:41"), "{gate}");
    }
}

#[test]
fn what_a_device_cannot_run_is_unsupported_and_does_not_hold() {
    let unsupported = |_: &RunRequest<'_>| Err(RunError::Unsupported { what: "wgmma".to_owned() });
    let run = check(&[&FunctionKernel::new(row_sum_spec("row_sum", ""), unsupported)], &repeat());
    let (seen, reason) = outcome(&run, 0, Gate::Repeat);
    assert_eq!((seen, reason.starts_with("unsupported: wgmma")), (Outcome::Unsupported, true));
    assert_eq!((run.summary.unsupported, run.summary.passing), (1, 0));
    assert_eq!(run.exit, ExitCode::Problems);
}

#[test]
fn a_red_control_lets_the_run_hold_and_a_green_one_fails_it() {
    let kernel = correct("row_sum", "");
    let red = check(&[&kernel, &by_arrival("control", CONTROL)], &repeat());
    assert_eq!((red.exit, red.summary.controls_red, red.summary.controls), (ExitCode::Holds, 1, 1));
    let green = check(&[&kernel, &correct("control", CONTROL)], &repeat());
    assert_eq!(green.exit, ExitCode::Problems);
    assert_eq!((green.summary.controls_red, green.summary.controls), (0, 1));
    assert_eq!((green.summary.passing, green.summary.kernels), (1, 1));
}

#[test]
fn a_control_that_is_unsupported_is_green() {
    let unsupported = |_: &RunRequest<'_>| Err(RunError::Unsupported { what: "wgmma".to_owned() });
    let control = FunctionKernel::new(row_sum_spec("control", CONTROL), unsupported);
    let run = check(&[&control], &repeat());
    assert_eq!((run.exit, run.summary.controls_red), (ExitCode::Problems, 0));
}

#[test]
fn a_known_finding_must_keep_failing() {
    let failing = check(&[&by_arrival("row_sum", KNOWN)], &repeat());
    let (known, reason) = outcome(&failing, 0, Gate::Repeat);
    assert_eq!((known, failing.exit, failing.summary.known), (Outcome::Known, ExitCode::Holds, 1));
    assert_eq!(reason, "order shows (known since 2026-11, #1)");
    let passing = check(&[&correct("row_sum", KNOWN)], &repeat());
    let (stale, reason) = outcome(&passing, 0, Gate::Repeat);
    assert_eq!((stale, passing.exit), (Outcome::Fail, ExitCode::Problems));
    assert!(reason.contains("remove its entry"), "{reason}");
    let only = Some("row_sum/repeat/cols=100,rows=7/plain".to_owned());
    let partial = check(&[&correct("row_sum", KNOWN)], &CheckOptions { only, ..repeat() });
    assert_eq!(outcome(&partial, 0, Gate::Repeat).0, Outcome::Pass);
}

#[test]
fn a_panic_is_an_internal_error_and_the_others_still_run() {
    let panics = FunctionKernel::new(row_sum_spec("bad", ""), |_| panic!("a defect of ours"));
    let run = check(&[&panics, &correct("row_sum", "")], &repeat());
    assert_eq!(run.exit, ExitCode::Internal);
    let error = run.kernels[0].result.error.as_deref().unwrap_or_default();
    assert!(error.contains("bad panicked in gate repeat: a defect of ours"), "{error}");
    assert_eq!(outcome(&run, 1, Gate::Repeat).0, Outcome::Pass);
}

#[test]
fn a_request_that_cannot_be_served_is_exit_2_with_its_words() {
    let impossible = |_: &RunRequest<'_>| Err(RunError::request("a launch of 2,000 threads"));
    let bad = FunctionKernel::new(row_sum_spec("bad", ""), impossible);
    let run = check(&[&bad, &correct("row_sum", "")], &repeat());
    assert_eq!(run.exit, ExitCode::Request);
    assert_eq!(run.kernels[0].result.error.as_deref(), Some("a launch of 2,000 threads"));
    assert_eq!(outcome(&run, 1, Gate::Repeat).0, Outcome::Pass);
}

#[test]
fn a_replacement_needs_the_kernel_it_replaces() {
    let run = check(&[&correct("row_sum", "replaces = \"older\"")], &repeat());
    assert_eq!(run.exit, ExitCode::Request);
    let error = run.kernels[0].result.error.as_deref().unwrap_or_default();
    assert_eq!(error, "test.toml:4:9: the replaced kernel `older` is not registered");
}

#[test]
fn a_second_kernel_of_one_name_is_a_wrong_request() {
    let run = check(&[&correct("row_sum", ""), &correct("row_sum", "")], &repeat());
    assert_eq!((run.exit, run.kernels.len()), (ExitCode::Request, 2));
    assert_eq!(outcome(&run, 0, Gate::Repeat).0, Outcome::Pass);
    let error = run.kernels[1].result.error.as_deref().unwrap_or_default();
    assert!(error.starts_with("test.toml:4:9: another kernel is called `row_sum`"), "{error}");
}

#[test]
fn a_kernel_that_kills_the_device_fails_and_the_next_one_gets_a_new_device() {
    let kills = FunctionKernel::new(row_sum_spec("kills", ""), |_| {
        Err(RunError::Fault {
            description: "out of bounds".to_owned(),
            place: None,
            lost_device: true,
        })
    });
    let opened = std::sync::atomic::AtomicU32::new(0);
    let devices = |_: Option<&str>| {
        opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(no_device())
    };
    let run = run::run(&[&kills, &correct("row_sum", "")], &devices, &repeat(), &Silent);
    assert_eq!(outcome(&run, 0, Gate::Repeat).0, Outcome::Fail);
    assert_eq!(outcome(&run, 1, Gate::Repeat).0, Outcome::Pass);
    assert_eq!((run.exit, opened.into_inner()), (ExitCode::Problems, 2));
    let mut device = no_device();
    let one = run::run_one(&kills, &[&kills], device.as_mut(), &options(), &Silent);
    let last = one.result.gate(Gate::Fp32Sums).expect("a result says that it was not run");
    assert_eq!(last.reason, "not run: the device was lost in gate non-finite");
}

#[test]
fn a_kernel_for_other_backends_is_skipped() {
    let run = check(&[&correct("row_sum", "backends = [\"cuda\"]")], &options());
    assert_eq!((run.exit, run.summary.skipped, run.summary.kernels), (ExitCode::Holds, 1, 0));
}

#[test]
fn a_device_that_does_not_open_is_exit_3() {
    let kernel = correct("row_sum", "");
    let closed = |_: Option<&str>| {
        Err(assay_device::DeviceError::Lost { cause: "it is unplugged".to_owned() })
    };
    let run = run::run(&[&kernel], &closed, &repeat(), &Silent);
    assert_eq!(run.exit, ExitCode::NoDevice);
}

#[test]
fn a_manifest_kernel_on_a_device_without_modules_is_unsupported() {
    let kernel = ManifestKernel::new(row_sum_spec("row_sum", ""));
    let run = check(&[&kernel], &repeat());
    assert_eq!(outcome(&run, 0, Gate::Repeat), (Outcome::Unsupported, "everything".to_owned()));
}

#[test]
fn only_selects_kernels_by_name_and_keeps_controls() {
    let (a, b) = (correct("row_sum_a", ""), correct("row_sum_b", ""));
    let control = by_arrival("planted", CONTROL);
    let kernels: [&dyn Kernel; 3] = [&a, &b, &control];
    let only = |text: &str| CheckOptions { only: Some(text.to_owned()), ..repeat() };
    let chosen = |text: &str| {
        let options = only(text);
        let selection = select(&kernels, &options);
        (selection.names().join(" "), selection.matched)
    };
    assert_eq!(chosen("_a"), ("row_sum_a planted".to_owned(), true));
    assert_eq!(chosen("planted"), ("planted".to_owned(), true));
    assert_eq!(chosen("nothing"), ("planted".to_owned(), false));
    let run = check(&kernels, &only("row_sum_b/repeat/cols=100,rows=7/plain"));
    assert_eq!(run.kernels.len(), 2);
    let result = run.kernels[0].result.gate(Gate::Repeat).expect("the gate ran");
    assert_eq!((result.outcome, result.cases), (Outcome::Pass, 1));
}

#[test]
fn listed_cases_are_unique_and_can_be_read_back() {
    let kernel = correct("row_sum", "");
    let listed = list(&[&kernel], &options());
    let mut names: Vec<String> = listed[0]
        .gates
        .iter()
        .flat_map(|(_, cases)| cases.iter().map(ToString::to_string))
        .collect();
    let count = names.len();
    assert!(count > 20, "{names:?}");
    for name in &names {
        assert_eq!(name.parse::<CaseName>().expect("a case's name parses").to_string(), *name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn a_failing_case_is_replayed_alone_by_its_name() {
    let kernel = by_arrival("row_sum", "");
    let run = check(&[&kernel], &repeat());
    let result = run.kernels[0].result.gate(Gate::Repeat).expect("the gate ran");
    let first = result.findings[0].clone();
    let mut device = no_device();
    let again = replay(&first.case, &[&kernel], device.as_mut(), &Silent).expect("it is known");
    let gate = again.result.gate(Gate::Repeat).expect("the gate ran");
    assert_eq!((gate.cases, &gate.findings[0]), (1, &first));
    let unknown = CaseName { kernel: "other".to_owned(), ..first.case };
    assert!(replay(&unknown, &[&kernel], device.as_mut(), &Silent).is_err());
}

#[test]
fn one_kernel_runs_alone_for_a_child_process() {
    let kernel = correct("row_sum", "");
    let mut device = no_device();
    let whole = check(&[&kernel], &options());
    let one = run::run_one(&kernel, &[&kernel], device.as_mut(), &options(), &Silent);
    assert_eq!(one.result.gates, whole.kernels[0].result.gates);
    assert_eq!(summarize(&[one]).1, ExitCode::Holds);
}

#[test]
fn workers_do_not_change_the_result() {
    let (a, b) = (correct("row_sum_a", ""), by_arrival("row_sum_b", ""));
    let one = check(&[&a, &b], &repeat());
    let three = check(&[&a, &b], &CheckOptions { threads: 3, ..repeat() });
    for (one, three) in one.kernels.iter().zip(&three.kernels) {
        assert_eq!(one.result.gates, three.result.gates);
    }
}

fn given(kernel: &dyn Kernel, count: usize) -> Result<(Outcome, ExitCode), RunError> {
    let case: CaseName = "row_sum/shapes/cols=4,rows=2/given/seed=1/in-order".parse().expect("ok");
    let inputs = Inputs::new([("x", (1..=count).map(|place| place as f64).collect())]);
    let outcome = replay_given(&case, &inputs, &[kernel], no_device().as_mut())?;
    Ok((outcome.result.gates[0].outcome, outcome.exit))
}

#[test]
fn given_inputs_are_judged_as_a_gate_judges_its_own() {
    assert_eq!(given(&correct("row_sum", ""), 8), Ok((Outcome::Pass, ExitCode::Holds)));
    let short = FunctionKernel::new(row_sum_spec("row_sum", ""), |_| Ok(result(&[10.0, 25.0])));
    assert_eq!(given(&short, 8), Ok((Outcome::Fail, ExitCode::Problems)));
}

#[test]
fn given_inputs_of_another_shape_are_refused() {
    let error = given(&correct("row_sum", ""), 7).expect_err("it is refused");
    assert!(error.to_string().contains("`x` has 7 elements; at this shape it has 8"), "{error}");
}
