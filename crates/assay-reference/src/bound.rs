//! The error domain: every element carries a value v and a bound e with |computed - v| <= e.
//!
//! A running error analysis of fp32 kernels. Each operation propagates its operands' errors and
//! adds its own rounding, c u (|v| + p) + eta; an operation whose operands are exact and whose
//! value fp32 holds adds none.
//!
//! The range domain is this one with v allowed to be any number that the error is counted from: at
//! a rounding point both ends v - e and v + e are rounded, and v becomes the middle between them.
//! No rule asks more of v than that, so an interval is a middle and half a width throughout.

use assay_num::Format;

use crate::ast::Operator;
use crate::bound_sum::{BoundSum, SumRule};
use crate::functions::{larger, smaller, unary_all};
use crate::machine::rounds_into_f32;
use crate::plan::{Binary, Program, Unary};
use crate::rounding::{APPROXIMATE_DIVISOR_LIMIT, LARGEST, Rounding, UNIT, propagated};
use crate::tile::{
    Domain, Lanes, Out, Place, Plane, TILE, Tile, Trouble, bit_field, first_lanes, holds, load,
};

/// Evaluation of the bounds themselves rounds too; 2^-40 covers thousands of roundings.
const BOUND_SLACK: f64 = 1.0 + 1.0 / (1u64 << 40) as f64;

/// The error domain of one kernel.
pub(crate) struct Bounds<'a> {
    pub(crate) program: &'a Program,
    pub(crate) rounding: Rounding,
    /// How each stage's sum errs.
    pub(crate) sums: Vec<SumRule>,
    /// Whether values are the middles of intervals, which rounding points move, and elements
    /// without a bound are marked by an infinite error.
    pub(crate) ranged: bool,
}

/// A value and an error a lane. A condition's value is 1 or 0, and its error 1 where the other is
/// possible.
pub(crate) struct BoundTile {
    pub(crate) value: [f64; TILE],
    pub(crate) error: [f64; TILE],
    pub(crate) trouble: Trouble,
    /// Lanes that depend on a sum that fp32 need not hold exactly.
    pub(crate) inexact: Lanes,
    /// Lanes whose value is only the least magnitude there may be; see [`crate::open`].
    pub(crate) open: Lanes,
}

impl Tile for BoundTile {
    fn new() -> Self {
        let (value, error) = ([0.0; TILE], [0.0; TILE]);
        Self { value, error, trouble: Trouble::default(), inexact: 0, open: 0 }
    }

    fn broadcast(&mut self, count: usize) {
        let (value, error) = (self.value[0], self.error[0]);
        self.value[..count].fill(value);
        self.error[..count].fill(error);
        let spread = |lanes: Lanes| if lanes & 1 == 1 { first_lanes(count) } else { 0 };
        self.inexact = spread(self.inexact);
        self.open = spread(self.open);
        self.trouble = Trouble {
            vanishing: spread(self.trouble.vanishing),
            overflow: spread(self.trouble.overflow),
            undecided: spread(self.trouble.undecided),
        };
    }

    fn truths(&self, count: usize) -> Lanes {
        lanes_where(count, |lane| self.value[lane] != 0.0)
    }

    fn trouble(&self) -> Trouble {
        self.trouble
    }
}

impl BoundTile {
    /// Takes the trouble and the inexact lanes of `from`, and forgets its own.
    fn inherit(&mut self, from: &[&BoundTile]) {
        self.trouble = Trouble::default();
        self.inexact = 0;
        self.open = 0;
        for tile in from {
            self.trouble = self.trouble.joined(tile.trouble);
            self.inexact |= tile.inexact;
        }
    }

    /// Notes lanes that leave an operation's domain; that they are not finite follows from it.
    fn note_vanishing(&mut self, lanes: Lanes) {
        self.trouble.vanishing |= lanes;
        self.trouble.overflow &= !lanes;
        self.open &= !lanes;
    }

