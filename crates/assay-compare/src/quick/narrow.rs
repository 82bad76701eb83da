//! Formats whose values `f32` holds.

use super::{BITS, Found, PLACES, Quick, TABLES, note_first};
use crate::bounds::Bounds;
use crate::counts::{Counts, HALVES, LANES, half_octave};
use crate::row::{f16_single, f32_code, short_code};
use crate::scan::{Lanes, Rules};

/// The bytes of an element.
pub(super) trait Word: Copy {
    /// The words of a whole row.
    fn row(bytes: &[u8]) -> Option<&[Self; LANES]>;
}

impl<const BYTES: usize> Word for [u8; BYTES] {
    #[inline(always)]
    fn row(bytes: &[u8]) -> Option<&[Self; LANES]> {
        bytes.as_chunks::<BYTES>().0.first_chunk()
    }
}

/// A format of 16 or 32 bits.
pub(super) trait Narrow {
    type Word: Word;

    /// Two words of equal bits are the same value of the same sign.
    fn bits(word: Self::Word) -> u32;

    fn value(bits: u32) -> f32;

    /// A number that grows by one from each value to the next; both zeros have one.
    fn code(bits: u32) -> i32;
}

pub(super) struct F32;
pub(super) struct Tf32;
pub(super) struct F16;
pub(super) struct Bf16;

impl Narrow for F32 {
    type Word = [u8; 4];

    #[inline(always)]
    fn bits(word: [u8; 4]) -> u32 {
        u32::from_le_bytes(word)
    }

    #[inline(always)]
    fn value(bits: u32) -> f32 {
        f32::from_bits(bits)
    }

    #[inline(always)]
    fn code(bits: u32) -> i32 {
        f32_code(bits)
    }
}

impl Narrow for Tf32 {
    type Word = [u8; 4];

    #[inline(always)]
    fn bits(word: [u8; 4]) -> u32 {
        u32::from_le_bytes(word) & !0x1fff
    }

    #[inline(always)]
    fn value(bits: u32) -> f32 {
        f32::from_bits(bits)
    }

    #[inline(always)]
    fn code(bits: u32) -> i32 {
        f32_code(bits) >> 13
    }
}

impl Narrow for F16 {
    type Word = [u8; 2];

    #[inline(always)]
    fn bits(word: [u8; 2]) -> u32 {
        u32::from(u16::from_le_bytes(word))
    }

    #[inline(always)]
    fn value(bits: u32) -> f32 {
        f16_single(bits)
    }

    #[inline(always)]
    fn code(bits: u32) -> i32 {
        short_code(bits as u16)
    }
}

impl Narrow for Bf16 {
    type Word = [u8; 2];

    #[inline(always)]
    fn bits(word: [u8; 2]) -> u32 {
        u32::from(u16::from_le_bytes(word)) << 16
    }

    #[inline(always)]
    fn value(bits: u32) -> f32 {
        f32::from_bits(bits)
    }

    #[inline(always)]
    fn code(bits: u32) -> i32 {
        f32_code(bits) >> 16
    }
}

/// A row's values, its errors, and how many bits each distance has.
pub(super) struct Row {
    reference: [f32; LANES],
    error: [f32; LANES],
    bits: [u32; LANES],
}

impl Row {
    pub(super) fn new() -> Row {
        Row { reference: [0.0; LANES], error: [0.0; LANES], bits: [0; LANES] }
    }
}

