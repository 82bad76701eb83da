//! Recognises a sum of squared differences from a computed mean.
//!
//! The form is `sum(k in 0..n: (x - m) * (x - m))`, where `m` is `sum(j in 0..n: x) / n` of the
//! same `x` over the same range. The order of each difference does not matter, and `m` may be a
//! statement of its own or written in place, as may be the difference. Other ways of writing a
//! variance get the plain rule, which is sound but loose.

use crate::plan::{Access, Binary, Int, IntId, Node, NodeId, PlannedStatement, Source, Stage};

/// The nodes of a variance's term.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Differences {
    /// x
    pub(crate) sample: NodeId,
    /// m
    pub(crate) mean: NodeId,
}

/// Where a reduction squares a statement that is a difference, brings the difference's operands
/// into the reduction's stage, so that the variance rule finds them there.
pub(crate) fn import_differences(stages: &mut [Stage], statements: &[PlannedStatement]) {
    for position in 0..stages.len() {
        let (before, rest) = stages.split_at_mut(position);
        let stage = &mut rest[0];
        let Node::Binary(Binary::Multiply, a, b) = stage.nodes[stage.root] else { continue };
        let Node::Read(access) = stage.nodes[a].clone() else { continue };
        let Source::Statement(statement) = access.source else { continue };
        let Some(difference) = before.get(statements[statement].stage) else { continue };
        let Node::Binary(Binary::Subtract, x, m) = difference.nodes[difference.root] else {
            continue;
        };
        if a != b || stage.reduction.is_none() || difference.reduction.is_some() {
            continue;
        }
        let span = stage.spans[a];
        let mut import = Import { from: difference, to: stage, indices: &access.indices, span };
        if let (Some(x), Some(m)) = (import.node(x), import.node(m)) {
            let difference = import.add_node(Node::Binary(Binary::Subtract, x, m));
            stage.difference = Some(difference);
        }
    }
}

/// Copies expressions of an elementwise stage into a stage that reads it at `indices`.
struct Import<'a> {
    from: &'a Stage,
    to: &'a mut Stage,
    indices: &'a [IntId],
    span: crate::error::Span,
}

impl Import<'_> {
    fn add_node(&mut self, node: Node) -> NodeId {
        if let Some(found) = self.to.nodes.iter().position(|own| *own == node) {
            return found;
        }
        self.to.nodes.push(node);
        self.to.spans.push(self.span);
        self.to.nodes.len() - 1
    }

    fn node(&mut self, id: NodeId) -> Option<NodeId> {
        let node = match &self.from.nodes[id] {
            Node::Read(access) if access.guard.is_none() => Node::Read(Access {
                source: access.source,
                indices: access.indices.iter().map(|i| self.int(*i)).collect::<Option<_>>()?,
                guard: None,
            }),
            Node::Whole(int) => Node::Whole(self.int(*int)?),
            Node::Unary(operation, a) => Node::Unary(*operation, self.node(*a)?),
            Node::Binary(operation, a, b) => {
                Node::Binary(*operation, self.node(*a)?, self.node(*b)?)
            }
            node @ (Node::Literal(_) | Node::Scalar(_)) => node.clone(),
            _ => return None,
        };
        Some(self.add_node(node))
    }

    fn int(&mut self, id: IntId) -> Option<IntId> {
        let int = match &self.from.ints[id] {
            Int::Index(variable) => return self.indices.get(*variable).copied(),
            Int::Operation(operator, a, b) => {
                Int::Operation(*operator, self.int(*a)?, self.int(*b)?)
            }
            int @ (Int::Literal(_) | Int::Dim(_)) => int.clone(),
            _ => return None,
        };
        if let Some(found) = self.to.ints.iter().position(|own| *own == int) {
            return Some(found);
        }
        self.to.ints.push(int);
        Some(self.to.ints.len() - 1)
    }
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
    let a = stage.difference.unwrap_or(a);
    let Node::Binary(Binary::Subtract, x, m) = stage.nodes[a] else { return None };
    let same = stage.difference.is_some()
        || a == b
        || stage.nodes[b] == Node::Binary(Binary::Subtract, m, x);
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
        let mut inner = renamed(stage, access, variance, &variables)?;
        inner.push(Meaning::Reduced);
        let (own, theirs) = (variance.reduction.as_ref()?, sum.reduction.as_ref()?);
        let is_sum =
            |r: &crate::plan::StageReduction| r.operation == crate::ast::ReduceOperation::Sum;
        let from_zero = variance.ints[own.from] == Int::Literal(0);
        let equal = |stage: &Stage, int: IntId, meaning: &[Meaning]| {
            same_int(variance, own.to, stage, int, meaning)
        };
        let matches = is_sum(own)
            && is_sum(theirs)
            && from_zero
            && sum.ints[theirs.from] == Int::Literal(0)
            && equal(sum, theirs.to, &inner)
            && equal(stage, count, &variables)
            && same_node(variance, sample, sum, sum.root, &inner);
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
        let inner = renamed(stage, access, variance, &variables)?;
        self.behind(target, target.root, variance, inner)
    }
}

/// What the variables of the accessed stage are, given what those of `stage` are.
fn renamed(
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
fn same_node(variance: &Stage, a: NodeId, other: &Stage, b: NodeId, meaning: &[Meaning]) -> bool {
    let node = |a: NodeId, b: NodeId| same_node(variance, a, other, b, meaning);
    let int = |a: IntId, b: IntId| same_int(variance, a, other, b, meaning);
    match (&variance.nodes[a], &other.nodes[b]) {
        (Node::Literal(a), Node::Literal(b)) => a == b,
        (Node::Scalar(a), Node::Scalar(b)) => a == b,
        (Node::Whole(a), Node::Whole(b)) => int(*a, *b),
        (Node::Read(a), Node::Read(b)) => same_access(variance, a, other, b, meaning),
        (Node::Unary(o, a), Node::Unary(p, b)) => o == p && node(*a, *b),
        (Node::Round(f, a), Node::Round(g, b)) => f == g && node(*a, *b),
        (Node::Binary(o, a, c), Node::Binary(p, b, d)) => o == p && node(*a, *b) && node(*c, *d),
        _ => false,
    }
}

fn same_access(
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
        && pairs.all(|(a, b)| same_int(variance, *a, other, *b, meaning))
}

fn same_int(variance: &Stage, a: IntId, other: &Stage, b: IntId, meaning: &[Meaning]) -> bool {
    let int = |a: IntId, b: IntId| same_int(variance, a, other, b, meaning);
    match (&variance.ints[a], &other.ints[b]) {
        (Int::Index(v), Int::Index(w)) => match meaning.get(*w) {
            Some(Meaning::Reduced) => *v == variance.rank,
            Some(Meaning::Int(own)) => *own == a,
            None => std::ptr::eq(variance, other) && v == w,
        },
        (_, Int::Index(w)) => meaning.get(*w) == Some(&Meaning::Int(a)),
        (Int::Literal(a), Int::Literal(b)) => a == b,
        (Int::Dim(a), Int::Dim(b)) => a == b,
        (Int::Operation(o, a, c), Int::Operation(p, b, d)) => o == p && int(*a, *b) && int(*c, *d),
        _ => false,
    }
}
