//! Inputs for kernels that a rule judges: rows full of ties, sorted rows, rows whose extremes stand
//! where kernels lose elements.

use assay_num::random::SplitMix64;

use crate::Inputs;

use super::layout::{Layout, Line, TensorLayout, critical_places};
use super::values;

/// What one row is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Few different values, so that most elements are tied, zeros of both signs among them.
    Ties,
    /// Zeros of both signs above nothing but -1: whether they are equal decides the order.
    Zeros,
    /// Every element the same.
    Equal,
    /// Never falling from first to last.
    Rising,
    /// Never rising from first to last.
    Falling,
    /// Exponents over a wide range.
    Wide,
    /// The largest element at this place.
    Peak(usize),
}

/// The patterns of a row of `length` elements: peaks at every critical place, and all the rest.
pub fn patterns(length: usize, tile: Option<usize>) -> Vec<Pattern> {
    let peaks = critical_places(length, tile).into_iter().map(Pattern::Peak);
    let rest = [
        Pattern::Ties,
        Pattern::Zeros,
        Pattern::Rising,
        Pattern::Falling,
        Pattern::Equal,
        Pattern::Wide,
    ];
    peaks.chain(rest).collect()
}

/// The line length and the tile of the input that is ranked, named `scores`.
pub fn extent(layout: &Layout, scores: &str) -> (usize, Option<usize>) {
    let tensor = layout.tensor(scores);
    let axis = tensor.and_then(|tensor| Some((tensor, tensor.main_axis()?)));
    axis.map_or((1, None), |(tensor, axis)| (tensor.shape[axis], tensor.tiles[axis]))
}

/// Builds one run: row r of the input called `scores` takes `patterns[r]`, later rows go round.
pub fn build(
    layout: &Layout,
    scores: &str,
    patterns: &[Pattern],
    random: &mut SplitMix64,
) -> Inputs {
    let mut inputs = layout.zeros();
    for tensor in layout.filled() {
        let Some(elements) = inputs.tensors.get_mut(&tensor.name) else { continue };
        for (number, line) in tensor.main_lines().into_iter().enumerate() {
            let pattern = patterns.get(number % patterns.len().max(1)).copied();
            let pattern = pattern.filter(|_| tensor.name == scores).unwrap_or(Pattern::Wide);
            fill_line(elements, line, (tensor, pattern), random);
        }
    }
    inputs
}

fn fill_line(
    elements: &mut [f64],
    line: Line,
    (tensor, pattern): (&TensorLayout, Pattern),
    random: &mut SplitMix64,
) {
    let tied = [-1.0, -0.0, 0.0, 1.0, 2.0];
    let mut row: Vec<f64> = (0..line.length)
        .map(|_| match pattern {
            Pattern::Ties => tied[random.below(tied.len() as u64) as usize],
            Pattern::Zeros => tied[random.below(3) as usize],
            Pattern::Equal => 1.0,
            Pattern::Wide => values::wide(tensor.format, random),
            _ => values::ordinary(tensor.format, random),
        })
        .collect();
    match pattern {
        Pattern::Rising => row.sort_unstable_by(f64::total_cmp),
        Pattern::Falling => row.sort_unstable_by(|a, b| b.total_cmp(a)),
        Pattern::Peak(place) if place < row.len() => row[place] = 4.0,
        _ => {}
    }
    for (place, value) in row.into_iter().enumerate() {
        elements[line.at(place)] = values::nearest(tensor.format, value);
    }
}

#[cfg(test)]
mod tests {
    use assay_num::Format;

    use super::*;

    #[test]
    fn in_a_row_of_zeros_both_signs_stand_above_a_few_negatives() {
        let tensor = TensorLayout {
            name: "x".to_owned(),
            format: Format::Bf16,
            shape: vec![64],
            row_axis: None,
            walked: vec![0],
            tiles: vec![None],
            scale: 1.0,
            exact: None,
            indices: None,
        };
        let layout = Layout { tensors: vec![tensor], reductions: Vec::new(), rows: 1 };
        assert!(patterns(64, None).contains(&Pattern::Zeros));
        let inputs = build(&layout, "x", &[Pattern::Zeros], &mut SplitMix64::new(1));
        let row = &inputs.tensors["x"];
        let zeros = |negative: bool| {
            row.iter().filter(move |x| **x == 0.0 && x.is_sign_negative() == negative).count()
        };
        assert!(zeros(false) > 8 && zeros(true) > 8, "{row:?}");
        assert!(row.iter().all(|value| *value == 0.0 || *value == -1.0), "{row:?}");
    }
}
