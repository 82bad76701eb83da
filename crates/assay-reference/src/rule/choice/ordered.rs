//! `top_k` of computed scores: the largest in order, equal ones in order of their index.

use std::cmp::Ordering;

use crate::rule::NanPlace;

use super::score::{Key, Score};

/// The most that the next score may be: a key, or less than it by some tiny steps.
#[derive(Clone, Copy)]
struct Limit {
    key: Key,
    /// Ties that indices forbid push a score below the one before, by as little as one likes.
    steps: usize,
    index: usize,
}

impl Limit {
    /// Whether a score that is at least `low` can come after, being element `index`.
    fn admits(self, low: Key, index: usize) -> bool {
        match low.compare(self.key) {
            Ordering::Less => true,
            Ordering::Equal => self.steps == 0 && index > self.index,
            Ordering::Greater => false,
        }
    }

    /// The most that element `index` may be after this one; none if it cannot come after.
    fn then(self, low: Key, high: Key, index: usize) -> Option<Limit> {
        if !self.admits(low, index) {
            return None;
        }
        Some(match high.compare(self.key) {
            Ordering::Less => Limit { key: high, steps: 0, index },
            _ if index > self.index => Limit { index, ..self },
            _ => Limit { steps: self.steps + 1, index, ..self },
        })
    }
}

/// The indices of the largest scores, by the middle of what each may be; -1 where there is none.
pub(super) fn pick(nan: NanPlace, scores: &[Score], places: usize) -> Vec<f64> {
    let key = |index: usize| Key::of(scores[index].middle(), nan);
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| key(*b).compare(key(*a)));
    let picked = order.into_iter().map(|index| index as f64);
    picked.chain(std::iter::repeat(-1.0)).take(places).collect()
}

/// The first place of a choice that no scores within their bounds give.
///
/// Taking every chosen score as large as the one before allows leaves the most room to the rest,
/// so that one pass decides.
pub(super) fn wrong_place(nan: NanPlace, scores: &[Score], got: &[f64]) -> Option<usize> {
    let bounds = |index: usize| (Key::of(scores[index].low, nan), Key::of(scores[index].high, nan));
    let mut taken = vec![false; scores.len()];
    let mut limit: Option<Limit> = None;
    for (place, value) in got.iter().enumerate() {
        if place >= scores.len() {
            if *value != -1.0 {
                return Some(place);
            }
            continue;
        }
        let index = (0.0..scores.len() as f64).contains(value).then_some(*value as usize);
        let index = index.filter(|index| *index as f64 == *value && !taken[*index]);
        let Some(index) = index else { return Some(place) };
        let (low, high) = bounds(index);
        let next = match limit {
            None => Some(Limit { key: high, steps: 0, index }),
            Some(limit) => limit.then(low, high, index),
        };
        if next.is_none() {
            return Some(place);
        }
        taken[index] = true;
        limit = next;
    }
    let limit = limit?;
    let fits = |index: usize| taken[index] || limit.admits(bounds(index).0, index);
    let all = (0..scores.len()).all(fits);
    (!all).then(|| got.len().min(scores.len()) - 1)
}

/// Whether some neighbours in the right order, the first left out among them, could change places.
pub(super) fn is_ambiguous(nan: NanPlace, scores: &[Score], want: &[f64]) -> bool {
    let order = pick(nan, scores, (want.len() + 1).min(scores.len()));
    order.windows(2).any(|pair| {
        let (before, after) = (scores[pair[0] as usize], scores[pair[1] as usize]);
        let exact = |score: Score| score.low == score.high || score.is_nan();
        let overlap = Key::of(before.low, nan).compare(Key::of(after.high, nan));
        !(exact(before) && exact(after)) && overlap != Ordering::Greater
    })
}
