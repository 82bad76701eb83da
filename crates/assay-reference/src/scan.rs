//! Runs scans: each element follows from the one before it along an axis, so that axis is walked
//! in order, while tiles hold neighbours along another one.

use std::ops::Range;

use crate::error::EvaluationError;
use crate::machine::Machine;
use crate::plan::StageScan;
use crate::run::{Problems, note_trouble};
use crate::tile::{Domain, Out, TILE, Tile};

/// Neighbours along the last axis that make a tile worth its overhead.
const ENOUGH_LANES: i64 = 12;

/// The axis that a scan's tiles run along: the last one beside the scanned, unless that is short
/// and another is longer. The scanned axis itself where there is no other.
pub(crate) fn lane_axis(region: &[Range<i64>], scanned: usize) -> usize {
    let extent = |axis: &usize| region[*axis].end - region[*axis].start;
    let others = || (0..region.len()).filter(|axis| *axis != scanned);
    let Some(last) = others().next_back() else { return scanned };
    if extent(&last) >= ENOUGH_LANES {
        return last;
    }
    others().max_by_key(extent).unwrap_or(last)
}

/// How many neighbouring elements must be computed together: whole walks of whole lines of lanes.
pub(crate) fn block(region: &[Range<i64>], scan: &StageScan) -> usize {
    let outermost = scan.axis.min(lane_axis(region, scan.axis));
    extents(&region[outermost..]).product::<usize>().max(1)
}

fn extents(region: &[Range<i64>]) -> impl Iterator<Item = usize> + '_ {
    region.iter().map(|range| (range.end - range.start).max(0) as usize)
}

/// Where the lanes and steps of a scan lie in its results.
struct Walk {
    /// From one step to the next, and from one lane to the next.
    step_stride: usize,
    lane_stride: usize,
    steps: usize,
    lanes: usize,
    /// Elements of a block, and the extent and stride of each axis in it that is neither walked
    /// nor along the lanes, innermost first.
    block: usize,
    rest: Vec<(usize, usize)>,
}

impl Walk {
    fn new(region: &[Range<i64>], scan: &StageScan, along: usize) -> Self {
        let sizes: Vec<usize> = extents(region).collect();
        let stride = |axis: usize| sizes[axis + 1..].iter().product();
        // Without another axis there is one lane.
        let lanes = if along == scan.axis { 1 } else { sizes[along] };
        let inside = (scan.axis.min(along)..sizes.len()).rev();
        let rest = inside.filter(|axis| *axis != scan.axis && *axis != along);
        Self {
            step_stride: stride(scan.axis),
            lane_stride: stride(along),
            steps: sizes[scan.axis],
            lanes,
            block: block(region, scan),
            rest: rest.map(|axis| (sizes[axis], stride(axis))).collect(),
        }
    }

    /// The first element of line number `number`, counted from the start of the chunk.
    fn start(&self, number: usize) -> usize {
        let lines = self.rest.iter().map(|(extent, _)| extent).product::<usize>().max(1);
        let mut inside = number % lines;
        let mut start = number / lines * self.block;
        for (extent, stride) in &self.rest {
            start += inside % extent * stride;
            inside /= extent;
        }
        start
    }
}

/// Computes the elements of `out`, the first of which is number `first` of the region. Both ends
/// lie between blocks.
pub(crate) fn scan_chunk<D: Domain>(
    machine: &mut Machine<'_, D>,
    (scan, first): (&StageScan, usize),
    out: &mut Out<'_>,
) -> Result<Problems, EvaluationError> {
    let mut problems = Problems::default();
    let walk = Walk::new(&machine.own.region, scan, machine.along);
    let lines = out.value.len() / (walk.steps * walk.lanes).max(1);
    for start in (0..lines).map(|line| walk.start(line)) {
        let mut lane = 0;
        while lane < walk.lanes {
            let count = TILE.min(walk.lanes - lane);
            let at = start + lane * walk.lane_stride;
            scan_tile(machine, (scan, &walk), (first, at, count), (out, &mut problems))?;
            lane += count;
        }
    }
    Ok(problems)
}

/// Walks all steps of `count` lanes, the first of which starts at `at`.
fn scan_tile<D: Domain>(
    machine: &mut Machine<'_, D>,
    (scan, walk): (&StageScan, &Walk),
    (first, at, count): (usize, usize, usize),
    (out, problems): (&mut Out<'_>, &mut Problems),
) -> Result<(), EvaluationError> {
    crate::run::set_variables(machine, first + at);
    let mut rows = Rows::new(D::BOUNDED);
    machine.begin_scan(scan, count)?;
    for step in 0..walk.steps {
        machine.variables[scan.axis] = machine.own.region[scan.axis].start + step as i64;
        // A step that is left out leaves the carry as it is.
        if machine.own.dropped != Some(machine.variables[scan.axis]) {
            machine.begin_run(count)?;
            machine.run_tile(count)?;
            machine.carry(scan, machine.stage.root, count);
        }
        let tile = &machine.tiles[scan.carry];
        let place = at + step * walk.step_stride;
        if walk.lane_stride == 1 {
            machine.domain.store(tile, count, place, out);
        } else {
            machine.domain.store(tile, count, 0, &mut rows.out());
            rows.scatter((place, walk.lane_stride), count, out);
        }
        let trouble = tile.trouble();
        note_trouble(machine, trouble, (first + place, walk.lane_stride), problems);
    }
    Ok(())
}

/// One tile's results, before they are spread over the stage's.
struct Rows {
    value: Vec<f64>,
    error: Vec<f64>,
    inexact: Vec<bool>,
}

impl Rows {
    fn new(bounded: bool) -> Self {
        let errors = if bounded { TILE } else { 0 };
        Self { value: vec![0.0; TILE], error: vec![0.0; errors], inexact: vec![false; errors] }
    }

    fn out(&mut self) -> Out<'_> {
        Out { value: &mut self.value, error: &mut self.error, inexact: &mut self.inexact }
    }

    fn scatter(&self, (at, stride): (usize, usize), count: usize, out: &mut Out<'_>) {
        spread(&self.value, (at, stride), count, out.value);
        spread(&self.error, (at, stride), count, out.error);
        spread(&self.inexact, (at, stride), count, out.inexact);
    }
}

fn spread<T: Copy>(from: &[T], (at, stride): (usize, usize), count: usize, to: &mut [T]) {
    for (lane, value) in from.iter().take(count).enumerate() {
        to[at + lane * stride] = *value;
    }
}
