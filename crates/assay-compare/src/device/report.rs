//! What the kernels report: words at fixed places, then the worst elements that they found.

use crate::counts::{Counts, HALVES};
use crate::scan::Largest;

/// Bytes of one block's result: three sums, a distance, an error.
pub(super) const RESULT_BYTES: u64 = 40;

/// Where the words lie; the kernels have the same list.
mod place {
    use crate::counts::HALVES;

    pub(super) const CLASSES: usize = 0;
    pub(super) const HISTOGRAM: usize = 16;
    pub(super) const HALF: usize = HISTOGRAM + 65;
    pub(super) const ABOVE: usize = HALF + HALVES;
    pub(super) const MAX_STEPS: usize = ABOVE + 9;
    pub(super) const NOT_FIRST_DIFFERENT: usize = MAX_STEPS + 1;
    pub(super) const NOT_FIRST_OUTSIDE: usize = MAX_STEPS + 2;
    pub(super) const SUMS: usize = MAX_STEPS + 5;
    pub(super) const MAX_ERROR: usize = SUMS + 3;
    pub(super) const WORST: usize = MAX_ERROR + 1;
}

/// Words in front of the worst elements.
pub(super) const HEAD: usize = place::WORST;

/// An element that the kernels found: its index, and the words of both arrays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FoundElement {
    pub(super) index: u64,
    pub(super) words: [u64; 2],
}

/// A report, decoded.
pub(super) struct Report {
    pub(super) counts: Counts,
    pub(super) sums: [f64; 3],
    pub(super) max_error: f64,
    /// The worst by either measure, in the arrays' order, none twice.
    pub(super) worst: Vec<FoundElement>,
}

/// Words of a report of so many of the worst: as many lists of them by either measure.
pub(super) fn words(worst: usize) -> usize {
    HEAD + 2 * worst * worst * 4
}

/// Decodes a report of a piece that starts at `first`. Where nothing but equality is allowed,
/// everything that lies apart is outside.
pub(super) fn decode(
    bytes: &[u8],
    (first, elements): (u64, u64),
    (worst, is_exact): (usize, bool),
) -> Report {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let lists = words.get(HEAD..).unwrap_or_default().as_chunks::<4>().0;
    let mut found = Vec::with_capacity(2 * worst);
    for lists in lists.chunks(worst.pow(2).max(1)) {
        found.extend(worst_of(lists, worst));
    }
    found.sort_unstable();
    found.dedup();
    let mut counts = counts_of(&words, (first, elements));
    if is_exact {
        counts.outside = counts.finite().saturating_sub(counts.histogram[0]);
    }
    Report {
        counts,
        sums: [0, 1, 2].map(|at| f64::from_bits(words[place::SUMS + at])),
        max_error: f64::from_bits(words[place::MAX_ERROR]),
        worst: found,
    }
}

/// The worst of some lists by one measure, which comes first in each entry; of equals the earlier.
fn worst_of(lists: &[[u64; 4]], worst: usize) -> impl Iterator<Item = FoundElement> + use<> {
    let mut all: Vec<[u64; 4]> = lists.iter().copied().filter(|entry| entry[0] > 0).collect();
    let order = |entry: &[u64; 4]| (u64::MAX - entry[0], entry[1]);
    if all.len() > worst && worst > 0 {
        all.select_nth_unstable_by_key(worst - 1, order);
    }
    all.truncate(worst);
    all.into_iter().map(|[_, index, one, other]| FoundElement { index, words: [one, other] })
}

fn counts_of(words: &[u64], (first, elements): (u64, u64)) -> Counts {
    let wide = |low: usize| u128::from(words[low]) + (u128::from(words[low + 1]) << 32);
    // Indices are kept as complements, of which 0 is none.
    let index = |at: usize| (words[at] != 0).then(|| !words[at] + first);
    let mut counts = Counts {
        elements,
        above: words[place::ABOVE],
        zero_signs: words[place::ABOVE + 1],
        zeroed: words[place::ABOVE + 2],
        outside: words[place::ABOVE + 3],
        zero_would_fail: words[place::ABOVE + 4],
        ulp_sum: wide(place::ABOVE + 5),
        ulp_sum_above: wide(place::ABOVE + 7),
        max_ulp: words[place::MAX_STEPS],
        first_different: index(place::NOT_FIRST_DIFFERENT),
        first_outside: index(place::NOT_FIRST_OUTSIDE),
        ..Counts::default()
    };
    for (at, class) in counts.classes.iter_mut().flatten().enumerate() {
        *class = words[place::CLASSES + at];
    }
    counts.histogram.copy_from_slice(&words[place::HISTOGRAM..place::HALF]);
    counts.halves.copy_from_slice(&words[place::HALF..place::HALF + HALVES]);
    // The kernel counts errors of zero among the smallest.
    counts.halves[0] = counts.halves[0].saturating_sub(counts.histogram[0]);
    counts
}

/// Decodes what one block's result says of the worst elements.
pub(super) fn largest_of(bytes: &[u8; RESULT_BYTES as usize]) -> Largest {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
        word
    };
    Largest { key: u64::from_le_bytes(word(3)), error: f64::from_le_bytes(word(4)) }
}
