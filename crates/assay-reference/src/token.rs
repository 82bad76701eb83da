//! Cuts a formula's text into tokens with places.

use crate::error::{FormulaError, Span};

/// One token.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    /// A name: letters, digits and underscores, not starting with a digit.
    Name(String),
    /// A number; whole when written without point or exponent.
    Number {
        /// Its value.
        value: f64,
        /// Its value where it is written as a whole number that fits.
        whole: Option<i64>,
    },
    /// An operator or a bracket.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

impl Token {
    /// How an error message names the token.
    pub(crate) fn describe(&self) -> String {
        match self {
            Token::Name(name) => format!("`{name}`"),
            Token::Number { value, .. } => format!("`{value}`"),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::End => "the end of the formula".to_owned(),
        }
    }
}

/// Longest first, so that `<=` is not read as `<` and `=`.
const SYMBOLS: [&str; 25] = [
    "&&", "||", "<=", ">=", "==", "!=", "..", "+", "-", "*", "/", "%", "<", ">", "=", "!", "(",
    ")", "[", "]", ",", ":", ";", "{", "}",
];

/// The tokens of `text`, ended by [`Token::End`]. `#` starts a comment that ends with the line.
pub(crate) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, FormulaError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
        } else if next == '#' {
            at += text[at..].find('\n').unwrap_or(text.len() - at);
        } else {
            let (token, length) = token_at(text, at)?;
            found.push((token, Span { start: at, end: at + length }));
            at += length;
        }
    }
    found.push((Token::End, Span { start: text.len(), end: text.len() }));
    Ok(found)
}

/// The token that starts at byte `at`, and its length in bytes.
fn token_at(text: &str, at: usize) -> Result<(Token, usize), FormulaError> {
    let rest = &text[at..];
    let first = rest.as_bytes()[0];
    if first.is_ascii_alphabetic() || first == b'_' {
        let length = leading(rest, |b| b.is_ascii_alphanumeric() || b == b'_');
        return Ok((Token::Name(rest[..length].to_owned()), length));
    }
    if first.is_ascii_digit() {
        return number(text, at);
    }
    for symbol in SYMBOLS {
        if rest.starts_with(symbol) {
            return Ok((Token::Symbol(symbol), symbol.len()));
        }
    }
    let character = rest.chars().next().unwrap_or(' ');
    let span = Span { start: at, end: at + character.len_utf8() };
    let message = format!("`{}` means nothing in a formula", character.escape_default());
    Err(FormulaError::new(text, span, message)
        .with_hint("a formula is made of `name[i, j] = expression` statements"))
}

/// How many leading bytes of `text` satisfy `belongs`.
fn leading(text: &str, belongs: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|&b| belongs(b)).count()
}

/// A decimal number: digits, then a fraction unless `..` follows, then an exponent.
fn number(text: &str, at: usize) -> Result<(Token, usize), FormulaError> {
    let rest = &text[at..];
    let digit = |b: u8| b.is_ascii_digit();
    let whole_digits = leading(rest, digit);
    let mut length = whole_digits;
    if rest[length..].starts_with('.') && !rest[length..].starts_with("..") {
        length += 1 + leading(&rest[length + 1..], digit);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let digits = leading(&rest[length + 1 + sign..], digit);
        if digits > 0 {
            length += 1 + sign + digits;
        }
    }
    let span = Span { start: at, end: at + length };
    if rest[length..].bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
        let message = format!("`{}` is followed by a letter", &rest[..length]);
        return Err(FormulaError::new(text, span, message).with_hint("write `*` between factors"));
    }
    let value: f64 = rest[..length].parse().unwrap_or(f64::INFINITY);
    let whole = if length == whole_digits { rest[..length].parse().ok() } else { None };
    if !value.is_finite() || (length == whole_digits && whole.is_none()) {
        let message = "this number is too large".to_owned();
        return Err(FormulaError::new(text, span, message).with_hint("write `inf` for infinity"));
    }
    Ok((Token::Number { value, whole }, length))
}

#[cfg(test)]
mod tests {
    use super::{Token, tokens};

    fn spelled(text: &str) -> Vec<String> {
        tokens(text).unwrap().iter().map(|(token, _)| token.describe()).collect()
    }

    #[test]
    fn a_range_after_a_whole_number_is_not_a_fraction() {
        let found = spelled("0..cols 1.5 2e-3 7.");
        let expected =
            ["`0`", "`..`", "`cols`", "`1.5`", "`0.002`", "`7`", "the end of the formula"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_comment_ends_with_its_line() {
        assert_eq!(spelled("a # b\nc"), ["`a`", "`c`", "the end of the formula"]);
    }

    #[test]
    fn an_unknown_character_is_an_error_at_its_column() {
        let error = tokens("y = x @ 2").unwrap_err();
        assert_eq!((error.line, error.column), (1, 7));
    }

    #[test]
    fn a_whole_number_past_64_bits_is_refused() {
        assert!(tokens("99999999999999999999").is_err());
        let last = &tokens("9223372036854775807").unwrap()[0].0;
        assert!(matches!(last, Token::Number { whole: Some(i64::MAX), .. }));
    }
}
