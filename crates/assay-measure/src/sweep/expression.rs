//! Constraints and sizes as text: integers, names of axes, `+ - * / %`, comparisons, `&& ||`.

use assay_record::Configuration;
use thiserror::Error;

/// An expression over the axes' values. Comparisons give 1 or 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expression {
    text: String,
    root: Node,
}

/// What is wrong with an expression, or with its value at a configuration.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{text}`, at column {column}: {reason}")]
pub struct ExpressionError {
    /// The expression.
    pub text: String,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong there.
    pub reason: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Node {
    Value(i64),
    Name(String, usize),
    Pair(&'static str, usize, Box<(Node, Node)>),
}

/// The operators from the loosest to the tightest.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["<=", ">=", "==", "!=", "<", ">"], &["+", "-"], &["*", "/", "%"]];
/// Parentheses in each other.
const DEEPEST: usize = 64;
/// The longest text, in bytes: a chain of operators is as deep as it is long.
const LONGEST: usize = 4096;

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`ExpressionError`] with the column.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        if text.len() > LONGEST {
            return Err(parser.wrong("this is longer than 4096 bytes"));
        }
        let root = parser.level(0)?;
        parser.blanks();
        if parser.at < text.len() {
            return Err(parser.wrong("nothing more was expected here"));
        }
        Ok(Expression { text: text.to_owned(), root })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value at a configuration.
    ///
    /// # Errors
    /// [`ExpressionError`] for a name that is no axis, a division by zero, a value past 64 bits.
    pub fn value(&self, configuration: &Configuration) -> Result<i64, ExpressionError> {
        self.of(&self.root, configuration)
    }

    fn of(&self, node: &Node, configuration: &Configuration) -> Result<i64, ExpressionError> {
        let wrong = |at: usize, reason: String| {
            let text = self.text.clone();
            ExpressionError { text, column: at + 1, reason }
        };
        match node {
            Node::Value(value) => Ok(*value),
            Node::Name(name, at) => configuration
                .get(name)
                .copied()
                .ok_or_else(|| wrong(*at, format!("there is no axis `{name}`"))),
            Node::Pair(operator, at, pair) => {
                let a = self.of(&pair.0, configuration)?;
                let b = self.of(&pair.1, configuration)?;
                let value = applied(operator, a, b);
                value.ok_or_else(|| wrong(*at, format!("{a} {operator} {b} has no value")))
            }
        }
    }
}

fn applied(operator: &str, a: i64, b: i64) -> Option<i64> {
    Some(match operator {
        "+" => a.checked_add(b)?,
        "-" => a.checked_sub(b)?,
        "*" => a.checked_mul(b)?,
        "/" => a.checked_div_euclid(b)?,
        "%" => a.checked_rem_euclid(b)?,
        "<" => i64::from(a < b),
        "<=" => i64::from(a <= b),
        ">" => i64::from(a > b),
        ">=" => i64::from(a >= b),
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "&&" => i64::from(a != 0 && b != 0),
        _ => i64::from(a != 0 || b != 0),
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn wrong(&self, reason: &str) -> ExpressionError {
        let text = self.text.to_owned();
        ExpressionError { text, column: self.at + 1, reason: reason.to_owned() }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn level(&mut self, level: usize) -> Result<Node, ExpressionError> {
        let Some(operators) = LEVELS.get(level) else { return self.atom() };
        let mut left = self.level(level + 1)?;
        loop {
            self.blanks();
            let found = operators.iter().find(|operator| self.rest().starts_with(**operator));
            let Some(&operator) = found else { return Ok(left) };
            let at = self.at;
            self.at += operator.len();
            let right = self.level(level + 1)?;
            left = Node::Pair(operator, at, Box::new((left, right)));
        }
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        self.blanks();
        let start = self.at;
        if self.rest().starts_with('(') {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.wrong("too many parentheses in each other"));
            }
            self.at += 1;
            let inner = self.level(0)?;
            self.blanks();
            if !self.rest().starts_with(')') {
                return Err(self.wrong("a `)` is missing"));
            }
            self.at += 1;
            self.depth -= 1;
            return Ok(inner);
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word: String = self.rest().chars().take_while(|c| is_word(*c)).collect();
        if word.is_empty() {
            return Err(self.wrong("a number or the name of an axis was expected here"));
        }
        self.at += word.len();
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Node::Name(word, start));
        }
        word.parse().map(Node::Value).map_err(|_| {
            self.at = start;
            self.wrong("this is no integer of 64 bits")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Result<i64, ExpressionError> {
        let configuration = [("block".to_owned(), 128), ("items".to_owned(), 4)].into();
        Expression::parse(text)?.value(&configuration)
    }

    #[test]
    fn expressions_have_the_usual_precedence() {
        assert_eq!(at("1 + 2 * items - 3"), Ok(6));
        assert_eq!(at("(1 + 2) * items % 5"), Ok(2));
        assert_eq!(at("block * items <= 512 && block % 32 == 0"), Ok(1));
        assert_eq!(at("block > 128 || items < 4"), Ok(0));
        assert_eq!(at("100 - 10 - 1"), Ok(89));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_column() {
        let column = |text: &str| at(text).map_err(|error| error.column);
        assert_eq!(column("block <"), Err(8));
        assert_eq!(column("(block"), Err(7));
        assert_eq!(column("block block"), Err(7));
        assert_eq!(column("1 + nothing"), Err(5));
        assert_eq!(column("items / (block - 128)"), Err(7));
        assert_eq!(column("9223372036854775807 + 1"), Err(21));
        assert_eq!(column("99999999999999999999"), Err(1));
        assert_eq!(column(""), Err(1));
        for long in ["(", "1+"] {
            assert!(column(&(long.repeat(2000) + "1")).is_err() || long == "1+");
            assert!(column(&(long.repeat(100_000) + "1")).is_err());
        }
        assert!(column("é").is_err());
    }
}
