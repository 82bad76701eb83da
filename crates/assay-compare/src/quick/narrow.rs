//! Rows of formats whose values `f32` holds.

use assay_record::Tolerance;

use super::formats::{Narrow, Pair, Part, Small, Word};
use super::steps::{PART, far};
use super::{Found, Quick, note_first};
use crate::bounds::Bounds;
use crate::counts::{Counts, FIRST_HALF, HALVES, LANES};
use crate::scan::{Lanes, Largest, Rules, Totals};
use crate::tables;

/// A row's errors.
pub(super) struct Row {
    error: [f32; LANES],
    places: tables::Row,
}

impl Row {
    pub(super) fn new() -> Row {
        Row { error: [0.0; LANES], places: tables::Row::new() }
    }
}

impl Quick {
    #[inline(always)]
    pub(super) fn narrow<F: Narrow>(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        from: u64,
        totals: &mut Totals,
    ) -> Option<Largest> {
        let (one, other) = (F::Word::row(reference)?, F::Word::row(candidate)?);
        if reference == candidate {
            return equal::<F>(one, &self.bounds, &mut totals.lanes, &mut totals.counts);
        }
        self.narrow.words::<F>((rules, &self.bounds), (one, other), from, totals)
    }

    /// As [`Quick::narrow`], of elements of at most 8 bits.
    #[inline(always)]
    pub(super) fn small(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        from: u64,
        totals: &mut Totals,
    ) -> Option<Largest> {
        let Quick { bounds, narrow, small: Some(small), .. } = self else { return None };
        let one = small.reference.look_up(&small.table, rules.format, reference);
        if reference == candidate {
            return equal::<Small>(one, bounds, &mut totals.lanes, &mut totals.counts);
        }
        let other = small.candidate.look_up(&small.table, rules.format, candidate);
        narrow.words::<Small>((rules, bounds), (one, other), from, totals)
    }
}

impl Row {
    #[inline(always)]
    fn words<F: Narrow>(
        &mut self,
        (rules, bounds): (&Rules, &Bounds),
        (one, other): Pair<'_, F>,
        from: u64,
        totals: &mut Totals,
    ) -> Option<Largest> {
        let Totals { counts, tables, lanes } = totals;
        let (row, mut found) = (self, Found::default());
        let doubtful = survey_values::<F>((one, other), bounds, row, &mut found)?;
        survey_steps::<F>((one, other), &mut row.places.bits, &mut found);
        if doubtful > 0 && found.max_steps > rules.tolerance.max_ulp {
            found.outside = count_outside::<F>((rules, bounds), (one, other), row, doubtful);
        }
        add_references::<F>(one, lanes);
        for (sum, &error) in lanes.errors.iter_mut().zip(&row.error) {
            *sum += f64::from(error) * f64::from(error);
        }
        tables.count(&row.places);
        if found.zeroed > 0 {
            add_zeroed::<F>((one, other), lanes);
        }
        note_first(&mut counts.first_different, from, || {
            (0..LANES)
                .find(|&lane| F::value(one[lane]).to_bits() != F::value(other[lane]).to_bits())
        });
        if found.outside > 0 {
            note_first(&mut counts.first_outside, from, || {
                (0..LANES).find(|&lane| is_outside::<F>(rules, (one, other), row, lane))
            });
        }
        Some(found.note(counts))
    }
}

/// A row whose bytes are the same: only the reference's own sums are wanted.
#[inline(always)]
fn equal<F: Narrow>(
    words: &[F::Word; LANES],
    bounds: &Bounds,
    lanes: &mut Lanes,
    counts: &mut Counts,
) -> Option<Largest> {
    let no_zero = bounds.no_zero?;
    let (mut largest, mut would_fail) = (0u32, 0u32);
    for &word in words {
        let magnitude = F::value(word).abs();
        largest = largest.max(magnitude.to_bits());
        would_fail += u32::from(magnitude >= no_zero);
    }
    if largest > f32::MAX.to_bits() || !F::finite(words) {
        return None;
    }
    add_references::<F>(words, lanes);
    counts.zero_would_fail += u64::from(would_fail);
    counts.histogram[0] = counts.histogram[0].wrapping_add(LANES as u64);
    Some(Largest::default())
}

