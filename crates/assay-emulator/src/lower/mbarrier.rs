//! Lowers the `mbarrier` family.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Modifier};

use super::body::{Body, Lowered, Unsupported};
use super::memory;
use crate::arithmetic::bits::MbarrierPending;
use crate::execute::effect::{Effect, Mbarrier, MbarrierOperation};
use crate::execute::frame::Operands;

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::MbarrierInit => simple(body, i, MbarrierOperation::Init),
        Base::MbarrierInval => simple(body, i, MbarrierOperation::Invalidate),
        Base::MbarrierExpectTx => simple(body, i, MbarrierOperation::Expect),
        Base::MbarrierCompleteTx => simple(body, i, MbarrierOperation::Complete),
        Base::CpAsyncMbarrierArrive => {
            let counted = i.opcode.has(Modifier::Noinc);
            simple(body, i, MbarrierOperation::CopiesArrive { counted })
        }
        Base::MbarrierArrive | Base::MbarrierArriveDrop => arrive(body, i),
        Base::MbarrierTestWait | Base::MbarrierTryWait => wait(body, i),
        Base::MbarrierPendingCount => {
            let d = body.destination(&i.operands[0], 32)?;
            let a = body.source(&i.operands[1], 64, false)?;
            let function = body.pick::<MbarrierPending>();
            body.run(function, Operands { d, a, ..Operands::default() });
            Ok(())
        }
        _ => Err(Unsupported),
    }
}

/// The address in operand `position`, and the operand behind it, if any, in `b`.
fn at(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    position: usize,
    bits: u32,
    operation: MbarrierOperation,
) -> Lowered<(Mbarrier, Operands)> {
    let address = memory::address_operand(&i.operands[position])?;
    let space = memory::space(body, i, address)?;
    let at = body.address(address)?;
    let b = match i.operands.get(position + 1) {
        Some(operand) => body.source(operand, bits, false)?,
        None => body.constant_bits(1, 32),
    };
    let operands = Operands { a: at.slot, b, immediate: at.offset as u64, ..Operands::default() };
    Ok((Mbarrier { operation, space, wide_address: at.wide }, operands))
}

fn simple(body: &mut Body<'_, '_>, i: &Instruction, operation: MbarrierOperation) -> Lowered {
    let (mbarrier, operands) = at(body, i, 0, 32, operation)?;
    body.effect(Effect::Mbarrier(mbarrier), operands);
    Ok(())
}

fn arrive(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let expects = i.opcode.has(Modifier::ExpectTx);
    let operation = MbarrierOperation::Arrive {
        drops: i.opcode.base == Base::MbarrierArriveDrop,
        counted: !expects && i.operands.len() > 2,
        expects,
        completes: !i.opcode.has(Modifier::NoComplete),
    };
    let (mbarrier, mut operands) = at(body, i, 1, 32, operation)?;
    operands.d = match &i.operands[0] {
        Operand::Sink => body.temporary(64),
        other => body.destination(other, 64)?,
    };
    body.effect(Effect::Mbarrier(mbarrier), operands);
    Ok(())
}

fn wait(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let parity = i.opcode.has(Modifier::Parity);
    let operation = MbarrierOperation::Wait { parity };
    let (mbarrier, mut operands) = at(body, i, 1, if parity { 32 } else { 64 }, operation)?;
    (operands.p, operands.q) = body.predicates(&i.operands[0])?;
    body.effect(Effect::Mbarrier(mbarrier), operands);
    Ok(())
}
