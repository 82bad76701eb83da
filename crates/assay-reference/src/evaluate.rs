//! The public face of evaluation: what to evaluate, and what comes back.

use std::collections::BTreeMap;
use std::ops::Range;

use assay_num::{Class, Format};

use crate::arithmetic::Arithmetic;
use crate::error::EvaluationError;
use crate::extent::Dims;
use crate::plan::Program;
use crate::signature::Inputs;

/// One evaluation of a program.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// The value of each dimension.
    pub dims: &'a Dims,
    /// The inputs.
    pub inputs: &'a Inputs,
    /// How the kernel computes; the value and class domains ignore it.
    pub arithmetic: &'a Arithmetic,
    /// A term to leave out.
    pub drop: Option<Drop>,
    /// Evaluate only these indices of each output's first axis. The results then hold only these.
    pub rows: Option<Range<i64>>,
}

impl<'a> Evaluation<'a> {
    /// An evaluation of everything.
    pub fn new(dims: &'a Dims, inputs: &'a Inputs, arithmetic: &'a Arithmetic) -> Self {
        Self { dims, inputs, arithmetic, drop: None, rows: None }
    }
}

/// One term of one reduction, left out wherever the reduction has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drop {
    /// The reduction's name.
    pub reduction: String,
    /// The term's offset from the reduction's first.
    pub term: i64,
}

/// The order in which a replayed kernel adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// One chain, first to last.
    Chain,
    /// Two contiguous halves, each a chain.
    Halves,
    /// This many lanes, lane l with the terms l, l + lanes, ...; then halves of the lanes.
    Lanes(u32),
    /// As lanes, each thread with `vector` neighbouring terms at a time.
    Strided {
        /// Threads.
        threads: u32,
        /// Neighbouring terms a thread takes at a time.
        vector: u32,
    },
    /// Each thread a contiguous chunk; then halves of the threads.
    Chunked {
        /// Threads.
        threads: u32,
    },
}

/// How to carry the sums of a replayed kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replay {
    /// What sums are carried in.
    pub accumulator: Format,
    /// The order of additions.
    pub order: Order,
    /// Carry the sums of partial sums in fp32.
    pub partials_fp32: bool,
}

/// An output with its error bound.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bounded {
    /// The real-number values before output rounding.
    pub value: Vec<f64>,
    /// How far a kernel's result before output rounding may lie from the value.
    pub error: Vec<f64>,
    /// Whether every sum the element depends on is exact in fp32 in any order.
    pub exact_sums: Vec<bool>,
    /// Places where the inputs make the bound meaningless. Never a pass.
    pub problems: Vec<FixtureProblem>,
}

/// A place where the inputs make an error bound meaningless.
#[derive(Clone, PartialEq, Debug)]
pub struct FixtureProblem {
    /// What happens.
    pub kind: ProblemKind,
    /// The statement it happens in.
    pub statement: String,
    /// The expression.
    pub expression: String,
    /// The element of the statement, in row-major order of its own axes; the first one found.
    pub element: Vec<i64>,
    /// How many elements have it.
    pub count: u64,
}

/// Kinds of [`FixtureProblem`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProblemKind {
    /// A denominator, radicand or logarithm's argument that its error lets vanish.
    Vanishing,
    /// A value that with its error passes the largest finite one.
    Overflow,
    /// A comparison decided within its error; not wrong, but counted.
    Undecided,
}

impl Program {
    /// The outputs as real numbers, before output rounding.
    ///
    /// # Errors
    /// When dims or inputs do not fit the signature, an index leaves its axis, or it is too large.
    pub fn value(
        &self,
        evaluation: &Evaluation<'_>,
    ) -> Result<BTreeMap<String, Vec<f64>>, EvaluationError> {
        let _ = evaluation;
        Err(not_yet("value"))
    }

    /// The class each output must have.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn classes(
        &self,
        evaluation: &Evaluation<'_>,
    ) -> Result<BTreeMap<String, Vec<Class>>, EvaluationError> {
        let _ = evaluation;
        Err(not_yet("classes"))
    }

    /// The outputs and how far a kernel may be from them.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn error(
        &self,
        evaluation: &Evaluation<'_>,
    ) -> Result<BTreeMap<String, Bounded>, EvaluationError> {
        let _ = evaluation;
        Err(not_yet("error"))
    }

    /// The outputs of a kernel that carries its sums as `replay` says and all else in fp32.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn replay(
        &self,
        evaluation: &Evaluation<'_>,
        replay: &Replay,
    ) -> Result<BTreeMap<String, Vec<f64>>, EvaluationError> {
        let _ = (evaluation, replay);
        Err(not_yet("replay"))
    }

    /// The longest chain of roundings behind each output, counted by operation.
    pub fn depth(&self, dims: &Dims, arithmetic: &Arithmetic) -> BTreeMap<String, f64> {
        let _ = (dims, arithmetic);
        BTreeMap::new()
    }
}

fn not_yet(domain: &str) -> EvaluationError {
    EvaluationError::Request { message: format!("the {domain} domain is not there yet") }
}
