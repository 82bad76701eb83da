//! A formula: its text and its statements.

use crate::ast::{ExprKind, Statement};
use crate::error::FormulaError;
use crate::{families, parse};

/// What a kernel computes, in real numbers.
///
/// See the crate's documentation for the language.
#[derive(Clone, Debug)]
pub struct Formula {
    text: String,
    statements: Vec<Statement>,
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// When the text is no formula; the error points at the place.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        Ok(Self { text: text.to_owned(), statements: parse::statements(text)? })
    }

    /// The formula of a named family, such as `rows.softmax`; none if there is no such family.
    #[must_use]
    pub fn family(name: &str) -> Option<Self> {
        families::text(name).and_then(|text| Self::parse(text).ok())
    }

    /// The names of all families.
    #[must_use]
    pub fn family_names() -> Vec<&'static str> {
        families::FAMILIES.iter().map(|(name, _)| *name).collect()
    }

    /// The text it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The formula written in one standard way, a statement a line.
    #[must_use]
    pub fn canonical(&self) -> String {
        let lines: Vec<String> = self.statements.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    /// The statement `name` and those it depends on; none if there is no such statement.
    pub(crate) fn part(&self, name: &str) -> Option<Self> {
        let mut wanted = vec![false; self.statements.len()];
        let last = self.statements.iter().position(|statement| statement.name == name)?;
        wanted[last] = true;
        for position in (0..=last).rev() {
            if wanted[position] {
                self.statements[position].value.walk(&mut |part| {
                    let (ExprKind::Read { name, .. } | ExprKind::Name(name)) = &part.kind else {
                        return;
                    };
                    let read = self.statements[..position].iter().position(|s| s.name == *name);
                    if let Some(read) = read {
                        wanted[read] = true;
                    }
                });
            }
        }
        let kept = self.statements.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        let statements = kept.map(|(statement, _)| statement.clone()).collect();
        Some(Self { text: self.text.clone(), statements })
    }

    pub(crate) fn statements(&self) -> &[Statement] {
        &self.statements
    }
}
