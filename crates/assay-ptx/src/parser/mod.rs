//! Recursive-descent parser: module-level directives (ISA 11) here, the rest in the submodules.
//!
//! The language nests only `{ }` scopes, constant expressions and initial values, each with a
//! limit, so no input can exhaust the stack.

mod cursor;
mod expression;
mod function;
mod names;
mod operand;
mod statement;
mod variable;

use std::sync::Arc;

use crate::decode::nearest;
use crate::error::ParseError;
use crate::hash::NameMap;
use crate::lexer::{Kind, Token};
use crate::module::{FunctionId, Linkage, Module, Position, Section, Symbol};
use crate::opcode::Opcode;
use crate::table::Row;
use crate::types::StateSpace;
use cursor::{Cursor, Result};

/// The directives that can start something at module level.
const MODULE_DIRECTIVES: [&str; 19] = [
    ".version",
    ".target",
    ".address_size",
    ".visible",
    ".extern",
    ".weak",
    ".common",
    ".entry",
    ".func",
    ".global",
    ".const",
    ".shared",
    ".file",
    ".section",
    ".pragma",
    ".alias",
    ".loc",
    ".tex",
    ".blocksareclusters",
];

/// Parses PTX text into a verified module.
///
/// # Errors
/// The first thing in the text that is no PTX, or that the tables of this crate do not know.
pub fn parse(source: &str) -> std::result::Result<Module, ParseError> {
    let mut parser = Parser {
        cursor: Cursor::new(source)?,
        module: Module { address_size: 32, ..Module::default() },
        symbols: NameMap::default(),
        opcodes: NameMap::default(),
    };
    parser.header()?;
    while parser.cursor.token().kind != Kind::End {
        parser.item()?;
    }
    Ok(parser.module)
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    module: Module,
    /// Globals and functions by name.
    symbols: NameMap<&'a str, Symbol>,
    /// The opcodes seen, by spelling.
    opcodes: NameMap<&'a str, (Arc<Opcode>, &'static Row)>,
}

impl<'a> Parser<'a> {
    /// `.version`, `.target`, `.address_size`: the first two must come first (ISA 11.1).
    fn header(&mut self) -> Result<()> {
        if !self.cursor.accept_directive(".version")? {
            return Err(self.cursor.expected("`.version`").hint("PTX starts with `.version`"));
        }
        self.module.version = self.version()?;
        if !self.cursor.accept_directive(".target")? {
            return Err(self.cursor.expected("`.target`"));
        }
        self.target()?;
        if self.cursor.accept_directive(".address_size")? {
            let position = self.cursor.token().position;
            self.module.address_size = self.cursor.integer32()?;
            if !matches!(self.module.address_size, 32 | 64) {
                return Err(self.cursor.error_at(position, "an address has 32 or 64 bits"));
            }
        }
        Ok(())
    }

    fn version(&mut self) -> Result<(u32, u32)> {
        let token = self.cursor.advance()?;
        let numbers = token.text.split_once('.').filter(|_| token.kind == Kind::Number);
        let version = numbers.and_then(|(a, b)| Some((plain(a)?, plain(b)?)));
        version.ok_or_else(|| {
            let message = format!("expected a version such as 8.7, found {}", token.describe());
            self.cursor.error_at(token.position, message)
        })
    }

    fn target(&mut self) -> Result<()> {
        let mut names = vec![self.cursor.name()?.text.to_string()];
        while self.cursor.accept(b',')? {
            names.push(self.cursor.name()?.text.to_string());
        }
        self.module.target = names.remove(0);
        self.module.target_options = names;
        Ok(())
    }

    fn item(&mut self) -> Result<()> {
        let token = self.cursor.token();
        if token.is(b';') {
            return self.cursor.advance().map(|_| ());
        }
        if token.kind != Kind::Directive {
            return Err(self.cursor.expected("a directive such as `.entry` or `.global`"));
        }
        match token.text {
            ".visible" | ".extern" | ".weak" | ".common" => self.linked_item(),
            ".entry" | ".func" | ".global" | ".const" | ".shared" => {
                self.declaration(Linkage::Private)
            }
            ".file" => self.file(),
            ".section" => self.section(),
            ".pragma" => {
                self.cursor.advance()?;
                let text = self.cursor.string()?;
                self.module.pragmas.push(text);
                self.cursor.expect(b';')
            }
            ".alias" => self.alias(),
            ".loc" => self.location().map(|_| ()),
            _ => Err(self.unknown_directive(token, &MODULE_DIRECTIVES)),
        }
    }

