//! Sums of products of tensor cores, eight columns at a time.
//!
//! One step sums at most [`STEP`] products of two short floats with an accumulator. A term is less
//! than 2^27 units of the last fraction bit, so sixteen fit 32 bits; f64 holds the sum of all.

use super::tensor::{Elements, Format, LEAST, Layout, Output, Rule};
use super::tensor_plain;

/// Columns side by side.
const LANES: usize = 8;

/// Products that one step sums at most; longer ones are done plainly.
const STEP: usize = 32;

/// The exponent of a zero: less than any other.
const NONE: i32 = -2000;

/// Fraction bits of the accumulators as they are opened.
const ACCUMULATOR_FRACTION: u32 = 25;

/// Elements taken apart: magnitudes, signs as masks, exponents.
#[derive(Clone, Copy)]
struct Parts<const N: usize> {
    magnitude: [i32; N],
    sign: [i32; N],
    exponent: [i32; N],
}

impl<const N: usize> Parts<N> {
    const ZERO: Parts<N> = Parts { magnitude: [0; N], sign: [0; N], exponent: [NONE; N] };

    /// Takes elements apart. Says whether an infinity or a NaN is among them.
    #[inline(always)]
    fn open(bits: &[u32; N], format: Format) -> (Parts<N>, bool) {
        let layout = format.layout();
        let bias = (1 << (layout.exponent - 1)) - 1;
        let (least, fraction) = (least_special(format), layout.fraction);
        let mut parts = Parts::ZERO;
        let mut special = false;
        for n in 0..N {
            let own = bits[n] >> layout.low;
            let magnitude = own & ((1 << (layout.exponent + fraction)) - 1);
            let field = magnitude >> fraction;
            let hidden = u32::from(field != 0) << fraction;
            parts.magnitude[n] = (magnitude & ((1 << fraction) - 1) | hidden) as i32;
            parts.sign[n] = -((own >> (layout.exponent + fraction) & 1) as i32);
            let exponent = field.max(1) as i32 - bias;
            parts.exponent[n] = if magnitude == 0 { NONE } else { exponent };
            special |= magnitude >= least;
        }
        (parts, special)
    }
}

/// As [`multiply_add`], for hosts with AVX2.
///
/// # Safety
/// The host has the features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
pub(crate) unsafe fn multiply_add_wide(
    rule: &Rule,
    a: Elements<'_>,
    b: Elements<'_>,
    depth: usize,
    c: &mut [u32],
) {
    by_format::<true>(rule, a, b, depth, c);
}

/// `c += a * b` for rules that align, as [`super::tensor::multiply_add`].
pub(crate) fn multiply_add(
    rule: &Rule,
    a: Elements<'_>,
    b: Elements<'_>,
    depth: usize,
    c: &mut [u32],
) {
    by_format::<false>(rule, a, b, depth, c);
}

/// `WIDE` says that the caller is compiled for AVX2.
#[inline(always)]
fn by_format<const WIDE: bool>(
    rule: &Rule,
    a: Elements<'_>,
    b: Elements<'_>,
    depth: usize,
    c: &mut [u32],
) {
    let columns = b.bits.len() / depth.max(1);
    let fits = rule.step.min(depth) <= STEP && columns.is_multiple_of(LANES);
    if !fits || rule.fraction > ACCUMULATOR_FRACTION {
        return tensor_plain::multiply_add(rule, a, b, depth, c);
    }
    for first in (0..columns).step_by(LANES) {
        let b = Elements { bits: &b.bits[first * depth..(first + LANES) * depth], ..b };
        for start in (0..depth).step_by(rule.step.min(depth)) {
            let range = (start, rule.step.min(depth - start));
            step::<WIDE>(rule, a, b, depth, range, c.chunks_exact_mut(columns), first);
        }
    }
}

/// Elements as numbers, and the exponents that terms are aligned by.
struct Floats<const N: usize> {
    value: [f32; N],
    exponent: [i32; N],
}

impl<const N: usize> Floats<N> {
    const ZERO: Floats<N> = Floats { value: [0.0; N], exponent: [NONE; N] };

