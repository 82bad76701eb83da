//! Gate 3's inputs: rows of several styles, each of which some broken kernel cannot stand, and
//! single terms made loud enough that losing one shows.

use assay_num::Format;
use assay_num::random::SplitMix64;

use crate::{Inputs, ReduceOperation};

use super::expression::Scope;
use super::layout::{Layout, Line, ReductionLayout, TensorLayout};
use super::steer::{raise, write};
use super::term::Term;
use super::{scan, values};

/// What the values of one row are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Magnitudes in [0.5, 2), signs at random.
    Ordinary,
    /// Exponents over a wide range.
    Wide,
    /// Every value under -110: exponentials relative to 0 vanish, a maximum that starts at 0 shows.
    Low,
    /// Values so small that the variance is near eps, which shows an eps outside the root.
    Tiny,
    /// A mean of over 300 deviations, which shows a variance taken in one pass.
    Offset,
    /// In place of `Wide`, where its values overflow: exponents from -5 to 5.
    Moderate,
    /// In place of `Low`, where its values overflow: from -80 to -40.
    Sunken,
    /// As `Tiny`, in every input of a sum that takes several in some other way than as factors:
    /// what they add up to is small only where all of them are.
    TinyTogether,
}

impl Style {
    /// The styles every formula is tried with, in the order rows take them.
    pub const TRIED: [Style; 5] =
        [Style::Ordinary, Style::Wide, Style::Low, Style::Tiny, Style::Offset];

    /// The style's name in notes.
    pub fn name(self) -> &'static str {
        match self {
            Style::Ordinary => "ordinary",
            Style::Wide => "wide",
            Style::Low => "low",
            Style::Tiny => "tiny",
            Style::Offset => "offset",
            Style::Moderate => "moderate",
            Style::Sunken => "sunken",
            Style::TinyTogether => "tiny together",
        }
    }

    /// What to try where a formula has no bound on values of this style.
    pub fn milder(self) -> Option<Style> {
        match self {
            Style::Wide => Some(Style::Moderate),
            Style::Low => Some(Style::Sunken),
            _ => None,
        }
    }

    /// True if every input with rows takes the style, and not the first alone.
    fn spreads(self) -> bool {
        matches!(self, Style::Wide | Style::Moderate)
    }

    /// True if the format has values of this style.
    fn fits(self, format: Format) -> bool {
        match self {
            Style::Ordinary | Style::Wide | Style::Moderate => true,
            Style::Low | Style::Sunken | Style::Tiny | Style::TinyTogether => {
                format.is_float() && format.max_finite() >= 240.0 && format.min_finite() < 0.0
            }
            // Steps at the mean must be finer than the deviation.
            Style::Offset => format.is_float() && format.significand_bits() >= 8,
        }
    }
}

/// A term of a reduction made loud in one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loud {
    /// The reduction's place in [`Layout::reductions`].
    pub reduction: usize,
    /// The term, counted from the reduction's first.
    pub term: usize,
    /// How loud, from 0 (as it is) up to [`LOUDEST`].
    pub level: u32,
    /// True if the term is made large and negative.
    pub negative: bool,
}

/// Levels at which a term is made loud along a line of its tensor.
const LINE_LEVELS: u32 = 3;
/// The largest [`Loud::level`].
pub const LOUDEST: u32 = 9;

/// The styles that the first row-wise input can have; `Style::Ordinary` is always among them.
pub fn styles(layout: &Layout) -> Vec<Style> {
    let format = shaped_tensor(layout).map_or(Format::F32, |tensor| tensor.format);
    let together = (!taken_together(layout).is_empty()).then_some(Style::TinyTogether);
    Style::TRIED.into_iter().chain(together).filter(|style| style.fits(format)).collect()
}

/// The magnitude that [`Style::Tiny`] is around: the root of the smallest positive scalar, which
/// is where a formula's eps matters.
pub fn tiny_scale(scalars: impl IntoIterator<Item = f64>) -> f64 {
    let smallest = scalars.into_iter().filter(|scalar| *scalar > 0.0).fold(1e-2, f64::min);
    smallest.sqrt()
}

