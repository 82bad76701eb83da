//! Tiles, and what a domain does to them.

use assay_num::Format;

use crate::ast::Operator;
use crate::plan::{Binary, Unary};

/// Elements in a tile.
pub(crate) const TILE: usize = 128;
/// A set of lanes of a tile.
pub(crate) type Lanes = u128;

/// The lanes below `count`.
pub(crate) fn first_lanes(count: usize) -> Lanes {
    if count >= TILE { Lanes::MAX } else { (1 << count) - 1 }
}

/// What a stage computed, or an input.
#[derive(Clone, Copy)]
pub(crate) struct Plane<'a> {
    /// Values in row-major order.
    pub(crate) value: &'a [f64],
    /// Their errors; empty in domains without and for inputs.
    pub(crate) error: &'a [f64],
    /// Whether each depends on an inexact sum; empty where none does.
    pub(crate) inexact: &'a [bool],
    /// The format of an input's elements; none for stages.
    pub(crate) format: Option<Format>,
}

/// Where the lanes of a load lie in a plane.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// At `start`, `start + stride`, ...
    Strided {
        /// The offset of lane 0.
        start: usize,
        /// From one lane to the next.
        stride: isize,
    },
    /// At each offset; 0 where the offset is past the end.
    Each(&'a [usize]),
}

/// Copies a place of `from` to `out`.
pub(crate) fn load(from: &[f64], place: Place<'_>, out: &mut [f64]) {
    let count = out.len();
    match place {
        Place::Strided { start, stride: 1 } => {
            out.copy_from_slice(&from[start..start + count]);
        }
        Place::Strided { start, stride } => {
            for (lane, value) in out.iter_mut().enumerate() {
                *value = from[start.wrapping_add_signed(stride * lane as isize)];
            }
        }
        Place::Each(offsets) => {
            for (value, offset) in out.iter_mut().zip(offsets) {
                *value = from.get(*offset).copied().unwrap_or(0.0);
            }
        }
    }
}

/// Lanes in which the inputs make a bound meaningless.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// A denominator, radicand or logarithm's argument that its error lets vanish.
    pub(crate) vanishing: Lanes,
    /// A value that with its error passes the largest finite one.
    pub(crate) overflow: Lanes,
    /// A comparison decided within its error.
    pub(crate) undecided: Lanes,
}

impl Trouble {
    /// The lanes of both.
    pub(crate) fn joined(self, other: Trouble) -> Trouble {
        Trouble {
            vanishing: self.vanishing | other.vanishing,
            overflow: self.overflow | other.overflow,
            undecided: self.undecided | other.undecided,
        }
    }

    /// Those of its lanes that are in `lanes`.
    pub(crate) fn within(self, lanes: Lanes) -> Trouble {
        Trouble {
            vanishing: self.vanishing & lanes,
            overflow: self.overflow & lanes,
            undecided: self.undecided & lanes,
        }
    }
}

/// The elements of one tile.
pub(crate) trait Tile: Send {
    /// A tile of zeros.
    fn new() -> Self;
    /// Copies lane 0 to the first `count` lanes.
    fn broadcast(&mut self, count: usize);
    /// The lanes whose value, as a condition, is true.
    fn truths(&self, count: usize) -> Lanes;
    /// Lanes in trouble.
    fn trouble(&self) -> Trouble {
        Trouble::default()
    }
}

/// Where a stage's results go.
pub(crate) struct Out<'a> {
    pub(crate) value: &'a mut [f64],
    pub(crate) error: &'a mut [f64],
    pub(crate) inexact: &'a mut [bool],
}

/// What operations do to tiles. Every method writes the first `count` lanes of `out`.
pub(crate) trait Domain: Sync {
    /// Its tiles.
    type Tile: Tile;
    /// The state of one reduction.
    type Sum;
    /// Whether results have errors.
    const BOUNDED: bool;

    fn literal(&self, value: f64, out: &mut Self::Tile);
    fn whole(&self, value: &[i64], out: &mut Self::Tile, count: usize);
    fn load(&self, plane: Plane<'_>, place: Place<'_>, out: &mut Self::Tile, count: usize);
    fn unary(&self, operation: Unary, a: &Self::Tile, out: &mut Self::Tile, count: usize);
    fn binary(&self, op: Binary, ab: [&Self::Tile; 2], out: &mut Self::Tile, count: usize);
    /// `1 / b`, where `a` is the literal 1.
    fn reciprocal(&self, ab: [&Self::Tile; 2], out: &mut Self::Tile, count: usize) {
        self.binary(Binary::Divide, ab, out, count);
    }
    fn round(&self, format: Format, a: &Self::Tile, out: &mut Self::Tile, count: usize);
    fn near(&self, format: Format, a: &Self::Tile, out: &mut Self::Tile, count: usize);
    fn field(&self, word: &Self::Tile, fields: [&[i64]; 2], out: &mut Self::Tile, count: usize);
    fn compare(&self, how: Operator, ab: [&Self::Tile; 2], out: &mut Self::Tile, count: usize);
    fn compare_whole(&self, how: Operator, ab: [&[i64]; 2], out: &mut Self::Tile, count: usize);
    fn and(&self, ab: [&Self::Tile; 2], out: &mut Self::Tile, count: usize);
    fn or(&self, ab: [&Self::Tile; 2], out: &mut Self::Tile, count: usize);
    fn not(&self, a: &Self::Tile, out: &mut Self::Tile, count: usize);
    fn select(&self, cab: [&Self::Tile; 3], out: &mut Self::Tile, count: usize);

    /// A reduction of `terms` terms by the stage at `position`.
    fn start(&self, position: usize, terms: i64) -> Self::Sum;
    /// Takes the first `count` lanes of the stage's root as terms.
    fn add(&self, sum: &mut Self::Sum, position: usize, tiles: &[Self::Tile], count: usize);
    /// Takes products of neighbouring inputs as terms; false where the domain has no such way.
    fn add_products(&self, _sum: &mut Self::Sum, _position: usize, _ab: [Plane<'_>; 2]) -> bool {
        false
    }
    /// The reduction's result, in lane 0 of `out`.
    fn finish(&self, sum: Self::Sum, position: usize, out: &mut Self::Tile);

    /// Rounds a scan's state to the format that it is carried in.
    fn carry(&self, _position: usize, _tile: &mut Self::Tile, _count: usize) {}

    /// Writes `count` lanes as results, the first at `at`.
    fn store(&self, tile: &Self::Tile, count: usize, at: usize, out: &mut Out<'_>);
}

/// Whether `a how b`.
pub(crate) fn holds<T: PartialOrd>(how: Operator, a: &T, b: &T) -> bool {
    match how {
        Operator::Less => a < b,
        Operator::LessOrEqual => a <= b,
        Operator::Greater => a > b,
        Operator::GreaterOrEqual => a >= b,
        Operator::Equal => a == b,
        _ => a != b,
    }
}

/// Field `field` of `width` bits of a whole number, the least significant first; 0 past its bits.
pub(crate) fn bit_field(word: f64, field: i64, width: i64) -> f64 {
    let bits = if word < 0.0 { word as i64 as u64 } else { word as u64 };
    let shift = field.checked_mul(width).unwrap_or(i64::MAX);
    if !(0..64).contains(&shift) || width <= 0 {
        return 0.0;
    }
    let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    (bits >> shift & mask) as f64
}
