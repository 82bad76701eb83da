//! Gate 3's sweeps: a kernel with rounding points meets every finite value of each 16-bit input, at
//! least sixteen times, each time beside other co-inputs.
//!
//! Each value is one step of some kernel's rounding away from the next, so a rounding point that is
//! dropped, added or moved shows on some of them, whatever ordinary data would have shown. Elements
//! that the reference has no bound for, since a step overflows, are passed over and counted.

use std::fmt::Write as _;

use assay_num::random::SplitMix64;
use assay_record::{CaseName, Gate};
use assay_reference::fill::shapes::{self as fill, Style};
use assay_reference::fill::sweep::Sweep;
use assay_reference::fill::{Layout, TensorLayout};
use assay_reference::{Dims, Evaluation, Inputs, Program};

use super::shapes::{Prepared, Running};
use super::target::{Judge, case};
use super::{GateContext, envelope};
use crate::spec::shown;
use crate::subject::Subject;

/// What a run costs beside its elements, in elements.
const RUN_OVERHEAD: f64 = 30_000.0;
/// The most work that one input's sweep may take, in operations of the reference on elements: a
/// second or two of a core.
const MOST_WORK: f64 = 8e7;
/// What a run costs beside those, in the same unit.
const RUN_WORK: f64 = 1e5;
/// The most runs that one input's sweep may take.
const MOST_RUNS: usize = 400;

/// Sweeps every 16-bit input of a kernel whose formula has rounding points.
pub(super) fn check(gate: &mut Running, subject: &mut dyn Subject, context: &GateContext<'_>) {
    let Judge::Formula(program) = gate.target.judge.clone() else { return };
    // A kernel that has failed on ordinary data need not fail again.
    if !program.has_rounding_points() || gate.tally.failed() {
        return;
    }
    let names: Vec<String> =
        gate.target.signature.inputs.iter().map(|tensor| tensor.name.clone()).collect();
    for name in names {
        if let Some(mut chosen) = choose(gate, subject, &name) {
            gate.shape_failed = false;
            sweep(gate, subject, context, (&program, &mut chosen));
        }
    }
}

/// A sweep at a shape.
struct Chosen {
    dims: Dims,
    layout: Layout,
    sweep: Sweep,
}

/// The sweep of an input at the shape that makes it cheapest.
fn choose(gate: &Running, subject: &dyn Subject, name: &str) -> Option<Chosen> {
    let mut best: Option<(f64, Chosen)> = None;
    for dims in envelope::sweeping(subject.spec()) {
        let Ok(layout) = gate.target.layout(&dims) else { continue };
        let outputs = outputs(gate, &dims);
        let sweep = layout.tensor(name).and_then(|tensor| Sweep::of(&layout, tensor, outputs));
        let Some(sweep) = sweep else { continue };
        let largest = layout.tensors.iter().map(TensorLayout::count).max().unwrap_or(0);
        let cost = sweep.runs as f64 * (largest.max(outputs) as f64 + RUN_OVERHEAD);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, Chosen { dims, layout, sweep }));
        }
    }
    best.map(|(_, chosen)| chosen)
}

/// Elements of the largest output.
fn outputs(gate: &Running, dims: &Dims) -> usize {
    let count = |tensor: &assay_reference::Tensor| {
        let extents = tensor.shape.iter().map(|extent| extent.eval(dims).unwrap_or(0));
        usize::try_from(extents.product::<i64>()).unwrap_or(0)
    };
    gate.target.signature.outputs.iter().map(count).max().unwrap_or(0)
}