/// What the values tell, and how many errors may be outside; none if a value or an error is not
/// finite.
#[inline(always)]
fn survey_values<F: Narrow>(
    (one, other): Pair<'_, F>,
    bounds: &Bounds,
    row: &mut Row,
    found: &mut Found,
) -> Option<u64> {
    let no_zero = bounds.no_zero?;
    let (mut largest, mut zeroed, mut would_fail, mut doubtful) = (0u32, 0u32, 0u32, 0u32);
    for at in 0..LANES {
        let (reference, candidate) = (F::value(one[at]), F::value(other[at]));
        let error = candidate - reference;
        let magnitude = error.abs();
        largest = largest.max(magnitude.to_bits());
        zeroed += u32::from((candidate == 0.0) & (reference != 0.0));
        doubtful += u32::from(magnitude > bounds.surely_allowed(reference));
        would_fail += u32::from(reference.abs() >= no_zero);
        row.error[at] = error;
        row.places.halves[at] = half_octave(magnitude);
    }
    if largest > f32::MAX.to_bits() || !F::finite(one) || !F::finite(other) {
        return None;
    }
    found.max_error = f64::from(f32::from_bits(largest));
    (found.zeroed, found.would_fail) = (u64::from(zeroed), u64::from(would_fail));
    Some(u64::from(doubtful))
}

/// What the distances tell.
#[inline(always)]
fn survey_steps<F: Narrow>((one, other): Pair<'_, F>, bits: &mut [u8; LANES], found: &mut Found) {
    let parts = one.as_chunks::<PART>().0.iter().zip(other.as_chunks::<PART>().0);
    for ((one, other), bits) in parts.zip(bits.as_chunks_mut::<PART>().0) {
        if F::near((one, other), bits, found).is_none() {
            far(|at| (F::code(one[at]), F::code(other[at])), bits, found);
            found.zero_signs += count_zero_signs::<F>((one, other));
        }
    }
}

/// The bin of an error's magnitude.
#[inline(always)]
fn half_octave(magnitude: f32) -> u8 {
    // The exponent and one bit more, as of an f64, but for the bias.
    const FIRST: u32 = (FIRST_HALF - 2 * (1023 - 127)) as u32;
    (magnitude.to_bits() >> 22).saturating_sub(FIRST).min(HALVES as u32 - 1) as u8
}

/// Whether an error is outside, as `f64` and the distance tell.
#[inline(always)]
fn is_outside<F: Narrow>(rules: &Rules, (one, other): Pair<'_, F>, row: &Row, lane: usize) -> bool {
    let steps = F::code(one[lane]).abs_diff(F::code(other[lane]));
    let allowed = rules.allowed(f64::from(F::value(one[lane])));
    (f64::from(row.error[lane].abs()) > allowed) & (u64::from(steps) > rules.tolerance.max_ulp)
}

#[inline(always)]
fn count_outside<F: Narrow>(
    (rules, bounds): (&Rules, &Bounds),
    (one, other): Pair<'_, F>,
    row: &Row,
    doubtful: u64,
) -> u64 {
    if rules.tolerance == Tolerance::EXACT {
        let differ = row.places.bits.iter().map(|&bits| u16::from(bits > 0));
        return u64::from(differ.sum::<u16>());
    }
    if rules.tolerance.max_ulp == 0 && surely_outside::<F>(bounds, one, &row.error) == doubtful {
        return doubtful;
    }
    let mut outside = 0;
    for lane in 0..LANES {
        outside += u64::from(is_outside::<F>(rules, (one, other), row, lane));
    }
    outside
}

/// The errors of which `f32` can tell that they are outside.
#[inline(always)]
fn surely_outside<F: Narrow>(
    bounds: &Bounds,
    words: &[F::Word; LANES],
    errors: &[f32; LANES],
) -> u64 {
    // What is read within the loop only would keep it from becoming vectors.
    let bounds = *bounds;
    let outside = |at: usize| {
        let reference = F::value(words[at]);
        u32::from(errors[at].abs() > bounds.never_beyond(reference))
    };
    u64::from((0..LANES).map(outside).sum::<u32>())
}

#[inline(always)]
fn add_references<F: Narrow>(words: &[F::Word; LANES], lanes: &mut Lanes) {
    for (sum, &word) in lanes.references.iter_mut().zip(words) {
        let value = f64::from(F::value(word));
        *sum += value * value;
    }
}

#[inline(always)]
fn count_zero_signs<F: Narrow>((one, other): Part<'_, F>) -> u64 {
    let differs = |at: usize| {
        let (one, other) = (F::value(one[at]), F::value(other[at]));
        (one == 0.0) & (other == 0.0) & (one.to_bits() != other.to_bits())
    };
    u64::from((0..PART).map(|at| u32::from(differs(at))).sum::<u32>())
}

#[inline(always)]
fn add_zeroed<F: Narrow>((one, other): Pair<'_, F>, lanes: &mut Lanes) {
    for at in 0..LANES {
        let (reference, candidate) = (F::value(one[at]), F::value(other[at]));
        // Elsewhere a positive zero is added, which changes no sum.
        let taken = f64::from(if candidate == 0.0 { reference } else { 0.0 });
        lanes.zeroed[at] += taken * taken;
    }
}
