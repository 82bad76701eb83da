//! The public face of evaluation: what to evaluate, and what comes back.

use std::collections::BTreeMap;
use std::ops::Range;

use assay_num::{Class, Format};

use crate::arithmetic::Arithmetic;
use crate::ast::ReduceOperation;
use crate::bound::Bounds;
use crate::bound_sum::SumRule;
use crate::depth;
use crate::error::EvaluationError;
use crate::extent::Dims;
use crate::frame::{Frame, strides};
use crate::plan::Program;
use crate::real::{Carry, Real};
use crate::reductions;
use crate::rounding::Rounding;
use crate::run::{Problems, StageResult, run};
use crate::signature::Inputs;
use crate::tensor_core::TensorRule;
use crate::variance;

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
    /// Evaluate only these indices of the first axis of the first output, and of all outputs whose
    /// first axis has the same extent. The results then hold only these; other outputs are whole.
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
    /// How many elements, of statements and outputs, hold a comparison that is decided within its
    /// error. The bound then covers both branches.
    pub undecided: u64,
    /// Whether `value` and `error` are the middle and half the width of a range over rounding
    /// points; see [`Program::range`].
    pub ranged: bool,
}

impl Bounded {
    /// The ends of what a kernel's result before output rounding may be, at `place`; infinite ends
    /// where the inputs allow no bound.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn interval(&self, place: usize) -> (f64, f64) {
        let (value, error) = (self.value[place], self.error[place]);
        if error.is_finite() && value.is_finite() {
            (value - error, value + error)
        } else {
            (f64::NEG_INFINITY, f64::INFINITY)
        }
    }
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
    /// A bound that is infinite or no number for another reason.
    Unbounded,
    /// The form in which a kernel computes gives another value than the formula as stated.
    Disagreement,
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
        let inputs = self.completed(evaluation)?;
        let evaluation = &Evaluation { inputs: &inputs, ..evaluation.clone() };
        let frame = Frame::new(self, evaluation)?;
        let results = run(&frame, &self.real(evaluation, Carry::Exact, None))?;
        Ok(self.outputs(&frame, evaluation, results, |_, result| result.value))
    }

    /// The class each output must have.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn classes(
        &self,
        evaluation: &Evaluation<'_>,
    ) -> Result<BTreeMap<String, Vec<Class>>, EvaluationError> {
        let inputs = self.completed(evaluation)?;
        let evaluation = &Evaluation { inputs: &inputs, ..evaluation.clone() };
        let frame = Frame::new(self, evaluation)?;
        let results = run(&frame, &self.real(evaluation, Carry::Clamped, None))?;
        let class = |format: Format, value: f64| Class::of(format.round(value));
        Ok(self.outputs(&frame, evaluation, results, |format, result| {
            result.value.into_iter().map(|value| class(format, value)).collect()
        }))
    }

    /// The outputs and how far a kernel may be from them.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn error(
        &self,
        evaluation: &Evaluation<'_>,
    ) -> Result<BTreeMap<String, Bounded>, EvaluationError> {
        self.bounded_by(evaluation, false)
    }

    /// The outputs of a kernel that carries its sums as `replay` says and all else in fp32. Sums
    /// whose accumulator is declared to be f64 stay in f64, so that sums can be replayed singly.
    ///
    /// # Errors
    /// As [`Program::value`].
    pub fn replay(
        &self,
        evaluation: &Evaluation<'_>,
        replay: &Replay,
    ) -> Result<BTreeMap<String, Vec<f64>>, EvaluationError> {
        let carried = [Format::F64, Format::F32, Format::F16, Format::Bf16];
        if !carried.contains(&replay.accumulator) {
            let (what, format) = ("a replayed sum".to_owned(), replay.accumulator);
            return Err(EvaluationError::Format { what, format });
        }
        let inputs = self.completed(evaluation)?;
        let evaluation = &Evaluation { inputs: &inputs, ..evaluation.clone() };
        let frame = Frame::new(self, evaluation)?;
        let results = run(&frame, &self.real(evaluation, Carry::Rounded, Some(*replay)))?;
        Ok(self.outputs(&frame, evaluation, results, |_, result| result.value))
    }

    /// The longest chain of roundings behind each output, counted by operation.
    pub fn depth(&self, dims: &Dims, arithmetic: &Arithmetic) -> BTreeMap<String, f64> {
        depth::depths(self, dims, arithmetic)
    }
}

/// A result as value and error.
fn bounded(result: StageResult, ranged: bool) -> Bounded {
    let StageResult { value, error, inexact, .. } = result;
    let exact_sums = if inexact.is_empty() {
        vec![true; value.len()]
    } else {
        inexact.into_iter().map(|inexact| !inexact).collect()
    };
    Bounded { value, error, exact_sums, problems: Vec::new(), undecided: 0, ranged }
}