    /// The values of elements. Says whether an infinity or a NaN is among them.
    #[inline(always)]
    fn open<const WIDE: bool>(bits: &[u32; N], format: Format) -> (Floats<N>, bool) {
        Floats::open_as::<WIDE>(bits, format.layout(), least_special(format))
    }

    /// As [`Floats::open`], for magnitudes that are special from `least` on.
    #[inline(always)]
    fn open_as<const WIDE: bool>(bits: &[u32; N], layout: Layout, least: u32) -> (Floats<N>, bool) {
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: only callers that are compiled for AVX2 are wide.
            return unsafe { wide::open(bits, layout, least) };
        }
        let bias = (1 << (layout.exponent - 1)) - 1;
        // Moves the exponent from one bias to the other; exact, of subnormals too.
        let rebias = f32::from_bits(((127 - bias + 127) as u32) << 23);
        let mut floats = Floats::ZERO;
        let mut largest = 0;
        for n in 0..N {
            let own = bits[n] >> layout.low;
            let magnitude = own & ((1 << (layout.exponent + layout.fraction)) - 1);
            let value = f32::from_bits(magnitude << (23 - layout.fraction)) * rebias;
            let exponent = ((value.to_bits() >> 23) as i32 - 127).max(1 - bias);
            let sign = own >> (layout.exponent + layout.fraction) & 1;
            floats.value[n] = f32::from_bits(value.to_bits() | sign << 31);
            floats.exponent[n] = if magnitude == 0 { NONE } else { exponent };
            largest = largest.max(magnitude);
        }
        (floats, largest >= least)
    }
}

/// The least magnitude of a format that is an infinity or a NaN.
#[inline(always)]
fn least_special(format: Format) -> u32 {
    let layout = format.layout();
    match format {
        Format::E4m3 => 0x7f,
        Format::E3m2 | Format::E2m3 | Format::E2m1 => u32::MAX,
        _ => ((1 << layout.exponent) - 1) << layout.fraction,
    }
}

/// One step along the depth, of all rows and eight columns.
#[inline(always)]
fn step<'c, const WIDE: bool>(
    rule: &Rule,
    a: Elements<'_>,
    b: Elements<'_>,
    depth: usize,
    (start, count): (usize, usize),
    rows: impl Iterator<Item = &'c mut [u32]>,
    first: usize,
) {
    let mut columns = [Floats::<LANES>::ZERO; STEP];
    let mut special_columns = false;
    for (k, floats) in columns[..count].iter_mut().enumerate() {
        let bits = std::array::from_fn(|lane| b.bits[lane * depth + start + k]);
        let (opened, special) = Floats::open::<WIDE>(&bits, b.format);
        *floats = opened;
        special_columns |= special;
    }
    for (row, c) in rows.enumerate() {
        let elements = &a.bits[row * depth + start..][..count];
        let Some(c) = c.get_mut(first..).and_then(|c| c.first_chunk_mut::<LANES>()) else { return };
        let done = !special_columns
            && if count <= STEP / 2 {
                row_of::<{ STEP / 2 }, WIDE>(rule, elements, a.format, &columns, c)
            } else {
                row_of::<STEP, WIDE>(rule, elements, a.format, &columns, c)
            };
        if !done {
            row_of_integers(rule, Elements { bits: elements, ..a }, b, depth, start, c);
        }
    }
}

/// Sums of a row and eight columns in floats. Says whether it could: not with an infinity or a NaN,
/// nor far from one.
#[inline(always)]
fn row_of<const N: usize, const WIDE: bool>(
    rule: &Rule,
    elements: &[u32],
    format: Format,
    columns: &[Floats<LANES>; STEP],
    c: &mut [u32; LANES],
) -> bool {
    let mut bits = [0; N];
    bits[..elements.len()].copy_from_slice(elements);
    let (a, special) = Floats::open::<WIDE>(&bits, format);
    !special && dot_floats::<N, WIDE>(rule, &a, &columns[..elements.len()], c)
}

/// Where the largest exponents must lie for [`dot_floats`]: nothing overflows, and products that
/// f32 cannot hold are so small that they are cut away.
const NEAR: std::ops::RangeInclusive<i32> = -100..=125;

