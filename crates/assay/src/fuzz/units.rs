//! What a run fuzzes: kernels and planted operations, each with its candidate and its runner.

use std::process::Command;
use std::time::Duration;

use assay_contract::subject::RunError;
use assay_contract::{DeviceSubject, Kernel};
use assay_device::DeviceFacts;
use assay_fuzz::{
    Candidate, Isolated, KernelCandidate, KernelRunner, Limits, OperationCandidate, Options,
    Planned, Runner, planted,
};
use assay_record::{FuzzCase, FuzzKind, FuzzVerdict, Gate, Recipe};

use super::FuzzArguments;
use super::child::Greeting;
use crate::check::device;
use crate::failure::Failure;

/// Elements of the largest tensor of an ordinary case, on an emulator and on a GPU.
const EMULATED: u64 = 1 << 17;
const ON_GPU: u64 = 1 << 22;
/// The share of a device's memory that a huge case may take.
const SHARE: f64 = 0.9;
/// Planted operations that a run survives only in processes of their own; named to be run.
const DEADLY: [&str; 2] = ["fuzz_hangs", "fuzz_aborts"];

/// What to do about those.
const SURVIVED: &str = "it never ends or ends its process, so that it runs with --isolate alone";

/// All that can be fuzzed.
pub(crate) struct Units<'a> {
    kernels: Vec<&'a dyn Kernel>,
    operations: Vec<OperationCandidate>,
    limits: Limits,
    /// Whether candidates run in processes of their own.
    pub(crate) isolated: bool,
}

/// One candidate of a run.
#[derive(Clone)]
pub(crate) enum Unit<'a> {
    Kernel(&'a dyn Kernel, Limits, Option<Recipe>),
    Operation(OperationCandidate, Option<Recipe>),
}

/// Every planted operation, the deadly ones too.
pub(crate) fn operations() -> Vec<OperationCandidate> {
    let mut all = planted::planted();
    all.extend([planted::hangs(), planted::aborts()]);
    OperationCandidate::of(all)
}

/// The limits of cases on a device.
fn limits(facts: &DeviceFacts) -> Limits {
    let elements = if facts.backend == "cuda" { ON_GPU } else { EMULATED };
    Limits { elements, bytes: (facts.memory_bytes as f64 * SHARE) as u64 }
}

impl<'a> Units<'a> {
    pub(crate) fn new(
        kernels: &[&'a dyn Kernel],
        facts: &DeviceFacts,
        arguments: &FuzzArguments,
    ) -> Units<'a> {
        // A control of another gate may be right at every shape.
        let fuzzed = |kernel: &&&dyn Kernel| {
            let spec = kernel.spec();
            let shown = spec.control_for.is_none_or(|gate| gate == Gate::Shapes);
            shown && spec.runs_on(&facts.backend)
        };
        let kernels = kernels.iter().filter(fuzzed).copied().collect();
        let isolated = arguments.isolate || facts.backend == "cuda";
        Units { kernels, operations: operations(), limits: limits(facts), isolated }
    }

    /// The candidates that were asked for.
    pub(crate) fn chosen(&self, arguments: &FuzzArguments) -> Result<Vec<Unit<'a>>, Failure> {
        if let Some(recipe) = &arguments.repro {
            return self.one(recipe).map(|unit| vec![unit]);
        }
        let kernels = self.kernels.iter().map(|kernel| Unit::Kernel(*kernel, self.limits, None));
        let mut named: Vec<Unit<'a>> = kernels.filter(|unit| unit.is_named(arguments)).collect();
        named.sort_by_key(|unit| !unit.is_planted());
        let operations = self.operations.iter().map(|own| Unit::Operation(own.clone(), None));
        let operations: Vec<Unit<'a>> = operations
            .filter(|unit| unit.is_named(arguments) || !unit.is_deadly())
            .filter(|unit| !unit.is_deadly() || (self.isolated && arguments.only.is_some()))
            .collect();
        let matched = !named.is_empty() || operations.iter().any(|unit| unit.is_named(arguments));
        if !matched {
            let text = arguments.only.as_deref().unwrap_or_default();
            let message = format!("no recipe has `{text}` in it");
            let hint = if DEADLY.iter().any(|name| text.starts_with(name)) {
                SURVIVED
            } else {
                "--list prints every recipe"
            };
            return Err(Failure::request(message).hint(hint.to_owned()));
        }
        // First what shows that the run can fail at all.
        Ok(operations.into_iter().chain(named).collect())
    }

    /// The candidate of one case.
    fn one(&self, recipe: &Recipe) -> Result<Unit<'a>, Failure> {
        let kernel = self.kernels.iter().find(|kernel| kernel.spec().name == recipe.candidate);
        if let Some(kernel) = kernel {
            return Ok(Unit::Kernel(*kernel, self.limits, Some(recipe.clone())));
        }
        let operation = self.operations.iter().find(|own| own.name() == recipe.candidate);
        let operation = operation.map(|own| Unit::Operation(own.clone(), Some(recipe.clone())));
        let unit = operation.ok_or_else(|| {
            let message = format!("there is no candidate `{}`", recipe.candidate);
            Failure::request(message).hint("--list prints every recipe".to_owned())
        })?;
        if unit.is_deadly() && !self.isolated {
            let message = format!("{} is not run in this process", recipe.candidate);
            return Err(Failure::request(message).hint(SURVIVED.to_owned()));
        }
        Ok(unit)
    }

    /// The kernel that a kernel's bytes must equal.
    fn replaced(&self, kernel: &dyn Kernel) -> Option<&'a dyn Kernel> {
        let name = kernel.replaced()?;
        self.kernels.iter().find(|other| other.spec().name == name).copied()
    }
}

