//! The domains that carry one `f64` an element: values, classes and replays.

use assay_num::Format;

use crate::ast::{Operator, ReduceOperation};
use crate::evaluate::Replay;
use crate::functions::{larger, smaller, unary_all};
use crate::order::OrderedSum;
use crate::plan::{Binary, Program, Unary};
use crate::tile::{Domain, Lanes, Out, Place, Plane, TILE, Tile, bit_field, holds, load};

/// What happens to the result of each operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carry {
    /// Nothing.
    Exact,
    /// It becomes infinite or 0 where fp32 would be.
    Clamped,
    /// It is rounded to fp32.
    Rounded,
}

/// A domain that carries one `f64` an element.
pub(crate) struct Real<'a> {
    pub(crate) program: &'a Program,
    pub(crate) carry: Carry,
    /// Magnitudes up to this become 0 under [`Carry::Clamped`] and below it under
    /// [`Carry::Rounded`].
    pub(crate) tiny: f64,
    /// How sums are carried, if not in `f64`.
    pub(crate) replay: Option<Replay>,
    /// For each stage whether its sum is carried in more than `f64`.
    pub(crate) compensated: Vec<bool>,
}

/// Where fp32 rounds to infinity: half a unit above the largest finite value.
const OVERFLOW: f64 = ((1u128 << 104) - (1u128 << 79)) as f64 * (1u64 << 24) as f64;

impl Real<'_> {
    /// Carries one result.
    #[inline]
    fn carried(&self, value: f64) -> f64 {
        match self.carry {
            Carry::Exact => value,
            Carry::Clamped => clamped(value, self.tiny),
            Carry::Rounded => rounded(value, self.tiny),
        }
    }

    fn carry_all(&self, values: &mut [f64]) {
        match self.carry {
            Carry::Exact => {}
            Carry::Clamped => values.iter_mut().for_each(|v| *v = clamped(*v, self.tiny)),
            Carry::Rounded => values.iter_mut().for_each(|v| *v = rounded(*v, self.tiny)),
        }
    }
}

#[inline]
fn clamped(value: f64, tiny: f64) -> f64 {
    let magnitude = value.abs();
    if magnitude >= OVERFLOW {
        f64::INFINITY.copysign(value)
    } else if magnitude <= tiny {
        0.0f64.copysign(value)
    } else {
        value
    }
}

#[inline]
fn rounded(value: f64, tiny: f64) -> f64 {
    let single = f64::from(value as f32);
    if single.abs() < tiny { 0.0f64.copysign(single) } else { single }
}

/// One `f64` a lane; conditions are 1 and 0.
pub(crate) struct RealTile([f64; TILE]);

impl Tile for RealTile {
    fn new() -> Self {
        Self([0.0; TILE])
    }

    fn broadcast(&mut self, count: usize) {
        let first = self.0[0];
        self.0[..count].fill(first);
    }

    fn truths(&self, count: usize) -> Lanes {
        let lanes = self.0[..count].iter().enumerate();
        lanes.fold(0, |found, (lane, value)| found | Lanes::from(*value != 0.0) << lane)
    }
}

/// `out[i] = of(a[i], b[i])`.
#[inline]
fn zip(out: &mut [f64], a: &[f64], b: &[f64], of: impl Fn(f64, f64) -> f64) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = of(*a, *b);
    }
}

