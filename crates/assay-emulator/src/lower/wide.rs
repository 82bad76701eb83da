//! Lowers moves, loads, stores and atomics of 128-bit registers.
//!
//! Such a register has four rows: a 64-bit register with the lower half, then one with the upper.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Modifier, Type};

use super::body::{Body, Lowered, Unsupported};
use super::memory::{
    add_list, address_operand, copy, framed, pack, parts_of, polls, space, unpack_register,
};
use crate::execute::effect::{Access, AtomicWide, Effect};
use crate::execute::frame::{Operands, Slot};

/// Lowers an instruction whose type is `.b128`.
pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::Mov => moves(body, i),
        Base::Ld | Base::Ldu => access(body, i, 1, 0),
        Base::St => access(body, i, 0, 1),
        Base::Atom => atomic(body, i),
        _ => Err(Unsupported),
    }
}

/// Whether this file lowers an instruction.
pub(super) fn is_wide(i: &Instruction) -> bool {
    i.opcode.types.contains(&Type::B128)
}

fn halves(slot: Slot) -> [Slot; 2] {
    [slot, slot + 2]
}

/// The rows of a 128-bit register, or rows that nobody reads for a sink.
fn register(body: &mut Body<'_, '_>, operand: &Operand) -> Lowered<Slot> {
    match operand {
        Operand::Register(id) if body.register_bits(*id) == 128 => Ok(body.register(*id)),
        Operand::Sink => Ok(body.temporary(128)),
        _ => Err(Unsupported),
    }
}

fn moves(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match (&i.operands[0], &i.operands[1]) {
        (Operand::Vector(parts), whole) => {
            let whole = register(body, whole)?;
            for (parts, half) in parts.chunks(parts.len().div_ceil(2)).zip(halves(whole)) {
                unpack_register(body, parts, half, 64)?;
            }
        }
        (whole, Operand::Vector(parts)) => {
            let whole = register(body, whole)?;
            let count = parts.len().div_ceil(2);
            for (parts, half) in parts.chunks(count).zip(halves(whole)) {
                pack(body, half, parts, 64, 64 / count as u32)?;
            }
        }
        (to, from) => {
            let (to, from) = (register(body, to)?, register(body, from)?);
            for (d, a) in halves(to).into_iter().zip(halves(from)) {
                copy(body, d, a, 64);
            }
        }
    }
    Ok(())
}

/// A load or store of 128-bit registers is one of twice as many 64-bit ones.
fn access(body: &mut Body<'_, '_>, i: &Instruction, at: usize, value: usize) -> Lowered {
    let address = address_operand(&i.operands[at])?;
    let kind = space(body, i, address)?;
    let parts = parts_of(&i.operands[value]);
    let mut list = [0; 8];
    if 2 * parts.len() > list.len() {
        return Err(Unsupported);
    }
    for (pair, part) in list.chunks_mut(2).zip(parts) {
        pair.copy_from_slice(&halves(register(body, part)?));
    }
    let at = body.address(address)?;
    let stores = i.opcode.base == Base::St;
    let access = Access {
        space: framed(kind, at),
        bytes: 8,
        count: 2 * parts.len() as u8,
        signed: false,
        wide: true,
        half: false,
        wide_address: at.wide,
        polls: !stores && polls(i),
    };
    let c = add_list(body, list);
    let operands = Operands { a: at.slot, c, immediate: at.offset as u64, ..Operands::default() };
    body.effect(if stores { Effect::Store(access) } else { Effect::Load(access) }, operands);
    Ok(())
}

/// `atom.exch.b128` and `atom.cas.b128`: the list holds the halves of the result, of `b`, of `c`.
fn atomic(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let address = address_operand(&i.operands[1])?;
    let kind = space(body, i, address)?;
    let compares = i.opcode.has(Modifier::Cas);
    let d = halves(register(body, &i.operands[0])?);
    let b = halves(register(body, &i.operands[2])?);
    let c =
        if compares { halves(register(body, i.operands.get(3).ok_or(Unsupported)?)?) } else { b };
    let at = body.address(address)?;
    let wide = AtomicWide { space: framed(kind, at), compares, wide_address: at.wide };
    let list = add_list(body, [d[0], d[1], b[0], b[1], c[0], c[1], 0, 0]);
    let immediate = at.offset as u64;
    let operands = Operands { a: at.slot, c: list, immediate, ..Operands::default() };
    body.effect(Effect::AtomicWide(wide), operands);
    Ok(())
}
