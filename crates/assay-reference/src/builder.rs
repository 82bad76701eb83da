//! Builds formulas in Rust.
//!
//! The builder writes the text form and reads it back, so that a built formula is exactly the one
//! that its text says and there is one front end.
//!
//! ```
//! use assay_reference::builder::{FormulaBuilder, dim, index, read, scalar, sum};
//!
//! let (r, k, c) = (index("r"), index("k"), index("c"));
//! let square = || read("x", [&r, &k]) * read("x", [&r, &k]);
//! let formula = FormulaBuilder::new()
//!     .define("mean", ["r"], sum("k", 0, dim("cols"), square()) / dim("cols"))
//!     .define("y", ["r", "c"], read("x", [&r, &c]) * (read("mean", [&r]) + scalar("eps")).rsqrt())
//!     .build()?;
//! assert_eq!(
//!     formula.text(),
//!     "mean[r] = sum(k in 0..cols: x[r, k] * x[r, k]) / cols\n\
//!      y[r, c] = x[r, c] * rsqrt(mean[r] + eps)"
//! );
//! # Ok::<(), assay_reference::FormulaError>(())
//! ```

use std::ops::{Add, Div, Mul, Neg, Not, Rem, Sub};

use assay_num::Format;

use crate::ast::{
    Expr, ExprKind, Function, Operator, Reduce, ReduceOperation, Scan, Statement, StatementIndex,
};
use crate::error::{FormulaError, Span};
use crate::formula::Formula;

/// An expression being built. Names are checked when the formula is.
#[derive(Clone, Debug)]
pub struct Expression(Expr);

fn made(kind: ExprKind) -> Expression {
    Expression(Expr { kind, span: Span::default() })
}

fn call(function: Function, arguments: impl IntoIterator<Item = Expression>) -> Expression {
    made(ExprKind::Call { function, arguments: arguments.into_iter().map(|e| e.0).collect() })
}

fn binary(operator: Operator, left: Expression, right: Expression) -> Expression {
    made(ExprKind::Binary { operator, left: Box::new(left.0), right: Box::new(right.0) })
}

/// An index.
pub fn index(name: &str) -> Expression {
    made(ExprKind::Name(name.to_owned()))
}

/// A dimension.
pub fn dim(name: &str) -> Expression {
    index(name)
}

/// A scalar of the signature.
pub fn scalar(name: &str) -> Expression {
    index(name)
}

/// A literal.
pub fn number(value: f64) -> Expression {
    let literal = made(ExprKind::Number { value: value.abs(), whole: None });
    if value.is_sign_negative() { -literal } else { literal }
}

/// An element of a tensor or of a statement.
pub fn read<'e>(name: &str, indices: impl IntoIterator<Item = &'e Expression>) -> Expression {
    let indices: Vec<Expr> = indices.into_iter().map(|i| i.0.clone()).collect();
    let name = name.to_owned();
    made(if indices.is_empty() { ExprKind::Name(name) } else { ExprKind::Read { name, indices } })
}

/// `sum(index in from..to: body)`
pub fn sum(
    index: &str,
    from: impl Into<Expression>,
    to: impl Into<Expression>,
    body: Expression,
) -> Expression {
    reduce(ReduceOperation::Sum, index, (from.into(), to.into()), None, body)
}

/// `max(index in from..to: body)`
pub fn max(
    index: &str,
    from: impl Into<Expression>,
    to: impl Into<Expression>,
    body: Expression,
) -> Expression {
    reduce(ReduceOperation::Max, index, (from.into(), to.into()), None, body)
}

/// Any reduction, with the condition that a term must meet.
pub fn reduce(
    operation: ReduceOperation,
    index: &str,
    (from, to): (Expression, Expression),
    condition: Option<Expression>,
    body: Expression,
) -> Expression {
    made(ExprKind::Reduce(Box::new(Reduce {
        operation,
        index: index.to_owned(),
        index_span: Span::default(),
        from: from.0,
        to: to.0,
        condition: condition.map(|c| c.0),
        body: body.0,
    })))
}

/// `scan(index, carry = initial: step)`: the step's value at each `index` in order, where `carry`
/// is the value of the step before, and `initial` before the first. Only as the whole value of a
/// statement.
pub fn scan(
    index: &str,
    carry: &str,
    initial: impl Into<Expression>,
    step: Expression,
) -> Expression {
    made(ExprKind::Scan(Box::new(Scan {
        index: index.to_owned(),
        index_span: Span::default(),
        carry: carry.to_owned(),
        carry_span: Span::default(),
        initial: initial.into().0,
        step: step.0,
    })))
}

/// The value of the step before, inside a [`scan`] that calls it `name`.
pub fn carry(name: &str) -> Expression {
    index(name)
}

