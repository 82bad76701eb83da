//! Runs the stages of a program one after the other, each spread over the cores in chunks.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::EvaluationError;
use crate::frame::{Frame, StageFrame, check_terms};
use crate::machine::Machine;
use crate::plan::{Binary, Node, NodeId, Source, Stage};
use crate::scan;
use crate::tile::{Domain, Out, Plane, TILE, Tile, Trouble};

/// Below this many operations on lanes a chunk is not worth a thread.
const LEAST_WORK: usize = 1 << 17;

/// What a stage computed.
#[derive(Default)]
pub(crate) struct StageResult {
    pub(crate) value: Vec<f64>,
    pub(crate) error: Vec<f64>,
    /// Empty where every sum was exact.
    pub(crate) inexact: Vec<bool>,
    pub(crate) problems: Problems,
}

/// The fixture problems of a stage: for vanishing and overflow the first element in trouble with
/// the node it starts at, and how many elements are; the number of undecided comparisons.
#[derive(Clone, Copy, Default)]
pub(crate) struct Problems {
    pub(crate) vanishing: Option<Problem>,
    pub(crate) overflow: Option<Problem>,
    pub(crate) undecided: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Problem {
    /// The first element, as an offset in the stage's region.
    pub(crate) element: usize,
    pub(crate) node: NodeId,
    pub(crate) count: u64,
}

impl Problems {
    fn merge(&mut self, other: &Problems) {
        let join = |a: Option<Problem>, b: Option<Problem>| match (a, b) {
            (Some(a), Some(b)) => Some(Problem { count: a.count + b.count, ..a }),
            (a, b) => a.or(b),
        };
        self.vanishing = join(self.vanishing, other.vanishing);
        self.overflow = join(self.overflow, other.overflow);
        self.undecided += other.undecided;
    }

    fn note(slot: &mut Option<Problem>, element: usize, node: NodeId, count: u64) {
        match slot {
            Some(problem) => problem.count += count,
            None => *slot = Some(Problem { element, node, count }),
        }
    }
}

type Ran<T> = Result<T, EvaluationError>;

/// The results of all needed stages, in order.
pub(crate) fn run<D: Domain>(frame: &Frame<'_>, domain: &D) -> Ran<Vec<StageResult>> {
    let mut results: Vec<StageResult> = Vec::with_capacity(frame.stages.len());
    for position in 0..frame.stages.len() {
        let result = match &frame.stages[position] {
            Some(own) => run_stage(frame, domain, (position, own), &planes(frame, &results))?,
            None => StageResult::default(),
        };
        results.push(result);
    }
    Ok(results)
}

/// The inputs, then the stages computed so far.
fn planes<'a>(frame: &'a Frame<'_>, results: &'a [StageResult]) -> Vec<Plane<'a>> {
    let inputs = frame.inputs.iter().map(|input| Plane {
        value: input.elements,
        error: &[],
        inexact: &[],
        format: Some(input.format),
    });
    let stages = results.iter().map(|result| Plane {
        value: &result.value,
        error: &result.error,
        inexact: &result.inexact,
        format: None,
    });
    inputs.chain(stages).collect()
}

fn run_stage<D: Domain>(
    frame: &Frame<'_>,
    domain: &D,
    (position, own): (usize, &StageFrame),
    planes: &[Plane<'_>],
) -> Ran<StageResult> {
    let count: usize = own.region.iter().map(|r| (r.end - r.start).max(0) as usize).product();
    let bounded = if D::BOUNDED { count } else { 0 };
    let mut value = vec![0.0; count];
    let mut error = vec![0.0; bounded];
    let mut inexact = vec![false; bounded];
    let stage = &frame.program.stages[position];
    let mut size = chunk_size(frame, (stage, &own.region), count);
    if let Some(scan) = &stage.scan {
        size = size.next_multiple_of(scan::block(&own.region, scan));
    }
    let chunks = chunks(size, &mut value, &mut error, &mut inexact);
    let run_chunk = |(number, mut out): (usize, Out<'_>)| {
        let mut machine = Machine::new(domain, frame, (position, own), planes);
        run_chunk(&mut machine, number * size, &mut out)
    };
    let reports: Vec<Ran<Problems>> = if chunks.len() > 1 {
        chunks.into_par_iter().enumerate().map(run_chunk).collect()
    } else {
        chunks.into_iter().enumerate().map(run_chunk).collect()
    };
    let mut problems = Problems::default();
    for report in reports {
        problems.merge(&report?);
    }
    if !inexact.contains(&true) {
        inexact = Vec::new();
    }
    Ok(StageResult { value, error, inexact, problems })
}

/// How many elements a chunk holds: enough work for a thread, and several chunks a thread.
fn chunk_size(frame: &Frame<'_>, (stage, region): (&Stage, &[Range<i64>]), count: usize) -> usize {
    let terms = frame.terms_hull(stage, region).max(1.0);
    let nodes = stage.nodes.len() as f64;
    let least = (LEAST_WORK as f64 / (terms * nodes)).ceil() as usize;
    count.div_ceil(8 * rayon::current_num_threads()).max(least).max(1)
}

/// Cuts the results into chunks of `size` elements.
fn chunks<'a>(
    size: usize,
    value: &'a mut [f64],
    error: &'a mut [f64],
    inexact: &'a mut [bool],
) -> Vec<Out<'a>> {
    let mut errors = error.chunks_mut(size);
    let mut flags = inexact.chunks_mut(size);
    value
        .chunks_mut(size)
        .map(|value| Out {
            value,
            error: errors.next().unwrap_or_default(),
            inexact: flags.next().unwrap_or_default(),
        })
        .collect()
}

