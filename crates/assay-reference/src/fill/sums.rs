//! Gate 4's inputs: sums that fp32 does exactly in any order, and that f16 and bf16 get wrong.
//!
//! Whole numbers (times a power of two where the format ends early) whose absolute values add up
//! to less than 2^24 leave fp32 nothing to round. Sums of squares and of exponentials get terms
//! that vanish beside the first one an accumulator takes.

use assay_num::Format;
use assay_num::random::SplitMix64;

use crate::{Inputs, Order, ReduceOperation};

use super::layout::{Layout, Line, ReductionLayout, TensorLayout};
use super::order::{first_places, order_name};
use super::term::{Step, Term};
use super::{scan, steered, ties, values};

/// How the terms of one sum are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// The second half of a line is the first, reflected and negated.
    Reflected,
    /// Pairs of a number and its negative in random order, and one number from 1 to 8.
    Pairs,
    /// One large square, over f16's range, among small ones.
    OneLarge,
    /// A large square first in every accumulator of an order; the others vanish beside it in bf16.
    LargeFirst(Order),
    /// An exponential of 0 first in every accumulator of an order; the others vanish beside it in
    /// the format.
    ZeroFirst(Order, Format),
    /// Of a scan: a state that one in the format never leaves.
    Stuck(Format),
}

impl Recipe {
    /// The part of a case's name that tells this fill from the others.
    pub fn name(&self) -> String {
        match self {
            Recipe::Reflected => "reflected".to_owned(),
            Recipe::Pairs => "pairs".to_owned(),
            Recipe::OneLarge => "one-large".to_owned(),
            Recipe::LargeFirst(order) => format!("large-first-{}", order_name(order)),
            Recipe::ZeroFirst(order, format) => {
                format!("zero-first-{}-{}", order_name(order), format.name())
            }
            Recipe::Stuck(format) => format!("stuck-{}", format.name()),
        }
    }
}

/// The fills that together show the accumulator of a sum or the state of a scan, over the orders a
/// sum is replayed in; empty for other reductions.
pub fn recipes(reduction: &ReductionLayout, orders: &[Order]) -> Vec<Recipe> {
    if reduction.operation == ReduceOperation::Scan {
        return [Format::F16, Format::Bf16].map(Recipe::Stuck).into();
    }
    if reduction.operation != ReduceOperation::Sum {
        return Vec::new();
    }
    let each = |recipe: &dyn Fn(&Order) -> Recipe| orders.iter().map(recipe).collect::<Vec<_>>();
    match &reduction.shaped_term() {
        Term::Linear(_) | Term::Product(_) | Term::Other(_) => {
            vec![Recipe::Reflected, Recipe::Pairs]
        }
        Term::Square(_) | Term::Deviation(_) => {
            let mut recipes = vec![Recipe::OneLarge];
            recipes.extend(each(&|order| Recipe::LargeFirst(*order)));
            recipes
        }
        Term::Exponential(_) => [Format::F16, Format::Bf16]
            .into_iter()
            .flat_map(|format| each(&|order| Recipe::ZeroFirst(*order, format)))
            .collect(),
    }
}

