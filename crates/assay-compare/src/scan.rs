//! Counts and sums over one block of elements.

use assay_device::Vectors;
use assay_num::Format;
use assay_record::Tolerance;

use crate::array::storage;
use crate::counts::{BLOCK, Counts, LANES, class_index, first, half_octave};
use crate::quick::Quick;
use crate::row::{Row, Steps};
use crate::tables::{self, Tables};
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

/// What tells whether elements are among the worst.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Largest {
    /// The largest distance; `u64::MAX` for an element of another class.
    pub(crate) key: u64,
    /// The largest magnitude of an error.
    pub(crate) error: f64,
}

impl Largest {
    fn raise(&mut self, other: Largest) {
        self.key = self.key.max(other.key);
        self.error = self.error.max(other.error);
    }
}

/// The float results of one block, and what tells whether its elements are among the worst.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct BlockResult {
    /// Sums of squared errors, of squared references, and of the latter where the candidate is 0.
    pub(crate) sums: [f64; 3],
    pub(crate) largest: Largest,
}

/// The distance that stands for another class.
pub(crate) const OTHER_CLASS: u64 = u64::MAX;

/// The lanes of the three sums.
pub(crate) struct Lanes {
    pub(crate) errors: [f64; LANES],
    pub(crate) references: [f64; LANES],
    pub(crate) zeroed: [f64; LANES],
}

/// Everything that rows are added to.
pub(crate) struct Totals {
    pub(crate) counts: Counts,
    pub(crate) tables: Tables,
    pub(crate) lanes: Lanes,
}

impl Totals {
    pub(crate) fn new() -> Totals {
        let zero = [0.0; LANES];
        let lanes = Lanes { errors: zero, references: zero, zeroed: zero };
        Totals { counts: Counts::default(), tables: Tables::new(), lanes }
    }
}

/// What counts blocks, one after the other.
pub(crate) struct Scan<'a> {
    rules: &'a Rules,
    vectors: Vectors,
    /// None where every row is to go the general way.
    quick: Option<Quick>,
    general: General,
    totals: Totals,
    /// Of every row.
    largest: Vec<Largest>,
}

/// What the general way makes of a row.
struct General {
    row: Row,
    places: tables::Row,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Scan<'a> {
        Scan::with(rules, Vectors::widest(), true)
    }

    /// Counts with certain vectors, and every row the general way unless `quick`.
    pub(crate) fn with(rules: &'a Rules, vectors: Vectors, quick: bool) -> Scan<'a> {
        Scan {
            rules,
            vectors,
            quick: quick.then(|| Quick::new(rules)),
            general: General { row: Row::new(rules.format), places: tables::Row::new() },
            totals: Totals::new(),
            largest: Vec::new(),
        }
    }

    /// Counts a block of at most [`BLOCK`] elements that starts at `index`, and sums it.
    pub(crate) fn block(&mut self, pair: (&[u8], &[u8]), place: (u64, usize)) -> BlockResult {
        let vectors = self.vectors;
        vectors.run(
            #[inline(always)]
            || self.rows(pair, place),
        )
    }

    /// Everything that was counted, and the largest of every row.
    pub(crate) fn finish(mut self) -> (Counts, Vec<Largest>) {
        self.totals.tables.give(&mut self.totals.counts);
        (self.totals.counts, self.largest)
    }

    #[inline(always)]
    fn rows(
        &mut self,
        (reference, candidate): (&[u8], &[u8]),
        (index, elements): (u64, usize),
    ) -> BlockResult {
        debug_assert!(elements <= BLOCK);
        let Scan { rules, quick, general, totals, .. } = self;
        let bytes = storage(rules.format, LANES as u64) as usize;
        let mut most = Largest::default();
        let rows = reference.chunks(bytes).zip(candidate.chunks(bytes));
        for (at, pair) in rows.enumerate() {
            let present = LANES.min(elements - at * LANES);
            let place = (index + (at * LANES) as u64, present);
            let quickly = match quick {
                Some(quick) if present == LANES => quick.row(rules, pair, place.0, totals),
                _ => None,
            };
            let largest = quickly.unwrap_or_else(|| general.row(rules, pair, place, totals));
            self.largest.push(largest);
            most.raise(largest);
        }
        totals.counts.elements += elements as u64;
        totals.take_sums(most)
    }
}

impl Totals {
    /// The result of the block that ends here.
    #[inline(always)]
    fn take_sums(&mut self, largest: Largest) -> BlockResult {
        let Lanes { errors, references, zeroed } = &mut self.lanes;
        let sums = [errors, references, zeroed].map(|lanes| {
            let sum = tree::sum(lanes);
            *lanes = [0.0; LANES];
            sum
        });
        BlockResult { sums, largest }
    }
}

