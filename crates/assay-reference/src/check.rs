//! Checks a formula against a signature: names, ranks, shapes, and that nothing is left over.

use std::collections::HashMap;

use crate::ast::{Expr, ExprKind, Statement};
use crate::build::{StageBuilder, Variable};
use crate::error::{FormulaError, Span};
use crate::extent::{Dims, Extent};
use crate::formula::Formula;
use crate::parse::nearest;
use crate::plan::{PlannedStatement, Program, Source, Stage};
use crate::reductions;
use crate::signature::{Signature, Tensor};
use crate::variance;

/// The most operations a plan may have.
const MAX_OPERATIONS: usize = 1 << 14;

/// What is known while a formula is checked.
pub(crate) struct Checker<'a> {
    text: &'a str,
    signature: &'a Signature,
    scalar_names: Vec<&'a str>,
    dims: HashMap<&'a str, usize>,
    stages: Vec<Stage>,
    operations: usize,
    statements: Vec<PlannedStatement>,
    /// Where each statement stands.
    spans: Vec<Span>,
    /// A statement that need not be read by another.
    used: &'a str,
}

type Checked<T> = Result<T, FormulaError>;

impl Formula {
    /// Checks names, ranks and shapes against `signature` and plans the evaluation.
    ///
    /// # Errors
    /// At the first name that is unknown or used twice, read of another rank than its tensor's,
    /// index that runs past an axis, output that is not defined, or statement that is not used.
    pub fn check(&self, signature: &Signature) -> Result<Program, FormulaError> {
        self.check_used(signature, "")
    }

    /// As [`Formula::check`], for a statement `used` that something beside the formula reads.
    pub(crate) fn check_used(
        &self,
        signature: &Signature,
        used: &str,
    ) -> Result<Program, FormulaError> {
        let mut checker = Checker::new(self.text(), signature)?;
        checker.used = used;
        for statement in self.statements() {
            checker.statement(statement)?;
        }
        checker.finish()
    }
}

impl<'a> Checker<'a> {
    fn new(text: &'a str, signature: &'a Signature) -> Checked<Self> {
        let dims = signature.dims.iter().enumerate().map(|(i, d)| (d.as_str(), i)).collect();
        let checker = Self {
            text,
            signature,
            scalar_names: signature.scalars.keys().map(String::as_str).collect(),
            dims,
            stages: Vec::new(),
            operations: 0,
            statements: Vec::new(),
            spans: Vec::new(),
            used: "",
        };
        checker.check_signature()?;
        Ok(checker)
    }

    /// Every name once, and shapes made of dims alone.
    fn check_signature(&self) -> Checked<()> {
        let Signature { dims, inputs, outputs, scalars } = self.signature;
        let tensors = || inputs.iter().chain(outputs);
        let mut names: Vec<&str> = tensors().map(|t| t.name.as_str()).collect();
        names.extend(dims.iter().chain(scalars.keys()).map(String::as_str));
        names.sort_unstable();
        let start = Span::default();
        let twice = |pair: &[&'a str]| matches!(pair, [a, b] if a == b).then(|| pair[0]);
        if let Some(name) = names.windows(2).find_map(twice) {
            let message = format!("the signature names `{name}` twice");
            return Err(self.error(start, message).with_hint("give each a name of its own"));
        }
        for tensor in tensors() {
            let mut used = tensor.shape.iter().flat_map(Extent::names);
            if let Some(name) = used.find(|name| self.dim(name).is_none()) {
                let message =
                    format!("the shape of `{}` uses `{name}`, which is no dimension", tensor.name);
                return Err(self.error(start, message).with_hint(self.known_dims()));
            }
        }
        Ok(())
    }

    pub(crate) fn error(&self, span: Span, message: impl Into<String>) -> FormulaError {
        FormulaError::new(self.text, span, message)
    }

    pub(crate) fn scalar(&self, name: &str) -> Option<usize> {
        self.scalar_names.binary_search(&name).ok()
    }

    pub(crate) fn dim(&self, name: &str) -> Option<usize> {
        self.dims.get(name).copied()
    }

    /// The tensor or statement called `name`.
    pub(crate) fn source(&self, name: &str) -> Option<Source> {
        let statement = self.statements.iter().position(|s| s.name == name);
        let input = || self.signature.inputs.iter().position(|t| t.name == name);
        statement.map(Source::Statement).or_else(|| input().map(Source::Input))
    }

    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.scalar(name).is_some()
            || self.dim(name).is_some()
            || self.source(name).is_some()
            || self.output(name).is_some()
    }

