//! Errors in a manifest, each with its place, the line drawn under it and what to do next.

use std::fmt;
use std::ops::Range;

use crate::spec::SourcePlace;

/// A manifest's text with its name, for turning byte offsets into lines and columns.
#[derive(Debug)]
pub(super) struct Source<'t> {
    pub(super) file: &'t str,
    pub(super) text: &'t str,
}

impl Source<'_> {
    /// The line and column of a byte offset.
    pub(super) fn place(&self, offset: usize) -> SourcePlace {
        let before = &self.text[..self.boundary(offset)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
        SourcePlace { file: self.file.to_owned(), line: line as u32, column: column as u32 }
    }

    /// The line that holds a byte offset.
    fn line_at(&self, offset: usize) -> Box<str> {
        let offset = self.boundary(offset);
        let start = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        self.text[start..].lines().next().unwrap_or_default().into()
    }

    fn boundary(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }

    /// An error at the first byte of `span`.
    pub(super) fn error(&self, span: &Range<usize>, message: impl Into<String>) -> ManifestError {
        ManifestError {
            kernel: None,
            place: self.place(span.start),
            source_line: self.line_at(span.start),
            message: message.into(),
            hint: None,
        }
    }
}

/// One thing that is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestError {
    /// The kernel that cannot be run because of it, if it concerns one.
    pub kernel: Option<String>,
    /// Where it is.
    pub place: SourcePlace,
    /// The whole line there.
    pub source_line: Box<str>,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl ManifestError {
    pub(super) fn hint(mut self, hint: impl Into<String>) -> ManifestError {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn maybe_hint(mut self, hint: Option<String>) -> ManifestError {
        self.hint = hint.or(self.hint);
        self
    }

    /// An error in the entry of a fault, which is no kernel that was asked for.
    pub(super) fn of_fault(mut self, fault: &str) -> ManifestError {
        self.message = format!("fault `{fault}`: {}", self.message);
        self
    }

    pub(super) fn of_kernel(mut self, kernel: &str) -> ManifestError {
        self.kernel = Some(kernel.to_owned());
        self
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(kernel) = &self.kernel {
            write!(f, "kernel `{kernel}`: ")?;
        }
        write!(f, "{}", self.message)?;
        if !self.source_line.is_empty() {
            let number = self.place.line.to_string();
            let margin = " ".repeat(number.len());
            let column = self.place.column.saturating_sub(1) as usize;
            let under: String = self.source_line.chars().take(column).map(blank).collect();
            write!(f, "\n  {number} | {}\n  {margin} | {under}^", self.source_line)?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ManifestError {}

/// Keeps tabs, so that the caret stands under its column.
fn blank(c: char) -> char {
    if c == '\t' { '\t' } else { ' ' }
}

/// A hint naming the candidate nearest to `word`, else all of them.
pub(super) fn nearest_hint(word: &str, candidates: &[&str]) -> Option<String> {
    let distance = |candidate: &&&str| edit_distance(word, candidate);
    let nearest = candidates.iter().min_by_key(distance)?;
    if edit_distance(word, nearest) <= 1 + word.len() / 4 {
        return Some(format!("did you mean `{nearest}`?"));
    }
    Some(format!("use one of {}", quoted(candidates)))
}

/// `a`, `b`, `c` for a message.
pub(super) fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// Insertions, deletions and replacements that turn one word into the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_lists_all() {
        let keys = ["family", "formula", "module"];
        assert_eq!(nearest_hint("famly", &keys).as_deref(), Some("did you mean `family`?"));
        let all = nearest_hint("colour", &keys);
        assert_eq!(all.as_deref(), Some("use one of `family`, `formula`, `module`"));
        assert_eq!(nearest_hint("x", &[]), None);
    }

    #[test]
    fn offsets_become_lines_and_columns_of_characters() {
        let source = Source { file: "m.toml", text: "a = 1\nµ = \"é\" x\n" };
        assert_eq!(source.place(0).to_string(), "m.toml:1:1");
        let x = source.text.find('x').expect("there is an x");
        assert_eq!(source.place(x).to_string(), "m.toml:2:9");
        assert_eq!(source.place(10_000).line, 3);
    }
}
