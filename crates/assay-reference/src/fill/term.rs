//! What the terms of a reduction are made of, read off the planned formula, so that a fill knows
//! how to make a term loud, integer or small whatever the formula is called.

use std::cell::Cell;

use crate::ast::Operator;
use crate::plan::{Access, Binary, Int, IntId, Node, NodeId, Program, Source, Stage, Unary};

/// The terms of one reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// `x[k]`: the elements of one input.
    Linear(String),
    /// `a[k] * b[k]`: different inputs multiplied.
    Product(Vec<String>),
    /// `x[k] * x[k]`: squares of one input.
    Square(String),
    /// `(x[k] - m) * (x[k] - m)`: squared distances from a value that is the same for every term.
    Deviation(String),
    /// `exp(x[k] - m)`: exponentials of one input.
    Exponential(String),
    /// Anything else; the inputs that the terms are made of.
    Other(Vec<String>),
}

impl Term {
    /// The inputs the terms are made of, in the order written.
    pub fn tensors(&self) -> Vec<&str> {
        match self {
            Term::Linear(tensor)
            | Term::Square(tensor)
            | Term::Deviation(tensor)
            | Term::Exponential(tensor) => vec![tensor],
            Term::Product(tensors) | Term::Other(tensors) => {
                tensors.iter().map(String::as_str).collect()
            }
        }
    }
}

/// How far along a tensor's axis one goes from term to term: `elements` of it every `terms` terms.
/// 1 and 1 for `x[k]`, 1 and 16 for the scale `s[k/16]`, 32 and 1 for the packs of `w[k*32 + i]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Elements, at least 1.
    pub elements: usize,
    /// Terms, at least 1; 1 if `elements` is more.
    pub terms: usize,
}

impl Step {
    /// From each element to the next.
    pub const ONE: Step = Step { elements: 1, terms: 1 };

    /// The term that takes element `place`; the first of them where several do.
    pub fn term(self, place: usize) -> usize {
        place / self.elements * self.terms
    }

    /// The element that term `term` takes; the first of several.
    pub fn element(self, term: usize) -> usize {
        term / self.terms * self.elements
    }

    /// The step of an index that moves `elements` in `terms`, of which one divides the other.
    fn of((elements, terms): (i64, i64)) -> Step {
        let whole = |a: i64, b: i64| usize::try_from(a / b.max(1)).unwrap_or(1).max(1);
        Step { elements: whole(elements, terms), terms: whole(terms, elements) }
    }
}

/// Reads the terms of the reduction that stage number `stage` computes: what they are made of, and
/// each input they walk with the axis walked and the steps along it.
pub(super) fn classify(program: &Program, stage: usize) -> (Term, Vec<(String, usize, Step)>) {
    let stage = &program.stages[stage];
    let walked = stage.scan.as_ref().map_or(stage.rank, |scan| scan.axis);
    let reader = Reader { program, steps_left: Cell::new(MOST_STEPS), still: false };
    let mut factors = Vec::new();
    flatten(reader.shape(stage, stage.root, walked), &mut factors);
    let mut reads = Vec::new();
    reader.steps_left.set(MOST_STEPS);
    reader.collect(stage, walked, &mut reads);
    let inputs = || reads.iter().map(|(tensor, ..)| tensor.clone()).collect();
    (term_of(&factors).unwrap_or_else(|| Term::Other(inputs())), reads)
}

/// The terms of a reduction that reads a scan, while the scan's state stays what it started from;
/// none where it reads no scan, or they are then no product of inputs.
pub(super) fn still(program: &Program, stage: usize) -> Option<Term> {
    let stage = &program.stages[stage];
    let is_scan = |access: &Access| {
        let read = program.stage_of(access.source);
        read.is_some_and(|read| program.stages[read].scan.is_some())
    };
    stage.accesses().find(|access| is_scan(access))?;
    let reader = Reader { program, steps_left: Cell::new(MOST_STEPS), still: true };
    let mut factors = Vec::new();
    flatten(reader.shape(stage, stage.root, stage.rank), &mut factors);
    term_of(&factors).filter(|term| matches!(term, Term::Product(_)))
}

