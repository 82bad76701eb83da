//! Rows of finite numbers, counted by short loops of the few operations that vectors have.
//!
//! A row that holds anything else is left to the general way, which counts the same. Whether errors
//! are outside the tolerance is first asked in `f32`, and in `f64` where that cannot tell.

#![expect(clippy::needless_bitwise_bool, reason = "a loop without branches becomes vectors")]

mod formats;
mod narrow;
mod small;
mod steps;
#[cfg(test)]
mod tests;
mod wide;

use assay_num::Format;

use crate::bounds::Bounds;
use crate::counts::{Counts, first};
use crate::scan::{Largest, Rules, Totals};

/// What rows need from one to the next.
pub(crate) struct Quick {
    bounds: Bounds,
    narrow: narrow::Row,
    wide: wide::Row,
    small: Option<small::LookUp>,
}

/// What one look at a row tells.
#[derive(Clone, Copy, Default)]
struct Found {
    steps: u64,
    steps_above: u64,
    max_steps: u64,
    max_error: f64,
    above: u64,
    /// Candidates that are zero where the reference is not.
    zeroed: u64,
    /// Zeros of different signs.
    zero_signs: u64,
    outside: u64,
    would_fail: u64,
}

impl Quick {
    pub(crate) fn new(rules: &Rules) -> Quick {
        Quick {
            bounds: Bounds::new(rules),
            narrow: narrow::Row::new(),
            wide: wide::Row::new(),
            small: small::LookUp::new(rules.format),
        }
    }

    /// Counts a whole row that starts at `from`; nothing is counted if it is not for here.
    #[inline(always)]
    pub(crate) fn row(
        &mut self,
        rules: &Rules,
        pair: (&[u8], &[u8]),
        from: u64,
        totals: &mut Totals,
    ) -> Option<Largest> {
        match rules.format {
            Format::F32 => self.narrow::<formats::F32>(rules, pair, from, totals),
            Format::Tf32 => self.narrow::<formats::Tf32>(rules, pair, from, totals),
            Format::F16 => self.narrow::<formats::F16>(rules, pair, from, totals),
            Format::Bf16 => self.narrow::<formats::Bf16>(rules, pair, from, totals),
            Format::I16 => self.narrow::<formats::Int16<true>>(rules, pair, from, totals),
            Format::U16 => self.narrow::<formats::Int16<false>>(rules, pair, from, totals),
            Format::F64 => self.wide::<wide::F64>(rules, pair, from, totals),
            Format::I32 => self.wide::<wide::Int32<true>>(rules, pair, from, totals),
            Format::U32 => self.wide::<wide::Int32<false>>(rules, pair, from, totals),
            Format::I64 | Format::U64 => None,
            _ => self.small(rules, pair, from, totals),
        }
    }
}

impl Found {
    fn note(&self, counts: &mut Counts) -> Largest {
        counts.ulp_sum += u128::from(self.steps);
        counts.ulp_sum_above += u128::from(self.steps_above);
        counts.max_ulp = counts.max_ulp.max(self.max_steps);
        counts.above += self.above;
        counts.outside += self.outside;
        counts.zero_would_fail += self.would_fail;
        counts.zeroed += self.zeroed;
        counts.zero_signs += self.zero_signs;
        Largest { key: self.max_steps, error: self.max_error }
    }
}

/// Takes note of the first element that differs, if none before `from` is known.
fn note_first(place: &mut Option<u64>, from: u64, find: impl FnOnce() -> Option<usize>) {
    if place.is_none_or(|first| first > from) {
        *place = first(*place, find().map(|lane| from + lane as u64));
    }
}
