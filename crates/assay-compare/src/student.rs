//! Quantiles of Student's t distribution, far out in its tails.

use std::f64::consts::FRAC_PI_2;

/// Steps of Simpson's rule, an even number.
const STEPS: u32 = 2000;

/// The `t` that a variable of so many degrees of freedom exceeds with probability `tail`.
///
/// With `x = sqrt(n) tan(a)` the tail is the part of the integral of `cos(a)^(n - 1)` beyond
/// `atan(t / sqrt(n))`. Counted from the far end, nothing cancels, however small the tail.
pub(crate) fn quantile(degrees: u32, tail: f64) -> f64 {
    let power = degrees.max(1) as i32 - 1;
    let whole = integral(power, FRAC_PI_2);
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if 0.5 * integral(power, middle) / whole < tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::from(degrees.max(1)).sqrt() / (0.5 * (low + high)).tan()
}

/// The integral of `sin(a)^power` from 0 to `end`, by Simpson's rule.
fn integral(power: i32, end: f64) -> f64 {
    let step = end / f64::from(STEPS);
    let value = |at: u32| (f64::from(at) * step).sin().powi(power);
    let inner: f64 = (1..STEPS).map(|at| value(at) * if at % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (value(0) + inner + value(STEPS)) * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (degrees, tail, expected) in [
            (1, 0.05, 6.313_75),
            (5, 0.025, 2.570_58),
            (15, 0.0005, 4.072_77),
            (30, 0.005, 2.750_00),
            (10, 0.000_5, 4.586_89),
        ] {
            let found = quantile(degrees, tail);
            assert!((found - expected).abs() < 2e-5 * expected, "t({degrees}, {tail}) = {found}");
        }
        // The normal distribution's 5.9978, and a first term for the heavier tails: 0.0555.
        let far = quantile(1000, 1e-9);
        assert!((far - 6.0533).abs() < 5e-3, "{far}");
    }
}
