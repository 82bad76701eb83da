//! The planned form of a formula: stages, each an elementwise expression or one reduction.
//!
//! A reduction inside an expression is hoisted into a stage of its own, over the indices it is
//! free in, so that it is computed once per value of those. Equal hoisted stages are one stage.
//! Inside a stage equal nodes are one node, in an order where operands come first.

use std::collections::BTreeMap;
use std::sync::Arc;

use assay_num::Format;

use crate::ast::{Operator, ReduceOperation};
use crate::error::Span;
use crate::extent::Extent;
use crate::limits::Limits;
use crate::reductions::Reduction;
use crate::rule::choice::Choice;
use crate::signature::Signature;

/// A node of a stage, by position.
pub(crate) type NodeId = usize;
/// An integer expression of a stage, by position.
pub(crate) type IntId = usize;

/// What a read reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Source {
    /// An input of the signature.
    Input(usize),
    /// A statement, whose shape bounds the read.
    Statement(usize),
    /// A hoisted reduction.
    Hoisted(usize),
}

/// An element of a source; where `guard` is false the element is not read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Access {
    pub(crate) source: Source,
    pub(crate) indices: Vec<IntId>,
    pub(crate) guard: Option<NodeId>,
}

/// An integer expression.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Int {
    Literal(i64),
    /// A dimension of the signature.
    Dim(usize),
    /// A variable of the stage: its axes in order, then the reduced index.
    Index(usize),
    Operation(Operator, IntId, IntId),
    Least(IntId, IntId),
    Largest(IntId, IntId),
    Gather(Access),
}

/// One-operand operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Unary {
    Negate,
    Abs,
    Floor,
    Exp,
    Exp2,
    Log,
    Log2,
    Sqrt,
    Rsqrt,
    Tanh,
    Sin,
    Cos,
    Erf,
}

/// Two-operand operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Max,
    Min,
}

/// A value or a condition.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    /// The bits of a literal.
    Literal(u64),
    Scalar(usize),
    Whole(IntId),
    Read(Access),
    Unary(Unary, NodeId),
    Binary(Binary, NodeId, NodeId),
    /// A scan's value of the step before.
    Carry,
    /// Rounded to the format.
    Round(Format, NodeId),
    /// Rounded to the format once, somewhere on the way.
    Near(Format, NodeId),
    /// Field `field` of `width` bits of a whole number.
    Field {
        word: NodeId,
        field: IntId,
        width: IntId,
    },
    Compare(Operator, NodeId, NodeId),
    CompareWhole(Operator, IntId, IntId),
    And(NodeId, NodeId),
    Or(NodeId, NodeId),
    Not(NodeId),
    Select(NodeId, NodeId, NodeId),
}

impl Node {
    /// The nodes it takes, a guard included.
    pub(crate) fn operands(&self) -> Vec<NodeId> {
        match self {
            Node::Literal(_)
            | Node::Scalar(_)
            | Node::Carry
            | Node::Whole(_)
            | Node::CompareWhole(..) => Vec::new(),
            Node::Read(access) => access.guard.into_iter().collect(),
            Node::Unary(_, a) | Node::Round(_, a) | Node::Near(_, a) | Node::Not(a) => vec![*a],
            Node::Field { word, .. } => vec![*word],
            Node::Binary(_, a, b) | Node::Compare(_, a, b) | Node::And(a, b) | Node::Or(a, b) => {
                vec![*a, *b]
            }
            Node::Select(a, b, c) => vec![*a, *b, *c],
        }
    }

    /// The integer expressions it takes.
    pub(crate) fn integers(&self) -> Vec<IntId> {
        match self {
            Node::Whole(int) => vec![*int],
            Node::Read(access) => access.indices.clone(),
            Node::Field { field, width, .. } => vec![*field, *width],
            Node::CompareWhole(_, a, b) => vec![*a, *b],
            _ => Vec::new(),
        }
    }
}

/// The reduction of a stage; its index is the variable after the stage's axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StageReduction {
    pub(crate) operation: ReduceOperation,
    pub(crate) from: IntId,
    pub(crate) to: IntId,
}