/// Computes the elements of `out`, the first of which is number `first` of the region.
fn run_chunk<D: Domain>(
    machine: &mut Machine<'_, D>,
    first: usize,
    out: &mut Out<'_>,
) -> Ran<Problems> {
    if machine.stage.reduction.is_some() {
        return reduce_chunk(machine, first, out);
    }
    let stage = machine.stage;
    if let Some(scan) = &stage.scan {
        return scan::scan_chunk(machine, (scan, first), out);
    }
    let mut problems = Problems::default();
    let last_axis = machine.own.region.last().map_or(0..1, Clone::clone);
    let mut at = 0;
    while at < out.value.len() {
        let inner = set_variables(machine, first + at);
        let row = (last_axis.end - inner) as usize;
        let run = row.min(out.value.len() - at);
        machine.begin_run(run)?;
        let mut done = 0;
        while done < run {
            let count = TILE.min(run - done);
            machine.variables[machine.along] = inner + done as i64;
            machine.run_tile(count)?;
            let tile = &machine.tiles[machine.stage.root];
            machine.domain.store(tile, count, at + done, out);
            note_trouble(machine, tile.trouble(), (first + at + done, 1), &mut problems);
            done += count;
        }
        at += run;
    }
    Ok(problems)
}

/// Sets the variables to element `number` of the region; returns the last one's value.
pub(crate) fn set_variables<D: Domain>(machine: &mut Machine<'_, D>, number: usize) -> i64 {
    let mut rest = number as i64;
    for (axis, range) in machine.own.region.iter().enumerate().rev() {
        let extent = (range.end - range.start).max(1);
        machine.variables[axis] = range.start + rest % extent;
        rest /= extent;
    }
    match machine.stage.rank {
        0 => 0,
        rank => machine.variables[rank - 1],
    }
}

