//! The run of kernels broken on purpose: every fault through the gates, and what that shows.
//!
//! The gate that should catch a fault runs whole if it measures a margin, so that the margin is the
//! worst of all its cases as the correct kernel's is. The others stop at the first case that fails.
//! A fault that no gate catches runs beside its kernel on every input of gate 3: either some byte
//! differs, and the gates have a hole, or there is nothing to catch.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_device::Device;
use assay_record::{
    CaseName, Discrimination, ExitCode, FaultResult, FaultVerdict, Gate, GateResult, KernelResult,
    Number, Outcome,
};

use super::assemble::assemble;
use super::select::gates_of;
use super::shared::{References, Sharing};
use super::unit::{Held, Unit, UnitResult};
use super::{CheckOptions, DeviceFactory, GATES_THAT_RUN, KernelOutcome, Progress, workers};
use crate::bind::DeviceSubject;
use crate::fault::{BuiltFault, Fault};
use crate::gates::{Effort, Filter, GateContext, check};
use crate::kernel::Kernel;
use crate::subject::{RunError, RunRequest, RunResult, Subject, answers_as};

/// The gates that a fault goes through: none, where the one that should catch it was not asked for.
pub fn fault_gates(fault: &Fault, options: &CheckOptions) -> Vec<Gate> {
    if !options.gates.contains(&fault.gate) {
        return Vec::new();
    }
    // Nobody compiled a fault's build for any chip.
    let runs = |gate: &Gate| GATES_THAT_RUN.contains(gate);
    gates_of(&fault.spec, &options.gates).into_iter().filter(runs).collect()
}

/// True if `options` select the fault: by its name, or by its kernel's.
pub fn selects_fault(fault: &Fault, options: &CheckOptions) -> bool {
    let names = |text: &String| fault.spec.name.contains(text) || fault.of.contains(text);
    options.only.as_ref().is_none_or(names) && !fault_gates(fault, options).is_empty()
}

/// Runs faults through the gates, the faults of one kernel on one worker. Each that the device's
/// backend may run has a result, in the order given.
pub fn run_faults(
    faults: &[&BuiltFault],
    kernels: &[&dyn Kernel],
    devices: &DeviceFactory<'_>,
    options: &CheckOptions,
    progress: &dyn Progress,
) -> Vec<FaultResult> {
    let groups = by_kernel(faults);
    let results: Vec<Mutex<Option<FaultResult>>> =
        faults.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut held = Held::default();
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            let references = References::default();
            for at in group {
                let run = FaultRun { fault: faults[*at], kernels, options, progress };
                let result = run.through_all(&references, &mut held, devices);
                *results[*at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = result;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers(options, groups.len()) {
            scope.spawn(work);
        }
        work();
    });
    let slots = results.into_iter().map(Mutex::into_inner);
    slots.filter_map(|slot| slot.unwrap_or_else(std::sync::PoisonError::into_inner)).collect()
}

/// The places of each kernel's faults, the kernels with most of them first.
fn by_kernel(faults: &[&BuiltFault]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, fault) in faults.iter().enumerate() {
        groups.entry(&fault.fault.of).or_default().push(at);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

/// Takes a fault through one gate on a device that the caller owns; for a child process that may
/// die of it.
pub fn judge_fault(
    fault: &BuiltFault,
    gate: Gate,
    (kernels, options): (&[&dyn Kernel], &CheckOptions),
    device: &mut dyn Device,
    progress: &dyn Progress,
) -> KernelOutcome {
    let run = FaultRun { fault, kernels, options, progress };
    let unit = run.unit(&fault.kernel, gate);
    let result = unit.run(device, (kernels, options.seed, progress));
    assemble(fault.kernel.spec(), vec![result])
}

/// Runs a fault and its kernel on every input of gate 3: PASS if every byte that they leave behind
/// is equal, FAIL with the first case in which one differs, UNPROVEN where nothing was compared.
pub fn compare_fault(
    fault: &BuiltFault,
    (kernels, options): (&[&dyn Kernel], &CheckOptions),
    device: &mut dyn Device,
    progress: &dyn Progress,
) -> GateResult {
    FaultRun { fault, kernels, options, progress }.compare(device, &References::default())
}

/// One fault and what its run depends on.
#[derive(Clone, Copy)]
struct FaultRun<'a> {
    fault: &'a BuiltFault,
    kernels: &'a [&'a dyn Kernel],
    options: &'a CheckOptions,
    progress: &'a dyn Progress,
}

