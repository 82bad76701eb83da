//! Which kernels, gates and cases a run has, without running any.

use assay_record::{CaseName, Gate, GateResult, Part};

use super::part::{share, weight_at};
use super::unit::Unit;
use super::{CheckOptions, GATES};
use crate::gates::{Effort, Filter, GateContext, check};
use crate::kernel::Kernel;
use crate::spec::Spec;
use crate::subject::{RunError, RunRequest, RunResult, Subject};

/// The kernels of a run, in the order given.
pub struct Selection<'a> {
    /// The chosen kernels.
    pub(super) kernels: Vec<Chosen<'a>>,
    /// True if `only` matched a kernel, a control or a case, or was not given.
    pub matched: bool,
}

/// One kernel of a run.
pub(super) struct Chosen<'a> {
    pub(super) index: usize,
    kernel: &'a dyn Kernel,
    gates: Vec<Gate>,
    filter: Filter<'a>,
}

impl<'a> Selection<'a> {
    /// Kernels that are no controls.
    pub fn kernel_count(&self) -> usize {
        self.kernels.iter().filter(|chosen| !chosen.kernel.spec().is_control()).count()
    }

    /// Pairs of kernel and gate that will run.
    pub fn unit_count(&self) -> usize {
        self.kernels.iter().map(|chosen| chosen.gates.len()).sum()
    }

    /// The names of the chosen kernels, controls among them.
    pub fn names(&self) -> Vec<&'a str> {
        self.kernels.iter().map(|chosen| chosen.kernel.spec().name.as_str()).collect()
    }

    /// The units of the kernels that are to run.
    pub(super) fn units(&self, runs: impl Fn(usize) -> bool) -> Vec<Unit<'a>> {
        let unit = |chosen: &Chosen<'a>, gate: &Gate| Unit {
            index: chosen.index,
            kernel: chosen.kernel,
            gate: *gate,
            filter: chosen.filter,
            effort: Effort::default(),
        };
        let chosen = self.kernels.iter().filter(|chosen| runs(chosen.index));
        chosen.flat_map(|chosen| chosen.gates.iter().map(move |gate| unit(chosen, gate))).collect()
    }
}

/// Chooses kernels by `options.only`; controls are always chosen where their gate runs.
pub fn select<'a>(kernels: &[&'a dyn Kernel], options: &'a CheckOptions) -> Selection<'a> {
    let mut matched = options.only.is_none();
    let mut chosen = Vec::new();
    for (index, kernel) in kernels.iter().copied().enumerate() {
        let spec = kernel.spec();
        let filter = case_filter(kernel, options);
        let mut gates = gates_of(spec, &options.gates);
        if let Filter::Holding(text) = filter {
            gates.retain(|gate| !cases(kernel, *gate, (options.seed, filter)).is_empty());
            matched |= !gates.is_empty() && !text.is_empty();
        } else if let Some(text) = &options.only {
            matched |= spec.name.contains(text.as_str());
        }
        if !gates.is_empty() {
            chosen.push(Chosen { index, kernel, gates, filter });
        }
    }
    if let Some(part) = options.part {
        keep_part(&mut chosen, part);
    }
    Selection { kernels: chosen, matched }
}

/// Leaves to each kernel the gates of one part of the run.
fn keep_part(chosen: &mut Vec<Chosen<'_>>, part: Part) {
    let weight = |one: &Chosen<'_>, gate: Gate| weight_at(one.kernel.spec(), gate);
    let weights: Vec<u64> = chosen
        .iter()
        .flat_map(|one| one.gates.iter().map(move |gate| weight(one, *gate)))
        .collect();
    let mut mine = share(&weights, part).into_iter();
    for one in chosen.iter_mut() {
        one.gates.retain(|_| mine.next().unwrap_or(false));
    }
    chosen.retain(|one| !one.gates.is_empty());
}

/// A control runs whole; a kernel whose name holds the text too; of the others, the cases that do.
pub(super) fn case_filter<'a>(kernel: &dyn Kernel, options: &'a CheckOptions) -> Filter<'a> {
    match &options.only {
        Some(text)
            if !kernel.spec().is_control() && !kernel.spec().name.contains(text.as_str()) =>
        {
            Filter::Holding(text)
        }
        _ => Filter::All,
    }
}

/// The gates that a kernel goes through: a control only the one that it is built to fail.
pub(super) fn gates_of(spec: &Spec, asked: &[Gate]) -> Vec<Gate> {
    let own = |gate: &&Gate| spec.control_for.is_none_or(|control| control == **gate);
    asked.iter().filter(own).copied().collect()
}

/// One kernel as `--list` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The kernel's name.
    pub kernel: String,
    /// The gate that it must fail, if it is a control.
    pub control_for: Option<Gate>,
    /// The cases of each gate that it goes through.
    pub gates: Vec<(Gate, Vec<CaseName>)>,
}

/// Names, gates and cases of everything that `options` selects.
pub fn list(kernels: &[&dyn Kernel], options: &CheckOptions) -> Vec<Listed> {
    let selection = select(kernels, options);
    let listed = |chosen: &Chosen<'_>| Listed {
        kernel: chosen.kernel.spec().name.clone(),
        control_for: chosen.kernel.spec().control_for,
        gates: chosen
            .gates
            .iter()
            .map(|gate| (*gate, cases(chosen.kernel, *gate, (options.seed, chosen.filter))))
            .collect(),
    };
    selection.kernels.iter().map(listed).collect()
}

/// The names of a gate's cases.
fn cases(kernel: &dyn Kernel, gate: Gate, (seed, filter): (u64, Filter<'_>)) -> Vec<CaseName> {
    if !GATES.contains(&gate) {
        return Vec::new();
    }
    let context = GateContext::listing(seed);
    check(gate, &mut Unbound { spec: kernel.spec() }, &context);
    context.listed().into_iter().filter(|case| filter.keeps(case)).collect()
}

/// What a gate says of a kernel before any case has run: whether it asks anything of it.
pub(crate) fn gate_without_cases(gate: Gate, spec: &Spec) -> GateResult {
    check(gate, &mut Unbound { spec }, &GateContext::listing(0))
}

/// A kernel that is only asked what it would run, on no device.
pub(super) struct Unbound<'a> {
    pub(super) spec: &'a Spec,
}

impl Subject for Unbound<'_> {
    fn spec(&self) -> &Spec {
        self.spec
    }

    fn run(&mut self, _request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        Err(RunError::Internal { message: "a case ran while cases were listed".to_owned() })
    }
}