impl Quick {
    #[inline(always)]
    pub(super) fn narrow<F: Narrow>(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        from: u64,
        lanes: &mut Lanes,
        counts: &mut Counts,
    ) -> Option<()> {
        let (one, other) = (F::Word::row(reference)?, F::Word::row(candidate)?);
        let row = &mut self.narrow;
        if reference == candidate {
            return equal::<F>(one, &self.bounds, row, lanes, counts);
        }
        let mut found = Found::default();
        let sure = survey_values::<F>((one, other), &self.bounds, row, &mut found)?;
        survey_steps::<F>((one, other), &mut row.bits, &mut found);
        if !sure {
            found.outside = count_outside::<F>(rules, (one, other), row);
        }
        add_squares(&mut lanes.references, &row.reference);
        add_squares(&mut lanes.errors, &row.error);
        count_in_tables(&mut self.distances, &mut self.errors, row);
        if found.zeros > 0 {
            count_zeros::<F>((one, other), lanes, counts);
        }
        note_first(&mut counts.first_different, from, || {
            (0..LANES).find(|&lane| F::bits(one[lane]) != F::bits(other[lane]))
        });
        if found.outside > 0 {
            note_first(&mut counts.first_outside, from, || {
                (0..LANES).find(|&lane| is_outside::<F>(rules, (one, other), row, lane))
            });
        }
        self.note(&found, counts);
        Some(())
    }
}

/// The words of both rows.
type Pair<'a, F> = (&'a [<F as Narrow>::Word; LANES], &'a [<F as Narrow>::Word; LANES]);

/// A row whose bytes are the same: only the reference's own sums are wanted.
#[inline(always)]
fn equal<F: Narrow>(
    words: &[F::Word; LANES],
    bounds: &Bounds,
    row: &mut Row,
    lanes: &mut Lanes,
    counts: &mut Counts,
) -> Option<()> {
    let no_zero = bounds.no_zero?;
    let (mut largest, mut would_fail) = (0u32, 0u32);
    for (place, &word) in row.reference.iter_mut().zip(words) {
        let value = F::value(F::bits(word));
        *place = value;
        largest = largest.max(value.abs().to_bits());
        would_fail += u32::from(value.abs() >= no_zero);
    }
    if largest > f32::MAX.to_bits() {
        return None;
    }
    add_squares(&mut lanes.references, &row.reference);
    counts.zero_would_fail += u64::from(would_fail);
    counts.histogram[0] = counts.histogram[0].wrapping_add(LANES as u64);
    Some(())
}

/// What the values tell, and whether `f32` could tell which errors are outside; none if any value
/// or error is not finite.
#[inline(always)]
fn survey_values<F: Narrow>(
    (one, other): Pair<'_, F>,
    bounds: &Bounds,
    row: &mut Row,
    found: &mut Found,
) -> Option<bool> {
    let no_zero = bounds.no_zero?;
    let (mut largest, mut zeros, mut would_fail) = (0u32, 0u32, 0u32);
    let (mut outside, mut sure) = (0u32, 0u32);
    for at in 0..LANES {
        let (reference, candidate) = (F::value(F::bits(one[at])), F::value(F::bits(other[at])));
        let error = candidate - reference;
        let magnitude = error.abs();
        largest = largest.max(magnitude.to_bits());
        zeros += u32::from(candidate == 0.0);
        let (beyond, margin) = bounds.beyond(reference, magnitude);
        outside += u32::from(beyond > 0.0);
        sure += u32::from((beyond.abs() > margin) | (magnitude == 0.0));
        would_fail += u32::from(reference.abs() >= no_zero);
        row.reference[at] = reference;
        row.error[at] = error;
    }
    found.max_error = f64::from(f32::from_bits(largest));
    found.zeros = u64::from(zeros);
    found.outside = u64::from(outside);
    found.would_fail = u64::from(would_fail);
    let sure = sure == LANES as u32 && (outside == 0 || bounds.max_steps == 0);
    (largest <= f32::MAX.to_bits()).then_some(sure)
}

