//! Lowers bulk copies, tensor maps and the fence of the asynchronous proxy.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Group, Modifier, StateSpace};

use super::body::{Body, Lowered, Unsupported};
use super::memory::{add_list, address_operand, atomic_operation, atomic_type, space, widened};
use crate::execute::bulk::{Bulk, Direction, Reduction};
use crate::execute::effect::{Access, Effect, SpaceKind};
use crate::execute::frame::{Operands, Slot};
use crate::execute::tensor_map::BulkTensor;
use crate::tensor_map as layout;

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::CpAsyncBulk | Base::CpReduceAsyncBulk => copy(body, i),
        Base::CpAsyncBulkTensor | Base::CpReduceAsyncBulkTensor => tensor(body, i),
        // They bring nothing nearer: there are no caches.
        Base::CpAsyncBulkPrefetch | Base::CpAsyncBulkPrefetchTensor => Ok(()),
        Base::CpAsyncBulkCommitGroup => {
            body.effect(Effect::CommitBulk, Operands::default());
            Ok(())
        }
        Base::CpAsyncBulkWaitGroup => wait(body, i),
        Base::TensormapReplace => replace(body, i),
        Base::TensormapCpFenceproxy => copy_map(body, i),
        Base::FenceProxy => {
            let crosses = [Modifier::ProxyAsync, Modifier::ProxyAsyncGeneric];
            let shared = i.opcode.space() != StateSpace::Global;
            if shared && crosses.iter().any(|&proxy| i.opcode.has(proxy)) {
                body.effect(Effect::FenceAsync, Operands::default());
            }
            Ok(())
        }
        _ => Err(Unsupported),
    }
}

/// The 64-bit address in an operand.
fn address(body: &mut Body<'_, '_>, operand: &Operand) -> Lowered<Slot> {
    let at = body.address(address_operand(operand)?)?;
    if at.frame { Err(Unsupported) } else { Ok(widened(body, at)) }
}