/// Builds the inputs of one run; row r takes `styles[r]`, rows past the end are ordinary. `tiny` is
/// [`tiny_scale`].
pub fn build(layout: &Layout, styles: &[Style], tiny: f64, random: &mut SplitMix64) -> Inputs {
    let mut inputs = layout.zeros();
    let shaped = shaped_tensor(layout).map(|tensor| tensor.name.clone());
    let together = taken_together(layout);
    for tensor in layout.filled() {
        let mut random = random.fork(&tensor.name);
        let Some(elements) = inputs.tensors.get_mut(&tensor.name) else { continue };
        let is_shaped = shaped.as_ref() == Some(&tensor.name);
        for line in row_lines(tensor) {
            let style = line.row.and_then(|row| styles.get(row)).copied();
            let joins = |style: Style| match style {
                Style::TinyTogether => together.contains(&tensor.name),
                style => style.spreads(),
            };
            let style = style.filter(|style| is_shaped || joins(*style));
            let kind = (tensor.format, style.unwrap_or(Style::Ordinary), tiny);
            fill_line(elements, line, kind, &mut random);
        }
    }
    scan::calm(layout, &mut inputs);
    inputs
}

/// The first input that has rows, else the first: the one that styles are about.
fn shaped_tensor(layout: &Layout) -> Option<&TensorLayout> {
    layout.filled().find(|tensor| tensor.row_axis.is_some()).or(layout.filled().next())
}

/// The inputs with rows of every sum that takes the first of them together with others, neither
/// squared nor multiplied.
fn taken_together(layout: &Layout) -> Vec<String> {
    let Some(shaped) = shaped_tensor(layout) else { return Vec::new() };
    let has_rows = |name: &&String| layout.tensor(name).is_some_and(|t| t.row_axis.is_some());
    let together = layout.reductions.iter().filter_map(|reduction| match &reduction.term {
        Term::Other(names) if names.len() > 1 && names.contains(&shaped.name) => Some(names),
        _ => None,
    });
    together.flatten().filter(has_rows).cloned().collect()
}

/// Lines that each lie in one row; single elements where the tensor's only axis is the rows'.
fn row_lines(tensor: &TensorLayout) -> Vec<Line> {
    if tensor.main_axis().is_some() && tensor.main_axis() == tensor.row_axis {
        let count = tensor.count();
        let alone = |start| Line { start, stride: 1, length: 1, row: Some(start) };
        return (0..count).map(alone).collect();
    }
    tensor.main_lines()
}

fn fill_line(
    elements: &mut [f64],
    line: Line,
    (format, style, tiny): (Format, Style, f64),
    random: &mut SplitMix64,
) {
    let mean = values::sign(random) * random.range(600.0, 1000.0).min(format.max_finite() / 4.0);
    for place in 0..line.length {
        elements[line.at(place)] = match style {
            Style::Ordinary => values::ordinary(format, random),
            Style::Wide => values::wide(format, random),
            Style::Moderate => values::moderate(format, random),
            Style::Sunken => values::nearest(format, -random.range(40.0, 80.0)),
            Style::Low => values::nearest(format, -random.range(112.0, 200.0)),
            Style::Tiny | Style::TinyTogether => {
                values::nearest(format, tiny * random.range(-1.5, 1.5))
            }
            Style::Offset => values::nearest(format, mean + mean / 500.0 * random.normal()),
        };
    }
}

/// An element that was changed, and what it held before.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    tensor: String,
    flat: usize,
    before: f64,
}

