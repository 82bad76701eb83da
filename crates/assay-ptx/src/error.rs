//! The one error of this crate: what is wrong in the text, where, and what to do.

use std::fmt::Write;

use crate::module::Position;

/// Why a PTX text was rejected.
///
/// Displays as `line:column: message`, the source line, a caret and the hint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.render())]
pub struct ParseError {
    /// What is wrong, in one sentence without a final period.
    pub message: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The text of the line.
    pub source_line: String,
    /// What to do, such as the nearest known name.
    pub hint: Option<String>,
}

/// The longest part of a source line that an error quotes, in characters.
const QUOTE_LIMIT: usize = 160;

impl ParseError {
    /// Makes an error about a place in `source`.
    pub(crate) fn at(source: &str, position: Position, message: String) -> ParseError {
        let index = (position.line as usize).saturating_sub(1);
        let line = source.lines().nth(index).unwrap_or("");
        // Positions count bytes; people count characters.
        let before = line.get(..(position.column as usize).saturating_sub(1));
        let column = before.map_or(position.column, |text| text.chars().count() as u32 + 1);
        ParseError {
            message,
            line: position.line,
            column,
            source_line: line.chars().take(QUOTE_LIMIT).collect(),
            hint: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> ParseError {
        self.hint = Some(hint.into());
        self
    }

    fn render(&self) -> String {
        let mut text = format!("{}:{}: {}", self.line, self.column, self.message);
        if !self.source_line.trim().is_empty() {
            let shown = self.source_line.replace('\t', " ");
            let _ = write!(text, "\n    {shown}");
            let column = (self.column as usize).saturating_sub(1);
            if column < QUOTE_LIMIT {
                let _ = write!(text, "\n    {}^", " ".repeat(column));
            }
        }
        if let Some(hint) = &self.hint {
            let _ = write!(text, "\n  hint: {hint}");
        }
        text
    }
}
