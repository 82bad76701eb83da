//! Bodies: registers, locals, labels, instructions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

use super::{Printer, put};
use crate::base::Base;
use crate::module::{Address, AddressBase, Function, Instruction, Operand, RegisterId, Targets};
use crate::types::Type;

impl<'m> Printer<'m> {
    pub(super) fn body(&mut self, function: &'m Function) {
        for pragma in &function.pragmas {
            put!(self, "\t.pragma \"{pragma}\";\n");
        }
        self.registers(function);
        for local in &function.locals {
            self.out.push('\t');
            self.variable(local);
            self.out.push_str(";\n");
        }
        self.prototypes(function);
        let labels = labels_by_target(function);
        self.targets(function, &labels);
        let mut source = None;
        for (index, instruction) in function.body.iter().enumerate() {
            self.labels_at(&labels, index as u32);
            if let Some(line) = instruction.source.filter(|_| instruction.source != source) {
                put!(self, "\t.loc {} {} {}\n", line.file, line.line, line.column);
            }
            source = instruction.source;
            self.instruction(function, &labels, instruction);
        }
        self.labels_at(&labels, function.body.len() as u32);
    }

    /// `%r<8>` where the names allow it, single names elsewhere.
    fn registers(&mut self, function: &Function) {
        let taken = taken_prefixes(function);
        let mut banks: BTreeMap<&str, (Type, u32)> = BTreeMap::new();
        let mut mixed: HashSet<&str> = HashSet::new();
        for register in &function.registers {
            let Some((prefix, number)) = numbered(&register.name) else { continue };
            let bank = banks.entry(prefix).or_insert((register.ty, 0));
            bank.1 = bank.1.max(number + 1);
            if bank.0 != register.ty || taken.contains(prefix) {
                mixed.insert(prefix);
            }
        }
        for (prefix, (ty, count)) in &banks {
            if !mixed.contains(prefix) {
                put!(self, "\t.reg .{} {prefix}<{count}>;\n", ty.name());
            }
        }
        for register in &function.registers {
            let banked = numbered(&register.name).is_some_and(|(p, _)| !mixed.contains(p));
            if !banked {
                put!(self, "\t.reg .{} {};\n", register.ty.name(), register.name);
            }
        }
    }

    fn prototypes(&mut self, function: &'m Function) {
        for prototype in &function.prototypes {
            put!(self, "\t{}: .callprototype ", prototype.name);
            if !prototype.returns.is_empty() {
                self.parameters(&prototype.returns);
                self.out.push(' ');
            }
            self.out.push('_');
            self.out.push(' ');
            self.parameters(&prototype.params);
            self.out.push_str(if prototype.no_return { " .noreturn;\n" } else { ";\n" });
        }
    }

    fn targets(&mut self, function: &'m Function, labels: &Labels<'m>) {
        for list in &function.targets {
            let (directive, names): (&str, Vec<&str>) = match &list.targets {
                Targets::Branch(targets) => {
                    (".branchtargets", targets.iter().map(|t| label(labels, *t)).collect())
                }
                Targets::Call(functions) => {
                    let name = |id: &crate::FunctionId| {
                        self.module.functions.get(id.0 as usize).map_or("_", |f| f.name.as_str())
                    };
                    (".calltargets", functions.iter().map(name).collect())
                }
            };
            put!(self, "\t{}: {directive} {};\n", list.name, names.join(", "));
        }
    }

    fn labels_at(&mut self, labels: &Labels<'m>, target: u32) {
        for name in labels.get(&target).into_iter().flatten() {
            put!(self, "{name}:\n");
        }
    }

    fn instruction(&mut self, function: &Function, labels: &Labels<'m>, instruction: &Instruction) {
        self.out.push('\t');
        if let Some(guard) = instruction.guard {
            let bang = if guard.negated { "!" } else { "" };
            put!(self, "@{bang}{} ", register(function, guard.register));
        }
        self.out.push_str(&instruction.opcode.text);
        if instruction.opcode.base == Base::Call {
            self.call(function, labels, &instruction.operands);
        } else {
            for (index, operand) in instruction.operands.iter().enumerate() {
                self.out.push_str(if index == 0 { " " } else { ", " });
                self.operand(function, labels, operand);
            }
        }
        self.out.push_str(";\n");
    }

    fn call(&mut self, function: &Function, labels: &Labels<'m>, operands: &[Operand]) {
        let [Operand::List(returns), callee, Operand::List(arguments), prototype] = operands else {
            return;
        };
        self.out.push(' ');
        if !returns.is_empty() {
            self.list(function, labels, returns, ['(', ')']);
            self.out.push_str(", ");
        }
        self.operand(function, labels, callee);
        self.out.push_str(", ");
        self.list(function, labels, arguments, ['(', ')']);
        if *prototype != Operand::Sink {
            self.out.push_str(", ");
            self.operand(function, labels, prototype);
        }
    }