/// Builds a fill for one sum. Inputs that the sum does not take hold 1 and -1, or 1 where the
/// format has no negative numbers.
pub fn build(
    layout: &Layout,
    reduction: &ReductionLayout,
    recipe: &Recipe,
    random: &mut SplitMix64,
) -> Inputs {
    let mut inputs = layout.zeros();
    for tensor in layout.filled() {
        let mut random = random.fork(&tensor.name);
        if let Some(elements) = inputs.tensors.get_mut(&tensor.name) {
            elements.fill_with(|| values::whole(tensor.format, &mut random, 1));
        }
    }
    steered::settle(layout, reduction, &mut inputs);
    if let Recipe::Stuck(format) = recipe {
        scan::stick(layout, reduction, (*format, &mut inputs), random);
        return inputs;
    }
    let still = scan::hold_still(layout, reduction, &mut inputs);
    if still.is_none() && reduction.reads.is_empty() {
        // Terms that are read at what a kernel chose are small where the inputs are.
        return ties::build(layout, random);
    }
    let steers = still.is_none()
        && (reduction.is_steered() || steered::is_wider(layout, reduction, shaped_tensor));
    if steers && steered::steer(layout, reduction, (recipe, &mut inputs), random) {
        return inputs;
    }
    let reduction = still.as_ref().unwrap_or(reduction);
    let Some(shaped) = shaped_tensor(layout, reduction) else { return inputs };
    let factors = factors(layout, reduction, shaped, random);
    for (tensor, pattern) in &factors {
        let step = reduction.step(&tensor.name);
        set_lines(&mut inputs, tensor, reduction, |line| lay(pattern, step, line.length));
    }
    let step = reduction.step(&shaped.name);
    let scale = scale(reduction, shaped);
    let product: Vec<f64> = (0..reduction.terms)
        .map(|place| factors.iter().map(|(_, pattern)| pattern[place]).product::<f64>() * scale)
        .collect();
    let centred = matches!(reduction.term, Term::Deviation(_));
    let mut row = 0;
    set_lines(&mut inputs, shaped, reduction, |line| {
        let mut terms = Terms { format: shaped.format, product: &product, random, row, centred };
        row += 1;
        lay(&terms.line(recipe, reduction.terms), step, line.length)
    });
    inputs
}

/// The tensor whose lines a fill shapes. Best is one with rows, of a format with large numbers of
/// both signs, that holds an element of its own for every term; then any such tensor.
fn shaped_tensor<'a>(layout: &'a Layout, reduction: &ReductionLayout) -> Option<&'a TensorLayout> {
    let tensors = || reduction.term.tensors().into_iter().filter_map(|name| layout.tensor(name));
    let has_rows = |tensor: &&TensorLayout| tensor.row_axis.is_some();
    let is_wide = |tensor: &&TensorLayout| {
        let format = tensor.format;
        let is_own = reduction.step(&tensor.name).terms == 1;
        is_own && format.max_finite() >= 240.0 && format.min_finite() < 0.0
    };
    let best = tensors().find(|tensor| has_rows(tensor) && is_wide(tensor));
    let wide = best.or_else(|| tensors().find(is_wide));
    wide.or_else(|| tensors().find(has_rows)).or_else(|| tensors().next())
}

/// How many times larger than one element a sum that takes its terms may be: a line that holds the
/// terms several times may all be summed, and terms that are sums take several elements each.
fn scale(reduction: &ReductionLayout, shaped: &TensorLayout) -> f64 {
    let step = reduction.step(&shaped.name);
    let read = reduction.reads.iter().find(|(name, _)| *name == shaped.name);
    let length = read.map_or(1, |(_, axis)| shaped.shape[*axis]);
    let copies = (length / (reduction.terms * step.elements).max(1)).max(1);
    let nested = if is_nested(reduction) { 2 * step.elements } else { 1 };
    (copies * nested) as f64
}

/// Whether the terms are themselves made of sums: a step takes several elements, or one for several
/// terms, and the term is no plain product.
fn is_nested(reduction: &ReductionLayout) -> bool {
    let is_other = matches!(reduction.term, Term::Other(_));
    is_other && reduction.steps.iter().any(|(_, step)| *step != Step::ONE)
}

/// The other tensors of a product, each with one pattern along the reduced axis: magnitudes 1 and 2
/// in the first, 1 in the rest, signs at random, symmetric under reflection. All 1 where an element
/// serves several terms, and in terms that are sums, whose parts would cancel.
fn factors<'a>(
    layout: &'a Layout,
    reduction: &ReductionLayout,
    shaped: &TensorLayout,
    random: &mut SplitMix64,
) -> Vec<(&'a TensorLayout, Vec<f64>)> {
    let (Term::Product(names) | Term::Other(names)) = &reduction.term else { return Vec::new() };
    let others = names.iter().filter(|name| **name != shaped.name);
    let tensors = others.filter_map(|name| layout.tensor(name));
    tensors
        .enumerate()
        .map(|(number, tensor)| {
            if is_nested(reduction) || reduction.step(&tensor.name).terms > 1 {
                return (tensor, vec![1.0; reduction.terms]);
            }
            let largest = if number == 0 { 2 } else { 1 };
            (tensor, symmetric(tensor.format, reduction.terms, largest, random))
        })
        .collect()
}

