//! Lowers `wgmma`.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Modifier, Type};

use super::body::{Body, Lowered, Unsupported};
use super::{matrix, memory};
use crate::execute::effect::Effect;
use crate::execute::frame::{NEGATE_R, Operands, Slot};
use crate::execute::wgmma::WarpgroupMultiply;

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let effect = match i.opcode.base {
        Base::WgmmaFence => Effect::WarpgroupFence,
        Base::WgmmaCommitGroup => Effect::WarpgroupCommit,
        Base::WgmmaWaitGroup => Effect::WarpgroupWait { groups: constant(&i.operands, 0)? as u32 },
        Base::WgmmaMmaAsync => return multiply(body, i),
        _ => return Err(Unsupported),
    };
    body.effect(effect, Operands::default());
    Ok(())
}

/// `d, a or a-desc, b-desc, scale-d`, then for floats the signs of A and B, then for 16 bits
/// whether those in shared memory are turned.
fn multiply(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (Some(shape), &[d, a, b]) = (i.opcode.shape, i.opcode.types.as_slice()) else {
        return Err(Unsupported);
    };
    // Metadata and selector come before the scale-d.
    let (sparse, bits) = (i.opcode.has(Modifier::Sparse), a.bits());
    let scale = if sparse { 5 } else { 3 };
    let selector = if sparse { Some(constant(&i.operands, 4)? as u8) } else { None };
    if selector > Some(u8::from(bits > 8)) {
        return Err(Unsupported);
    }
    let in_registers = matches!(i.operands[1], Operand::Vector(_));
    let float = d != Type::S32;
    let wide = matches!(a, Type::F16 | Type::Bf16);
    let flag = |position: usize, wanted: i64| -> Lowered<bool> {
        let there = position < i.operands.len();
        Ok(there && constant(&i.operands, position)? as i64 == wanted)
    };
    let multiply = WarpgroupMultiply {
        columns: shape.n,
        depth: shape.k,
        a: matrix::matrix(a, false)?,
        b: matrix::matrix(b, false)?,
        d: matrix::matrix(d, false)?,
        in_registers,
        a_negated: float && flag(scale + 1, -1)?,
        b_negated: float && flag(scale + 2, -1)?,
        a_turned: wide && !in_registers && flag(scale + 3, 1)?,
        b_turned: wide && flag(scale + if in_registers { 3 } else { 4 }, 1)?,
        saturates: i.opcode.has(Modifier::Satfinite),
        selector,
    };
    let (r, inverted) = body.source_predicate(&i.operands[scale])?;
    let c = lists(body, i, multiply)?;
    let a = if in_registers { 0 } else { body.source(&i.operands[1], 64, false)? };
    let b = body.source(&i.operands[2], 64, false)?;
    let metadata = if sparse { body.source(&i.operands[3], 32, false)? } else { 0 };
    let flags = if inverted { NEGATE_R } else { 0 };
    body.context.code.async_reads = true;
    body.effect(
        Effect::WarpgroupMultiply(multiply),
        Operands { d: metadata, a, b, c, r, flags, ..Operands::default() },
    );
    Ok(())
}

/// The accumulators in as many lists as they fill, then A's registers; gives the first.
fn lists(body: &mut Body<'_, '_>, i: &Instruction, multiply: WarpgroupMultiply) -> Lowered<Slot> {
    let Operand::Vector(accumulators) = &i.operands[0] else { return Err(Unsupported) };
    let mut lists = vec![[0; 8]; multiply.lists()];
    for (number, part) in accumulators.iter().enumerate() {
        lists[number / 8][number % 8] = body.destination(part, 32)?;
    }
    if let (Operand::Vector(parts), Some(last)) = (&i.operands[1], lists.last_mut()) {
        for (slot, part) in last.iter_mut().zip(parts) {
            *slot = body.source(part, 32, false)?;
        }
    }
    let first = body.context.code.lists.len() as Slot;
    for list in lists {
        memory::add_list(body, list);
    }
    Ok(first)
}

fn constant(operands: &[Operand], position: usize) -> Lowered<u64> {
    match operands.get(position) {
        Some(Operand::Immediate(value)) => Ok(*value),
        _ => Err(Unsupported),
    }
}
