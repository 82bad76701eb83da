//! Rows of formats whose values and errors need `f64`.

use assay_record::Tolerance;

use super::formats::Word;
use super::{Found, Quick, note_first};
use crate::counts::{Counts, FIRST_HALF, HALVES, LANES};
use crate::row::f64_steps;
use crate::scan::{Lanes, Largest, Rules, Totals};
use crate::tables;

/// A format whose values and their differences `f64` holds, or rounds once.
pub(super) trait Wide {
    type Word: Word + PartialEq;

    fn value(word: Self::Word) -> f64;

    /// How many steps the second is above the first, if the other result is not negative.
    fn up(one: Self::Word, other: Self::Word) -> (i64, i64);

    /// The distance of any two.
    fn steps(one: Self::Word, other: Self::Word) -> u64;
}

pub(super) struct F64;
pub(super) struct Int32<const SIGNED: bool>;

impl Wide for F64 {
    type Word = [u8; 8];

    #[inline(always)]
    fn value(word: [u8; 8]) -> f64 {
        f64::from_le_bytes(word)
    }

    #[inline(always)]
    fn up(one: [u8; 8], other: [u8; 8]) -> (i64, i64) {
        let (one, other) = (i64::from_le_bytes(one), i64::from_le_bytes(other));
        let (sign, up) = (one >> 63, other.wrapping_sub(one));
        ((up ^ sign).wrapping_sub(sign), one ^ other)
    }

    #[inline(always)]
    fn steps(one: [u8; 8], other: [u8; 8]) -> u64 {
        f64_steps(u64::from_le_bytes(one), u64::from_le_bytes(other))
    }
}

impl<const SIGNED: bool> Wide for Int32<SIGNED> {
    type Word = [u8; 4];

    #[inline(always)]
    fn value(word: [u8; 4]) -> f64 {
        if SIGNED { i32::from_le_bytes(word).into() } else { u32::from_le_bytes(word).into() }
    }

    #[inline(always)]
    fn up(one: [u8; 4], other: [u8; 4]) -> (i64, i64) {
        let integer = |word: [u8; 4]| -> i64 {
            if SIGNED { i32::from_le_bytes(word).into() } else { u32::from_le_bytes(word).into() }
        };
        (integer(other) - integer(one), 0)
    }

    #[inline(always)]
    fn steps(one: [u8; 4], other: [u8; 4]) -> u64 {
        Self::up(one, other).0.unsigned_abs()
    }
}

/// The words of a row, and those of both rows.
type Words<F> = [<F as Wide>::Word; LANES];
type Pair<'a, F> = (&'a Words<F>, &'a Words<F>);

/// A row's errors and distances.
pub(super) struct Row {
    error: [f64; LANES],
    steps: [u64; LANES],
    places: tables::Row,
}

impl Row {
    pub(super) fn new() -> Row {
        Row { error: [0.0; LANES], steps: [0; LANES], places: tables::Row::new() }
    }
}

impl Quick {
    #[inline(always)]
    pub(super) fn wide<F: Wide>(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        from: u64,
        totals: &mut Totals,
    ) -> Option<Largest> {
        let (one, other) = (F::Word::row(reference)?, F::Word::row(candidate)?);
        let Totals { counts, tables, lanes } = totals;
        if reference == candidate {
            return equal::<F>(rules, one, lanes, counts);
        }
        let (row, mut found) = (&mut self.wide, Found::default());
        survey_values::<F>(rules, (one, other), row, &mut found)?;
        if near::<F>((one, other), row, &mut found).is_none() {
            far::<F>((one, other), row, &mut found)?;
        }
        if found.outside > 0 && rules.tolerance.max_ulp > 0 {
            found.outside =
                (0..LANES).map(|lane| u64::from(is_outside::<F>(rules, one, row, lane))).sum();
        }
        add_references::<F>(one, lanes);
        for (sum, &error) in lanes.errors.iter_mut().zip(&row.error) {
            *sum += error * error;
        }
        tables.count(&row.places);
        if found.zeroed > 0 {
            add_zeroed::<F>((one, other), lanes);
        }
        note_first(&mut counts.first_different, from, || {
            (0..LANES).find(|&lane| one[lane] != other[lane])
        });
        if found.outside > 0 {
            note_first(&mut counts.first_outside, from, || {
                (0..LANES).find(|&lane| is_outside::<F>(rules, one, row, lane))
            });
        }
        Some(found.note(counts))
    }
}

#[inline(always)]
fn is_outside<F: Wide>(rules: &Rules, reference: &Words<F>, row: &Row, lane: usize) -> bool {
    let allowed = rules.allowed(F::value(reference[lane]));
    (row.error[lane].abs() > allowed) & (row.steps[lane] > rules.tolerance.max_ulp)
}

/// A row whose bytes are the same: only the reference's own sums are wanted.
#[inline(always)]
fn equal<F: Wide>(
    rules: &Rules,
    words: &Words<F>,
    lanes: &mut Lanes,
    counts: &mut Counts,
) -> Option<Largest> {
    let (mut largest, mut would_fail) = (0i64, 0u64);
    for &word in words {
        let value = F::value(word);
        largest = largest.max(value.abs().to_bits() as i64);
        would_fail += u64::from(value.abs() > rules.allowed(value));
    }
    if largest as u64 > f64::MAX.to_bits() {
        return None;
    }
    add_references::<F>(words, lanes);
    counts.zero_would_fail += would_fail;
    counts.histogram[0] = counts.histogram[0].wrapping_add(LANES as u64);
    Some(Largest::default())
}