impl Domain for Real<'_> {
    type Tile = RealTile;
    type Sum = RealSum;
    const BOUNDED: bool = false;

    fn literal(&self, value: f64, out: &mut RealTile) {
        out.0[0] = self.carried(value);
    }

    fn whole(&self, value: &[i64], out: &mut RealTile, count: usize) {
        out.0[..count].iter_mut().zip(value).for_each(|(out, value)| *out = *value as f64);
        self.carry_all(&mut out.0[..count]);
    }

    fn load(&self, plane: Plane<'_>, place: Place<'_>, out: &mut RealTile, count: usize) {
        load(plane.value, place, &mut out.0[..count]);
        if crate::machine::rounds_into_f32(plane.format) {
            self.carry_all(&mut out.0[..count]);
        }
    }

    fn unary(&self, operation: Unary, a: &RealTile, out: &mut RealTile, count: usize) {
        unary_all(operation, &a.0[..count], &mut out.0[..count]);
        self.carry_all(&mut out.0[..count]);
    }

    fn binary(&self, op: Binary, [a, b]: [&RealTile; 2], out: &mut RealTile, count: usize) {
        let (out, a, b) = (&mut out.0[..count], &a.0[..count], &b.0[..count]);
        match op {
            Binary::Add => zip(out, a, b, |a, b| a + b),
            Binary::Subtract => zip(out, a, b, |a, b| a - b),
            Binary::Multiply => zip(out, a, b, |a, b| a * b),
            Binary::Divide => zip(out, a, b, |a, b| a / b),
            Binary::Max => zip(out, a, b, larger),
            Binary::Min => zip(out, a, b, smaller),
        }
        self.carry_all(out);
    }

    fn round(&self, format: Format, a: &RealTile, out: &mut RealTile, count: usize) {
        let pairs = out.0[..count].iter_mut().zip(&a.0);
        pairs.for_each(|(out, a)| *out = format.round(*a));
    }

    /// Rounded somewhere on the way: no rounding of the real value.
    fn near(&self, format: Format, a: &RealTile, out: &mut RealTile, count: usize) {
        if self.carry == Carry::Exact {
            out.0[..count].copy_from_slice(&a.0[..count]);
        } else {
            self.round(format, a, out, count);
        }
    }

    fn field(&self, word: &RealTile, [at, width]: [&[i64]; 2], out: &mut RealTile, count: usize) {
        for lane in 0..count {
            out.0[lane] = bit_field(word.0[lane], at[lane], width[lane]);
        }
    }

    fn compare(&self, how: Operator, [a, b]: [&RealTile; 2], out: &mut RealTile, count: usize) {
        let (a, b) = (&a.0[..count], &b.0[..count]);
        zip(&mut out.0[..count], a, b, |a, b| f64::from(holds(how, &a, &b)));
    }

    fn compare_whole(&self, how: Operator, [a, b]: [&[i64]; 2], out: &mut RealTile, n: usize) {
        for lane in 0..n {
            out.0[lane] = f64::from(holds(how, &a[lane], &b[lane]));
        }
    }

    fn and(&self, [a, b]: [&RealTile; 2], out: &mut RealTile, count: usize) {
        zip(&mut out.0[..count], &a.0, &b.0, |a, b| a * b);
    }

    fn or(&self, [a, b]: [&RealTile; 2], out: &mut RealTile, count: usize) {
        zip(&mut out.0[..count], &a.0, &b.0, f64::max);
    }

    fn not(&self, a: &RealTile, out: &mut RealTile, count: usize) {
        out.0[..count].iter_mut().zip(&a.0).for_each(|(out, a)| *out = 1.0 - a);
    }

    fn select(&self, [c, a, b]: [&RealTile; 3], out: &mut RealTile, count: usize) {
        for lane in 0..count {
            out.0[lane] = if c.0[lane] == 0.0 { b.0[lane] } else { a.0[lane] };
        }
    }

    fn start(&self, position: usize, terms: i64) -> RealSum {
        let operation = self.program.stages[position].reduction.as_ref().map(|r| r.operation);
        match (operation, self.replay) {
            (Some(ReduceOperation::Max), _) => RealSum::Max(f64::NEG_INFINITY),
            (Some(ReduceOperation::Min), _) => RealSum::Min(f64::INFINITY),
            (Some(ReduceOperation::Prod), _) => RealSum::Prod(1.0),
            (_, Some(replay)) if !self.compensated[position] => {
                RealSum::Ordered(OrderedSum::new(replay, terms))
            }
            _ if self.compensated[position] => {
                RealSum::Compensated { high: [0.0; LANES], low: [0.0; LANES] }
            }
            _ => RealSum::Sum([0.0; LANES]),
        }
    }

    fn add(&self, sum: &mut RealSum, position: usize, tiles: &[RealTile], count: usize) {
        let root = self.program.stages[position].root;
        let terms = &tiles[root].0[..count];
        match sum {
            RealSum::Sum(lanes) => add_lanes(lanes, terms),
            RealSum::Compensated { high, low } => add_compensated(high, low, terms),
            RealSum::Max(best) => *best = terms.iter().copied().fold(*best, larger),
            RealSum::Min(best) => *best = terms.iter().copied().fold(*best, smaller),
            RealSum::Prod(product) => {
                *product = terms.iter().fold(*product, |p, t| self.carried(p * t));
            }
            RealSum::Ordered(ordered) => ordered.extend(terms),
        }
    }

    fn add_products(&self, sum: &mut RealSum, _position: usize, ab: [Plane<'_>; 2]) -> bool {
        let [a, b] = ab;
        let RealSum::Sum(lanes) = sum else { return false };
        match self.carry {
            Carry::Exact => add_product_lanes(lanes, a.value, b.value, |p| p),
            Carry::Clamped => {
                let tiny = self.tiny;
                add_product_lanes(lanes, a.value, b.value, |p| clamped(p, tiny));
            }
            Carry::Rounded => return false,
        }
        true
    }

    fn finish(&self, sum: RealSum, _position: usize, out: &mut RealTile) {
        let total = match sum {
            RealSum::Sum(lanes) => total(&lanes),
            RealSum::Compensated { high, low } => compensated_total(&high, &low),
            RealSum::Max(value) | RealSum::Min(value) | RealSum::Prod(value) => value,
            RealSum::Ordered(ordered) => ordered.total(),
        };
        out.0[0] = self.carried(total);
    }

    fn carry(&self, position: usize, tile: &mut RealTile, count: usize) {
        if let Some(replay) = self.replay.filter(|_| !self.compensated[position]) {
            tile.0[..count].iter_mut().for_each(|state| *state = replay.accumulator.round(*state));
        }
    }

    fn store(&self, tile: &RealTile, count: usize, at: usize, out: &mut Out<'_>) {
        out.value[at..at + count].copy_from_slice(&tile.0[..count]);
    }
}

