//! Number formats of GPU kernels, and the exact questions a test asks of them.
//!
//! Every format is described by one table row ([`Format`]). From it follow exact conversions in
//! every rounding direction, the set of reals that round to a stored value ([`Preimage`]), the
//! spacing of values, and the error constants of a running error analysis ([`gamma`]).
//!
//! All arithmetic is on `f64`, which holds every value of every format here except integers past
//! 2^53, so nothing in this crate rounds twice. It knows no devices and no files.

mod convert;
mod format;
mod preimage;
pub mod random;
mod slice;

pub use convert::{Class, Overflow, Rounding};
pub use format::Format;
pub use preimage::Preimage;

/// The accumulated relative error of `roundings` roundings: `n u / (1 - n u)`.
///
/// Infinite once `n u` reaches 1, where the bound says nothing any more. Source: Higham, "Accuracy
/// and Stability of Numerical Algorithms", lemma 3.1.
#[must_use]
pub fn gamma(roundings: f64, unit_roundoff: f64) -> f64 {
    let growth = roundings * unit_roundoff;
    if growth >= 1.0 { f64::INFINITY } else { growth / (1.0 - growth) }
}

/// 2 to the power `exponent`, exactly, for exponents from -1074 to 1023.
///
/// Smaller exponents give 0, larger ones infinity.
#[must_use]
pub fn power_of_two(exponent: i32) -> f64 {
    match exponent {
        1024.. => f64::INFINITY,
        -1022..=1023 => f64::from_bits(((exponent + 1023) as u64) << 52),
        -1074..=-1023 => f64::from_bits(1 << (exponent + 1074)),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{gamma, power_of_two};

    #[test]
    fn gamma_grows_from_zero_to_infinity() {
        assert_eq!(gamma(0.0, 0.5), 0.0);
        assert_eq!(gamma(1.0, 0.25), 1.0 / 3.0);
        assert_eq!(gamma(4.0, 0.25), f64::INFINITY);
        assert!(gamma(100.0, 2f64.powi(-24)) > 100.0 * 2f64.powi(-24));
    }

    #[test]
    fn powers_of_two_are_exact_from_the_smallest_subnormal_up() {
        assert_eq!(power_of_two(-1075), 0.0);
        assert_eq!(power_of_two(-1074), f64::from_bits(1));
        assert_eq!(power_of_two(-1022), f64::MIN_POSITIVE);
        assert_eq!(power_of_two(10), 1024.0);
        assert_eq!(power_of_two(1024), f64::INFINITY);
    }
}