#[inline(always)]
fn add_references<F: Wide>(words: &Words<F>, lanes: &mut Lanes) {
    for (sum, &word) in lanes.references.iter_mut().zip(words) {
        let value = F::value(word);
        *sum += value * value;
    }
}

/// What the values tell; none if any value or error is not finite.
#[inline(always)]
fn survey_values<F: Wide>(
    rules: &Rules,
    (one, other): Pair<'_, F>,
    row: &mut Row,
    found: &mut Found,
) -> Option<()> {
    let (mut largest, mut zeroed) = (0i64, 0u64);
    let (mut outside, mut would_fail) = (0u64, 0u64);
    let Tolerance { atol, rtol, zero_atol, .. } = rules.tolerance;
    for at in 0..LANES {
        let (reference, candidate) = (F::value(one[at]), F::value(other[at]));
        let error = candidate - reference;
        largest = largest.max(error.abs().to_bits() as i64);
        zeroed += u64::from((candidate == 0.0) & (reference != 0.0));
        let apart = atol + rtol * reference.abs();
        let allowed = if reference == 0.0 { zero_atol } else { apart };
        outside += u64::from(error.abs() > allowed);
        would_fail += u64::from(reference.abs() > allowed);
        row.error[at] = error;
    }
    for (place, error) in row.places.halves.iter_mut().zip(&row.error) {
        *place = half_octave_of(*error);
    }
    found.max_error = f64::from_bits(largest as u64);
    (found.zeroed, found.would_fail, found.outside) = (zeroed, would_fail, outside);
    (found.max_error <= f64::MAX).then_some(())
}

/// The bin of an error.
#[inline(always)]
fn half_octave_of(error: f64) -> u8 {
    let half = (error.abs().to_bits() >> 51) as u32;
    half.saturating_sub(FIRST_HALF as u32).min(HALVES as u32 - 1) as u8
}

/// Distances below this add up within 64 bits, and are exact in `f64`.
const NEAR: u64 = 1 << 52;

/// The distances of a row whose pairs are of one sign; none if it is not such, or one is rare.
#[inline(always)]
fn near<F: Wide>((one, other): Pair<'_, F>, row: &mut Row, found: &mut Found) -> Option<()> {
    let (mut mixed, mut total, mut signed) = (0i64, 0i64, 0i64);
    let (mut all, mut above) = (0i64, 0u64);
    for at in 0..LANES {
        let (up, differ) = F::up(one[at], other[at]);
        mixed |= differ;
        let steps = up.wrapping_abs();
        total = total.wrapping_add(steps);
        signed = signed.wrapping_add(up);
        all |= steps;
        above += u64::from(up > 0);
        row.steps[at] = steps as u64;
        row.places.bits[at] = bits_of(steps as u64);
    }
    if mixed < 0 || all as u64 >= NEAR {
        return None;
    }
    found.steps = total as u64;
    found.steps_above = (total + signed) as u64 / 2;
    found.max_steps = row.steps.iter().fold(0, |most, &steps| steps.max(most));
    found.above = above;
    Some(())
}

/// The number of bits of a distance below [`NEAR`], as a conversion to `f64` tells.
#[inline(always)]
fn bits_of(steps: u64) -> u8 {
    let base = NEAR as f64;
    let float = f64::from_bits(base.to_bits() | steps) - base;
    ((float.to_bits() >> 52) as u32).saturating_sub(1022) as u8
}

/// The distances of any row; none if their sum may take more than 64 bits.
#[inline(always)]
fn far<F: Wide>((one, other): Pair<'_, F>, row: &mut Row, found: &mut Found) -> Option<()> {
    let (mut sum, mut sum_above, mut all, mut above, mut signs) = (0u64, 0u64, 0u64, 0u64, 0u64);
    for at in 0..LANES {
        let steps = F::steps(one[at], other[at]);
        sum = sum.wrapping_add(steps);
        sum_above = sum_above.wrapping_add(if row.error[at] > 0.0 { steps } else { 0 });
        above += u64::from(row.error[at] > 0.0);
        all |= steps;
        signs += u64::from((F::value(one[at]) == 0.0) & (steps == 0) & (one[at] != other[at]));
        row.steps[at] = steps;
        row.places.bits[at] = (u64::BITS - steps.leading_zeros()) as u8;
    }
    (found.steps, found.steps_above, found.above) = (sum, sum_above, above);
    found.max_steps = row.steps.iter().fold(0, |most, &steps| steps.max(most));
    found.zero_signs = signs;
    (all <= u64::MAX / LANES as u64).then_some(())
}

#[inline(always)]
fn add_zeroed<F: Wide>((one, other): Pair<'_, F>, lanes: &mut Lanes) {
    for at in 0..LANES {
        let (reference, candidate) = (F::value(one[at]), F::value(other[at]));
        // Elsewhere a positive zero is added, which changes no sum.
        let taken = if candidate == 0.0 { reference } else { 0.0 };
        lanes.zeroed[at] += taken * taken;
    }
}
