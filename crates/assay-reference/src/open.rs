//! Lanes of the range domain that may be infinite.
//!
//! An exponential that overflows is no end of the matter: `1 / (1 + exp(200))` is 0 in every
//! kernel, whether the exponential is 7e86, the largest fp32 value or an infinity. Such a lane is
//! open: its value is the least magnitude that a kernel can have there, and anything beyond up to
//! an infinity of that sign is possible; where that is past the finite values, only the infinity
//! is. It counts as an overflow until an operation closes it again.

use crate::bound::{BoundTile, Bounds};
use crate::plan::{Binary, Unary};
use crate::rounding::{LARGEST, UNIT};
use crate::tile::first_lanes;

/// The least magnitude of an open lane: beyond it, functions have reached their limits.
const LEAST: f64 = (1u128 << 100) as f64;
/// Twice the largest finite value: what is at least that is infinite in every kernel.
const INFINITE: f64 = 2.0 * LARGEST;
/// The most that an open lane's least magnitude is kept as.
const MOST: f64 = 1e300;
/// What a bound of an open lane loses for the few roundings behind it: 2^-10 covers exponentials.
const KEPT: f64 = 1.0 - 1.0 / 1024.0;

/// One operand.
#[derive(Clone, Copy)]
enum Side {
    /// At least this magnitude, of this sign.
    Open(f64),
    /// A value and its error.
    Within(f64, f64),
}

/// What becomes of open operands.
enum Outcome {
    Open(f64),
    Within(f64, f64),
    /// Anything.
    Lost,
}

use Side::{Open, Within};

impl BoundTile {
    /// Opens the lanes in `lanes` that lie beyond a magnitude with all of their error.
    pub(crate) fn open_beyond(&mut self, lanes: u128, count: usize) {
        for lane in (0..count).filter(|lane| lanes >> lane & 1 == 1) {
            let (value, error) = (self.value[lane], self.error[lane]);
            if value.is_finite() && value.abs() - error >= LEAST {
                self.set_open(lane, value.signum() * (value.abs() - error));
            }
        }
    }

    pub(crate) fn set_open(&mut self, lane: usize, least: f64) {
        self.value[lane] = least.clamp(-MOST, MOST);
        self.error[lane] = f64::INFINITY;
        self.open |= 1 << lane;
        self.trouble.overflow |= 1 << lane;
        self.trouble.vanishing &= !(1 << lane);
    }

    /// Marks the errors of elements without a bound: infinite where they are open, no number where
    /// nothing is known.
    pub(crate) fn mark_unbounded(&self, errors: &mut [f64]) {
        let unbounded = self.trouble.vanishing | self.trouble.overflow;
        for (lane, error) in errors.iter_mut().enumerate() {
            if self.open >> lane & 1 == 1 {
                *error = f64::INFINITY;
            } else if unbounded >> lane & 1 == 1 || !error.is_finite() {
                *error = f64::NAN;
            }
        }
    }

    /// Takes up the marks of elements that another statement stored.
    pub(crate) fn reopen(&mut self, count: usize) {
        for lane in 0..count {
            let error = self.error[lane];
            if error.is_finite() {
                continue;
            }
            self.trouble.overflow |= 1 << lane;
            if error == f64::INFINITY {
                self.open |= 1 << lane;
            }
        }
    }

    /// Rounds the lanes that are open in `a` to a format: what overflows it is infinite.
    pub(crate) fn open_round(&mut self, format: assay_num::Format, a: &BoundTile, count: usize) {
        let open = a.open & first_lanes(count);
        for lane in (0..count).filter(|lane| open >> lane & 1 == 1) {
            // Half a unit of the narrowest format is an eighth.
            let least = Outcome::Open(a.value[lane] * 0.875);
            self.settle(lane, if format.has_infinity() { &least } else { &Outcome::Lost });
        }
    }

    fn side(&self, lane: usize) -> Option<Side> {
        let bit = 1 << lane;
        if self.open & bit != 0 {
            return Some(Open(self.value[lane]));
        }
        let lost = (self.trouble.overflow | self.trouble.vanishing) & bit != 0;
        let bounded = self.value[lane].is_finite() && self.error[lane].is_finite();
        (bounded && !lost).then(|| Within(self.value[lane], self.error[lane]))
    }

    fn settle(&mut self, lane: usize, outcome: &Outcome) {
        match *outcome {
            Outcome::Open(least) if least.abs() >= LEAST => self.set_open(lane, least),
            Outcome::Within(value, error) => {
                self.value[lane] = value;
                self.error[lane] = error;
                self.trouble.overflow &= !(1 << lane);
                self.trouble.vanishing &= !(1 << lane);
            }
            Outcome::Open(_) | Outcome::Lost => {
                self.error[lane] = f64::INFINITY;
                self.trouble.overflow |= 1 << lane;
            }
        }
    }
}

