//! How far a sum that is rounded at every step lies from the mean of all its orders.
//!
//! Terms of no common sign wander: in a random order their partial sums go away from zero and come
//! back, some orders much farther than others, and each step is rounded by a part of how far out it
//! is. So an error is a normal number times the length of a walk. With partial sums that are a
//! Brownian bridge `B` its variance is the integral of `B^2`, the square whose law is that of
//! Cramer, von Mises and Smirnov (Anderson and Darling, Ann. Math. Stat. 23, 1952), and
//! `E exp(s x)` is `sqrt(s / sin s)`: finite below pi only. So its tails fall like `exp(-pi x)`,
//! not like those of a normal number.

use std::f64::consts::{PI, TAU};

/// How many times as far out as a normal number such an error is exceeded with probability `tail`,
/// at most 0.01, both in their standard deviations.
pub(crate) fn excess(tail: f64) -> f64 {
    quantile(tail, walk) / quantile(tail, normal)
}

/// Where a tail that falls has a value.
fn quantile(tail: f64, of: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1.0, 1e6);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if of(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The first term of the tail of an error, far out.
fn walk(deviations: f64) -> f64 {
    // The variance of the law is a sixth.
    let x = deviations / 6.0f64.sqrt();
    (-PI * x).exp() / (PI * x.sqrt())
}

/// The tail of the normal distribution, by Laplace's continued fraction.
fn normal(deviations: f64) -> f64 {
    let rest = (1..=100).rev().fold(deviations, |rest, at| deviations + f64::from(at) / rest);
    (-0.5 * deviations * deviations).exp() / (TAU.sqrt() * rest)
}

#[cfg(test)]
mod tests {
    use assay_num::random::SplitMix64;

    use super::*;

    #[test]
    fn the_normal_tail_is_that_of_printed_tables() {
        for (deviations, tail) in [(2.326_348, 0.01), (3.090_232, 1e-3), (4.753_424, 1e-6)] {
            let found = quantile(tail, normal);
            assert!((found - deviations).abs() < 1e-5, "{tail}: {found}");
        }
    }

    #[test]
    fn errors_of_walks_have_the_tail_that_is_said_and_no_normal_one() {
        const STEPS: usize = 64;
        const WALKS: usize = 200_000;
        let seed = 7;
        let mut random = SplitMix64::new(seed);
        let mut beyond = [0.0f64; 2];
        for _ in 0..WALKS {
            let mut walk: [f64; STEPS] = std::array::from_fn(|_| random.normal());
            let drift = walk.iter().sum::<f64>() / STEPS as f64;
            let (mut at, mut square) = (0.0, 0.0);
            for step in &mut walk {
                at += *step - drift;
                square += at * at;
            }
            // The mean of all such squares is a sixth of that of their number.
            let error = (6.0 * square).sqrt() / STEPS as f64 * random.normal();
            for (count, deviations) in beyond.iter_mut().zip([3.0, 4.5]) {
                *count += f64::from(u8::from(error > deviations));
            }
        }
        for (count, deviations) in beyond.into_iter().zip([3.0, 4.5]) {
            let expected = walk(deviations) * WALKS as f64;
            let off = (count - expected).abs();
            assert!(off < 4.0 * expected.sqrt() + 0.05 * expected, "{count} {expected}, {seed}");
            assert!(count > 3.0 * normal(deviations) * WALKS as f64, "{count}");
        }
    }
}