/// Whole numbers of magnitude up to `largest`, symmetric under reflection.
pub(super) fn symmetric(
    format: Format,
    length: usize,
    largest: u64,
    random: &mut SplitMix64,
) -> Vec<f64> {
    let mut pattern = vec![1.0; length];
    for place in 0..length.div_ceil(2) {
        let value = values::whole(format, random, largest);
        pattern[place] = value;
        pattern[length - 1 - place] = value;
    }
    pattern
}

/// Writes every line of `tensor` along the axis that `reduction` walks.
fn set_lines(
    inputs: &mut Inputs,
    tensor: &TensorLayout,
    reduction: &ReductionLayout,
    mut values: impl FnMut(Line) -> Vec<f64>,
) {
    let walked = reduction.reads.iter().find(|(name, _)| *name == tensor.name);
    let axis = walked.map(|(_, axis)| *axis).or(tensor.main_axis());
    let (Some(axis), Some(elements)) = (axis, inputs.tensors.get_mut(&tensor.name)) else {
        return;
    };
    for line in tensor.lines(axis) {
        for (place, value) in values(line).into_iter().enumerate().take(line.length) {
            elements[line.at(place)] = value;
        }
    }
}

/// A line of `length` elements whose terms follow `pattern`, over and over: an axis longer than its
/// reduction (`cols` of which a reduction takes some) still gets values of the same kind.
fn lay(pattern: &[f64], step: Step, length: usize) -> Vec<f64> {
    (0..length).map(|place| pattern[step.term(place) % pattern.len()]).collect()
}

/// The elements that make the terms of one line, which `product` multiplies; `row` counts lines,
/// and a centred line adds up to 0.
pub(super) fn line_of(
    recipe: &Recipe,
    (format, product): (Format, &[f64]),
    (row, centred): (usize, bool),
    random: &mut SplitMix64,
) -> Vec<f64> {
    let mut terms = Terms { format, product, random, row, centred };
    if product.is_empty() { Vec::new() } else { terms.line(recipe, product.len()) }
}

/// Makes the terms of one line.
struct Terms<'a> {
    format: Format,
    /// What the other factors of each term multiply to.
    product: &'a [f64],
    random: &'a mut SplitMix64,
    row: usize,
    /// True if the elements must add up to 0, so that their mean is exact.
    centred: bool,
}

