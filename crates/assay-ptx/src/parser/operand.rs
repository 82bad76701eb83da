//! The operands of an instruction (ISA 6).

use super::Parser;
use super::cursor::Result;
use super::expression;
use super::function::{Body, PendingBranch};
use super::names::Meaning;
use crate::base::Base;
use crate::decode::nearest;
use crate::error::ParseError;
use crate::lexer::{Kind, Token};
use crate::literal::Literal;
use crate::module::{Address, AddressBase, Operand, RegisterId, Symbol};
use crate::opcode::Opcode;
use crate::special::{Axis, SpecialRegister};

/// The most parts of a vector: a wgmma accumulator has 128.
const VECTOR_LIMIT: usize = 256;

impl<'a> Parser<'a> {
    /// Reads the operands up to the `;`, which stays.
    pub(super) fn operands(
        &mut self,
        body: &mut Body<'a>,
        opcode: &Opcode,
    ) -> Result<Vec<Operand>> {
        if opcode.base == Base::Call {
            return self.call_operands(body);
        }
        let mut operands = Vec::with_capacity(4);
        if self.cursor.token().is(b';') {
            return Ok(operands);
        }
        loop {
            if opcode.base == Base::Bra {
                operands.push(self.branch_target(body, operands.len())?);
            } else {
                operands.push(self.operand(body)?);
            }
            if !self.cursor.accept(b',')? {
                return Ok(operands);
            }
        }
    }

    fn branch_target(&mut self, body: &mut Body<'a>, operand: usize) -> Result<Operand> {
        let name = self.cursor.name()?;
        let instruction = body.function.body.len();
        let scope = body.names.label_scope();
        body.branches.push(PendingBranch { instruction, operand, scope, name });
        Ok(Operand::Label(0))
    }

    /// `(returns), callee, (arguments), prototype`; every part but the callee may be missing.
    fn call_operands(&mut self, body: &mut Body<'a>) -> Result<Vec<Operand>> {
        let mut returns = Vec::new();
        if self.cursor.token().is(b'(') {
            returns = self.list(body)?;
            self.cursor.expect(b',')?;
        }
        let callee = self.operand(body)?;
        let mut arguments = Vec::new();
        let mut prototype = Operand::Sink;
        if self.cursor.accept(b',')? {
            if self.cursor.token().is(b'(') {
                arguments = self.list(body)?;
                if self.cursor.accept(b',')? {
                    prototype = self.operand(body)?;
                }
            } else {
                prototype = self.operand(body)?;
            }
        }
        Ok(vec![Operand::List(returns), callee, Operand::List(arguments), prototype])
    }

    fn list(&mut self, body: &mut Body<'a>) -> Result<Vec<Operand>> {
        self.cursor.expect(b'(')?;
        let mut parts = Vec::new();
        while !self.cursor.token().is(b')') {
            parts.push(self.scalar(body)?);
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b')')?;
        Ok(parts)
    }

    fn operand(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        match self.cursor.token().kind {
            Kind::Punctuation(b'[') => self.address_operand(body),
            Kind::Punctuation(b'{') => self.vector(body).map(Operand::Vector),
            _ => self.scalar(body),
        }
    }

    /// Anything but an address, a vector or a list.
    fn scalar(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        let token = self.cursor.token();
        if expression::starts(&self.cursor) {
            return Ok(match expression::constant(&mut self.cursor)? {
                Literal::Integer(value) => Operand::Immediate(value),
                Literal::Float32(bits) => Operand::Float32(bits),
                Literal::Float64(bits) => Operand::Float64(bits),
            });
        }
        match token.kind {
            Kind::Word => self.named(body),
            Kind::Punctuation(b'!') => {
                self.cursor.advance()?;
                self.register(body).map(Operand::Not)
            }
            _ => Err(self.cursor.expected("an operand")),
        }
    }

    fn register(&mut self, body: &mut Body<'a>) -> Result<RegisterId> {
        let name = self.cursor.name()?;
        match body.names.find(name.text) {
            Some(Meaning::Register(id)) => Ok(id),
            Some(_) => {
                let message = format!("{} is no register", name.describe());
                Err(self.error_at(name.position, message))
            }
            None => Err(self.unknown_name(body, name)),
        }
    }

    fn named(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        let token = self.cursor.advance()?;
        if token.text == "_" {
            let pair = self.cursor.accept(b'|')?;
            return if pair { self.pair(body, None) } else { Ok(Operand::Sink) };
        }
        match body.names.find(token.text) {
            Some(Meaning::Register(id)) => {
                let pair = self.cursor.accept(b'|')?;
                if pair { self.pair(body, Some(id)) } else { Ok(Operand::Register(id)) }
            }
            Some(Meaning::Symbol(symbol)) => self.symbol(symbol),
            Some(Meaning::Prototype(index)) => Ok(Operand::Prototype(index)),
            Some(Meaning::Targets(index)) => Ok(Operand::Targets(index)),
            None => match self.symbols.get(token.text) {
                Some(&symbol) => self.symbol(symbol),
                None => self.special(body, token),
            },
        }
    }

