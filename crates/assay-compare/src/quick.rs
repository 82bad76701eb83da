//! Rows of finite numbers, counted by short loops of the few operations that vectors have.
//!
//! A row that holds anything else is left to the general way, which counts the same. Whether errors
//! are outside the tolerance is first asked in `f32`, and in `f64` where that cannot tell.

#![expect(clippy::needless_bitwise_bool, reason = "a loop without branches becomes vectors")]

mod narrow;
#[cfg(test)]
mod tests;
mod wide;

use std::mem;

use assay_num::Format;

use crate::bounds::Bounds;
use crate::counts::{Counts, HALVES, first};
use crate::scan::{Lanes, Rules};

/// Counters of a place that are raised in turn, since one counter cannot be raised twice at once.
const TABLES: usize = 8;

/// Places of a table of distances by their number of bits: a power of two needs no check.
const BITS: usize = 128;

/// Places of a table of errors: of `f32` its exponent and first bit, of `f64` its half octave.
const PLACES: usize = 512;

/// What is counted over fewer elements than a counter can count.
pub(crate) struct Quick {
    bounds: Bounds,
    distances: [[u32; TABLES]; BITS],
    errors: [[u32; TABLES]; PLACES],
    max_error: f64,
    max_steps: u64,
    narrow: narrow::Row,
    wide: wide::Row,
}

/// What one look at a row tells.
#[derive(Clone, Copy, Default)]
struct Found {
    steps: u64,
    steps_above: u64,
    max_steps: u64,
    max_error: f64,
    above: u64,
    /// Candidates that are zero.
    zeros: u64,
    outside: u64,
    would_fail: u64,
}

impl Quick {
    pub(crate) fn new(rules: &Rules) -> Quick {
        Quick {
            bounds: Bounds::new(rules),
            distances: [[0; TABLES]; BITS],
            errors: [[0; TABLES]; PLACES],
            max_error: 0.0,
            max_steps: 0,
            narrow: narrow::Row::new(),
            wide: wide::Row::new(),
        }
    }

    /// Counts a whole row that starts at `from`; false, and nothing counted, if it is not for here.
    #[inline(always)]
    pub(crate) fn row(
        &mut self,
        rules: &Rules,
        (reference, candidate): (&[u8], &[u8]),
        from: u64,
        lanes: &mut Lanes,
        counts: &mut Counts,
    ) -> bool {
        let pair = (reference, candidate);
        let done = match rules.format {
            Format::F32 => self.narrow::<narrow::F32>(rules, pair, from, lanes, counts),
            Format::Tf32 => self.narrow::<narrow::Tf32>(rules, pair, from, lanes, counts),
            Format::F16 => self.narrow::<narrow::F16>(rules, pair, from, lanes, counts),
            Format::Bf16 => self.narrow::<narrow::Bf16>(rules, pair, from, lanes, counts),
            Format::F64 => self.wide(rules, pair, from, lanes, counts),
            _ => None,
        };
        done.is_some()
    }

    fn note(&mut self, found: &Found, counts: &mut Counts) {
        counts.ulp_sum += u128::from(found.steps);
        counts.ulp_sum_above += u128::from(found.steps_above);
        counts.max_ulp = counts.max_ulp.max(found.max_steps);
        counts.above += found.above;
        counts.outside += found.outside;
        counts.zero_would_fail += found.would_fail;
        self.max_steps = self.max_steps.max(found.max_steps);
        self.max_error = self.max_error.max(found.max_error);
    }

    /// The largest distance and the largest error since it was last asked.
    pub(crate) fn take_largest(&mut self) -> (u64, f64) {
        (mem::take(&mut self.max_steps), mem::take(&mut self.max_error))
    }

    /// Adds the tables to the counts.
    pub(crate) fn give(&self, rules: &Rules, counts: &mut Counts) {
        let sum = |all: &[u32; TABLES]| all.iter().map(|&count| u64::from(count)).sum::<u64>();
        for (count, all) in counts.histogram.iter_mut().zip(&self.distances) {
            *count = count.wrapping_add(sum(all));
        }
        for (place, all) in self.errors.iter().enumerate().filter(|(_, all)| **all != [0; TABLES]) {
            let bin = if rules.format.bits() == 64 { place } else { narrow::bin(place) };
            let count = &mut counts.halves[bin.min(HALVES - 1)];
            *count = count.wrapping_add(sum(all));
        }
        // Errors of zero, which are those of distance 0, are none.
        counts.halves[0] = counts.halves[0].wrapping_sub(sum(&self.distances[0]));
    }
}

/// Takes note of the first element that differs, if none before `from` is known.
fn note_first(place: &mut Option<u64>, from: u64, find: impl FnOnce() -> Option<usize>) {
    if place.is_none_or(|first| first > from) {
        *place = first(*place, find().map(|lane| from + lane as u64));
    }
}