impl Unit<'_> {
    /// What its cases are.
    pub(crate) fn candidate(&self) -> Box<dyn Candidate + '_> {
        let (all, recipe): (Box<dyn Candidate>, _) = match self {
            Unit::Kernel(kernel, limits, recipe) => {
                (Box::new(KernelCandidate::new(kernel.spec(), *limits)), recipe)
            }
            Unit::Operation(operation, recipe) => (Box::new(operation.clone()), recipe),
        };
        match recipe {
            Some(recipe) => Box::new(One { all, recipe: recipe.clone() }),
            None => all,
        }
    }

    /// Whether something is planted in it, so that it runs whatever the budget, until that is
    /// found: without it a run shows nothing.
    pub(crate) fn is_planted(&self) -> bool {
        match self {
            Unit::Kernel(kernel, ..) => kernel.spec().is_control(),
            Unit::Operation(own, recipe) => recipe.is_none() && own.control_for().is_some(),
        }
    }

    /// Whether it runs beside what was asked for: a planted operation that `--only` does not name.
    pub(crate) fn is_beside(&self, arguments: &FuzzArguments) -> bool {
        matches!(self, Unit::Operation(..)) && !self.is_named(arguments)
    }

    fn is_named(&self, arguments: &FuzzArguments) -> bool {
        let Some(text) = &arguments.only else { return true };
        let cases = self.candidate().cases(arguments.seed);
        cases.iter().any(|planned| planned.recipe.to_string().contains(text.as_str()))
    }

    fn is_deadly(&self) -> bool {
        let name = self.candidate().name();
        matches!(self, Unit::Operation(..)) && DEADLY.iter().any(|own| name.starts_with(own))
    }

    /// How it is fuzzed.
    pub(crate) fn options(&self, arguments: &FuzzArguments, budget: Option<Duration>) -> Options {
        let only = if self.is_beside(arguments) { None } else { arguments.only.clone() };
        // More of what is planted shows nothing more, unless it is what was asked for.
        let is_asked_for = arguments.only.is_some() && self.is_named(arguments);
        let until_found = self.is_planted() && !is_asked_for;
        Options { seed: arguments.seed, only, budget, until_found, ..Options::default() }
    }

    /// How many cases it has.
    pub(crate) fn count(&self, arguments: &FuzzArguments) -> usize {
        assay_fuzz::selected(&*self.candidate(), &self.options(arguments, None)).len()
    }

    /// Does `work` with what runs its cases: this process, or another.
    pub(crate) fn with_runner<T>(
        &self,
        units: &Units<'_>,
        arguments: &FuzzArguments,
        work: impl FnOnce(&mut dyn Runner) -> T,
    ) -> T {
        if units.isolated {
            return work(&mut self.isolated(arguments));
        }
        match self {
            Unit::Operation(operation, _) => work(&mut operation.clone()),
            Unit::Kernel(kernel, ..) => {
                let replaced = units.replaced(*kernel);
                with_kernel(*kernel, replaced, &arguments.device, work)
            }
        }
    }

    fn isolated(&self, arguments: &FuzzArguments) -> Isolated {
        let greeting = Greeting {
            device: arguments.device.clone(),
            manifests: arguments.manifest.clone(),
            candidate: self.candidate().name(),
        };
        let line = serde_json::to_string(&greeting).unwrap_or_default();
        let command = || {
            let program = std::env::current_exe().unwrap_or_else(|_| "assay".into());
            let mut command = Command::new(program);
            command.arg("fuzz-child");
            command
        };
        Isolated::new(command, line, Duration::from_secs_f64(arguments.timeout))
    }
}

/// Does `work` with a kernel bound to a device of its own; where it cannot be bound, with what
/// answers every case with the reason.
pub(crate) fn with_kernel<T>(
    kernel: &dyn Kernel,
    replaced: Option<&dyn Kernel>,
    name: &str,
    work: impl FnOnce(&mut dyn Runner) -> T,
) -> T {
    let skipped = |why: String| Unable { verdict: FuzzVerdict::Skipped, why };
    let mut device = match device(name, kernel.spec().architecture()) {
        Ok(device) => device,
        Err(error) => return work(&mut skipped(error.to_string())),
    };
    let bound = DeviceSubject::bind(kernel, replaced, device.as_mut());
    match bound {
        Ok(subject) => work(&mut KernelRunner::new(subject)),
        Err(RunError::Unsupported { what }) => {
            work(&mut Unable { verdict: FuzzVerdict::Unsupported, why: what })
        }
        Err(error) => work(&mut skipped(error.to_string())),
    }
}

/// Answers every case with why it cannot be run.
struct Unable {
    verdict: FuzzVerdict,
    why: String,
}

impl Runner for Unable {
    fn run(&mut self, recipe: &Recipe) -> FuzzCase {
        FuzzCase::new(recipe.clone(), self.verdict, self.why.clone())
    }
}

/// A candidate with one case.
struct One<'a> {
    all: Box<dyn Candidate + 'a>,
    recipe: Recipe,
}

impl Candidate for One<'_> {
    fn name(&self) -> String {
        self.all.name()
    }

    fn kind(&self) -> FuzzKind {
        self.all.kind()
    }

    fn control_for(&self) -> Option<String> {
        self.all.control_for()
    }

    fn cases(&self, _seed: u64) -> Vec<Planned> {
        let recipe = self.recipe.clone();
        vec![Planned { elements: 0, recipe, skip: None }]
    }

    fn smaller(&self, recipe: &Recipe) -> Vec<Recipe> {
        self.all.smaller(recipe)
    }
}