impl FaultRun<'_> {
    fn unit(self, kernel: &dyn Kernel, gate: Gate) -> Unit<'_> {
        let whole = gate == self.fault.fault.gate && measures(gate);
        let effort = if whole { Effort::Whole } else { Effort::FirstFailure };
        Unit { index: 0, kernel, gate, filter: Filter::All, effort }
    }

    /// All gates, and the comparison where none caught it. Nothing for another backend's kernel.
    fn through_all(
        self,
        references: &References,
        held: &mut Held,
        devices: &DeviceFactory<'_>,
    ) -> Option<FaultResult> {
        let kernel = Sharing { kernel: &self.fault.kernel, references };
        let surroundings = (self.kernels, self.options.seed, self.progress);
        let gates = fault_gates(&self.fault.fault, self.options);
        let judge = |gate: Gate| self.unit(&kernel, gate).run_on(held, devices, surroundings);
        let units: Vec<UnitResult> = gates.into_iter().map(judge).collect();
        let outcome = assemble(self.fault.kernel.spec(), units);
        if outcome.skipped {
            return None;
        }
        let compared = match &mut held.device {
            Some(device) if is_uncaught(&outcome.result) => {
                Some(self.compare(device.as_mut(), references))
            }
            _ => None,
        };
        Some(conclude(&self.fault.fault, outcome, compared))
    }

    fn compare(self, device: &mut dyn Device, references: &References) -> GateResult {
        let of = &self.fault.fault.of;
        let result = |outcome, reason: String| GateResult {
            gate: Gate::Shapes,
            outcome,
            reason,
            cases: 0,
            margin: None,
            findings: Vec::new(),
            notes: Vec::new(),
            chips: Vec::new(),
        };
        let Some(correct) = self.kernels.iter().find(|kernel| kernel.spec().name == *of) else {
            let reason = format!("the kernel `{of}` was not there to be compared with");
            return result(Outcome::Unproven, reason);
        };
        let broken = Sharing { kernel: &self.fault.kernel, references };
        let subject = match DeviceSubject::bind(&broken, Some(*correct), device) {
            Ok(subject) => subject,
            Err(error) => return result(Outcome::Unproven, error.to_string()),
        };
        let mut pair = Pair { subject, runs: 0, difference: None };
        let on_case = |case: &CaseName| self.progress.case(case);
        let context = GateContext::new(self.options.seed, &on_case);
        check(Gate::Shapes, &mut pair, &context.drawn_as(Some(of)));
        match (pair.difference, pair.runs) {
            (Some(difference), _) => result(Outcome::Fail, difference),
            (None, 0) => result(Outcome::Unproven, "gate 3 ran on no input".to_owned()),
            (None, runs) => GateResult {
                cases: runs,
                ..result(Outcome::Pass, format!("equal bytes on {runs} inputs of gate 3"))
            },
        }
    }
}

/// True if a gate's verdict comes with a margin.
fn measures(gate: Gate) -> bool {
    matches!(gate, Gate::Shapes | Gate::Fp32Sums)
}

/// True if gates ran and none of them caught the fault.
pub fn is_uncaught(result: &KernelResult) -> bool {
    let caught = result.gates.iter().any(|gate| gate.outcome == Outcome::Fail);
    result.error.is_none() && !caught
}

