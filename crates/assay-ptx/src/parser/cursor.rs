//! A cursor over tokens with one token of look-ahead, and the error helpers of the parser.

use crate::decode::nearest;
use crate::error::ParseError;
use crate::lexer::{Kind, Lexer, Token};
use crate::literal::{self, Literal};
use crate::module::Position;
use crate::types::Type;

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// The tokens of a source.
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(source: &'a str) -> Result<Cursor<'a>> {
        let mut lexer = Lexer::new(source);
        let token = lexer.next()?;
        Ok(Cursor { lexer, token })
    }

    /// The current token.
    pub(super) fn token(&self) -> Token<'a> {
        self.token
    }

    /// Takes the current token.
    pub(super) fn advance(&mut self) -> Result<Token<'a>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Whether a word is followed by `:`, which makes it a label.
    pub(super) fn at_label(&self) -> bool {
        let rest = self.lexer.rest().trim_start_matches([' ', '\t']);
        self.token.kind == Kind::Word && rest.starts_with(':')
    }

    /// Skips a `{ ... }` block whose `{` is the current token; gives the text inside.
    pub(super) fn skip_block(&mut self) -> Result<&'a str> {
        self.require(b'{')?;
        let text = self.lexer.skip_block(self.token.position)?;
        self.token = self.lexer.next()?;
        Ok(text)
    }

    pub(super) fn error_at(&self, position: Position, message: impl Into<String>) -> ParseError {
        ParseError::at(self.lexer.source(), position, message.into())
    }

    /// An error about the current token.
    pub(super) fn expected(&self, what: &str) -> ParseError {
        let message = format!("expected {what}, found {}", self.token.describe());
        self.error_at(self.token.position, message)
    }

    fn require(&self, punctuation: u8) -> Result<()> {
        if self.token.is(punctuation) {
            return Ok(());
        }
        Err(self.expected(&format!("`{}`", char::from(punctuation))))
    }

    /// Takes a punctuation character that must come.
    pub(super) fn expect(&mut self, punctuation: u8) -> Result<()> {
        self.require(punctuation)?;
        self.advance().map(|_| ())
    }

    /// Takes a punctuation character if it comes.
    pub(super) fn accept(&mut self, punctuation: u8) -> Result<bool> {
        let found = self.token.is(punctuation);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes a directive if it comes.
    pub(super) fn accept_directive(&mut self, name: &str) -> Result<bool> {
        let found = self.token.is_directive(name);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes a name without dots.
    pub(super) fn name(&mut self) -> Result<Token<'a>> {
        if self.token.kind != Kind::Word || self.token.text.contains('.') {
            return Err(self.expected("a name"));
        }
        self.advance()
    }

    /// Takes a string; gives what is between the quotes, as written.
    pub(super) fn string(&mut self) -> Result<String> {
        if self.token.kind != Kind::Text {
            return Err(self.expected("a string"));
        }
        let text = self.advance()?.text;
        Ok(text.get(1..text.len() - 1).unwrap_or("").to_string())
    }

    /// Takes a type directive such as `.b32`.
    pub(super) fn ty(&mut self) -> Result<Type> {
        let name = self.token.text.strip_prefix('.').unwrap_or("");
        let ty = Type::from_name(name).filter(|_| self.token.kind == Kind::Directive);
        let Some(ty) = ty else {
            let error = self.expected("a type");
            let close = nearest(name, Type::ALL.iter().map(|ty| ty.name()));
            return Err(match close {
                Some(close) => error.hint(format!("did you mean `.{close}`?")),
                None => error,
            });
        };
        self.advance()?;
        Ok(ty)
    }

    /// Takes an unsigned integer literal.
    pub(super) fn integer(&mut self) -> Result<u64> {
        let position = self.token.position;
        match self.literal()? {
            Literal::Integer(value) => Ok(value),
            _ => Err(self.error_at(position, "an integer is needed here, not a float")),
        }
    }

    /// Takes an unsigned integer literal of 32 bits.
    pub(super) fn integer32(&mut self) -> Result<u32> {
        let position = self.token.position;
        let value = self.integer()?;
        u32::try_from(value)
            .map_err(|_| self.error_at(position, format!("{value} does not fit in 32 bits")))
    }

    /// Takes a literal without its sign.
    pub(super) fn literal(&mut self) -> Result<Literal> {
        if self.token.kind != Kind::Number {
            return Err(self.expected("a number"));
        }
        let token = self.advance()?;
        literal::read(token.text).map_err(|message| self.error_at(token.position, message))
    }
}
