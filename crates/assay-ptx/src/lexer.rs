//! Splits PTX text into tokens (ISA 4).
//!
//! A word takes the dotted parts behind it along, so that `ld.global.L1::no_allocate.f32` and
//! `%tid.x` are one token each; a directive such as `.reg` is a token that starts with a dot.

use crate::error::ParseError;
use crate::module::Position;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A name with the dotted parts behind it: `%r1`, `%tid.x`, `ld.global.f32`, `_`.
    Word,
    /// A dot and one part: `.reg`, `.b32`, `.shared::cta`.
    Directive,
    /// An integer or floating-point literal.
    Number,
    /// A string with its quotes.
    Text,
    /// One punctuation character.
    Punctuation(u8),
    /// The end of the text.
    End,
}

/// A token: a kind and a piece of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) offset: usize,
    pub(crate) position: Position,
}

impl Token<'_> {
    /// Whether the token is this punctuation character.
    pub(crate) fn is(&self, punctuation: u8) -> bool {
        self.kind == Kind::Punctuation(punctuation)
    }

    /// Whether the token is this directive, given with its dot.
    pub(crate) fn is_directive(&self, name: &str) -> bool {
        self.kind == Kind::Directive && self.text == name
    }

    /// How an error message names the token.
    pub(crate) fn describe(&self) -> String {
        match self.kind {
            Kind::End => "the end of the file".to_string(),
            _ => format!("`{}`", self.text.chars().take(60).collect::<String>()),
        }
    }
}

/// A cursor over the source.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    source: &'a str,
    offset: usize,
    line: u32,
    line_start: usize,
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%')
}

fn is_word_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Lexer<'a> {
        Lexer { source, offset: 0, line: 1, line_start: 0 }
    }

    /// The text behind the last token.
    pub(crate) fn rest(&self) -> &'a str {
        self.source.get(self.offset..).unwrap_or("")
    }

    pub(crate) fn source(&self) -> &'a str {
        self.source
    }

    fn bytes(&self) -> &'a [u8] {
        self.source.as_bytes()
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.bytes().get(self.offset + ahead).copied().unwrap_or(0)
    }

    fn position(&self) -> Position {
        let column = self.offset - self.line_start + 1;
        Position { line: self.line, column: u32::try_from(column).unwrap_or(u32::MAX) }
    }

    fn error(&self, position: Position, message: impl Into<String>) -> ParseError {
        ParseError::at(self.source, position, message.into())
    }

    /// Reads the next token.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip_blanks()?;
        let start = self.offset;
        let position = self.position();
        let kind = match self.bytes().get(start).copied() {
            None => Kind::End,
            Some(byte) if is_word_start(byte) => self.word(),
            Some(b'.') => self.directive(),
            Some(byte) if byte.is_ascii_digit() => self.number(),
            Some(b'"') => self.string(position)?,
            Some(byte) if byte.is_ascii_punctuation() => {
                self.offset += 1;
                Kind::Punctuation(byte)
            }
            Some(_) => return Err(self.stray_character(position)),
        };
        let text = self.source.get(start..self.offset).unwrap_or("");
        Ok(Token { kind, text, offset: start, position })
    }

    fn stray_character(&self, position: Position) -> ParseError {
        let rest = self.source.get(self.offset..).unwrap_or("");
        let character = rest.chars().next().unwrap_or('\u{fffd}');
        self.error(position, format!("the character {character:?} cannot stand in PTX"))
            .hint("PTX is ASCII text; is this a cubin or another binary file?")
    }

    fn newline(&mut self) {
        self.line = self.line.saturating_add(1);
        self.line_start = self.offset + 1;
    }

    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            match self.bytes().get(self.offset).copied() {
                Some(b'\n') => {
                    self.newline();
                    self.offset += 1;
                }
                Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c) => self.offset += 1,
                // Drivers take NUL-terminated text, and files with the terminator exist.
                Some(0) if self.bytes()[self.offset..].iter().all(|&byte| byte == 0) => {
                    self.offset = self.source.len();
                }
                Some(b'/') if self.byte(1) == b'/' => self.skip_line(),
                Some(b'/') if self.byte(1) == b'*' => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes()[self.offset..];
        self.offset += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    fn skip_comment(&mut self) -> Result<(), ParseError> {
        let start = self.position();
        self.offset += 2;
        while self.offset < self.source.len() {
            match (self.byte(0), self.byte(1)) {
                (b'*', b'/') => {
                    self.offset += 2;
                    return Ok(());
                }
                (b'\n', _) => self.newline(),
                _ => {}
            }
            self.offset += 1;
        }
        Err(self.error(start, "this comment is never closed").hint("add `*/`"))
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) {
        while self.bytes().get(self.offset).is_some_and(|&byte| keep(byte)) {
            self.offset += 1;
        }
    }

    fn word(&mut self) -> Kind {
        self.offset += 1;
        self.take_while(is_word_part);
        while self.byte(0) == b'.' && is_word_part(self.byte(1)) {
            self.dotted_part();
        }
        Kind::Word
    }

    fn directive(&mut self) -> Kind {
        if is_word_part(self.byte(1)) {
            self.dotted_part();
            return Kind::Directive;
        }
        self.offset += 1;
        Kind::Punctuation(b'.')
    }

    /// A dot, a name, and `::name` any number of times.
    fn dotted_part(&mut self) {
        self.offset += 1;
        self.take_while(is_word_part);
        while self.byte(0) == b':' && self.byte(1) == b':' && is_word_part(self.byte(2)) {
            self.offset += 2;
            self.take_while(is_word_part);
        }
    }

    fn number(&mut self) -> Kind {
        let prefixed = self.byte(0) == b'0' && self.byte(1).is_ascii_alphabetic();
        self.take_while(is_word_part);
        if prefixed {
            return Kind::Number;
        }
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            self.offset += 1;
            self.take_while(is_word_part);
        } else if self.byte(0) == b'.' && !is_word_part(self.byte(1)) {
            self.offset += 1;
        }
        let last = self.bytes().get(self.offset - 1).copied();
        let signed = matches!(self.byte(0), b'+' | b'-') && self.byte(1).is_ascii_digit();
        if matches!(last, Some(b'e' | b'E')) && signed {
            self.offset += 1;
            self.take_while(is_word_part);
        }
        Kind::Number
    }

    fn string(&mut self, position: Position) -> Result<Kind, ParseError> {
        self.offset += 1;
        loop {
            match self.bytes().get(self.offset).copied() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(Kind::Text);
                }
                Some(b'\\') if self.byte(1) != b'\n' => self.offset += 2,
                None | Some(b'\n') => {
                    return Err(self
                        .error(position, "this string is never closed")
                        .hint("add `\"`"));
                }
                Some(_) => self.offset += 1,
            }
        }
    }

    /// Skips to behind the `}` that closes the `{` just read, and gives the text between.
    pub(crate) fn skip_block(&mut self, opening: Position) -> Result<&'a str, ParseError> {
        let start = self.offset;
        let mut depth = 1_u32;
        loop {
            let token = self.next()?;
            match token.kind {
                Kind::Punctuation(b'{') => depth += 1,
                Kind::Punctuation(b'}') => depth -= 1,
                Kind::End => return Err(self.error(opening, "this `{` is never closed")),
                _ => {}
            }
            if depth == 0 {
                return Ok(self.source.get(start..token.offset).unwrap_or("").trim());
            }
        }
    }
}
