//! Lowers moves, loads, stores, atomics, address conversions and asynchronous copies.

use std::ops::Range;

use assay_ptx::module::{Address, AddressBase, Instruction, Operand, Symbol};
use assay_ptx::opcode::{Base, Group, Modifier, StateSpace, Type};
use assay_ptx::special::SpecialRegister;

use super::body::{Addressed, Body, Lowered, Unsupported};
use crate::arithmetic::bits;
use crate::convert as cvt;
use crate::execute::effect::{Access, Atomic, AtomicOperation, AtomicType, Effect, SpaceKind};
use crate::execute::frame::{Operands, Slot};
use crate::program::Constant;

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::Mov => moves(body, i),
        Base::Ld | Base::Ldu => load(body, i),
        Base::St => store(body, i),
        Base::Atom | Base::Red => atomic(body, i),
        Base::Cvta => convert_address(body, i),
        Base::Isspacep => is_space(body, i),
        Base::CpAsync => copy_async(body, i),
        Base::CpAsyncCommitGroup => commit(body),
        Base::CpAsyncWaitGroup => wait_group(body, i),
        Base::CpAsyncWaitAll => wait_all(body),
        Base::Createpolicy => policy(body, i),
        Base::Alloca | Base::Stacksave | Base::Stackrestore => stack(body, i),
        _ => Err(Unsupported),
    }
}

fn moves(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let bits = ty.bits();
    if ty == Type::Pred {
        return move_predicate(body, i);
    }
    if let Operand::Vector(parts) = &i.operands[0] {
        return unpack(body, parts, &i.operands[1], bits);
    }
    let source = body.source(&i.operands[1], bits, ty.is_float())?;
    let d = body.destination(&i.operands[0], bits)?;
    copy(body, d, source, bits);
    Ok(())
}

/// `d = a` for registers of `bits` bits.
pub(super) fn copy(body: &mut Body<'_, '_>, d: Slot, a: Slot, bits: u32) {
    let function =
        if bits == 64 { body.pick::<bits::Move<u64>>() } else { body.pick::<bits::Move<u32>>() };
    body.run(function, Operands { d, a, ..Operands::default() });
}

fn move_predicate(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (p, _) = body.predicates(&i.operands[0])?;
    if let Operand::Special(SpecialRegister::IsExplicitCluster, _) = i.operands[1] {
        body.effect(Effect::ExplicitCluster, Operands { p, ..Operands::default() });
        return Ok(());
    }
    let a = body.source_predicate(&i.operands[1])?;
    super::arithmetic::predicate_operation(body, p, a, a, crate::execute::frame::COMBINE_AND);
    Ok(())
}

/// `mov.b32 {%rs1, %rs2}, %r1` and its relatives.
fn unpack(body: &mut Body<'_, '_>, parts: &[Operand], source: &Operand, bits: u32) -> Lowered {
    let whole = body.source(source, bits, false)?;
    unpack_register(body, parts, whole, bits)
}

/// Takes the parts of a register of `bits` bits apart, the first from the lowest bits.
pub(super) fn unpack_register(
    body: &mut Body<'_, '_>,
    parts: &[Operand],
    whole: Slot,
    bits: u32,
) -> Lowered {
    let part_bits = bits / parts.len().max(1) as u32;
    // The source may be one of the destinations.
    let saved = body.temporary(bits);
    copy(body, saved, whole, bits);
    for (number, part) in parts.iter().enumerate() {
        if matches!(part, Operand::Sink) {
            continue;
        }
        let Operand::Register(id) = part else {
            return Err(Unsupported);
        };
        let d = body.register(*id);
        let shift = body.constant_bits(u64::from(part_bits * number as u32), 32);
        let shifted = if number == 0 { saved } else { body.temporary(bits) };
        if number > 0 {
            let right = if bits == 64 {
                body.pick::<crate::arithmetic::integer::ShiftRight<u64>>()
            } else {
                body.pick::<crate::arithmetic::integer::ShiftRight<u32>>()
            };
            body.run(right, Operands { d: shifted, a: saved, b: shift, ..Operands::default() });
        }
        let cut = match (bits, part_bits) {
            (64, 64) => body.pick::<bits::Move<u64>>(),
            (64, 32) => body.pick::<cvt::U64ToU32>(),
            (64, 16) => body.pick::<cvt::U64ToU16>(),
            (32, 16) => super::arithmetic::truncation(body),
            (16 | 32, 8) => body.pick::<cvt::Low8>(),
            _ => return Err(Unsupported),
        };
        body.run(cut, Operands { d, a: shifted, ..Operands::default() });
    }
    Ok(())
}