impl General {
    /// Counts a row of at most [`LANES`] elements.
    fn row(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        (from, present): (u64, usize),
        totals: &mut Totals,
    ) -> Largest {
        let General { row, places } = self;
        row.decode(rules.format, reference, candidate);
        // Bits past the last element may be anything, and zero bytes are no zeros in every format.
        (present..LANES).for_each(|lane| row.neutralise(lane));
        let mut largest = Largest::default();
        if !row.finite {
            set_apart(rules, row, from, &mut totals.counts, &mut largest);
        }
        tally(rules, row, totals);
        // Lanes past the end of the tensor are equal zeros.
        totals.counts.histogram[0] =
            totals.counts.histogram[0].wrapping_sub((LANES - present) as u64);
        let steps = distances(row, places, &mut totals.counts);
        totals.tables.count(places);
        find_first_different(row, from, &mut totals.counts);
        find_first_outside(rules, row, from, &mut totals.counts);
        let error = row.error.iter().fold(0.0f64, |most, &error| most.max(error.abs()));
        largest.raise(Largest { key: steps, error });
        largest
    }
}

/// Counts the pairs that are not finite and takes them out of the row.
fn set_apart(rules: &Rules, row: &mut Row, from: u64, counts: &mut Counts, largest: &mut Largest) {
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
            largest.key = OTHER_CLASS;
        }
        if classes.0 != classes.1 || is_nan {
            counts.first_different = first(counts.first_different, index);
        }
    }
}

/// The sums and those counts that need no distance. Short loops over whole rows, each of one kind
/// of work, are what the compiler makes vectors of.
fn tally(rules: &Rules, row: &Row, totals: &mut Totals) {
    let Totals { counts, lanes, .. } = totals;
    add_squares(row, lanes);
    count_zeros(row, lanes, counts);
    let (outside, would_fail) = count_outside(rules, row);
    counts.outside += outside;
    counts.zero_would_fail += would_fail;
    if rules.tolerance.max_ulp > 0 && outside > 0 {
        counts.outside -= forgiven(rules, row);
    }
}

fn add_squares(row: &Row, lanes: &mut Lanes) {
    for (sum, &error) in lanes.errors.iter_mut().zip(&row.error) {
        *sum += error * error;
    }
    for (sum, &reference) in lanes.references.iter_mut().zip(&row.reference) {
        *sum += reference * reference;
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

/// The sums of distances, and the largest; where each element is counted.
fn distances(row: &Row, places: &mut tables::Row, counts: &mut Counts) -> u64 {
    for (place, &error) in places.halves.iter_mut().zip(&row.error) {
        *place = half_octave(error) as u8;
    }
    counts.above += row.error.iter().map(|&error| u64::from(error > 0.0)).sum::<u64>();
    let most = match &row.ulp {
        Steps::Narrow(steps) => {
            let mut signed = [0u32; LANES];
            for ((place, &ulp), &error) in signed.iter_mut().zip(steps).zip(&row.error) {
                *place = if error > 0.0 { ulp } else { 0 };
            }
            let sum = |all: &[u32; LANES]| all.iter().map(|&ulp| u64::from(ulp)).sum::<u64>();
            counts.ulp_sum += u128::from(sum(steps));
            counts.ulp_sum_above += u128::from(sum(&signed));
            for (place, &ulp) in places.bits.iter_mut().zip(steps) {
                *place = (u32::BITS - ulp.leading_zeros()) as u8;
            }
            u64::from(steps.iter().fold(0, |most, &ulp| ulp.max(most)))
        }
        Steps::Wide(steps) => {
            let mut max = 0;
            for ((place, &ulp), &error) in places.bits.iter_mut().zip(steps).zip(&row.error) {
                counts.ulp_sum += u128::from(ulp);
                counts.ulp_sum_above += if error > 0.0 { u128::from(ulp) } else { 0 };
                max = max.max(ulp);
                *place = (u64::BITS - ulp.leading_zeros()) as u8;
            }
            max
        }
    };
    counts.max_ulp = counts.max_ulp.max(most);
    most
}

fn find_first_different(row: &Row, from: u64, counts: &mut Counts) {
    if counts.first_different.is_some_and(|first| first <= from) {
        return;
    }
    let found = (0..LANES).find(|&lane| {
        let zeros = row.reference[lane] == 0.0 && row.candidate[lane] == 0.0;
        let signs = row.reference[lane].to_bits() != row.candidate[lane].to_bits();
        row.ulp.get(lane) != 0 || (zeros && signs)
    });
    counts.first_different = first(counts.first_different, found.map(|lane| from + lane as u64));
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
