//! Gate 1's inputs: NaN and infinities at known places of finite data.

use std::collections::BTreeSet;

use assay_num::Format;
use assay_num::random::SplitMix64;

use crate::{Inputs, ReduceOperation};

use super::layout::{Layout, Line, TensorLayout, critical_places};
use super::{scan, values};

/// What is planted along one line of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Plant {
    /// A short name for case names and reports, `nan@0`.
    pub name: String,
    /// The runs of equal values: first place, one past the last, value.
    pub stretches: Vec<(usize, usize, f64)>,
}

/// One run of gate 1: finite data with plants in one tensor.
#[derive(Clone, Debug)]
pub struct Planted {
    /// The tensor that holds the plants.
    pub tensor: String,
    /// Counted from 0 for each tensor; part of the case's name.
    pub number: usize,
    /// Each plant and the line it lies on.
    pub plants: Vec<(Plant, Line)>,
}

impl Planted {
    /// The part of a case's name that tells this run from the others.
    pub fn name(&self) -> String {
        format!("plants-{}-{}", self.tensor, self.number)
    }

    /// `base` with every plant in place, each value replaced by what `change` makes of it.
    pub fn apply(&self, base: &Inputs, change: impl Fn(f64) -> f64) -> Inputs {
        let mut inputs = base.clone();
        if let Some(values) = inputs.tensors.get_mut(&self.tensor) {
            for (plant, line) in &self.plants {
                for (from, to, value) in &plant.stretches {
                    (*from..*to).for_each(|place| values[line.at(place)] = change(*value));
                }
            }
        }
        inputs
    }
}

/// Finite data that plants are put into: magnitudes near 1, never 0.
pub fn base(layout: &Layout, random: &mut SplitMix64) -> Inputs {
    let mut inputs = layout.zeros();
    for tensor in layout.filled() {
        let mut random = random.fork(&tensor.name);
        if let Some(elements) = inputs.tensors.get_mut(&tensor.name) {
            elements.fill_with(|| values::ordinary(tensor.format, &mut random));
        }
    }
    scan::calm(layout, &mut inputs);
    // A state that sums data of both signs may lie near 0, where an infinity's sign is uncertain.
    let scans = layout.reductions.iter().any(|r| r.operation == ReduceOperation::Scan);
    if scans { positive(inputs, layout) } else { inputs }
}

/// The same data with every element positive; zeros become 1.
pub fn positive(mut base: Inputs, layout: &Layout) -> Inputs {
    for tensor in layout.filled() {
        if let Some(elements) = base.tensors.get_mut(&tensor.name) {
            let positive = |value: f64| if value == 0.0 { 1.0 } else { value.abs() };
            for element in elements {
                *element = positive(*element);
            }
        }
    }
    base
}

/// The same data with every element moved by up to one part in 32: what a class depends on must
/// survive this.
pub fn neighbour(base: &Inputs, layout: &Layout, random: &mut SplitMix64) -> Inputs {
    let mut inputs = base.clone();
    for tensor in layout.filled().filter(|tensor| tensor.format.is_float()) {
        if let Some(elements) = inputs.tensors.get_mut(&tensor.name) {
            for element in elements {
                let moved = *element * (1.0 + random.range(-1.0, 1.0) / 32.0);
                *element = values::nearest(tensor.format, moved);
            }
        }
    }
    inputs
}

/// Every run of gate 1 at one shape. Each input is planted by itself; rows hold one plant each and
/// some rows stay finite; a tensor that all rows share and a reduction walks holds one plant a
/// run, since one plant reaches every output.
pub fn runs(layout: &Layout, random: &mut SplitMix64) -> Vec<Planted> {
    layout.filled().flat_map(|tensor| tensor_runs(tensor, random)).collect()
}

fn tensor_runs(tensor: &TensorLayout, random: &mut SplitMix64) -> Vec<Planted> {
    let lines = tensor.main_lines();
    let length = lines.first().map_or(0, |line| line.length);
    let tile = tensor.main_axis().and_then(|axis| tensor.tiles[axis]);
    let plants: Vec<Plant> = plants(length, tile, tensor.is_walked())
        .into_iter()
        .filter(|plant| plant.stretches.iter().all(|(_, _, value)| holds(tensor.format, *value)))
        .collect();
    let placed = if lines.iter().any(|line| line.row.is_some()) {
        over_rows(&plants, &lines, random)
    } else if tensor.is_walked() {
        let alone = |plant| vec![(plant, lines[random.below(lines.len() as u64) as usize])];
        plants.into_iter().map(alone).collect()
    } else {
        along_lines(plants, &lines)
    };
    let named = |(number, plants)| Planted { tensor: tensor.name.clone(), number, plants };
    placed.into_iter().enumerate().map(named).collect()
}