/// Partial sums of a chain; more than one, so that additions overlap and vectorise.
const LANES: usize = 8;

/// The state of a reduction.
pub(crate) enum RealSum {
    Sum([f64; LANES]),
    Compensated { high: [f64; LANES], low: [f64; LANES] },
    Max(f64),
    Min(f64),
    Prod(f64),
    Ordered(OrderedSum),
}

fn add_lanes(lanes: &mut [f64; LANES], terms: &[f64]) {
    let (chunks, rest) = terms.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane];
        }
    }
    rest.iter().zip(lanes).for_each(|(term, lane)| *lane += term);
}

#[inline]
fn add_product_lanes(lanes: &mut [f64; LANES], a: &[f64], b: &[f64], carried: impl Fn(f64) -> f64) {
    let ((a_chunks, a_rest), (b_chunks, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = *lanes;
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += carried(a[lane] * b[lane]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).zip(&mut sums);
    rest.for_each(|((a, b), lane)| *lane += carried(a * b));
    *lanes = sums;
}

fn total(lanes: &[f64; LANES]) -> f64 {
    let half: [f64; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
    (half[0] + half[2]) + (half[1] + half[3])
}

/// Knuth's exact sum of two: what addition loses goes to `low`.
fn add_compensated(high: &mut [f64; LANES], low: &mut [f64; LANES], terms: &[f64]) {
    for chunk in terms.chunks(LANES) {
        for ((term, high), low) in chunk.iter().zip(&mut *high).zip(&mut *low) {
            let (sum, lost) = two_sum(*high, *term);
            *high = sum;
            *low += lost;
        }
    }
}

/// The rounded sum and what rounding lost.
#[inline]
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let from_b = sum - a;
    (sum, (a - (sum - from_b)) + (b - from_b))
}

fn compensated_total(high: &[f64; LANES], low: &[f64; LANES]) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for part in high.iter().chain(low) {
        let (next, error) = two_sum(sum, *part);
        sum = next;
        lost += error;
    }
    // Where a part is infinite or NaN the lost part is NaN and means nothing.
    if sum.is_finite() { sum + lost } else { high.iter().sum() }
}
