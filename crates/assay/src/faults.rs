//! `--faults`: the builds of kernels broken on purpose, read from disk and taken through the gates.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_contract::fault::{BuiltFault, Fault};
use assay_contract::run::{conclude, fault_gates, is_uncaught, run_faults, select_faults};
use assay_contract::{CheckOptions, Kernel, KernelOutcome};
use assay_record::{ExitCode, FaultResult, Gate, GateResult, KernelResult, Outcome};

use crate::check;
use crate::cli::CheckArguments;
use crate::failure::Failure;
use crate::parent::{self, Children};
use crate::progress::Progress;

/// What makes the builds.
const BUILD: &str = "`cargo xtask faults` builds the faults of the suite, and says where";

/// The build of one fault.
fn load_build(fault: &Fault, folder: &Path) -> Result<BuiltFault, Failure> {
    let path = folder.join(fault.build_path());
    let failure = |message: String| {
        let what = format!("the fault {} cannot be run: {message}", fault.spec.name);
        Failure::request(what).hint(BUILD.to_owned())
    };
    let bytes = std::fs::read(&path).map_err(|error| {
        failure(format!("there is no build {}", path.display())).caused_by(&error)
    })?;
    fault.built(bytes).map_err(|why| failure(format!("{}: {why}", path.display())))
}

/// The fault of this name with its build, if there is one.
pub(crate) fn load_one(
    faults: &[Fault],
    name: &str,
    folder: &Path,
) -> Result<Option<BuiltFault>, Failure> {
    faults.iter().find(|fault| fault.spec.name == name).map(|f| load_build(f, folder)).transpose()
}

/// The faults that were asked for and have a build, and what is wrong with the others.
pub(crate) fn load(
    faults: &[Fault],
    options: &CheckOptions,
    arguments: &CheckArguments,
) -> Result<(Vec<BuiltFault>, Vec<Failure>), Failure> {
    let (mut built, mut failures) = (Vec::new(), Vec::new());
    let Some(folder) = &arguments.faults else { return Ok((built, failures)) };
    if !folder.is_dir() {
        let message = format!("there is no folder {}", folder.display());
        return Err(Failure::request(message).hint(BUILD.to_owned()));
    }
    let asked = match &arguments.repro {
        Some(case) => faults.iter().filter(|fault| fault.spec.name == case.kernel).collect(),
        None => select_faults(faults, options),
    };
    for fault in asked {
        match load_build(fault, folder) {
            Ok(fault) => built.push(fault),
            Err(failure) => failures.push(failure),
        }
    }
    Ok((built, shortened(failures)))
}

/// The first failures, and how many more there are: a folder of other builds lacks them all.
fn shortened(mut failures: Vec<Failure>) -> Vec<Failure> {
    const SHOWN: usize = 5;
    let more = failures.len().saturating_sub(SHOWN);
    if more > 0 {
        failures.truncate(SHOWN);
        failures.push(Failure::request(format!("{more} more faults cannot be run")));
    }
    failures
}

/// Runs faults in this process.
pub(crate) fn run_here(
    faults: &[&BuiltFault],
    kernels: &[&dyn Kernel],
    options: &CheckOptions,
    arguments: &CheckArguments,
) -> Vec<FaultResult> {
    let steps = faults.iter().map(|fault| fault_gates(&fault.fault, options).len() as u64).sum();
    let progress = Progress::new(steps);
    let devices = |architecture: Option<&str>| check::watched(arguments, architecture, &progress);
    let results = run_faults(faults, kernels, &devices, options, &progress);
    progress.finish();
    results
}

/// Runs each fault at each gate in a child process of its own. A gate in which the child dies has
/// caught the fault.
pub(crate) fn run_isolated(
    faults: &[&BuiltFault],
    options: &CheckOptions,
    arguments: &CheckArguments,
) -> Result<Vec<FaultResult>, Failure> {
    let children = Children::new(arguments)?;
    let progress = Progress::new(faults.len() as u64);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<FaultResult>>> =
        faults.iter().map(|_| Mutex::new(None)).collect();
    parent::on_each_thread(|| {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
            && let Some(fault) = faults.get(at)
        {
            progress.at(fault.name());
            let result = in_children(fault, &children, options, arguments);
            *results[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = result;
            progress.step();
        }
    });
    progress.finish();
    let slots = results.into_iter().map(Mutex::into_inner);
    Ok(slots.filter_map(|slot| slot.unwrap_or_else(std::sync::PoisonError::into_inner)).collect())
}

fn in_children(
    fault: &BuiltFault,
    children: &Children,
    options: &CheckOptions,
    arguments: &CheckArguments,
) -> Option<FaultResult> {
    let request = |gate: Gate| parent::request(fault.name(), gate, options, arguments);
    let gates = fault_gates(&fault.fault, options).into_iter();
    let outcomes = gates.map(|gate| children.judge(&request(gate), None));
    let outcome = outcomes.fold(Vec::new(), parent::merge).pop()?;
    if outcome.skipped {
        return None;
    }
    let compared = is_uncaught(&outcome.result).then(|| {
        let mut request = request(Gate::Shapes);
        request.compare = true;
        children.judge(&request, None).result.gates.pop()
    });
    Some(conclude(&fault.fault, outcome, compared.flatten()))
}

/// A comparison of a fault with its kernel as a child passes it on.
pub(crate) fn comparison(name: &str, result: GateResult) -> KernelOutcome {
    let seconds = 0.0;
    let (kernel, gates) = (name.to_owned(), vec![result]);
    let result =
        KernelResult { kernel, control_for: None, gates, error: None, build: None, seconds };
    KernelOutcome { result, exit: ExitCode::Holds, hint: None, skipped: false }
}

/// The word of a gate's outcome on a fault: red where the gate caught it.
pub(crate) fn word(fault: &FaultResult, gate: Gate) -> &'static str {
    match fault.gate(gate).map(|result| result.outcome) {
        Some(Outcome::Fail) => "red",
        Some(Outcome::Pass) => "pass",
        Some(Outcome::Known) => "known",
        Some(Outcome::Unproven) => "unproven",
        Some(Outcome::Unsupported) => "unsupported",
        Some(Outcome::NotApplicable) => "n/a",
        None => "-",
    }
}
