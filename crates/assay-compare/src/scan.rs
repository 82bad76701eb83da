//! Counts and sums over one block of elements.

use assay_num::Format;
use assay_record::Tolerance;

use crate::array::storage;
use crate::counts::{BLOCK, Counts, LANES, class_index, first, half_octave};
use crate::row::{Row, Steps};
use crate::tree;

/// What decides whether an element is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) format: Format,
    pub(crate) tolerance: Tolerance,
    pub(crate) equal_nan: bool,
}

impl Rules {
    /// What the tolerance allows at a reference.
    pub(crate) fn allowed(&self, reference: f64) -> f64 {
        let Tolerance { atol, rtol, zero_atol, .. } = self.tolerance;
        // One multiplication and one addition, each rounded: the kernel does the same.
        if reference == 0.0 { zero_atol } else { atol + rtol * reference.abs() }
    }
}

/// The float results of one block, and what tells whether its elements are among the worst.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct BlockResult {
    /// Sums of squared errors, of squared references, and of the latter where the candidate is 0.
    pub(crate) sums: [f64; 3],
    /// The largest distance; `u64::MAX` for an element of another class.
    pub(crate) max_key: u64,
    /// The largest error.
    pub(crate) max_error: f64,
}

/// The distance that stands for another class.
pub(crate) const OTHER_CLASS: u64 = u64::MAX;

/// The lanes of the three sums, and counters that are cheaper to gather by lane.
struct Lanes {
    errors: [f64; LANES],
    references: [f64; LANES],
    zeroed: [f64; LANES],
    max_error: f64,
}

/// Counts a block of at most [`BLOCK`] elements that starts at `index`, and sums it.
pub(crate) fn block(
    rules: &Rules,
    (reference, candidate): (&[u8], &[u8]),
    (index, elements): (u64, usize),
    counts: &mut Counts,
) -> BlockResult {
    debug_assert!(elements <= BLOCK);
    let mut row = Row::new(rules.format);
    let mut lanes = Lanes {
        errors: [0.0; LANES],
        references: [0.0; LANES],
        zeroed: [0.0; LANES],
        max_error: 0.0,
    };
    let mut result = BlockResult::default();
    let bytes = storage(rules.format, LANES as u64) as usize;
    let rows = reference.chunks(bytes).zip(candidate.chunks(bytes));
    for (at, (one, other)) in rows.enumerate() {
        let present = LANES.min(elements - at * LANES);
        row.decode(rules.format, one, other);
        let from = index + (at * LANES) as u64;
        if !row.finite {
            set_apart(rules, &mut row, from, counts, &mut result);
        }
        tally(rules, &row, &mut lanes, counts);
        distances(&row, (from, present), counts, &mut result);
        find_first_outside(rules, &row, from, counts);
    }
    counts.elements += elements as u64;
    result.sums = [&lanes.errors, &lanes.references, &lanes.zeroed].map(tree::sum);
    result.max_error = lanes.max_error;
    result
}

/// Counts the pairs that are not finite and takes them out of the row.
fn set_apart(
    rules: &Rules,
    row: &mut Row,
    from: u64,
    counts: &mut Counts,
    result: &mut BlockResult,
) {
    for at in 0..LANES {
        let classes = (class_index(row.reference[at]), class_index(row.candidate[at]));
        if classes == (0, 0) {
            continue;
        }
        counts.classes[classes.0][classes.1] += 1;
        // An excluded pair must not look like a finite pair of distance 0.
        counts.histogram[0] = counts.histogram[0].wrapping_sub(1);
        row.neutralise(at);
        let index = Some(from + at as u64);
        let is_nan = classes == (1, 1);
        if classes.0 != classes.1 || (is_nan && !rules.equal_nan) {
            counts.first_outside = first(counts.first_outside, index);
            result.max_key = OTHER_CLASS;
        }
        if classes.0 != classes.1 || is_nan {
            counts.first_different = first(counts.first_different, index);
        }
    }
}

