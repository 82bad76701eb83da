//! Declarations of variables and parameters (ISA 5.4) and their initial values.

use super::Parser;
use super::cursor::Result;
use super::expression;
use crate::lexer::Kind;
use crate::literal::Literal;
use crate::module::{Initial, Linkage, PointerHint, Position, Reference, Symbol, Variable};
use crate::types::{StateSpace, Type};

/// The most bytes that an initial value may hold, padding included.
const INITIAL_LIMIT: u64 = 64 << 20;
/// The most dimensions of an array.
const DIMENSION_LIMIT: usize = 16;

impl<'a> Parser<'a> {
    /// Reads what follows the state space, up to the name: alignment, vector, type, attributes.
    pub(super) fn variable_head(
        &mut self,
        space: StateSpace,
        linkage: Linkage,
    ) -> Result<Variable> {
        let mut variable = Variable {
            name: String::new(),
            position: Position::default(),
            linkage,
            space,
            ty: Type::B8,
            vector: 1,
            dimensions: Vec::new(),
            alignment: None,
            pointer: None,
            initial: None,
            attributes: Vec::new(),
        };
        let mut ty = None;
        while self.cursor.token().kind == Kind::Directive {
            match self.cursor.token().text {
                ".align" => variable.alignment = Some(self.alignment()?),
                ".v2" => variable.vector = self.vector_width(2)?,
                ".v4" => variable.vector = self.vector_width(4)?,
                ".v8" => variable.vector = self.vector_width(8)?,
                ".ptr" => variable.pointer = Some(self.pointer_hint()?),
                ".attribute" => variable.attributes.push(self.attribute()?),
                _ => ty = Some(self.cursor.ty()?),
            }
        }
        match ty {
            Some(Type::Pred) => Err(self.cursor.expected("a type that memory can hold")),
            Some(ty) => {
                variable.ty = ty;
                Ok(variable)
            }
            None => Err(self.cursor.expected("a type")),
        }
    }

    fn vector_width(&mut self, width: u8) -> Result<u8> {
        self.cursor.advance()?;
        Ok(width)
    }

    fn alignment(&mut self) -> Result<u32> {
        self.cursor.advance()?;
        let position = self.cursor.token().position;
        let bytes = self.cursor.integer32()?;
        if bytes.is_power_of_two() {
            return Ok(bytes);
        }
        let message = format!("an alignment is a power of two, {bytes} is none");
        Err(self.cursor.error_at(position, message))
    }

    fn pointer_hint(&mut self) -> Result<PointerHint> {
        self.cursor.advance()?;
        let name = self.cursor.token().text.strip_prefix('.').unwrap_or("");
        let space = StateSpace::from_name(name);
        if space.is_some() {
            self.cursor.advance()?;
        }
        let aligned = self.cursor.token().is_directive(".align");
        let alignment = if aligned { Some(self.alignment()?) } else { None };
        Ok(PointerHint { space, alignment })
    }

    /// `.attribute(...)`: the text between the parentheses, with single spaces.
    pub(super) fn attribute(&mut self) -> Result<String> {
        self.cursor.advance()?;
        self.cursor.expect(b'(')?;
        let mut parts = Vec::new();
        while !self.cursor.token().is(b')') {
            let token = self.cursor.token();
            let known = matches!(token.kind, Kind::Directive | Kind::Number | Kind::Word)
                || [b',', b'(', b'='].iter().any(|&sign| token.is(sign));
            if !known {
                return Err(self.cursor.expected("`)`"));
            }
            parts.push(self.cursor.advance()?.text);
            if parts.last() == Some(&"(") {
                self.attribute_arguments(&mut parts)?;
            }
        }
        self.cursor.advance()?;
        Ok(parts.join(" "))
    }

    fn attribute_arguments(&mut self, parts: &mut Vec<&'a str>) -> Result<()> {
        loop {
            let token = self.cursor.advance()?;
            parts.push(token.text);
            match token.kind {
                Kind::Punctuation(b')') => return Ok(()),
                Kind::Number | Kind::Word | Kind::Punctuation(b',') => {}
                _ => return Err(self.cursor.error_at(token.position, "this attribute is no list")),
            }
        }
    }

    /// Reads the array dimensions behind a name.
    pub(super) fn dimensions(&mut self) -> Result<Vec<u64>> {
        let mut dimensions = Vec::new();
        while self.cursor.token().is(b'[') {
            let position = self.cursor.token().position;
            self.cursor.advance()?;
            let open = self.cursor.token().is(b']');
            let size = if open { 0 } else { expression::integer(&mut self.cursor)? };
            self.cursor.expect(b']')?;
            let first = dimensions.is_empty();
            let Some(size) = u64::try_from(size).ok().filter(|&size| size > 0 || first) else {
                return Err(self
                    .cursor
                    .error_at(position, format!("no array has {size} elements")));
            };
            if dimensions.len() == DIMENSION_LIMIT {
                return Err(self.cursor.error_at(position, "this array has too many dimensions"));
            }
            dimensions.push(size);
        }
        Ok(dimensions)
    }

    /// Reads `= value` or `= {...}` behind a declaration.
    pub(super) fn initial(&mut self, variable: &mut Variable) -> Result<()> {
        if !self.cursor.accept(b'=')? {
            return Ok(());
        }
        let place = Place { ty: variable.ty, bytes: variable.element_bytes() };
        let mut initial = Initial::default();
        if self.cursor.token().is(b'{') {
            let count = self.initial_list(&variable.dimensions, variable, &mut initial, 0)?;
            if variable.is_unsized() {
                variable.dimensions[0] = count;
            }
        } else {
            self.initial_element(place, &mut initial, 0)?;
        }
        variable.initial = Some(initial);
        Ok(())
    }