/// Packs parts of `part_bits` bits into `to`, the first into the lowest bits.
pub(super) fn pack(
    body: &mut Body<'_, '_>,
    to: Slot,
    parts: &[Operand],
    bits: u32,
    part_bits: u32,
) -> Lowered {
    let wide = bits == 64;
    let mut whole = None;
    if let [part] = parts {
        let a = body.source(part, part_bits, false)?;
        copy(body, to, a, bits);
        return Ok(());
    }
    for (number, part) in parts.iter().enumerate() {
        let a = body.source(part, part_bits, false)?;
        let extended = if wide {
            let extended = body.temporary(64);
            let extend = body.pick::<cvt::U32ToU64>();
            body.run(extend, Operands { d: extended, a, ..Operands::default() });
            extended
        } else {
            a
        };
        let Some(before) = whole else {
            whole = Some(extended);
            continue;
        };
        let shift = body.constant_bits(u64::from(part_bits * number as u32), 32);
        let shifted = body.temporary(bits);
        let joined = if number + 1 == parts.len() { to } else { body.temporary(bits) };
        let (left, or) = if wide {
            let left = body.pick::<crate::arithmetic::integer::ShiftLeft<u64>>();
            (left, body.pick::<bits::Or<u64>>())
        } else {
            let left = body.pick::<crate::arithmetic::integer::ShiftLeft<u32>>();
            (left, body.pick::<bits::Or<u32>>())
        };
        body.run(left, Operands { d: shifted, a: extended, b: shift, ..Operands::default() });
        body.run(or, Operands { d: joined, a: before, b: shifted, ..Operands::default() });
        whole = Some(joined);
    }
    Ok(())
}

/// The kind of a written space; `.param` depends on what the address names.
pub(super) fn space(body: &Body<'_, '_>, i: &Instruction, address: &Address) -> Lowered<SpaceKind> {
    Ok(match i.opcode.space() {
        StateSpace::Generic => SpaceKind::Generic,
        StateSpace::Global => SpaceKind::Global,
        StateSpace::Shared | StateSpace::SharedCta => SpaceKind::Shared,
        StateSpace::SharedCluster => SpaceKind::Cluster,
        StateSpace::Local => SpaceKind::Local,
        StateSpace::Const => SpaceKind::Const,
        StateSpace::Param | StateSpace::ParamEntry | StateSpace::ParamFunc => {
            let of_kernel = match address.base {
                AddressBase::Variable(Symbol::Parameter(_)) => body.source.is_kernel(),
                AddressBase::Variable(_) => false,
                _ => body.source.is_kernel(),
            };
            if of_kernel { SpaceKind::Param } else { SpaceKind::Local }
        }
        StateSpace::Tex => return Err(Unsupported),
    })
}

pub(super) fn framed(kind: SpaceKind, at: Addressed) -> SpaceKind {
    if at.frame { SpaceKind::Frame } else { kind }
}

pub(super) fn polls(i: &Instruction) -> bool {
    let orderings =
        [Modifier::Volatile, Modifier::Acquire, Modifier::Relaxed, Modifier::Mmio, Modifier::Cv];
    orderings.iter().any(|&modifier| i.opcode.has(modifier))
}

