//! A kernel at a shape that nobody serves it at: one run on inputs of gate 3's kinds, in buffers
//! placed as the caller says, each output held to the formula's own bound. What a fuzzer asks.

use assay_num::random::SplitMix64;
use assay_record::{CaseName, Gate, GateResult, Outcome};
use assay_reference::fill::ranked;
use assay_reference::fill::shapes::{self as fill, Style};
use assay_reference::{Dims, Inputs};

use super::Tally;
use super::given::{FILL, given};
use super::target::{Judge, Target};
use crate::layout::Layout;
use crate::spec::Spec;
use crate::subject::{RunError, RunRequest, RunResult, Subject, answers_as};

/// What decides a trial beside the kernel.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// The shape.
    pub dims: &'a Dims,
    /// What the inputs are drawn from.
    pub seed: u64,
    /// The alignment class of buffers, as [`RunRequest::misalign`].
    pub misalign: u64,
    /// Whether outputs lie in inputs' buffers where the spec allows it.
    pub alias: bool,
}

/// What came of a trial.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Gate 3's verdict on this one run.
    pub result: GateResult,
    /// What kept the run from its outputs, or what it did beside them.
    pub error: Option<RunError>,
}

impl Tried {
    /// A trial that shows nothing, and why.
    pub(crate) fn unproven(case: &CaseName, why: impl Into<String>) -> Tried {
        let mut tally = Tally::new(Gate::Shapes);
        tally.count();
        tally.unproven(case, why);
        Tried { result: tally.finish(), error: None }
    }
}

/// The case that findings of a trial name.
pub(crate) fn case_of(spec: &Spec, dims: &Dims, seed: u64) -> CaseName {
    CaseName {
        kernel: spec.name.clone(),
        gate: Gate::Shapes,
        dims: dims.iter().map(|(name, size)| (name.clone(), *size)).collect(),
        fill: FILL.to_owned(),
        seed,
        schedule: "in-order".to_owned(),
    }
}

/// Runs a kernel once. Where the formula has no bound on rows of several styles, ordinary values
/// take their place.
pub fn trial(subject: &mut dyn Subject, trial: &Trial<'_>) -> Tried {
    let case = case_of(subject.spec(), trial.dims, trial.seed);
    let mut tried = Tried::unproven(&case, "no inputs were made");
    for calm in [false, true] {
        let inputs = match inputs(subject, &case, trial.dims, calm) {
            Ok(inputs) => inputs,
            Err(why) => return Tried::unproven(&case, why),
        };
        let mut ugly = Ugly { subject: &mut *subject, trial, error: None };
        let result = given(&mut ugly, &case, (trial.dims, &inputs));
        let error = ugly.error.take();
        let settled = result.outcome != Outcome::Unproven || error.is_some();
        tried = Tried { result, error };
        if settled {
            break;
        }
    }
    tried
}

/// Inputs at a shape: rows of all styles, or `calm` ones.
pub(crate) fn inputs(
    subject: &dyn Subject,
    case: &CaseName,
    dims: &Dims,
    calm: bool,
) -> Result<Inputs, String> {
    if let Some(inputs) = subject.prepare(Gate::Shapes, dims, case.seed) {
        return Ok(inputs);
    }
    let spec = subject.spec();
    let target = Target::of(spec, case.seed)?;
    let layout = target.layout(dims).map_err(|error| error.to_string())?;
    let mut random = SplitMix64::new(case.seed).fork(&case.to_string());
    let mut inputs = match &target.judge {
        Judge::Formula(_) => {
            let styles = if calm { vec![Style::Ordinary] } else { fill::styles(&layout) };
            let first = random.below(styles.len().max(1) as u64) as usize;
            let style = |row: usize| styles[(row + first) % styles.len()];
            let rows: Vec<Style> = (0..layout.rows).map(style).collect();
            let tiny = fill::tiny_scale(target.signature.scalars.values().copied());
            fill::build(&layout, &rows, tiny, &mut random)
        }
        Judge::Rule(rule) => {
            let scores = rule.scores().name.clone();
            let (length, tile) = ranked::extent(&layout, &scores);
            let patterns = ranked::patterns(length, tile);
            let first = random.below(patterns.len().max(1) as u64) as usize;
            let turned: Vec<_> =
                patterns.iter().cycle().skip(first).take(patterns.len()).copied().collect();
            ranked::build(&layout, &scores, &turned, &mut random)
        }
    };
    agree(spec, dims, &mut inputs)?;
    Ok(inputs)
}

