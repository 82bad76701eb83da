//! Gate 3's sweeps: a kernel with rounding points meets every finite value of each 16-bit input, at
//! least sixteen times, each time beside other co-inputs.
//!
//! Each value is one step of some kernel's rounding away from the next, so a rounding point that is
//! dropped, added or moved shows on some of them, whatever ordinary data would have shown. Elements
//! that the reference has no bound for, since a step overflows, are passed over and counted.

use assay_record::Gate;
use assay_reference::fill::shapes::{self as fill, Style};
use assay_reference::fill::sweep::Sweep;
use assay_reference::fill::{Layout, TensorLayout};
use assay_reference::{Dims, Evaluation, Program};

use super::shapes::{Prepared, Running};
use super::target::{Judge, case};
use super::{GateContext, envelope};
use crate::spec::shown;
use crate::subject::Subject;

/// What a run costs beside its elements, in elements.
const RUN_OVERHEAD: f64 = 30_000.0;
/// The most work of the reference that one input's sweep may take, in operations on elements: one
/// to three seconds of a core.
const MOST_WORK: f64 = 2e8;

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
        if let Some(chosen) = choose(gate, subject, &name) {
            gate.shape_failed = false;
            sweep(gate, subject, context, (&program, &chosen));
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
    (program, chosen): (&Program, &Chosen),
) {
    let Chosen { dims, layout, sweep } = chosen;
    gate.swept = (0, 0);
    let affordable = affordable(gate, program, chosen);
    let runs = sweep.runs.min(affordable);
    let mut ran = 0;
    for number in 0..runs {
        let name = format!("sweep-{}-{number}", sweep.tensor);
        let (case, random) = case(subject, context, (Gate::Shapes, dims), &name);
        if !gate.wants(context, &case) {
            continue;
        }
        ran += 1;
        let mut inputs = subject.prepare(Gate::Shapes, dims, context.seed).unwrap_or_else(|| {
            let tiny = fill::tiny_scale(gate.target.signature.scalars.values().copied());
            fill::build(layout, &styles(layout.rows), tiny, &mut random.fork("rows"))
        });
        // Where not all runs are affordable, those taken are spread over the whole sweep.
        let run = number * sweep.runs / runs;
        sweep.fill(run, layout, &mut inputs, &mut random.fork("sweep"));
        let prepared = Prepared { case: &case, dims, inputs: &inputs, is_sweep: true };
        gate.judged_run(subject, &prepared);
        if ran == runs && gate.swept.0 > 0 && gate.swept.0 == gate.swept.1 {
            let reason = format!("fixture: no value of `{}` has a bound", sweep.tensor);
            gate.tally.unproven(&case, reason);
        }
    }
    if ran == runs && !gate.shape_failed {
        gate.tally.note(described(chosen, runs, gate.swept));
    }
}

/// How many runs of a sweep the reference can afford.
fn affordable(gate: &Running, program: &Program, chosen: &Chosen) -> usize {
    let inputs = chosen.layout.zeros();
    let evaluation = Evaluation::new(&chosen.dims, &inputs, &gate.target.arithmetic);
    let work = program.work(&evaluation).unwrap_or(1.0).max(1.0);
    ((MOST_WORK / work) as usize).max(1)
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
        text += &format!("; no bound at {unbounded} of {elements} elements ({share:.1} %)");
    }
    text
}