impl Program {
    /// Evaluates the error domain, or with `ranged` the range domain.
    pub(crate) fn bounded_by(
        &self,
        evaluation: &Evaluation<'_>,
        ranged: bool,
    ) -> Result<BTreeMap<String, Bounded>, EvaluationError> {
        let inputs = self.completed(evaluation)?;
        let evaluation = &Evaluation { inputs: &inputs, ..evaluation.clone() };
        let frame = Frame::new(self, evaluation)?;
        let bounds = Bounds { ranged, ..self.bounds(evaluation)? };
        let results = run(&frame, &bounds)?;
        let problems: Vec<Problems> = results.iter().map(|result| result.problems).collect();
        let of = |_, result| bounded(result, ranged);
        let mut found = self.outputs(&frame, evaluation, results, of);
        for (name, bounded) in &mut found {
            self.report(&frame, name, &problems, bounded);
            // A range marks each element that a problem reaches, so that one which an operation
            // stopped, as a division stops an overflow, is none of the output's.
            if ranged && bounded.error.iter().all(|error| error.is_finite()) {
                bounded.problems.clear();
            }
        }
        Ok(found)
    }

    /// Adds the problems of all stages that the output `name` depends on.
    fn report(&self, frame: &Frame<'_>, name: &str, problems: &[Problems], bounded: &mut Bounded) {
        let Some(statement) = self.statements.iter().find(|s| s.name == name) else { return };
        for stage in self.stages_below(statement.stage) {
            let found = &problems[stage];
            bounded.undecided += found.undecided;
            let kinds = [
                (ProblemKind::Vanishing, found.vanishing),
                (ProblemKind::Overflow, found.overflow),
            ];
            for (kind, problem) in kinds {
                let Some(problem) = problem else { continue };
                bounded.problems.push(FixtureProblem {
                    kind,
                    statement: self.stages[stage].statement.clone(),
                    expression: self.expression(stage, problem.node),
                    element: frame.element(stage, problem.element),
                    count: problem.count,
                });
            }
        }
        let unbounded = || bounded.error.iter().enumerate().filter(|(_, e)| !e.is_finite());
        if let Some((first, _)) = unbounded().next()
            && bounded.problems.is_empty()
        {
            bounded.problems.push(FixtureProblem {
                kind: ProblemKind::Unbounded,
                statement: name.to_owned(),
                expression: name.to_owned(),
                element: vec![first as i64],
                count: unbounded().count() as u64,
            });
        }
    }

    /// The stage and all that it depends on, in order.
    fn stages_below(&self, stage: usize) -> Vec<usize> {
        let mut below = vec![false; self.stages.len()];
        below[stage] = true;
        for position in (0..=stage).rev().filter(|&position| position <= stage) {
            if below[position] {
                let reads = self.stages[position].accesses();
                reads.filter_map(|a| self.stage_of(a.source)).for_each(|s| below[s] = true);
            }
        }
        (0..below.len()).filter(|&position| below[position]).collect()
    }

    /// The text of a node.
    fn expression(&self, stage: usize, node: usize) -> String {
        let span = self.stages[stage].spans[node];
        self.text.get(span.start..span.end).unwrap_or("").to_owned()
    }

