//! The term of a reduction written out through its statements, down to elements of inputs, so that
//! a fill can tell which element a term takes whatever lies between: gathers, groups, conditions,
//! other reductions.

use std::cell::Cell;

use crate::ast::{Operator, ReduceOperation};
use crate::functions::{larger, smaller, unary_all};
use crate::plan::{Access, Binary, Int, IntId, Node, NodeId, Program, Source, Stage, Unary};
use crate::{Dims, Inputs};

use super::layout::TensorLayout;

/// Nodes written out before a term counts as not understood.
const MOST_NODES: u32 = 4_000;

/// An integer expression of variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Whole {
    Literal(i64),
    Variable(usize),
    Operation(Operator, Box<Whole>, Box<Whole>),
    Least(Box<Whole>, Box<Whole>),
    Largest(Box<Whole>, Box<Whole>),
    /// An element of an input that holds indices.
    Gather(Address),
    Unknown,
}

/// An element of an input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Address {
    /// The input's position in the signature.
    pub(super) input: usize,
    pub(super) indices: Vec<Whole>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Whole(Operator, Whole, Whole),
    Value(Operator, Value, Value),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
    Unknown,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Known(f64),
    Whole(Whole),
    Element(Address),
    Unary(Unary, Box<Value>),
    Binary(Binary, Box<Value>, Box<Value>),
    Select(Box<Condition>, Box<Value>, Box<Value>),
    Reduced(Box<Reduced>),
    Opaque,
}

/// A reduction inside a term.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reduced {
    pub(super) operation: ReduceOperation,
    /// The variable that is its index.
    pub(super) variable: usize,
    pub(super) from: Whole,
    pub(super) to: Whole,
    pub(super) term: Value,
}

/// The term of the reduction that a stage computes. The stage's axes are the first variables, then
/// comes the reduced index, then the indices of reductions inside.
pub(super) fn of_stage(program: &Program, dims: &Dims, stage: usize) -> Option<Reduced> {
    let stage = &program.stages[stage];
    let reduction = stage.reduction.as_ref()?;
    let dims = program.signature.dims.iter().map(|dim| dims.get(dim).copied()).collect();
    let next = Cell::new(stage.rank + 1);
    let writer = Writer { program, dims, next, left: Cell::new(MOST_NODES) };
    let variables: Vec<Whole> = (0..=stage.rank).map(Whole::Variable).collect();
    Some(Reduced {
        operation: reduction.operation,
        variable: stage.rank,
        from: writer.whole(stage, reduction.from, &variables),
        to: writer.whole(stage, reduction.to, &variables),
        term: writer.value(stage, stage.root, &variables),
    })
}

struct Writer<'a> {
    program: &'a Program,
    dims: Vec<Option<i64>>,
    next: Cell<usize>,
    left: Cell<u32>,
}