    /// Notes lanes whose value with its error passes the largest finite one; with `ranged` those
    /// that do so only now are open.
    fn check_overflow(&mut self, count: usize, ranged: bool) {
        let fits = |lane: usize| self.value[lane].abs() + self.error[lane] <= LARGEST;
        if !(0..count).fold(true, |all, lane| all & fits(lane)) {
            let before = self.trouble.overflow | self.trouble.vanishing;
            let beyond = lanes_where(count, |lane| !fits(lane));
            self.trouble.overflow |= beyond;
            if ranged {
                self.open_beyond(beyond & !before, count);
            }
        }
    }
}

/// The lanes below `count` for which `is` holds.
fn lanes_where(count: usize, is: impl Fn(usize) -> bool) -> Lanes {
    (0..count).fold(0, |found, lane| found | Lanes::from(is(lane)) << lane)
}

impl Bounds<'_> {
    /// Adds the rounding of a correctly rounded operation to the propagated errors in `out`.
    fn round_to_nearest(&self, out: &mut BoundTile, count: usize) {
        let rounding = self.rounding;
        for (error, value) in out.error[..count].iter_mut().zip(&out.value) {
            let inexact = *error + UNIT * (value.abs() + *error) + rounding.eta;
            let exact = *error == 0.0 && rounding.holds(*value);
            *error = if exact { 0.0 } else { inexact };
        }
        out.check_overflow(count, self.ranged);
    }

    /// Adds a rounding of `c` units of the value.
    fn round_within(&self, c: f64, out: &mut BoundTile, count: usize) {
        if c == 1.0 {
            return self.round_to_nearest(out, count);
        }
        let eta = c * self.rounding.eta;
        for (error, value) in out.error[..count].iter_mut().zip(&out.value) {
            *error += c * UNIT * (value.abs() + *error) + eta;
        }
        out.check_overflow(count, self.ranged);
    }

    fn divide(&self, [a, b]: [&BoundTile; 2], c: f64, out: &mut BoundTile, count: usize) {
        let (_, flushes) = self.rounding.division();
        let vanishes = |lane: usize| b.value[lane].abs() <= b.error[lane];
        for lane in 0..count {
            let (divisor, error) = (b.value[lane].abs(), b.error[lane]);
            let value = a.value[lane] / b.value[lane];
            let mut p = (a.error[lane] + value.abs() * error) / (divisor - error);
            if flushes && divisor + error > APPROXIMATE_DIVISOR_LIMIT {
                p += value.abs();
            }
            out.value[lane] = value;
            // A quotient of 0 has no error, whatever the divisor's.
            out.error[lane] = if a.error[lane] == 0.0 && value == 0.0 { 0.0 } else { p };
        }
        self.round_within(c, out, count);
        out.note_vanishing(lanes_where(count, vanishes));
    }

    /// `|a| eb + |b| ea + ea eb` in each lane.
    fn multiply([a, b]: [&BoundTile; 2], out: &mut BoundTile, count: usize) {
        for lane in 0..count {
            let (x, y) = (a.value[lane], b.value[lane]);
            let (ex, ey) = (a.error[lane], b.error[lane]);
            out.value[lane] = x * y;
            out.error[lane] = x.abs() * ey + y.abs() * ex + ex * ey;
        }
    }

    /// The errors of values of an input.
    fn leaves(&self, format: Option<Format>, out: &mut BoundTile, count: usize) {
        if rounds_into_f32(format) || self.rounding.flushed > 0.0 {
            for lane in 0..count {
                out.error[lane] = self.rounding.leaf(out.value[lane]);
            }
        } else {
            out.error[..count].fill(0.0);
        }
        out.inherit(&[]);
    }
}

