//! The twin of `selective_scan`: each channel walks time with its states in registers, adds the
//! states in order, and the skip last.

use super::{Computed, Twin, TwinInputs};
use crate::subject::RunError;

pub(super) const TWIN: Twin = Twin {
    name: "selective_scan",
    inputs: &[("x", 2), ("dt", 2), ("a", 2), ("b", 2), ("c", 2), ("skip", 1), ("h0", 2)],
    outputs: &["y", "state"],
    compute,
};

fn compute(inputs: &TwinInputs<'_>) -> Result<Computed, RunError> {
    let [time, channels] = inputs.matrix("x")?;
    let [_, states] = inputs.matrix("a")?;
    let (x, dt, a) = (inputs.values("x")?, inputs.values("dt")?, inputs.values("a")?);
    let (b, c) = (inputs.values("b")?, inputs.values("c")?);
    let skip = inputs.values("skip")?;
    let mut state = inputs.values("h0")?;
    let mut y = vec![0f32; time * channels];
    for (at, y) in y.iter_mut().enumerate() {
        let (t, d) = (at / channels, at % channels);
        let (over_states, of_channel) = (t * states, d * states);
        let u = dt[at] * x[at];
        for n in 0..states {
            let h = &mut state[of_channel + n];
            let decay = exponential(dt[at] * a[of_channel + n]);
            *h = decay.mul_add(*h, u * b[over_states + n]);
            *y = h.mul_add(c[over_states + n], *y);
        }
        *y = skip[d].mul_add(x[at], *y);
    }
    Ok(Computed::from([("y", y), ("state", state)]))
}

/// The kernel's own exponential: a reduction by two parts of ln 2, then a polynomial of degree 7,
/// then two powers of two, so that results below the normal numbers are rounded once.
fn exponential(z: f32) -> f32 {
    if z.is_nan() {
        return z;
    }
    if z > 89.0 {
        return f32::INFINITY;
    }
    if z < -104.0 {
        return 0.0;
    }
    let k = (z * std::f32::consts::LOG2_E).round_ties_even();
    let r = k.mul_add(-LN_2_LOW, k.mul_add(-LN_2_HIGH, z));
    let p = COEFFICIENTS.into_iter().fold(FIRST, |p, coefficient| p.mul_add(r, coefficient));
    let k = k as i32;
    let half = k >> 1;
    (p * power_of_two(half)) * power_of_two(k - half)
}

/// ln 2 in two parts, the first with zeros at its end, so that its product with k is exact.
const LN_2_HIGH: f32 = 0.693_145_75;
const LN_2_LOW: f32 = 1.428_606_8e-6;
/// 1/7!, and the coefficients 1/6! to 1/0! after it.
const FIRST: f32 = 1.984_127e-4;
const COEFFICIENTS: [f32; 7] =
    [1.388_888_9e-3, 8.333_334e-3, 4.166_666_8e-2, 0.166_666_67, 0.5, 1.0, 1.0];

/// 2^n, for n of normal numbers.
fn power_of_two(n: i32) -> f32 {
    f32::from_bits(((n + 127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::exponential;

    #[test]
    fn the_exponential_is_within_two_ulp_and_exact_at_its_ends() {
        let mut worst = 0f64;
        for step in -104_000..89_000 {
            let z = step as f32 / 1000.0;
            let (got, exact) = (f64::from(exponential(z)), libm_exp(f64::from(z)));
            if !got.is_finite() {
                assert!(exact > f64::from(f32::MAX), "exp({z})");
                continue;
            }
            let ulp = assay_num::Format::F32.ulp(exact);
            worst = worst.max((got - exact).abs() / ulp);
        }
        assert!(worst < 2.0, "{worst} ulp");
        assert_eq!(exponential(0.0), 1.0);
        assert_eq!(exponential(f32::NEG_INFINITY), 0.0);
        assert_eq!(exponential(f32::INFINITY), f32::INFINITY);
        assert!(exponential(f32::NAN).is_nan());
    }

    fn libm_exp(z: f64) -> f64 {
        z.exp()
    }
}
