//! Names and describes the reductions of a plan, for depths, accumulators, fills and drops. A scan
//! counts as one: its terms are its steps.

use crate::ast::{Expr, ExprKind, Operator, ReduceOperation};
use crate::error::{EvaluationError, Span};
use crate::extent::Extent;
use crate::plan::{Access, Int, IntId, PlannedStatement, Source, Stage};
use crate::signature::Signature;

/// One reduction of a formula.
#[derive(Clone, PartialEq, Debug)]
pub struct Reduction {
    /// How depths, accumulators and drops name it: the reduced index, where no other reduction has
    /// the same, else `statement.index`.
    pub name: String,
    /// What it does with its terms.
    pub operation: ReduceOperation,
    /// The statement it is first written in.
    pub statement: String,
    /// Its index, as written.
    pub index: String,
    /// Where the index starts; where that depends on another index, the least it can be.
    pub from: Extent,
    /// Where the index ends, not included; where that depends on another index, the most it can be.
    pub to: Extent,
    /// Whether `from` or `to` depend on another index.
    pub bounds_vary: bool,
    /// The inputs its terms read, through statements too.
    pub reads: Vec<ReductionRead>,
    /// The statement of the mean, where this is a sum of squared differences from a computed mean.
    pub variance_of: Option<String>,
    /// The outputs that depend on it.
    pub outputs: Vec<String>,
}

/// An input that a reduction's terms read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReductionRead {
    /// The input.
    pub tensor: String,
    /// The axis whose index is the reduced index, as it is or shifted; none if there is none.
    pub axis: Option<usize>,
}

/// The reductions of `stages` in order, and for each stage its position among them.
pub(crate) fn describe(
    signature: &Signature,
    stages: &[Stage],
    statements: &[PlannedStatement],
) -> (Vec<Reduction>, Vec<Option<usize>>) {
    let mut found: Vec<Reduction> = Vec::new();
    let mut positions = vec![None; stages.len()];
    let context = Context { signature, stages, statements };
    for (position, stage) in stages.iter().enumerate() {
        let described = context.described(stage).or_else(|| context.described_scan(position));
        let Some(mut reduction) = described else { continue };
        positions[position] = Some(found.len());
        reduction.variance_of = crate::variance::mean_of(stages, statements, position);
        reduction.outputs = context.outputs(position);
        found.push(reduction);
    }
    name_all(&mut found);
    (found, positions)
}

/// Gives each reduction a name of its own.
fn name_all(reductions: &mut [Reduction]) {
    let indices: Vec<String> = reductions.iter().map(|r| r.index.clone()).collect();
    let mut taken: Vec<String> = Vec::new();
    for reduction in reductions {
        let alone = indices.iter().filter(|index| **index == reduction.index).count() == 1;
        let full = format!("{}.{}", reduction.statement, reduction.index);
        let mut name = if alone { reduction.index.clone() } else { full.clone() };
        let mut number = 2;
        while taken.contains(&name) {
            name = format!("{full}.{number}");
            number += 1;
        }
        taken.push(name.clone());
        reduction.name = name;
    }
}

impl Reduction {
    /// Whether `name` means this reduction: its name, `statement.index`, or its statement.
    pub fn is_named(&self, name: &str) -> bool {
        let full = |n: &str| n.split_once('.') == Some((&*self.statement, &*self.index));
        name == self.name || full(name) || name == self.statement
    }
}

/// The reduction that `name` means: by name, else by `statement.index`, else the only one of a
/// statement.
pub(crate) fn find(reductions: &[Reduction], name: &str) -> Option<usize> {
    if let Some(exact) = reductions.iter().position(|r| r.name == name) {
        return Some(exact);
    }
    let mut others = (0..reductions.len()).filter(|&r| reductions[r].is_named(name));
    let first = others.next();
    first.filter(|_| others.next().is_none())
}

/// The error of asking for a reduction that is not there.
pub(crate) fn unknown(reductions: &[Reduction], name: &str) -> EvaluationError {
    let names: Vec<&str> = reductions.iter().map(|r| r.name.as_str()).collect();
    let message =
        format!("no single reduction is called `{name}`; there are: {}", names.join(", "));
    EvaluationError::Request { message }
}

struct Context<'a> {
    signature: &'a Signature,
    stages: &'a [Stage],
    statements: &'a [PlannedStatement],
}

