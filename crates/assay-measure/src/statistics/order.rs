//! Quantiles and what they say without any model.

/// The values in ascending order; values that are not numbers are left out.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The quantile at `share` (0 to 1) of ascending values, between two of them by a straight line.
/// 0 of no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = (place as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// The median of values in any order; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut own = values.to_vec();
    median_in_place(&mut own)
}

/// The median, at the cost of the values' order.
pub(super) fn median_in_place(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return 0.0;
    }
    let odd = !values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    lower + (upper - lower) / 2.0
}

/// The mean of the middle half: as deaf to outliers as the quartiles, and finer than the median
/// where a timer has coarse steps. 0 of no values.
pub fn midmean(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let cut = sorted.len() / 4;
    let middle = &sorted[cut..sorted.len() - cut];
    if middle.is_empty() {
        return 0.0;
    }
    middle.iter().fold(0.0, |sum, value| sum + value) / middle.len() as f64
}

/// An interval of the median from order statistics alone, of ascending values that are worth
/// `effective` independent ones: the binomial's normal approximation (Conover, Practical
/// Nonparametric Statistics, 3.2). The whole range where there are too few.
pub fn median_interval(sorted: &[f64], effective: f64, confidence: f64) -> (f64, f64) {
    let z = normal_quantile(0.5 + confidence / 2.0);
    let half = z / (2.0 * effective.max(1.0).sqrt());
    (quantile(sorted, 0.5 - half), quantile(sorted, 0.5 + half))
}

/// The standard normal distribution's quantile, by Acklam's rational approximation (relative
/// error below 1.2e-9), for shares from 0.5 up.
fn normal_quantile(share: f64) -> f64 {
    let share = share.clamp(0.5, 1.0 - 1e-12);
    if share > 0.97575 {
        let q = (-2.0 * (1.0 - share).ln()).sqrt();
        let c = [
            -7.784_894_002_430_293e-3,
            -3.223_964_580_411_365e-1,
            -2.400_758_277_161_838,
            -2.549_732_539_343_734,
            4.374_664_141_464_968,
            2.938_163_982_698_783,
        ];
        let d = [
            7.784_695_709_041_462e-3,
            3.224_671_290_700_398e-1,
            2.445_134_137_142_996,
            3.754_408_661_907_416,
        ];
        return -horner(&c, q) / (horner(&d, q) * q + 1.0);
    }
    let q = share - 0.5;
    let r = q * q;
    let a = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    let b = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    horner(&a, r) * q / (horner(&b, r) * r + 1.0)
}

/// A polynomial, its highest coefficient first.
fn horner(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |value, coefficient| value * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_a_table() {
        let values = sorted(&[4.0, 1.0, f64::NAN, 3.0, 2.0]);
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(quantile(&values, 0.5), 2.5);
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (1.0, 4.0));
        assert_eq!((median(&[]), median(&[7.0]), median(&[9.0, 1.0])), (0.0, 7.0, 5.0));
        assert_eq!(midmean(&[0.0, 1.0, 2.0, 1e9]), 1.5);
    }

    #[test]
    fn the_normal_quantile_is_that_of_a_table() {
        for (share, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.995, 2.575_829), (0.9995, 3.290_527)]
        {
            assert!((normal_quantile(share) - z).abs() < 1e-5, "{share}");
        }
    }
}
