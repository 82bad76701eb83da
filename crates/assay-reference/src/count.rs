//! How many operations a formula asks for, counted by walking it at given dims.
//!
//! Each statement counts once an element, whoever reads it; what stands twice in one element of
//! one statement counts once. A sum of n terms is n additions, to an accumulator that begins at 0,
//! so that a dot of n is 2n. Extremes, comparisons, signs, roundings and the arithmetic of indices
//! count nothing, and neither does what is the same for all elements, such as a scalar's square.

use crate::ast::{Operator, ReduceOperation};
use crate::error::EvaluationError;
use crate::extent::{Dims, integer_operation};
use crate::frame::Frame;
use crate::plan::{Binary, Int, IntId, Node, NodeId, Program, Stage, StageReduction, Unary};

/// Operations that a formula asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Operations {
    /// Additions and subtractions.
    pub additions: u128,
    /// Multiplications.
    pub multiplications: u128,
    /// Divisions.
    pub divisions: u128,
    /// Roots, exponentials and the other functions, one each.
    pub functions: u128,
}

impl Operations {
    /// All of them, each one.
    #[must_use]
    pub fn flop(&self) -> f64 {
        let all = [self.additions, self.multiplications, self.divisions, self.functions];
        all.into_iter().fold(0, u128::saturating_add) as f64
    }

    fn add(&mut self, each: Operations, times: u128) {
        let more = |sum: &mut u128, each: u128| {
            *sum = sum.saturating_add(each.saturating_mul(times));
        };
        more(&mut self.additions, each.additions);
        more(&mut self.multiplications, each.multiplications);
        more(&mut self.divisions, each.divisions);
        more(&mut self.functions, each.functions);
    }
}

/// Why a formula's operations cannot be counted.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Uncountable {
    /// Which operations are done depends on a condition.
    #[error("a condition in `{statement}` decides what is computed")]
    Condition {
        /// The statement.
        statement: String,
    },
    /// How many terms there are depends on the data, or on too many indices to go through.
    #[error("the terms of the reduction in `{statement}` depend on data or on too many indices")]
    Terms {
        /// The statement.
        statement: String,
    },
    /// A rule chooses what is computed on.
    #[error("a rule chooses one of the inputs")]
    Choice,
    /// The dims do not fit the formula.
    #[error(transparent)]
    Dims(#[from] EvaluationError),
}

/// Places that a bound which depends on indices is worked out at, at the most.
const MOST_PLACES: u128 = 1 << 22;

impl Program {
    /// The operations that the formula asks for at these dims.
    ///
    /// # Errors
    /// [`Uncountable`] where they depend on more than the dims.
    pub fn operations(&self, dims: &Dims) -> Result<Operations, Uncountable> {
        if self.choice.is_some() {
            return Err(Uncountable::Choice);
        }
        let frame = Frame::without_inputs(self, dims)?;
        let mut all = Operations::default();
        for (stage, framed) in self.stages.iter().zip(&frame.stages) {
            let Some(framed) = framed else { continue };
            let lengths =
                framed.region.iter().map(|range| (range.end - range.start).max(0) as u128);
            let elements = lengths.fold(1, u128::saturating_mul);
            let mut each = counted(stage, stage.root)?;
            if let Some(scan) = &stage.scan {
                let steps = framed.region.get(scan.axis).map_or(1, |range| range.end - range.start);
                all.add(counted(stage, scan.initial)?, elements / steps.max(1) as u128);
            }
            let mut times = elements;
            if let Some(reduction) = &stage.reduction {
                match reduction.operation {
                    ReduceOperation::Sum => each.additions += 1,
                    ReduceOperation::Prod => each.multiplications += 1,
                    ReduceOperation::Max | ReduceOperation::Min | ReduceOperation::Scan => {}
                }
                let around = (&framed.region[..], elements);
                times = terms(stage, reduction, &frame.dims, around)?;
            }
            all.add(each, times);
        }
        Ok(all)
    }
}

/// The operations of one element, or of one term: those of the nodes that `root` needs.
fn counted(stage: &Stage, root: NodeId) -> Result<Operations, Uncountable> {
    let mut needed = vec![false; stage.nodes.len()];
    needed[root] = true;
    for node in (0..=root).rev().filter(|node| *node < stage.nodes.len()) {
        if needed[node] {
            stage.nodes[node].operands().into_iter().for_each(|operand| needed[operand] = true);
        }
    }
    let varying = varying(stage);
    let mut each = Operations::default();
    let kept = (0..stage.nodes.len()).filter(|node| needed[*node] && varying[*node]);
    for node in kept {
        match &stage.nodes[node] {
            Node::Binary(Binary::Add | Binary::Subtract, ..) => each.additions += 1,
            Node::Binary(Binary::Multiply, ..) => each.multiplications += 1,
            Node::Binary(Binary::Divide, ..) => each.divisions += 1,
            Node::Unary(Unary::Negate | Unary::Abs | Unary::Floor, _) => {}
            Node::Unary(..) => each.functions += 1,
            Node::Select(..) => {
                return Err(Uncountable::Condition { statement: stage.statement.clone() });
            }
            _ => {}
        }
    }
    Ok(each)
}