impl Bounds<'_> {
    /// Corrects the lanes of `out` whose operand is open.
    pub(crate) fn open_unary(
        &self,
        operation: Unary,
        a: &BoundTile,
        out: &mut BoundTile,
        count: usize,
    ) {
        let open = a.open & first_lanes(count);
        for lane in (0..count).filter(|lane| open >> lane & 1 == 1) {
            out.settle(lane, &self.of_open(operation, a.value[lane]));
        }
    }

    fn of_open(&self, operation: Unary, least: f64) -> Outcome {
        let eta = self.rounding.eta;
        let limit = |c: f64| Outcome::Within(least.signum(), c * UNIT + eta);
        match operation {
            Unary::Negate => Outcome::Open(-least),
            Unary::Abs => Outcome::Open(least.abs()),
            Unary::Floor => opened(least, least.abs()),
            Unary::Exp | Unary::Exp2 if least < 0.0 => Outcome::Within(0.0, 4.0 * eta),
            Unary::Exp | Unary::Exp2 => Outcome::Open(MOST),
            Unary::Tanh | Unary::Erf => limit(self.rounding.function(operation, 1.0, 0.0)),
            Unary::Rsqrt if least > 0.0 => {
                let most = 1.0 / (least.sqrt() * KEPT);
                Outcome::Within(most / 2.0, most / 2.0)
            }
            _ => Outcome::Lost,
        }
    }

    /// Corrects the lanes of `out` with an open operand.
    pub(crate) fn open_binary(
        &self,
        operation: Binary,
        [a, b]: [&BoundTile; 2],
        out: &mut BoundTile,
        count: usize,
    ) {
        let open = (a.open | b.open) & first_lanes(count);
        for lane in (0..count).filter(|lane| open >> lane & 1 == 1) {
            let outcome = match (a.side(lane), b.side(lane)) {
                (Some(a), Some(b)) => self.of_sides(operation, a, b),
                _ => Outcome::Lost,
            };
            out.settle(lane, &outcome);
        }
    }

    fn of_sides(&self, operation: Binary, a: Side, b: Side) -> Outcome {
        match (operation, a, b) {
            (Binary::Subtract, a, Open(b)) => self.of_sides(Binary::Add, a, Open(-b)),
            (Binary::Subtract, a, Within(b, e)) => self.of_sides(Binary::Add, a, Within(-b, e)),
            (Binary::Add, Open(least), Within(v, e)) | (Binary::Add, Within(v, e), Open(least)) => {
                opened(least, least.abs() - v.abs() - e)
            }
            (Binary::Add, Open(a), Open(b)) if a.signum() == b.signum() => {
                opened(a, a.abs().max(b.abs()))
            }
            (Binary::Multiply, Open(least), Within(v, e))
            | (Binary::Multiply, Within(v, e), Open(least)) => {
                opened(least * v.signum(), least.abs() * (v.abs() - e))
            }
            (Binary::Multiply, Open(a), Open(b)) => opened(a * b.signum(), a.abs().max(b.abs())),
            (Binary::Divide, Within(v, e), Open(least)) => {
                let most = (v.abs() + e) / (least.abs() * KEPT) + 4.0 * self.rounding.eta;
                let is_zero = v.abs() + e == 0.0 || least.abs() >= INFINITE;
                Outcome::Within(0.0, if is_zero { 0.0 } else { most })
            }
            (Binary::Divide, Open(least), Within(v, e)) if v.abs() > e => {
                opened(least * v.signum(), least.abs() / (v.abs() + e))
            }
            (Binary::Max, a, b) => extreme(a, b, 1.0),
            (Binary::Min, a, b) => extreme(a, b, -1.0),
            _ => Outcome::Lost,
        }
    }
}

/// Open on the side of `sign`, after a rounding; lost unless beyond a positive magnitude.
fn opened(sign: f64, magnitude: f64) -> Outcome {
    if magnitude > 0.0 { Outcome::Open(sign.signum() * magnitude * KEPT) } else { Outcome::Lost }
}

/// The maximum, or with `side` -1 the minimum, of two operands of which one is open.
fn extreme(a: Side, b: Side, side: f64) -> Outcome {
    match (a, b) {
        // The larger maximum, the smaller minimum; of two open ones it is open there too.
        (Open(a), Open(b)) => Outcome::Open(if (a - b) * side > 0.0 { a } else { b }),
        (Open(least), Within(v, e)) | (Within(v, e), Open(least)) => {
            if v.abs() + e >= least.abs() {
                Outcome::Lost
            } else if least.signum() == side {
                Outcome::Open(least)
            } else {
                Outcome::Within(v, e)
            }
        }
        (Within(..), Within(..)) => Outcome::Lost,
    }
}
