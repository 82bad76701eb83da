//! Random values that a tensor's format holds exactly.

use assay_num::Format;
use assay_num::random::SplitMix64;

/// The value of `format` nearest to `value`, inside the finite range.
pub fn nearest(format: Format, value: f64) -> f64 {
    if format == Format::F32 && value.abs() < f64::from(f32::MAX) {
        return f64::from(value as f32);
    }
    let limited = value.clamp(format.min_finite(), format.max_finite());
    format.round(limited)
}

/// A value of either sign with a magnitude in [0.5, 2): ordinary data that is never near zero.
/// Codes get any value but 0, other integer formats whole numbers from 1 to 8 of either sign they
/// have.
pub fn ordinary(format: Format, random: &mut SplitMix64) -> f64 {
    if is_code(format) {
        return whole(format, random, u64::MAX);
    }
    if !format.is_float() {
        return whole(format, random, 8);
    }
    let magnitude = random.range(0.5, 1.99);
    nearest(format, sign_of(format, random) * magnitude)
}

/// True for unsigned integers of up to 8 bits: quantised codes, of which every one is ordinary.
pub fn is_code(format: Format) -> bool {
    !format.is_float() && format.min_finite() == 0.0 && format.max_finite() < 256.0
}

/// A sign that the format has.
fn sign_of(format: Format, random: &mut SplitMix64) -> f64 {
    if format.min_finite() < 0.0 { sign(random) } else { 1.0 }
}

/// A value of either sign whose exponent is uniform over a wide range of the format: 2^±20 for
/// f32 and bf16, less for narrower formats.
pub fn wide(format: Format, random: &mut SplitMix64) -> f64 {
    spread(format, random, wide_exponent(format))
}

/// As [`wide`], with exponents from -5 to 5.
pub fn moderate(format: Format, random: &mut SplitMix64) -> f64 {
    spread(format, random, wide_exponent(format).min(5.0))
}

fn spread(format: Format, random: &mut SplitMix64, range: f64) -> f64 {
    if is_code(format) {
        return ordinary(format, random);
    }
    if !format.is_float() {
        return whole(format, random, 100);
    }
    let exponent = random.range(-range, range).round() as i32;
    let magnitude = random.range(1.0, 1.99) * 2f64.powi(exponent);
    nearest(format, sign_of(format, random) * magnitude)
}

/// A whole number from 1 to `limit`, of either sign where the format has negative numbers.
pub fn whole(format: Format, random: &mut SplitMix64, limit: u64) -> f64 {
    let magnitude = 1.0 + random.below(limit.min(format.max_finite() as u64)) as f64;
    let negative = format.min_finite() < 0.0 && random.below(2) == 1;
    if negative { -magnitude } else { magnitude }
}

/// -1 or 1, each equally likely.
pub fn sign(random: &mut SplitMix64) -> f64 {
    if random.below(2) == 0 { 1.0 } else { -1.0 }
}

fn wide_exponent(format: Format) -> f64 {
    let largest = format.max_finite().log2();
    (largest / 2.0).floor().min(20.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_held_exactly_by_its_format() {
        let mut random = SplitMix64::new(1);
        for format in Format::ALL {
            for _ in 0..500 {
                for value in [ordinary(format, &mut random), wide(format, &mut random)] {
                    assert!(value.is_finite() && value != 0.0, "{value} of {}", format.name());
                    assert_eq!(format.round(value), value, "{}", format.name());
                }
            }
        }
    }

    #[test]
    fn ordinary_codes_take_every_value_but_zero() {
        let mut random = SplitMix64::new(3);
        let mut seen = [false; 256];
        (0..10_000).for_each(|_| seen[ordinary(Format::U8, &mut random) as usize] = true);
        assert!(!seen[0] && seen[1..].iter().all(|seen| *seen));
    }

    #[test]
    fn ordinary_powers_of_two_are_near_one() {
        let mut random = SplitMix64::new(4);
        let values: Vec<f64> = (0..100).map(|_| ordinary(Format::E8m0, &mut random)).collect();
        assert!(values.iter().all(|value| [0.5, 1.0, 2.0].contains(value)), "{values:?}");
    }

    #[test]
    fn wide_values_span_many_binades() {
        let mut random = SplitMix64::new(2);
        let values: Vec<f64> = (0..1000).map(|_| wide(Format::F32, &mut random).abs()).collect();
        assert!(values.iter().any(|value| *value > 2f64.powi(18)));
        assert!(values.iter().any(|value| *value < 2f64.powi(-18)));
    }
}