pub(super) fn parts_of(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

pub(super) fn address_operand(operand: &Operand) -> Lowered<&Address> {
    match operand {
        Operand::Address(address) => Ok(address),
        _ => Err(Unsupported),
    }
}

fn load(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let address = address_operand(&i.operands[1])?;
    let parts = parts_of(&i.operands[0]);
    let kind = space(body, i, address)?;
    if kind == SpaceKind::Param && parameter_moves(body, ty, address, parts)? {
        return Ok(());
    }
    let bits = register_bits(body, parts, ty)?;
    let at = body.address(address)?;
    let access = Access {
        space: framed(kind, at),
        bytes: ty.bytes() as u8,
        count: parts.len() as u8,
        signed: ty.is_signed(),
        wide: bits == 64,
        half: bits == 16,
        wide_address: at.wide,
        polls: polls(i),
    };
    let mut operands = Operands { a: at.slot, immediate: at.offset as u64, ..Operands::default() };
    if let [part] = parts {
        operands.d = body.destination(part, bits)?;
    } else {
        let mut list = [0; 8];
        for (slot, part) in list.iter_mut().zip(parts) {
            *slot = body.destination(part, bits)?;
        }
        operands.c = add_list(body, list);
    }
    body.effect(Effect::Load(access), operands);
    Ok(())
}

/// Registers of a load or store are all of one width.
fn register_bits(body: &Body<'_, '_>, parts: &[Operand], ty: Type) -> Lowered<u32> {
    let mut widths = parts.iter().filter_map(|part| match part {
        Operand::Register(id) => Some(body.register_bits(*id)),
        _ => None,
    });
    let first = widths.next().unwrap_or(ty.bits().max(16));
    if widths.any(|width| (width == 64) != (first == 64)) { Err(Unsupported) } else { Ok(first) }
}

pub(super) fn add_list(body: &mut Body<'_, '_>, list: [Slot; 8]) -> Slot {
    body.context.code.lists.push(list);
    body.context.code.lists.len() as u32 - 1
}

/// The lists that an op names by the first of them in `c`, if its effect has some.
pub(super) fn lists_of(effect: Effect, operands: &Operands) -> Option<Range<usize>> {
    let listed = match effect {
        Effect::Load(access) | Effect::Store(access) => access.count > 1,
        Effect::Atomic(atomic) => atomic.count > 1,
        Effect::AtomicWide(_)
        | Effect::Shuffle(_)
        | Effect::CopyAsync { .. }
        | Effect::Bulk(_)
        | Effect::BulkTensor(_)
        | Effect::StoreAsync(_)
        | Effect::Multiply(_)
        | Effect::WarpgroupMultiply(_)
        | Effect::LoadTile(_)
        | Effect::StoreTile(_)
        | Effect::MultiplyTiles(_)
        | Effect::LoadMatrix(_)
        | Effect::StoreMatrix(_) => true,
        _ => false,
    };
    let count = match effect {
        Effect::Multiply(_) => 5,
        Effect::MultiplyTiles(_) => 4,
        Effect::WarpgroupMultiply(multiply) => multiply.lists(),
        Effect::Atomic(_) | Effect::BulkTensor(_) => 2,
        _ => 1,
    };
    let first = operands.c as usize;
    listed.then_some(first..first + count)
}

/// The constant that a load of a kernel parameter into one register of `bits` bits gives.
pub(super) fn parameter_constant(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    bits: u32,
) -> Option<Slot> {
    let ty = i.opcode.ty()?;
    let Operand::Address(address) = i.operands.get(1)? else { return None };
    let cut = bits == 16 && ty.is_signed();
    if cut || !matches!(space(body, i, address), Ok(SpaceKind::Param)) {
        return None;
    }
    let offset = parameter_offset(body, ty, address, 1)?;
    let (bytes, signed) = (ty.bytes() as u8, ty.is_signed());
    let constant = Constant::Parameter { offset, bytes, signed, wide: bits == 64 };
    Some(body.context.constant(constant))
}

/// Where `count` values of a type lie among the parameters, if a parameter holds them all.
fn parameter_offset(body: &Body<'_, '_>, ty: Type, address: &Address, count: usize) -> Option<u32> {
    let AddressBase::Variable(Symbol::Parameter(index)) = address.base else { return None };
    let (layouts, _) = super::layout::parameters(&body.source.params);
    let layout = layouts.get(index as usize)?;
    let (bytes, start) = (u64::from(ty.bytes()), u64::try_from(address.offset).ok()?);
    let end = start.checked_add(bytes * count as u64)?;
    let inside = end <= u64::from(layout.size) && start.is_multiple_of(bytes);
    inside.then(|| layout.offset + start as u32)
}

/// A kernel parameter at a fixed offset is a constant of the launch.
fn parameter_moves(
    body: &mut Body<'_, '_>,
    ty: Type,
    address: &Address,
    parts: &[Operand],
) -> Lowered<bool> {
    let Some(start) = parameter_offset(body, ty, address, parts.len()) else {
        return Ok(false);
    };
    let bytes = ty.bytes();
    for (number, part) in parts.iter().enumerate() {
        let Operand::Register(id) = part else {
            continue;
        };
        let bits = body.register_bits(*id);
        let constant = Constant::Parameter {
            offset: start + bytes * number as u32,
            bytes: bytes as u8,
            signed: ty.is_signed(),
            wide: bits == 64,
        };
        let a = body.context.constant(constant);
        let d = body.register(*id);
        if bits == 16 && ty.is_signed() {
            let cut = super::arithmetic::truncation(body);
            body.run(cut, Operands { d, a, ..Operands::default() });
        } else {
            copy(body, d, a, bits);
        }
    }
    Ok(true)
}

fn store(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let address = address_operand(&i.operands[0])?;
    let parts = parts_of(&i.operands[1]);
    let kind = space(body, i, address)?;
    let at = body.address(address)?;
    let bits = register_bits(body, parts, ty)?;
    let access = Access {
        space: framed(kind, at),
        bytes: ty.bytes() as u8,
        count: parts.len() as u8,
        signed: false,
        wide: bits == 64,
        half: bits == 16,
        wide_address: at.wide,
        polls: false,
    };
    let mut operands = Operands { a: at.slot, immediate: at.offset as u64, ..Operands::default() };
    let source_bits = if bits == 64 { 64 } else { ty.bits().clamp(16, 32) };
    if let [part] = parts {
        operands.b = body.source(part, source_bits, ty.is_float())?;
    } else {
        let mut list = [0; 8];
        for (slot, part) in list.iter_mut().zip(parts) {
            *slot = body.source(part, source_bits, ty.is_float())?;
        }
        operands.c = add_list(body, list);
    }
    body.effect(Effect::Store(access), operands);
    Ok(())
}

pub(super) fn atomic_type(ty: Type) -> Lowered<AtomicType> {
    Ok(match ty {
        Type::U32 | Type::B32 => AtomicType::U32,
        Type::S32 => AtomicType::S32,
        Type::U64 | Type::B64 => AtomicType::U64,
        Type::S64 => AtomicType::S64,
        Type::F32 => AtomicType::F32,
        Type::F64 => AtomicType::F64,
        Type::F16 => AtomicType::F16,
        Type::Bf16 => AtomicType::Bf16,
        Type::F16x2 => AtomicType::F16x2,
        Type::Bf16x2 => AtomicType::Bf16x2,
        Type::B16 => AtomicType::B16,
        _ => return Err(Unsupported),
    })
}

pub(super) fn atomic_operation(i: &Instruction) -> Lowered<AtomicOperation> {
    Ok(match i.opcode.modifiers.of_group(Group::Operation) {
        Some(Modifier::AddOperation) => AtomicOperation::Add,
        Some(Modifier::MinOperation) => AtomicOperation::Minimum,
        Some(Modifier::MaxOperation) => AtomicOperation::Maximum,
        Some(Modifier::And) => AtomicOperation::And,
        Some(Modifier::Or) => AtomicOperation::Or,
        Some(Modifier::Xor) => AtomicOperation::Xor,
        Some(Modifier::Exch) => AtomicOperation::Exchange,
        Some(Modifier::Cas) => AtomicOperation::CompareAndSwap,
        Some(Modifier::Inc) => AtomicOperation::Increment,
        Some(Modifier::Dec) => AtomicOperation::Decrement,
        _ => return Err(Unsupported),
    })
}

fn atomic(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let returns = i.opcode.base == Base::Atom;
    let first = usize::from(returns);
    let address = address_operand(&i.operands[first])?;
    let kind = space(body, i, address)?;
    let at = body.address(address)?;
    let sources = parts_of(&i.operands[first + 1]);
    let atomic = Atomic {
        space: framed(kind, at),
        operation: atomic_operation(i)?,
        ty: atomic_type(ty)?,
        returns,
        wide_address: at.wide,
        count: sources.len() as u8,
    };
    let mut operands = Operands { a: at.slot, immediate: at.offset as u64, ..Operands::default() };
    if sources.len() > 1 {
        return vector_atomic(body, i, atomic, operands, sources, ty);
    }
    operands.b = body.source(&sources[0], ty.bits(), ty.is_float())?;
    if atomic.operation == AtomicOperation::CompareAndSwap {
        let swap = i.operands.get(first + 2).ok_or(Unsupported)?;
        operands.c = body.source(swap, ty.bits(), ty.is_float())?;
    }
    if returns {
        operands.d = body.destination(&i.operands[0], ty.bits())?;
    }
    body.effect(Effect::Atomic(atomic), operands);
    Ok(())
}

/// `red.global.add.v4.f32` and its relatives: sources in one list, destinations in the next.
fn vector_atomic(
    body: &mut Body<'_, '_>,
    i: &Instruction,
    atomic: Atomic,
    mut operands: Operands,
    sources: &[Operand],
    ty: Type,
) -> Lowered {
    let (mut from, mut to) = ([0; 8], [0; 8]);
    if sources.len() > from.len() {
        return Err(Unsupported);
    }
    for (slot, part) in from.iter_mut().zip(sources) {
        *slot = body.source(part, ty.bits(), ty.is_float())?;
    }
    if atomic.returns {
        for (slot, part) in to.iter_mut().zip(parts_of(&i.operands[0])) {
            *slot = body.destination(part, ty.bits())?;
        }
    }
    operands.c = add_list(body, from);
    add_list(body, to);
    body.effect(Effect::Atomic(atomic), operands);
    Ok(())
}

fn named_space(i: &Instruction) -> Lowered<SpaceKind> {
    Ok(match i.opcode.space() {
        StateSpace::Global => SpaceKind::Global,
        StateSpace::Shared | StateSpace::SharedCta => SpaceKind::Shared,
        StateSpace::SharedCluster => SpaceKind::Cluster,
        StateSpace::Local => SpaceKind::Local,
        StateSpace::Const => SpaceKind::Const,
        StateSpace::Param | StateSpace::ParamEntry => SpaceKind::Param,
        _ => return Err(Unsupported),
    })
}

fn convert_address(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let kind = named_space(i)?;
    let a = body.source(&i.operands[1], 64, false)?;
    let d = body.destination(&i.operands[0], 64)?;
    if kind == SpaceKind::Global || kind == SpaceKind::Const {
        copy(body, d, a, 64);
        return Ok(());
    }
    let to = i.opcode.has(Modifier::To);
    let effect = if to { Effect::FromGeneric(kind) } else { Effect::ToGeneric(kind) };
    body.effect(effect, Operands { d, a, ..Operands::default() });
    Ok(())
}

fn is_space(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let kind = named_space(i)?;
    let (p, _) = body.predicates(&i.operands[0])?;
    let a = body.source(&i.operands[1], 64, false)?;
    body.effect(Effect::IsSpace(kind), Operands { a, p, ..Operands::default() });
    Ok(())
}

/// `cp.async.ca.shared.global [a], [b], bytes{, source bytes | ignore predicate}`. The list holds
/// the second address's slot and offset, and the slot of the number of source bytes.
fn copy_async(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let to = address_operand(&i.operands[0])?;
    let from = address_operand(&i.operands[1])?;
    let Operand::Immediate(bytes @ (4 | 8 | 16)) = i.operands[2] else {
        return Err(Unsupported);
    };
    let to = shared_slot(body, to)?;
    let from = body.address(from)?;
    let from_slot = widened(body, from);
    let mut sized = false;
    let mut size = body.constant_bits(bytes, 32);
    if let Some(operand) = i.operands.get(3) {
        let is_size = match operand {
            Operand::Register(id) => body.register_bits(*id) == 32,
            Operand::Immediate(_) => true,
            Operand::Not(_) => false,
            _ => return Err(Unsupported),
        };
        if is_size {
            size = body.source(operand, 32, false)?;
        } else {
            let (r, negated) = body.source_predicate(operand)?;
            let (none, all) = (body.constant_bits(0, 32), size);
            let (a, b) = if negated { (all, none) } else { (none, all) };
            size = body.temporary(32);
            let choose = crate::execute::frame::select(false, body.context.wide);
            body.run(choose, Operands { d: size, a, b, r, ..Operands::default() });
        }
        sized = true;
    }
    let list = [size, 0, 0, 0, 0, 0, 0, 0];
    let c = add_list(body, list);
    let operands =
        Operands { a: to.0, b: from_slot, c, immediate: to.1 as u64, ..Operands::default() };
    body.effect(Effect::CopyAsync { bytes: bytes as u8, sized }, operands);
    Ok(())
}

/// An address in shared memory as a 32-bit slot and an offset.
fn shared_slot(body: &mut Body<'_, '_>, address: &Address) -> Lowered<(Slot, i64)> {
    let at = body.address(address)?;
    if !at.wide {
        return Ok((at.slot, at.offset));
    }
    let d = body.temporary(32);
    let cut = body.pick::<cvt::U64ToU32>();
    body.run(cut, Operands { d, a: at.slot, ..Operands::default() });
    Ok((d, at.offset))
}

/// A 64-bit address with its offset added.
pub(super) fn widened(body: &mut Body<'_, '_>, at: Addressed) -> Slot {
    let mut slot = at.slot;
    if !at.wide {
        let d = body.temporary(64);
        let extend = body.pick::<cvt::U32ToU64>();
        body.run(extend, Operands { d, a: slot, ..Operands::default() });
        slot = d;
    }
    if at.offset == 0 {
        return slot;
    }
    let d = body.temporary(64);
    let b = body.constant_bits(at.offset as u64, 64);
    let add = body.pick::<crate::arithmetic::integer::Add<u64>>();
    body.run(add, Operands { d, a: slot, b, ..Operands::default() });
    d
}

fn commit(body: &mut Body<'_, '_>) -> Lowered {
    body.effect(Effect::CommitCopies, Operands::default());
    Ok(())
}

fn wait_group(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let Some(Operand::Immediate(groups)) = i.operands.first() else {
        return Err(Unsupported);
    };
    body.effect(Effect::WaitCopies { groups: *groups as u32 }, Operands::default());
    Ok(())
}

fn wait_all(body: &mut Body<'_, '_>) -> Lowered {
    body.effect(Effect::WaitAllCopies, Operands::default());
    Ok(())
}

/// `alloca d, size{, alignment}`, `stacksave d`, `stackrestore a`.
fn stack(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let bits = i.opcode.ty().ok_or(Unsupported)?.bits();
    let wide = bits == 64;
    let mut operands = Operands::default();
    let effect = match i.opcode.base {
        Base::Alloca => {
            operands.d = body.destination(&i.operands[0], bits)?;
            operands.a = body.source(&i.operands[1], bits, false)?;
            operands.immediate = match i.operands.get(2) {
                Some(Operand::Immediate(alignment)) => alignment.next_power_of_two(),
                _ => 8,
            };
            Effect::Alloca { wide }
        }
        Base::Stacksave => {
            operands.d = body.destination(&i.operands[0], bits)?;
            Effect::StackSave { wide }
        }
        _ => {
            operands.a = body.source(&i.operands[0], bits, false)?;
            Effect::StackRestore { wide }
        }
    };
    body.effect(effect, operands);
    Ok(())
}

/// Cache policies mean nothing here; the register gets a value that is always the same.
fn policy(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let d = body.destination(&i.operands[0], 64)?;
    let a = body.constant_bits(0, 64);
    copy(body, d, a, 64);
    Ok(())
}
