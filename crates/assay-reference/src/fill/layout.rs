//! How a kernel's tensors lie at one shape: which axis follows the first output axis (its rows),
//! which axes reductions walk, where tiles end.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_num::Format;
use assay_num::random::SplitMix64;

use crate::{Dims, Extent, Inputs, Limits, Program, ReduceOperation, Signature};

use super::FillError;
use super::expression::Scope;
use super::steer::Steering;
use super::term::{Step, Term};

/// The tensors and reductions of one kernel at one shape.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Every input, in the signature's order.
    pub tensors: Vec<TensorLayout>,
    /// Every reduction, in the formula's order.
    pub reductions: Vec<ReductionLayout>,
    /// The extent of the first output's first axis; 1 for an output without axes.
    pub rows: usize,
}

/// One input at one shape.
#[derive(Clone, Debug)]
pub struct TensorLayout {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: Format,
    /// Elements along each axis.
    pub shape: Vec<usize>,
    /// The axis that follows the rows of the first output, if one does.
    pub row_axis: Option<usize>,
    /// The axes that reductions walk, ascending.
    pub walked: Vec<usize>,
    /// Along each axis, how far tiles reach; `None` where the kernel has no tile.
    pub tiles: Vec<Option<usize>>,
    /// What finite data is multiplied by, so that the states of scans stay finite; 1 for tensors
    /// that no carry is multiplied by.
    pub scale: f64,
    /// The value that every element takes in fills of exact sums that do not shape the tensor.
    pub exact: Option<f64>,
    /// The elements, where the caller promises a range: no fill writes others.
    pub indices: Option<Vec<f64>>,
}

/// One reduction at one shape.
#[derive(Clone, Debug)]
pub struct ReductionLayout {
    /// The name that depths and drops use.
    pub name: String,
    /// Sum, max, min or product.
    pub operation: ReduceOperation,
    /// The index of its first term.
    pub from: usize,
    /// Terms it takes; the most, where that depends on another index.
    pub terms: usize,
    /// Whether its bounds depend on another index.
    pub bounds_vary: bool,
    /// How far a tile reaches along the reduced index.
    pub tile: Option<usize>,
    /// What the terms are made of.
    pub term: Term,
    /// What the terms of a reduction that reads a scan are made of while its state stays what it
    /// started from.
    pub still: Option<Term>,
    /// The inputs it walks, with the axis walked.
    pub reads: Vec<(String, usize)>,
    /// The terms written out, where they can be.
    pub(super) steering: Option<Arc<Steering>>,
    /// The steps along the axis of each input it walks.
    pub steps: Vec<(String, Step)>,
}

/// Elements of a tensor along one axis, all other indices held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The flat index of its first element.
    pub start: usize,
    /// The distance between neighbours.
    pub stride: usize,
    /// Its elements.
    pub length: usize,
    /// The row it belongs to; `None` if it is shared by all rows or crosses them.
    pub row: Option<usize>,
}

impl Line {
    /// The flat index of element `place` along the line.
    pub fn at(&self, place: usize) -> usize {
        debug_assert!(place < self.length, "element {place} of a line of {}", self.length);
        self.start + place * self.stride
    }
}

impl Layout {
    /// The input called `name`.
    pub fn tensor(&self, name: &str) -> Option<&TensorLayout> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Inputs of zeros, in every tensor's shape; tensors with a promised range hold their indices.
    pub fn zeros(&self) -> Inputs {
        let zeros = |tensor: &TensorLayout| {
            let indices = tensor.indices.clone();
            (tensor.name.clone(), indices.unwrap_or_else(|| vec![0.0; tensor.count()]))
        };
        Inputs { tensors: self.tensors.iter().map(zeros).collect() }
    }

    /// Holds the tensors to what callers promise of them at `dims`: indices follow from `seed`.
    pub fn limit(&mut self, limits: &BTreeMap<String, Limits>, dims: &Dims, seed: u64) {
        let random = SplitMix64::new(seed).fork(&format!("{dims:?}"));
        for tensor in &mut self.tensors {
            let Some(limits) = limits.get(&tensor.name) else { continue };
            tensor.exact = limits.exact;
            let mut random = random.fork(&tensor.name);
            tensor.indices = limits.draw(dims, tensor.count(), &mut random);
        }
    }

    /// Writes the terms of every reduction out, and finds the spans of those whose bounds vary.
    pub(super) fn steer(&mut self, program: &Program, dims: &Dims) {
        for (number, reduction) in self.reductions.iter_mut().enumerate() {
            let stage = program.reduction_of_stage.iter().position(|of| *of == Some(number));
            let steering =
                stage.and_then(|stage| Steering::of(program, dims, stage, &self.tensors));
            let Some(steering) = steering else { continue };
            let tensors = steering.tensors(&self.tensors);
            let span = steering.span(&Scope { tensors: &tensors, inputs: None });
            let span = span.and_then(|(from, terms)| {
                Some((usize::try_from(from).ok()?, usize::try_from(terms).ok()?))
            });
            if let Some((from, terms)) = span.filter(|_| reduction.bounds_vary) {
                (reduction.from, reduction.terms) = (from, terms);
            }
            reduction.steering = Some(Arc::new(steering));
        }
        for reduction in &mut self.reductions {
            // A bound that nothing tells has no terms that a fill could lay out.
            let unknown = reduction.bounds_vary && reduction.terms > MOST_TERMS;
            reduction.terms = if unknown { 0 } else { reduction.terms };
        }
    }

