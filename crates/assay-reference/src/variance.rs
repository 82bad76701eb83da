//! Recognises a sum of squared differences from a computed mean.
//!
//! The form is `sum(k in 0..n: (x - m) * (x - m))`, where `m` is `sum(j in 0..n: x) / n` of the same
//! `x` over the same range. The order of each difference does not matter, and `m` may be a statement
//! of its own or written in place. Other ways of writing a variance get the plain rule, which is
//! sound but loose.

use crate::plan::{Access, Binary, Int, IntId, Node, NodeId, PlannedStatement, Source, Stage};

/// The nodes of a variance's term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Differences {
    /// x
    pub(crate) sample: NodeId,
    /// m
    pub(crate) mean: NodeId,
}

/// The variance form of the stage at `position`, and the statement of the mean.
pub(crate) fn differences(
    stages: &[Stage],
    statements: &[PlannedStatement],
    position: usize,
) -> Option<(Differences, String)> {
    let matcher = Matcher { stages, statements };
    let stage = &stages[position];
    stage.reduction.as_ref()?;
    let Node::Binary(Binary::Multiply, a, b) = stage.nodes[stage.root] else { return None };
    let Node::Binary(Binary::Subtract, x, m) = stage.nodes[a] else { return None };
    let same = a == b || stage.nodes[b] == Node::Binary(Binary::Subtract, m, x);
    if !same {
        return None;
    }
    [(x, m), (m, x)].into_iter().find_map(|(sample, mean)| {
        let name = matcher.mean_of(stage, sample, mean)?;
        Some((Differences { sample, mean }, name))
    })
}

/// The statement of the mean whose squared differences the stage sums, if that is what it does.
pub(crate) fn mean_of(
    stages: &[Stage],
    statements: &[PlannedStatement],
    position: usize,
) -> Option<String> {
    differences(stages, statements, position).map(|(_, name)| name)
}

struct Matcher<'a> {
    stages: &'a [Stage],
    statements: &'a [PlannedStatement],
}

/// What a stage's variables are in the variance's stage: an integer expression there, or the
/// reduced index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Int(IntId),
    Reduced,
}

