//! The distance of two numbers in units in the last place.

use assay_num::Format;

/// How many numbers of `format` lie between `a` and `b`, element by element, one of the two
/// counted in: 0 for the same number, and for 0 and -0. Both are given as bits, each in the lowest
/// bits of its word. `None` for a pair with a NaN, where there is no distance; an infinity is the
/// neighbour of the largest finite number.
///
/// The shorter of the two ends it.
pub fn ulp_diff(format: Format, a: &[u64], b: &[u64]) -> Vec<Option<u64>> {
    a.iter().zip(b).map(|(a, b)| distance(format, *a, *b)).collect()
}

fn distance(format: Format, a: u64, b: u64) -> Option<u64> {
    if format.decode(a).is_nan() || format.decode(b).is_nan() {
        return None;
    }
    let (a, b) = (place(format, a), place(format, b));
    u64::try_from((a - b).unsigned_abs()).ok()
}

/// Where the number stands in the order of all numbers of its format, 0 at zero.
fn place(format: Format, bits: u64) -> i128 {
    let width = format.bits();
    let mask = u64::MAX >> (64 - width.clamp(1, 64));
    let sign = 1u64 << (width.clamp(1, 64) - 1);
    let bits = bits & mask;
    if format.is_float() && format.decode(sign | 1) < 0.0 {
        let magnitude = i128::from(bits & !sign);
        return if bits & sign == 0 { magnitude } else { -magnitude };
    }
    if !format.is_float() {
        return format.decode(bits) as i128;
    }
    i128::from(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(a: f32, b: f32) -> Option<u64> {
        ulp_diff(Format::F32, &[a.to_bits().into()], &[b.to_bits().into()])[0]
    }

    #[test]
    fn neighbours_are_one_apart_whatever_their_size_and_sign() {
        assert_eq!(f32s(1.0, 1.0 + f32::EPSILON), Some(1));
        assert_eq!(f32s(-1e30, (-1e30f32).next_up()), Some(1));
        assert_eq!(f32s(f32::MAX, f32::INFINITY), Some(1));
        assert_eq!(f32s(0.0, -0.0), Some(0));
        assert_eq!(f32s(f32::from_bits(1), -f32::from_bits(1)), Some(2));
        assert_eq!(f32s(f32::NAN, 1.0), None);
    }

    #[test]
    fn the_farthest_of_doubles_do_not_overflow() {
        let bits = [f64::INFINITY.to_bits(), f64::NEG_INFINITY.to_bits()];
        let far = ulp_diff(Format::F64, &bits[..1], &bits[1..]);
        assert_eq!(far, [Some(2 * 0x7FF0_0000_0000_0000)]);
    }

    #[test]
    fn every_pair_of_bytes_is_as_far_apart_as_counting_says() {
        for format in [Format::E4m3, Format::E5m2, Format::I8] {
            let mut order: Vec<u64> = (0..256).filter(|b| !format.decode(*b).is_nan()).collect();
            order.sort_by(|a, b| format.decode(*a).total_cmp(&format.decode(*b)));
            let counted = order.windows(2).map(|pair| {
                let zeros = pair.iter().all(|bits| format.decode(*bits) == 0.0);
                (ulp_diff(format, &pair[..1], &pair[1..])[0], Some(u64::from(!zeros)))
            });
            for (found, expected) in counted {
                assert_eq!(found, expected, "{format:?}");
            }
        }
    }
}