    /// Reads `{...}` at a byte offset; gives the number of elements written at this level.
    fn initial_list(
        &mut self,
        dimensions: &[u64],
        variable: &Variable,
        initial: &mut Initial,
        start: u64,
    ) -> Result<u64> {
        let opening = self.cursor.token().position;
        self.cursor.expect(b'{')?;
        // The inner dimensions, then the components of a vector, then a single value.
        let (limit, inner) = match dimensions.split_first() {
            Some((&first, inner)) => (first, inner),
            None => (u64::from(variable.vector), &[][..]),
        };
        let scalar = u64::from(variable.ty.bytes());
        let component = dimensions.is_empty();
        let width = if component { scalar } else { variable.element_bytes() };
        let stride = inner.iter().fold(width, |total, &n| total.saturating_mul(n));
        let mut count = 0_u64;
        while !self.cursor.token().is(b'}') {
            if limit != 0 && count == limit && dimensions.len() <= 1 {
                let message = format!("more than {limit} initial values");
                return Err(self.cursor.error_at(self.cursor.token().position, message));
            }
            let offset = start.saturating_add(count.saturating_mul(stride));
            if self.cursor.token().is(b'{') && component {
                return Err(self.cursor.expected("a value"));
            } else if self.cursor.token().is(b'{') {
                self.initial_list(inner, variable, initial, offset)?;
            } else {
                let place = Place { ty: variable.ty, bytes: scalar };
                self.initial_element(place, initial, start.saturating_add(count * scalar))?;
            }
            count += 1;
            if !self.cursor.accept(b',')? {
                break;
            }
        }
        if !self.cursor.accept(b'}')? {
            let message = format!("expected `,` or `}}`, found {}", self.cursor.token().describe());
            return Err(self
                .cursor
                .error_at(self.cursor.token().position, message)
                .hint(format!("the list opens in line {}", opening.line)));
        }
        Ok(count)
    }

    fn initial_element(&mut self, place: Place, initial: &mut Initial, offset: u64) -> Result<()> {
        let token = self.cursor.token();
        let end = offset.saturating_add(place.bytes);
        if end > INITIAL_LIMIT {
            let message = format!("an initial value over {INITIAL_LIMIT} bytes is not supported");
            return Err(self.cursor.error_at(token.position, message));
        }
        let end = end as usize;
        if initial.bytes.len() < end {
            initial.bytes.resize(end, 0);
        }
        if token.kind == Kind::Word && token.text != "WARP_SZ" {
            return self.initial_reference(place, initial, offset, None);
        }
        let value = expression::constant(&mut self.cursor)?;
        if let (Literal::Integer(mask), true) = (value, self.cursor.token().is(b'(')) {
            self.cursor.advance()?;
            self.initial_reference(place, initial, offset, Some(mask))?;
            return self.cursor.expect(b')');
        }
        let Some(bits) = value_bits(value, place.ty) else {
            let message = format!("this value does not fit the type .{}", place.ty.name());
            return Err(self.cursor.error_at(token.position, message));
        };
        let bytes = bits.to_le_bytes();
        let size = (place.ty.bytes() as usize).min(bytes.len());
        let start = offset as usize;
        if let Some(target) = initial.bytes.get_mut(start..start + size) {
            target.copy_from_slice(&bytes[..size]);
        }
        Ok(())
    }

    fn initial_reference(
        &mut self,
        place: Place,
        initial: &mut Initial,
        offset: u64,
        mask: Option<u64>,
    ) -> Result<()> {
        let generic = self.cursor.token().text == "generic";
        if generic {
            self.cursor.advance()?;
            self.cursor.expect(b'(')?;
        }
        let token = self.cursor.name()?;
        let Some(symbol) = self.module_symbol(token.text) else {
            return Err(self.unknown_symbol(token));
        };
        let mut addend = self.addend()?;
        if generic {
            self.cursor.expect(b')')?;
            addend = addend.wrapping_add(self.addend()?);
        }
        let width = place.ty.bytes() as u8;
        initial.references.push(Reference { offset, width, symbol, addend, generic, mask });
        Ok(())
    }

    /// Reads `+ n` or `- n` behind a symbol.
    pub(super) fn addend(&mut self) -> Result<i64> {
        let token = self.cursor.token();
        if !token.is(b'+') && !token.is(b'-') {
            return Ok(0);
        }
        expression::integer(&mut self.cursor)
    }

    /// A symbol that an initial value may name: a global or a function.
    fn module_symbol(&self, name: &str) -> Option<Symbol> {
        self.symbols.get(name).copied()
    }
}

/// Where an element goes.
#[derive(Clone, Copy)]
struct Place {
    ty: Type,
    bytes: u64,
}

/// The bits of a literal as a value of a type.
fn value_bits(value: Literal, ty: Type) -> Option<u64> {
    match (value, ty) {
        (Literal::Float32(bits), Type::F32 | Type::B32) => Some(u64::from(bits)),
        (Literal::Float64(bits), Type::F64 | Type::B64) => Some(bits),
        (Literal::Float64(bits), Type::F32) => {
            Some(u64::from((f64::from_bits(bits) as f32).to_bits()))
        }
        (Literal::Float32(bits), Type::F64) => Some(f64::from(f32::from_bits(bits)).to_bits()),
        (Literal::Integer(value), _) if !matches!(ty, Type::F32 | Type::F64) => Some(value),
        (Literal::Integer(0), _) => Some(0),
        _ => None,
    }
}