impl Matcher<'_> {
    fn stage_of(&self, source: Source) -> Option<usize> {
        match source {
            Source::Input(_) => None,
            Source::Statement(statement) => Some(self.statements[statement].stage),
            Source::Hoisted(stage) => Some(stage),
        }
    }

    /// The statement of `mean`, if that is the mean of `sample` over the stage's range.
    fn mean_of(&self, variance: &Stage, sample: NodeId, mean: NodeId) -> Option<String> {
        let variables: Vec<Meaning> = (0..variance.rank)
            .map(|v| {
                let own = |int: &Int| *int == Int::Index(v);
                variance.ints.iter().position(own).map_or(Meaning::Reduced, Meaning::Int)
            })
            .collect();
        let (stage, node, variables) = self.behind(variance, mean, variance, variables)?;
        let Node::Binary(Binary::Divide, total, count) = stage.nodes[node] else { return None };
        let Node::Whole(count) = stage.nodes[count] else { return None };
        let Node::Read(access) = &stage.nodes[total] else { return None };
        let sum = &self.stages[self.stage_of(access.source)?];
        let mut inner = self.renamed(stage, access, variance, &variables)?;
        inner.push(Meaning::Reduced);
        let (own, theirs) = (variance.reduction.as_ref()?, sum.reduction.as_ref()?);
        let is_sum =
            |r: &crate::plan::StageReduction| r.operation == crate::ast::ReduceOperation::Sum;
        let from_zero = variance.ints[own.from] == Int::Literal(0);
        let equal = |stage: &Stage, int: IntId, meaning: &[Meaning]| {
            self.same_int(variance, own.to, stage, int, meaning)
        };
        let matches = is_sum(own)
            && is_sum(theirs)
            && from_zero
            && sum.ints[theirs.from] == Int::Literal(0)
            && equal(sum, theirs.to, &inner)
            && equal(stage, count, &variables)
            && self.same_node(variance, sample, sum, sum.root, &inner);
        matches.then(|| stage.statement.clone())
    }

    /// The expression that `node` is: through reads of elementwise statements to where it is made,
    /// with what the variables there are in the variance's stage.
    fn behind<'s>(
        &'s self,
        stage: &'s Stage,
        node: NodeId,
        variance: &Stage,
        variables: Vec<Meaning>,
    ) -> Option<(&'s Stage, NodeId, Vec<Meaning>)> {
        let Node::Read(access) = &stage.nodes[node] else { return Some((stage, node, variables)) };
        let target = &self.stages[self.stage_of(access.source)?];
        if target.reduction.is_some() {
            return Some((stage, node, variables));
        }
        let inner = self.renamed(stage, access, variance, &variables)?;
        self.behind(target, target.root, variance, inner)
    }

    /// What the variables of the accessed stage are, given what those of `stage` are.
    fn renamed(
        &self,
        stage: &Stage,
        access: &Access,
        variance: &Stage,
        variables: &[Meaning],
    ) -> Option<Vec<Meaning>> {
        let meaning = |int: &IntId| match &stage.ints[*int] {
            Int::Index(v) if std::ptr::eq(stage, variance) && *v == variance.rank => {
                Some(Meaning::Reduced)
            }
            Int::Index(v) => variables.get(*v).copied(),
            _ if std::ptr::eq(stage, variance) => Some(Meaning::Int(*int)),
            _ => None,
        };
        access.indices.iter().map(meaning).collect()
    }

    /// Whether node `a` of the variance's stage is node `b` of another.
    fn same_node(
        &self,
        variance: &Stage,
        a: NodeId,
        other: &Stage,
        b: NodeId,
        meaning: &[Meaning],
    ) -> bool {
        let node = |a: NodeId, b: NodeId| self.same_node(variance, a, other, b, meaning);
        let int = |a: IntId, b: IntId| self.same_int(variance, a, other, b, meaning);
        match (&variance.nodes[a], &other.nodes[b]) {
            (Node::Literal(a), Node::Literal(b)) => a == b,
            (Node::Scalar(a), Node::Scalar(b)) => a == b,
            (Node::Whole(a), Node::Whole(b)) => int(*a, *b),
            (Node::Read(a), Node::Read(b)) => self.same_access(variance, a, other, b, meaning),
            (Node::Unary(o, a), Node::Unary(p, b)) => o == p && node(*a, *b),
            (Node::Round(f, a), Node::Round(g, b)) => f == g && node(*a, *b),
            (Node::Binary(o, a, c), Node::Binary(p, b, d)) => {
                o == p && node(*a, *b) && node(*c, *d)
            }
            _ => false,
        }
    }

    fn same_access(
        &self,
        variance: &Stage,
        a: &Access,
        other: &Stage,
        b: &Access,
        meaning: &[Meaning],
    ) -> bool {
        let mut pairs = a.indices.iter().zip(&b.indices);
        a.source == b.source
            && a.guard.is_none()
            && b.guard.is_none()
            && pairs.all(|(a, b)| self.same_int(variance, *a, other, *b, meaning))
    }

    fn same_int(
        &self,
        variance: &Stage,
        a: IntId,
        other: &Stage,
        b: IntId,
        meaning: &[Meaning],
    ) -> bool {
        let int = |a: IntId, b: IntId| self.same_int(variance, a, other, b, meaning);
        match (&variance.ints[a], &other.ints[b]) {
            (Int::Index(v), Int::Index(w)) => match meaning.get(*w) {
                Some(Meaning::Reduced) => *v == variance.rank,
                Some(Meaning::Int(own)) => *own == a,
                None => std::ptr::eq(variance, other) && v == w,
            },
            (_, Int::Index(w)) => meaning.get(*w) == Some(&Meaning::Int(a)),
            (Int::Literal(a), Int::Literal(b)) => a == b,
            (Int::Dim(a), Int::Dim(b)) => a == b,
            (Int::Operation(o, a, c), Int::Operation(p, b, d)) => {
                o == p && int(*a, *b) && int(*c, *d)
            }
            _ => false,
        }
    }
}
