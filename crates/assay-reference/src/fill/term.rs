//! What the terms of a reduction are made of, read off the planned formula, so that a fill knows
//! how to make a term loud, integer or small whatever the formula is called.

use std::cell::Cell;

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

/// Reads the terms of the reduction that stage number `stage` computes: what they are made of, and
/// each input they walk with the axis walked.
pub(super) fn classify(program: &Program, stage: usize) -> (Term, Vec<(String, usize)>) {
    let stage = &program.stages[stage];
    let walked = stage.scan.as_ref().map_or(stage.rank, |scan| scan.axis);
    let reader = Reader { program, steps_left: Cell::new(MOST_STEPS), still: false };
    let mut factors = Vec::new();
    flatten(reader.shape(stage, stage.root, walked), &mut factors);
    let mut reads = Vec::new();
    reader.steps_left.set(MOST_STEPS);
    reader.collect(stage, walked, &mut reads);
    let inputs = || reads.iter().map(|(tensor, _)| tensor.clone()).collect();
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
    fn collect(&self, stage: &Stage, variable: usize, reads: &mut Vec<(String, usize)>) {
        if !self.step() {
            return;
        }
        for access in stage.accesses().filter(|access| access_varies(stage, access, variable)) {
            match (access.source, self.followed(stage, access, variable)) {
                (Source::Input(input), _) => {
                    let name = &self.program.signature.inputs[input].name;
                    let varying = |index: &IntId| int_varies(stage, *index, variable);
                    let axis = access.indices.iter().position(varying);
                    if let Some(axis) = axis.filter(|_| reads.iter().all(|(read, _)| read != name))
                    {
                        reads.push((name.clone(), axis));
                    }
                }
                (_, Some((inner, place))) => self.collect(inner, place, reads),
                _ => {}
            }
        }
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
