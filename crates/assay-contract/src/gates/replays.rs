//! The sums of a kernel replayed in f16 and bf16, and by how much each replay missed.

use assay_num::Format;
use assay_reference::fill::{Layout, ReductionLayout, order_name, terms_per_accumulator};
use assay_reference::{
    Arithmetic, Bounded, Evaluation, EvaluationError, Order, ReduceOperation, Replay, Signature,
};

use super::judge::excess;
use crate::subject::Subject;

/// How many bounds a replay must miss by.
const ENOUGH: f64 = 100.0;
/// Rows replayed at first; more are taken only where these prove too little.
const FIRST_ROWS: usize = 4;

/// Every replay of one sum, with the most it missed by so far.
pub(super) struct Replays {
    sum: String,
    /// The formula's other sums, which stay as they are.
    others: Vec<String>,
    tried: Vec<Tried>,
}

struct Tried {
    replay: Replay,
    /// The largest excess over the bound in any fill; infinite for NaN and infinities.
    missed: f64,
    /// True if no accumulator takes a second term and the partials meet in fp32.
    cannot_differ: bool,
}

impl Replays {
    /// Replays of `reduction` in f16 and bf16, in each order, with and without fp32 partials. The
    /// steps of a scan have one order.
    pub(super) fn of(layout: &Layout, reduction: &ReductionLayout, orders: &[Order]) -> Replays {
        let is_scan = reduction.operation == ReduceOperation::Scan;
        let orders = if is_scan { &[Order::Chain] } else { orders };
        let mut tried = Vec::new();
        for accumulator in [Format::F16, Format::Bf16] {
            for order in orders {
                for partials_fp32 in [false, true] {
                    // A chain has one partial sum, which nothing follows.
                    if partials_fp32 && *order == Order::Chain {
                        continue;
                    }
                    let alone = terms_per_accumulator(order, reduction.terms) <= 1;
                    tried.push(Tried {
                        replay: Replay { accumulator, order: *order, partials_fp32 },
                        missed: 0.0,
                        cannot_differ: alone && partials_fp32,
                    });
                }
            }
        }
        let others = layout.reductions.iter().map(|other| other.name.clone());
        let others = others.filter(|other| *other != reduction.name).collect();
        Replays { sum: reduction.name.clone(), others, tried }
    }

    /// Replays one fill with every accumulator that has not yet missed by enough.
    ///
    /// # Errors
    /// An evaluation that cannot be done.
    pub(super) fn take(
        &mut self,
        subject: &dyn Subject,
        signature: &Signature,
        (whole, rows): (&Evaluation<'_>, usize),
    ) -> Result<(), EvaluationError> {
        let has_rows = signature.outputs.iter().any(|output| !output.shape.is_empty());
        let (mut from, mut count) = (0, FIRST_ROWS);
        while from < rows && self.tried.iter().any(|tried| tried.missed < ENOUGH) {
            let to = if has_rows { (from + count).min(rows) } else { rows };
            let mut evaluation = whole.clone();
            evaluation.rows = has_rows.then_some(from as i64..to as i64);
            self.take_rows(subject, signature, &evaluation)?;
            (from, count) = (to, 2 * count);
        }
        Ok(())
    }

    fn take_rows(
        &mut self,
        subject: &dyn Subject,
        signature: &Signature,
        evaluation: &Evaluation<'_>,
    ) -> Result<(), EvaluationError> {
        let Some(bounded) = subject.reference(evaluation).transpose()? else { return Ok(()) };
        let arithmetic = self.alone(evaluation.arithmetic);
        let evaluation = &Evaluation { arithmetic: &arithmetic, ..evaluation.clone() };
        for tried in self.tried.iter_mut().filter(|tried| tried.missed < ENOUGH) {
            let replayed = subject.simulate(evaluation, &tried.replay).transpose()?;
            let Some(replayed) = replayed else { continue };
            for output in &signature.outputs {
                if let Some((bounded, got)) =
                    bounded.get(&output.name).zip(replayed.get(&output.name))
                {
                    tried.missed = tried.missed.max(missed(output.format, bounded, got));
                }
            }
        }
        Ok(())
    }

    /// Arithmetic in which this sum alone is narrow: a replay leaves sums in f64 as they are.
    fn alone(&self, arithmetic: &Arithmetic) -> Arithmetic {
        let mut alone = arithmetic.clone();
        alone.accumulators = self.others.iter().map(|name| (name.clone(), Format::F64)).collect();
        alone.accumulators.remove(&self.sum);
        alone
    }

    /// Names the replays that can round nothing.
    pub(super) fn that_cannot_differ(&self) -> impl Iterator<Item = String> {
        self.tried.iter().filter(|tried| tried.is_idle()).map(Tried::name)
    }

    /// Says of each replay that missed too little how much it missed by.
    pub(super) fn unproven(&self) -> impl Iterator<Item = String> {
        let weak = self.tried.iter().filter(|tried| tried.missed < ENOUGH && !tried.is_idle());
        weak.map(|tried| format!("{} misses by {:.1} times the bound", tried.name(), tried.missed))
    }

    /// How many replays missed by enough.
    pub(super) fn proven(&self) -> usize {
        self.tried.iter().filter(|tried| tried.missed >= ENOUGH).count()
    }

    /// The least that a replay missed by, of those that missed by enough, and which it was.
    pub(super) fn least_proven(&self) -> Option<(f64, String)> {
        let proven = self.tried.iter().filter(|tried| tried.missed >= ENOUGH);
        let least = proven.min_by(|a, b| a.missed.total_cmp(&b.missed))?;
        Some((least.missed, least.name()))
    }
}

impl Tried {
    fn is_idle(&self) -> bool {
        self.cannot_differ && self.missed == 0.0
    }

    fn name(&self) -> String {
        let order = order_name(&self.replay.order);
        let partials = if self.replay.partials_fp32 { " with fp32 partials" } else { "" };
        format!("{} {order}{partials}", self.replay.accumulator.name())
    }
}

/// A factor, as people read it.
pub(super) fn times(factor: f64) -> String {
    if factor < 1e6 { format!("{factor:.0}") } else { format!("{factor:.0e}") }
}

/// The largest excess over the bound, where the bound of an exact value counts as half a step of
/// fp32 there.
fn missed(format: Format, bounded: &Bounded, got: &[f64]) -> f64 {
    let mut largest = 0f64;
    for (place, got) in got.iter().enumerate() {
        let (value, error) = (bounded.value[place], bounded.error[place]);
        let bound = error.max(Format::F32.ulp(value) / 2.0);
        let distance = (got - value).abs();
        if distance.is_finite() && distance <= largest * bound {
            continue;
        }
        let excess = if distance.is_finite() { excess(format, value, *got) } else { f64::INFINITY };
        largest = largest.max(excess / bound);
    }
    largest
}
