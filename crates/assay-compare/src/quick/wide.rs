//! `f64`.

use super::narrow::Word;
use super::{BITS, Found, PLACES, Quick, TABLES, note_first};
use crate::counts::{Counts, LANES, half_octave};
use crate::row::f64_steps;
use crate::scan::{Lanes, Rules};

type Words = [[u8; 8]; LANES];

/// A row's errors and distances.
pub(super) struct Row {
    error: [f64; LANES],
    steps: [u64; LANES],
}

impl Row {
    pub(super) fn new() -> Row {
        Row { error: [0.0; LANES], steps: [0; LANES] }
    }
}

impl Quick {
    #[inline(always)]
    pub(super) fn wide(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        from: u64,
        lanes: &mut Lanes,
        counts: &mut Counts,
    ) -> Option<()> {
        let (one, other): (&Words, &Words) = (Word::row(reference)?, Word::row(candidate)?);
        if reference == candidate {
            return equal(rules, one, lanes, counts);
        }
        let (row, mut found) = (&mut self.wide, Found::default());
        survey_values(rules, (one, other), row, &mut found)?;
        survey_steps((one, other), row, &mut found)?;
        if found.outside > 0 && rules.tolerance.max_ulp > 0 {
            found.outside =
                (0..LANES).map(|lane| u64::from(is_outside(rules, one, row, lane))).sum();
        }
        add_references(one, lanes);
        for (sum, &error) in lanes.errors.iter_mut().zip(&row.error) {
            *sum += error * error;
        }
        count_in_tables(&mut self.distances, &mut self.errors, row);
        if found.zeros > 0 {
            count_zeros(one, other, lanes, counts);
        }
        note_first(&mut counts.first_different, from, || {
            (0..LANES).find(|&lane| one[lane] != other[lane])
        });
        if found.outside > 0 {
            note_first(&mut counts.first_outside, from, || {
                (0..LANES).find(|&lane| is_outside(rules, one, row, lane))
            });
        }
        self.note(&found, counts);
        Some(())
    }
}

#[inline(always)]
fn count_in_tables(
    distances: &mut [[u32; TABLES]; BITS],
    errors: &mut [[u32; TABLES]; PLACES],
    row: &Row,
) {
    let pairs = row.steps.as_chunks::<TABLES>().0.iter();
    for (steps, error) in pairs.zip(row.error.as_chunks::<TABLES>().0) {
        for table in 0..TABLES {
            let bits = 64 - steps[table].leading_zeros();
            distances[bits as usize % BITS][table] += 1;
            errors[half_octave(error[table]) % PLACES][table] += 1;
        }
    }
}

#[inline(always)]
fn is_outside(rules: &Rules, reference: &Words, row: &Row, lane: usize) -> bool {
    let allowed = rules.allowed(f64::from_le_bytes(reference[lane]));
    (row.error[lane].abs() > allowed) & (row.steps[lane] > rules.tolerance.max_ulp)
}

/// A row whose bytes are the same: only the reference's own sums are wanted.
#[inline(always)]
fn equal(rules: &Rules, words: &Words, lanes: &mut Lanes, counts: &mut Counts) -> Option<()> {
    let (mut largest, mut would_fail) = (0i64, 0u64);
    for &word in words {
        let value = f64::from_le_bytes(word);
        largest = largest.max(value.abs().to_bits() as i64);
        would_fail += u64::from(value.abs() > rules.allowed(value));
    }
    if largest as u64 > f64::MAX.to_bits() {
        return None;
    }
    add_references(words, lanes);
    counts.zero_would_fail += would_fail;
    counts.histogram[0] = counts.histogram[0].wrapping_add(LANES as u64);
    Some(())
}

#[inline(always)]
fn add_references(words: &Words, lanes: &mut Lanes) {
    for (sum, &word) in lanes.references.iter_mut().zip(words) {
        let value = f64::from_le_bytes(word);
        *sum += value * value;
    }
}

/// What the values tell; none if any value or error is not finite.
#[inline(always)]
fn survey_values(
    rules: &Rules,
    (one, other): (&Words, &Words),
    row: &mut Row,
    found: &mut Found,
) -> Option<()> {
    let (mut largest, mut above, mut zeros) = (0i64, 0u64, 0u64);
    let (mut outside, mut would_fail) = (0u64, 0u64);
    for at in 0..LANES {
        let (reference, candidate) = (f64::from_le_bytes(one[at]), f64::from_le_bytes(other[at]));
        let error = candidate - reference;
        largest = largest.max(error.abs().to_bits() as i64);
        above += u64::from(error > 0.0);
        zeros += u64::from(candidate == 0.0);
        let allowed = rules.allowed(reference);
        outside += u64::from(error.abs() > allowed);
        would_fail += u64::from(reference.abs() > allowed);
        row.error[at] = error;
    }
    found.max_error = f64::from_bits(largest as u64);
    (found.above, found.zeros) = (above, zeros);
    (found.outside, found.would_fail) = (outside, would_fail);
    (found.max_error <= f64::MAX).then_some(())
}

/// What the distances tell; none if their sum may take more than 64 bits.
#[inline(always)]
fn survey_steps((one, other): (&Words, &Words), row: &mut Row, found: &mut Found) -> Option<()> {
    let (mut sum, mut sum_above, mut all) = (0u64, 0u64, 0u64);
    for at in 0..LANES {
        let steps = f64_steps(u64::from_le_bytes(one[at]), u64::from_le_bytes(other[at]));
        sum = sum.wrapping_add(steps);
        sum_above = sum_above.wrapping_add(if row.error[at] > 0.0 { steps } else { 0 });
        all |= steps;
        row.steps[at] = steps;
    }
    (found.steps, found.steps_above) = (sum, sum_above);
    found.max_steps = row.steps.iter().fold(0, |most, &steps| steps.max(most));
    (all <= u64::MAX / LANES as u64).then_some(())
}

#[inline(always)]
fn count_zeros(one: &Words, other: &Words, lanes: &mut Lanes, counts: &mut Counts) {
    let (mut zeroed, mut signs) = (0u64, 0u64);
    for at in 0..LANES {
        let (reference, candidate) = (f64::from_le_bytes(one[at]), f64::from_le_bytes(other[at]));
        // Elsewhere a positive zero is added, which changes no sum.
        let taken = if candidate == 0.0 { reference } else { 0.0 };
        lanes.zeroed[at] += taken * taken;
        zeroed += u64::from((candidate == 0.0) & (reference != 0.0));
        let differ = reference.to_bits() != candidate.to_bits();
        signs += u64::from((candidate == 0.0) & (reference == 0.0) & differ);
    }
    counts.zeroed += zeroed;
    counts.zero_signs += signs;
}
