//! Writes a module as PTX text that parses back to an equal module (positions aside).
//!
//! Order matters to PTX, where a name is declared before its use: functions are declared in their
//! order, kernels are defined there too, globals come before the first body that names them, and
//! bodies of device functions come last, when everything is declared.

mod body;
mod variable;

use std::fmt::Write;

use crate::module::{
    AddressBase, Function, FunctionKind, Linkage, Module, Operand, Section, Symbol, Tuning,
};

/// Writes a module as PTX text.
pub fn print(module: &Module) -> String {
    let mut printer = Printer { module, out: String::new(), globals: 0 };
    printer.header();
    for function in &module.functions {
        printer.declare_or_define(function);
    }
    printer.globals_below(module.globals.len());
    for function in &module.functions {
        if function.kind == FunctionKind::Device {
            printer.definition(function);
        }
    }
    printer.trailer();
    printer.out
}

struct Printer<'m> {
    module: &'m Module,
    out: String,
    /// Globals written so far.
    globals: usize,
}

/// Writes to a string, which cannot fail.
macro_rules! put {
    ($self:ident, $($argument:tt)*) => {{
        let _ = write!($self.out, $($argument)*);
    }};
}
use put;

impl<'m> Printer<'m> {
    fn header(&mut self) {
        let module = self.module;
        put!(self, ".version {}.{}\n.target {}", module.version.0, module.version.1, module.target);
        for option in &module.target_options {
            put!(self, ", {option}");
        }
        put!(self, "\n.address_size {}\n\n", module.address_size);
        for pragma in &module.pragmas {
            put!(self, ".pragma \"{pragma}\";\n");
        }
    }

    fn trailer(&mut self) {
        for &(alias, target) in &self.module.aliases {
            let name = |id: crate::FunctionId| {
                self.module.functions.get(id.0 as usize).map_or("_", |function| &function.name)
            };
            let line = format!(".alias {}, {};\n", name(alias), name(target));
            self.out.push_str(&line);
        }
        for (number, path) in &self.module.files {
            put!(self, ".file {number} \"{path}\"\n");
        }
        for Section { name, text } in &self.module.sections {
            put!(self, ".section {name}\n{{\n{text}\n}}\n");
        }
    }

    /// Declares a function, or defines it when it is a kernel.
    fn declare_or_define(&mut self, function: &'m Function) {
        if function.kind == FunctionKind::Kernel {
            self.globals_below(globals_named(function));
            self.definition(function);
        } else {
            self.signature(function);
            self.out.push_str(";\n\n");
        }
    }

    /// Writes the globals with an index below `end` that are not written yet.
    fn globals_below(&mut self, end: usize) {
        while self.globals < end {
            let Some(variable) = self.module.globals.get(self.globals) else { return };
            self.globals += 1;
            self.variable(variable);
            self.out.push_str(";\n");
        }
    }

    fn definition(&mut self, function: &'m Function) {
        self.signature(function);
        self.out.push_str("\n{\n");
        self.body(function);
        self.out.push_str("}\n\n");
    }

    fn signature(&mut self, function: &'m Function) {
        self.linkage(function.linkage);
        let kernel = function.kind == FunctionKind::Kernel;
        put!(self, "{} ", if kernel { ".entry" } else { ".func" });
        let (first, rest) = match function.attributes.split_first() {
            Some((first, rest)) => (Some(first), rest),
            None => (None, &[][..]),
        };
        if let Some(first) = first {
            put!(self, ".attribute({first}) ");
        }
        if !function.returns.is_empty() {
            self.parameters(&function.returns);
            self.out.push(' ');
        }
        self.out.push_str(&function.name);
        self.parameters(&function.params);
        for attribute in rest {
            put!(self, "\n.attribute({attribute})");
        }
        self.tuning(&function.tuning);
    }

    fn tuning(&mut self, tuning: &Tuning) {
        let triples = [
            (".maxntid", tuning.max_threads),
            (".reqntid", tuning.required_threads),
            (".reqnctapercluster", tuning.required_cluster),
        ];
        for (name, triple) in triples {
            if let Some([x, y, z]) = triple {
                put!(self, "\n{name} {x}, {y}, {z}");
            }
        }
        let numbers = [
            (".minnctapersm", tuning.min_blocks),
            (".maxnreg", tuning.max_registers),
            (".maxclusterrank", tuning.max_cluster_rank),
            (".abi_preserve", tuning.abi_preserve),
            (".abi_preserve_control", tuning.abi_preserve_control),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                put!(self, "\n{name} {number}");
            }
        }
        let flags = [
            (".explicitcluster", tuning.explicit_cluster),
            (".blocksareclusters", tuning.blocks_are_clusters),
            (".noreturn", tuning.no_return),
        ];
        for (name, _) in flags.into_iter().filter(|(_, set)| *set) {
            put!(self, "\n{name}");
        }
    }

    fn linkage(&mut self, linkage: Linkage) {
        self.out.push_str(match linkage {
            Linkage::Private => "",
            Linkage::Visible => ".visible ",
            Linkage::Extern => ".extern ",
            Linkage::Weak => ".weak ",
            Linkage::Common => ".common ",
        });
    }
}

/// One past the largest index of a global that a function names.
fn globals_named(function: &Function) -> usize {
    let mut end = 0;
    let mut see = |symbol: Symbol| {
        if let Symbol::Global(index) = symbol {
            end = end.max(index as usize + 1);
        }
    };
    for instruction in &function.body {
        for operand in &instruction.operands {
            see_symbols(operand, &mut see);
        }
    }
    for local in &function.locals {
        let references = local.initial.iter().flat_map(|initial| &initial.references);
        references.for_each(|reference| see(reference.symbol));
    }
    end
}

fn see_symbols(operand: &Operand, see: &mut impl FnMut(Symbol)) {
    match operand {
        Operand::Symbol(symbol, _) => see(*symbol),
        Operand::Address(address) | Operand::Tensor(address, _) => {
            if let AddressBase::Variable(symbol) = address.base {
                see(symbol);
            }
        }
        Operand::Vector(parts) | Operand::List(parts) => {
            for part in parts {
                see_symbols(part, see);
            }
        }
        _ => {}
    }
}
