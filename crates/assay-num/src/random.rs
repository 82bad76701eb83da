//! Seeded random numbers that have the same bits on every machine.

/// Steele, Lea and Flood's `SplitMix64`: small, fast, and any seed is a good seed.
///
/// Source: "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl SplitMix64 {
    /// The generator of that seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A whole number from 0 up to but not including `limit`, each equally likely; 0 if `limit`
    /// is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        // Lemire's method: reject the few words that would make some results more likely.
        let reject_below = limit.wrapping_neg() % limit;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(limit);
            if product as u64 >= reject_below {
                return (product >> 64) as u64;
            }
        }
    }

    /// A multiple of 2^-53 from 0 up to but not including 1.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * crate::power_of_two(-53)
    }

    /// A value from `low` up to `high`.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A value of the standard normal distribution (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.range(-1.0, 1.0), self.range(-1.0, 1.0));
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * logarithm(square) / square).sqrt();
            }
        }
    }

    /// Puts the items in a random order, each order equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// A generator for one purpose, independent of how much is drawn for others: it depends on
    /// this generator's state and the label only, and leaves this one as it is.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = label.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
        Self { state: mix(self.state.wrapping_add(GOLDEN) ^ mix(hash)) }
    }
}

/// The natural logarithm of a normal value in (0, 1), by operations that IEEE 754 rounds the same
/// way everywhere; the standard library's differs between platforms.
fn logarithm(value: f64) -> f64 {
    let exponent = (value.to_bits() >> 52) as i32 - 1023;
    let significand = value / crate::power_of_two(exponent);
    let ratio = (significand - 1.0) / (significand + 1.0);
    let square = ratio * ratio;
    // ln((1 + r) / (1 - r)) = 2 (r + r^3/3 + r^5/5 + ...), with r at most 1/3.
    let series = (0..18).rev().fold(0.0, |sum, k| sum * square + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * ratio * series
}

#[cfg(test)]
mod tests {
    use super::{SplitMix64, logarithm};

    #[test]
    fn the_first_words_are_those_of_the_published_generator() {
        let mut random = SplitMix64::new(1_234_567);
        let words = [(); 3].map(|()| random.next_u64());
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(words, published);
    }

    #[test]
    fn the_logarithm_is_right_to_the_last_few_bits() {
        let mut random = SplitMix64::new(3);
        for _ in 0..10_000 {
            let value = random.unit().max(1e-9);
            let exact = value.ln();
            assert!((logarithm(value) - exact).abs() <= 4e-16 * exact.abs().max(1.0), "{value}");
        }
    }

    #[test]
    fn below_reaches_every_value_about_equally_often() {
        let mut random = SplitMix64::new(5);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn normal_values_have_mean_zero_and_variance_one() {
        let mut random = SplitMix64::new(7);
        let values: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn a_shuffle_keeps_the_items_and_changes_their_order() {
        let mut items: Vec<u32> = (0..100).collect();
        SplitMix64::new(9).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_fork_depends_on_its_label_and_not_on_later_draws() {
        let mut random = SplitMix64::new(11);
        let first = random.fork("inputs").next_u64();
        assert_eq!(first, random.fork("inputs").next_u64());
        assert_ne!(first, random.fork("schedule").next_u64());
        random.next_u64();
        assert_ne!(first, random.fork("inputs").next_u64());
    }
}
