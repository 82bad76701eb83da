//! Integer expressions over dims: extents, launch sizes and declared depths.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::ast::{Expr, ExprKind, Function, Operator};
use crate::error::{EvaluationError, FormulaError};
use crate::parse;

/// The value of each dimension, by name.
pub type Dims = BTreeMap<String, i64>;

/// An integer expression over dims, such as `cols`, `cols/32` or `3*k`.
///
/// Operators are `+ - * / %` and the functions `min` and `max`. `/` and `%` round towards minus
/// infinity. Arithmetic is checked: overflow and division by zero are errors.
#[derive(Clone, Debug)]
pub struct Extent {
    text: String,
    tree: Expr,
}

impl Extent {
    /// Reads an expression.
    ///
    /// # Errors
    /// When the text is no expression, or uses more than integers and names.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        let tree = parse::expression(text)?;
        require_integer(text, &tree)?;
        Ok(Self::from_tree(tree))
    }

    /// The dimension `name` itself. A text that is no name gives an extent that fails to evaluate.
    #[must_use]
    pub fn dim(name: &str) -> Self {
        let kind = ExprKind::Name(name.to_owned());
        Self::from_tree(Expr { kind, span: crate::error::Span::default() })
    }

    /// The number `value`.
    #[must_use]
    pub fn constant(value: i64) -> Self {
        let kind = ExprKind::Number { value: value as f64, whole: Some(value) };
        Self::from_tree(Expr { kind, span: crate::error::Span::default() })
    }

    pub(crate) fn from_tree(tree: Expr) -> Self {
        Self { text: tree.to_string(), tree }
    }

    pub(crate) fn tree(&self) -> &Expr {
        &self.tree
    }

    /// The expression as text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The dimension that this extent is, where it is nothing more than one.
    #[must_use]
    pub fn as_dim(&self) -> Option<&str> {
        match &self.tree.kind {
            ExprKind::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The dimensions it names, each once.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut found = Vec::new();
        collect_names(&self.tree, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Its value. It may be negative; shapes ask for [`Extent::size`].
    ///
    /// # Errors
    /// When a dimension has no value, on division by zero, and on overflow.
    pub fn eval(&self, dims: &Dims) -> Result<i64, EvaluationError> {
        eval(&self.tree, dims)
    }

    /// Its value as the size of something.
    ///
    /// # Errors
    /// As [`Extent::eval`], and when the value is negative.
    pub fn size(&self, dims: &Dims) -> Result<i64, EvaluationError> {
        match self.eval(dims)? {
            value if value < 0 => {
                Err(EvaluationError::ExtentNegative { expression: self.text.clone(), value })
            }
            value => Ok(value),
        }
    }
}

impl PartialEq for Extent {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Extent {}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Extent {
    type Err = FormulaError;

    fn from_str(text: &str) -> Result<Self, FormulaError> {
        Self::parse(text)
    }
}

impl From<i64> for Extent {
    fn from(value: i64) -> Self {
        Self::constant(value)
    }
}

/// Errs where `expr` is more than integers, names and integer operators.
fn require_integer(text: &str, expr: &Expr) -> Result<(), FormulaError> {
    let refuse = |what: &str| {
        let error = FormulaError::new(text, expr.span, format!("{what} cannot be an extent"));
        Err(error.with_hint("extents are made of dims, whole numbers, + - * / %, min and max"))
    };
    match &expr.kind {
        ExprKind::Number { whole: Some(_), .. } | ExprKind::Name(_) => Ok(()),
        ExprKind::Negate(operand) => require_integer(text, operand),
        ExprKind::Binary { operator, left, right } if operator.spelling().1 >= 4 => {
            require_integer(text, left)?;
            require_integer(text, right)
        }
        ExprKind::Call { function: Function::Max | Function::Min, arguments } => {
            arguments.iter().try_for_each(|argument| require_integer(text, argument))
        }
        ExprKind::Number { .. } => refuse("a fraction"),
        _ => refuse("this expression"),
    }
}

fn collect_names<'e>(expr: &'e Expr, found: &mut Vec<&'e str>) {
    match &expr.kind {
        ExprKind::Name(name) => found.push(name),
        ExprKind::Negate(operand) => collect_names(operand, found),
        ExprKind::Binary { left, right, .. } => {
            collect_names(left, found);
            collect_names(right, found);
        }
        ExprKind::Call { arguments, .. } => {
            for argument in arguments {
                collect_names(argument, found);
            }
        }
        _ => {}
    }
}

fn eval(expr: &Expr, dims: &Dims) -> Result<i64, EvaluationError> {
    let overflow = || EvaluationError::IntegerOverflow { expression: expr.to_string() };
    match &expr.kind {
        ExprKind::Number { whole: Some(whole), .. } => Ok(*whole),
        ExprKind::Name(name) => {
            let missing = || EvaluationError::DimMissing { name: name.clone() };
            dims.get(name).copied().ok_or_else(missing)
        }
        ExprKind::Negate(operand) => eval(operand, dims)?.checked_neg().ok_or_else(overflow),
        ExprKind::Binary { operator, left, right } => {
            let (a, b) = (eval(left, dims)?, eval(right, dims)?);
            integer_operation(*operator, a, b, || expr.to_string())
        }
        ExprKind::Call { function, arguments } => {
            let values: Result<Vec<i64>, _> = arguments.iter().map(|a| eval(a, dims)).collect();
            let values = values?.into_iter();
            let found = if *function == Function::Min { values.min() } else { values.max() };
            found.ok_or_else(overflow)
        }
        _ => Err(overflow()),
    }
}

/// `a operator b`, with `/` and `%` towards minus infinity; `expression` names it in an error.
pub(crate) fn integer_operation(
    operator: Operator,
    a: i64,
    b: i64,
    expression: impl Fn() -> String,
) -> Result<i64, EvaluationError> {
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    if divides && b == 0 {
        return Err(EvaluationError::DivisionByZero { expression: expression() });
    }
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => floor_divide(a, b),
        Operator::Remainder => floor_divide(a, b).map(|q| a.wrapping_sub(q.wrapping_mul(b))),
        _ => None,
    };
    result.ok_or_else(|| EvaluationError::IntegerOverflow { expression: expression() })
}

/// The quotient rounded towards minus infinity; none on overflow.
fn floor_divide(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let inexact = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    Some(quotient - i64::from(inexact))
}

#[cfg(test)]
mod tests {
    use super::{Dims, Extent};

    fn eval(text: &str) -> String {
        let dims: Dims = [("cols".to_owned(), 100), ("k".to_owned(), 3)].into();
        match Extent::parse(text) {
            Err(error) => error.message,
            Ok(extent) => extent.eval(&dims).map_or_else(|e| e.to_string(), |v| v.to_string()),
        }
    }

    #[test]
    fn extents_evaluate_integer_expressions_over_dims() {
        assert_eq!(eval("cols"), "100");
        assert_eq!(eval("(cols + 31) / 32 * 2 - -k"), "11");
        assert_eq!(eval("max(cols % 7, min(k, 9), 1)"), "3");
    }

    #[test]
    fn division_rounds_towards_minus_infinity() {
        assert_eq!(eval("-7 / 2"), "-4");
        assert_eq!(eval("-7 % 2"), "1");
        assert_eq!(eval("7 / -2"), "-4");
        assert_eq!(eval("7 % -2"), "-1");
    }

    #[test]
    fn bad_extents_are_errors_and_never_panic() {
        assert_eq!(eval("cols / 0"), "index expression `cols / 0` divides by zero");
        assert!(eval("9223372036854775807 + 1").contains("overflows 64 bits"));
        assert!(eval("(-9223372036854775807 - 1) / -1").contains("overflows 64 bits"));
        assert!(eval("(-9223372036854775807 - 1) % -1").contains("overflows 64 bits"));
        assert!(eval("rows").contains("`rows` has no value"));
        assert_eq!(eval("1.5"), "a fraction cannot be an extent");
        assert_eq!(eval("x[1]"), "this expression cannot be an extent");
        assert!(eval("").contains("expected an expression"));
    }

    #[test]
    fn a_negative_size_is_an_error() {
        let extent = Extent::parse("2 - 3").unwrap();
        assert!(extent.size(&Dims::new()).unwrap_err().to_string().contains("is -1"));
    }
}
