//! Registers that hold one value during a whole launch: kept once, for all lanes of all warps.
//!
//! Compilers write constants of a loop into registers over and over. A register that one unguarded
//! instruction writes, whatever path leads to its reads, and that gets a constant, a kernel's
//! parameter or the address of a variable, needs no row: who reads it reads the launch's pool of
//! constants, and the instruction that writes it is counted and does nothing.

use assay_ptx::liveness::{Liveness, for_each_written};
use assay_ptx::module::{Function, Instruction, Operand, RegisterId};
use assay_ptx::opcode::{Base, StateSpace, Type};

use super::body::Body;
use super::layout::Home;
use super::memory;
use crate::execute::frame::{CONSTANT, Slot};

/// Which registers are written by one instruction on every way to their reads.
pub(super) fn written_once(source: &Function, liveness: &Liveness) -> Vec<bool> {
    let mut count = vec![0_u32; source.registers.len()];
    for instruction in &source.body {
        for_each_written(instruction, |id| count[id.index()] += 1);
    }
    // Their first reads may come before the write.
    liveness.undefined.iter().for_each(|id| count[id.index()] = u32::MAX);
    count.into_iter().map(|count| count == 1).collect()
}

/// The register that an instruction makes a constant of the launch, and the constant's slot.
pub(super) fn constant_of(body: &mut Body<'_, '_>, i: &Instruction) -> Option<(RegisterId, Slot)> {
    let Some(&Operand::Register(id)) = i.operands.first() else { return None };
    let bits = body.register_bits(id);
    if i.guard.is_some() || !matches!(bits, 16 | 32 | 64) {
        return None;
    }
    let slot = match i.opcode.base {
        Base::Mov => moved(body, i, bits)?,
        Base::Ld if i.opcode.vector == 1 => memory::parameter_constant(body, i, bits)?,
        Base::Cvta if bits == 64 && has_no_window(i) => known(body, i.operands.get(1)?, bits)?,
        _ => return None,
    };
    (slot & CONSTANT != 0).then_some((id, slot))
}

fn moved(body: &mut Body<'_, '_>, i: &Instruction, bits: u32) -> Option<Slot> {
    let ty = i.opcode.ty()?;
    if ty == Type::Pred || ty.bits() != bits {
        return None;
    }
    let operand = i.operands.get(1)?;
    match operand {
        Operand::Register(_) => known(body, operand, bits),
        Operand::Symbol(symbol, _) if matches!(body.home(*symbol), Home::Frame(_)) => None,
        Operand::Immediate(_) | Operand::Float32(_) | Operand::Float64(_) | Operand::Symbol(..) => {
            body.source(operand, bits, ty.is_float()).ok()
        }
        _ => None,
    }
}

/// A register that is known to be a constant.
fn known(body: &Body<'_, '_>, operand: &Operand, bits: u32) -> Option<Slot> {
    let Operand::Register(id) = operand else { return None };
    (body.register_bits(*id) == bits).then(|| body.register(*id))
}

/// Generic addresses of global and constant memory are the addresses themselves.
fn has_no_window(i: &Instruction) -> bool {
    matches!(i.opcode.space(), StateSpace::Global | StateSpace::Const)
}