impl Context<'_> {
    fn stage_of(&self, source: Source) -> Option<usize> {
        match source {
            Source::Input(_) => None,
            Source::Statement(statement) => Some(self.statements[statement].stage),
            Source::Hoisted(stage) => Some(stage),
        }
    }

    /// The reduction of `stage`, if it has one; what follows from its place is left out.
    fn described(&self, stage: &Stage) -> Option<Reduction> {
        let reduction = stage.reduction.as_ref()?;
        let (from, from_varies) = self.bound(stage, reduction.from, false);
        let (to, to_varies) = self.bound(stage, reduction.to, true);
        Some(Reduction {
            name: stage.index.clone(),
            operation: reduction.operation,
            statement: stage.statement.clone(),
            index: stage.index.clone(),
            from,
            to,
            bounds_vary: from_varies || to_varies,
            reads: self.reads(stage, stage.rank),
            variance_of: None,
            outputs: Vec::new(),
        })
    }

    /// The scan of the stage at `position`, if it is one; what follows from its place is left out.
    fn described_scan(&self, position: usize) -> Option<Reduction> {
        let stage = &self.stages[position];
        let axis = stage.scan.as_ref()?.axis;
        let statement = self.statements.iter().find(|statement| statement.stage == position)?;
        Some(Reduction {
            name: stage.index.clone(),
            operation: ReduceOperation::Scan,
            statement: stage.statement.clone(),
            index: stage.index.clone(),
            from: Extent::constant(0),
            to: statement.shape.get(axis)?.clone(),
            bounds_vary: false,
            reads: self.reads(stage, axis),
            variance_of: None,
            outputs: Vec::new(),
        })
    }

    /// The inputs read by `stage`, directly with the axis that its variable `walked` walks, and
    /// through other stages without.
    fn reads(&self, stage: &Stage, walked: usize) -> Vec<ReductionRead> {
        let mut found: Vec<ReductionRead> = Vec::new();
        let mut add = |tensor: &str, axis: Option<usize>| match found
            .iter_mut()
            .find(|read| read.tensor == tensor)
        {
            Some(read) => read.axis = read.axis.or(axis),
            None => found.push(ReductionRead { tensor: tensor.to_owned(), axis }),
        };
        for access in stage.accesses() {
            let axis = access.indices.iter().position(|&i| is_shifted(stage, i, walked));
            match access.source {
                Source::Input(input) => add(&self.signature.inputs[input].name, axis),
                _ => self.inputs_below(access).into_iter().for_each(|input| {
                    add(&self.signature.inputs[input].name, None);
                }),
            }
        }
        found
    }

    /// The inputs that an access of a stage depends on.
    fn inputs_below(&self, access: &Access) -> Vec<usize> {
        let mut found = Vec::new();
        let mut pending = vec![access.source];
        let mut seen = Vec::new();
        while let Some(source) = pending.pop() {
            if let Source::Input(input) = source {
                found.push(input);
            } else if let Some(stage) = self.stage_of(source).filter(|s| !seen.contains(s)) {
                seen.push(stage);
                pending.extend(self.stages[stage].accesses().map(|a| a.source));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The outputs that depend on `stage`.
    fn outputs(&self, stage: usize) -> Vec<String> {
        let depends = |start: usize| {
            let mut pending = vec![start];
            let mut seen = vec![];
            while let Some(at) = pending.pop() {
                if at == stage {
                    return true;
                }
                if !seen.contains(&at) {
                    seen.push(at);
                    pending
                        .extend(self.stages[at].accesses().filter_map(|a| self.stage_of(a.source)));
                }
            }
            false
        };
        let outputs = self.statements.iter().filter(|s| s.output.is_some() && depends(s.stage));
        outputs.map(|s| s.name.clone()).collect()
    }

    /// A bound as an extent, with other indices at the end that makes it least or largest, and
    /// whether there are any. What is neither becomes 0 or the largest integer.
    fn bound(&self, stage: &Stage, int: IntId, largest: bool) -> (Extent, bool) {
        let mut varies = false;
        let tree = self.bound_tree(stage, int, largest, &mut varies);
        let unknown = if largest { i64::MAX } else { 0 };
        (tree.map_or(Extent::constant(unknown), Extent::from_tree), varies)
    }

    fn bound_tree(
        &self,
        stage: &Stage,
        int: IntId,
        largest: bool,
        varies: &mut bool,
    ) -> Option<Expr> {
        let mut of = |int, largest| self.bound_tree(stage, int, largest, varies);
        match &stage.ints[int] {
            Int::Literal(value) => Some(Extent::constant(*value).tree().clone()),
            Int::Dim(dim) => Some(Extent::dim(&self.signature.dims[*dim]).tree().clone()),
            Int::Index(variable) => {
                *varies = true;
                self.index_bound(stage, *variable, largest)
            }
            Int::Operation(operator, a, b) => {
                let flips = *operator == Operator::Subtract;
                let (a, b) = (of(*a, largest)?, of(*b, largest != flips)?);
                Some(binary(*operator, a, b))
            }
            Int::Least(a, b) => {
                Some(extreme(crate::ast::Function::Min, [of(*a, largest)?, of(*b, largest)?]))
            }
            Int::Largest(a, b) => {
                Some(extreme(crate::ast::Function::Max, [of(*a, largest)?, of(*b, largest)?]))
            }
            Int::Gather(_) => {
                *varies = true;
                None
            }
        }
    }

    /// The least or largest value of a stage's axis, where the axis is a statement's.
    fn index_bound(&self, stage: &Stage, variable: usize, largest: bool) -> Option<Expr> {
        if !largest {
            return Some(Extent::constant(0).tree().clone());
        }
        let statement = self.statements.iter().find(|s| s.name == stage.statement)?;
        let extent = statement.shape.get(variable)?;
        let one = Extent::constant(1).tree().clone();
        Some(binary(Operator::Subtract, extent.tree().clone(), one))
    }
}

fn binary(operator: Operator, left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    Expr { kind: ExprKind::Binary { operator, left, right }, span: Span::default() }
}

fn extreme(function: crate::ast::Function, arguments: [Expr; 2]) -> Expr {
    let kind = ExprKind::Call { function, arguments: arguments.into() };
    Expr { kind, span: Span::default() }
}

/// Whether an integer expression is the variable, plus something that does not hold it.
fn is_shifted(stage: &Stage, int: IntId, variable: usize) -> bool {
    match &stage.ints[int] {
        Int::Index(index) => *index == variable,
        Int::Operation(Operator::Add | Operator::Subtract, a, b) => {
            is_shifted(stage, *a, variable) || is_shifted(stage, *b, variable)
        }
        _ => false,
    }
}
