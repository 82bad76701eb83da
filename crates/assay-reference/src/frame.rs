//! A program at given dims and inputs: checked inputs, needed regions, and where each read lands.

use std::ops::Range;

use assay_num::Format;

use crate::arithmetic::Arithmetic;
use crate::error::EvaluationError;
use crate::evaluate::Evaluation;
use crate::extent::Dims;
use crate::plan::{Access, Int, Program, Source, Stage};
use crate::reductions;
use crate::region::{Affine, Interval, affine_forms, hull, interval_of, intervals};
use crate::signature::Inputs;

/// The most elements that the stages of one evaluation may hold together.
pub const MAX_ELEMENTS: f64 = (1u64 << 28) as f64;
/// The most terms and elements that one evaluation may visit.
pub const MAX_VISITS: f64 = (1u64 << 38) as f64;

/// An input at given dims.
pub(crate) struct InputFrame<'a> {
    pub(crate) elements: &'a [f64],
    pub(crate) shape: Vec<i64>,
    pub(crate) format: Format,
}

/// A stage at given dims.
pub(crate) struct StageFrame {
    /// The needed indices of each axis.
    pub(crate) region: Vec<Range<i64>>,
    /// The affine form of each integer expression that has one and stays in 64 bits.
    pub(crate) affine: Vec<Option<Affine>>,
    /// Where the reads of nodes and gathers land, in the order of [`Stage::accesses`].
    pub(crate) landings: Vec<Landing>,
    /// The term to leave out, as an offset from the first; of a scan, the step.
    pub(crate) dropped: Option<i64>,
}

/// Where a read lands in its source's elements.
#[derive(Clone, Debug)]
pub(crate) enum Landing {
    /// At an affine offset that is inside for all the region.
    Direct(Affine),
    /// To be checked for each element: the shape that bounds it, the first index stored and the
    /// stride of each axis.
    Checked { shape: Vec<i64>, first: Vec<i64>, strides: Vec<i64> },
}

/// A program at given dims and inputs.
pub(crate) struct Frame<'a> {
    pub(crate) program: &'a Program,
    pub(crate) dims: Vec<i64>,
    pub(crate) inputs: Vec<InputFrame<'a>>,
    pub(crate) shapes: Vec<Vec<i64>>,
    /// None where the stage is not needed.
    pub(crate) stages: Vec<Option<StageFrame>>,
}

type Framed<T> = Result<T, EvaluationError>;

impl<'a> Frame<'a> {
    pub(crate) fn new(program: &'a Program, evaluation: &Evaluation<'a>) -> Framed<Self> {
        let dims = dim_values(program, evaluation.dims)?;
        let inputs = input_frames(program, evaluation)?;
        let shapes: Framed<Vec<Vec<i64>>> = program
            .statements
            .iter()
            .map(|s| s.shape.iter().map(|extent| extent.size(evaluation.dims)).collect())
            .collect();
        let stages = program.stages.iter().map(|_| None).collect();
        let mut frame = Self { program, dims, inputs, shapes: shapes?, stages };
        frame.demand(evaluation)?;
        frame.check_size()?;
        frame.land();
        frame.set_drop(evaluation)?;
        Ok(frame)
    }

    /// A program at given dims with no inputs: which indices of each stage the outputs need.
    pub(crate) fn without_inputs(program: &'a Program, at: &Dims) -> Framed<Self> {
        let dims = dim_values(program, at)?;
        let shape = |statement: &crate::plan::PlannedStatement| -> Framed<Vec<i64>> {
            statement.shape.iter().map(|extent| extent.size(at)).collect()
        };
        let shapes = program.statements.iter().map(shape).collect::<Framed<Vec<_>>>()?;
        let stages = program.stages.iter().map(|_| None).collect();
        let mut frame = Self { program, dims, inputs: Vec::new(), shapes, stages };
        let (inputs, arithmetic) = (Inputs::default(), Arithmetic::default());
        frame.demand(&Evaluation::new(at, &inputs, &arithmetic))?;
        Ok(frame)
    }