/// Sums of a row and eight columns.
///
/// Products of two elements are exact in f32, and so is their alignment, a multiplication by a
/// power of two; the conversion to integers cuts toward zero, as aligning a magnitude does.
#[inline(always)]
fn dot_floats<const N: usize, const WIDE: bool>(
    rule: &Rule,
    a: &Floats<N>,
    columns: &[Floats<LANES>],
    c: &mut [u32; LANES],
) -> bool {
    let layout = if rule.result == Output::Half { HALF } else { SINGLE };
    let least = ((1 << layout.exponent) - 1) << layout.fraction;
    let (old, special) = Floats::open_as::<WIDE>(c, layout, least);
    let mut largest = [LEAST; LANES];
    for lane in 0..LANES {
        largest[lane] = largest[lane].max(old.exponent[lane]);
    }
    largest = largest_of::<WIDE>(columns, &a.exponent, largest);
    if special || is_far::<WIDE>(&largest) {
        return false;
    }
    let fraction = rule.fraction as i32;
    let scale = largest.map(|largest| f32::from_bits(((fraction - largest + 127) as u32) << 23));
    let mut sums = [0.0; LANES];
    for (columns, values) in columns.chunks(16).zip(a.value.chunks(16)) {
        let units = units_of::<WIDE>(columns, values, &scale);
        for lane in 0..LANES {
            sums[lane] += f64::from(units[lane]);
        }
    }
    for lane in 0..LANES {
        let term = old.value[lane] * scale[lane];
        // SAFETY: it is not special, and less than 2^26 units because the largest exponent is at
        // least its own.
        sums[lane] += f64::from(unsafe { term.to_int_unchecked::<i32>() });
        sums[lane] *= unit(rule, largest[lane]);
    }
    match rule.result {
        // One unit is a normal f32 here, so what is cut to 24 bits fits, or is an infinity.
        Output::Single => {
            for lane in 0..LANES {
                let kept = f64::from_bits(sums[lane].to_bits() >> 29 << 29);
                c[lane] = (kept as f32).to_bits();
            }
        }
        _ => round(rule.result, &sums, c),
    }
    true
}

/// The largest of some exponents and those of the products of a row and eight columns.
#[inline(always)]
fn largest_of<const WIDE: bool>(
    columns: &[Floats<LANES>],
    exponents: &[i32],
    mut largest: [i32; LANES],
) -> [i32; LANES] {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: only callers that are compiled for AVX2 are wide.
        return unsafe { wide::largest_of(columns, exponents, largest) };
    }
    for (b, &exponent) in columns.iter().zip(exponents) {
        for lane in 0..LANES {
            largest[lane] = largest[lane].max(exponent + b.exponent[lane]);
        }
    }
    largest
}

/// Whether an exponent is not in [`NEAR`].
#[inline(always)]
fn is_far<const WIDE: bool>(largest: &[i32; LANES]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: only callers that are compiled for AVX2 are wide.
        return unsafe { wide::is_far(largest) };
    }
    largest.iter().any(|exponent| !NEAR.contains(exponent))
}

/// The sums of at most sixteen products of a row and eight columns, scaled and cut. No product is
/// special, and scaled they are less than 2^27.
#[inline(always)]
fn units_of<const WIDE: bool>(
    columns: &[Floats<LANES>],
    values: &[f32],
    scale: &[f32; LANES],
) -> [i32; LANES] {
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: only callers that are compiled for AVX2 are wide.
        return unsafe { wide::units_of(columns, values, scale) };
    }
    let mut units = [0_i32; LANES];
    for (b, &value) in columns.iter().zip(values) {
        for lane in 0..LANES {
            units[lane] += (value * b.value[lane] * scale[lane]) as i32;
        }
    }
    units
}