    /// Runs `look` with the terms of a reduction and what their indices are read from.
    pub(super) fn with_steering<T>(
        &self,
        reduction: &ReductionLayout,
        look: impl FnOnce(&Steering, &Scope<'_>) -> T,
    ) -> Option<T> {
        let steering = reduction.steering.as_ref()?;
        let tensors = steering.tensors(&self.tensors);
        Some(look(steering, &Scope { tensors: &tensors, inputs: None }))
    }

    /// The terms of a reduction that kernels lose first, each with the row in which it has to be
    /// lost, where rows take different terms.
    pub fn places(&self, reduction: &ReductionLayout) -> Vec<(usize, Option<usize>)> {
        let found = self.with_steering(reduction, |steering, scope| {
            if !steering.varies {
                let terms = steering.critical(scope, 0, reduction.tile);
                return terms.into_iter().map(|term| (term, None)).collect();
            }
            let rows = [0, 1, 2, self.rows.saturating_sub(1)];
            let mut places = Vec::new();
            for row in rows.into_iter().filter(|row| *row < self.rows.max(1)) {
                let terms = steering.critical(scope, row, reduction.tile);
                places.extend(terms.into_iter().map(|term| (term, Some(row))));
            }
            places.sort_unstable();
            places.dedup();
            places
        });
        let found: Vec<_> = found.unwrap_or_default();
        if !found.is_empty() {
            return found;
        }
        reduction.critical_terms().into_iter().map(|term| (term, None)).collect()
    }

    /// The fewest terms that any reduction takes in a row.
    pub fn fewest_terms(&self, row: usize) -> usize {
        let terms = |reduction: &ReductionLayout| {
            let counted = self.with_steering(reduction, |s, scope| s.terms_in(scope, row));
            counted.unwrap_or(reduction.terms)
        };
        self.reductions.iter().map(terms).min().unwrap_or(0)
    }

    /// True if a term of the reduction is made loud in a tensor that several rows share, so that
    /// each needs a run of its own.
    pub fn is_loud_to_all(&self, reduction: &ReductionLayout) -> bool {
        let has_rows = |name: &str| self.tensor(name).is_some_and(|t| t.row_axis.is_some());
        if reduction.is_steered() {
            let first = |steering: &Steering, _: &Scope<'_>| {
                let handle = steering.handles.first()?;
                Some(!has_rows(&steering.names[handle.address.input]))
            };
            return self.with_steering(reduction, first).flatten().unwrap_or(false);
        }
        let names = reduction.term.tensors();
        !names.is_empty() && !names.into_iter().any(has_rows)
    }

    /// The tensors whose elements fills choose, all but those with a promised range.
    pub fn filled(&self) -> impl Iterator<Item = &TensorLayout> {
        self.tensors.iter().filter(|tensor| tensor.indices.is_none())
    }
}

impl TensorLayout {
    /// The number of its elements.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The distance between neighbours along `axis`, row-major.
    pub fn stride(&self, axis: usize) -> usize {
        self.shape[axis + 1..].iter().product()
    }

    /// The axis that a fill shapes the tensor along: the first that a reduction walks, else the
    /// last that is not the row axis, else the last.
    pub fn main_axis(&self) -> Option<usize> {
        let free = (0..self.shape.len()).rev().find(|axis| Some(*axis) != self.row_axis);
        self.walked.first().copied().or(free).or(self.shape.len().checked_sub(1))
    }

    /// Every line along `axis`, in row-major order of the other indices.
    pub fn lines(&self, axis: usize) -> Vec<Line> {
        let (stride, length) = (self.stride(axis), self.shape[axis]);
        let outer: usize = self.shape[..axis].iter().product();
        let starts = (0..outer).flat_map(|high| (0..stride).map(move |low| (high, low)));
        starts
            .map(|(high, low)| {
                let start = high * length * stride + low;
                Line { start, stride, length, row: self.row_of(axis, start) }
            })
            .collect()
    }

    /// The lines along [`TensorLayout::main_axis`]; one line of one element for a scalar.
    pub fn main_lines(&self) -> Vec<Line> {
        match self.main_axis() {
            Some(axis) => self.lines(axis),
            None => vec![Line { start: 0, stride: 1, length: self.count(), row: None }],
        }
    }

    /// True if some reduction walks the tensor.
    pub fn is_walked(&self) -> bool {
        !self.walked.is_empty()
    }

    /// The index along each axis of the element at `flat`.
    pub fn element(&self, flat: usize) -> Vec<i64> {
        (0..self.shape.len())
            .map(|axis| ((flat / self.stride(axis)) % self.shape[axis].max(1)) as i64)
            .collect()
    }