/// Makes a term of row `row` loud, in the first tensor of the term that has rows (in every row, if
/// none has). The answer undoes it.
pub fn make_loud(layout: &Layout, inputs: &mut Inputs, row: usize, loud: &Loud) -> Vec<Changed> {
    let mut changed = Vec::new();
    let Some(reduction) = layout.reductions.get(loud.reduction) else { return changed };
    let by_lines = if reduction.is_steered() { 0 } else { LINE_LEVELS };
    if loud.level > by_lines {
        return make_steered(layout, reduction, inputs, (row, loud, loud.level - by_lines - 1));
    }
    let names = reduction.term.tensors();
    let has_rows = |name: &&&str| layout.tensor(name).is_some_and(|t| t.row_axis.is_some());
    let Some(name) = names.iter().find(has_rows).or(names.first()) else { return changed };
    let read = reduction.reads.iter().find(|(tensor, _)| tensor == name);
    let (Some((_, axis)), Some(tensor)) = (read, layout.tensor(name)) else { return changed };
    let Some(elements) = inputs.tensors.get_mut(*name) else { return changed };
    let lines = tensor.lines(*axis).into_iter();
    for line in lines.filter(|line| line.row.is_none() || line.row == Some(row)) {
        let place = reduction.step(name).element(reduction.from + loud.term);
        if place < line.length {
            let flat = line.at(place);
            let value = louder(elements, line, flat, (tensor.format, reduction, loud));
            let before = std::mem::replace(&mut elements[flat], value);
            changed.push(Changed { tensor: (*name).to_owned(), flat, before });
        }
    }
    changed
}

/// Makes a term loud in each element it follows from in turn, three levels to an element.
fn make_steered(
    layout: &Layout,
    reduction: &ReductionLayout,
    inputs: &mut Inputs,
    (row, loud, step): (usize, &Loud, u32),
) -> Vec<Changed> {
    let Some(steering) = reduction.steering.as_ref() else { return Vec::new() };
    let Some(handle) = steering.handles.get(step as usize / 3) else { return Vec::new() };
    let tensors = steering.tensors(&layout.tensors);
    let Some(tensor) = tensors[handle.address.input] else { return Vec::new() };
    let places = {
        let scope = Scope { tensors: &tensors, inputs: None };
        steering.places_in_row(&scope, &handle.address, (row, loud.term))
    };
    let side = if loud.negative { -1.0 } else { 1.0 };
    let mut changed: Vec<Changed> = Vec::new();
    for variables in places {
        let scope = Scope { tensors: &tensors, inputs: Some(inputs) };
        let mut changes = raise(&scope, steering, handle, (&variables, step % 3 + 1, side));
        changes.retain(|(flat, _)| changed.iter().all(|other| other.flat != *flat));
        for (flat, before) in write(inputs, tensor, changes) {
            changed.push(Changed { tensor: tensor.name.clone(), flat, before });
        }
    }
    changed
}

/// Takes back what [`make_loud`] did.
pub fn undo(inputs: &mut Inputs, changed: &[Changed]) {
    for change in changed {
        if let Some(elements) = inputs.tensors.get_mut(&change.tensor) {
            elements[change.flat] = change.before;
        }
    }
}

fn louder(
    elements: &[f64],
    line: Line,
    flat: usize,
    (format, reduction, loud): (Format, &ReductionLayout, &Loud),
) -> f64 {
    let side = if loud.negative { -1.0 } else { 1.0 };
    let others = (0..line.length).map(|place| line.at(place)).filter(|other| *other != flat);
    let extreme = others.map(|other| elements[other] * side).fold(f64::NEG_INFINITY, f64::max);
    let extreme = if extreme.is_finite() { extreme } else { 0.0 };
    let is_shift = matches!(reduction.term, Term::Exponential(_))
        || matches!(reduction.operation, ReduceOperation::Max | ReduceOperation::Min);
    let value = match (is_shift, loud.level) {
        (_, 0) => elements[flat],
        (true, 1) => side * (extreme + 4.0),
        // Past the 88.7 at which fp32 exponentials overflow: losing such a maximum shows there.
        (true, 2) => side * (extreme + 110.0),
        (true, _) => side * (extreme + 200.0),
        (false, level) => side * elements[flat].abs() * 16f64.powi(level as i32),
    };
    values::nearest(format, value)
}
