//! Inputs for gate 2, in which the order of a sum shows.
//!
//! Ordinary random addends hide a change of order in most runs. Here every term is about `g`, and
//! two or one of them are so loud that a partial sum loses all `g` next to them: `+B` at the first
//! element and `-B` in the middle, sixteen lines with `+B` and `-B` at seeded positions for
//! strided partitions, and for sums of positive terms a single `B` of 2^24 `m g` in the first or
//! the last partial sum of `m` terms. Each line of the tensor that a sum walks takes one of these
//! patterns; a tensor with few lines takes them in several fills.
//!
//! An order moves a sum of positive terms by a few units in the last place of fp32, which an output
//! in bf16 keeps only near a tie. So the quiet terms and all inputs that no sum reads have random
//! mantissas: among thousands of different outputs some lie that near.

use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_reference::{Dims, Inputs, Program, ReduceOperation, Tensor, fill};

use crate::layout::sizes;
use crate::spec::Spec;
use crate::subject::RunError;

/// Lines with both signs at seeded positions.
const SEEDED_LINES: usize = 16;
/// Shares of a line that a partial sum is guessed to hold.
const SHARES: [usize; 2] = [4, 16];

/// One way to fill the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// Patterns in which order shows, starting from the numbered one.
    Order(usize),
    /// One in 4 to this power of the elements is loud, of either sign: short sums that walk no one
    /// axis, such as those over windows, hold a pair of them here and there.
    Scattered(u32),
    /// Ordinary values, a few of them equal.
    Plain,
}

impl Fill {
    pub(super) fn name(self) -> String {
        match self {
            Fill::Order(first) => format!("order-{first}"),
            Fill::Scattered(power) => format!("scattered-{power}"),
            Fill::Plain => "plain".to_owned(),
        }
    }
}

/// What one line of the walked tensor holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pattern {
    /// `+B` first, `-B` in the middle.
    Halves,
    /// `+B` and `-B` at seeded positions.
    Seeded,
    /// One loud element: how a term follows from it, whether it comes last, terms per partial.
    Loud { term: Term, last: bool, share: usize },
}

/// How a sum's positive term follows from the element.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Term {
    Itself,
    Square,
    Exponential,
}

/// A tensor axis that a sum walks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    tensor: String,
    axis: usize,
}

/// The fills for a kernel at a shape: without a sum of three terms no order can show.
pub(super) fn fills(spec: &Spec, dims: &Dims) -> Result<Vec<Fill>, RunError> {
    let mut fewest_lines = usize::MAX;
    for target in targets(spec) {
        if let Some(tensor) = input(spec, &target.tensor) {
            let shape = sizes(&tensor.name, &tensor.shape, dims)?;
            let length = shape[target.axis];
            if length >= 3 {
                fewest_lines = fewest_lines.min(shape.iter().product::<usize>() / length);
            }
        }
    }
    let mut fills = vec![Fill::Plain];
    if fewest_lines < usize::MAX {
        fills.extend((0..patterns().len()).step_by(fewest_lines.max(1)).map(Fill::Order));
    }
    Ok(fills)
}

/// The inputs of one fill.
pub(super) fn build(
    spec: &Spec,
    dims: &Dims,
    fill: Fill,
    random: &mut SplitMix64,
) -> Result<Inputs, RunError> {
    let (targets, limits) = (targets(spec), spec.limits());
    let mut inputs = Inputs::default();
    for tensor in &spec.signature.inputs {
        let shape = sizes(&tensor.name, &tensor.shape, dims)?;
        let count = shape.iter().product();
        let target = targets.iter().find(|target| target.tensor == tensor.name);
        let promised = limits.get(&tensor.name).and_then(|l| l.draw(dims, count, random));
        if let Some(indices) = promised {
            inputs.tensors.insert(tensor.name.clone(), indices);
            continue;
        }
        let values = match (fill, target) {
            (Fill::Order(first), Some(target)) => {
                lines(tensor.format, &shape, target.axis, (first, random))
            }
            (Fill::Scattered(power), Some(_)) => scattered(tensor.format, count, power, random),
            (Fill::Order(_) | Fill::Scattered(_), None) if tensor.format.is_float() => {
                beside(tensor.format, count, is_summed(spec, &tensor.name), random)
            }
            _ => plain(tensor.format, count, random),
        };
        inputs.tensors.insert(tensor.name.clone(), values);
    }
    calm(spec, &targets, &mut inputs);
    if fill != Fill::Plain {
        make_exact(spec, &targets, &mut inputs);
    }
    Ok(inputs)
}