/// What takes the time, by hand: left to itself the compiler does much of it lane by lane.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::cast_ptr_alignment, reason = "the loads and stores take any alignment")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_and_si256, _mm256_blendv_epi8,
        _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32,
        _mm256_cvttps_epi32, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_max_epi32,
        _mm256_movemask_epi8, _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi32, _mm256_set1_ps,
        _mm256_setzero_si256, _mm256_sll_epi32, _mm256_slli_epi32, _mm256_srl_epi32,
        _mm256_srli_epi32, _mm256_storeu_si256, _mm256_sub_epi32,
    };

    use super::{Floats, LANES, Layout, NEAR, NONE};

    /// See [`super::Floats::open_as`].
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn open<const N: usize>(
        bits: &[u32; N],
        layout: Layout,
        least: u32,
    ) -> (Floats<N>, bool) {
        let bias = (1 << (layout.exponent - 1)) - 1;
        let count = |bits: u32| _mm_cvtsi32_si128(bits as i32);
        let word = |word: i32| _mm256_set1_epi32(word);
        let (low, field) = (count(layout.low), layout.exponent + layout.fraction);
        let rebias = _mm256_set1_ps(f32::from_bits(((127 - bias + 127) as u32) << 23));
        let last = word(least.min(1 << 31).wrapping_sub(1) as i32);
        let mut floats = Floats::ZERO;
        let mut special = _mm256_setzero_si256();
        let chunks = bits.as_chunks::<LANES>().0.iter();
        let values = floats.value.as_chunks_mut::<LANES>().0.iter_mut();
        let exponents = floats.exponent.as_chunks_mut::<LANES>().0.iter_mut();
        for ((bits, value), exponent) in chunks.zip(values).zip(exponents) {
            // SAFETY: a pointer to eight words; any alignment will do.
            let bits = unsafe { _mm256_loadu_si256(bits.as_ptr().cast::<__m256i>()) };
            let own = _mm256_srl_epi32(bits, low);
            let magnitude = _mm256_and_si256(own, word(((1_u32 << field) - 1) as i32));
            let moved = _mm256_sll_epi32(magnitude, count(23 - layout.fraction));
            let number = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(moved), rebias));
            let own_exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(number), word(127));
            let own_exponent = _mm256_max_epi32(own_exponent, word(1 - bias));
            let zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
            let sign = _mm256_slli_epi32::<31>(_mm256_srl_epi32(own, count(field)));
            special = _mm256_or_si256(special, _mm256_cmpgt_epi32(magnitude, last));
            // SAFETY: pointers to eight words each, as above.
            unsafe {
                let (number, own) = (
                    _mm256_or_si256(number, sign),
                    _mm256_blendv_epi8(own_exponent, word(NONE), zero),
                );
                _mm256_storeu_si256(value.as_mut_ptr().cast::<__m256i>(), number);
                _mm256_storeu_si256(exponent.as_mut_ptr().cast::<__m256i>(), own);
            }
        }
        (floats, _mm256_movemask_epi8(special) != 0)
    }

    /// See [`super::is_far`].
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn is_far(largest: &[i32; LANES]) -> bool {
        // SAFETY: a pointer to eight words; any alignment will do.
        let largest = unsafe { _mm256_loadu_si256(largest.as_ptr().cast::<__m256i>()) };
        let below = _mm256_cmpgt_epi32(_mm256_set1_epi32(*NEAR.start()), largest);
        let above = _mm256_cmpgt_epi32(largest, _mm256_set1_epi32(*NEAR.end()));
        _mm256_movemask_epi8(_mm256_or_si256(below, above)) != 0
    }

    /// See [`super::largest_of`].
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn largest_of(
        columns: &[Floats<LANES>],
        exponents: &[i32],
        mut largest: [i32; LANES],
    ) -> [i32; LANES] {
        // SAFETY: all pointers are to arrays of eight words; unaligned access is allowed.
        unsafe {
            let mut best = _mm256_loadu_si256((&raw const largest).cast::<__m256i>());
            for (b, &exponent) in columns.iter().zip(exponents) {
                let b = _mm256_loadu_si256((&raw const b.exponent).cast::<__m256i>());
                best = _mm256_max_epi32(best, _mm256_add_epi32(b, _mm256_set1_epi32(exponent)));
            }
            _mm256_storeu_si256((&raw mut largest).cast::<__m256i>(), best);
        }
        largest
    }

    /// See [`super::units_of`].
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn units_of(
        columns: &[Floats<LANES>],
        values: &[f32],
        scale: &[f32; LANES],
    ) -> [i32; LANES] {
        let mut units = [0; LANES];
        // SAFETY: as above.
        unsafe {
            let scale = _mm256_loadu_ps(scale.as_ptr());
            let mut sums = _mm256_setzero_si256();
            for (b, &value) in columns.iter().zip(values) {
                let product =
                    _mm256_mul_ps(_mm256_loadu_ps(b.value.as_ptr()), _mm256_set1_ps(value));
                sums = _mm256_add_epi32(sums, _mm256_cvttps_epi32(_mm256_mul_ps(product, scale)));
            }
            _mm256_storeu_si256((&raw mut units).cast::<__m256i>(), sums);
        }
        units
    }
}

