//! What can go wrong with a formula: in its text, against its signature, and on given inputs.

use std::fmt;

use assay_num::Format;

/// A half-open range of bytes in a formula's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Span {
    /// The first byte.
    pub(crate) start: usize,
    /// One past the last byte.
    pub(crate) end: usize,
}

impl Span {
    /// The smallest span that holds both.
    pub(crate) fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A formula that cannot be used, with the place in its text.
///
/// `Display` draws the line with a caret under the place, then the hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormulaError {
    /// What is wrong, in one sentence without a final period.
    pub message: String,
    /// Line of the place, from 1.
    pub line: usize,
    /// Column of the place in characters, from 1.
    pub column: usize,
    /// The line's text.
    pub source_line: String,
    /// How many characters the place covers on this line, at least 1.
    pub width: usize,
    /// What to do about it.
    pub hint: Option<String>,
}

impl FormulaError {
    /// An error at `span` of `text`.
    pub(crate) fn new(text: &str, span: Span, message: impl Into<String>) -> Self {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end.max(span.start));
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let source_line = text[line_start..].lines().next().unwrap_or("").to_owned();
        let column = text[line_start..start].chars().count() + 1;
        let covered = text[start..end].lines().next().unwrap_or("").chars().count();
        Self {
            message: message.into(),
            line: before.matches('\n').count() + 1,
            column,
            source_line,
            width: covered.max(1),
            hint: None,
        }
    }

    /// The same error with advice.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The largest character boundary of `text` at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(f, "{} (line {}, column {})", self.message, self.line, self.column)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {}", self.source_line)?;
        let lead: String = self
            .source_line
            .chars()
            .take(self.column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, "{margin} | {lead}{}", "^".repeat(self.width))?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for FormulaError {}

/// An evaluation that cannot be done on the given dims and inputs.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A dimension that the signature names has no value.
    #[error("dimension `{name}` has no value; give it one in dims")]
    DimMissing {
        /// The dimension.
        name: String,
    },
    /// A dimension is negative.
    #[error("dimension `{name}` is {value}; dimensions are 0 or more")]
    DimNegative {
        /// The dimension.
        name: String,
        /// Its value.
        value: i64,
    },
    /// An input tensor is missing.
    #[error("input `{tensor}` is missing; the formula reads it")]
    InputMissing {
        /// The tensor.
        tensor: String,
    },
    /// An input tensor has another number of elements than its shape.
    #[error("input `{tensor}` has {got} elements, but its shape {shape:?} holds {expected}")]
    InputLength {
        /// The tensor.
        tensor: String,
        /// Its extents at these dims.
        shape: Vec<i64>,
        /// Elements in the shape.
        expected: i64,
        /// Elements given.
        got: usize,
    },
    /// An index left its axis.
    #[error(
        "`{tensor}` is read at index {index} of axis {axis}, whose extent is {extent}; \
         guard the read with select or `if`, or correct the index"
    )]
    IndexOutOfRange {
        /// The tensor or computed statement.
        tensor: String,
        /// The axis, from 0.
        axis: usize,
        /// The index.
        index: i64,
        /// The axis's extent.
        extent: i64,
    },
    /// A gather's index is not a whole number.
    #[error("`{tensor}` holds {value}, which is no index; gathers need whole numbers")]
    IndexNotWhole {
        /// The tensor that holds the index.
        tensor: String,
        /// What it holds.
        value: f64,
    },
    /// `/` or `%` by zero in an index expression.
    #[error("index expression `{expression}` divides by zero")]
    DivisionByZero {
        /// The expression.
        expression: String,
    },
    /// An integer expression left the range of 64 bits.
    #[error("integer expression `{expression}` overflows 64 bits")]
    IntegerOverflow {
        /// The expression.
        expression: String,
    },
    /// An extent is negative.
    #[error("extent `{expression}` is {value}; extents are 0 or more")]
    ExtentNegative {
        /// The extent's text.
        expression: String,
        /// Its value.
        value: i64,
    },
    /// The evaluation would hold or visit more than the stated limit.
    #[error("{what} would need {needed:e} elements, over the limit of {limit:e}; use smaller dims")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Elements needed.
        needed: f64,
        /// The limit.
        limit: f64,
    },
    /// A restriction or drop names something that does not exist.
    #[error("{message}")]
    Request {
        /// What was asked and what exists.
        message: String,
    },
    /// The domain cannot carry this format.
    #[error("{what} cannot be carried in {format:?}; use f32, f16, bf16 or f64")]
    Format {
        /// What was asked.
        what: String,
        /// The format.
        format: Format,
    },
}
