//! What an input may hold beside what its format can: the promises of its caller that every fill
//! keeps.

use std::collections::BTreeMap;
use std::ops::Range;

use assay_num::random::SplitMix64;

use crate::extent::{Dims, Extent};
use crate::plan::{Access, Int, Program, Source};

/// What a caller promises of one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The integers that the input holds: from the first, the second not included. A formula
    /// uses them as indices, lengths or positions.
    pub range: Option<[Extent; 2]>,
    /// True if no value comes twice.
    pub distinct: bool,
    /// What every element is where sums are to stay whole numbers and the input is no factor that
    /// a fill shapes: 1 for a scale, 0 for a bias.
    pub exact: Option<f64>,
}

impl Limits {
    /// The integers allowed at `dims`; `None` if all are, or if the ends do not evaluate.
    pub fn range_at(&self, dims: &Dims) -> Option<Range<i64>> {
        let [low, high] = self.range.as_ref()?;
        Some(low.eval(dims).ok()?..high.eval(dims).ok()?)
    }

    /// `count` values within the range at `dims`: the largest first, then the smallest, the rest at
    /// random; a single value is one of the largest three. Distinct ones are a random selection.
    /// `None` without a range.
    #[must_use]
    pub fn draw(&self, dims: &Dims, count: usize, random: &mut SplitMix64) -> Option<Vec<f64>> {
        let range = self.range_at(dims).filter(|range| !range.is_empty())?;
        let span = range.end.abs_diff(range.start);
        if self.distinct {
            let mut all: Vec<i64> = range.collect();
            random.shuffle(&mut all);
            return Some(all.into_iter().cycle().take(count).map(|value| value as f64).collect());
        }
        let mut values: Vec<i64> =
            (0..count).map(|_| range.start + random.below(span) as i64).collect();
        match values.as_mut_slice() {
            [alone] => *alone = range.end - 1 - random.below(span.min(3)) as i64,
            [first, second, ..] => (*first, *second) = (range.end - 1, range.start),
            [] => {}
        }
        Some(values.into_iter().map(|value| value as f64).collect())
    }
}

impl Program {
    /// The same formula with promises about its inputs, by name.
    #[must_use]
    pub fn with_limits(mut self, limits: BTreeMap<String, Limits>) -> Program {
        self.limits = limits;
        self
    }

    /// What is promised of the inputs, by name; inputs without promises are left out.
    pub fn limits(&self) -> &BTreeMap<String, Limits> {
        &self.limits
    }

    /// The inputs that the formula takes indices or bounds of reductions from, each once.
    pub fn index_inputs(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        let mut pending: Vec<Source> = Vec::new();
        for stage in &self.stages {
            let gathers = stage.ints.iter().filter_map(|int| match int {
                Int::Gather(Access { source, .. }) => Some(*source),
                _ => None,
            });
            pending.extend(gathers);
        }
        let mut seen: Vec<Source> = Vec::new();
        while let Some(source) = pending.pop().filter(|_| seen.len() <= self.stages.len()) {
            if let Source::Input(input) = source {
                found.push(&self.signature.inputs[input].name);
            } else if let Some(stage) = self.stage_of(source).filter(|_| !seen.contains(&source)) {
                seen.push(source);
                pending.extend(self.stages[stage].accesses().map(|access| access.source));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(distinct: bool) -> Limits {
        let end = |text: &str| Extent::parse(text).expect("an extent");
        Limits { range: Some([end("1"), end("n + 1")]), distinct, exact: None }
    }

    #[test]
    fn drawn_values_stay_in_range_and_reach_both_ends() {
        let dims = crate::dims([("n", 6)]);
        let mut random = SplitMix64::new(1);
        let drawn = limits(false).draw(&dims, 40, &mut random).expect("a range");
        assert_eq!(drawn[..2], [6.0, 1.0]);
        assert!(drawn.iter().all(|value| (1.0..=6.0).contains(value)));
        let alone = limits(false).draw(&dims, 1, &mut random).expect("a range");
        assert!((4.0..=6.0).contains(&alone[0]));
    }

    #[test]
    fn distinct_values_come_once() {
        let dims = crate::dims([("n", 9)]);
        let mut drawn = limits(true).draw(&dims, 9, &mut SplitMix64::new(2)).expect("a range");
        assert!(drawn.windows(2).any(|pair| pair[0] > pair[1]), "not in order: {drawn:?}");
        drawn.sort_unstable_by(f64::total_cmp);
        assert_eq!(drawn, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    }
}