/// The sums and those counts that need no distance.
fn tally(rules: &Rules, row: &Row, lanes: &mut Lanes, counts: &mut Counts) {
    let (mut above, mut zeroed, mut signs, mut would_fail, mut outside) = (0u64, 0u64, 0, 0, 0);
    let mut max_error = lanes.max_error;
    for at in 0..LANES {
        let (reference, candidate) = (row.reference[at], row.candidate[at]);
        let error = row.error[at];
        let (square, energy) = (error * error, reference * reference);
        lanes.errors[at] += square;
        lanes.references[at] += energy;
        let is_zero = candidate == 0.0;
        lanes.zeroed[at] += if is_zero { energy } else { 0.0 };
        let allowed = rules.allowed(reference);
        let beyond = error.abs() > allowed;
        above += u64::from(error > 0.0);
        zeroed += u64::from(is_zero & (reference != 0.0));
        let both = is_zero & (reference == 0.0);
        signs += u64::from(both & (reference.to_bits() != candidate.to_bits()));
        would_fail += u64::from(reference.abs() > allowed);
        outside += u64::from(beyond);
        max_error = if error.abs() > max_error { error.abs() } else { max_error };
    }
    lanes.max_error = max_error;
    counts.above += above;
    counts.zeroed += zeroed;
    counts.zero_signs += signs;
    counts.zero_would_fail += would_fail;
    counts.outside += outside;
    if rules.tolerance.max_ulp > 0 && outside > 0 {
        counts.outside -= forgiven(rules, row);
    }
    for &error in &row.error {
        if error != 0.0 {
            counts.halves[half_octave(error)] += 1;
        }
    }
}

/// Elements beyond the tolerance that are few enough steps away.
fn forgiven(rules: &Rules, row: &Row) -> u64 {
    let all = (0..LANES).filter(|&at| row.error[at].abs() > rules.allowed(row.reference[at]));
    all.filter(|&at| row.ulp.get(at) <= rules.tolerance.max_ulp).count() as u64
}

/// The histogram of distances, their sums and the largest.
fn distances(row: &Row, at: (u64, usize), counts: &mut Counts, result: &mut BlockResult) {
    match &row.ulp {
        Steps::Narrow(steps) => {
            let (mut sum, mut above, mut max) = (0u64, 0u64, 0u32);
            for (&ulp, &error) in steps.iter().zip(&row.error) {
                sum += u64::from(ulp);
                above += if error > 0.0 { u64::from(ulp) } else { 0 };
                max = max.max(ulp);
            }
            counts.ulp_sum += u128::from(sum);
            counts.ulp_sum_above += u128::from(above);
            note_max(u64::from(max), counts, result);
            histogram(steps, |ulp| 32 - ulp.leading_zeros(), counts);
        }
        Steps::Wide(steps) => {
            let mut max = 0;
            for (&ulp, &error) in steps.iter().zip(&row.error) {
                counts.ulp_sum += u128::from(ulp);
                counts.ulp_sum_above += if error > 0.0 { u128::from(ulp) } else { 0 };
                max = max.max(ulp);
            }
            note_max(max, counts, result);
            histogram(steps, |ulp| 64 - ulp.leading_zeros(), counts);
        }
    }
    // Lanes past the end of the tensor are equal zeros.
    counts.histogram[0] = counts.histogram[0].wrapping_sub((LANES - at.1) as u64);
    if counts.first_different.is_none_or(|first| first > at.0) {
        let found = (0..LANES).find(|&lane| {
            let zeros = row.reference[lane] == 0.0 && row.candidate[lane] == 0.0;
            let signs = row.reference[lane].to_bits() != row.candidate[lane].to_bits();
            row.ulp.get(lane) != 0 || (zeros && signs)
        });
        counts.first_different =
            first(counts.first_different, found.map(|lane| at.0 + lane as u64));
    }
}

fn note_max(max: u64, counts: &mut Counts, result: &mut BlockResult) {
    counts.max_ulp = counts.max_ulp.max(max);
    result.max_key = result.max_key.max(max);
}

/// Adds distances to the bins of their numbers of bits, in turn in four tables, since one counter
/// cannot be raised twice at once.
fn histogram<T: Copy>(steps: &[T; LANES], bits: impl Fn(T) -> u32, counts: &mut Counts) {
    let mut tables = [[0u32; 65]; 4];
    for four in steps.as_chunks::<4>().0 {
        for (table, &ulp) in tables.iter_mut().zip(four) {
            table[bits(ulp) as usize] += 1;
        }
    }
    for (bin, count) in counts.histogram.iter_mut().enumerate() {
        let all: u32 = tables.iter().map(|table| table[bin]).sum();
        *count = count.wrapping_add(u64::from(all));
    }
}

fn find_first_outside(rules: &Rules, row: &Row, from: u64, counts: &mut Counts) {
    if counts.outside == 0 || counts.first_outside.is_some_and(|first| first <= from) {
        return;
    }
    let is_outside = |at: usize| {
        row.error[at].abs() > rules.allowed(row.reference[at])
            && row.ulp.get(at) > rules.tolerance.max_ulp
    };
    let found = (0..LANES).find(|&at| is_outside(at)).map(|at| from + at as u64);
    counts.first_outside = first(counts.first_outside, found);
}