type Placed = Vec<(Plant, Line)>;

/// A plant to a row, in random order, with a quarter of the rows (at least one of several) finite.
fn over_rows(plants: &[Plant], lines: &[Line], random: &mut SplitMix64) -> Vec<Placed> {
    let rows: BTreeSet<usize> = lines.iter().filter_map(|line| line.row).collect();
    let capacity = (rows.len() - rows.len().div_ceil(4)).max(1);
    let mut placed = Vec::new();
    for group in plants.chunks(capacity) {
        let mut order = lines.to_vec();
        random.shuffle(&mut order);
        // The first and the last row are where kernels lose rows, so they take turns to be planted.
        let edge = if placed.len() % 2 == 0 { lines[0] } else { lines[lines.len() - 1] };
        order.insert(0, edge);
        let mut seen = BTreeSet::new();
        order.retain(|line| seen.insert(line.row));
        placed.push(group.iter().cloned().zip(order).collect());
    }
    placed
}

/// Elements of a tensor that nothing walks reach different outputs: one run takes a plant at every
/// place, and the kinds change places from run to run.
fn along_lines(plants: Vec<Plant>, lines: &[Line]) -> Vec<Placed> {
    let mut runs: Vec<Placed> = Vec::new();
    for plant in plants {
        let (from, to, _) = plant.stretches[0];
        let is_free = |run: &&mut Placed| {
            let taken = |other: &Plant| other.stretches[0].0 < to && from < other.stretches[0].1;
            run.iter().all(|(other, _)| !taken(other))
        };
        let planted = lines.iter().map(|line| (plant.clone(), *line));
        match runs.iter_mut().find(is_free) {
            Some(run) => run.extend(planted),
            None => runs.push(planted.collect()),
        }
    }
    runs
}

const KINDS: [(&str, f64); 3] =
    [("nan", f64::NAN), ("+inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY)];

/// The plants of a line: every kind at every critical place; on a walked line also both infinities
/// and stretches of infinities, as masks and empty tiles make them.
fn plants(length: usize, tile: Option<usize>, walked: bool) -> Vec<Plant> {
    let places = critical_places(length, tile);
    let mut plants = Vec::new();
    for (turn, place) in places.iter().enumerate() {
        for step in 0..KINDS.len() {
            let (kind, value) = KINDS[(turn + step) % KINDS.len()];
            let stretches = vec![(*place, place + 1, value)];
            plants.push(Plant { name: format!("{kind}@{place}"), stretches });
        }
    }
    if walked && length > 1 {
        plants.extend(pairs(&places));
        plants.extend(stretches(length, tile));
    }
    plants
}

/// Both infinities on one line, in both orders.
fn pairs(places: &[usize]) -> Vec<Plant> {
    let (first, last) = (places[0], places[places.len() - 1]);
    let middle = places[places.len() / 2];
    let pair = |a: usize, b: usize| Plant {
        name: format!("+inf@{a} -inf@{b}"),
        stretches: vec![(a, a + 1, f64::INFINITY), (b, b + 1, f64::NEG_INFINITY)],
    };
    let mut pairs = vec![pair(first, last)];
    if middle != first {
        pairs.push(pair(middle, first));
    }
    pairs
}

/// A first tile of -Inf, all but the last, all but the first, and whole lines of an infinity.
fn stretches(length: usize, tile: Option<usize>) -> Vec<Plant> {
    let low = f64::NEG_INFINITY;
    let mut spans = vec![(0, length - 1, low), (1, length, low), (0, length, low)];
    spans.push((0, length, f64::INFINITY));
    if let Some(tile) = tile.filter(|tile| *tile + 1 < length) {
        spans.insert(0, (0, tile, low));
    }
    let name = |value: f64| if value > 0.0 { "+inf" } else { "-inf" };
    spans
        .into_iter()
        .map(|(from, to, value)| Plant {
            name: format!("{}@{from}..{to}", name(value)),
            stretches: vec![(from, to, value)],
        })
        .collect()
}

fn holds(format: Format, value: f64) -> bool {
    if value.is_nan() { format.has_nan() } else { format.has_infinity() }
}