impl Domain for Bounds<'_> {
    type Tile = BoundTile;
    type Sum = BoundSum;
    const BOUNDED: bool = true;

    fn literal(&self, value: f64, out: &mut BoundTile) {
        out.value[0] = value;
        out.error[0] = self.rounding.leaf(value);
        out.inherit(&[]);
    }

    fn whole(&self, value: &[i64], out: &mut BoundTile, count: usize) {
        for (lane, value) in value[..count].iter().enumerate() {
            out.value[lane] = *value as f64;
            out.error[lane] = self.rounding.leaf(out.value[lane]);
        }
        out.inherit(&[]);
    }

    fn load(&self, plane: Plane<'_>, place: Place<'_>, out: &mut BoundTile, count: usize) {
        load(plane.value, place, &mut out.value[..count]);
        if plane.format.is_some() {
            return self.leaves(plane.format, out, count);
        }
        out.inherit(&[]);
        load(plane.error, place, &mut out.error[..count]);
        if self.ranged {
            out.reopen(count);
        }
        if !plane.inexact.is_empty() {
            let at = |lane: usize| match place {
                Place::Strided { start, stride } => {
                    start.wrapping_add_signed(stride * lane as isize)
                }
                Place::Each(offsets) => offsets[lane],
            };
            out.inexact = lanes_where(count, |lane| plane.inexact.get(at(lane)) == Some(&true));
        }
    }

    fn unary(&self, operation: Unary, a: &BoundTile, out: &mut BoundTile, count: usize) {
        out.inherit(&[a]);
        unary_all(operation, &a.value[..count], &mut out.value[..count]);
        if matches!(operation, Unary::Negate | Unary::Abs) {
            out.error[..count].copy_from_slice(&a.error[..count]);
            return self.open_unary(operation, a, out, count);
        }
        let mut vanishing = 0;
        // `ex2` of either zero is exactly 1 (PTX ISA, `ex2`, table of special values), and so is
        // every exponential that is made of it or of a polynomial at 0.
        let nearest = matches!(operation, Unary::Sqrt | Unary::Rsqrt)
            && self.rounding.function(operation, 0.0, 0.0) == 1.0;
        for lane in 0..count {
            let (argument, error, value) = (a.value[lane], a.error[lane], out.value[lane]);
            let grows = matches!(operation, Unary::Exp | Unary::Exp2);
            if self.ranged && grows && value == f64::INFINITY && argument - error > 200.0 {
                (out.value[lane], out.error[lane]) = (1e300, 1e299);
                continue;
            }
            let Some(p) = propagated(operation, argument, error, value) else {
                out.error[lane] = f64::INFINITY;
                vanishing |= 1 << lane;
                continue;
            };
            let c = self.rounding.function(operation, argument, error);
            let one = matches!(operation, Unary::Exp | Unary::Exp2) && argument == 0.0;
            let exact = p == 0.0 && (c == 0.0 || one || nearest && self.rounding.holds(value));
            let eta = c * self.rounding.eta;
            out.error[lane] = if exact { 0.0 } else { p + c * UNIT * (value.abs() + p) + eta };
        }
        out.check_overflow(count, self.ranged);
        out.note_vanishing(vanishing);
        self.open_unary(operation, a, out, count);
    }

    fn binary(&self, op: Binary, ab: [&BoundTile; 2], out: &mut BoundTile, count: usize) {
        let [a, b] = ab;
        out.inherit(&ab);
        let sum = |out: &mut BoundTile, of: fn(f64, f64) -> f64| {
            for lane in 0..count {
                out.value[lane] = of(a.value[lane], b.value[lane]);
                out.error[lane] = a.error[lane] + b.error[lane];
            }
        };
        let extreme = |out: &mut BoundTile, of: fn(f64, f64) -> f64| {
            for lane in 0..count {
                out.value[lane] = of(a.value[lane], b.value[lane]);
                out.error[lane] = larger(a.error[lane], b.error[lane]);
            }
        };
        match op {
            Binary::Add => sum(out, |a, b| a + b),
            Binary::Subtract => sum(out, |a, b| a - b),
            Binary::Multiply => Self::multiply(ab, out, count),
            Binary::Divide => self.divide(ab, self.rounding.division().0, out, count),
            Binary::Max => extreme(out, larger),
            Binary::Min => extreme(out, smaller),
        }
        if matches!(op, Binary::Add | Binary::Subtract | Binary::Multiply) {
            self.round_to_nearest(out, count);
        }
        self.open_binary(op, ab, out, count);
    }

    fn reciprocal(&self, ab: [&BoundTile; 2], out: &mut BoundTile, count: usize) {
        out.inherit(&ab);
        self.divide(ab, self.rounding.reciprocal(), out, count);
        self.open_binary(Binary::Divide, ab, out, count);
    }

    /// Rounding is monotone, so the computed value rounds between the rounded ends of its interval.
    fn round(&self, format: Format, a: &BoundTile, out: &mut BoundTile, count: usize) {
        out.inherit(&[a]);
        for lane in 0..count {
            let (value, error) = (a.value[lane], a.error[lane]);
            let rounded = format.round(value);
            out.value[lane] = rounded;
            out.error[lane] = 0.0;
            let (mut low, mut high) = (rounded, rounded);
            if error != 0.0 {
                (low, high) = (format.round(value - error), format.round(value + error));
            }
            if !(low.is_finite() && high.is_finite()) {
                out.trouble.overflow |= 1 << lane;
            }
            if low == high {
                continue;
            }
            if self.ranged && high - low < f64::INFINITY {
                out.value[lane] = low + (high - low) / 2.0;
                out.error[lane] = (high - low) / 2.0;
            } else {
                out.error[lane] = (high - rounded).max(rounded - low);
            }
        }
        out.open_round(format, a, count);
    }

    fn near(&self, format: Format, a: &BoundTile, out: &mut BoundTile, count: usize) {
        out.inherit(&[a]);
        let (unit, half) = (format.unit_roundoff(), format.min_subnormal() / 2.0);
        for lane in 0..count {
            let (value, p) = (a.value[lane], a.error[lane]);
            let exact = p == 0.0 && format.round(value) == value;
            out.value[lane] = value;
            out.error[lane] = if exact { 0.0 } else { p + unit * (value.abs() + p) + half };
            let fits = value.abs() + p <= format.max_finite();
            out.trouble.overflow |= Lanes::from(!fits) << lane;
        }
        out.open_round(format, a, count);
    }

    fn field(&self, word: &BoundTile, [at, width]: [&[i64]; 2], out: &mut BoundTile, n: usize) {
        out.inherit(&[word]);
        for lane in 0..n {
            out.value[lane] = bit_field(word.value[lane], at[lane], width[lane]);
            // The bits of an inexact word are anything.
            out.error[lane] = if word.error[lane] == 0.0 { 0.0 } else { f64::INFINITY };
        }
    }

    fn compare(&self, how: Operator, ab: [&BoundTile; 2], out: &mut BoundTile, count: usize) {
        out.inherit(&ab);
        let [a, b] = ab;
        for lane in 0..count {
            let (x, y) = (a.value[lane], b.value[lane]);
            let reach = a.error[lane] + b.error[lane];
            out.value[lane] = f64::from(holds(how, &x, &y));
            let decided = reach == 0.0 || (x - y).abs() > reach;
            out.error[lane] = f64::from(!decided);
        }
    }

    fn compare_whole(&self, how: Operator, [a, b]: [&[i64]; 2], out: &mut BoundTile, n: usize) {
        out.inherit(&[]);
        for lane in 0..n {
            out.value[lane] = f64::from(holds(how, &a[lane], &b[lane]));
            out.error[lane] = 0.0;
        }
    }

    fn and(&self, ab: [&BoundTile; 2], out: &mut BoundTile, count: usize) {
        junction(ab, 0.0, out, count);
    }

    fn or(&self, ab: [&BoundTile; 2], out: &mut BoundTile, count: usize) {
        junction(ab, 1.0, out, count);
    }

    fn not(&self, a: &BoundTile, out: &mut BoundTile, count: usize) {
        out.inherit(&[a]);
        for lane in 0..count {
            out.value[lane] = 1.0 - a.value[lane];
            out.error[lane] = a.error[lane];
        }
    }

    /// The branch the value takes; where the other is possible, its distance and error count too.
    fn select(&self, [c, a, b]: [&BoundTile; 3], out: &mut BoundTile, count: usize) {
        let (mut taken_a, mut unsure) = (0, 0);
        for lane in 0..count {
            let (taken, other) = if c.value[lane] == 0.0 { (b, a) } else { (a, b) };
            taken_a |= Lanes::from(c.value[lane] != 0.0) << lane;
            out.value[lane] = taken.value[lane];
            out.error[lane] = taken.error[lane];
            if c.error[lane] != 0.0 {
                unsure |= 1 << lane;
                let distance = (taken.value[lane] - other.value[lane]).abs();
                out.error[lane] = larger(taken.error[lane], other.error[lane] + distance);
            }
        }
        let lanes = first_lanes(count);
        let (use_a, use_b) = (taken_a | unsure, !taken_a & lanes | unsure);
        out.inexact = c.inexact | a.inexact & use_a | b.inexact & use_b;
        out.trouble = c.trouble.joined(a.trouble.within(use_a)).joined(b.trouble.within(use_b));
        out.trouble.undecided |= unsure;
        out.open = (a.open & taken_a | b.open & !taken_a & lanes) & !unsure;
    }

    fn start(&self, position: usize, terms: i64) -> BoundSum {
        let operation = self.program.stages[position].reduction.as_ref().map(|r| r.operation);
        let compensated = self.sums[position].accumulator == Format::F64;
        BoundSum::new(operation, terms, compensated)
    }

    fn add(&self, sum: &mut BoundSum, position: usize, tiles: &[BoundTile], count: usize) {
        let root = self.program.stages[position].root;
        if let Some(tensor) = &self.sums[position].tensor {
            let factors = tensor.factors.map(|factor| &tiles[factor]);
            return sum.add_elements(tensor, &tiles[root], factors, count);
        }
        sum.add(&tiles[root], count);
        if let Some(form) = self.sums[position].variance {
            sum.add_differences([&tiles[form.sample], &tiles[form.mean]], self.rounding, count);
        }
    }

    fn add_products(&self, sum: &mut BoundSum, position: usize, ab: [Plane<'_>; 2]) -> bool {
        let [a, b] = ab;
        let plain = |plane: &Plane<'_>| !rounds_into_f32(plane.format);
        let tensor = self.sums[position].tensor.is_some();
        if tensor || !plain(&a) || !plain(&b) || self.rounding.flushed > 0.0 {
            return false;
        }
        sum.add_products(a.value, b.value, self.rounding.eta)
    }

    fn finish(&self, sum: BoundSum, position: usize, out: &mut BoundTile) {
        out.inherit(&[]);
        sum.finish(&self.sums[position], self.rounding, out);
    }

    /// A state narrower than fp32 is rounded once more at each step.
    fn carry(&self, position: usize, tile: &mut BoundTile, count: usize) {
        let format = self.sums[position].accumulator;
        if format.significand_bits() >= Format::F32.significand_bits() {
            return;
        }
        let (unit, half) = (format.unit_roundoff(), format.min_subnormal() / 2.0);
        for lane in 0..count {
            let (value, error) = (tile.value[lane], tile.error[lane]);
            let exact = error == 0.0 && format.round(value) == value;
            let rounded = error + unit * (1.0 + UNIT) * (value.abs() + error) + half;
            tile.error[lane] = if exact { 0.0 } else { rounded };
            let fits = value.abs() + error <= format.max_finite();
            tile.trouble.overflow |= Lanes::from(!fits) << lane;
        }
    }

    fn store(&self, tile: &BoundTile, count: usize, at: usize, out: &mut Out<'_>) {
        out.value[at..at + count].copy_from_slice(&tile.value[..count]);
        for lane in 0..count {
            out.error[at + lane] = tile.error[lane] * BOUND_SLACK;
            out.inexact[at + lane] = tile.inexact >> lane & 1 == 1;
        }
        if self.ranged {
            tile.mark_unbounded(&mut out.error[at..at + count]);
        }
    }
}

/// `&&` (`decisive` 0) or `||` (`decisive` 1): a certain operand of the decisive value decides.
fn junction(ab: [&BoundTile; 2], decisive: f64, out: &mut BoundTile, count: usize) {
    out.inherit(&ab);
    let [a, b] = ab;
    for lane in 0..count {
        let decides = |tile: &BoundTile| tile.value[lane] == decisive && tile.error[lane] == 0.0;
        let either = a.value[lane] == decisive || b.value[lane] == decisive;
        out.value[lane] = if either { decisive } else { 1.0 - decisive };
        let unsure = a.error[lane] != 0.0 || b.error[lane] != 0.0;
        out.error[lane] = f64::from(unsure && !decides(a) && !decides(b));
    }
}