    /// Finds the region of each stage that the wanted rows of the outputs need.
    fn demand(&mut self, evaluation: &Evaluation<'_>) -> Framed<()> {
        let mut wanted: Vec<Option<Vec<Range<i64>>>> = vec![None; self.program.stages.len()];
        for (statement, shape) in self.program.statements.iter().zip(&self.shapes) {
            if statement.output.is_none() {
                continue;
            }
            let mut region: Vec<Range<i64>> = shape.iter().map(|extent| 0..*extent).collect();
            let rows = evaluation.rows.as_ref().filter(|_| self.program.has_rows(statement));
            if let (Some(rows), Some(first)) = (rows, region.first_mut()) {
                *first = restricted(first, rows, &statement.name)?;
            }
            widen(&mut wanted[statement.stage], region);
        }
        for position in (0..self.program.stages.len()).rev() {
            let Some(mut region) = wanted[position].take() else { continue };
            let stage = &self.program.stages[position];
            if let Some(scan) = &stage.scan {
                // Every step needs all before it.
                region[scan.axis].start = region[scan.axis].start.min(0);
            }
            if !region.iter().any(Range::is_empty) {
                self.demand_of(stage, &region, &mut wanted)?;
            }
            let affine = Vec::new();
            self.stages[position] =
                Some(StageFrame { region, affine, landings: Vec::new(), dropped: None });
        }
        Ok(())
    }

    /// Widens the regions of what `stage` reads to compute `region`.
    fn demand_of(
        &self,
        stage: &Stage,
        region: &[Range<i64>],
        wanted: &mut [Option<Vec<Range<i64>>>],
    ) -> Framed<()> {
        let (found, _) = self.stage_intervals(stage, region);
        for access in stage.accesses() {
            let Some(target) = self.program.stage_of(access.source) else { continue };
            let known: Vec<Interval> = access.indices.iter().map(|i| found[*i]).collect();
            widen(&mut wanted[target], self.needed(access.source, &known)?);
        }
        Ok(())
    }

    /// The intervals of a stage's integers over `region`, and of its variables.
    fn stage_intervals(
        &self,
        stage: &Stage,
        region: &[Range<i64>],
    ) -> (Vec<Interval>, Vec<Interval>) {
        let mut variables: Vec<Interval> = region.iter().map(interval_of).collect();
        let mut found = intervals(stage, &self.dims, &variables);
        if let Some(reduction) = &stage.reduction {
            let reduced = match (found[reduction.from], found[reduction.to]) {
                (Some((low, _)), Some((_, high))) => interval_of(&(low..high)),
                _ => None,
            };
            variables.push(reduced);
            found = intervals(stage, &self.dims, &variables);
        }
        (found, variables)
    }

    /// The region of a source read at indices with these intervals.
    fn needed(&self, source: Source, known: &[Interval]) -> Framed<Vec<Range<i64>>> {
        let shape = match source {
            Source::Statement(statement) => Some(&self.shapes[statement]),
            _ => None,
        };
        let side = |(axis, interval): (usize, &Interval)| match (shape, interval) {
            (Some(shape), Some((low, high))) => {
                let end = high.saturating_add(1).clamp(0, shape[axis]);
                Ok(low.clamp(&0, &end).to_owned()..end)
            }
            (Some(shape), None) => Ok(0..shape[axis]),
            (None, Some((low, high))) => Ok(*low..high.saturating_add(1)),
            (None, None) => Err(EvaluationError::Request {
                message: format!(
                    "cannot tell how far the indices around the reduction in `{}` run; give the \
                     inner reduction a statement of its own",
                    self.program.source_name(source)
                ),
            }),
        };
        known.iter().enumerate().map(side).collect()
    }

    /// The most terms that an element of `stage` can have; 1 where there is no reduction.
    pub(crate) fn terms_hull(&self, stage: &Stage, region: &[Range<i64>]) -> f64 {
        let (_, variables) = self.stage_intervals(stage, region);
        match variables.get(stage.rank) {
            Some(Some((low, high))) => (*high as f64 - *low as f64) + 1.0,
            _ => 1.0,
        }
    }