/// What the sum of cut terms counts.
#[inline(always)]
fn unit(rule: &Rule, largest: i32) -> f64 {
    f64::from_bits(((largest - rule.fraction as i32 + 1023) as u64) << 52)
}

/// The accumulators' fields.
const SINGLE: Layout = Layout { exponent: 8, fraction: 23, low: 0 };
/// See [`SINGLE`].
const HALF: Layout = Layout { exponent: 5, fraction: 10, low: 0 };

/// As [`row_of`], in integers, for all exponents; what is special is done element by element.
#[inline(never)]
fn row_of_integers(
    rule: &Rule,
    a: Elements<'_>,
    b: Elements<'_>,
    depth: usize,
    start: usize,
    c: &mut [u32; LANES],
) {
    let count = a.bits.len();
    let mut columns = [Parts::<LANES>::ZERO; STEP];
    let mut special_columns = false;
    for (k, parts) in columns[..count].iter_mut().enumerate() {
        let bits = std::array::from_fn(|lane| b.bits[lane * depth + start + k]);
        let (opened, special) = Parts::open(&bits, b.format);
        *parts = opened;
        special_columns |= special;
    }
    let mut bits = [0; STEP];
    bits[..count].copy_from_slice(a.bits);
    let (opened, special) = Parts::open(&bits, a.format);
    let formats = (a.format, b.format);
    if special || special_columns || !dot(rule, formats, &opened, &columns, count, c) {
        for (lane, c) in c.iter_mut().enumerate() {
            let column = &b.bits[lane * depth + start..][..count];
            *c = tensor_plain::dot(rule, a, Elements { bits: column, ..b }, *c);
        }
    }
}

/// Sums of a row and eight columns. Says whether it could: not with an infinity or a NaN in `c`.
#[inline(always)]
fn dot(
    rule: &Rule,
    formats: (Format, Format),
    a: &Parts<STEP>,
    columns: &[Parts<LANES>; STEP],
    count: usize,
    c: &mut [u32; LANES],
) -> bool {
    let (opened, special) = open_accumulators(rule, c);
    if special {
        return false;
    }
    let mut largest = [LEAST; LANES];
    for lane in 0..LANES {
        largest[lane] = largest[lane].max(opened.exponent[lane]);
    }
    for (k, b) in columns[..count].iter().enumerate() {
        for lane in 0..LANES {
            largest[lane] = largest[lane].max(a.exponent[k] + b.exponent[lane]);
        }
    }
    let fraction = formats.0.layout().fraction + formats.1.layout().fraction;
    let (left, right) =
        (rule.fraction.saturating_sub(fraction), fraction.saturating_sub(rule.fraction) as i32);
    let mut sums = [0.0; LANES];
    for start in (0..count).step_by(16) {
        let mut units = [0_i32; LANES];
        for k in start..count.min(start + 16) {
            let (b, magnitude) = (&columns[k], a.magnitude[k] << left);
            for lane in 0..LANES {
                let gap = largest[lane] - (a.exponent[k] + b.exponent[lane]) + right;
                let sign = a.sign[k] ^ b.sign[lane];
                let cut = (magnitude * b.magnitude[lane]) as u32 >> gap.min(31);
                units[lane] += (cut as i32 ^ sign) - sign;
            }
        }
        for lane in 0..LANES {
            sums[lane] += f64::from(units[lane]);
        }
    }
    let excess = (ACCUMULATOR_FRACTION - rule.fraction) as i32;
    for lane in 0..LANES {
        let gap = (largest[lane] - opened.exponent[lane] + excess).min(31);
        let cut = (opened.magnitude[lane] as u32 >> gap) as i32;
        let sum = sums[lane] + f64::from((cut ^ opened.sign[lane]) - opened.sign[lane]);
        sums[lane] = sum * unit(rule, largest[lane]);
    }
    round(rule.result, &sums, c);
    true
}

