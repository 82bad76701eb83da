//! Variables, parameters and initial values.

use std::fmt::Write;

use super::{Printer, put};
use crate::module::{Function, Initial, Symbol, Variable};
use crate::types::Type;

impl Printer<'_> {
    pub(super) fn parameters(&mut self, variables: &[Variable]) {
        self.out.push('(');
        for (index, variable) in variables.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.variable(variable);
        }
        self.out.push(')');
    }

    /// A declaration without its `;`.
    pub(super) fn variable(&mut self, variable: &Variable) {
        self.linkage(variable.linkage);
        put!(self, ".{}", variable.space.name());
        for attribute in &variable.attributes {
            put!(self, " .attribute({attribute})");
        }
        if let Some(alignment) = variable.alignment {
            put!(self, " .align {alignment}");
        }
        if variable.vector > 1 {
            put!(self, " .v{}", variable.vector);
        }
        put!(self, " .{}", variable.ty.name());
        if let Some(pointer) = variable.pointer {
            self.out.push_str(" .ptr");
            if let Some(space) = pointer.space {
                put!(self, " .{}", space.name());
            }
            if let Some(alignment) = pointer.alignment {
                put!(self, " .align {alignment}");
            }
        }
        put!(self, " {}", variable.name);
        for (index, &size) in variable.dimensions.iter().enumerate() {
            if size == 0 && index == 0 {
                self.out.push_str("[]");
            } else {
                put!(self, "[{size}]");
            }
        }
        if let Some(initial) = &variable.initial {
            self.initial(variable, initial);
        }
    }

    fn initial(&mut self, variable: &Variable, initial: &Initial) {
        self.out.push_str(" = ");
        let width = (variable.ty.bytes() as usize).max(1);
        let vector = usize::from(variable.vector);
        let scalar = variable.dimensions.is_empty() && vector == 1;
        let array = !variable.dimensions.is_empty();
        if scalar {
            self.element(variable.ty, initial, 0, width);
            return;
        }
        let mut references = initial.references.iter().peekable();
        self.out.push('{');
        let count = initial.bytes.len().div_ceil(width);
        for index in 0..count {
            if index > 0 {
                self.out.push_str(", ");
            }
            if vector > 1 && array && index % vector == 0 {
                self.out.push('{');
            }
            let offset = (index * width) as u64;
            if references.next_if(|reference| reference.offset == offset).is_some() {
                self.reference(initial, offset);
            } else {
                self.value(variable.ty, &initial.bytes, index * width, width);
            }
            if vector > 1 && array && (index % vector == vector - 1 || index + 1 == count) {
                self.out.push('}');
            }
        }
        self.out.push('}');
    }

    fn element(&mut self, ty: Type, initial: &Initial, offset: usize, width: usize) {
        if initial.references.is_empty() {
            self.value(ty, &initial.bytes, offset, width);
        } else {
            self.reference(initial, offset as u64);
        }
    }

    fn value(&mut self, ty: Type, bytes: &[u8], offset: usize, width: usize) {
        let mut buffer = [0; 8];
        let end = (offset + width.min(8)).min(bytes.len());
        let source = bytes.get(offset..end).unwrap_or(&[]);
        buffer[..source.len()].copy_from_slice(source);
        let bits = u64::from_le_bytes(buffer);
        match ty {
            Type::F32 => put!(self, "0f{bits:08X}"),
            Type::F64 => put!(self, "0d{bits:016X}"),
            _ => put!(self, "{bits}"),
        }
    }

    fn reference(&mut self, initial: &Initial, offset: u64) {
        // References are in order of their offsets, for the parser wrote them so.
        let found = initial.references.partition_point(|reference| reference.offset < offset);
        let Some(reference) = initial.references.get(found) else { return };
        let name = match reference.symbol {
            Symbol::Global(index) => self.module.globals.get(index as usize).map(|v| &v.name),
            Symbol::Function(id) => self.module.functions.get(id.0 as usize).map(|f| &f.name),
            _ => None,
        };
        let name = name.map_or("_", String::as_str);
        let sign = if reference.addend < 0 { "" } else { "+" };
        let addend = match reference.addend {
            0 => String::new(),
            addend => format!("{sign}{addend}"),
        };
        let text = if reference.generic {
            format!("generic({name}){addend}")
        } else {
            format!("{name}{addend}")
        };
        match reference.mask {
            Some(mask) => put!(self, "{mask}({text})"),
            None => self.out.push_str(&text),
        }
    }

    /// The name of a symbol as a function sees it.
    pub(super) fn symbol_name<'s>(&'s self, function: &'s Function, symbol: Symbol) -> &'s str {
        let module = self.module;
        let variable = match symbol {
            Symbol::Global(index) => module.globals.get(index as usize),
            Symbol::Local(index) => function.locals.get(index as usize),
            Symbol::Parameter(index) => function.params.get(index as usize),
            Symbol::Return(index) => function.returns.get(index as usize),
            Symbol::Function(id) => {
                return module.functions.get(id.0 as usize).map_or("_", |f| &f.name);
            }
        };
        variable.map_or("_", |variable| &variable.name)
    }
}
