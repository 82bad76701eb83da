//! The tree of a formula, as written: names are not yet looked up and shapes not yet checked.

use assay_num::Format;

use crate::error::Span;

/// One `name[i, j] = expression`.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    /// The name it defines.
    pub(crate) name: String,
    /// Its indices, in order.
    pub(crate) indices: Vec<StatementIndex>,
    /// What it is.
    pub(crate) value: Expr,
    /// Where the name and its indices stand.
    pub(crate) span: Span,
}

/// An index of a statement, with its extent where the text states one (`i in 0..rows`).
#[derive(Clone, Debug)]
pub(crate) struct StatementIndex {
    /// The index's name.
    pub(crate) name: String,
    /// The stated extent.
    pub(crate) extent: Option<Expr>,
    /// Where it stands.
    pub(crate) span: Span,
}

/// An expression and its place.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    /// What it is.
    pub(crate) kind: ExprKind,
    /// Where it stands.
    pub(crate) span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// A literal; whole where it is written so.
    Number { value: f64, whole: Option<i64> },
    /// An index, a dimension, a scalar, or a tensor or statement without axes.
    Name(String),
    /// `name[i, j]`
    Read { name: String, indices: Vec<Expr> },
    /// `-a`
    Negate(Box<Expr>),
    /// `!a`
    Not(Box<Expr>),
    /// `a op b`
    Binary { operator: Operator, left: Box<Expr>, right: Box<Expr> },
    /// `function(a, b)`
    Call { function: Function, arguments: Vec<Expr> },
    /// `sum(k in a..b if cond: body)`
    Reduce(Box<Reduce>),
    /// `scan(t, carry = initial: step)`; only as the whole of a statement's value
    Scan(Box<Scan>),
}

/// A recurrence as written.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// The statement's index that is walked.
    pub(crate) index: String,
    pub(crate) index_span: Span,
    /// What the step calls the value of the step before.
    pub(crate) carry: String,
    pub(crate) carry_span: Span,
    /// The carry of the first step.
    pub(crate) initial: Expr,
    /// The value of each step.
    pub(crate) step: Expr,
}

/// A reduction as written.
#[derive(Clone, Debug)]
pub(crate) struct Reduce {
    pub(crate) operation: ReduceOperation,
    pub(crate) index: String,
    pub(crate) index_span: Span,
    pub(crate) from: Expr,
    pub(crate) to: Expr,
    pub(crate) condition: Option<Expr>,
    pub(crate) body: Expr,
}

/// What a reduction does with its terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOperation {
    /// Adds them; 0 of no terms.
    Sum,
    /// Takes the largest, NaN if any is NaN; -Inf of no terms.
    Max,
    /// Takes the least, NaN if any is NaN; +Inf of no terms.
    Min,
    /// Multiplies them; 1 of no terms.
    Prod,
    /// A scan: walks its index in order and carries a value from step to step. Its terms are the
    /// steps.
    Scan,
}

impl ReduceOperation {
    /// All of them, with the names they have in text.
    pub(crate) const NAMES: [(&'static str, ReduceOperation); 4] = [
        ("sum", ReduceOperation::Sum),
        ("max", ReduceOperation::Max),
        ("min", ReduceOperation::Min),
        ("prod", ReduceOperation::Prod),
    ];

    /// The name in text.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOperation::Sum => "sum",
            ReduceOperation::Max => "max",
            ReduceOperation::Min => "min",
            ReduceOperation::Prod => "prod",
            ReduceOperation::Scan => "scan",
        }
    }

    /// The value of no terms.
    pub fn neutral(self) -> f64 {
        match self {
            ReduceOperation::Sum | ReduceOperation::Scan => 0.0,
            ReduceOperation::Max => f64::NEG_INFINITY,
            ReduceOperation::Min => f64::INFINITY,
            ReduceOperation::Prod => 1.0,
        }
    }
}