/// Scales the inputs that multiply a scan's carry, so that its state stays finite.
fn calm(spec: &Spec, targets: &[Target], inputs: &mut Inputs) {
    let decays = spec.program.as_deref().map(fill::decays).unwrap_or_default();
    for (name, scale) in decays {
        let format = input(spec, &name).map(|tensor| tensor.format).filter(|f| f.is_float());
        let shaped = targets.iter().any(|target| target.tensor == name);
        if let (Some(format), Some(values), false) = (format, inputs.tensors.get_mut(&name), shaped)
        {
            for value in values {
                *value = format.round(*value * scale);
            }
        }
    }
}

/// Gives the inputs that are declared to make sums exact their value.
fn make_exact(spec: &Spec, targets: &[Target], inputs: &mut Inputs) {
    for (name, limits) in spec.limits() {
        let shaped = targets.iter().any(|target| target.tensor == name);
        if let (Some(exact), Some(values), false) =
            (limits.exact, inputs.tensors.get_mut(&name), shaped)
        {
            values.fill(exact);
        }
    }
}

/// The floating-point input behind each sum's terms: the one of most axes that the sum walks, else
/// one that it reads some other way, along the last axis.
fn targets(spec: &Spec) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    let reductions = spec.program.as_deref().map(Program::reductions).unwrap_or_default();
    for reduction in reductions.iter().filter(|r| r.operation == ReduceOperation::Sum) {
        let candidates = reduction.reads.iter().filter_map(|read| {
            let tensor = input(spec, &read.tensor).filter(|tensor| tensor.format.is_float())?;
            let axis = read.axis.or(tensor.shape.len().checked_sub(1))?;
            let rank = (read.axis.is_some(), tensor.shape.len());
            Some((rank, Target { tensor: read.tensor.clone(), axis }))
        });
        let best = candidates.max_by_key(|(rank, _)| *rank).map(|(_, target)| target);
        targets.extend(best.filter(|target| !targets.contains(target)));
    }
    targets
}

/// True if some reduction reads the input called `name`.
fn is_summed(spec: &Spec, name: &str) -> bool {
    let reductions = spec.program.as_deref().map(Program::reductions).unwrap_or_default();
    reductions.iter().flat_map(|reduction| &reduction.reads).any(|read| read.tensor == name)
}

/// An input that the fill does not shape: 1 where a sum reads it, which leaves the terms as they
/// are, else from 1 up to 2.
fn beside(format: Format, count: usize, summed: bool, random: &mut SplitMix64) -> Vec<f64> {
    let value = |random: &mut SplitMix64| {
        if summed { 1.0 } else { format.round(1.0 + random.unit()) }
    };
    (0..count).map(|_| value(random)).collect()
}

fn input<'s>(spec: &'s Spec, name: &str) -> Option<&'s Tensor> {
    spec.signature.inputs.iter().find(|tensor| tensor.name == name)
}

fn patterns() -> Vec<Pattern> {
    let mut all = vec![Pattern::Halves];
    all.extend([Pattern::Seeded; SEEDED_LINES]);
    for term in [Term::Itself, Term::Square, Term::Exponential] {
        for share in SHARES {
            all.extend([false, true].map(|last| Pattern::Loud { term, last, share }));
        }
    }
    all
}