/// Gives indices that lie in one place of memory, as under a stride of 0, one value.
fn agree(spec: &Spec, dims: &Dims, inputs: &mut Inputs) -> Result<(), String> {
    for argument in spec.arguments.iter().filter(|argument| argument.strides.is_some()) {
        let layout = Layout::of(argument, dims).map_err(|error| error.to_string())?;
        if let Some(values) = inputs.tensors.get_mut(&argument.name) {
            layout.agree(values);
        }
    }
    Ok(())
}

/// Places buffers as the trial says, and takes damage beside the outputs for the fault that it is.
struct Ugly<'a> {
    subject: &'a mut dyn Subject,
    trial: &'a Trial<'a>,
    error: Option<RunError>,
}

impl Subject for Ugly<'_> {
    answers_as!(subject);

    fn run(&mut self, request: &RunRequest<'_>) -> Result<RunResult, RunError> {
        let Trial { misalign, alias, .. } = *self.trial;
        let request = RunRequest { misalign, alias, ..request.clone() };
        let result = self.subject.run(&request).and_then(undamaged);
        self.error = self.error.take().or_else(|| result.as_ref().err().cloned());
        result
    }

    fn run_replaced(&mut self, request: &RunRequest<'_>) -> Option<Result<RunResult, RunError>> {
        self.subject.run_replaced(request)
    }
}

/// A run that left everything but its outputs alone.
fn undamaged(result: RunResult) -> Result<RunResult, RunError> {
    let damage = result.guard_damage.first().map(|(name, what)| format!("around `{name}`: {what}"));
    let changed = result.changed_inputs.first().map(|change| {
        let index: Vec<String> = change.element.iter().map(ToString::to_string).collect();
        format!("it changed its input `{}` at [{}]", change.tensor, index.join(", "))
    });
    match damage.or(changed) {
        None => Ok(result),
        Some(description) => Err(RunError::Fault { description, place: None, lost_device: false }),
    }
}

/// What a kernel takes at a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Elements of its largest tensor.
    pub elements: u64,
    /// Bytes of all its buffers.
    pub bytes: u64,
    /// Blocks of its largest launch.
    pub blocks: u64,
    /// Threads of its largest launch.
    pub threads: u64,
}

/// What a kernel takes at a shape; the reason where its manifest does not allow the shape, in words
/// that are the same for all shapes it does not allow for it.
///
/// # Errors
/// A dim below its least size or off its step, a tensor, stride, range or launch out of range.
pub fn footprint(spec: &Spec, dims: &Dims) -> Result<Footprint, String> {
    for (name, dim) in &spec.dims {
        let size = dims.get(name).ok_or_else(|| format!("it names no size of `{name}`"))?;
        if !dim.allows(*size) {
            return Err(format!("the manifest serves `{name}` {}", dim.valid_sizes()));
        }
    }
    let mut taken = Footprint::default();
    for argument in &spec.arguments {
        if argument.role == crate::spec::Role::Dim {
            crate::launcher::scalar_bytes(argument, dims)
                .map_err(|_| format!("no {} holds `{}`", argument.format.name(), argument.name))?;
        }
        if !argument.role.is_buffer() {
            continue;
        }
        let layout = Layout::of(argument, dims)
            .map_err(|_| format!("`{}` has no such shape or strides", argument.name))?;
        if argument.role != crate::spec::Role::In && layout.overlaps() {
            return Err(format!("elements of `{}` would lie in each other's place", argument.name));
        }
        taken.elements = taken.elements.max(layout.elements() as u64);
        taken.bytes = taken.bytes.saturating_add(layout.bytes as u64);
        if let Some(range) = argument.limits.range_at(dims) {
            let span = range.end.saturating_sub(range.start);
            let short = argument.limits.distinct && layout.elements() as i64 > span;
            if span <= 0 || short {
                return Err(format!("`{}` has too narrow a range", argument.name));
            }
        }
    }
    launches(spec, dims, &mut taken)?;
    Ok(taken)
}

fn launches(spec: &Spec, dims: &Dims, taken: &mut Footprint) -> Result<(), String> {
    for launch in &spec.launches {
        let count = |extents: &[assay_reference::Extent]| {
            extents.iter().try_fold(1u64, |all, extent| {
                let size = extent.eval(dims).ok().filter(|size| *size >= 1)?;
                Some(all.saturating_mul(size as u64))
            })
        };
        let (blocks, threads) = count(&launch.grid)
            .zip(count(&launch.block))
            .ok_or_else(|| format!("the launch of `{}` has no size", launch.symbol))?;
        taken.blocks = taken.blocks.max(blocks);
        taken.threads = taken.threads.max(blocks.saturating_mul(threads));
    }
    Ok(())
}