fn direction(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered<Direction> {
    let [to, from] = i.opcode.spaces[..] else {
        return Err(Unsupported);
    };
    let direction = match (to, from) {
        (StateSpace::Global, _) => Direction::Out,
        (_, StateSpace::Global) => Direction::In,
        _ => Direction::Across,
    };
    if direction != Direction::In {
        body.context.code.async_reads = true;
    }
    Ok(direction)
}

/// `cp{.reduce}.async.bulk [d], [a], size, ...`
fn copy(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let direction = direction(body, i)?;
    if i.opcode.has(Modifier::IgnoreOob) {
        return Err(Unsupported);
    }
    let reduction = match i.opcode.base {
        Base::CpReduceAsyncBulk => Some(Reduction {
            operation: atomic_operation(i)?,
            ty: atomic_type(i.opcode.ty().ok_or(Unsupported)?)?,
            flushes: false,
        }),
        _ => None,
    };
    let masked = i.opcode.has(Modifier::CpMask);
    let multicast = i.opcode.has(Modifier::MulticastCluster);
    let d = address(body, &i.operands[0])?;
    let a = address(body, &i.operands[1])?;
    let size = body.source(&i.operands[2], 32, false)?;
    let b = match direction {
        Direction::Out => body.constant_bits(0, 64),
        _ => address(body, i.operands.get(3).ok_or(Unsupported)?)?,
    };
    // The mask of blocks follows the mbarrier; that of bytes is the last operand.
    let mask = match (i.operands.get(4), i.operands.last()) {
        (Some(blocks), _) if multicast => body.source(blocks, 16, false)?,
        (_, Some(last)) if masked => body.source(last, 16, false)?,
        _ => size,
    };
    let c = add_list(body, [size, mask, 0, 0, 0, 0, 0, 0]);
    let bulk = Bulk { direction, reduction, masked, multicast };
    body.effect(Effect::Bulk(bulk), Operands { d, a, b, c, ..Operands::default() });
    Ok(())
}

/// `cp{.reduce}.async.bulk.tensor`
fn tensor(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let direction = direction(body, i)?;
    let (pixels, four_rows) = match i.opcode.modifiers.of_group(Group::LoadMode) {
        None | Some(Modifier::Tile) => (false, false),
        Some(Modifier::TileGather4 | Modifier::TileScatter4) => (false, true),
        Some(Modifier::Im2col) => (true, false),
        // An H200 refuses every store of pixels that was tried.
        Some(_) => return Err(Unsupported),
    };
    let rank = match i.opcode.modifiers.of_group(Group::Dimension) {
        Some(Modifier::D1) => 1,
        Some(Modifier::D2) => 2,
        Some(Modifier::D3) => 3,
        Some(Modifier::D4) => 4,
        Some(Modifier::D5) => 5,
        _ => return Err(Unsupported),
    };
    let refused = [Modifier::CtaGroup1, Modifier::CtaGroup2];
    if refused.iter().any(|&modifier| i.opcode.has(modifier)) {
        return Err(Unsupported);
    }
    let operation = match i.opcode.base {
        Base::CpReduceAsyncBulkTensor => Some(atomic_operation(i)?),
        _ => None,
    };
    let (map, shared) = match direction {
        Direction::Out => (&i.operands[0], &i.operands[1]),
        _ => (&i.operands[1], &i.operands[0]),
    };
    let d = address(body, shared)?;
    let b = match direction {
        Direction::Out => body.constant_bits(0, 64),
        _ => address(body, i.operands.get(2).ok_or(Unsupported)?)?,
    };
    let Operand::Tensor(place, coordinates) = map else {
        return Err(Unsupported);
    };
    let at = body.address(place)?;
    let a = widened(body, at);
    let offsets = match i.operands.get(3) {
        Some(Operand::Vector(offsets)) if direction != Direction::Out => offsets.as_slice(),
        _ => &[],
    };
    let multicast = i.opcode.has(Modifier::MulticastCluster);
    let blocks = match i.operands.get(3 + usize::from(!offsets.is_empty())) {
        Some(blocks) if multicast => body.source(blocks, 16, false)?,
        _ => body.constant_bits(0, 32),
    };
    let count = if four_rows { 5 } else { rank.into() };
    let c = positions(body, coordinates, offsets, count)?;
    add_list(body, [blocks, 0, 0, 0, 0, 0, 0, 0]);
    let tensor = BulkTensor { direction, operation, rank, pixels, multicast, four_rows };
    body.effect(Effect::BulkTensor(tensor), Operands { d, a, b, c, ..Operands::default() });
    Ok(())
}

/// The list of coordinates and offsets.
fn positions(
    body: &mut Body<'_, '_>,
    coordinates: &[Operand],
    offsets: &[Operand],
    count: usize,
) -> Lowered<Slot> {
    let coordinates = match coordinates {
        [Operand::Vector(inner)] => inner.as_slice(),
        other => other,
    };
    if coordinates.len() != count || offsets.len() > 3 {
        return Err(Unsupported);
    }
    let mut list = [body.constant_bits(0, 32); 8];
    for (slot, coordinate) in list.iter_mut().zip(coordinates) {
        *slot = body.source(coordinate, 32, false)?;
    }
    for (slot, offset) in list[5..].iter_mut().zip(offsets) {
        *slot = body.source(offset, 16, false)?;
    }
    Ok(add_list(body, list))
}

fn wait(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let Some(Operand::Immediate(groups)) = i.operands.first() else {
        return Err(Unsupported);
    };
    let read = i.opcode.has(Modifier::Read);
    body.effect(Effect::WaitBulk { groups: *groups as u32, read }, Operands::default());
    Ok(())
}

/// `tensormap.replace`: a store to where the emulator keeps the field.
fn replace(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ordinal = match (i.operands.get(1), i.operands.len()) {
        (Some(Operand::Immediate(ordinal)), 3) if *ordinal < 5 => *ordinal as usize,
        (_, 2) => 0,
        _ => return Err(Unsupported),
    };
    let (offset, bytes) = match i.opcode.modifiers.of_group(Group::TensormapField) {
        Some(Modifier::GlobalAddress) => (layout::ADDRESS, 8),
        Some(Modifier::GlobalStride) if ordinal < 4 => (layout::STRIDES + 8 * ordinal, 8),
        Some(Modifier::GlobalDim) => (layout::SIZES + 4 * ordinal, 4),
        Some(Modifier::BoxDim) => (layout::BOX + 4 * ordinal, 4),
        Some(Modifier::ElementStride) => (layout::ELEMENT_STRIDES + 4 * ordinal, 4),
        Some(Modifier::Rank) => (layout::RANK, 1),
        Some(Modifier::Elemtype) => (layout::ELEMENT, 1),
        Some(Modifier::InterleaveLayout) => (layout::INTERLEAVE, 1),
        Some(Modifier::SwizzleMode) => (layout::SWIZZLE, 1),
        Some(Modifier::SwizzleAtomicity) => (layout::ATOMICITY, 1),
        Some(Modifier::FillMode) => (layout::FILL, 1),
        _ => return Err(Unsupported),
    };
    let place = address_operand(&i.operands[0])?;
    let kind = space(body, i, place)?;
    let at = body.address(place)?;
    let value = i.operands.last().ok_or(Unsupported)?;
    let b = body.source(value, if bytes == 8 { 64 } else { 32 }, false)?;
    let access = plain(kind, bytes, 1, at.wide);
    let immediate = (at.offset as u64).wrapping_add(offset as u64);
    body.effect(
        Effect::Store(access),
        Operands { a: at.slot, b, immediate, ..Operands::default() },
    );
    Ok(())
}

/// `tensormap.cp_fenceproxy [d], [a], 128`: a copy, and everyone sees it at once.
fn copy_map(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let to = body.address(address_operand(&i.operands[0])?)?;
    let from = body.address(address_operand(&i.operands[1])?)?;
    let part = 16;
    for number in 0..layout::TENSOR_MAP_BYTES / part {
        let mut list = [0; 8];
        list[..4].fill_with(|| body.temporary(32));
        let c = add_list(body, list);
        let step = (part * number) as u64;
        let moves = [(from, SpaceKind::Shared, false), (to, SpaceKind::Global, true)];
        for (at, kind, stores) in moves {
            let access = plain(kind, 4, 4, at.wide);
            let effect = if stores { Effect::Store(access) } else { Effect::Load(access) };
            let immediate = (at.offset as u64).wrapping_add(step);
            body.effect(effect, Operands { a: at.slot, c, immediate, ..Operands::default() });
        }
    }
    Ok(())
}

fn plain(space: SpaceKind, bytes: u8, count: u8, wide_address: bool) -> Access {
    Access {
        space,
        bytes,
        count,
        signed: false,
        wide: bytes == 8,
        half: false,
        wide_address,
        polls: false,
    }
}