/// The recurrence of a stage; its root is the step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StageScan {
    /// The axis walked in order, among the stage's own.
    pub(crate) axis: usize,
    /// The value before the first step.
    pub(crate) initial: NodeId,
    /// The node that holds the value of the step before.
    pub(crate) carry: NodeId,
}

/// One tensor to compute.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// How many axes it has.
    pub(crate) rank: usize,
    pub(crate) ints: Vec<Int>,
    pub(crate) nodes: Vec<Node>,
    /// Where each node stands in the formula's text, for fixture problems.
    pub(crate) spans: Vec<Span>,
    /// The element, or the reduction's term.
    pub(crate) root: NodeId,
    pub(crate) reduction: Option<StageReduction>,
    /// Where each element depends on the one before it along an axis.
    pub(crate) scan: Option<StageScan>,
    /// Where the root squares a statement that is a difference, that difference written out here;
    /// only the variance rule uses it.
    pub(crate) difference: Option<NodeId>,
    /// The statement it was first written in.
    pub(crate) statement: String,
    /// The reduced index as written.
    pub(crate) index: String,
}

impl Stage {
    /// Whether two stages compute the same.
    pub(crate) fn same(&self, other: &Stage) -> bool {
        self.rank == other.rank
            && self.root == other.root
            && self.ints == other.ints
            && self.nodes == other.nodes
            && self.reduction == other.reduction
            && self.scan == other.scan
    }

    /// The tensors and stages it reads.
    pub(crate) fn accesses(&self) -> impl Iterator<Item = &Access> {
        let gathers = self.ints.iter().filter_map(|int| match int {
            Int::Gather(access) => Some(access),
            _ => None,
        });
        let reads = self.nodes.iter().filter_map(|node| match node {
            Node::Read(access) => Some(access),
            _ => None,
        });
        gathers.chain(reads)
    }
}

/// A statement and the stage that computes it.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStatement {
    pub(crate) name: String,
    pub(crate) stage: usize,
    pub(crate) shape: Vec<Extent>,
    /// Its position among the signature's outputs, if it is one.
    pub(crate) output: Option<usize>,
}

/// A formula checked against a signature and planned. Shareable between threads.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) text: String,
    pub(crate) signature: Signature,
    pub(crate) scalars: Vec<f64>,
    /// Stages in an order where what is read comes first.
    pub(crate) stages: Vec<Stage>,
    pub(crate) statements: Vec<PlannedStatement>,
    pub(crate) reductions: Vec<Reduction>,
    /// For each stage its position in `reductions`.
    pub(crate) reduction_of_stage: Vec<Option<usize>>,
    /// The rule that makes one of the inputs, a choice from what a statement computes.
    pub(crate) choice: Option<Arc<Choice>>,
    /// What callers promise of inputs, by name.
    pub(crate) limits: BTreeMap<String, Limits>,
}

impl Program {
    /// What the formula was checked against.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The reductions, in the order they are computed. Equal reductions are one.
    pub fn reductions(&self) -> &[Reduction] {
        &self.reductions
    }

    /// The formula's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether an output's first axis is that of the first output.
    pub(crate) fn has_rows(&self, statement: &PlannedStatement) -> bool {
        let outputs = &self.signature.outputs;
        let first = |output: usize| outputs.get(output).map(|tensor| tensor.shape.first());
        statement.output.is_some_and(|output| first(output) == first(0))
    }

    /// The stage that a source other than an input is computed by.
    pub(crate) fn stage_of(&self, source: Source) -> Option<usize> {
        match source {
            Source::Input(_) => None,
            Source::Statement(statement) => Some(self.statements[statement].stage),
            Source::Hoisted(stage) => Some(stage),
        }
    }

    /// The name of a source in messages.
    pub(crate) fn source_name(&self, source: Source) -> &str {
        match source {
            Source::Input(input) => &self.signature.inputs[input].name,
            Source::Statement(statement) => &self.statements[statement].name,
            Source::Hoisted(stage) => &self.stages[stage].statement,
        }
    }
}