/// `yes` where the condition holds, else `no`.
pub fn select(condition: Expression, yes: Expression, no: Expression) -> Expression {
    call(Function::Select, [condition, yes, no])
}

/// Field `field` of `width` bits of `word`.
pub fn bits(
    word: Expression,
    field: impl Into<Expression>,
    width: impl Into<Expression>,
) -> Expression {
    call(Function::Bits, [word, field.into(), width.into()])
}

macro_rules! functions {
    ($($name:ident $function:ident $what:literal)*) => {
        impl Expression {
            $(
                #[doc = $what]
                #[must_use]
                pub fn $name(self) -> Self {
                    call(Function::$function, [self])
                }
            )*
        }
    };
}

functions! {
    exp Exp "e to its power."
    exp2 Exp2 "2 to its power."
    log Log "Its natural logarithm."
    log2 Log2 "Its logarithm to base 2."
    sqrt Sqrt "Its square root."
    rsqrt Rsqrt "The reciprocal of its square root."
    tanh Tanh "Its hyperbolic tangent."
    sin Sin "Its sine."
    cos Cos "Its cosine."
    erf Erf "Its error function."
    abs Abs "Its magnitude."
    floor Floor "The largest whole number up to it."
}

macro_rules! comparisons {
    ($($name:ident $operator:ident $what:literal)*) => {
        impl Expression {
            $(
                #[doc = $what]
                #[must_use]
                pub fn $name(self, other: impl Into<Expression>) -> Self {
                    binary(Operator::$operator, self, other.into())
                }
            )*
        }
    };
}

comparisons! {
    less Less "Whether it is less than `other`."
    at_most LessOrEqual "Whether it is at most `other`."
    greater Greater "Whether it is greater than `other`."
    at_least GreaterOrEqual "Whether it is at least `other`."
    equals Equal "Whether it equals `other`."
    differs NotEqual "Whether it differs from `other`."
    and And "Whether both conditions hold."
    or Or "Whether one of the conditions holds."
}

impl Expression {
    /// The larger of it and `other`.
    #[must_use]
    pub fn larger(self, other: impl Into<Expression>) -> Self {
        call(Function::Max, [self, other.into()])
    }

    /// The smaller of it and `other`.
    #[must_use]
    pub fn smaller(self, other: impl Into<Expression>) -> Self {
        call(Function::Min, [self, other.into()])
    }

    /// It, rounded to `format`.
    #[must_use]
    pub fn rounded(self, format: Format) -> Self {
        call(Function::Round(format), [self])
    }

    /// It, rounded to `format` once, somewhere on the way.
    #[must_use]
    pub fn near(self, format: Format) -> Self {
        call(Function::Near(format), [self])
    }
}

impl From<i64> for Expression {
    fn from(value: i64) -> Self {
        let magnitude = value.saturating_abs();
        let literal = made(ExprKind::Number { value: magnitude as f64, whole: Some(magnitude) });
        if value < 0 { -literal } else { literal }
    }
}

impl From<f64> for Expression {
    fn from(value: f64) -> Self {
        number(value)
    }
}

macro_rules! operators {
    ($($operation:ident $method:ident $operator:ident)*) => {
        $(
            impl<T: Into<Expression>> $operation<T> for Expression {
                type Output = Expression;

                fn $method(self, other: T) -> Expression {
                    binary(Operator::$operator, self, other.into())
                }
            }
        )*
    };
}

operators! {
    Add add Add
    Sub sub Subtract
    Mul mul Multiply
    Div div Divide
    Rem rem Remainder
}

impl Neg for Expression {
    type Output = Expression;

    fn neg(self) -> Expression {
        made(ExprKind::Negate(Box::new(self.0)))
    }
}

impl Not for Expression {
    type Output = Expression;

    fn not(self) -> Expression {
        made(ExprKind::Not(Box::new(self.0)))
    }
}

/// A formula being built, statement by statement.
#[derive(Clone, Debug, Default)]
pub struct FormulaBuilder {
    lines: Vec<String>,
}

impl FormulaBuilder {
    /// No statements yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `name[indices] = value`.
    #[must_use]
    pub fn define<'n>(
        mut self,
        name: &str,
        indices: impl IntoIterator<Item = &'n str>,
        value: Expression,
    ) -> Self {
        let span = Span::default();
        let index = |name: &str| StatementIndex { name: name.to_owned(), extent: None, span };
        let indices = indices.into_iter().map(index).collect();
        let statement = Statement { name: name.to_owned(), indices, value: value.0, span };
        self.lines.push(statement.to_string());
        self
    }

    /// The formula.
    ///
    /// # Errors
    /// When a name is none, or the formula is deeper or longer than can be read.
    pub fn build(self) -> Result<Formula, FormulaError> {
        Formula::parse(&self.lines.join("\n"))
    }
}