impl Writer<'_> {
    fn step(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    fn value(&self, stage: &Stage, node: NodeId, variables: &[Whole]) -> Value {
        if !self.step() {
            return Value::Opaque;
        }
        let of = |inner: NodeId| Box::new(self.value(stage, inner, variables));
        match &stage.nodes[node] {
            Node::Literal(bits) => Value::Known(f64::from_bits(*bits)),
            Node::Scalar(scalar) => Value::Known(self.program.scalars[*scalar]),
            Node::Whole(int) => match self.whole(stage, *int, variables) {
                Whole::Literal(value) => Value::Known(value as f64),
                whole => Value::Whole(whole),
            },
            Node::Read(access) => self.read(stage, access, variables),
            Node::Unary(unary, inner) => Value::Unary(*unary, of(*inner)),
            Node::Binary(binary, a, b) => Value::Binary(*binary, of(*a), of(*b)),
            Node::Round(_, inner) | Node::Near(_, inner) => *of(*inner),
            Node::Select(condition, yes, no) => {
                let condition = self.condition(stage, *condition, variables);
                Value::Select(Box::new(condition), of(*yes), of(*no))
            }
            _ => Value::Opaque,
        }
    }

    fn read(&self, stage: &Stage, access: &Access, variables: &[Whole]) -> Value {
        let indices: Vec<Whole> =
            access.indices.iter().map(|index| self.whole(stage, *index, variables)).collect();
        if let Source::Input(input) = access.source {
            return Value::Element(Address { input, indices });
        }
        let Some(inner) = self.program.stage_of(access.source) else { return Value::Opaque };
        let inner = &self.program.stages[inner];
        let Some(reduction) = &inner.reduction else {
            return self.value(inner, inner.root, &indices);
        };
        let variable = self.next.replace(self.next.get() + 1);
        let (from, to) = (
            self.whole(inner, reduction.from, &indices),
            self.whole(inner, reduction.to, &indices),
        );
        let inside: Vec<Whole> = indices.into_iter().chain([Whole::Variable(variable)]).collect();
        let term = self.value(inner, inner.root, &inside);
        let operation = reduction.operation;
        Value::Reduced(Box::new(Reduced { operation, variable, from, to, term }))
    }

    fn condition(&self, stage: &Stage, node: NodeId, variables: &[Whole]) -> Condition {
        if !self.step() {
            return Condition::Unknown;
        }
        let of = |inner: NodeId| Box::new(self.condition(stage, inner, variables));
        match &stage.nodes[node] {
            Node::CompareWhole(how, a, b) => Condition::Whole(
                *how,
                self.whole(stage, *a, variables),
                self.whole(stage, *b, variables),
            ),
            Node::Compare(how, a, b) => Condition::Value(
                *how,
                self.value(stage, *a, variables),
                self.value(stage, *b, variables),
            ),
            Node::And(a, b) => Condition::And(of(*a), of(*b)),
            Node::Or(a, b) => Condition::Or(of(*a), of(*b)),
            Node::Not(a) => Condition::Not(of(*a)),
            _ => Condition::Unknown,
        }
    }

    fn whole(&self, stage: &Stage, int: IntId, variables: &[Whole]) -> Whole {
        if !self.step() {
            return Whole::Unknown;
        }
        let of = |inner: IntId| self.whole(stage, inner, variables);
        let pair = |a: IntId, b: IntId| (Box::new(of(a)), Box::new(of(b)));
        let written = match &stage.ints[int] {
            Int::Literal(value) => Whole::Literal(*value),
            Int::Dim(dim) => self.dims[*dim].map_or(Whole::Unknown, Whole::Literal),
            Int::Index(variable) => variables.get(*variable).cloned().unwrap_or(Whole::Unknown),
            Int::Operation(operator, a, b) => {
                let (a, b) = pair(*a, *b);
                Whole::Operation(*operator, a, b)
            }
            Int::Least(a, b) => {
                let (a, b) = pair(*a, *b);
                Whole::Least(a, b)
            }
            Int::Largest(a, b) => {
                let (a, b) = pair(*a, *b);
                Whole::Largest(a, b)
            }
            Int::Gather(access) => match self.read(stage, access, variables) {
                Value::Element(address) => Whole::Gather(address),
                Value::Whole(whole) => whole,
                Value::Known(value) => Whole::Literal(value as i64),
                _ => Whole::Unknown,
            },
        };
        let known = |whole: &Whole| matches!(whole, Whole::Literal(_));
        match &written {
            Whole::Operation(_, a, b) | Whole::Least(a, b) | Whole::Largest(a, b)
                if known(a) && known(b) =>
            {
                let nothing = Scope { tensors: &[], inputs: None };
                nothing.whole(&written, &[]).map_or(Whole::Unknown, Whole::Literal)
            }
            _ => written,
        }
    }
}