/// Which nodes depend on the data or on an index; the others are worked out once.
fn varying(stage: &Stage) -> Vec<bool> {
    let mut varying: Vec<bool> = Vec::with_capacity(stage.nodes.len());
    for node in &stage.nodes {
        let own = match node {
            Node::Read(_) | Node::Carry | Node::Field { .. } => true,
            Node::Whole(int) => !is_fixed(stage, *int),
            Node::CompareWhole(_, a, b) => !(is_fixed(stage, *a) && is_fixed(stage, *b)),
            _ => false,
        };
        varying.push(own || node.operands().into_iter().any(|operand| varying[operand]));
    }
    varying
}

/// Whether an integer expression is the same for all elements.
fn is_fixed(stage: &Stage, int: IntId) -> bool {
    match &stage.ints[int] {
        Int::Literal(_) | Int::Dim(_) => true,
        Int::Index(_) | Int::Gather(_) => false,
        Int::Operation(_, a, b) | Int::Least(a, b) | Int::Largest(a, b) => {
            is_fixed(stage, *a) && is_fixed(stage, *b)
        }
    }
}

/// The terms of all elements of a reduction.
fn terms(
    stage: &Stage,
    reduction: &StageReduction,
    dims: &[i64],
    (region, elements): (&[std::ops::Range<i64>], u128),
) -> Result<u128, Uncountable> {
    let unknown = || Uncountable::Terms { statement: stage.statement.clone() };
    let mut used = vec![false; stage.rank];
    for bound in [reduction.from, reduction.to] {
        note_variables(stage, bound, &mut used).ok_or_else(unknown)?;
    }
    let walked: Vec<usize> = (0..stage.rank).filter(|axis| used[*axis]).collect();
    let length = |axis: &usize| region.get(*axis).map_or(0, |r| (r.end - r.start).max(0) as u128);
    let places = walked.iter().map(length).fold(1, u128::saturating_mul);
    if places > MOST_PLACES {
        return Err(unknown());
    }
    if elements == 0 || places == 0 {
        return Ok(0);
    }
    let mut variables: Vec<i64> = region.iter().map(|range| range.start).collect();
    let mut sum = 0u128;
    for place in 0..places {
        let mut rest = place;
        for axis in &walked {
            variables[*axis] = region[*axis].start + (rest % length(axis)) as i64;
            rest /= length(axis);
        }
        let of = |bound| whole(stage, bound, (dims, &variables));
        let (from, to) = (of(reduction.from), of(reduction.to));
        let (from, to) = from.zip(to).ok_or_else(unknown)?;
        sum = sum.saturating_add(i128::from(to).saturating_sub(from.into()).max(0) as u128);
    }
    Ok(sum.saturating_mul(elements / places))
}

/// Notes the axes that an integer expression depends on; `None` where it depends on data.
fn note_variables(stage: &Stage, int: IntId, used: &mut [bool]) -> Option<()> {
    match &stage.ints[int] {
        Int::Literal(_) | Int::Dim(_) => {}
        Int::Index(axis) => *used.get_mut(*axis)? = true,
        Int::Operation(_, a, b) | Int::Least(a, b) | Int::Largest(a, b) => {
            note_variables(stage, *a, used)?;
            note_variables(stage, *b, used)?;
        }
        Int::Gather(_) => return None,
    }
    Some(())
}

/// An integer expression's value; `None` where it has none.
fn whole(stage: &Stage, int: IntId, around: (&[i64], &[i64])) -> Option<i64> {
    let of = |int: &IntId| whole(stage, *int, around);
    let apply = |operator: Operator, a: &IntId, b: &IntId| {
        integer_operation(operator, of(a)?, of(b)?, String::new).ok()
    };
    match &stage.ints[int] {
        Int::Literal(value) => Some(*value),
        Int::Dim(dim) => around.0.get(*dim).copied(),
        Int::Index(axis) => around.1.get(*axis).copied(),
        Int::Operation(operator, a, b) => apply(*operator, a, b),
        Int::Least(a, b) => Some(of(a)?.min(of(b)?)),
        Int::Largest(a, b) => Some(of(a)?.max(of(b)?)),
        Int::Gather(_) => None,
    }
}