    fn output(&self, name: &str) -> Option<usize> {
        self.signature.outputs.iter().position(|t| t.name == name)
    }

    fn shape(&self, source: Source) -> &[Extent] {
        match source {
            Source::Input(input) => &self.signature.inputs[input].shape,
            Source::Statement(statement) => &self.statements[statement].shape,
            Source::Hoisted(_) => &[],
        }
    }

    /// `expr` as an extent, where it is made of dims alone.
    pub(crate) fn dims_only(&self, expr: &Expr) -> Option<Extent> {
        let extent = Extent::from_tree(expr.clone());
        let mut plain = true;
        expr.walk(&mut |part| {
            plain &= match &part.kind {
                ExprKind::Number { whole, .. } => whole.is_some(),
                ExprKind::Name(name) => self.dim(name).is_some(),
                ExprKind::Negate(_) | ExprKind::Binary { .. } | ExprKind::Call { .. } => true,
                _ => false,
            };
        });
        plain.then_some(extent)
    }

    /// Adds a stage.
    pub(crate) fn add_stage(&mut self, stage: Stage) -> Checked<usize> {
        self.operations += stage.nodes.len() + stage.ints.len();
        if self.operations > MAX_OPERATIONS {
            let message = format!("the formula plans to more than {MAX_OPERATIONS} operations");
            return Err(self.error(Span::default(), message).with_hint("split the kernel"));
        }
        self.stages.push(stage);
        Ok(self.stages.len() - 1)
    }

    /// Adds a reduction, unless an equal one is there.
    pub(crate) fn add_hoisted(&mut self, stage: Stage) -> Checked<usize> {
        match self.stages.iter().position(|other| other.same(&stage)) {
            Some(same) => Ok(same),
            None => self.add_stage(stage),
        }
    }

    fn statement(&mut self, statement: &Statement) -> Checked<()> {
        let name = &statement.name;
        let output = self.output(name);
        let defined = self.statements.iter().any(|s| s.name == *name);
        if defined || (output.is_none() && self.is_taken(name)) {
            return Err(self.name_taken(name, statement.span));
        }
        self.check_indices(statement)?;
        let shape = self.statement_shape(statement, output)?;
        let variables = statement
            .indices
            .iter()
            .zip(&shape)
            .map(|(index, extent)| Variable {
                name: index.name.clone(),
                extent: Some(extent.clone()),
            })
            .collect();
        let stage = StageBuilder::new(variables, name).statement(self, &statement.value)?;
        self.statements.push(PlannedStatement { name: name.clone(), stage, shape, output });
        self.spans.push(statement.span);
        Ok(())
    }

    /// Each index once, and of no other name.
    fn check_indices(&self, statement: &Statement) -> Checked<()> {
        for (position, index) in statement.indices.iter().enumerate() {
            let repeated = statement.indices[..position].iter().any(|i| i.name == index.name);
            if repeated || self.is_taken(&index.name) || index.name == statement.name {
                return Err(self.name_taken(&index.name, index.span));
            }
        }
        Ok(())
    }

    /// The output's shape, or that which the indices' use implies.
    fn statement_shape(
        &self,
        statement: &Statement,
        output: Option<usize>,
    ) -> Checked<Vec<Extent>> {
        if let Some(output) = output {
            let tensor = &self.signature.outputs[output];
            return self.output_shape(statement, tensor);
        }
        statement
            .indices
            .iter()
            .map(|index| match &index.extent {
                Some(extent) => self.dims_only(extent).ok_or_else(|| {
                    self.error(extent.span, "an extent is made of dims and whole numbers alone")
                        .with_hint(self.known_dims())
                }),
                None => self.implied_extent(&statement.value, &index.name).ok_or_else(|| {
                    let message = format!("cannot tell how far index `{}` runs", index.name);
                    let hint = format!("write `{} in 0..EXTENT` at its first use", index.name);
                    self.error(index.span, message).with_hint(hint)
                }),
            })
            .collect()
    }