/// Notes the trouble of a tile whose lanes are `element` and those `stride` apart after it.
pub(crate) fn note_trouble<D: Domain>(
    machine: &Machine<'_, D>,
    trouble: Trouble,
    (element, stride): (usize, usize),
    problems: &mut Problems,
) {
    if trouble == Trouble::default() {
        return;
    }
    problems.undecided += u64::from(trouble.undecided.count_ones());
    let kinds = [
        (trouble.vanishing, &mut problems.vanishing, Kind::Vanishing),
        (trouble.overflow, &mut problems.overflow, Kind::Overflow),
    ];
    for (lanes, slot, kind) in kinds {
        if lanes != 0 {
            let lane = lanes.trailing_zeros();
            let node = origin(machine, kind, lane);
            let count = u64::from(lanes.count_ones());
            Problems::note(slot, element + lane as usize * stride, node, count);
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Vanishing,
    Overflow,
}

/// The node at which the trouble of the root's lane starts.
fn origin<D: Domain>(machine: &Machine<'_, D>, kind: Kind, lane: u32) -> NodeId {
    let in_trouble = |node: NodeId| {
        let trouble = machine.tiles[node].trouble();
        let lanes = match kind {
            Kind::Vanishing => trouble.vanishing,
            Kind::Overflow => trouble.overflow,
        };
        lanes >> lane & 1 == 1
    };
    let mut node = machine.stage.root;
    loop {
        // The trouble of a carry started at an earlier step.
        let nodes = &machine.stage.nodes;
        let operands = nodes[node].operands().into_iter().filter(|at| nodes[*at] != Node::Carry);
        match operands.into_iter().find(|operand| in_trouble(*operand)) {
            Some(operand) => node = operand,
            None => return node,
        }
    }
}

fn reduce_chunk<D: Domain>(
    machine: &mut Machine<'_, D>,
    first: usize,
    out: &mut Out<'_>,
) -> Ran<Problems> {
    let mut problems = Problems::default();
    let mut result = D::Tile::new();
    let factors = product_factors(machine.stage);
    for at in 0..out.value.len() {
        set_variables(machine, first + at);
        let mut trouble = None;
        reduce(machine, factors, &mut result, &mut trouble)?;
        machine.domain.store(&result, 1, at, out);
        let own = result.trouble();
        problems.undecided += u64::from(own.undecided & 1 != 0);
        let (root, element) = (machine.stage.root, first + at);
        let (vanishing, overflow) = trouble.unwrap_or((root, root));
        if own.vanishing & 1 != 0 {
            Problems::note(&mut problems.vanishing, element, vanishing, 1);
        }
        if own.overflow & 1 != 0 {
            Problems::note(&mut problems.overflow, element, overflow, 1);
        }
    }
    Ok(problems)
}

/// The factors of a sum of products of inputs.
fn product_factors(stage: &Stage) -> Option<(NodeId, NodeId)> {
    let is_input = |id: &NodeId| match &stage.nodes[*id] {
        Node::Read(access) => matches!(access.source, Source::Input(_)),
        _ => false,
    };
    match &stage.nodes[stage.root] {
        Node::Binary(Binary::Multiply, a, b) if is_input(a) && is_input(b) => Some((*a, *b)),
        _ => None,
    }
}

/// Computes one element of a reduction. `origin` becomes the nodes where trouble starts.
fn reduce<D: Domain>(
    machine: &mut Machine<'_, D>,
    factors: Option<(NodeId, NodeId)>,
    result: &mut D::Tile,
    origin: &mut Option<(NodeId, NodeId)>,
) -> Ran<()> {
    let Some(reduction) = &machine.stage.reduction else { return Ok(()) };
    let (from, to) = (machine.int_value(reduction.from)?, machine.int_value(reduction.to)?);
    let to = to.max(from);
    check_terms(from, to)?;
    let dropped = machine.own.dropped.and_then(|term| from.checked_add(term));
    let pieces = match dropped.filter(|term| (from..to).contains(term)) {
        Some(term) => [from..term, term + 1..to],
        None => [from..to, to..to],
    };
    let terms: i64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
    let mut sum = machine.domain.start(machine.position, terms);
    for piece in pieces {
        if !piece.is_empty() {
            reduce_piece(machine, factors, piece, &mut sum, origin)?;
        }
    }
    machine.domain.finish(sum, machine.position, result);
    Ok(())
}

fn reduce_piece<D: Domain>(
    machine: &mut Machine<'_, D>,
    factors: Option<(NodeId, NodeId)>,
    piece: Range<i64>,
    sum: &mut D::Sum,
    origin_nodes: &mut Option<(NodeId, NodeId)>,
) -> Ran<()> {
    let terms = (piece.end - piece.start) as usize;
    machine.variables[machine.along] = piece.start;
    if let Some((a, b)) = factors
        && let Some(a) = machine.neighbours(a, terms)
        && let Some(b) = machine.neighbours(b, terms)
        && machine.domain.add_products(sum, machine.position, [a, b])
    {
        return Ok(());
    }
    machine.begin_run(terms)?;
    let mut done = 0;
    while done < terms {
        let count = TILE.min(terms - done);
        machine.variables[machine.along] = piece.start + done as i64;
        machine.run_tile(count)?;
        let root = machine.stage.root;
        let trouble = machine.tiles[root].trouble();
        if origin_nodes.is_none() && (trouble.vanishing | trouble.overflow) != 0 {
            let start = |lanes: u128, kind| match lanes {
                0 => root,
                _ => origin(machine, kind, lanes.trailing_zeros()),
            };
            let vanishing = start(trouble.vanishing, Kind::Vanishing);
            *origin_nodes = Some((vanishing, start(trouble.overflow, Kind::Overflow)));
        }
        machine.domain.add(sum, machine.position, &machine.tiles, count);
        done += count;
    }
    Ok(())
}
