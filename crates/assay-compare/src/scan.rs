//! Counts and sums over one block of elements.

use assay_device::Vectors;
use assay_num::Format;
use assay_record::Tolerance;

use crate::array::storage;
use crate::counts::{BLOCK, Counts, HALVES, LANES, class_index, first, half_octave};
use crate::quick::Quick;
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
    #[inline(always)]
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

/// The lanes of the three sums, and counters that are cheaper to gather by lane or in tables.
pub(crate) struct Lanes {
    pub(crate) errors: [f64; LANES],
    pub(crate) references: [f64; LANES],
    pub(crate) zeroed: [f64; LANES],
    max_error: [f64; LANES],
    halves: [[u32; HALVES]; 2],
    distances: [[u32; 65]; 4],
}

/// What counts blocks, one after the other.
pub(crate) struct Scan<'a> {
    rules: &'a Rules,
    vectors: Vectors,
    /// None where every row is to go the general way.
    quick: Option<Quick>,
    counts: Counts,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Scan<'a> {
        Scan::with(rules, Vectors::widest(), true)
    }

    /// Counts with certain vectors, and every row the general way unless `quick`.
    pub(crate) fn with(rules: &'a Rules, vectors: Vectors, quick: bool) -> Scan<'a> {
        let quick = quick.then(|| Quick::new(rules));
        Scan { rules, vectors, quick, counts: Counts::default() }
    }

    /// Counts a block of at most [`BLOCK`] elements that starts at `index`, and sums it.
    pub(crate) fn block(&mut self, pair: (&[u8], &[u8]), place: (u64, usize)) -> BlockResult {
        let Scan { rules, vectors, quick, counts } = self;
        vectors.run(
            #[inline(always)]
            || block(rules, pair, place, quick.as_mut(), counts),
        )
    }

    /// Everything that was counted.
    pub(crate) fn finish(mut self) -> Counts {
        if let Some(quick) = &self.quick {
            quick.give(self.rules, &mut self.counts);
        }
        self.counts
    }
}

