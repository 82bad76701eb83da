//! What the kernels ask first of an element: one comparison in `f32` that is never wrong.

use crate::bounds::no_zero;
use crate::scan::Rules;

/// Bounds of a tolerance that `f32` holds.
pub(super) struct Bounds {
    /// An error of at most `low_atol + low_rtol |reference|` is within the tolerance.
    pub(super) low_atol: f32,
    pub(super) low_rtol: f32,
    /// One beyond `high_atol + high_rtol |reference|` is not.
    pub(super) high_atol: f32,
    pub(super) high_rtol: f32,
    /// The least positive magnitude in whose place a zero is outside; infinity if none is.
    pub(super) no_zero: f32,
}

impl Bounds {
    pub(super) fn new(rules: &Rules) -> Bounds {
        let tolerance = &rules.tolerance;
        let (atol, zero_atol) = (tolerance.atol, tolerance.zero_atol);
        Bounds {
            low_atol: below(atol.min(zero_atol)),
            low_rtol: below(tolerance.rtol),
            high_atol: above(atol.max(zero_atol)),
            high_rtol: above(tolerance.rtol),
            no_zero: no_zero(rules),
        }
    }

    /// Whether [`Bounds::no_zero`] is right: so near to 1 there may be more than one border.
    pub(super) fn hold(rules: &Rules) -> bool {
        !(0.999..1.0).contains(&rules.tolerance.rtol)
    }
}

/// An `f32` that lies so far below a part of a tolerance that one rounded comparison with it is
/// never wrong.
fn below(value: f64) -> f32 {
    let lower = value * (1.0 - assay_num::power_of_two(-20));
    let rounded = lower as f32;
    if f64::from(rounded) > lower { rounded.next_down().min(f32::MAX) } else { rounded }
}

/// The same above it; infinity where no number is.
fn above(value: f64) -> f32 {
    let higher = value * (1.0 + assay_num::power_of_two(-20));
    let rounded = higher as f32;
    if f64::from(rounded) < higher { rounded.next_up() } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_enclose_every_number_and_are_exact_at_zero() {
        assert_eq!((below(0.0), above(0.0)), (0.0, 0.0));
        for value in [1e-300, 1e-45, 1e-40, 1e-8, 1e-4, 0.1, 1.0, 3e38, 3.5e38, 1e300] {
            let (low, high) = (f64::from(below(value)), f64::from(above(value)));
            assert!(low < value && value < high, "{low} {value} {high}");
        }
        assert_eq!(above(1e300), f32::INFINITY);
    }
}