    fn list(
        &mut self,
        function: &Function,
        labels: &Labels<'m>,
        parts: &[Operand],
        [open, close]: [char; 2],
    ) {
        self.out.push(open);
        for (index, part) in parts.iter().enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.operand(function, labels, part);
        }
        self.out.push(close);
    }

    fn operand(&mut self, function: &Function, labels: &Labels<'m>, operand: &Operand) {
        match operand {
            Operand::Register(id) => self.out.push_str(register(function, *id)),
            Operand::Not(id) => put!(self, "!{}", register(function, *id)),
            Operand::Immediate(value) => put!(self, "{}", *value as i64),
            Operand::Float32(bits) => put!(self, "0f{bits:08X}"),
            Operand::Float64(bits) => put!(self, "0d{bits:016X}"),
            Operand::Address(address) => {
                self.out.push('[');
                self.address(function, *address);
                self.out.push(']');
            }
            Operand::Tensor(address, coordinates) => {
                self.out.push('[');
                self.address(function, *address);
                self.out.push_str(", ");
                self.list(function, labels, coordinates, ['{', '}']);
                self.out.push(']');
            }
            Operand::Vector(parts) => self.list(function, labels, parts, ['{', '}']),
            Operand::List(parts) => self.list(function, labels, parts, ['(', ')']),
            Operand::Pair(first, second) => {
                let name = |id: &Option<RegisterId>| id.map_or("_", |id| register(function, id));
                put!(self, "{}|{}", name(first), name(second));
            }
            Operand::Sink => self.out.push('_'),
            Operand::Label(target) => self.out.push_str(label(labels, *target)),
            Operand::Symbol(symbol, offset) => {
                let name = self.symbol_name(function, *symbol).to_string();
                self.out.push_str(&name);
                self.offset(*offset);
            }
            Operand::Special(special, axis) => {
                put!(self, "%{}", special.name());
                if let Some(axis) = axis {
                    put!(self, ".{}", axis.name());
                }
            }
            Operand::Prototype(index) => {
                let prototype = function.prototypes.get(*index as usize);
                self.out.push_str(prototype.map_or("_", |prototype| &prototype.name));
            }
            Operand::Targets(index) => {
                let list = function.targets.get(*index as usize);
                self.out.push_str(list.map_or("_", |list| &list.name));
            }
        }
    }

    fn address(&mut self, function: &Function, address: Address) {
        match address.base {
            AddressBase::Register(id) => self.out.push_str(register(function, id)),
            AddressBase::Variable(symbol) => {
                let name = self.symbol_name(function, symbol).to_string();
                self.out.push_str(&name);
            }
            AddressBase::None => {
                put!(self, "{}", address.offset);
                return;
            }
        }
        self.offset(address.offset);
    }

    fn offset(&mut self, offset: i64) {
        match offset {
            0 => {}
            // `+-4`, as NVIDIA's own compilers write it: ptxas does not take `-4`.
            _ => put!(self, "+{offset}"),
        }
    }
}

type Labels<'m> = HashMap<u32, Vec<&'m str>>;

fn labels_by_target(function: &Function) -> Labels<'_> {
    let mut labels = Labels::new();
    for label in &function.labels {
        labels.entry(label.target).or_default().push(&label.name);
    }
    labels
}

fn label<'m>(labels: &Labels<'m>, target: u32) -> &'m str {
    labels.get(&target).and_then(|names| names.first()).copied().unwrap_or("_")
}

fn register(function: &Function, id: RegisterId) -> &str {
    function.registers.get(id.index()).map_or("_", |register| &register.name)
}

/// Splits `%r12` into `%r` and 12; only names with `%` and a plain number.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[prefix.len()..];
    let plain = digits == "0" || !digits.starts_with('0');
    let number: u32 = digits.parse().ok()?;
    (plain && prefix.len() > 1 && number < u32::MAX).then_some((prefix, number))
}

/// Prefixes of names that are no registers, which a bank would clash with.
fn taken_prefixes(function: &Function) -> HashSet<&str> {
    let variables = function.locals.iter().chain(&function.params).chain(&function.returns);
    let names = variables.map(|variable| variable.name.as_str());
    let prototypes = function.prototypes.iter().map(|prototype| prototype.name.as_str());
    let targets = function.targets.iter().map(|list| list.name.as_str());
    let all = names.chain(prototypes).chain(targets);
    all.filter_map(numbered).map(|(prefix, _)| prefix).collect()
}
