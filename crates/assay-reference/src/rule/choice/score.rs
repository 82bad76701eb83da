//! What is known of a score: that it is NaN, or the bounds it lies between.

use std::cmp::Ordering;

use crate::rule::NanPlace;

/// A score known to lie between two bounds, infinities among them, or known to be NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    /// The least it may be; NaN if it is NaN.
    pub(super) low: f64,
    /// The most it may be; NaN if it is NaN.
    pub(super) high: f64,
}

/// A place among all numbers and NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Key {
    /// Above 0 for a NaN that ranks above the numbers, below 0 for one that ranks below.
    side: i8,
    value: f64,
}

impl Score {
    /// A score without error.
    pub(super) fn exact(value: f64) -> Score {
        Score { low: value, high: value }
    }

    /// A score that is a number at most `error` from `value`; any number, if that is none.
    pub(super) fn within(value: f64, error: f64) -> Score {
        let (low, high) = (value - error, value + error);
        if low.is_nan() || high.is_nan() {
            return Score { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        Score { low, high }
    }

    pub(super) fn is_nan(self) -> bool {
        self.low.is_nan()
    }

    /// The middle of what it may be.
    pub(super) fn middle(self) -> f64 {
        if self.low == self.high { self.low } else { self.low + (self.high - self.low) / 2.0 }
    }
}

impl Key {
    pub(super) fn of(value: f64, nan: NanPlace) -> Key {
        match (value.is_nan(), nan) {
            (false, _) => Key { side: 0, value },
            (true, NanPlace::Largest) => Key { side: 1, value: 0.0 },
            (true, NanPlace::Smallest) => Key { side: -1, value: 0.0 },
        }
    }

    /// Two keys in ascending order; zeros of either sign are equal.
    pub(super) fn compare(self, other: Key) -> Ordering {
        let values = || self.value.partial_cmp(&other.value).unwrap_or(Ordering::Equal);
        self.side.cmp(&other.side).then_with(values)
    }
}
