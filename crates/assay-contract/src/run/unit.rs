//! The smallest piece of a run that a worker takes: one kernel through one gate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use assay_device::Device;
use assay_record::{CaseName, Gate, GateResult, Outcome};

use super::select::Unbound;
use super::{DeviceFactory, Progress};
use crate::bind::DeviceSubject;
use crate::gates::{Effort, Filter, GateContext, Tally, check};
use crate::kernel::Kernel;
use crate::launcher::run_error;
use crate::spec::Spec;
use crate::subject::{RunError, RunRequest, RunResult, Subject, answers_as};

/// One kernel through one gate.
#[derive(Clone, Copy)]
pub(super) struct Unit<'a> {
    /// The kernel's place among all kernels of the run.
    pub(super) index: usize,
    pub(super) kernel: &'a dyn Kernel,
    pub(super) gate: Gate,
    pub(super) filter: Filter<'a>,
    pub(super) effort: Effort,
}

/// What came of it.
pub(super) struct UnitResult {
    pub(super) kernel: usize,
    pub(super) gate: Gate,
    /// The gate's result, or why there is none.
    pub(super) result: Result<GateResult, RunError>,
    pub(super) lost_device: bool,
    pub(super) skipped: bool,
    /// True if some of the gate's cases were left out on request.
    pub(super) partial: bool,
    pub(super) seconds: f64,
}

impl UnitResult {
    /// A result of a whole gate that took no time.
    pub(super) fn new(
        kernel: usize,
        gate: Gate,
        result: Result<GateResult, RunError>,
    ) -> UnitResult {
        UnitResult {
            kernel,
            gate,
            result,
            lost_device: false,
            skipped: false,
            partial: false,
            seconds: 0.0,
        }
    }
}

/// A worker's device, and the architecture that it was opened for.
#[derive(Default)]
pub(super) struct Held {
    pub(super) device: Option<Box<dyn Device>>,
    architecture: Option<String>,
}

/// All kernels of the run, the seed, and who is told.
type Surroundings<'a> = (&'a [&'a dyn Kernel], u64, &'a dyn Progress);

impl Unit<'_> {
    /// Runs on the worker's device, opening one where it has none or has lost it.
    pub(super) fn run_on(
        self,
        held: &mut Held,
        devices: &DeviceFactory<'_>,
        surroundings: Surroundings<'_>,
    ) -> UnitResult {
        let architecture = self.kernel.spec().architecture();
        if held.architecture.as_deref() != architecture {
            *held = Held { device: None, architecture: architecture.map(str::to_owned) };
        }
        if held.device.is_none() {
            match devices(architecture) {
                Ok(opened) => held.device = Some(opened),
                Err(error) => return self.ended(Err(no_device(&run_error(&error)))),
            }
        }
        let Some(opened) = &mut held.device else {
            return self.ended(Err(no_device(&"none was opened")));
        };
        let result = self.run(opened.as_mut(), surroundings);
        if result.lost_device {
            held.device = None;
        }
        result
    }

    /// Runs on a device; a panic becomes an internal error.
    pub(super) fn run(self, device: &mut dyn Device, surroundings: Surroundings<'_>) -> UnitResult {
        let start = Instant::now();
        let spec = self.kernel.spec();
        if self.gate != Gate::Limits && !spec.runs_on(&device.facts().backend) {
            return UnitResult { skipped: true, ..self.not_run("the kernel names other backends") };
        }
        let attempt = AssertUnwindSafe(|| self.attempt(device, surroundings));
        let (result, lost_device) = catch_unwind(attempt).unwrap_or_else(|panic| {
            let message =
                format!("{} panicked in gate {}: {}", spec.name, self.gate, words(&*panic));
            // Whatever the device held is unknown now.
            (Err(RunError::Internal { message }), true)
        });
        let seconds = start.elapsed().as_secs_f64();
        UnitResult { lost_device, seconds, ..self.ended(result) }
    }

    fn attempt(
        self,
        device: &mut dyn Device,
        (kernels, seed, progress): Surroundings<'_>,
    ) -> (Result<GateResult, RunError>, bool) {
        let replaced = match find_replaced(self.kernel, kernels) {
            Ok(replaced) => replaced,
            Err(error) => return (Err(error), false),
        };
        let Spec { name, drawn_as, .. } = self.kernel.spec();
        progress.started(name, self.gate);
        if self.gate == Gate::Limits && !self.asks_device(device) {
            let result = self.limits_of(seed, progress);
            progress.finished(name, &result);
            return (Ok(result), false);
        }
        let subject = match DeviceSubject::bind(self.kernel, replaced, device) {
            Ok(subject) => subject,
            Err(RunError::Unsupported { what }) => {
                return (Ok(unsupported(self.gate, &what)), false);
            }
            Err(error) => return (Err(error), false),
        };
        let on_case = |case: &CaseName| progress.case(case);
        let context = GateContext::new(seed, &on_case).only(self.filter).effort(self.effort);
        let context = context.drawn_as(drawn_as.as_deref());
        let mut recorder = Recorder { subject, trouble: None, lost: None, printed: None };
        let mut result = check(self.gate, &mut recorder, &context);
        result.notes.extend(recorder.printed.take().map(|text| printed_note(&text)));
        progress.finished(name, &result);
        (recorder.trouble.map_or(Ok(result), Err), recorder.lost.is_some())
    }

    /// True if the device can tell what the kernel takes of it.
    fn asks_device(self, device: &dyn Device) -> bool {
        let spec = self.kernel.spec();
        let facts = device.facts();
        facts.multiprocessor.is_some() && spec.runs_on(&facts.backend) && !spec.is_control()
    }

    /// Gate 5 by what compilers made of the kernel.
    fn limits_of(self, seed: u64, progress: &dyn Progress) -> GateResult {
        let on_case = |case: &CaseName| progress.case(case);
        let context = GateContext::new(seed, &on_case).only(self.filter).effort(self.effort);
        check(self.gate, &mut Unbound { spec: self.kernel.spec() }, &context)
    }

    /// The unit without having run.
    pub(super) fn not_run(self, why: &str) -> UnitResult {
        let result = GateResult {
            gate: self.gate,
            outcome: Outcome::Unproven,
            reason: format!("not run: {why}"),
            cases: 0,
            margin: None,
            findings: Vec::new(),
            notes: Vec::new(),
            chips: Vec::new(),
        };
        self.ended(Ok(result))
    }

    fn ended(self, result: Result<GateResult, RunError>) -> UnitResult {
        // What a broken build passes says nothing about its kernel's known findings.
        let broken = self.kernel.spec().drawn_as.is_some();
        let partial = broken || !matches!(self.filter, Filter::All);
        UnitResult { partial, ..UnitResult::new(self.index, self.gate, result) }
    }
}