/// What the distances tell.
#[inline(always)]
fn survey_steps<F: Narrow>((one, other): Pair<'_, F>, bits: &mut [u32; LANES], found: &mut Found) {
    let (mut low, mut high, mut low_above, mut high_above) = (0u32, 0u32, 0u32, 0u32);
    let (mut max_steps, mut above) = (0u32, 0u32);
    for at in 0..LANES {
        let (one, other) = (F::code(F::bits(one[at])), F::code(F::bits(other[at])));
        let most = one.max(other);
        // One of the two is zero.
        let steps_above = most.wrapping_sub(one) as u32;
        let steps = steps_above | most.wrapping_sub(other) as u32;
        low += steps & 0xffff;
        high += steps >> 16;
        low_above += steps_above & 0xffff;
        high_above += steps_above >> 16;
        max_steps = max_steps.max(steps);
        above += u32::from(other > one);
        bits[at] = bits_of(steps);
    }
    let sum = |low: u32, high: u32| u64::from(low) + (u64::from(high) << 16);
    found.steps = sum(low, high);
    found.steps_above = sum(low_above, high_above);
    found.max_steps = u64::from(max_steps);
    found.above = u64::from(above);
}

/// Whether an error is outside, as `f64` and the distance tell.
#[inline(always)]
fn is_outside<F: Narrow>(rules: &Rules, (one, other): Pair<'_, F>, row: &Row, lane: usize) -> bool {
    let steps = F::code(F::bits(one[lane])).abs_diff(F::code(F::bits(other[lane])));
    let allowed = rules.allowed(f64::from(row.reference[lane]));
    (f64::from(row.error[lane].abs()) > allowed) & (u64::from(steps) > rules.tolerance.max_ulp)
}

#[inline(always)]
fn count_outside<F: Narrow>(rules: &Rules, pair: Pair<'_, F>, row: &Row) -> u64 {
    (0..LANES).map(|lane| u64::from(is_outside::<F>(rules, pair, row, lane))).sum()
}

#[inline(always)]
fn count_in_tables(
    distances: &mut [[u32; TABLES]; BITS],
    errors: &mut [[u32; TABLES]; PLACES],
    row: &Row,
) {
    let bits = row.bits.as_chunks::<TABLES>().0.iter();
    for (bits, error) in bits.zip(row.error.as_chunks::<TABLES>().0) {
        for table in 0..TABLES {
            distances[bits[table] as usize % BITS][table] += 1;
            errors[(error[table].to_bits() >> 22) as usize % PLACES][table] += 1;
        }
    }
}

/// The number of bits of a distance, as a conversion to `f32` tells.
#[inline(always)]
fn bits_of(steps: u32) -> u32 {
    // Without the bit after the first nothing is rounded up to the next power of two. A distance
    // of 32 bits is a negative number here, whose sign makes its exponent the largest.
    let float = (steps & !(steps >> 1)) as i32 as f32;
    (float.to_bits() >> 23).clamp(126, 158) - 126
}

#[inline(always)]
fn add_squares(sums: &mut [f64; LANES], values: &[f32; LANES]) {
    for (sum, &value) in sums.iter_mut().zip(values) {
        *sum += f64::from(value) * f64::from(value);
    }
}

#[inline(always)]
fn count_zeros<F: Narrow>((one, other): Pair<'_, F>, lanes: &mut Lanes, counts: &mut Counts) {
    let (mut zeroed, mut signs) = (0u32, 0u32);
    for at in 0..LANES {
        let (one, other) = (F::bits(one[at]), F::bits(other[at]));
        let (reference, candidate) = (F::value(one), F::value(other));
        let taken = if candidate == 0.0 { reference } else { 0.0 };
        // Elsewhere a positive zero is added, which changes no sum.
        lanes.zeroed[at] += f64::from(taken) * f64::from(taken);
        zeroed += u32::from((candidate == 0.0) & (reference != 0.0));
        signs += u32::from((candidate == 0.0) & (reference == 0.0) & (one != other));
    }
    counts.zeroed += u64::from(zeroed);
    counts.zero_signs += u64::from(signs);
}

/// The bin of a place in a table of errors.
pub(super) fn bin(place: usize) -> usize {
    // The least exponent of the table is that of zero and of what is far below the first bin.
    let least = f32::from_bits((place as u32) << 22);
    if least == 0.0 { 0 } else { half_octave(f64::from(least)).min(HALVES - 1) }
}