impl Whole {
    /// True if the value may change with the variable.
    pub(super) fn uses(&self, variable: usize) -> bool {
        match self {
            Whole::Literal(_) | Whole::Unknown => false,
            Whole::Variable(own) => *own == variable,
            Whole::Operation(_, a, b) | Whole::Least(a, b) | Whole::Largest(a, b) => {
                a.uses(variable) || b.uses(variable)
            }
            Whole::Gather(address) => address.uses(variable),
        }
    }

    /// True if neighbouring values of the variable can share this one: it stands below a division.
    fn is_coarse(&self, variable: usize) -> bool {
        match self {
            Whole::Operation(Operator::Divide, a, _) => a.uses(variable),
            Whole::Operation(_, a, b) | Whole::Least(a, b) | Whole::Largest(a, b) => {
                a.is_coarse(variable) || b.is_coarse(variable)
            }
            Whole::Gather(address) => address.indices.iter().any(|index| index.is_coarse(variable)),
            _ => false,
        }
    }

    /// Adds every divisor that an expression of the variable is divided by.
    fn periods(&self, variable: usize, found: &mut Vec<i64>) {
        match self {
            Whole::Operation(operator, a, b) => {
                if let (Operator::Divide | Operator::Remainder, Whole::Literal(period)) =
                    (operator, &**b)
                    && a.uses(variable)
                {
                    found.push(*period);
                }
                a.periods(variable, found);
                b.periods(variable, found);
            }
            Whole::Least(a, b) | Whole::Largest(a, b) => {
                a.periods(variable, found);
                b.periods(variable, found);
            }
            Whole::Gather(address) => {
                address.indices.iter().for_each(|index| index.periods(variable, found));
            }
            _ => {}
        }
    }
}

impl Address {
    /// True if another element may be meant for another value of the variable.
    pub(super) fn uses(&self, variable: usize) -> bool {
        self.indices.iter().any(|index| index.uses(variable))
    }

    /// True if neighbouring values of the variable share an element: a scale of a group.
    pub(super) fn is_coarse(&self, variable: usize) -> bool {
        let using = self.indices.iter().filter(|index| index.uses(variable));
        using.clone().count() > 0 && using.clone().all(|index| index.is_coarse(variable))
    }
}

impl Condition {
    fn uses(&self, variable: usize) -> bool {
        match self {
            Condition::Whole(_, a, b) => a.uses(variable) || b.uses(variable),
            Condition::Value(_, a, b) => a.uses(variable) || b.uses(variable),
            Condition::And(a, b) | Condition::Or(a, b) => a.uses(variable) || b.uses(variable),
            Condition::Not(a) => a.uses(variable),
            Condition::Unknown => false,
        }
    }
}

impl Value {
    /// True if the value may change with the variable.
    pub(super) fn uses(&self, variable: usize) -> bool {
        match self {
            Value::Known(_) | Value::Opaque => false,
            Value::Whole(whole) => whole.uses(variable),
            Value::Element(address) => address.uses(variable),
            Value::Unary(_, a) => a.uses(variable),
            Value::Binary(_, a, b) => a.uses(variable) || b.uses(variable),
            Value::Select(condition, a, b) => {
                condition.uses(variable) || a.uses(variable) || b.uses(variable)
            }
            Value::Reduced(inner) => {
                inner.from.uses(variable) || inner.to.uses(variable) || inner.term.uses(variable)
            }
        }
    }

    /// Visits every element, with the reductions around it, outermost first.
    pub(super) fn elements<'v>(
        &'v self,
        around: &mut Vec<&'v Reduced>,
        visit: &mut dyn FnMut(&'v Address, &[&'v Reduced]),
    ) {
        match self {
            Value::Element(address) => visit(address, around),
            Value::Unary(_, a) => a.elements(around, visit),
            Value::Binary(_, a, b) | Value::Select(_, a, b) => {
                a.elements(around, visit);
                b.elements(around, visit);
            }
            Value::Reduced(inner) => {
                around.push(inner);
                inner.term.elements(around, visit);
                around.pop();
            }
            Value::Known(_) | Value::Whole(_) | Value::Opaque => {}
        }
    }

    /// Adds the sizes of the groups and pages that the variable is divided into.
    pub(super) fn periods(&self, variable: usize, found: &mut Vec<i64>) {
        self.elements(&mut Vec::new(), &mut |address, _| {
            address.indices.iter().for_each(|index| index.periods(variable, found));
        });
    }
}