/// Nodes looked at before a term counts as not understood: statements that read each other twice
/// would otherwise take time exponential in their number.
const MOST_STEPS: u32 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// The same for every term.
    Constant,
    /// An input's element.
    Input(String),
    /// An input's element less a constant, or a constant less an element.
    Difference(String),
    /// An exponential of an input's element.
    Exponential(String),
    /// Factors.
    Product(Vec<Shape>),
    /// Not understood.
    Opaque,
}

struct Reader<'a> {
    program: &'a Program,
    steps_left: Cell<u32>,
    /// Whether scans are read as what they start from.
    still: bool,
}

impl Reader<'_> {
    /// The shape of `node` as a function of the stage's variable number `variable`.
    fn shape(&self, stage: &Stage, node: NodeId, variable: usize) -> Shape {
        let of = |inner: NodeId| self.shape(stage, inner, variable);
        match &stage.nodes[node] {
            _ if !self.step() => Shape::Opaque,
            _ if !varies(stage, node, variable) => Shape::Constant,
            Node::Read(access) => self.read(stage, access, variable),
            Node::Unary(Unary::Negate, inner) | Node::Round(_, inner) | Node::Near(_, inner) => {
                of(*inner)
            }
            Node::Unary(Unary::Exp | Unary::Exp2, inner) => exponential(of(*inner)),
            Node::Binary(Binary::Multiply, a, b) => Shape::Product(vec![of(*a), of(*b)]),
            Node::Binary(Binary::Divide, a, b) if !varies(stage, *b, variable) => of(*a),
            Node::Binary(Binary::Subtract, a, b) => match (of(*a), of(*b)) {
                (Shape::Input(tensor), Shape::Constant)
                | (Shape::Constant, Shape::Input(tensor)) => Shape::Difference(tensor),
                _ => Shape::Opaque,
            },
            _ => Shape::Opaque,
        }
    }

    /// Takes one step; false once all are used.
    fn step(&self) -> bool {
        let left = self.steps_left.get();
        self.steps_left.set(left.saturating_sub(1));
        left > 0
    }

    /// A read at an index that varies: an input, or a statement to look into.
    fn read(&self, stage: &Stage, access: &Access, variable: usize) -> Shape {
        match (access.source, self.followed(stage, access, variable)) {
            (Source::Input(input), _) => {
                Shape::Input(self.program.signature.inputs[input].name.clone())
            }
            (_, Some((inner, place))) if self.still && inner.scan.is_some() => {
                let initial = inner.scan.as_ref().map(|scan| scan.initial);
                initial.map_or(Shape::Opaque, |initial| self.shape(inner, initial, place))
            }
            (_, Some((inner, place))) if inner.reduction.is_none() && inner.scan.is_none() => {
                self.shape(inner, inner.root, place)
            }
            _ => Shape::Opaque,
        }
    }

    /// The stage that computes what `access` reads, and which of its axes `variable` walks.
    fn followed(&self, stage: &Stage, access: &Access, variable: usize) -> Option<(&Stage, usize)> {
        let inner = &self.program.stages[self.program.stage_of(access.source)?];
        let walks = |index: &IntId| stage.ints[*index] == Int::Index(variable);
        Some((inner, access.indices.iter().position(walks)?))
    }

    /// Adds every input that `stage` reads along an axis that `variable` walks.
    fn collect(&self, stage: &Stage, variable: usize, reads: &mut Vec<(String, usize, Step)>) {
        if !self.step() {
            return;
        }
        for access in stage.accesses().filter(|access| access_varies(stage, access, variable)) {
            match (access.source, self.followed(stage, access, variable)) {
                (Source::Input(input), _) => {
                    let name = &self.program.signature.inputs[input].name;
                    let varying = |index: &IntId| int_varies(stage, *index, variable);
                    let axis = access.indices.iter().position(varying);
                    let axis = axis.filter(|_| reads.iter().all(|(read, ..)| read != name));
                    if let Some(axis) = axis {
                        let step = Step::of(slope(stage, access.indices[axis], variable));
                        reads.push((name.clone(), axis, step));
                    }
                }
                (_, Some((inner, place))) => self.collect(inner, place, reads),
                _ => {}
            }
        }
    }
}

