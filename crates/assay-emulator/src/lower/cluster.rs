//! Lowers what blocks of a cluster do with each other.

use assay_ptx::module::Instruction;
use assay_ptx::opcode::{Base, Modifier, StateSpace};

use super::body::{Body, Lowered, Unsupported};
use super::memory;
use crate::execute::effect::{AsyncAccess, Atomic, Effect, SpaceKind};
use crate::execute::frame::Operands;

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::BarrierCluster => barrier(body, i),
        Base::Mapa => map(body, i),
        Base::Getctarank => rank(body, i),
        Base::StAsync | Base::RedAsync => store_async(body, i),
        _ => Err(Unsupported),
    }
}

/// `barrier.cluster.arrive` and `.wait`. Memory is always up to date here, so `.relaxed` and
/// `.release` are one.
fn barrier(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let waits = i.opcode.has(Modifier::Wait);
    let aligned = i.opcode.has(Modifier::Aligned);
    body.effect(Effect::ClusterBarrier { waits, aligned }, Operands::default());
    Ok(())
}

/// Bits of the address, and whether it is generic, which those of 32 bits are not here.
fn form(i: &Instruction) -> Lowered<(u32, bool)> {
    let bits = i.opcode.ty().ok_or(Unsupported)?.bits();
    let generic = i.opcode.space() == StateSpace::Generic;
    if generic && bits == 32 { Err(Unsupported) } else { Ok((bits, generic)) }
}

/// `mapa{.shared::cluster}.type d, a, b`
fn map(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (bits, generic) = form(i)?;
    let a = body.source(&i.operands[1], bits, false)?;
    let b = body.source(&i.operands[2], 32, false)?;
    let d = body.destination(&i.operands[0], bits)?;
    let effect = Effect::MapShared { wide: bits == 64, generic };
    body.effect(effect, Operands { d, a, b, ..Operands::default() });
    Ok(())
}

/// `getctarank{.shared::cluster}.type d, a`
fn rank(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (bits, generic) = form(i)?;
    let a = body.source(&i.operands[1], bits, false)?;
    let d = body.destination(&i.operands[0], 32)?;
    let effect = Effect::RankOfShared { wide: bits == 64, generic };
    body.effect(effect, Operands { d, a, ..Operands::default() });
    Ok(())
}

/// `st.async` and `red.async` to `[a]`, from `b`, with the mbarrier `[c]`.
fn store_async(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let [to, value, barrier] = &i.operands[..] else {
        return Err(Unsupported);
    };
    let space = match i.opcode.space() {
        StateSpace::Generic => SpaceKind::Generic,
        StateSpace::SharedCluster => SpaceKind::Cluster,
        _ => return Err(Unsupported),
    };
    let to = body.address(memory::address_operand(to)?)?;
    let barrier = body.address(memory::address_operand(barrier)?)?;
    let mut list = [0; 8];
    let parts = memory::parts_of(value);
    if parts.len() > 4 || ty.bytes() as usize * parts.len() > 16 {
        return Err(Unsupported);
    }
    for (slot, part) in list.iter_mut().zip(parts) {
        *slot = body.source(part, ty.bits(), ty.is_float())?;
    }
    // Slots of components that are not there are read too.
    let first = list[0];
    list[parts.len()..].fill(first);
    let combine = match i.opcode.base {
        Base::RedAsync => Some(Atomic {
            space,
            operation: memory::atomic_operation(i)?,
            ty: memory::atomic_type(ty)?,
            returns: false,
            wide_address: to.wide,
            count: 1,
        }),
        _ => None,
    };
    let access = AsyncAccess {
        space,
        bytes: ty.bytes() as u8,
        count: parts.len() as u8,
        wide: ty.bits() == 64,
        wide_address: to.wide,
        wide_barrier: barrier.wide,
        barrier_offset: barrier.offset as u64,
        combine,
    };
    let c = memory::add_list(body, list);
    let (a, b, immediate) = (to.slot, barrier.slot, to.offset as u64);
    body.effect(Effect::StoreAsync(access), Operands { a, b, c, immediate, ..Operands::default() });
    Ok(())
}