    /// Refuses what would hold or visit too much.
    fn check_size(&self) -> Framed<()> {
        let (mut held, mut visited) = (0.0, 0.0);
        for (stage, frame) in self.program.stages.iter().zip(&self.stages) {
            let Some(frame) = frame else { continue };
            let elements: f64 = frame.region.iter().map(length).product();
            held += elements;
            visited += elements * self.terms_hull(stage, &frame.region);
        }
        let refuse = |what: &str, needed, limit| {
            Err(EvaluationError::TooLarge { what: what.to_owned(), needed, limit })
        };
        if held > MAX_ELEMENTS {
            return refuse("holding the formula's statements and sums", held, MAX_ELEMENTS);
        }
        if visited > MAX_VISITS {
            return refuse("visiting every term of the formula", visited, MAX_VISITS);
        }
        Ok(())
    }

    /// Operations on elements and terms that the stages take together.
    pub(crate) fn work(&self) -> f64 {
        let stages = self.program.stages.iter().zip(&self.stages);
        stages.fold(0.0, |work, (stage, frame)| {
            let Some(frame) = frame else { return work };
            let elements: f64 = frame.region.iter().map(length).product();
            let terms = self.terms_hull(stage, &frame.region);
            work + elements * terms * stage.nodes.len() as f64
        })
    }

    /// Finds where each read lands.
    fn land(&mut self) {
        for position in 0..self.stages.len() {
            let Some(frame) = &self.stages[position] else { continue };
            let stage = &self.program.stages[position];
            let (found, _) = self.stage_intervals(stage, &frame.region);
            let mut affine = affine_forms(stage, &self.dims);
            // Without an interval a form may overflow, unless it is one of the leaves.
            for ((form, interval), int) in affine.iter_mut().zip(&found).zip(&stage.ints) {
                let leaf = matches!(int, Int::Literal(_) | Int::Dim(_) | Int::Index(_));
                if interval.is_none() && !leaf {
                    *form = None;
                }
            }
            let landings =
                stage.accesses().map(|access| self.landing(access, &found, &affine)).collect();
            if let Some(frame) = &mut self.stages[position] {
                frame.affine = affine;
                frame.landings = landings;
            }
        }
    }

    fn landing(&self, access: &Access, found: &[Interval], affine: &[Option<Affine>]) -> Landing {
        let (shape, stored) = self.stored(access.source);
        let strides = strides(&stored);
        let first: Vec<i64> = stored.iter().map(|range| range.start).collect();
        let count = affine.iter().flatten().next().map_or(1, |form| form.coefficients.len());
        let mut offset = Some(Affine::constant(0, count));
        for (axis, index) in access.indices.iter().enumerate() {
            let inside = found[*index].is_some_and(|(low, high)| {
                let range = &stored[axis];
                low >= 0 && high < shape[axis] && range.contains(&low) && range.contains(&high)
            });
            offset = match (&affine[*index], inside, offset) {
                (Some(form), true, Some(offset)) => {
                    let from_first = form.scaled_plus(1, &Affine::constant(-first[axis], count));
                    from_first.and_then(|form| form.scaled_plus(strides[axis], &offset))
                }
                _ => None,
            };
        }
        match offset {
            Some(offset) => Landing::Direct(offset),
            None => Landing::Checked { shape, first, strides },
        }
    }

    /// The shape that bounds reads of a source, and the indices it holds elements for.
    pub(crate) fn stored(&self, source: Source) -> (Vec<i64>, Vec<Range<i64>>) {
        let region = |stage: usize| match &self.stages[stage] {
            Some(frame) => frame.region.clone(),
            None => vec![0..0; self.program.stages[stage].rank],
        };
        match source {
            Source::Input(input) => {
                let shape = &self.inputs[input].shape;
                (shape.clone(), shape.iter().map(|extent| 0..*extent).collect())
            }
            Source::Statement(statement) => {
                let stage = self.program.statements[statement].stage;
                (self.shapes[statement].clone(), region(stage))
            }
            Source::Hoisted(stage) => {
                let region = region(stage);
                (region.iter().map(|range| range.end).collect(), region)
            }
        }
    }

    /// The indices of element `number` of a stage's region.
    pub(crate) fn element(&self, stage: usize, number: usize) -> Vec<i64> {
        let Some(own) = &self.stages[stage] else { return Vec::new() };
        let mut rest = number as i64;
        let mut indices: Vec<i64> = Vec::new();
        for range in own.region.iter().rev() {
            let extent = (range.end - range.start).max(1);
            indices.push(range.start + rest % extent);
            rest /= extent;
        }
        indices.reverse();
        indices
    }

