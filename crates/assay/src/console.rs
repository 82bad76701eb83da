//! The only place that writes to stdout and stderr, and that knows about colour.

use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// When words are coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where output goes: data to stdout, everything else to stderr.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    color_out: bool,
    color_error: bool,
}

impl Console {
    pub(crate) fn new(color: Color) -> Console {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color_on = |terminal: bool| match color {
            Color::Auto => terminal && !plain,
            Color::Always => true,
            Color::Never => false,
        };
        Console {
            color_out: color_on(io::stdout().is_terminal()),
            color_error: color_on(io::stderr().is_terminal()),
        }
    }

    /// Whether progress is shown: on a terminal that a person looks at.
    pub(crate) fn shows_progress() -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        io::stderr().is_terminal() && !set("CI") && !set("NO_COLOR")
    }

    /// Writes data. A reader that has gone away is no error: nobody misses the rest.
    pub(crate) fn out(self, text: &str) {
        if self.color_out { Console::out_plain(&painted(text)) } else { Console::out_plain(text) }
    }

    /// Writes a line about what goes on, never painted, to stderr.
    pub(crate) fn aside(line: &str) {
        let _ = io::stderr().lock().write_all(line.as_bytes());
    }

    /// Writes data for a program, never painted.
    pub(crate) fn out_plain(text: &str) {
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    /// Writes a message, painted where it begins with `error:`, `warning:` or `hint:`.
    pub(crate) fn message(self, message: &impl Display) {
        let text = message.to_string();
        let text = if self.color_error { painted_labels(&text) } else { text };
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// The colour of a word that stands for a verdict.
fn word_style(word: &str) -> Option<Style> {
    let color = match word {
        "PASS" | "red" | "SAME" | "FAST" => AnsiColor::Green,
        "FAIL" | "GREEN" | "ERROR" | "SLOW" => AnsiColor::Red,
        "KNOWN" | "UNPROVEN" | "UNSUPPORTED" | "AMBIGUOUS" | "UNCHECKED" | "UNSTABLE" => {
            AnsiColor::Yellow
        }
        "SUMMARY" => return Some(Style::new().bold()),
        _ => return None,
    };
    Some(color.on_default().bold())
}

/// The text with the words of verdicts coloured; its columns stay where they are.
fn painted(text: &str) -> String {
    let mut result = String::with_capacity(text.len() * 2);
    for piece in text.split_inclusive(|c: char| !c.is_ascii_alphabetic()) {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        match word_style(word) {
            Some(style) => {
                let rest = &piece[word.len()..];
                let _ = write!(result, "{style}{word}{style:#}{rest}");
            }
            None => result.push_str(piece),
        }
    }
    result
}

fn painted_labels(text: &str) -> String {
    let label_style = |label: &str| match label {
        "error" => AnsiColor::Red.on_default().bold(),
        "warning" => AnsiColor::Yellow.on_default().bold(),
        _ => AnsiColor::Cyan.on_default().bold(),
    };
    let paint = |line: &str| match line.split_once(':') {
        Some((label @ ("error" | "warning" | "hint"), rest)) => {
            let style = label_style(label);
            format!("{style}{label}:{style:#}{rest}")
        }
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(paint).collect()
}

#[cfg(test)]
mod tests {
    use super::{painted, painted_labels};

    #[test]
    fn only_whole_words_of_verdicts_are_painted() {
        let plain = "row_sum PASS 0.5, PASSED, FAIL.\n";
        let text = painted(plain);
        assert_eq!(text.matches("\u{1b}[0m").count(), 2, "{text:?}");
        let bare: String = strip(&text);
        assert_eq!(bare, plain);
    }

    #[test]
    fn labels_are_painted_at_the_start_of_a_line() {
        let text = painted_labels("error: a hint: b\n\nhint: c\n");
        assert_eq!(text.matches("\u{1b}[0m").count(), 2, "{text:?}");
        assert_eq!(strip(&text), "error: a hint: b\n\nhint: c\n");
    }

    /// The text without its escape sequences.
    fn strip(text: &str) -> String {
        let mut pieces = text.split('\u{1b}');
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |bare, piece| bare + piece.split_once('m').map_or("", |(_, rest)| rest))
    }
}
