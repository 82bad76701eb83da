//! A fixed-point number wide enough for any sum of products of short floats.

use super::soft::Exact;

/// Limbs of 64 bits.
const LIMBS: usize = 14;

/// The exponent of the lowest bit: products of two bf16 reach down to 2^-266, with scales to
/// 2^-290.
const LOWEST: i32 = -400;

/// A sum in two's complement, lowest limb first. It holds terms from 2^-400 up to 2^400.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Wide([u64; LIMBS]);

impl Wide {
    /// Adds `mantissa * 2^exponent`.
    pub(crate) fn add(&mut self, negative: bool, mantissa: u64, exponent: i32) {
        let place = (exponent - LOWEST).clamp(0, 64 * (LIMBS as i32 - 2)) as usize;
        let (limb, shift) = (place / 64, place % 64);
        let shifted = u128::from(mantissa) << shift;
        let mut parts = [0; LIMBS];
        (parts[limb], parts[limb + 1]) = (shifted as u64, (shifted >> 64) as u64);
        let mut carry = false;
        for (own, part) in self.0.iter_mut().zip(parts) {
            let (first, second);
            if negative {
                (*own, first) = own.overflowing_sub(part);
                (*own, second) = own.overflowing_sub(u64::from(carry));
            } else {
                (*own, first) = own.overflowing_add(part);
                (*own, second) = own.overflowing_add(u64::from(carry));
            }
            carry = first || second;
        }
    }

    /// The value, its 64 or more highest bits with a note of whether there are more.
    pub(crate) fn exact(mut self) -> Exact {
        let negative = self.0[LIMBS - 1] >> 63 == 1;
        if negative {
            let negated = std::mem::take(&mut self);
            for (limb, part) in negated.0.into_iter().enumerate() {
                // Each limb apart: the sum of their negatives is the negative.
                self.subtract_limb(limb, part);
            }
        }
        let top = self.0.iter().rposition(|&limb| limb != 0).unwrap_or(0).max(1);
        let mantissa = u128::from(self.0[top]) << 64 | u128::from(self.0[top - 1]);
        Exact {
            negative,
            mantissa,
            exponent: LOWEST + 64 * (top as i32 - 1),
            sticky: self.0[..top - 1].iter().any(|&limb| limb != 0),
        }
    }

    fn subtract_limb(&mut self, limb: usize, part: u64) {
        let mut borrow;
        (self.0[limb], borrow) = self.0[limb].overflowing_sub(part);
        for own in &mut self.0[limb + 1..] {
            (*own, borrow) = own.overflowing_sub(u64::from(borrow));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_apart_terms_cancel_exactly() {
        let mut sum = Wide::default();
        sum.add(false, 3, 200);
        sum.add(false, 5, -266);
        sum.add(true, 3, 200);
        sum.add(true, 6, -266);
        let exact = sum.exact();
        assert!(exact.negative && !exact.sticky);
        assert_eq!(exact.mantissa.trailing_zeros() as i32 + exact.exponent, -266);
        assert_eq!(exact.mantissa.count_ones(), 1);
    }

    #[test]
    fn what_does_not_fit_is_noted() {
        let mut sum = Wide::default();
        sum.add(false, 1, 200);
        sum.add(true, 1, -266);
        let exact = sum.exact();
        assert!(!exact.negative && exact.sticky);
    }
}