/// How far an index moves, and in how many steps of `variable`: numerator and denominator, each at
/// least 1. 1 and 1 where the formula does not say it in literal factors.
fn slope(stage: &Stage, index: IntId, variable: usize) -> (i64, i64) {
    let literal = |int: IntId| match stage.ints[int] {
        Int::Literal(value) => value.max(1),
        _ => 1,
    };
    let Int::Operation(operator, a, b) = &stage.ints[index] else { return (1, 1) };
    let (inner, other) = if int_varies(stage, *a, variable) { (*a, *b) } else { (*b, *a) };
    let (elements, terms) = slope(stage, inner, variable);
    match operator {
        Operator::Multiply => (elements.saturating_mul(literal(other)), terms),
        Operator::Divide if inner == *a => (elements, terms.saturating_mul(literal(other))),
        _ => (elements, terms),
    }
}

fn varies(stage: &Stage, node: NodeId, variable: usize) -> bool {
    let node = &stage.nodes[node];
    // A carry follows from the steps before, and differs along every axis.
    *node == Node::Carry
        || node.integers().into_iter().any(|int| int_varies(stage, int, variable))
        || node.operands().into_iter().any(|operand| varies(stage, operand, variable))
}

fn int_varies(stage: &Stage, int: IntId, variable: usize) -> bool {
    match &stage.ints[int] {
        Int::Literal(_) | Int::Dim(_) => false,
        Int::Index(index) => *index == variable,
        Int::Operation(_, a, b) | Int::Least(a, b) | Int::Largest(a, b) => {
            int_varies(stage, *a, variable) || int_varies(stage, *b, variable)
        }
        Int::Gather(access) => access_varies(stage, access, variable),
    }
}

fn access_varies(stage: &Stage, access: &Access, variable: usize) -> bool {
    access.indices.iter().any(|index| int_varies(stage, *index, variable))
}

fn exponential(argument: Shape) -> Shape {
    let mut factors = Vec::new();
    flatten(argument, &mut factors);
    match factors.as_slice() {
        [Shape::Input(tensor) | Shape::Difference(tensor)] => Shape::Exponential(tensor.clone()),
        _ => Shape::Opaque,
    }
}

fn flatten(shape: Shape, factors: &mut Vec<Shape>) {
    match shape {
        Shape::Product(inner) => inner.into_iter().for_each(|factor| flatten(factor, factors)),
        Shape::Constant => {}
        other => factors.push(other),
    }
}

fn term_of(factors: &[Shape]) -> Option<Term> {
    match factors {
        [Shape::Input(tensor)] => Some(Term::Linear(tensor.clone())),
        [Shape::Input(a), Shape::Input(b)] if a == b => Some(Term::Square(a.clone())),
        [Shape::Difference(a), Shape::Difference(b)] if a == b => Some(Term::Deviation(a.clone())),
        [Shape::Exponential(tensor)] => Some(Term::Exponential(tensor.clone())),
        inputs => {
            let name = |factor: &Shape| match factor {
                Shape::Input(tensor) => Some(tensor.clone()),
                _ => None,
            };
            let names: Option<Vec<String>> = inputs.iter().map(name).collect();
            names.filter(|names| names.len() > 1 && distinct(names)).map(Term::Product)
        }
    }
}

fn distinct(names: &[String]) -> bool {
    names.iter().enumerate().all(|(place, name)| !names[..place].contains(name))
}
