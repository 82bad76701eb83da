//! `fma` on hosts without a fused multiply-add, exact to the last bit.
//!
//! The product of two f32 is exact in f64. The sum with the third operand is rounded to odd: to
//! whichever neighbour has an odd last bit when it is not exact. A number rounded to odd with two
//! or more bits to spare rounds on to f32 as the exact one would (Boldo and Melquiond, 2008).
//! Adding in f64 and rounding twice is wrong on ties.

/// `a * b + c` in f64, rounded to odd. Infinities and NaN come out as in f64 arithmetic.
#[inline(always)]
pub(crate) fn product_sum_to_odd(a: f64, b: f64, c: f64) -> f64 {
    sum_to_odd(a * b, c)
}

/// `x + y` in f64, rounded to odd.
#[inline(always)]
pub(crate) fn sum_to_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    // Knuth's TwoSum: the exact error of `sum`.
    let y_part = sum - x;
    let x_part = sum - y_part;
    let error = (x - x_part) + (y - y_part);
    let bits = sum.to_bits();
    let away = (error > 0.0) == (sum > 0.0);
    // An even last bit moves to the odd neighbour on the side of the error.
    let moved = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error != 0.0 && error.is_finite();
    if inexact && bits & 1 == 0 { f64::from_bits(moved) } else { sum }
}

/// `a * b + c` with one rounding, on any host.
#[inline(always)]
pub(crate) fn fma_exact(a: f32, b: f32, c: f32) -> f32 {
    product_sum_to_odd(f64::from(a), f64::from(b), f64::from(c)) as f32
}

/// `a * b + c` with one rounding. `WIDE` promises that the caller is compiled for a fused unit.
#[inline(always)]
pub(crate) fn fma<const WIDE: bool>(a: f32, b: f32, c: f32) -> f32 {
    if WIDE || cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { fma_exact(a, b, c) }
}

/// A directed rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Zero,
    Down,
    Up,
}

/// Rounds a number that was rounded to odd, or is exact, to f32 in a direction. Infinities and NaN
/// stay.
#[inline(always)]
pub(crate) fn to_direction(odd: f64, direction: Direction) -> f32 {
    let nearest = odd as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    // Stepping over zero changes the sign; anything else changes the magnitude by one.
    let below = if bits == 0 {
        0x8000_0001
    } else if odd > 0.0 {
        bits - 1
    } else {
        bits.wrapping_add(1)
    };
    let above = if bits == 0x8000_0000 {
        1
    } else if odd < 0.0 {
        bits.wrapping_sub(1)
    } else {
        bits.wrapping_add(1)
    };
    let (down, up) = (back > odd, back < odd);
    let moved = match direction {
        Direction::Down => {
            if down {
                below
            } else {
                bits
            }
        }
        Direction::Up => {
            if up {
                above
            } else {
                bits
            }
        }
        Direction::Zero => {
            let toward = if odd > 0.0 { down } else { up };
            let smaller = bits.wrapping_sub(1);
            if toward { smaller } else { bits }
        }
    };
    f32::from_bits(moved)
}

/// `a * b + c` with one rounding in a direction.
#[inline(always)]
pub(crate) fn fma_directed(a: f32, b: f32, c: f32, direction: Direction) -> f32 {
    let product = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let odd = sum_to_odd(product, c);
    // An exact zero is -0 when rounding down, unless both terms are +0.
    let negative = (product.to_bits() | c.to_bits()) >> 63 == 1;
    let zero = direction == Direction::Down && negative && odd == 0.0;
    if zero { -0.0 } else { to_direction(odd, direction) }
}

#[cfg(test)]
mod tests {
    use assay_num::random::SplitMix64;

    use super::*;

    fn check(a: f32, b: f32, c: f32) {
        let (got, want) = (fma_exact(a, b, c), a.mul_add(b, c));
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(same, "{a:e} * {b:e} + {c:e}: {got:e}, not {want:e}");
    }