    fn row_of(&self, axis: usize, flat: usize) -> Option<usize> {
        let row_axis = self.row_axis.filter(|row_axis| *row_axis != axis)?;
        Some((flat / self.stride(row_axis)) % self.shape[row_axis])
    }
}

/// The most terms of a sum that a fill lays out.
const MOST_TERMS: usize = 1 << 31;

impl ReductionLayout {
    /// True if the terms are laid out by what they were written out to, because lines of one tensor
    /// do not tell: they are not understood otherwise, or differ from row to row.
    pub(super) fn is_steered(&self) -> bool {
        let unknown = matches!(self.term, Term::Other(_));
        self.steering.as_ref().is_some_and(|steering| unknown || steering.varies)
    }

    /// What the terms are made of, as gate 4 shapes them.
    pub(super) fn shaped_term(&self) -> Term {
        let steering = self.steering.as_ref().filter(|_| self.is_steered());
        let planned = steering.and_then(|s| Some(s.plan.as_ref()?.term(&s.names)));
        planned.unwrap_or_else(|| self.term.clone())
    }

    /// The steps from term to term along the axis of `tensor` that is walked.
    pub fn step(&self, tensor: &str) -> Step {
        let read = self.steps.iter().find(|(name, _)| name == tensor);
        read.map_or(Step::ONE, |(_, step)| *step)
    }

    /// The terms that a kernel is likeliest to lose: the first, the last, and both sides of every
    /// tile's edge; of many edges, those of the first two tiles and the last.
    /// Only the first, where the number of terms depends on another index.
    pub fn critical_terms(&self) -> Vec<usize> {
        if self.bounds_vary {
            return vec![0];
        }
        critical_places(self.terms, self.tile)
    }
}

/// The first place, the last, and both sides of the tile edges of an axis of `length` elements,
/// ascending. Of more than four edges, the first two and the last two are kept.
pub fn critical_places(length: usize, tile: Option<usize>) -> Vec<usize> {
    let Some(last) = length.checked_sub(1) else { return Vec::new() };
    let tile = tile.filter(|tile| *tile > 0).unwrap_or(length);
    let mut edges: Vec<usize> = (1..=last / tile).map(|count| count * tile).collect();
    if edges.len() > 4 {
        edges.drain(2..edges.len() - 2);
    }
    let sides = edges.into_iter().flat_map(|edge| [edge - 1, edge]);
    let mut places: Vec<usize> = sides.chain([0, last]).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// The tile along an axis of extent `extent`: how much the extent grows when a tiled dimension
/// goes from one tile to two. `None` if no tiled dimension reaches it.
pub(super) fn tile_of(
    extent: &Extent,
    dims: &Dims,
    tiles: &BTreeMap<String, i64>,
) -> Option<usize> {
    let at = |name: &String, size: i64| {
        let mut other = dims.clone();
        other.insert(name.clone(), size);
        extent.eval(&other).ok()
    };
    tiles.iter().find_map(|(name, tile)| {
        let growth = at(name, 2 * tile)? - at(name, *tile)?;
        usize::try_from(growth).ok().filter(|growth| *growth > 0)
    })
}

/// Lays out the inputs of `signature`; `walked` names each reduced (tensor, axis).
pub(super) fn tensors(
    signature: &Signature,
    dims: &Dims,
    tiles: &BTreeMap<String, i64>,
    walked: &[(String, usize)],
) -> Result<Vec<TensorLayout>, FillError> {
    let rows = signature.outputs.first().and_then(|output| output.shape.first());
    let mut layouts = Vec::new();
    for tensor in &signature.inputs {
        let axes = walked.iter().filter(|(name, _)| *name == tensor.name).map(|(_, axis)| *axis);
        let mut axes: Vec<usize> = axes.collect();
        axes.sort_unstable();
        axes.dedup();
        let is_row = |axis: &usize| {
            let same = rows.is_some_and(|rows| rows.text() == tensor.shape[*axis].text());
            same && !axes.contains(axis)
        };
        layouts.push(TensorLayout {
            name: tensor.name.clone(),
            format: tensor.format,
            shape: shape(&tensor.name, &tensor.shape, dims)?,
            row_axis: (0..tensor.shape.len()).find(is_row),
            walked: axes,
            tiles: tensor.shape.iter().map(|extent| tile_of(extent, dims, tiles)).collect(),
            scale: 1.0,
            exact: None,
            indices: None,
        });
    }
    Ok(layouts)
}

fn shape(name: &str, extents: &[Extent], dims: &Dims) -> Result<Vec<usize>, FillError> {
    let size = |extent: &Extent| extent.eval(dims).ok().and_then(|size| usize::try_from(size).ok());
    extents
        .iter()
        .map(size)
        .collect::<Option<Vec<usize>>>()
        .ok_or_else(|| FillError::Shape { tensor: name.to_owned(), dims: dims.clone() })
}

/// Elements along the first axis of the first output.
pub(super) fn rows(signature: &Signature, dims: &Dims) -> usize {
    let first = signature.outputs.first().and_then(|output| output.shape.first());
    let rows = first.and_then(|extent| extent.eval(dims).ok());
    rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or(1)
}