    fn output_shape(&self, statement: &Statement, tensor: &Tensor) -> Checked<Vec<Extent>> {
        let (rank, got) = (tensor.shape.len(), statement.indices.len());
        if rank != got {
            let message = format!("output `{}` has {rank} axes, not {got}", tensor.name);
            return Err(self.error(statement.span, message).with_hint(shape_hint(tensor)));
        }
        for (index, extent) in statement.indices.iter().zip(&tensor.shape) {
            let stated = index.extent.as_ref().and_then(|stated| self.dims_only(stated));
            if index.extent.is_some() && stated.as_ref() != Some(extent) {
                let message =
                    format!("this axis of output `{}` has {extent} elements", tensor.name);
                return Err(self.error(index.span, message).with_hint(shape_hint(tensor)));
            }
        }
        Ok(tensor.shape.clone())
    }

    /// The extent of the first axis that `index` walks by itself in `expr`.
    fn implied_extent(&self, expr: &Expr, index: &str) -> Option<Extent> {
        let mut found = None;
        expr.walk(&mut |part| {
            let ExprKind::Read { name, indices } = &part.kind else { return };
            let Some(source) = self.source(name) else { return };
            let direct =
                indices.iter().position(|i| matches!(&i.kind, ExprKind::Name(n) if n == index));
            if let Some(axis) = direct.filter(|_| found.is_none()) {
                found = self.shape(source).get(axis).cloned();
            }
        });
        found
    }

    /// The read's rank, and each index that is a variable by itself against the axis's extent.
    pub(crate) fn check_read(
        &self,
        source: Source,
        indices: &[Expr],
        span: Span,
        variables: &[Variable],
    ) -> Checked<()> {
        let shape = self.shape(source);
        let name = self.name_of(source);
        if shape.len() != indices.len() {
            let (rank, got) = (shape.len(), indices.len());
            let message = format!("`{name}` has {rank} axes, but is read with {got} indices");
            let extents: Vec<&str> = shape.iter().map(Extent::text).collect();
            let hint = format!("its shape is [{}]", extents.join(", "));
            return Err(self.error(span, message).with_hint(hint));
        }
        for (axis, (index, extent)) in indices.iter().zip(shape).enumerate() {
            let ExprKind::Name(variable) = &index.kind else { continue };
            let bound = variables.iter().find(|v| v.name == *variable);
            let Some(runs) = bound.and_then(|v| v.extent.as_ref()) else { continue };
            if self.may_exceed(runs, extent) {
                let message = format!(
                    "index `{variable}` runs to {runs}, but axis {axis} of `{name}` has {extent} \
                     elements"
                );
                let hint = "use the same dimension for both, or an index that stays inside";
                return Err(self.error(index.span, message).with_hint(hint));
            }
        }
        Ok(())
    }

    fn name_of(&self, source: Source) -> &str {
        match source {
            Source::Input(input) => &self.signature.inputs[input].name,
            Source::Statement(statement) => &self.statements[statement].name,
            Source::Hoisted(stage) => &self.stages[stage].statement,
        }
    }

    /// Whether `runs` can pass `extent`, tried on a few dims that differ a lot.
    fn may_exceed(&self, runs: &Extent, extent: &Extent) -> bool {
        if runs == extent {
            return false;
        }
        let count = self.signature.dims.len() as i64;
        (0..3).any(|turn| {
            let value = |position: i64| {
                5040 * (1 + (position * (2 * turn - 1) + turn).rem_euclid(count + 1))
            };
            let dims: Dims =
                (0..count).map(|p| (self.signature.dims[p as usize].clone(), value(p))).collect();
            matches!((runs.eval(&dims), extent.eval(&dims)), (Ok(a), Ok(b)) if a > b)
        })
    }

