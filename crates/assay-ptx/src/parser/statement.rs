//! The statements of a body: declarations, `.loc`, labels and instructions (ISA 4.3).

use std::sync::Arc;

use super::Parser;
use super::cursor::Result;
use super::function::Body;
use super::names::{DEPTH_LIMIT, Meaning};
use crate::check::{self, Complaint, Context};
use crate::decode::decode;
use crate::error::ParseError;
use crate::lexer::{Kind, Token};
use crate::module::{Guard, Linkage, Operand, Position, SourceLine, Symbol};
use crate::opcode::Opcode;
use crate::table::Row;
use crate::types::{StateSpace, Type};

const BODY_DIRECTIVES: [&str; 14] = [
    ".reg",
    ".local",
    ".shared",
    ".param",
    ".global",
    ".const",
    ".extern",
    ".visible",
    ".weak",
    ".loc",
    ".pragma",
    ".branchtargets",
    ".callprototype",
    ".calltargets",
];

impl<'a> Parser<'a> {
    pub(super) fn statement(&mut self, body: &mut Body<'a>) -> Result<()> {
        let token = self.cursor.token();
        match token.kind {
            Kind::Word if self.cursor.at_label() => self.labelled(body),
            Kind::Word | Kind::Punctuation(b'@') => self.instruction(body),
            Kind::Directive => self.body_directive(body, token),
            Kind::Punctuation(b';') => self.cursor.advance().map(|_| ()),
            Kind::Punctuation(b'{') => {
                if body.names.depth() >= DEPTH_LIMIT {
                    return Err(self.error_at(token.position, "blocks are nested too deeply"));
                }
                body.names.open();
                self.cursor.advance().map(|_| ())
            }
            Kind::Punctuation(b'}') => {
                body.names.close();
                self.cursor.advance().map(|_| ())
            }
            _ => Err(self.cursor.expected("an instruction")),
        }
    }

    fn body_directive(&mut self, body: &mut Body<'a>, token: Token<'a>) -> Result<()> {
        match token.text {
            ".reg" => self.registers(body),
            ".local" => self.locals(body, StateSpace::Local, Linkage::Private),
            ".shared" => self.locals(body, StateSpace::Shared, Linkage::Private),
            ".param" => self.locals(body, StateSpace::Param, Linkage::Private),
            ".global" => self.locals(body, StateSpace::Global, Linkage::Private),
            ".const" => self.locals(body, StateSpace::Const, Linkage::Private),
            ".extern" | ".visible" | ".weak" => self.linked_local(body),
            ".loc" => {
                body.source = Some(self.location()?);
                Ok(())
            }
            ".pragma" => {
                self.cursor.advance()?;
                body.function.pragmas.push(self.cursor.string()?);
                self.cursor.expect(b';')
            }
            _ => Err(self.unknown_directive(token, &BODY_DIRECTIVES)),
        }
    }

    fn linked_local(&mut self, body: &mut Body<'a>) -> Result<()> {
        let linkage = match self.cursor.advance()?.text {
            ".extern" => Linkage::Extern,
            ".visible" => Linkage::Visible,
            _ => Linkage::Weak,
        };
        match self.cursor.token().text {
            ".shared" => self.locals(body, StateSpace::Shared, linkage),
            ".global" => self.locals(body, StateSpace::Global, linkage),
            ".const" => self.locals(body, StateSpace::Const, linkage),
            _ => Err(self.cursor.expected("`.shared`, `.global` or `.const`")),
        }
    }

    /// `.reg .b32 %r<8>, %x;`
    fn registers(&mut self, body: &mut Body<'a>) -> Result<()> {
        self.cursor.advance()?;
        let token = self.cursor.token();
        if [".v2", ".v4", ".v8"].contains(&token.text) {
            let message = "a vector register is not supported";
            return Err(self.error_at(token.position, message).hint("declare its parts"));
        }
        let ty = self.cursor.ty()?;
        loop {
            let name = self.cursor.name()?;
            let declared = if self.cursor.accept(b'<')? {
                let count = self.cursor.integer32()?;
                self.cursor.expect(b'>')?;
                body.names.declare_bank(name.text, ty, count)
            } else {
                body.names.declare_register(name.text, ty)
            };
            if !declared {
                return Err(self.duplicate(name));
            }
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b';')
    }

