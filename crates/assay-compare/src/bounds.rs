//! A tolerance in `f32`: what lies surely within it, what surely outside.

use assay_record::Tolerance;

use crate::scan::Rules;

/// What one multiplication and one addition in `f32` tell of most elements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bounds {
    atol: f32,
    rtol: f32,
    zero_atol: f32,
    /// What `f32` may be off by, beside a part of what is allowed.
    slack: f32,
    /// The largest distance that is forgiven.
    pub(crate) max_steps: u32,
    /// The least magnitude in whose place a zero is outside; none where there is no such border.
    pub(crate) no_zero: Option<f32>,
}

impl Bounds {
    pub(crate) fn new(rules: &Rules) -> Bounds {
        let Tolerance { atol, rtol, zero_atol, max_ulp } = rules.tolerance;
        // A subnormal `rtol` keeps too few bits for anything to be sure of.
        let sure = rtol == 0.0 || rtol >= f64::from(f32::MIN_POSITIVE);
        Bounds {
            atol: atol as f32,
            rtol: rtol as f32,
            zero_atol: zero_atol as f32,
            slack: if sure { power(-118) } else { f32::INFINITY },
            max_steps: u32::try_from(max_ulp).unwrap_or(u32::MAX),
            no_zero: (rtol <= 0.999).then(|| no_zero(rules)),
        }
    }

    /// How far an error's magnitude is beyond what is allowed, and how far it must be to be sure.
    ///
    /// What is allowed has four roundings to `f32` here, each by a part in `2^24` or by `2^-150`.
    /// Where the distance is not larger than a part in `2^21` and `2^-118`, or is no number, only
    /// `f64` can tell.
    #[inline(always)]
    pub(crate) fn beyond(&self, reference: f32, magnitude: f32) -> (f32, f32) {
        let apart = self.atol + self.rtol * reference.abs();
        let allowed = if reference == 0.0 { self.zero_atol } else { apart };
        (magnitude - allowed, allowed * power(-21) + self.slack)
    }
}

const fn power(exponent: i32) -> f32 {
    f32::from_bits(((127 + exponent) as u32) << 23)
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
