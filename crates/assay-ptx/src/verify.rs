//! Checks a module that did not come from the parser, such as one that was changed or built.
//!
//! The parser makes the same checks with the same table while it reads, so what it returns passes.

use std::collections::HashSet;

use crate::check::{Complaint, Context, check};
use crate::decode::find_row;
use crate::module::{
    AddressBase, Function, FunctionKind, Instruction, Module, Operand, Position, Symbol, Targets,
};
use crate::types::Type;

/// What is wrong with a module.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{function}, instruction {instruction} (line {}): {message}", position.line)]
pub struct VerifyError {
    /// The name of the function.
    pub function: String,
    /// The index of the instruction; the length of the body for what belongs to none.
    pub instruction: usize,
    /// Where the instruction stood in the text it came from.
    pub position: Position,
    /// What is wrong.
    pub message: String,
}

/// Checks every instruction of a module against the table of opcodes.
///
/// # Errors
/// The first problem: an opcode that the table does not have, operands of the wrong number, kind
/// or type, a guard that is no predicate, or an index that points at nothing.
pub fn verify(module: &Module) -> Result<(), VerifyError> {
    for function in &module.functions {
        verify_function(module, function)?;
    }
    Ok(())
}

fn verify_function(module: &Module, function: &Function) -> Result<(), VerifyError> {
    let error = |instruction: usize, message: String| VerifyError {
        function: function.name.clone(),
        instruction,
        position: function.body.get(instruction).map_or(function.position, |i| i.position),
        message,
    };
    let end = function.body.len();
    let declared_only = function.kind == FunctionKind::Declaration;
    if declared_only && !function.body.is_empty() {
        return Err(error(end, "a declaration has a body".to_string()));
    }
    let mut names = HashSet::new();
    if let Some(twice) = function.registers.iter().find(|register| !names.insert(&register.name)) {
        return Err(error(end, format!("two registers are named `{}`", twice.name)));
    }
    let within = |target: &u32| *target as usize <= end;
    if let Some(label) = function.labels.iter().find(|label| !within(&label.target)) {
        return Err(error(end, format!("the label `{}` is behind the end", label.name)));
    }
    for list in &function.targets {
        if let Targets::Branch(targets) = &list.targets
            && !targets.iter().all(within)
        {
            return Err(error(end, format!("a target of `{}` is behind the end", list.name)));
        }
    }
    let context = context(module, function);
    for (index, instruction) in function.body.iter().enumerate() {
        verify_instruction(context, end, instruction).map_err(|c| error(index, c.message))?;
    }
    Ok(())
}

fn context<'m>(module: &'m Module, function: &'m Function) -> Context<'m> {
    Context {
        registers: &function.registers,
        params: &function.params,
        returns: &function.returns,
        locals: &function.locals,
        globals: &module.globals,
        functions: &module.functions,
        prototypes: &function.prototypes,
        targets: &function.targets,
    }
}

fn verify_instruction(
    context: Context<'_>,
    end: usize,
    instruction: &Instruction,
) -> Result<(), Complaint> {
    if let Some(guard) = instruction.guard {
        let register = context.registers.get(guard.register.index());
        if register.map(|register| register.ty) != Some(Type::Pred) {
            return Err(Complaint::new("the guard is no predicate"));
        }
    }
    let opcode = &instruction.opcode;
    let Some(row) = find_row(opcode) else {
        return Err(Complaint::new(format!("`{}` is in no row of the table", opcode.text)));
    };
    let mut operands = instruction.operands.clone();
    check(context, opcode, row, &mut operands)?;
    if operands != instruction.operands {
        let message = format!("the operands of `{}` are not in their one shape", opcode.text);
        return Err(Complaint::new(message));
    }
    operands.iter().try_for_each(|operand| verify_indices(context, end, operand))
}

/// Checks indices that the table does not know of.
fn verify_indices(context: Context<'_>, end: usize, operand: &Operand) -> Result<(), Complaint> {
    let exists = match operand {
        Operand::Label(target) => *target as usize <= end,
        Operand::Targets(index) => (*index as usize) < context.targets.len(),
        Operand::Prototype(index) => (*index as usize) < context.prototypes.len(),
        Operand::Address(address) | Operand::Tensor(address, _) => match address.base {
            AddressBase::Variable(Symbol::Local(index)) => (index as usize) < context.locals.len(),
            _ => true,
        },
        _ => true,
    };
    if exists { Ok(()) } else { Err(Complaint::new("an operand points at nothing")) }
}
