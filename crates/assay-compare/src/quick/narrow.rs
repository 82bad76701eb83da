//! Formats whose values `f32` holds.

use assay_record::Tolerance;

use super::steps::{PART, far, near_halves, near_words};
use super::{Found, Quick, note_first};
use crate::bounds::Bounds;
use crate::counts::{Counts, FIRST_HALF, HALVES, LANES};
use crate::row::{f32_code, short_code};
use crate::scan::{Lanes, Largest, Rules, Totals};
use crate::tables;

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

    /// The value, if it is finite.
    fn value(bits: u32) -> f32;

    /// A number that grows by one from each value to the next; both zeros have one.
    fn code(bits: u32) -> i32;

    /// Whether everything is finite that [`Narrow::value`] makes so.
    #[inline(always)]
    fn finite(_: &[Self::Word; LANES]) -> bool {
        true
    }

    /// The distances of a part whose pairs are of one sign, if it is such.
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()>;
}

/// The words of a part of both rows.
type Part<'a, F> = (&'a [<F as Narrow>::Word; PART], &'a [<F as Narrow>::Word; PART]);

/// The words of both rows.
type Pair<'a, F> = (&'a [<F as Narrow>::Word; LANES], &'a [<F as Narrow>::Word; LANES]);

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

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        near_words(|at| (Self::bits(pair.0[at]), Self::bits(pair.1[at])), 0, bits, found)
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

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        near_words(|at| (Self::bits(pair.0[at]), Self::bits(pair.1[at])), 13, bits, found)
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
        // Sign and exponent in the places of an f32's; the exponent is 112 too small, of normals
        // and subnormals alike.
        let wide = (i32::from(bits as i16) << 13) as u32 & 0x8fff_e000;
        f32::from_bits(wide) * f32::from_bits((127 + 112) << 23)
    }

    #[inline(always)]
    fn code(bits: u32) -> i32 {
        short_code(bits as u16)
    }

    #[inline(always)]
    fn finite(words: &[[u8; 2]; LANES]) -> bool {
        let magnitudes = words.iter().map(|&word| u16::from_le_bytes(word) & 0x7fff);
        magnitudes.fold(0, u16::max) < 0x7c00
    }

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        let half = u16::from_le_bytes;
        near_halves(|at| (half(pair.0[at]), half(pair.1[at])), bits, found)
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

    #[inline(always)]
    fn near(pair: Part<'_, Self>, bits: &mut [u8; PART], found: &mut Found) -> Option<()> {
        let half = u16::from_le_bytes;
        near_halves(|at| (half(pair.0[at]), half(pair.1[at])), bits, found)
    }
}

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
        let Totals { counts, tables, lanes } = totals;
        if reference == candidate {
            return equal::<F>(one, &self.bounds, lanes, counts);
        }
        let (row, mut found) = (&mut self.narrow, Found::default());
        let doubtful = survey_values::<F>((one, other), &self.bounds, row, &mut found)?;
        survey_steps::<F>((one, other), &mut row.places.bits, &mut found);
        if doubtful > 0 && found.max_steps > rules.tolerance.max_ulp {
            let rules = (rules, &self.bounds);
            found.outside = count_outside::<F>(rules, (one, other), row, doubtful);
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
            (0..LANES).find(|&lane| F::bits(one[lane]) != F::bits(other[lane]))
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
        let magnitude = F::value(F::bits(word)).abs();
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
        let (reference, candidate) = (F::value(F::bits(one[at])), F::value(F::bits(other[at])));
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
            let code = |word| F::code(F::bits(word));
            far(|at| (code(one[at]), code(other[at])), bits, found);
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
    let (one, other) = (F::bits(one[lane]), F::bits(other[lane]));
    let steps = F::code(one).abs_diff(F::code(other));
    let allowed = rules.allowed(f64::from(F::value(one)));
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
        let reference = F::value(F::bits(words[at]));
        u32::from(errors[at].abs() > bounds.never_beyond(reference))
    };
    u64::from((0..LANES).map(outside).sum::<u32>())
}

#[inline(always)]
fn add_references<F: Narrow>(words: &[F::Word; LANES], lanes: &mut Lanes) {
    for (sum, &word) in lanes.references.iter_mut().zip(words) {
        let value = f64::from(F::value(F::bits(word)));
        *sum += value * value;
    }
}

#[inline(always)]
fn count_zero_signs<F: Narrow>((one, other): Part<'_, F>) -> u64 {
    let differs = |at: usize| {
        let (one, other) = (F::bits(one[at]), F::bits(other[at]));
        (F::value(one) == 0.0) & (F::value(other) == 0.0) & (one != other)
    };
    u64::from((0..PART).map(|at| u32::from(differs(at))).sum::<u32>())
}

#[inline(always)]
fn add_zeroed<F: Narrow>((one, other): Pair<'_, F>, lanes: &mut Lanes) {
    for at in 0..LANES {
        let (reference, candidate) = (F::value(F::bits(one[at])), F::value(F::bits(other[at])));
        // Elsewhere a positive zero is added, which changes no sum.
        let taken = f64::from(if candidate == 0.0 { reference } else { 0.0 });
        lanes.zeroed[at] += taken * taken;
    }
}
