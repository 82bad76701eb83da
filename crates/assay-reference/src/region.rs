//! Which part of each stage is needed, and where reads provably stay inside.
//!
//! Integer expressions are bounded by intervals over the box of a stage's variables. From the
//! wanted rows of the outputs the needed boxes follow backwards, stage by stage.

use std::ops::Range;

use crate::ast::Operator;
use crate::extent::integer_operation;
use crate::plan::{Int, IntId, Stage};

/// The least and largest value of an integer expression; none where nothing is known.
pub(crate) type Interval = Option<(i64, i64)>;

/// The interval of every integer expression of `stage` over the box `variables`, whose empty or
/// unknown sides give nothing. `dims` are the values of the dimensions.
pub(crate) fn intervals(stage: &Stage, dims: &[i64], variables: &[Interval]) -> Vec<Interval> {
    let mut found: Vec<Interval> = Vec::with_capacity(stage.ints.len());
    for int in &stage.ints {
        let of = |id: &IntId| found[*id];
        let next = match int {
            Int::Literal(value) => Some((*value, *value)),
            Int::Dim(dim) => Some((dims[*dim], dims[*dim])),
            Int::Index(variable) => variables.get(*variable).copied().flatten(),
            Int::Operation(operator, a, b) => operation(*operator, of(a), of(b)),
            Int::Least(a, b) => least(of(a), of(b)),
            Int::Largest(a, b) => least(of(a).map(negated), of(b).map(negated)).map(negated),
            Int::Gather(_) => None,
        };
        found.push(next);
    }
    found
}

/// The interval of the negated values; saturating, as the ends are bounds.
fn negated((low, high): (i64, i64)) -> (i64, i64) {
    (high.saturating_neg(), low.saturating_neg())
}

fn least(a: Interval, b: Interval) -> Interval {
    let ((al, ah), (bl, bh)) = (a?, b?);
    Some((al.min(bl), ah.min(bh)))
}

/// The hull over the corners: every operation here is monotone in each operand, division by a
/// divisor of one sign included. A remainder lies between 0 and its divisor.
fn operation(operator: Operator, a: Interval, b: Interval) -> Interval {
    let ((al, ah), (bl, bh)) = (a?, b?);
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    if divides && bl <= 0 && bh >= 0 {
        return None;
    }
    if operator == Operator::Remainder && (al, bl) != (ah, bh) {
        if bl > 0 && al >= 0 && ah < bl {
            return Some((al, ah));
        }
        return if bl > 0 { Some((0, bh - 1)) } else { Some((bl + 1, 0)) };
    }
    let corners = [(al, bl), (al, bh), (ah, bl), (ah, bh)];
    let values: Option<Vec<i64>> = corners
        .into_iter()
        .map(|(x, y)| integer_operation(operator, x, y, String::new).ok())
        .collect();
    let values = values?;
    Some((*values.iter().min()?, *values.iter().max()?))
}

/// `constant + sum of coefficient * variable`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Affine {
    pub(crate) constant: i64,
    pub(crate) coefficients: Vec<i64>,
}

impl Affine {
    pub(crate) fn constant(value: i64, variables: usize) -> Self {
        Self { constant: value, coefficients: vec![0; variables] }
    }

    /// `self * factor + other`; none on overflow.
    pub(crate) fn scaled_plus(&self, factor: i64, other: &Affine) -> Option<Affine> {
        let join = |a: i64, b: i64| a.checked_mul(factor)?.checked_add(b);
        let coefficients: Option<Vec<i64>> =
            self.coefficients.iter().zip(&other.coefficients).map(|(a, b)| join(*a, *b)).collect();
        Some(Affine { constant: join(self.constant, other.constant)?, coefficients: coefficients? })
    }

    /// Its value at `variables`. Wrapping: callers have bounded it by intervals.
    pub(crate) fn at(&self, variables: &[i64]) -> i64 {
        let products = self.coefficients.iter().zip(variables).map(|(c, v)| c.wrapping_mul(*v));
        products.fold(self.constant, i64::wrapping_add)
    }

    fn is_constant(&self) -> bool {
        self.coefficients.iter().all(|c| *c == 0)
    }
}

/// The affine form of each integer expression of `stage` that has one.
pub(crate) fn affine_forms(stage: &Stage, dims: &[i64]) -> Vec<Option<Affine>> {
    let count = stage.rank + 1;
    let mut found: Vec<Option<Affine>> = Vec::with_capacity(stage.ints.len());
    for int in &stage.ints {
        let next = match int {
            Int::Literal(value) => Some(Affine::constant(*value, count)),
            Int::Dim(dim) => Some(Affine::constant(dims[*dim], count)),
            Int::Index(variable) => {
                let mut form = Affine::constant(0, count);
                form.coefficients[*variable] = 1;
                Some(form)
            }
            Int::Operation(operator, a, b) => match (&found[*a], &found[*b]) {
                (Some(a), Some(b)) => affine_operation(*operator, a, b),
                _ => None,
            },
            Int::Least(..) | Int::Largest(..) | Int::Gather(_) => None,
        };
        found.push(next);
    }
    found
}

fn affine_operation(operator: Operator, a: &Affine, b: &Affine) -> Option<Affine> {
    let zero = Affine::constant(0, a.coefficients.len());
    match operator {
        Operator::Add => a.scaled_plus(1, b),
        Operator::Subtract => b.scaled_plus(-1, a),
        Operator::Multiply if b.is_constant() => a.scaled_plus(b.constant, &zero),
        Operator::Multiply if a.is_constant() => b.scaled_plus(a.constant, &zero),
        Operator::Divide | Operator::Remainder if a.is_constant() && b.is_constant() => {
            let value = integer_operation(operator, a.constant, b.constant, String::new).ok()?;
            Some(Affine::constant(value, a.coefficients.len()))
        }
        _ => None,
    }
}

/// The interval of a range of values; none if it is empty.
pub(crate) fn interval_of(range: &Range<i64>) -> Interval {
    (range.start < range.end).then(|| (range.start, range.end - 1))
}

/// The smallest range that holds both; an empty range holds nothing.
pub(crate) fn hull(a: &Range<i64>, b: &Range<i64>) -> Range<i64> {
    if a.is_empty() {
        return b.clone();
    }
    if b.is_empty() { a.clone() } else { a.start.min(b.start)..a.end.max(b.end) }
}

#[cfg(test)]
mod tests {
    use super::operation;
    use crate::ast::Operator;
    use crate::extent::integer_operation;

    #[test]
    fn an_interval_holds_every_value_of_its_operation() {
        let operators = [
            Operator::Add,
            Operator::Subtract,
            Operator::Multiply,
            Operator::Divide,
            Operator::Remainder,
        ];
        let ranges = || (-4..5).flat_map(|low| (low..5).map(move |high| (low, high)));
        for operator in operators {
            for (a, b) in ranges().flat_map(|a| ranges().map(move |b| (a, b))) {
                let Some((low, high)) = operation(operator, Some(a), Some(b)) else { continue };
                for (x, y) in (a.0..=a.1).flat_map(|x| (b.0..=b.1).map(move |y| (x, y))) {
                    let value = integer_operation(operator, x, y, String::new).unwrap();
                    assert!((low..=high).contains(&value), "{x} {operator:?} {y}");
                }
            }
        }
    }
}
