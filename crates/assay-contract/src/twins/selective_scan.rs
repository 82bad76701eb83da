//! The twin of `selective_scan`: each channel walks time with its states in registers.

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
        *y = skip[d] * x[at];
        for n in 0..states {
            let h = &mut state[of_channel + n];
            let decay = exponential(dt[at] * a[of_channel + n]);
            *h = decay.mul_add(*h, u * b[over_states + n]);
            *y = h.mul_add(c[over_states + n], *y);
        }
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
    #[expect(clippy::excessive_precision, clippy::approx_constant, reason = "as the kernel has it")]
    const LOG2_E: f32 = 1.44269504;
    let k = (z * LOG2_E).round_ties_even();
    let r = k.mul_add(-1.428_606_77e-6, k.mul_add(-0.693_145_752, z));
    let p = COEFFICIENTS.into_iter().fold(FIRST, |p, coefficient| p.mul_add(r, coefficient));
    let k = k as i32;
    let half = k >> 1;
    (p * power_of_two(half)) * power_of_two(k - half)
}

/// 1/7! and the coefficients after it, as the kernel writes them.
const FIRST: f32 = 1.984_127_01e-4;
#[expect(clippy::excessive_precision, reason = "as the kernel has them")]
const COEFFICIENTS: [f32; 7] =
    [1.388_888_92e-3, 8.333_333_77e-3, 4.166_666_79e-2, 0.166_666_672, 0.5, 1.0, 1.0];

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
