//! Lowers branches, calls and what ends a thread.

use assay_ptx::module::{Instruction, Operand, Symbol, Targets};
use assay_ptx::opcode::Base;

use super::body::{Body, Lowered, Unsupported};
use super::layout::Home;
use crate::execute::effect::Effect;
use crate::execute::frame::{Operands, Slot};
use crate::program::{Action, BuiltIn, CallSite, Callee, Carried, Code};

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::Bra => branch(body, i),
        Base::BrxIdx => branch_indexed(body, i),
        Base::Call => call(body, i),
        Base::Ret if body.source.is_kernel() => effect(body, Effect::Exit),
        Base::Ret => effect(body, Effect::Return),
        Base::Exit => effect(body, Effect::Exit),
        Base::Trap | Base::Brkpt => effect(body, Effect::Trap),
        Base::Nanosleep => effect(body, Effect::Sleep),
        _ => Err(Unsupported),
    }
}

fn effect(body: &mut Body<'_, '_>, effect: Effect) -> Lowered {
    body.effect(effect, Operands::default());
    Ok(())
}

/// Jumps name instructions until the whole body is lowered.
fn branch(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let Some(Operand::Label(target)) = i.operands.first() else {
        return Err(Unsupported);
    };
    body.emit(Action::Jump(*target), Operands::default());
    Ok(())
}

fn branch_indexed(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let Some(Operand::Targets(list)) = i.operands.get(1) else {
        return Err(Unsupported);
    };
    let Targets::Branch(targets) = &body.source.targets[*list as usize].targets else {
        return Err(Unsupported);
    };
    let a = body.source(&i.operands[0], 32, false)?;
    let tables = &mut body.context.code.branch_tables;
    tables.push(targets.clone());
    let immediate = tables.len() as u64 - 1;
    body.context.tables.push(body.index);
    body.effect(Effect::BranchIndexed, Operands { a, immediate, ..Operands::default() });
    Ok(())
}

/// The branch tables of a function.
pub(super) fn tables_of<'c>(
    code: &'c mut Code,
    owners: &'c [usize],
    function: usize,
) -> impl Iterator<Item = &'c mut Vec<u32>> {
    let tables = code.branch_tables.iter_mut().zip(owners);
    tables.filter(move |(_, owner)| **owner == function).map(|(table, _)| table)
}

fn call(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let [results, target, arguments, _] = &i.operands[..] else {
        return Err(Unsupported);
    };
    let callee = callee(body, target)?;
    let results = carried(body, results, true)?;
    let arguments = carried(body, arguments, false)?;
    body.context.code.calls.push(CallSite { callee, arguments, results });
    let immediate = body.context.code.calls.len() as u64 - 1;
    body.effect(Effect::Call, Operands { immediate, ..Operands::default() });
    Ok(())
}

fn callee(body: &mut Body<'_, '_>, target: &Operand) -> Lowered<Callee> {
    match target {
        Operand::Symbol(Symbol::Function(id), _) => {
            let index = id.0 as usize;
            let function = &body.context.module.functions[index];
            if function.kind == assay_ptx::module::FunctionKind::Declaration {
                return built_in(&function.name).map(Callee::BuiltIn).ok_or(Unsupported);
            }
            let edge = (body.index, index);
            let recursive = body.context.layout.recursive.get(&edge).copied().unwrap_or(true);
            Ok(Callee::Function { index: id.0, recursive })
        }
        Operand::Register(_) => Ok(Callee::Indirect(body.source(target, 64, false)?)),
        _ => Err(Unsupported),
    }
}

fn built_in(name: &str) -> Option<BuiltIn> {
    match name {
        "vprintf" => Some(BuiltIn::Vprintf),
        "__assertfail" => Some(BuiltIn::AssertFail),
        "malloc" => Some(BuiltIn::Malloc),
        "free" => Some(BuiltIn::Free),
        _ => None,
    }
}

fn carried(body: &mut Body<'_, '_>, operand: &Operand, results: bool) -> Lowered<Vec<Carried>> {
    let Operand::List(parts) = operand else {
        return Ok(Vec::new());
    };
    parts.iter().map(|part| carry(body, part, results)).collect()
}

fn carry(body: &mut Body<'_, '_>, part: &Operand, result: bool) -> Lowered<Carried> {
    match part {
        Operand::Symbol(symbol, 0) => {
            let bytes = variable_bytes(body, *symbol).ok_or(Unsupported)?;
            match body.home(*symbol) {
                Home::Frame(offset) => Ok(Carried::Memory(offset, bytes)),
                _ => Err(Unsupported),
            }
        }
        Operand::Register(id) => {
            let bits = body.register_bits(*id);
            if bits == 1 {
                return Err(Unsupported);
            }
            Ok(Carried::Register(body.register(*id), bits / 8))
        }
        Operand::Sink if result => Ok(Carried::Nothing),
        Operand::Immediate(_) if !result => Ok(Carried::Register(body.source(part, 64, false)?, 8)),
        Operand::Float32(_) if !result => Ok(Carried::Register(body.source(part, 32, true)?, 4)),
        Operand::Float64(_) if !result => Ok(Carried::Register(body.source(part, 64, true)?, 8)),
        _ => Err(Unsupported),
    }
}

fn variable_bytes(body: &Body<'_, '_>, symbol: Symbol) -> Option<u32> {
    let variable = match symbol {
        Symbol::Local(index) => body.source.locals.get(index as usize)?,
        Symbol::Parameter(index) => body.source.params.get(index as usize)?,
        Symbol::Return(index) => body.source.returns.get(index as usize)?,
        _ => return None,
    };
    Some(variable.size_bytes() as u32)
}

/// Moves the registers that a call site names.
pub(super) fn relocate_call(call: &mut CallSite, slot: impl Fn(&mut Slot)) {
    if let Callee::Indirect(address) = &mut call.callee {
        slot(address);
    }
    for carried in call.arguments.iter_mut().chain(&mut call.results) {
        if let Carried::Register(register, _) = carried {
            slot(register);
        }
    }
}
