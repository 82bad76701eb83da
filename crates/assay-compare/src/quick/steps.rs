//! Distances of rows of 16- and 32-bit formats.
//!
//! Where no pair differs in sign a distance is the difference of the bits. Other rows, and those
//! with distances that are rare, are looked at once more.

use super::Found;

/// Elements that are looked at, and perhaps once more, together.
pub(super) const PART: usize = 128;

/// Distances below this add up within 32 bits.
const NEAR: u32 = 1 << 25;

/// Distances of 16-bit words below this add up within 16 bits.
const NEAR_HALF: u16 = 1 << 9;

const _: () = assert!(NEAR as u64 * PART as u64 <= 1 << 32, "the sums hold");
const _: () = assert!(NEAR_HALF as u32 * PART as u32 <= 1 << 16, "the sums hold");

/// The numbers of bits of the distances of a part.
type Bits = [u8; PART];

/// The distances of pairs of 32-bit words of the same sign; none, with nothing found, if they are
/// not of this kind. A distance is `1 << shift` of the words.
#[inline(always)]
pub(super) fn near_words(
    pair: impl Fn(usize) -> (u32, u32),
    shift: u32,
    bits: &mut Bits,
    found: &mut Found,
) -> Option<()> {
    let (mut mixed, mut total, mut total_above) = (0i32, 0u32, 0u32);
    let (mut most, mut above) = (0u32, 0u32);
    for (at, bits) in bits.iter_mut().enumerate() {
        let (one, other) = pair(at);
        let (one, other) = (one as i32, other as i32);
        mixed |= one ^ other;
        let sign = one >> 31;
        let up = ((other.wrapping_sub(one) >> shift) ^ sign).wrapping_sub(sign);
        let steps = up.unsigned_abs();
        total = total.wrapping_add(steps);
        total_above = total_above.wrapping_add(if up > 0 { steps } else { 0 });
        most = most.max(steps);
        above += u32::from(up > 0);
        *bits = bits_of(steps);
    }
    if mixed < 0 || most >= NEAR {
        return None;
    }
    note(found, (total, total_above), (most, above));
    Some(())
}

/// As [`near_words`], of 16-bit words.
#[inline(always)]
pub(super) fn near_halves(
    pair: impl Fn(usize) -> (u16, u16),
    bits: &mut Bits,
    found: &mut Found,
) -> Option<()> {
    // Nothing here is wider than the words, so that as many are taken at once as fit.
    let (mut mixed, mut total, mut total_above) = (0i16, 0u16, 0u16);
    let (mut most, mut above) = (0u16, 0u16);
    for (at, bits) in bits.iter_mut().enumerate() {
        let (one, other) = pair(at);
        let (one, other) = (one as i16, other as i16);
        mixed |= one ^ other;
        let sign = one >> 15;
        let up = (other.wrapping_sub(one) ^ sign).wrapping_sub(sign);
        let steps = up.unsigned_abs();
        total = total.wrapping_add(steps);
        total_above = total_above.wrapping_add(if up > 0 { steps } else { 0 });
        most = most.max(steps);
        above += u16::from(up > 0);
        *bits = (u16::BITS - steps.leading_zeros()) as u8;
    }
    if mixed < 0 || most >= NEAR_HALF {
        return None;
    }
    let totals = (u32::from(total), u32::from(total_above));
    note(found, totals, (u32::from(most), u32::from(above)));
    Some(())
}

#[inline(always)]
fn note(found: &mut Found, (total, total_above): (u32, u32), (most, above): (u32, u32)) {
    found.steps += u64::from(total);
    found.steps_above += u64::from(total_above);
    found.max_steps = found.max_steps.max(u64::from(most));
    found.above += u64::from(above);
}

/// The distances of any pairs, by numbers that grow by one from each value to the next.
#[inline(always)]
pub(super) fn far(codes: impl Fn(usize) -> (i32, i32), bits: &mut Bits, found: &mut Found) {
    let (mut low, mut high, mut low_above, mut high_above) = (0u32, 0u32, 0u32, 0u32);
    let (mut most, mut above) = (0u32, 0u32);
    for (at, bits) in bits.iter_mut().enumerate() {
        let (one, other) = codes(at);
        let larger = one.max(other);
        // One of the two is zero.
        let steps_above = larger.wrapping_sub(one) as u32;
        let steps = steps_above | larger.wrapping_sub(other) as u32;
        low += steps & 0xffff;
        high += steps >> 16;
        low_above += steps_above & 0xffff;
        high_above += steps_above >> 16;
        most = most.max(steps);
        above += u32::from(other > one);
        *bits = bits_of(steps);
    }
    note(found, (low, low_above), (most, above));
    found.steps += u64::from(high) << 16;
    found.steps_above += u64::from(high_above) << 16;
}

/// The number of bits of a distance, as a conversion to `f32` tells.
#[inline(always)]
fn bits_of(steps: u32) -> u8 {
    // Without the bit after the first nothing is rounded up to the next power of two. A distance
    // of 32 bits is a negative number here, whose sign makes its exponent the largest.
    let float = (steps & !(steps >> 1)) as i32 as f32;
    ((float.to_bits() >> 23).clamp(126, 158) - 126) as u8
}
