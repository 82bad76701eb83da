//! `fma` on hosts without a fused multiply-add, exact to the last bit.
//!
//! The product of two f32 is exact in f64. The sum with the third operand is rounded to odd: to
//! whichever neighbour has an odd last bit when it is not exact. A number rounded to odd with two or
//! more bits to spare rounds on to f32 as the exact one would (Boldo and Melquiond, 2008). Adding in
//! f64 and rounding twice is wrong on ties.

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

    /// `(1 + 2^-k) (1 - 2^-k) = 1 - 2^-2k`: scaled to half a unit of `c`, the product is a tie but for
    /// a tail that f64 cannot hold next to `c`.
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
