//! Makes sure that a kernel which loses a term would be caught: the reference itself loses the
//! term, and some output has to move to ten times its bound.

use std::collections::BTreeMap;

use assay_num::Class;
use assay_reference::fill::Layout;
use assay_reference::fill::shapes::{LOUDEST, Loud, make_loud, undo};
use assay_reference::{
    Bounded, Dims, Drop, Evaluation, EvaluationError, Inputs, Program, ReduceOperation,
};

use super::judge::{excess, ratio};
use super::non_finite::meaningless;
use super::target::Target;
use crate::subject::Subject;

/// How far beyond its bound a lost term must move some output.
const ENOUGH: f64 = 10.0;

/// One shape at which terms are made loud.
pub(super) struct Loudness<'a> {
    pub(super) program: &'a Program,
    pub(super) target: &'a Target,
    pub(super) dims: &'a Dims,
    pub(super) layout: &'a Layout,
}

/// What became of a term.
#[derive(Debug, PartialEq)]
pub(super) enum Raised {
    /// Its loss shows.
    Loud,
    /// Its loss changes no output whatever it is: a kernel that loses it is right. Why.
    Nothing(String),
    /// Its loss would go unnoticed. Why.
    Quiet(String),
}

impl Loudness<'_> {
    /// Raises term `term` of a reduction in one row until its loss shows; leaves it as it was if
    /// that cannot be.
    pub(super) fn raise(
        &self,
        subject: &dyn Subject,
        inputs: &mut Inputs,
        (row, reduction, term): (usize, usize, usize),
    ) -> Raised {
        let mut best = 0f64;
        let levels = (0..=LOUDEST).flat_map(|level| [(level, false), (level, true)]);
        for (level, negative) in levels.filter(|level| *level != (0, true)) {
            let loud = Loud { reduction, term, level, negative };
            let changed = make_loud(self.layout, inputs, row, &loud);
            if changed.is_empty() && level > 0 {
                continue;
            }
            match self.loss(subject, inputs, (row, &loud)) {
                Ok(ratio) if ratio >= ENOUGH => return Raised::Loud,
                Ok(ratio) => best = best.max(ratio),
                Err(_) => {}
            }
            undo(inputs, &changed);
        }
        let described = &self.layout.reductions[reduction];
        let place = format!("term {term} of reduction `{}`", described.name);
        let alone = self.layout.fewest_terms(row) <= 1;
        if best == 0.0 && alone && !self.matters(inputs, row, reduction) {
            return Raised::Nothing(format!("losing {place} at {:?} changes nothing", self.dims));
        }
        Raised::Quiet(format!("losing {place} moves no output beyond {best:.1} times its bound"))
    }

    /// Whether other inputs of a reduction would change an output in `row`: a softmax over one key
    /// is 1 whatever its score.
    fn matters(&self, inputs: &Inputs, row: usize, reduction: usize) -> bool {
        let value = |inputs: &Inputs| {
            let mut evaluation = Evaluation::new(self.dims, inputs, &self.target.arithmetic);
            evaluation.rows = Some(row as i64..row as i64 + 1);
            self.program.value(&evaluation)
        };
        let Ok(before) = value(inputs) else { return true };
        self.layout.reductions[reduction].reads.iter().any(|(name, _)| {
            let mut others = inputs.clone();
            if let Some(elements) = others.tensors.get_mut(name) {
                // Other magnitudes and, for most, other neighbours' signs.
                let half = elements.len() / 2;
                elements.rotate_left(half);
                elements.iter_mut().step_by(3).for_each(|element| *element = -*element);
            }
            value(&others).map_or(true, |after| after != before)
        })
    }

    /// Whether losing a term shows in some row of inputs as they are.
    pub(super) fn shows(
        &self,
        subject: &dyn Subject,
        inputs: &Inputs,
        (reduction, term): (usize, usize),
    ) -> bool {
        let loud = Loud { reduction, term, level: 0, negative: false };
        let loss = |row: usize| self.loss(subject, inputs, (row, &loud)).unwrap_or(0.0);
        (0..self.layout.rows).any(|row| loss(row) >= ENOUGH)
    }

    /// The largest excess over error that losing the term makes in `row`; infinite if a class
    /// changes. Stops counting at [`ENOUGH`].
    fn loss(
        &self,
        subject: &dyn Subject,
        inputs: &Inputs,
        (row, loud): (usize, &Loud),
    ) -> Result<f64, EvaluationError> {
        let has_rows = self.target.signature.outputs.iter().any(|output| !output.shape.is_empty());
        let mut evaluation = Evaluation::new(self.dims, inputs, &self.target.arithmetic);
        // A step shows in the rows after it, where a scan walks the rows.
        let scans = self.layout.reductions[loud.reduction].operation == ReduceOperation::Scan;
        evaluation.rows = (has_rows && !scans).then_some(row as i64..row as i64 + 1);
        let Some(whole) = subject.reference(&evaluation).transpose()? else { return Ok(0.0) };
        if meaningless(&whole).is_some() {
            return Ok(0.0);
        }
        let reduction = self.layout.reductions[loud.reduction].name.clone();
        evaluation.drop = Some(Drop { reduction, term: loud.term as i64 });
        let without = self.without(&evaluation)?;
        let mut largest = 0f64;
        for output in &self.target.signature.outputs {
            if let Some((whole, without)) = whole.get(&output.name).zip(without.get(&output.name)) {
                largest = largest.max(moved(output.format, whole, without));
            }
        }
        if largest >= ENOUGH {
            return Ok(largest);
        }
        let classes = self.program.classes(&evaluation)?;
        let finite = classes.values().flatten().all(|class| *class == Class::Finite);
        Ok(if finite { largest } else { f64::INFINITY })
    }

    /// The outputs of a kernel that loses the term: as real numbers, or where the formula has
    /// rounding points as ranges, since beside an exact value every difference would count.
    fn without(
        &self,
        evaluation: &Evaluation<'_>,
    ) -> Result<BTreeMap<String, Bounded>, EvaluationError> {
        if self.program.has_rounding_points() {
            return self.program.range(evaluation);
        }
        let exact = |value| Bounded { value, ..Bounded::default() };
        let values = self.program.value(evaluation)?;
        Ok(values.into_iter().map(|(name, value)| (name, exact(value))).collect())
    }
}

/// The largest excess over error of `without` rounded to the output's format.
fn moved(format: assay_num::Format, whole: &Bounded, without: &Bounded) -> f64 {
    let mut largest = 0f64;
    for place in 0..whole.value.len() {
        let (value, error) = (whole.value[place], whole.error[place]);
        let Some(other) = nearest_of(without, place, value) else { continue };
        let distance = (other - value).abs();
        // The excess is at most the distance and half a step of the output's.
        if distance.is_finite() && distance < ENOUGH * error {
            continue;
        }
        largest = largest.max(ratio(excess(format, value, other), error));
        if largest >= ENOUGH {
            break;
        }
    }
    largest
}

/// What a kernel may give that is nearest to `target`; none without a bound on what it gives.
fn nearest_of(bounded: &Bounded, place: usize, target: f64) -> Option<f64> {
    let value = *bounded.value.get(place)?;
    match bounded.error.get(place) {
        None => Some(value),
        Some(error) if error.is_finite() => Some(target.max(value - error).min(value + error)),
        Some(_) => None,
    }
}
