//! The reals that round to a stored value, and the distance of a real from them.

use crate::convert::{Overflow, Rounding, exponent_of};
use crate::format::Layout;
use crate::{Class, Format, power_of_two};

/// An interval of reals, given by its ends and whether each end belongs to it.
///
/// Infinite ends are half-lines. An empty interval has `low > high`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preimage {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether the lower end rounds to the value.
    pub low_included: bool,
    /// Whether the upper end rounds to the value.
    pub high_included: bool,
}

impl Preimage {
    /// The interval that holds nothing.
    pub const EMPTY: Preimage = Preimage {
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
        low_included: false,
        high_included: false,
    };

    fn closed(low: f64, high: f64) -> Preimage {
        Preimage { low, high, low_included: true, high_included: true }
    }

    /// Whether `value` rounds to the value whose preimage this is; never for NaN.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        let above = value > self.low || (self.low_included && value == self.low);
        let below = value < self.high || (self.high_included && value == self.high);
        above && below
    }

    /// The distance from `value` to the interval, 0 inside and at an excluded end.
    #[must_use]
    pub fn distance(&self, value: f64) -> f64 {
        if self.low > self.high || value.is_nan() {
            f64::INFINITY
        } else if value < self.low {
            self.low - value
        } else if value > self.high {
            value - self.high
        } else {
            0.0
        }
    }

    fn mirrored(self) -> Preimage {
        Preimage {
            low: -self.high,
            high: -self.low,
            low_included: self.high_included,
            high_included: self.low_included,
        }
    }
}

impl Format {
    /// The reals that round to these bits, to nearest even, with overflow to infinity.
    ///
    /// Infinities have half-lines, and so have the largest values of formats that saturate because
    /// they have nothing else (`e2m1`, integers). Zeros of both signs have the same preimage, since
    /// signs of zero are not judged. NaN has none. The half-way points of `f64` are not `f64`
    /// values: its finite values have the point itself.
    #[must_use]
    pub fn preimage(self, bits: u64) -> Preimage {
        self.preimage_with(bits, Overflow::Infinity)
    }

    /// [`preimage`](Self::preimage) for a conversion that overflows in the given way.
    #[must_use]
    pub fn preimage_with(self, bits: u64, overflow: Overflow) -> Preimage {
        let value = self.decode(bits);
        match (self.layout(), Class::of(value)) {
            (_, Class::NaN) => Preimage::EMPTY,
            (_, Class::NegativeInfinity) => self.infinity_preimage(overflow).mirrored(),
            (_, Class::PositiveInfinity) => self.infinity_preimage(overflow),
            (None, _) => self.integer_preimage(value),
            (Some(_), _) if self == Format::F64 => f64_preimage(value, overflow),
            (Some(layout), _) if value < 0.0 => {
                self.positive_preimage(layout, -value, overflow).mirrored()
            }
            (Some(layout), _) => self.positive_preimage(layout, value, overflow),
        }
    }

    /// The distance from the real `value` to the reals that round to `got`: 0 inside.
    ///
    /// Infinite where the classes rule each other out: a NaN against anything else, or an infinity
    /// against finite bits. A NaN against a NaN has none.
    #[must_use]
    pub fn excess(self, value: f64, got: u64) -> f64 {
        self.excess_with(value, got, Overflow::Infinity)
    }

    /// [`excess`](Self::excess) for a conversion that overflows in the given way.
    #[must_use]
    pub fn excess_with(self, value: f64, got: u64, overflow: Overflow) -> f64 {
        let got_nan = self.class(got) == Class::NaN;
        if value.is_nan() && got_nan {
            0.0
        } else {
            self.preimage_with(got, overflow).distance(value)
        }
    }

    /// The least magnitude that overflows: half a step past the largest value.
    fn overflow_threshold(self) -> f64 {
        let largest = self.max_finite();
        largest + self.ulp(largest) / 2.0
    }

    fn infinity_preimage(self, overflow: Overflow) -> Preimage {
        if overflow == Overflow::Saturate {
            // A saturating conversion never gives an infinity, not even for one.
            return Preimage::EMPTY;
        }
        let low = if self == Format::F64 { f64::MAX } else { self.overflow_threshold() };
        Preimage {
            low,
            high: f64::INFINITY,
            low_included: self != Format::F64,
            high_included: true,
        }
    }

    fn integer_preimage(self, value: f64) -> Preimage {
        let even = value % 2.0 == 0.0;
        let half = if value.abs() < power_of_two(52) { 0.5 } else { 0.0 };
        let at_low = value <= self.min_finite();
        let at_high = value >= self.max_finite();
        Preimage {
            low: if at_low { f64::NEG_INFINITY } else { value - half },
            high: if at_high { f64::INFINITY } else { value + half },
            low_included: even || at_low || half == 0.0,
            high_included: even || at_high || half == 0.0,
        }
    }

    /// The preimage of a value that is not negative, in a format coarser than `f64`.
    fn positive_preimage(self, layout: Layout, value: f64, overflow: Overflow) -> Preimage {
        let above = self.ulp(value);
        let saturates = overflow == Overflow::Saturate || !(self.has_infinity() || self.has_nan());
        let endless = saturates && value == self.max_finite();
        let high = if endless { f64::INFINITY } else { value + above / 2.0 };
        if value == 0.0 {
            return Preimage::closed(-high, high);
        }
        if !layout.signed {
            return self.scale_preimage(value, high, endless);
        }
        let pattern = self.encode(value, Rounding::NearestEven, Overflow::Infinity);
        let even = (pattern >> layout.padding_bits) & 1 == 0;
        let quantum =
            (exponent_of(value) - layout.fraction_bits as i32).max(layout.least_quantum());
        let at_binade =
            value == power_of_two(exponent_of(value)) && quantum > layout.least_quantum();
        let below = if at_binade { above / 2.0 } else { above };
        Preimage {
            low: value - below / 2.0,
            high,
            low_included: even,
            high_included: even || endless,
        }
    }

    /// A power of two: ties go up, so the lower end belongs to it and the upper one does not.
    fn scale_preimage(self, value: f64, high: f64, endless: bool) -> Preimage {
        let smallest = value == self.min_finite();
        let low = if smallest { 0.0 } else { value * 0.75 };
        Preimage { low, high, low_included: true, high_included: endless }
    }
}

fn f64_preimage(value: f64, overflow: Overflow) -> Preimage {
    let saturated = overflow == Overflow::Saturate && value.abs() == f64::MAX;
    match (saturated, value > 0.0) {
        (true, true) => Preimage::closed(value, f64::INFINITY),
        (true, false) => Preimage::closed(f64::NEG_INFINITY, value),
        _ => Preimage::closed(value, value),
    }
}