/// Accumulators with [`ACCUMULATOR_FRACTION`] fraction bits.
#[inline(always)]
fn open_accumulators(rule: &Rule, c: &[u32; LANES]) -> (Parts<LANES>, bool) {
    let mut parts = Parts::ZERO;
    let mut special = false;
    let (exponent_bits, fraction) = if rule.result == Output::Half { (5, 10) } else { (8, 23) };
    let top = (1_u32 << exponent_bits) - 1;
    for lane in 0..LANES {
        let magnitude = c[lane] & ((1 << (exponent_bits + fraction)) - 1);
        let field = magnitude >> fraction;
        let hidden = u32::from(field != 0) << fraction;
        let mantissa = magnitude & ((1 << fraction) - 1) | hidden;
        parts.magnitude[lane] = (mantissa << (ACCUMULATOR_FRACTION - fraction)) as i32;
        parts.sign[lane] = -((c[lane] >> (exponent_bits + fraction) & 1) as i32);
        let exponent = field.max(1) as i32 - (top >> 1) as i32;
        parts.exponent[lane] = if magnitude == 0 { NONE } else { exponent };
        special |= field == top;
    }
    (parts, special)
}

/// The least normal f32.
const NORMAL: f64 = f32::MIN_POSITIVE as f64;

#[inline(always)]
fn round(result: Output, sums: &[f64; LANES], c: &mut [u32; LANES]) {
    let dropped = match result {
        Output::Half => {
            for lane in 0..LANES {
                c[lane] = half(sums[lane]);
            }
            return;
        }
        Output::Single => 29,
        Output::Short => 39,
    };
    let mut tiny = false;
    for lane in 0..LANES {
        let kept = f64::from_bits(sums[lane].to_bits() >> dropped << dropped);
        // What is cut to 24 bits fits, or is an infinity.
        c[lane] = (kept as f32).to_bits();
        tiny |= sums[lane].abs() < NORMAL && sums[lane] != 0.0;
    }
    if tiny {
        for lane in 0..LANES {
            if sums[lane].abs() < NORMAL {
                c[lane] = subnormal(sums[lane], dropped - 29);
            }
        }
    }
}

/// An f32 of less than the least normal one, cut, without its lowest bits.
fn subnormal(sum: f64, without: u32) -> u32 {
    // In units of 2^-149.
    let units = (sum.abs() * f64::from_bits((1023 + 149) << 52)) as u32;
    let sign = (sum.to_bits() >> 63) as u32;
    sign << 31 | units >> without << without
}

/// The nearest f16.
#[inline(always)]
fn half(sum: f64) -> u32 {
    let bits = sum.to_bits();
    let sign = (bits >> 48) as u32 & 0x8000;
    let magnitude = sum.abs();
    if magnitude < 6.103_515_625e-5 {
        // Below 2^-14 the last place is 2^-24; the sum of the two has it as its last place too.
        let anchor = 1.5 * 268_435_456.0;
        let units = ((magnitude + anchor).to_bits() - anchor.to_bits()) as u32;
        // A zero has no sign, whatever was rounded to it.
        return if units == 0 { 0 } else { sign | units };
    }
    let bits = magnitude.to_bits();
    let rounded = bits + (1 << 41) - 1 + (bits >> 42 & 1);
    let half = (rounded >> 42).wrapping_sub((1023 - 15) << 10);
    sign | (half as u32).min(0x7c00)
}