    fn set_drop(&mut self, evaluation: &Evaluation<'_>) -> Framed<()> {
        let Some(drop) = &evaluation.drop else { return Ok(()) };
        let reductions = &self.program.reductions;
        let Some(wanted) = reductions::find(reductions, &drop.reduction) else {
            return Err(reductions::unknown(reductions, &drop.reduction));
        };
        for (frame, reduction) in self.stages.iter_mut().zip(&self.program.reduction_of_stage) {
            if let (Some(frame), true) = (frame, *reduction == Some(wanted)) {
                frame.dropped = Some(drop.term);
            }
        }
        Ok(())
    }
}

/// Refuses a reduction that runs for too long. Bounds read from inputs are not known before.
pub(crate) fn check_terms(from: i64, to: i64) -> Framed<()> {
    let needed = to as f64 - from as f64;
    if needed <= MAX_VISITS {
        return Ok(());
    }
    let what = "visiting every term of a reduction".to_owned();
    Err(EvaluationError::TooLarge { what, needed, limit: MAX_VISITS })
}

/// The row-major strides of a box.
pub(crate) fn strides(region: &[Range<i64>]) -> Vec<i64> {
    let mut strides = vec![1i64; region.len()];
    for axis in (1..region.len()).rev() {
        let extent = (region[axis].end - region[axis].start).max(1);
        // Beside an empty axis the others may be of any size; then nothing is read.
        strides[axis - 1] = strides[axis].wrapping_mul(extent);
    }
    strides
}

fn length(range: &Range<i64>) -> f64 {
    (range.end as f64 - range.start as f64).max(0.0)
}

fn widen(wanted: &mut Option<Vec<Range<i64>>>, region: Vec<Range<i64>>) {
    let joined = match wanted.take() {
        // An empty box needs nothing, whatever its other sides are.
        Some(old) if !old.iter().any(Range::is_empty) => {
            if region.iter().any(Range::is_empty) {
                old
            } else {
                old.iter().zip(&region).map(|(a, b)| hull(a, b)).collect()
            }
        }
        _ => region,
    };
    *wanted = Some(joined);
}

fn restricted(all: &Range<i64>, rows: &Range<i64>, output: &str) -> Framed<Range<i64>> {
    if rows.start < 0 || rows.start > rows.end || rows.end > all.end {
        let message = format!(
            "rows {}..{} are not inside the first axis of `{output}`, 0..{}",
            rows.start, rows.end, all.end
        );
        return Err(EvaluationError::Request { message });
    }
    Ok(rows.clone())
}

fn dim_values(program: &Program, dims: &Dims) -> Framed<Vec<i64>> {
    let value = |name: &String| match dims.get(name) {
        None => Err(EvaluationError::DimMissing { name: name.clone() }),
        Some(&value) if value < 0 => {
            Err(EvaluationError::DimNegative { name: name.clone(), value })
        }
        Some(&value) => Ok(value),
    };
    program.signature.dims.iter().map(value).collect()
}

fn input_frames<'a>(program: &Program, evaluation: &Evaluation<'a>) -> Framed<Vec<InputFrame<'a>>> {
    let frame = |tensor: &crate::Tensor| {
        let shape: Framed<Vec<i64>> =
            tensor.shape.iter().map(|extent| extent.size(evaluation.dims)).collect();
        let shape = shape?;
        let missing = || EvaluationError::InputMissing { tensor: tensor.name.clone() };
        let elements = evaluation.inputs.tensors.get(&tensor.name).ok_or_else(missing)?;
        let expected = shape.iter().try_fold(1i64, |n, extent| n.checked_mul(*extent));
        if expected.is_none_or(|expected| expected != elements.len() as i64) {
            return Err(EvaluationError::InputLength {
                tensor: tensor.name.clone(),
                shape,
                expected: expected.unwrap_or(i64::MAX),
                got: elements.len(),
            });
        }
        Ok(InputFrame { elements, shape, format: tensor.format })
    };
    program.signature.inputs.iter().map(frame).collect()
}