    fn finish(mut self) -> Checked<Program> {
        for output in &self.signature.outputs {
            if !self.statements.iter().any(|s| s.name == output.name) {
                let message = format!("output `{}` is never defined", output.name);
                let indices: Vec<String> =
                    (0..output.shape.len()).map(|axis| format!("i{axis}")).collect();
                let hint = format!("add `{}[{}] = ...`", output.name, indices.join(", "));
                return Err(self.error(Span::default(), message).with_hint(hint));
            }
        }
        self.check_all_used()?;
        variance::import_differences(&mut self.stages, &self.statements);
        let (reductions, reduction_of_stage) =
            reductions::describe(self.signature, &self.stages, &self.statements);
        Ok(Program {
            text: self.text.to_owned(),
            signature: self.signature.clone(),
            scalars: self.signature.scalars.values().copied().collect(),
            stages: self.stages,
            statements: self.statements,
            reductions,
            reduction_of_stage,
            choice: None,
            limits: std::collections::BTreeMap::new(),
        })
    }

    /// Every statement is an output or feeds one.
    fn check_all_used(&self) -> Checked<()> {
        for (position, statement) in self.statements.iter().enumerate() {
            let read = self
                .stages
                .iter()
                .any(|s| s.accesses().any(|a| a.source == Source::Statement(position)));
            if statement.output.is_none() && !read && statement.name != self.used {
                let message = format!("`{}` is computed but never used", statement.name);
                let hint = match nearest(
                    &statement.name,
                    self.signature.outputs.iter().map(|o| o.name.as_str()),
                ) {
                    Some(near) => format!("did you mean the output `{near}`?"),
                    None => "remove it, or read it in an output's statement".to_owned(),
                };
                return Err(self.error(self.spans[position], message).with_hint(hint));
            }
        }
        Ok(())
    }

    pub(crate) fn name_taken(&self, name: &str, span: Span) -> FormulaError {
        let message = format!("the name `{name}` is already in use");
        self.error(span, message).with_hint("give each index, statement and tensor its own name")
    }

    pub(crate) fn unknown_name(
        &self,
        name: &str,
        span: Span,
        variables: &[Variable],
    ) -> FormulaError {
        let indices = || variables.iter().map(|v| v.name.as_str());
        let known: Vec<&str> = indices()
            .chain(self.signature.inputs.iter().map(|t| t.name.as_str()))
            .chain(self.statements.iter().map(|s| s.name.as_str()))
            .chain(self.scalar_names.iter().copied())
            .chain(self.dims.keys().copied())
            .collect();
        let later = self.output(name).is_some();
        let error = self.error(span, format!("`{name}` is no index, dimension or tensor here"));
        if later {
            return error.with_hint(format!("define `{name}` in a statement above this one"));
        }
        let mut sorted = known;
        sorted.sort_unstable();
        match nearest(name, sorted.iter().copied()) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error.with_hint(format!("known here: {}", sorted.join(", "))),
        }
    }

    fn known_dims(&self) -> String {
        format!("dimensions: {}", self.signature.dims.join(", "))
    }

    pub(crate) fn condition_as_value(&self, span: Span) -> FormulaError {
        self.error(span, "a condition is no value").with_hint("write `select(condition, a, b)`")
    }

    pub(crate) fn value_as_condition(&self, span: Span) -> FormulaError {
        self.error(span, "expected a condition").with_hint("compare it, such as `x[i] > 0`")
    }

    pub(crate) fn nested_scan(&self, span: Span) -> FormulaError {
        self.error(span, "a scan is the whole right side of a statement")
            .with_hint("give it a statement of its own")
    }

    pub(crate) fn value_as_index(&self, span: Span) -> FormulaError {
        let hint = "indices and bounds are made of indices, dims, whole numbers and gathers";
        self.error(span, "this is no whole number").with_hint(hint)
    }

    pub(crate) fn remainder_of_values(&self, span: Span) -> FormulaError {
        let hint = "indices and bounds may use `%`; values may not";
        self.error(span, "`%` is for whole numbers").with_hint(hint)
    }
}

fn shape_hint(tensor: &Tensor) -> String {
    let extents: Vec<&str> = tensor.shape.iter().map(Extent::text).collect();
    format!("its shape is [{}]", extents.join(", "))
}
