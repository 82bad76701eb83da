//! A tolerance in `f32`: what lies surely within it.

use assay_record::Tolerance;

use crate::scan::Rules;

/// What one multiplication and one addition in `f32` tell of most elements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bounds {
    /// `atol`, `rtol`, `zero_atol` a little less than they are.
    low: [f32; 3],
    /// A little more.
    high: [f32; 3],
    /// The least magnitude in whose place a zero is outside; none where there is no such border.
    pub(crate) no_zero: Option<f32>,
}

impl Bounds {
    pub(crate) fn new(rules: &Rules) -> Bounds {
        let Tolerance { atol, rtol, zero_atol, .. } = rules.tolerance;
        // Two roundings to `f32` and the one of each part take less than a part in 2^20 and, where
        // a product is subnormal, less than 2^-118.
        let part = assay_num::power_of_two(-20);
        let slack = assay_num::power_of_two(-118);
        // A subnormal `rtol` keeps too few bits for anything to be sure of.
        let subnormal = 0.0 < rtol && rtol < f64::from(f32::MIN_POSITIVE);
        let [low_rtol, high_rtol] =
            if subnormal { [0.0, f64::from(f32::MIN_POSITIVE)] } else { [rtol; 2] };
        let (less, more) = (1.0 - part, 1.0 + part);
        let low_zero = (zero_atol * less - slack).max(0.0);
        let high_zero = if zero_atol == 0.0 { 0.0 } else { zero_atol * more + slack };
        Bounds {
            low: [atol * less - slack, low_rtol * less, low_zero].map(|bound| bound as f32),
            high: [atol * more + slack, high_rtol * more, high_zero].map(|bound| bound as f32),
            no_zero: (rtol <= 0.999).then(|| no_zero(rules)),
        }
    }

    /// A magnitude of an error that the tolerance allows, hardly less than the largest.
    #[inline(always)]
    pub(crate) fn surely_allowed(&self, reference: f32) -> f32 {
        allowed(self.low, reference)
    }

    /// A magnitude beyond which the tolerance allows none, hardly more than the largest that it
    /// does.
    #[inline(always)]
    pub(crate) fn never_beyond(&self, reference: f32) -> f32 {
        allowed(self.high, reference)
    }
}

#[inline(always)]
fn allowed([atol, rtol, zero_atol]: [f32; 3], reference: f32) -> f32 {
    let apart = atol + rtol * reference.abs();
    if reference == 0.0 { zero_atol } else { apart }
}

/// The least positive `f32` in whose place a zero is outside the tolerance; infinity if none is.
///
/// With an `rtol` well below 1, what is left of a magnitude grows with it, so there is one border.
pub(crate) fn no_zero(rules: &Rules) -> f32 {
    let fails = |bits: u32| {
        let reference = f64::from(f32::from_bits(bits));
        reference > rules.allowed(reference)
    };
    let (mut low, mut high) = (0, f32::MAX.to_bits());
    if !fails(high) {
        return f32::INFINITY;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fails(middle) { high = middle } else { low = middle }
    }
    f32::from_bits(high)
}

#[cfg(test)]
mod tests {
    use assay_num::Format;

    use super::*;

    #[test]
    fn what_is_allowed_lies_between_two_bounds_that_are_near_each_other() {
        let parts = [0.0, 1e-300, 1e-45, 1e-40, 1e-35, 1e-8, 1e-2, 0.9, 3e38, 3.5e38, 1e300];
        let bits = [0, 1, 2, 3, 0x1234, 0x7f_ffff, 0x80_0000, 0x2000_0000, 0x3f80_0001];
        for (atol, rtol) in parts.iter().flat_map(|&a| parts[..8].iter().map(move |&r| (a, r))) {
            let tolerance = Tolerance { atol, rtol, zero_atol: atol, max_ulp: 0 };
            let rules = Rules { format: Format::F32, tolerance, equal_nan: false };
            let bounds = Bounds::new(&rules);
            for reference in bits.map(f32::from_bits).into_iter().chain([f32::MAX]) {
                let sure = f64::from(bounds.surely_allowed(reference)).min(f64::from(f32::MAX));
                let allowed = rules.allowed(f64::from(reference));
                let words = format!("{tolerance:?} at {reference:e}: {sure:e} of {allowed:e}");
                let never = f64::from(bounds.never_beyond(reference));
                assert!(sure <= allowed && allowed <= never, "{words}, below {never:e}");
                let normal = (1e-33..3e38).contains(&allowed) && !(1e-300..1e-38).contains(&rtol);
                assert!(!normal || sure > 0.99999 * allowed, "{words}");
                assert!(!normal || never < 1.00001 * allowed, "{words}, below {never:e}");
            }
        }
    }
}