#[inline(always)]
fn block(
    rules: &Rules,
    (reference, candidate): (&[u8], &[u8]),
    (index, elements): (u64, usize),
    mut quick: Option<&mut Quick>,
    counts: &mut Counts,
) -> BlockResult {
    debug_assert!(elements <= BLOCK);
    let mut row = Row::new(rules.format);
    let mut lanes = Lanes::new();
    let mut result = BlockResult::default();
    let bytes = storage(rules.format, LANES as u64) as usize;
    let rows = reference.chunks(bytes).zip(candidate.chunks(bytes));
    for (at, (one, other)) in rows.enumerate() {
        let present = LANES.min(elements - at * LANES);
        let from = index + (at * LANES) as u64;
        if let Some(quick) = quick.as_deref_mut().filter(|_| present == LANES)
            && quick.row(rules, (one, other), from, &mut lanes, counts)
        {
            continue;
        }
        row.decode(rules.format, one, other);
        // Bits past the last element may be anything, and zero bytes are no zeros in every format.
        (present..LANES).for_each(|lane| row.neutralise(lane));
        if !row.finite {
            set_apart(rules, &mut row, from, counts, &mut result);
        }
        tally(rules, &row, &mut lanes, counts);
        distances(&row, (from, present), (&mut lanes, counts), &mut result);
        find_first_outside(rules, &row, from, counts);
    }
    counts.elements += elements as u64;
    lanes.give(counts);
    let (max_steps, max_error) = quick.map_or((0, 0.0), Quick::take_largest);
    result.max_key = result.max_key.max(max_steps);
    result.sums = [&lanes.errors, &lanes.references, &lanes.zeroed].map(tree::sum);
    result.max_error = lanes.max_error.iter().fold(max_error, |most, &error| most.max(error));
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

/// The sums and those counts that need no distance. Short loops over whole rows, each of one kind
/// of work, are what the compiler makes vectors of.
fn tally(rules: &Rules, row: &Row, lanes: &mut Lanes, counts: &mut Counts) {
    add_squares(row, lanes);
    count_zeros(row, lanes, counts);
    let (outside, would_fail) = count_outside(rules, row);
    counts.outside += outside;
    counts.zero_would_fail += would_fail;
    if rules.tolerance.max_ulp > 0 && outside > 0 {
        counts.outside -= forgiven(rules, row);
    }
    // In turn in two tables, since one counter cannot be raised twice at once.
    for two in row.error.as_chunks::<2>().0 {
        for (table, &error) in lanes.halves.iter_mut().zip(two) {
            table[half_octave(error)] += 1;
        }
    }
}

fn add_squares(row: &Row, lanes: &mut Lanes) {
    for (sum, &error) in lanes.errors.iter_mut().zip(&row.error) {
        *sum += error * error;
    }
    for (sum, &reference) in lanes.references.iter_mut().zip(&row.reference) {
        *sum += reference * reference;
    }
    for (most, &error) in lanes.max_error.iter_mut().zip(&row.error) {
        let error = error.abs();
        *most = if error > *most { error } else { *most };
    }
}

fn count_zeros(row: &Row, lanes: &mut Lanes, counts: &mut Counts) {
    let zeros: u64 = row.candidate.iter().map(|&candidate| u64::from(candidate == 0.0)).sum();
    if zeros == 0 {
        return;
    }
    for at in 0..LANES {
        let (reference, candidate) = (row.reference[at], row.candidate[at]);
        if candidate != 0.0 {
            continue;
        }
        lanes.zeroed[at] += reference * reference;
        counts.zeroed += u64::from(reference != 0.0);
        let flipped = reference == 0.0 && reference.to_bits() != candidate.to_bits();
        counts.zero_signs += u64::from(flipped);
    }
}

/// Errors beyond what is allowed, and references that are.
fn count_outside(rules: &Rules, row: &Row) -> (u64, u64) {
    let (mut outside, mut would_fail) = (0u64, 0u64);
    for (&error, &reference) in row.error.iter().zip(&row.reference) {
        let allowed = rules.allowed(reference);
        outside += u64::from(error.abs() > allowed);
        would_fail += u64::from(reference.abs() > allowed);
    }
    (outside, would_fail)
}

/// Elements beyond the tolerance that are few enough steps away.
fn forgiven(rules: &Rules, row: &Row) -> u64 {
    let all = (0..LANES).filter(|&at| row.error[at].abs() > rules.allowed(row.reference[at]));
    all.filter(|&at| row.ulp.get(at) <= rules.tolerance.max_ulp).count() as u64
}

/// The histogram of distances, their sums and the largest.
fn distances(
    row: &Row,
    at: (u64, usize),
    (lanes, counts): (&mut Lanes, &mut Counts),
    result: &mut BlockResult,
) {
    match &row.ulp {
        Steps::Narrow(steps) => {
            let mut signed = [0u32; LANES];
            for ((place, &ulp), &error) in signed.iter_mut().zip(steps).zip(&row.error) {
                *place = if error > 0.0 { ulp } else { 0 };
            }
            let sum = |all: &[u32; LANES]| all.iter().map(|&ulp| u64::from(ulp)).sum::<u64>();
            counts.ulp_sum += u128::from(sum(steps));
            counts.ulp_sum_above += u128::from(sum(&signed));
            note_max(u64::from(steps.iter().fold(0, |most, &ulp| ulp.max(most))), counts, result);
            histogram(steps, |ulp| (u64::from(ulp) << 1 | 1).ilog2(), lanes);
        }
        Steps::Wide(steps) => {
            let mut max = 0;
            for (&ulp, &error) in steps.iter().zip(&row.error) {
                counts.ulp_sum += u128::from(ulp);
                counts.ulp_sum_above += if error > 0.0 { u128::from(ulp) } else { 0 };
                max = max.max(ulp);
            }
            note_max(max, counts, result);
            histogram(steps, |ulp| 64 - ulp.leading_zeros(), lanes);
        }
    }
    counts.above += row.error.iter().map(|&error| u64::from(error > 0.0)).sum::<u64>();
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

/// Counts distances by their numbers of bits, in turn in four tables.
fn histogram<T: Copy>(steps: &[T; LANES], bits: impl Fn(T) -> u32, lanes: &mut Lanes) {
    for four in steps.as_chunks::<4>().0 {
        for (table, &ulp) in lanes.distances.iter_mut().zip(four) {
            table[bits(ulp) as usize] += 1;
        }
    }
}

impl Lanes {
    pub(crate) fn new() -> Lanes {
        Lanes {
            errors: [0.0; LANES],
            references: [0.0; LANES],
            zeroed: [0.0; LANES],
            max_error: [0.0; LANES],
            halves: [[0; HALVES]; 2],
            distances: [[0; 65]; 4],
        }
    }

    /// Adds the tables to the counts. What was taken out of a row is off `histogram[0]` already.
    fn give(&self, counts: &mut Counts) {
        let zeros: u64 = self.distances.iter().map(|table| u64::from(table[0])).sum();
        for table in &self.distances {
            for (count, &more) in counts.histogram.iter_mut().zip(table) {
                *count = count.wrapping_add(u64::from(more));
            }
        }
        for table in &self.halves {
            for (count, &more) in counts.halves.iter_mut().zip(table) {
                *count = count.wrapping_add(u64::from(more));
            }
        }
        // Errors of zero, which are those of distance 0, are none.
        counts.halves[0] = counts.halves[0].wrapping_sub(zeros);
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