    #[test]
    fn directed_roundings_equal_the_exact_ones() {
        use crate::arithmetic::soft::{F32, Rounding};
        let modes = [
            (Direction::Zero, Rounding::Zero),
            (Direction::Down, Rounding::Down),
            (Direction::Up, Rounding::Up),
        ];
        let mut random = SplitMix64::new(6);
        for number in 0..600_000 {
            let mut next = || {
                let bits = random.next_u64();
                match (number % 3, bits >> 60) {
                    (_, 0) => [0, 0x8000_0000, 1, 0x8000_0001, 0x7f7f_ffff, 0x7f80_0000]
                        [bits as usize % 6],
                    (0, _) => bits as u32,
                    (1, _) => bits as u32 & 0x81ff_ffff | 0x3e00_0000,
                    _ => bits as u32 & 0x807f_ffff,
                }
            };
            let (a, b, c) = (next(), next(), next());
            for (direction, mode) in modes {
                let got = fma_directed(
                    f32::from_bits(a),
                    f32::from_bits(b),
                    f32::from_bits(c),
                    direction,
                );
                let want = F32.fma(a.into(), b.into(), c.into(), mode) as u32;
                let same = got.to_bits() == want || got.is_nan() && want == 0x7fff_ffff;
                assert!(same, "{a:#x} * {b:#x} + {c:#x} {mode:?}: {got:e}, not {want:#x}");
            }
        }
    }

    #[test]
    fn random_operands_equal_the_library() {
        let mut random = SplitMix64::new(7);
        for _ in 0..2_000_000 {
            let (x, y) = (random.next_u64(), random.next_u64());
            let pieces = (x as u32, (x >> 32) as u32, y as u32);
            check(f32::from_bits(pieces.0), f32::from_bits(pieces.1), f32::from_bits(pieces.2));
        }
    }

    #[test]
    fn operands_of_one_size_equal_the_library() {
        let mut random = SplitMix64::new(8);
        for _ in 0..2_000_000 {
            let a = f32::from_bits(0x3f80_0000 | (random.next_u64() as u32 & 0x007f_ffff));
            let b = f32::from_bits(0x3f80_0000 | (random.next_u64() as u32 & 0x007f_ffff));
            let scale = (random.below(64) as f32 - 32.0).exp2();
            check(a, b, if random.below(2) == 0 { b } else { -a } * scale);
        }
    }

    /// `(1 + 2^-k) (1 - 2^-k) = 1 - 2^-2k`: scaled to half a unit of `c`, the product is a tie but
    /// for a tail that f64 cannot hold next to `c`.
    fn ties(mut visit: impl FnMut(f32, f32, f32)) {
        let mut random = SplitMix64::new(9);
        for k in 15..24 {
            for exponent in -90..90 {
                for _ in 0..20 {
                    let unit = 2.0_f32.powi(-k);
                    let mantissa = 0x3f80_0000 | (random.next_u64() as u32 & 0x007f_ffff);
                    let scale = 2.0_f32.powi(exponent);
                    let c = f32::from_bits(mantissa) * scale;
                    let b = (1.0 - unit) * scale * 2.0_f32.powi(-24);
                    visit(1.0 + unit, b, c);
                    visit(1.0 + unit, -b, c);
                    visit(1.0 + unit, b, -c);
                }
            }
        }
    }

    #[test]
    fn ties_with_a_tail_equal_the_library_where_plain_f64_does_not() {
        let (mut all, mut wrong) = (0, 0);
        ties(|a, b, c| {
            check(a, b, c);
            let naive = (f64::from(a) * f64::from(b) + f64::from(c)) as f32;
            all += 1;
            wrong += u32::from(naive != a.mul_add(b, c));
        });
        // The control: about half of the ties go the wrong way without rounding to odd.
        assert!(wrong > all / 4, "plain f64 arithmetic is wrong on only {wrong} of {all} ties");
    }
}