impl Terms<'_> {
    fn line(&mut self, recipe: &Recipe, length: usize) -> Vec<f64> {
        match recipe {
            Recipe::Reflected => self.reflected(length),
            Recipe::Pairs => self.pairs(length),
            Recipe::OneLarge => self.one_large(length),
            Recipe::LargeFirst(order) => self.large_first(length, &first_places(order, length)),
            Recipe::ZeroFirst(order, format) => {
                self.zero_first(length, &first_places(order, length), *format)
            }
            // Scans are shaped elsewhere.
            Recipe::Stuck(_) => vec![1.0; length],
        }
    }

    /// The largest element whose terms' absolute values add up to 2^23, and the power of two that
    /// elements are multiples of: 1 unless the format ends before the largest.
    fn limits(&self, length: usize) -> (f64, f64) {
        let widest = self.product.iter().fold(1.0, |widest: f64, factor| widest.max(factor.abs()));
        let limit = (2f64.powi(23) / (length as f64 * widest)).floor().max(1.0);
        let held = self.format.max_finite() / 2.0;
        let unit = if self.format.is_float() && limit > held {
            2f64.powi(-(limit / held).log2().ceil() as i32)
        } else {
            1.0
        };
        (limit.min(held / unit), unit)
    }

    fn element(&mut self, low: f64, limit: f64) -> f64 {
        let span = (limit - low).max(0.0) as u64 + 1;
        let whole = low.floor() + self.random.below(span) as f64;
        values::nearest(self.format, whole)
    }

    fn reflected(&mut self, length: usize) -> Vec<f64> {
        let (limit, unit) = self.limits(length);
        let mut line = vec![0.0; length];
        let side = values::sign(self.random);
        for place in 0..length / 2 {
            // All terms of the first half have one sign, so that partial sums grow to the middle.
            let sign = side * self.product[place].signum();
            let value = sign * self.element((limit / 2.0).max(1.0), limit) * unit;
            line[place] = value;
            line[length - 1 - place] = -value;
        }
        if length % 2 == 1 {
            line[length / 2] = self.element(1.0, limit.min(4.0)) * unit;
        }
        line
    }

    fn pairs(&mut self, length: usize) -> Vec<f64> {
        let (limit, unit) = self.limits(length);
        let mut line = vec![0.0; length];
        let mut places: Vec<usize> = (0..length).collect();
        self.random.shuffle(&mut places);
        let alone = places.iter().position(|place| self.product[*place].abs() == 1.0);
        let alone = places.swap_remove(alone.unwrap_or(0));
        let number =
            if self.row.is_multiple_of(2) { 1.0 } else { self.element(1.0, limit.min(8.0)) };
        line[alone] = number * unit;
        for pair in places.chunks_exact(2) {
            // Even, so that a factor of 2 on the other side of the pair leaves a whole number.
            let half = self.element((limit / 8.0).max(1.0), (limit / 2.0).max(1.0));
            let value = 2.0 * half * unit * values::sign(self.random);
            line[pair[0]] = value;
            line[pair[1]] = -value * self.product[pair[0]] / self.product[pair[1]];
        }
        line
    }

    fn one_large(&mut self, length: usize) -> Vec<f64> {
        let mut line = vec![0.0; length];
        let large = [0, length - 1, length / 2, self.random.below(length as u64) as usize];
        let large = large[self.row % large.len()];
        let mut rest: Vec<usize> = (0..length).filter(|place| *place != large).collect();
        line[large] = 256.0 * values::sign(self.random);
        if self.centred
            && let Some(last) = rest.pop()
        {
            line[last] = -line[large];
        }
        self.small(&mut line, &rest, (1.0, 3.0));
        line
    }

    fn large_first(&mut self, length: usize, firsts: &[usize]) -> Vec<f64> {
        let weight = firsts.len() as f64 + length as f64 / 256.0;
        let exponent = ((2f64.powi(24) / weight).log2() / 2.0 - 0.01).floor();
        let large = 2f64.powi(exponent as i32);
        let mut line = vec![0.0; length];
        let mut sign = values::sign(self.random);
        for place in firsts {
            line[*place] = large * sign;
            sign = if self.centred { -sign } else { values::sign(self.random) };
        }
        let rest: Vec<usize> = (0..length).filter(|place| line[*place] == 0.0).collect();
        let ceiling = (large / 16.0 - 1.0).max(1.0);
        self.small(&mut line, &rest, ((large / 24.0).floor().max(1.0), ceiling));
        line
    }

    /// Whole numbers within `bounds` at `rest`, of random sign, or of signs that lead the line's
    /// total to 0.
    fn small(&mut self, line: &mut [f64], rest: &[usize], bounds: (f64, f64)) {
        let mut rest = rest.to_vec();
        self.random.shuffle(&mut rest);
        let mut total: f64 = line.iter().sum();
        for (number, place) in rest.iter().enumerate() {
            let magnitude = self.element(bounds.0, bounds.1);
            let left = rest.len() - number;
            line[*place] = match self.centred {
                false => magnitude * values::sign(self.random),
                true if left <= 2 && total.abs() <= bounds.1 => -total,
                true => magnitude * if total > 0.0 { -1.0 } else { 1.0 },
            };
            total += line[*place];
        }
    }

    fn zero_first(&mut self, length: usize, firsts: &[usize], format: Format) -> Vec<f64> {
        // exp(-7.625) is just under half a step of f16 at 1, exp(-5.5625) of bf16.
        let small = if format == Format::F16 { -7.625 } else { -5.5625 };
        let mut line = vec![small; length];
        for place in firsts {
            line[*place] = 0.0;
        }
        for _ in 0..3.min(length / 8) {
            let place = self.random.below(length as u64) as usize;
            if line[place] != 0.0 {
                line[place] = values::nearest(self.format, self.random.range(-8.0, -4.0));
            }
        }
        line
    }
}