    fn unknown_directive(&self, token: Token<'_>, known: &[&'static str]) -> ParseError {
        let message = format!("unknown directive {}", token.describe());
        let error = self.cursor.error_at(token.position, message);
        match nearest(token.text, known.iter().copied()) {
            Some(name) if name == token.text => error.hint("this directive is not supported yet"),
            Some(name) => error.hint(format!("did you mean `{name}`?")),
            None => error,
        }
    }

    fn linked_item(&mut self) -> Result<()> {
        let linkage = match self.cursor.advance()?.text {
            ".visible" => Linkage::Visible,
            ".extern" => Linkage::Extern,
            ".weak" => Linkage::Weak,
            _ => Linkage::Common,
        };
        self.declaration(linkage)
    }

    fn declaration(&mut self, linkage: Linkage) -> Result<()> {
        let token = self.cursor.token();
        match token.text {
            ".entry" | ".func" if token.kind == Kind::Directive => self.function(linkage),
            ".global" => self.globals(StateSpace::Global, linkage),
            ".const" => self.globals(StateSpace::Const, linkage),
            ".shared" => self.globals(StateSpace::Shared, linkage),
            _ => Err(self.cursor.expected("`.entry`, `.func`, `.global`, `.const` or `.shared`")),
        }
    }

    fn globals(&mut self, space: StateSpace, linkage: Linkage) -> Result<()> {
        self.cursor.advance()?;
        let head = self.variable_head(space, linkage)?;
        loop {
            let name = self.cursor.name()?;
            let mut variable = head.clone();
            variable.name = name.text.to_string();
            variable.position = name.position;
            variable.dimensions = self.dimensions()?;
            self.initial(&mut variable)?;
            self.add_global(name, variable)?;
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b';')
    }

    /// A definition may follow an `.extern` declaration, and takes its place.
    fn add_global(&mut self, name: Token<'a>, variable: crate::module::Variable) -> Result<()> {
        match self.symbols.get(name.text).copied() {
            None => {
                let symbol = Symbol::Global(self.module.globals.len() as u32);
                self.symbols.insert(name.text, symbol);
                self.module.globals.push(variable);
                Ok(())
            }
            Some(Symbol::Global(index)) => match self.module.globals.get_mut(index as usize) {
                Some(old) if old.linkage == Linkage::Extern => {
                    *old = variable;
                    Ok(())
                }
                _ => Err(self.duplicate(name)),
            },
            Some(_) => Err(self.duplicate(name)),
        }
    }

    fn duplicate(&self, name: Token<'_>) -> ParseError {
        let message = format!("{} is declared twice", name.describe());
        self.cursor.error_at(name.position, message)
    }

    fn unknown_symbol(&self, name: Token<'_>) -> ParseError {
        let message = format!("unknown name {}", name.describe());
        let error = self.cursor.error_at(name.position, message);
        match nearest(name.text, self.symbols.keys().copied()) {
            Some(close) => error.hint(format!("did you mean `{close}`?")),
            None => error,
        }
    }

    /// `.file number "path" [, timestamp, size]`.
    fn file(&mut self) -> Result<()> {
        self.cursor.advance()?;
        let number = self.cursor.integer32()?;
        let path = self.cursor.string()?;
        while self.cursor.accept(b',')? {
            self.cursor.integer()?;
        }
        self.module.files.push((number, path));
        Ok(())
    }

    fn section(&mut self) -> Result<()> {
        self.cursor.advance()?;
        if self.cursor.token().kind != Kind::Directive {
            return Err(self.cursor.expected("the name of a section"));
        }
        let name = self.cursor.advance()?.text.to_string();
        let text = self.cursor.skip_block()?.to_string();
        self.module.sections.push(Section { name, text });
        Ok(())
    }

    fn alias(&mut self) -> Result<()> {
        self.cursor.advance()?;
        let alias = self.function_name()?;
        self.cursor.expect(b',')?;
        let target = self.function_name()?;
        self.module.aliases.push((alias, target));
        self.cursor.expect(b';')
    }

    fn function_name(&mut self) -> Result<FunctionId> {
        let name = self.cursor.name()?;
        match self.symbols.get(name.text) {
            Some(Symbol::Function(id)) => Ok(*id),
            Some(_) => {
                let message = format!("{} is no function", name.describe());
                Err(self.cursor.error_at(name.position, message))
            }
            None => Err(self.unknown_symbol(name)),
        }
    }

    fn error_at(&self, position: Position, message: impl Into<String>) -> ParseError {
        self.cursor.error_at(position, message)
    }
}

/// A number of one to three digits.
fn plain(text: &str) -> Option<u32> {
    let digits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}