    /// The error domain.
    fn bounds(&self, evaluation: &Evaluation<'_>) -> Result<Bounds<'_>, EvaluationError> {
        let arithmetic = evaluation.arithmetic;
        let depths = self.depths(evaluation.dims, arithmetic)?;
        // A mean that lacks a term is no mean: its differences do not sum to 0.
        let whole = evaluation.drop.is_none();
        let accumulators = self.accumulators(arithmetic);
        let tensors = self.tensor_rules(evaluation.dims, arithmetic)?;
        let rule = |stage: usize| SumRule {
            tensor: tensors[stage].filter(|_| accumulators[stage] != Format::F64),
            depth: depths[stage],
            accumulator: accumulators[stage],
            variance: variance::differences(&self.stages, &self.statements, stage)
                .filter(|_| whole)
                .map(|(form, _)| form),
        };
        let sums = (0..self.stages.len()).map(rule).collect();
        Ok(Bounds { program: self, rounding: Rounding::new(arithmetic), sums, ranged: false })
    }

    /// The rule of each stage whose sum tensor cores make.
    pub(crate) fn tensor_rules(
        &self,
        dims: &Dims,
        arithmetic: &Arithmetic,
    ) -> Result<Vec<Option<TensorRule>>, EvaluationError> {
        let mut rules = vec![None; self.stages.len()];
        for (name, declared) in &arithmetic.tensor_cores {
            let Some(reduction) = reductions::find(&self.reductions, name) else {
                return Err(reductions::unknown(&self.reductions, name));
            };
            let refused = |why: &str| EvaluationError::Request {
                message: format!("tensor cores cannot make the sum `{name}`: {why}"),
            };
            if self.reductions[reduction].operation != ReduceOperation::Sum {
                return Err(refused("it is no sum"));
            }
            let chain = declared.chain.as_ref().map(|chain| chain.size(dims)).transpose()?;
            let accumulator = self.accumulators(arithmetic);
            for (stage, rule) in rules.iter_mut().enumerate() {
                if self.reduction_of_stage[stage] != Some(reduction) {
                    continue;
                }
                if !matches!(accumulator[stage], Format::F16 | Format::F32 | Format::F64) {
                    return Err(refused("its accumulator is neither f32 nor f16"));
                }
                let found = TensorRule::of(declared, &self.stages[stage], chain.map(|c| c as f64));
                *rule = Some(found.map_err(|why| refused(&why))?);
            }
        }
        Ok(rules)
    }

    /// Whether tensor cores can make the sums that `arithmetic` says they make, at these dims.
    ///
    /// # Errors
    /// [`EvaluationError::Request`] says of which sum they cannot, and why.
    pub fn check_tensor_cores(
        &self,
        dims: &Dims,
        arithmetic: &Arithmetic,
    ) -> Result<(), EvaluationError> {
        self.tensor_rules(dims, arithmetic).map(|_| ())
    }

    /// The declared depth of each stage's reduction.
    pub(crate) fn depths(
        &self,
        dims: &Dims,
        arithmetic: &Arithmetic,
    ) -> Result<Vec<Option<f64>>, EvaluationError> {
        let mut of_reduction = vec![None; self.reductions.len()];
        for (name, depth) in &arithmetic.depth {
            let Some(reduction) = reductions::find(&self.reductions, name) else {
                return Err(reductions::unknown(&self.reductions, name));
            };
            of_reduction[reduction] = Some(depth.size(dims)? as f64);
        }
        let of_stage = |reduction: &Option<usize>| reduction.and_then(|r| of_reduction[r]);
        Ok(self.reduction_of_stage.iter().map(of_stage).collect())
    }
}

impl Program {
    /// The domain of one `f64` an element.
    pub(crate) fn real(
        &self,
        evaluation: &Evaluation<'_>,
        carry: Carry,
        replay: Option<Replay>,
    ) -> Real<'_> {
        let flush = evaluation.arithmetic.flush_subnormals;
        let tiny = match (carry, flush) {
            (_, true) => Format::F32.min_normal(),
            (Carry::Clamped, false) => Format::F32.min_subnormal() / 2.0,
            _ => 0.0,
        };
        let accumulators = self.accumulators(evaluation.arithmetic);
        let compensated = accumulators.into_iter().map(|format| format == Format::F64).collect();
        Real { program: self, carry, tiny, replay, compensated }
    }

    /// The format that each stage's sum is carried in.
    pub(crate) fn accumulators(&self, arithmetic: &Arithmetic) -> Vec<Format> {
        let of_reduction = |reduction: usize| {
            let named = arithmetic
                .accumulators
                .iter()
                .find(|(name, _)| reductions::find(&self.reductions, name) == Some(reduction));
            named.map_or(Format::F32, |(_, format)| *format)
        };
        self.reduction_of_stage
            .iter()
            .map(|reduction| reduction.map_or(Format::F32, of_reduction))
            .collect()
    }

    /// The wanted rows of each output, by name.
    fn outputs<T>(
        &self,
        frame: &Frame<'_>,
        evaluation: &Evaluation<'_>,
        mut results: Vec<StageResult>,
        of: impl Fn(Format, StageResult) -> T,
    ) -> BTreeMap<String, T> {
        let mut found = BTreeMap::new();
        for (position, statement) in self.statements.iter().enumerate() {
            let Some(output) = statement.output else { continue };
            let mut wanted: Vec<Range<i64>> =
                frame.shapes[position].iter().map(|extent| 0..*extent).collect();
            let rows = evaluation.rows.as_ref().filter(|_| self.has_rows(statement));
            if let (Some(rows), Some(first)) = (rows, wanted.first_mut()) {
                *first = rows.clone();
            }
            let held = frame.stages[statement.stage].as_ref().map(|own| own.region.as_slice());
            let result = &mut results[statement.stage];
            let result = part(result, held.unwrap_or(&[]), &wanted);
            let tensor = &self.signature.outputs[output];
            found.insert(tensor.name.clone(), of(tensor.format, result));
        }
        found
    }
}

/// The elements of `result`, which holds the box `held`, that lie in the box `wanted`.
fn part(result: &mut StageResult, held: &[Range<i64>], wanted: &[Range<i64>]) -> StageResult {
    let problems = result.problems;
    if held == wanted {
        return StageResult {
            value: std::mem::take(&mut result.value),
            error: std::mem::take(&mut result.error),
            inexact: std::mem::take(&mut result.inexact),
            problems,
        };
    }
    let count: i64 = wanted.iter().map(|r| (r.end - r.start).max(0)).product();
    let strides = strides(held);
    let offset = |number: i64| {
        let mut rest = number;
        let mut offset = 0;
        for (axis, range) in wanted.iter().enumerate().rev() {
            let extent = (range.end - range.start).max(1);
            offset += (range.start + rest % extent - held[axis].start) * strides[axis];
            rest /= extent;
        }
        offset as usize
    };
    let offsets = || (0..count).map(offset);
    StageResult {
        value: offsets().map(|at| result.value[at]).collect(),
        error: offsets().filter_map(|at| result.error.get(at).copied()).collect(),
        inexact: offsets().filter_map(|at| result.inexact.get(at).copied()).collect(),
        problems,
    }
}