/// Infix operators.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Operator {
    Or,
    And,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// Spelling and binding strength; a larger strength binds tighter.
    pub(crate) fn spelling(self) -> (&'static str, u8) {
        match self {
            Operator::Or => ("||", 1),
            Operator::And => ("&&", 2),
            Operator::Less => ("<", 3),
            Operator::LessOrEqual => ("<=", 3),
            Operator::Greater => (">", 3),
            Operator::GreaterOrEqual => (">=", 3),
            Operator::Equal => ("==", 3),
            Operator::NotEqual => ("!=", 3),
            Operator::Add => ("+", 4),
            Operator::Subtract => ("-", 4),
            Operator::Multiply => ("*", 5),
            Operator::Divide => ("/", 5),
            Operator::Remainder => ("%", 5),
        }
    }

    /// All of them.
    pub(crate) const ALL: [Operator; 13] = [
        Operator::Or,
        Operator::And,
        Operator::Less,
        Operator::LessOrEqual,
        Operator::Greater,
        Operator::GreaterOrEqual,
        Operator::Equal,
        Operator::NotEqual,
        Operator::Add,
        Operator::Subtract,
        Operator::Multiply,
        Operator::Divide,
        Operator::Remainder,
    ];

    /// Whether it compares two numbers.
    pub(crate) fn compares(self) -> bool {
        self.spelling().1 == 3
    }
}

/// Named functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Function {
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
    Abs,
    Floor,
    Max,
    Min,
    /// `select(cond, a, b)`
    Select,
    /// `bits(word, i, n)`: field i of n bits, the least significant first
    Bits,
    /// `T(e)`: e rounded to T
    Round(Format),
    /// `near(T, e)`: e rounded to T once, somewhere on the way
    Near(Format),
}

impl Function {
    /// The names of those that take only expressions.
    pub(crate) const NAMES: [(&'static str, Function); 16] = [
        ("exp", Function::Exp),
        ("exp2", Function::Exp2),
        ("log", Function::Log),
        ("log2", Function::Log2),
        ("sqrt", Function::Sqrt),
        ("rsqrt", Function::Rsqrt),
        ("tanh", Function::Tanh),
        ("sin", Function::Sin),
        ("cos", Function::Cos),
        ("erf", Function::Erf),
        ("abs", Function::Abs),
        ("floor", Function::Floor),
        ("max", Function::Max),
        ("min", Function::Min),
        ("select", Function::Select),
        ("bits", Function::Bits),
    ];

    /// How many arguments it takes: at least, at most.
    pub(crate) fn arity(self) -> (usize, usize) {
        match self {
            Function::Max | Function::Min => (2, 16),
            Function::Select | Function::Bits => (3, 3),
            _ => (1, 1),
        }
    }

    /// Its name in text.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Function::Round(format) => format.name(),
            Function::Near(_) => "near",
            _ => Self::NAMES.iter().find(|(_, f)| *f == self).map_or("", |(name, _)| name),
        }
    }
}

/// The format that `T(e)` and `near(T, e)` round to, by name: floats other than f64.
pub(crate) fn rounding_format(name: &str) -> Option<Format> {
    Format::from_name(name).filter(|f| f.is_float() && *f != Format::F64 && *f != Format::E8m0)
}

impl Expr {
    /// Calls `visit` on this expression and all below it, outermost first.
    pub(crate) fn walk<'e>(&'e self, visit: &mut impl FnMut(&'e Expr)) {
        visit(self);
        match &self.kind {
            ExprKind::Number { .. } | ExprKind::Name(_) => {}
            ExprKind::Read { indices: parts, .. } | ExprKind::Call { arguments: parts, .. } => {
                for part in parts {
                    part.walk(visit);
                }
            }
            ExprKind::Negate(operand) | ExprKind::Not(operand) => operand.walk(visit),
            ExprKind::Binary { left, right, .. } => {
                left.walk(visit);
                right.walk(visit);
            }
            ExprKind::Reduce(reduce) => {
                for part in reduce.parts() {
                    part.walk(visit);
                }
            }
            ExprKind::Scan(scan) => {
                scan.initial.walk(visit);
                scan.step.walk(visit);
            }
        }
    }
}

impl Reduce {
    /// Its bounds, its condition and its body.
    fn parts(&self) -> impl Iterator<Item = &Expr> {
        [&self.from, &self.to].into_iter().chain(&self.condition).chain([&self.body])
    }
}

/// Whether `expr` uses `name` as a value or index of its own.
pub(crate) fn mentions(expr: &Expr, name: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(&part.kind, ExprKind::Name(n) if n == name));
    found
}

/// Whether a part of `reduce` uses `name`.
pub(crate) fn mentions_in_reduce(reduce: &Reduce, name: &str) -> bool {
    reduce.parts().any(|part| mentions(part, name))
}