    fn symbol(&mut self, symbol: Symbol) -> Result<Operand> {
        Ok(Operand::Symbol(symbol, self.addend()?))
    }

    fn pair(&mut self, body: &mut Body<'a>, first: Option<RegisterId>) -> Result<Operand> {
        let sink = self.cursor.token().text == "_";
        let second = if sink {
            self.cursor.advance()?;
            None
        } else {
            Some(self.register(body)?)
        };
        Ok(Operand::Pair(first, second))
    }

    fn special(&self, body: &Body<'a>, token: Token<'a>) -> Result<Operand> {
        let Some(name) = token.text.strip_prefix('%') else {
            return Err(self.unknown_name(body, token));
        };
        let (name, axis) = match name.split_once('.') {
            None => (name, None),
            Some((name, "x")) => (name, Some(Axis::X)),
            Some((name, "y")) => (name, Some(Axis::Y)),
            Some((name, "z")) => (name, Some(Axis::Z)),
            Some((name, "w")) => (name, Some(Axis::W)),
            Some(_) => return Err(self.unknown_name(body, token)),
        };
        let Some(special) = SpecialRegister::from_name(name) else {
            return Err(self.unknown_name(body, token));
        };
        if special.is_vector() == axis.is_some() {
            return Ok(Operand::Special(special, axis));
        }
        let error = if axis.is_some() {
            self.error_at(token.position, format!("`%{name}` has no axes"))
        } else {
            let message = format!("`%{name}` is a vector");
            self.error_at(token.position, message).hint(format!("name an axis: `%{name}.x`"))
        };
        Err(error)
    }

    fn vector(&mut self, body: &mut Body<'a>) -> Result<Vec<Operand>> {
        let opening = self.cursor.token().position;
        self.cursor.expect(b'{')?;
        let mut parts = Vec::new();
        while !self.cursor.token().is(b'}') {
            if parts.len() == VECTOR_LIMIT {
                return Err(self.error_at(opening, "this vector is too long"));
            }
            parts.push(self.scalar(body)?);
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b'}')?;
        Ok(parts)
    }

    fn address_operand(&mut self, body: &mut Body<'a>) -> Result<Operand> {
        self.cursor.expect(b'[')?;
        let address = self.address(body)?;
        if !self.cursor.accept(b',')? {
            self.cursor.expect(b']')?;
            return Ok(Operand::Address(address));
        }
        let coordinates = self.vector(body)?;
        self.cursor.expect(b']')?;
        Ok(Operand::Tensor(address, coordinates))
    }

    fn address(&mut self, body: &mut Body<'a>) -> Result<Address> {
        if expression::starts(&self.cursor) {
            let offset = expression::integer(&mut self.cursor)?;
            return Ok(Address { base: AddressBase::None, offset });
        }
        let name = self.cursor.name()?;
        let base = match body.names.find(name.text) {
            Some(Meaning::Register(id)) => AddressBase::Register(id),
            Some(Meaning::Symbol(symbol)) => AddressBase::Variable(symbol),
            Some(_) => {
                let message = format!("{} has no address", name.describe());
                return Err(self.error_at(name.position, message));
            }
            None => match self.symbols.get(name.text) {
                Some(&symbol) => AddressBase::Variable(symbol),
                None => return Err(self.unknown_name(body, name)),
            },
        };
        Ok(Address { base, offset: self.addend()? })
    }

    /// An error for a name that is neither declared nor a special register.
    pub(super) fn unknown_name(&self, body: &Body<'a>, name: Token<'a>) -> ParseError {
        let message = format!("unknown name {}", name.describe());
        let error = self.error_at(name.position, message);
        if let Some((prefix, count)) = body.names.bank_of(name.text) {
            return error
                .hint(format!("`.reg` declares `{prefix}<{count}>`, which ends before it"));
        }
        let visible = body.names.visible();
        let specials: Vec<String> =
            SpecialRegister::NAMED.iter().map(|special| format!("%{}", special.name())).collect();
        let specials = specials.iter().map(String::as_str);
        let symbols = self.symbols.keys().copied();
        match nearest(name.text, visible.into_iter().chain(symbols).chain(specials)) {
            Some(close) => error.hint(format!("did you mean `{close}`?")),
            None => error,
        }
    }
}