fn no_device(error: &dyn std::fmt::Display) -> RunError {
    RunError::Device { message: error.to_string() }
}

fn unsupported(gate: Gate, what: &str) -> GateResult {
    let result = Tally::new(gate).finish();
    GateResult { outcome: Outcome::Unsupported, reason: what.to_owned(), ..result }
}

pub(super) fn find_replaced<'k>(
    kernel: &dyn Kernel,
    kernels: &[&'k dyn Kernel],
) -> Result<Option<&'k dyn Kernel>, RunError> {
    let Some(name) = kernel.replaced() else { return Ok(None) };
    let named = |name: &str| kernels.iter().find(|other| other.spec().name == name).copied();
    // Of a kernel that is compiled for several targets, the one for the same target.
    let target = kernel.spec().name.split_once('@').map(|(_, target)| format!("{name}@{target}"));
    let found = target.and_then(|name| named(&name)).or_else(|| named(name));
    let missing = || {
        let place = &kernel.spec().source;
        RunError::request(format!("{place}: the replaced kernel `{name}` is not registered"))
    };
    found.map(Some).ok_or_else(missing)
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

/// What a kernel printed in the first run in which it printed anything, as a note.
fn printed_note(text: &str) -> String {
    const LINES: usize = 5;
    const CHARACTERS: usize = 400;
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.iter().take(LINES).copied().collect::<Vec<_>>().join(" | ");
    let more = match lines.len().saturating_sub(LINES) {
        0 => String::new(),
        1 => " and 1 more line".to_owned(),
        more => format!(" and {more} more lines"),
    };
    let shown: String = shown.chars().take(CHARACTERS).collect();
    format!("it printed in its first run that does: {shown}{more}")
}

/// Passes everything on, and remembers errors that are no verdict on the kernel. Once the device
/// is lost, every run answers with what it was lost to.
struct Recorder<'a> {
    subject: DeviceSubject<'a>,
    trouble: Option<RunError>,
    lost: Option<RunError>,
    /// What the kernel printed first.
    printed: Option<String>,
}

impl Recorder<'_> {
    fn noted(&mut self, result: Result<RunResult, RunError>) -> Result<RunResult, RunError> {
        let error = match &result {
            Ok(ran) => {
                if self.printed.is_none() && !ran.printed.is_empty() {
                    self.printed = Some(ran.printed.clone());
                }
                return result;
            }
            Err(error) => error,
        };
        let lost = match error {
            RunError::Fault { lost_device, .. } => *lost_device,
            RunError::Unsupported { .. } => false,
            error => {
                self.trouble.get_or_insert_with(|| error.clone());
                matches!(error, RunError::Device { .. })
            }
        };
        self.lost = self.lost.take().or_else(|| lost.then(|| error.clone()));
        result
    }
}

impl Subject for Recorder<'_> {
    answers_as!(subject);

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        if let Some(error) = &self.lost {
            return Err(error.clone());
        }
        let result = self.subject.run(request);
        self.noted(result)
    }

    fn run_replaced(&mut self, request: &RunRequest<'_>) -> Option<Result<RunResult, RunError>> {
        if let Some(error) = &self.lost {
            return Some(Err(error.clone()));
        }
        let result = self.subject.run_replaced(request)?;
        Some(self.noted(result))
    }
}