fn sweep(
    gate: &mut Running,
    subject: &mut dyn Subject,
    context: &GateContext<'_>,
    (program, chosen): (&Program, &mut Chosen),
) {
    gate.swept = (0, 0);
    let (first_case, random) = chosen.case(subject, context, 0);
    let first = chosen.co_inputs(gate, subject, context, &random);
    if let Err(reason) = chosen.read(gate, program, &first) {
        return gate.tally.unproven(&first_case, reason);
    }
    let runs = chosen.sweep.runs.min(affordable(gate, program, chosen, &first));
    let mut ran = 0;
    for number in 0..runs {
        let (case, random) = chosen.case(subject, context, number);
        if !gate.wants(context, &case) {
            continue;
        }
        ran += 1;
        let mut inputs = chosen.co_inputs(gate, subject, context, &random);
        chosen.keep_integers(&first, &mut inputs);
        // Where not all runs are affordable, those taken are spread over the whole sweep.
        let run = number * chosen.sweep.runs / runs;
        chosen.sweep.fill(run, &chosen.layout, &mut inputs, &mut random.fork("sweep"));
        let dims = &chosen.dims;
        let prepared = Prepared { case: &case, dims, inputs: &inputs, is_sweep: true };
        gate.judged_run(subject, &prepared);
    }
    if ran < runs || gate.shape_failed {
        return;
    }
    if gate.swept.0 > 0 && gate.swept.0 == gate.swept.1 {
        let reason = format!("fixture: no value of `{}` has a bound", chosen.sweep.tensor);
        gate.tally.unproven(&first_case, reason);
    }
    gate.tally.note(described(chosen, runs, gate.swept));
}

impl Chosen {
    fn case(
        &self,
        subject: &dyn Subject,
        context: &GateContext<'_>,
        number: usize,
    ) -> (CaseName, SplitMix64) {
        let name = format!("sweep-{}-{number}", self.sweep.tensor);
        case(subject, context, (Gate::Shapes, &self.dims), &name)
    }

    /// The inputs of a run, before the swept one is overwritten.
    fn co_inputs(
        &self,
        gate: &Running,
        subject: &dyn Subject,
        context: &GateContext<'_>,
        random: &SplitMix64,
    ) -> Inputs {
        subject.prepare(Gate::Shapes, &self.dims, context.seed).unwrap_or_else(|| {
            let tiny = fill::tiny_scale(gate.target.signature.scalars.values().copied());
            fill::build(&self.layout, &styles(self.layout.rows), tiny, &mut random.fork("rows"))
        })
    }

    /// Keeps to the elements that are read, where inputs decide which.
    fn read(&mut self, gate: &Running, program: &Program, inputs: &Inputs) -> Result<(), String> {
        let evaluation = Evaluation::new(&self.dims, inputs, &gate.target.arithmetic);
        let reads = program.reads(&evaluation, &self.sweep.tensor);
        let Some(counts) = reads.map_err(|error| format!("fixture: {error}"))? else {
            return Ok(());
        };
        let unread = || format!("fixture: nothing of `{}` is read", self.sweep.tensor);
        self.sweep = self.sweep.clone().reading(&counts).ok_or_else(unread)?;
        Ok(())
    }

    /// Takes the integers of `first`, which may decide what is read.
    fn keep_integers(&self, first: &Inputs, inputs: &mut Inputs) {
        for tensor in self.layout.tensors.iter().filter(|tensor| !tensor.format.is_float()) {
            if let Some(values) = first.tensors.get(&tensor.name) {
                inputs.tensors.insert(tensor.name.clone(), values.clone());
            }
        }
    }
}

/// How many runs of a sweep the reference can afford.
fn affordable(gate: &Running, program: &Program, chosen: &Chosen, inputs: &Inputs) -> usize {
    let evaluation = Evaluation::new(&chosen.dims, inputs, &gate.target.arithmetic);
    let work = program.work(&evaluation).unwrap_or(MOST_WORK).max(RUN_WORK);
    ((MOST_WORK / work) as usize).clamp(1, MOST_RUNS)
}

/// Rows take turns at ordinary magnitudes and ones within 2^±5.
fn styles(rows: usize) -> Vec<Style> {
    let style = |row: usize| if row.is_multiple_of(2) { Style::Ordinary } else { Style::Moderate };
    (0..rows).map(style).collect()
}

/// What was swept, in a sentence.
fn described(chosen: &Chosen, runs: usize, (elements, unbounded): (usize, usize)) -> String {
    let Chosen { dims, sweep, .. } = chosen;
    let part = if runs < sweep.runs { format!("{runs} of ") } else { String::new() };
    let plural = if sweep.runs == 1 { "" } else { "s" };
    let mut text = format!(
        "swept `{}`: {} finite values, {} times each, in {part}{} run{plural} at {}",
        sweep.tensor,
        sweep.values,
        sweep.times,
        sweep.runs,
        shown(dims),
    );
    if unbounded > 0 {
        let share = 100.0 * unbounded as f64 / elements.max(1) as f64;
        let _ = write!(text, "; no bound at {unbounded} of {elements} elements ({share:.1} %)");
    }
    text
}
