//! The run: kernels and planted controls through the gates, on as many devices as there are
//! workers, into one result per kernel, one summary and one exit code.

mod assemble;
mod faults;
mod merge;
mod part;
mod repro;
mod select;
mod shared;
mod unit;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_device::{Device, DeviceError};
use assay_record::{CaseName, ExitCode, Gate, GateResult, KernelResult, Part, Summary};

use crate::gates::{Effort, Filter};
use crate::kernel::Kernel;
use crate::subject::RunError;

pub use assemble::summarize;
pub use faults::{
    compare_fault, conclude, discriminate, fault_gates, faults_exit, is_uncaught, judge_fault,
    run_faults, selects_fault,
};
pub use merge::{MergeError, Named, merge, merged_gates};
pub use part::{select_faults, shard};
pub use repro::{replay_given, smallest};
pub(crate) use select::gate_without_cases;
pub use select::{Listed, Selection, list, select};

use assemble::assemble;
use unit::{Held, Unit, UnitResult};

/// All gates, in order.
pub const GATES: [Gate; 5] = Gate::ALL;

/// The gates that run kernels. Gate 5 (limits) asks only what compilers made of them.
pub const GATES_THAT_RUN: [Gate; 4] = [Gate::NonFinite, Gate::Repeat, Gate::Shapes, Gate::Fp32Sums];

/// What to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The gates to run, in order.
    pub gates: Vec<Gate>,
    /// The seed of every random choice.
    pub seed: u64,
    /// Text that kernel names, or else case names, must hold. Controls run regardless.
    pub only: Option<String>,
    /// Workers, each with its own device; 0 takes one per core.
    pub threads: usize,
    /// The part of the run that is asked for; the whole where `None`.
    pub part: Option<Part>,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions { gates: GATES.to_vec(), seed: 1, only: None, threads: 0, part: None }
    }
}

/// Told what happens during a run, from any worker.
pub trait Progress: Sync {
    /// A kernel is about to go through a gate.
    fn started(&self, _kernel: &str, _gate: Gate) {}
    /// A case is about to run.
    fn case(&self, _case: &CaseName) {}
    /// A kernel went through a gate; known findings are not yet taken into account.
    fn finished(&self, _kernel: &str, _result: &GateResult) {}
}

/// A progress that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Opens one more device of the kind asked for. It is told the architecture that the kernel was
/// compiled for, where its module names one (`sm_90`): an emulator is opened as that chip.
pub type DeviceFactory<'a> =
    dyn Fn(Option<&str>) -> Result<Box<dyn Device>, DeviceError> + Sync + 'a;

/// What a run found about one kernel, and the exit code that follows from it alone.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelOutcome {
    /// The record.
    pub result: KernelResult,
    /// The exit code.
    pub exit: ExitCode,
    /// What to do next, where the kernel could not be run.
    pub hint: Option<String>,
    /// True if the kernel was left out because it names other backends.
    pub skipped: bool,
}

/// What a run found.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// One outcome per kernel that ran, in the order given.
    pub kernels: Vec<KernelOutcome>,
    /// The counts.
    pub summary: Summary,
    /// The exit code of the whole run.
    pub exit: ExitCode,
}

/// Runs every selected kernel and every control through the gates, cases spread over workers.
///
/// A kernel that panics, or cannot be run, gets an outcome that says so; the others still run.
pub fn run(
    kernels: &[&dyn Kernel],
    devices: &DeviceFactory<'_>,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> RunOutcome {
    let selection = select(kernels, options);
    let units = selection.units(|index| namesake(kernels, index).is_none());
    let results: Vec<Mutex<Option<UnitResult>>> = units.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut held = Held::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(at) else { break };
            let result = unit.run_on(&mut held, devices, (kernels, options.seed, progress));
            *results[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers(options, units.len()) {
            scope.spawn(work);
        }
        work();
    });
    let results: Vec<UnitResult> = results
        .into_iter()
        .filter_map(|slot| slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
        .collect();
    finish(kernels, &selection, results)
}

fn workers(options: &CheckOptions, units: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let wanted = if options.threads == 0 { cores } else { options.threads };
    wanted.clamp(1, units.max(1))
}

fn finish(
    kernels: &[&dyn Kernel],
    selection: &Selection<'_>,
    mut results: Vec<UnitResult>,
) -> RunOutcome {
    let mut outcomes = Vec::new();
    for chosen in &selection.kernels {
        if let Some(error) = namesake(kernels, chosen.index) {
            outcomes.push(assemble(kernels[chosen.index].spec(), vec![error]));
            continue;
        }
        let (own, rest): (Vec<_>, Vec<_>) =
            results.into_iter().partition(|result| result.kernel == chosen.index);
        results = rest;
        outcomes.push(assemble(kernels[chosen.index].spec(), own));
    }
    let (summary, exit) = summarize(&outcomes);
    RunOutcome { kernels: outcomes, summary, exit }
}

/// What a kernel gets that has the name of an earlier one: results are found by name.
fn namesake(kernels: &[&dyn Kernel], index: usize) -> Option<UnitResult> {
    let spec = kernels[index].spec();
    let earlier = kernels[..index].iter().find(|other| other.spec().name == spec.name)?;
    let (place, first) = (&spec.source, &earlier.spec().source);
    let error = RunError::request(format!(
        "{place}: another kernel is called `{}`, at {first}; give this one a name of its own",
        spec.name
    ));
    Some(UnitResult::new(index, Gate::NonFinite, Err(error)))
}

/// Runs one kernel through its gates on a device that the caller owns; for a child process that
/// may die of it. `kernels` are those that it may replace.
pub fn run_one(
    kernel: &dyn Kernel,
    kernels: &[&dyn Kernel],
    device: &mut dyn Device,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> KernelOutcome {
    let filter = select::case_filter(kernel, options);
    let mut results: Vec<UnitResult> = Vec::new();
    for gate in select::gates_of(kernel.spec(), &options.gates) {
        let lost = results.iter().find(|result| result.lost_device).map(|result| result.gate);
        let unit = Unit { index: 0, kernel, gate, filter, effort: Effort::default() };
        results.push(match lost {
            Some(earlier) => unit.not_run(&format!("the device was lost in gate {earlier}")),
            None => unit.run(device, (kernels, options.seed, progress)),
        });
    }
    assemble(kernel.spec(), results)
}

/// Runs exactly one case again, by its name.
///
/// # Errors
/// A name whose kernel is not among `kernels`.
pub fn replay(
    case: &CaseName,
    kernels: &[&dyn Kernel],
    device: &mut dyn Device,
    progress: &dyn Progress,
) -> Result<KernelOutcome, RunError> {
    let kernel = repro::find(case, kernels)?;
    let (filter, effort) = (Filter::Exactly(case), Effort::default());
    let unit = Unit { index: 0, kernel, gate: case.gate, filter, effort };
    let result = unit.run(device, (kernels, case.seed, progress));
    Ok(assemble(kernel.spec(), vec![result]))
}