    fn locals(&mut self, body: &mut Body<'a>, space: StateSpace, linkage: Linkage) -> Result<()> {
        self.cursor.advance()?;
        let head = self.variable_head(space, linkage)?;
        loop {
            let name = self.cursor.name()?;
            let mut variable = head.clone();
            variable.position = name.position;
            variable.dimensions = self.dimensions()?;
            self.initial(&mut variable)?;
            variable.name = body.names.unique(name.text);
            let symbol = Symbol::Local(body.function.locals.len() as u32);
            body.function.locals.push(variable);
            if !body.names.declare(name.text, Meaning::Symbol(symbol)) {
                return Err(self.duplicate(name));
            }
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        self.cursor.expect(b';')
    }

    /// `.loc file line column [, function_name label [+ n], inlined_at file line column]`.
    pub(super) fn location(&mut self) -> Result<SourceLine> {
        self.cursor.advance()?;
        let file = self.cursor.integer32()?;
        let line = self.cursor.integer32()?;
        let column = self.cursor.integer32()?;
        while self.cursor.accept(b',')? {
            match self.cursor.name()?.text {
                "function_name" => {
                    self.cursor.name()?;
                    self.addend()?;
                }
                "inlined_at" => {
                    for _ in 0..3 {
                        self.cursor.integer()?;
                    }
                }
                _ => return Err(self.cursor.expected("`function_name` or `inlined_at`")),
            }
        }
        Ok(SourceLine { file, line, column })
    }

    fn labelled(&mut self, body: &mut Body<'a>) -> Result<()> {
        let label = self.cursor.name()?;
        self.cursor.expect(b':')?;
        let token = self.cursor.token();
        match token.text {
            ".callprototype" => self.prototype(body, label),
            ".branchtargets" | ".calltargets" => self.target_list(body, label),
            _ => self.label_statement(body, label),
        }
    }

    fn instruction(&mut self, body: &mut Body<'a>) -> Result<()> {
        let start = self.cursor.token().position;
        let guard = if self.cursor.accept(b'@')? { Some(self.guard(body)?) } else { None };
        let spelled = self.cursor.token();
        if spelled.kind != Kind::Word {
            return Err(self.cursor.expected("an opcode"));
        }
        self.cursor.advance()?;
        let (opcode, row) = self.decode(spelled)?;
        let mut operands = self.operands(body, &opcode)?;
        let end = self.cursor.token();
        if !self.cursor.accept(b';')? {
            let message = format!("expected `,` or `;`, found {}", end.describe());
            return Err(self.error_at(end.position, message));
        }
        self.check(body, &opcode, row, &mut operands)
            .map_err(|complaint| self.complain(start, complaint))?;
        body.push(start, guard, opcode, operands);
        Ok(())
    }

    fn guard(&mut self, body: &mut Body<'a>) -> Result<Guard> {
        let negated = self.cursor.accept(b'!')?;
        let name = self.cursor.name()?;
        match body.names.find(name.text) {
            Some(Meaning::Register(register)) => {
                let ty = body.names.registers.get(register.index()).map(|register| register.ty);
                if ty == Some(Type::Pred) {
                    return Ok(Guard { register, negated });
                }
                let message = format!("the guard {} is no predicate", name.describe());
                Err(self.error_at(name.position, message))
            }
            _ => Err(self.unknown_name(body, name)),
        }
    }

    fn decode(&mut self, spelled: Token<'a>) -> Result<(Arc<Opcode>, &'static Row)> {
        if let Some((opcode, row)) = self.opcodes.get(spelled.text) {
            return Ok((Arc::clone(opcode), row));
        }
        match decode(spelled.text) {
            Ok((opcode, row)) => {
                let opcode = Arc::new(opcode);
                self.opcodes.insert(spelled.text, (Arc::clone(&opcode), row));
                Ok((opcode, row))
            }
            Err(error) => {
                let mut position = spelled.position;
                position.column = position.column.saturating_add(error.offset as u32);
                let mut shown = self.error_at(position, error.message);
                shown.hint = error.hint;
                Err(shown)
            }
        }
    }

    fn check(
        &self,
        body: &Body<'a>,
        opcode: &Opcode,
        row: &Row,
        operands: &mut [Operand],
    ) -> std::result::Result<(), Complaint> {
        let function = &body.function;
        let context = Context {
            registers: &body.names.registers,
            params: &function.params,
            returns: &function.returns,
            locals: &function.locals,
            globals: &self.module.globals,
            functions: &self.module.functions,
            prototypes: &function.prototypes,
            targets: &function.targets,
        };
        check::check(context, opcode, row, operands)
    }

    fn complain(&self, position: Position, complaint: Complaint) -> ParseError {
        let mut error = self.error_at(position, complaint.message);
        error.hint = complaint.hint;
        error
    }
}