/// What the gates, and the comparison with the correct kernel where there was one, show of a fault.
pub fn conclude(
    fault: &Fault,
    outcome: KernelOutcome,
    compared: Option<GateResult>,
) -> FaultResult {
    let KernelResult { gates, error, seconds, .. } = outcome.result;
    let own = gates.iter().find(|result| result.gate == fault.gate);
    let own_outcome = own.map(|result| result.outcome);
    let caught = gates.iter().any(|result| result.outcome == Outcome::Fail);
    let (verdict, remark) = if own_outcome == Some(Outcome::Fail) {
        (FaultVerdict::Caught, error)
    } else if error.is_some() {
        (FaultVerdict::Unjudged, error)
    } else if own_outcome == Some(Outcome::Unsupported) {
        (FaultVerdict::Unjudged, own.map(|result| result.reason.clone()))
    } else if caught {
        (FaultVerdict::Elsewhere, own.map(|result| result.reason.clone()))
    } else {
        let equal = compared.as_ref().is_some_and(|result| result.outcome == Outcome::Pass);
        let verdict = if equal { FaultVerdict::Equivalent } else { FaultVerdict::Survived };
        (verdict, compared.map(|result| result.reason))
    };
    // A bound caught it only if some element lies beyond one: bytes and crashes have no margin.
    let beyond = |margin: &Number| margin.0 > 1.0 || margin.0.is_nan();
    let margin = own.filter(|result| measures(result.gate) && result.outcome == Outcome::Fail);
    let margin = margin.and_then(|result| result.margin).filter(beyond);
    FaultResult {
        fault: fault.spec.name.clone(),
        of: fault.of.clone(),
        kind: fault.kind.name.to_owned(),
        what: fault.what.clone(),
        gate: fault.gate,
        verdict,
        margin,
        close: fault.close.clone(),
        remark,
        gates,
        seconds,
    }
}

/// How far each fault that a bound catches lies from its kernel, in the gate that catches it.
pub fn discriminate(kernels: &[KernelResult], faults: &[FaultResult]) -> Vec<Discrimination> {
    let one = |fault: &FaultResult| {
        let broken = fault.margin?;
        let kernel = kernels.iter().find(|kernel| kernel.kernel == fault.of)?;
        let correct = kernel.gate(fault.gate)?.margin?;
        let ratio = if correct.0 == 0.0 { f64::INFINITY } else { broken.0 / correct.0 };
        Some(Discrimination {
            kernel: fault.of.clone(),
            fault: fault.fault.clone(),
            gate: fault.gate,
            correct,
            broken,
            ratio: Number(ratio),
            close: fault.close.clone(),
        })
    };
    faults.iter().filter_map(one).collect()
}

/// What the faults and their margins mean for the end of the run.
pub fn faults_exit(faults: &[FaultResult], apart: &[Discrimination]) -> ExitCode {
    let holds = !faults.iter().any(|fault| fault.verdict.is_problem())
        && !apart.iter().any(Discrimination::is_problem);
    if holds { ExitCode::Holds } else { ExitCode::Problems }
}

/// A fault that runs beside its kernel, and what first differs.
struct Pair<'a> {
    subject: DeviceSubject<'a>,
    runs: u64,
    difference: Option<String>,
}

impl Pair<'_> {
    fn compare(&mut self, request: &RunRequest<'_>, broken: &RunResult) -> Result<(), RunError> {
        let Some(correct) = self.subject.run_replaced(request) else { return Ok(()) };
        let correct = correct?;
        self.runs += 1;
        let at = crate::spec::shown(request.dims);
        let differs = broken
            .outputs
            .iter()
            .find(|(name, bytes)| correct.outputs.get(*name).is_none_or(|other| other != *bytes));
        let difference = match differs {
            Some((output, _)) => format!("bytes of `{output}` differ at {at}"),
            None if broken.changed_inputs != correct.changed_inputs => {
                format!("it changes inputs at {at}")
            }
            None if broken.guard_damage != correct.guard_damage => {
                format!("it writes outside its buffers at {at}")
            }
            None => return Ok(()),
        };
        self.difference.get_or_insert(format!("{difference}, within every bound and rule"));
        Ok(())
    }
}

impl Subject for Pair<'_> {
    answers_as!(subject);

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        let result = self.subject.run(request);
        match &result {
            Ok(broken) => self.compare(request, broken)?,
            Err(error) => {
                self.difference.get_or_insert(error.to_string());
            }
        }
        result
    }
}