/// Fills a tensor line by line along `axis`, each line with the next pattern.
fn lines(
    format: Format,
    shape: &[usize],
    axis: usize,
    (first, random): (usize, &mut SplitMix64),
) -> Vec<f64> {
    let patterns = patterns();
    let (length, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    let mut values = vec![0.0; shape.iter().product()];
    for line in 0..values.len() / length {
        let pattern = patterns[(first + line) % patterns.len()];
        let start = line / inner * inner * length + line % inner;
        for (at, value) in one_line(format, pattern, length, random).into_iter().enumerate() {
            values[start + at * inner] = value;
        }
    }
    values
}

/// Quiet elements, and a loud one of either sign where chance puts one.
fn scattered(format: Format, count: usize, power: u32, random: &mut SplitMix64) -> Vec<f64> {
    let (loud, quiet) = cancelling(format);
    let mut values = varied(format, (quiet, Term::Itself), count, random);
    for value in &mut values {
        if random.below(1 << (2 * power)) == 0 {
            *value = if random.below(2) == 0 { loud } else { -loud };
        }
    }
    values
}

fn one_line(format: Format, pattern: Pattern, length: usize, random: &mut SplitMix64) -> Vec<f64> {
    let (loud, quiet) = cancelling(format);
    let mut line = varied(format, (quiet, Term::Itself), length, random);
    match pattern {
        Pattern::Halves => {
            line[0] = loud;
            line[length / 2] = -loud;
        }
        Pattern::Seeded => {
            for loud in [loud, -loud] {
                line[random.below(length as u64) as usize] = loud;
            }
        }
        Pattern::Loud { term, last, share } => {
            let terms = length.div_ceil(share).next_power_of_two() as f64;
            let (loud, quiet) = positive(format, term, terms);
            line = varied(format, (quiet, term), length, random);
            line[if last { length - 1 } else { 0 }] = loud;
        }
    }
    line
}

/// Elements of random mantissas whose terms are between a half of the quiet term and all of it, so
/// that a loud partial sum loses them too. A term at the format's end stays as it is.
fn varied(
    format: Format,
    (quiet, term): (f64, Term),
    length: usize,
    random: &mut SplitMix64,
) -> Vec<f64> {
    let value = |random: &mut SplitMix64| {
        let factor = 1.0 - random.unit() / 2.0;
        match term {
            Term::Exponential => format.round(quiet + factor.ln()),
            _ if quiet < 4.0 * format.min_normal() => quiet,
            Term::Itself => format.round(quiet * factor),
            Term::Square => format.round(quiet * factor.sqrt()),
        }
    };
    (0..length).map(|_| value(random)).collect()
}

/// `B` and `g` of a sum of both signs: far enough apart that no partial sum keeps a `g`.
fn cancelling(format: Format) -> (f64, f64) {
    match format {
        Format::F16 => (2f64.powi(15), 2f64.powi(-24)),
        Format::E4m3 | Format::E5m2 | Format::E2m1 => {
            (format.max_finite().log2().floor().exp2(), format.min_subnormal())
        }
        _ => (2f64.powi(100), 1.0),
    }
}

/// The element of the loud term and of the others: the loud term is 2^24 `terms` times another.
fn positive(format: Format, term: Term, terms: f64) -> (f64, f64) {
    let ratio = 2f64.powi(24) * terms;
    let (loud, quiet) = match term {
        Term::Itself if format == Format::F16 => (ratio * 2f64.powi(-24), 2f64.powi(-24)),
        Term::Itself => (ratio, 1.0),
        Term::Square => (ratio.sqrt(), 1.0),
        Term::Exponential => (0.0, -ratio.ln()),
    };
    let fits = |value: f64| format.round(value.min(format.max_finite()));
    (fits(loud), fits(quiet))
}

/// Ordinary values; a quarter of them from a few, so that ties occur.
fn plain(format: Format, count: usize, random: &mut SplitMix64) -> Vec<f64> {
    let value = |random: &mut SplitMix64| {
        let tie = random.below(4) == 0;
        if !format.is_float() {
            let limit = match format.bits() {
                bits @ ..8 => 1 << bits,
                8 => 128,
                _ => 16,
            };
            return random.below(limit) as f64;
        }
        let value = if tie { random.below(4) as f64 - 1.5 } else { random.normal() };
        format.round(value)
    };
    (0..count).map(|_| value(random)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Partial sums of `terms` elements in f32, combined in the order given.
    fn sum(values: &[f64], terms: usize, reversed: bool) -> f32 {
        let mut partials: Vec<f32> =
            values.chunks(terms).map(|part| part.iter().fold(0.0, |s, v| s + *v as f32)).collect();
        if reversed {
            partials.reverse();
        }
        partials.into_iter().fold(0.0, |sum, partial| sum + partial)
    }

    #[test]
    fn a_reversal_of_three_to_sixteen_partial_sums_shows_in_some_line() {
        for format in [Format::F32, Format::Bf16, Format::F16] {
            for partials in [3, 4, 5, 8, 16] {
                let length = 1000usize;
                let mut random = SplitMix64::new(7);
                let shows = patterns().into_iter().any(|pattern| {
                    let line = one_line(format, pattern, length, &mut random);
                    let terms = length.div_ceil(partials);
                    sum(&line, terms, false) != sum(&line, terms, true)
                });
                assert!(shows, "{format:?} in {partials} partial sums");
            }
        }
    }

    #[test]
    fn a_reversal_shows_in_sums_of_squares_and_of_exponentials() {
        for term in [Term::Square, Term::Exponential] {
            let of = |x: f64| if term == Term::Square { x * x } else { x.exp() };
            for partials in [3, 4, 8] {
                let mut random = SplitMix64::new(7);
                let kinds = patterns()
                    .into_iter()
                    .filter(|p| matches!(p, Pattern::Loud { term: kind, .. } if *kind == term));
                let shows = kinds.into_iter().any(|pattern| {
                    let line = one_line(Format::F32, pattern, 1000, &mut random);
                    let line: Vec<f64> = line.into_iter().map(of).collect();
                    let terms = 1000usize.div_ceil(partials);
                    sum(&line, terms, false) != sum(&line, terms, true)
                });
                assert!(shows, "{term:?} in {partials} partial sums");
            }
        }
    }

    #[test]
    fn an_order_of_nine_scattered_terms_shows_whatever_the_seed() {
        for format in [Format::F32, Format::Bf16, Format::F16] {
            for seed in 1..=50 {
                let values = scattered(format, 9 * 64, 1, &mut SplitMix64::new(seed));
                let round = |sum: f32| format.round(f64::from(sum));
                let shows =
                    values.chunks(9).filter(|s| round(sum(s, 1, false)) != round(sum(s, 1, true)));
                assert!(shows.count() > 1, "{format:?}, seed {seed}");
            }
        }
    }

    #[test]
    fn every_value_is_exact_in_its_format() {
        for format in
            [Format::F32, Format::Bf16, Format::F16, Format::E4m3, Format::I32, Format::U3]
        {
            let mut random = SplitMix64::new(1);
            let lines = if format.is_float() {
                lines(format, &[64, 33], 1, (0, &mut random))
            } else {
                Vec::new()
            };
            for value in lines.into_iter().chain(plain(format, 100, &mut random)) {
                assert_eq!(format.round(value), value, "{format:?}");
            }
        }
    }

    #[test]
    fn lines_run_along_the_walked_axis() {
        let mut random = SplitMix64::new(1);
        let values = lines(Format::F32, &[8, 3], 0, (0, &mut random));
        let column: Vec<f64> = (0..8).map(|row| values[row * 3]).collect();
        assert_eq!((column[0], column[4]), (2f64.powi(100), -(2f64.powi(100))));
        let quiet = column.iter().filter(|value| (0.0..=1.0).contains(*value));
        assert_eq!(quiet.count(), 6);
    }

    #[test]
    fn quiet_terms_differ_and_none_reaches_over_the_quietest_that_a_loud_one_swallows() {
        let mut random = SplitMix64::new(3);
        for (term, quiet) in [(Term::Itself, 1.0), (Term::Square, 1.0), (Term::Exponential, -20.0)]
        {
            let of = |x: f64| match term {
                Term::Itself => x,
                Term::Square => x * x,
                Term::Exponential => x.exp(),
            };
            let line = varied(Format::F32, (quiet, term), 1000, &mut random);
            let ratios = || line.iter().map(|value| of(*value) / of(quiet));
            assert!(ratios().all(|ratio| (0.499..1.001).contains(&ratio)), "{term:?}");
            let distinct: std::collections::BTreeSet<u64> =
                line.iter().map(|value| value.to_bits()).collect();
            assert!(distinct.len() > 500, "{term:?}: {}", distinct.len());
        }
        let ends = varied(Format::F16, (2f64.powi(-24), Term::Itself), 50, &mut random);
        assert!(ends.iter().all(|value| *value == 2f64.powi(-24)));
    }
}