/// What expressions are evaluated in.
pub(super) struct Scope<'a> {
    /// The inputs by position in the signature; `None` where a layout leaves one out.
    pub(super) tensors: &'a [Option<&'a TensorLayout>],
    /// The elements, where they are known; else only promised indices are.
    pub(super) inputs: Option<&'a Inputs>,
}

impl Scope<'_> {
    /// An integer; `None` where it depends on data.
    pub(super) fn whole(&self, whole: &Whole, variables: &[i64]) -> Option<i64> {
        let pair =
            |a: &Whole, b: &Whole| Some((self.whole(a, variables)?, self.whole(b, variables)?));
        match whole {
            Whole::Literal(value) => Some(*value),
            Whole::Variable(variable) => variables.get(*variable).copied(),
            Whole::Operation(operator, a, b) => {
                let (a, b) = pair(a, b)?;
                operate(*operator, a, b)
            }
            Whole::Least(a, b) => pair(a, b).map(|(a, b)| a.min(b)),
            Whole::Largest(a, b) => pair(a, b).map(|(a, b)| a.max(b)),
            Whole::Gather(address) => {
                let tensor = (*self.tensors.get(address.input)?)?;
                let flat = self.flat(address, variables)?;
                tensor.indices.as_ref()?.get(flat).map(|index| *index as i64)
            }
            Whole::Unknown => None,
        }
    }

    /// The flat index of an element; `None` where it depends on data or lies outside.
    pub(super) fn flat(&self, address: &Address, variables: &[i64]) -> Option<usize> {
        let tensor = (*self.tensors.get(address.input)?)?;
        let mut flat = 0usize;
        for (index, extent) in address.indices.iter().zip(&tensor.shape) {
            let at = usize::try_from(self.whole(index, variables)?).ok()?;
            if at >= *extent {
                return None;
            }
            flat = flat * extent + at;
        }
        Some(flat)
    }

    /// A condition; `None` where it depends on data that is not known.
    pub(super) fn holds(&self, condition: &Condition, variables: &[i64]) -> Option<bool> {
        match condition {
            Condition::Whole(how, a, b) => {
                let (a, b) = (self.whole(a, variables)?, self.whole(b, variables)?);
                compare(*how, &a, &b)
            }
            Condition::Value(how, a, b) => {
                let (a, b) = (self.number(a, variables)?, self.number(b, variables)?);
                compare(*how, &a, &b)
            }
            Condition::And(a, b) => Some(self.holds(a, variables)? && self.holds(b, variables)?),
            Condition::Or(a, b) => Some(self.holds(a, variables)? || self.holds(b, variables)?),
            Condition::Not(a) => self.holds(a, variables).map(|holds| !holds),
            Condition::Unknown => None,
        }
    }

    /// A value; `None` where it depends on data that is not known.
    pub(super) fn number(&self, value: &Value, variables: &[i64]) -> Option<f64> {
        match value {
            Value::Known(value) => Some(*value),
            Value::Whole(whole) => self.whole(whole, variables).map(|whole| whole as f64),
            Value::Element(address) => {
                let tensor = (*self.tensors.get(address.input)?)?;
                let flat = self.flat(address, variables)?;
                let promised = tensor.indices.as_ref();
                let held = || self.inputs?.tensors.get(&tensor.name);
                promised.or_else(held)?.get(flat).copied()
            }
            Value::Unary(unary, a) => {
                let mut result = [0.0];
                unary_all(*unary, &[self.number(a, variables)?], &mut result);
                Some(result[0])
            }
            Value::Binary(binary, a, b) => {
                let (a, b) = (self.number(a, variables)?, self.number(b, variables)?);
                Some(match binary {
                    Binary::Add => a + b,
                    Binary::Subtract => a - b,
                    Binary::Multiply => a * b,
                    Binary::Divide => a / b,
                    Binary::Max => larger(a, b),
                    Binary::Min => smaller(a, b),
                })
            }
            Value::Select(condition, a, b) => {
                let taken = if self.holds(condition, variables)? { a } else { b };
                self.number(taken, variables)
            }
            Value::Reduced(inner) => self.reduced(inner, variables),
            Value::Opaque => None,
        }
    }

    fn reduced(&self, inner: &Reduced, variables: &[i64]) -> Option<f64> {
        let (from, to) = self.bounds(inner, variables)?;
        let mut variables = variables.to_vec();
        variables.resize(variables.len().max(inner.variable + 1), 0);
        let mut result = inner.operation.neutral();
        for at in from..to {
            variables[inner.variable] = at;
            let term = self.number(&inner.term, &variables)?;
            result = match inner.operation {
                ReduceOperation::Sum => result + term,
                ReduceOperation::Max => larger(result, term),
                ReduceOperation::Min => smaller(result, term),
                ReduceOperation::Prod => result * term,
                ReduceOperation::Scan => return None,
            };
        }
        Some(result)
    }

    /// Where a reduction's index starts and ends.
    pub(super) fn bounds(&self, inner: &Reduced, variables: &[i64]) -> Option<(i64, i64)> {
        let from = self.whole(&inner.from, variables)?;
        Some((from, self.whole(&inner.to, variables)?.max(from)))
    }

    /// False if the term takes nothing from the inputs for this value of `variable`, because a
    /// condition leaves it out.
    pub(super) fn is_read(&self, value: &Value, variable: usize, variables: &[i64]) -> bool {
        let of = |inner: &Value| self.is_read(inner, variable, variables);
        match value {
            Value::Select(condition, a, b) => match self.holds(condition, variables) {
                Some(true) => of(a),
                Some(false) => of(b),
                None => of(a) || of(b),
            },
            Value::Known(_) | Value::Whole(_) => false,
            Value::Element(_) | Value::Opaque => true,
            Value::Unary(_, a) => of(a),
            Value::Binary(Binary::Multiply, a, b) => {
                let live = |inner: &Value| !inner.uses(variable) || of(inner);
                live(a) && live(b)
            }
            Value::Binary(_, a, b) => (a.uses(variable) && of(a)) || (b.uses(variable) && of(b)),
            Value::Reduced(inner) => {
                let at = self.whole(&inner.from, variables).unwrap_or(0);
                let mut variables = variables.to_vec();
                variables.resize(variables.len().max(inner.variable + 1), 0);
                variables[inner.variable] = at;
                self.is_read(&inner.term, variable, &variables)
            }
        }
    }
}

fn operate(operator: Operator, a: i64, b: i64) -> Option<i64> {
    match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide if b != 0 => {
            let quotient = a.checked_div(b)?;
            let below = a % b != 0 && (a < 0) != (b < 0);
            Some(quotient - i64::from(below))
        }
        Operator::Remainder if b != 0 => {
            let rest = a.checked_rem(b)?;
            let below = rest != 0 && (rest < 0) != (b < 0);
            Some(if below { rest + b } else { rest })
        }
        _ => None,
    }
}

fn compare<T: PartialOrd>(how: Operator, a: &T, b: &T) -> Option<bool> {
    Some(match how {
        Operator::Equal => a == b,
        Operator::NotEqual => a != b,
        Operator::Less => a < b,
        Operator::LessOrEqual => a <= b,
        Operator::Greater => a > b,
        Operator::GreaterOrEqual => a >= b,
        _ => return None,
    })
}
