//! Lowers what lanes and warps do together, and the special registers.

use assay_ptx::module::{Instruction, Operand};
use assay_ptx::opcode::{Base, Group, Modifier, Type};
use assay_ptx::special::{Axis, SpecialRegister};

use super::body::{Body, Lowered, Unsupported};
use crate::execute::effect::{BarrierKind, Effect, Reduction, Shuffle, Special, Vote};
use crate::execute::frame::{ALWAYS, DISCARDED, NEGATE_R, Operands};

pub(super) fn lower(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    match i.opcode.base {
        Base::Shfl => shuffle(body, i),
        Base::Vote => vote(body, i),
        Base::Match => matches(body, i),
        Base::Redux => redux(body, i),
        Base::Activemask => {
            let d = body.destination(&i.operands[0], 32)?;
            body.effect(Effect::ActiveMask, Operands { d, ..Operands::default() });
            Ok(())
        }
        Base::Elect => elect(body, i),
        Base::BarWarpSync => {
            let a = body.source(&i.operands[0], 32, false)?;
            body.effect(Effect::WarpBarrier, Operands { a, ..Operands::default() });
            Ok(())
        }
        Base::Bar | Base::Barrier => barrier(body, i),
        _ => Err(Unsupported),
    }
}

/// Destination register and predicate of `d|p`.
fn pair(body: &mut Body<'_, '_>, operand: &Operand) -> Lowered<(u32, u16)> {
    match operand {
        Operand::Pair(d, p) => {
            let d = match d {
                Some(id) => body.register(*id),
                None => body.temporary(32),
            };
            Ok((d, p.map_or(DISCARDED, |id| body.predicate_of(id))))
        }
        other => Ok((body.destination(other, 32)?, DISCARDED)),
    }
}

fn shuffle(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let mode = match i.opcode.modifiers.of_group(Group::ShuffleMode) {
        Some(Modifier::Up) => Shuffle::Up,
        Some(Modifier::Down) => Shuffle::Down,
        Some(Modifier::Bfly) => Shuffle::Butterfly,
        Some(Modifier::Idx) => Shuffle::Index,
        _ => return Err(Unsupported),
    };
    let (d, p) = pair(body, &i.operands[0])?;
    let a = body.source(&i.operands[1], 32, false)?;
    let b = body.source(&i.operands[2], 32, false)?;
    let clamp = body.source(&i.operands[3], 32, false)?;
    let members = match i.operands.get(4) {
        Some(operand) => body.source(operand, 32, false)?,
        // The old form without `.sync` takes whoever is there.
        None => return Err(Unsupported),
    };
    body.context.code.lists.push([clamp, members, 0, 0, 0, 0, 0, 0]);
    let c = body.context.code.lists.len() as u32 - 1;
    body.effect(Effect::Shuffle(mode), Operands { d, a, b, c, p, ..Operands::default() });
    Ok(())
}

fn vote(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let mode = match i.opcode.modifiers.of_group(Group::VoteMode) {
        Some(Modifier::All) => Vote::All,
        Some(Modifier::Any) => Vote::Any,
        Some(Modifier::Uni) => Vote::Uniform,
        Some(Modifier::Ballot) => Vote::Ballot,
        _ => return Err(Unsupported),
    };
    let mut operands = Operands::default();
    if mode == Vote::Ballot {
        operands.d = body.destination(&i.operands[0], 32)?;
    } else {
        (operands.p, operands.q) = body.predicates(&i.operands[0])?;
    }
    let (r, negated) = body.source_predicate(&i.operands[1])?;
    operands.r = r;
    operands.flags = if negated { NEGATE_R } else { 0 };
    operands.b = body.source(i.operands.get(2).ok_or(Unsupported)?, 32, false)?;
    body.effect(Effect::Vote(mode), operands);
    Ok(())
}

fn matches(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let wide = ty.bits() == 64;
    let (d, p) = pair(body, &i.operands[0])?;
    let a = body.source(&i.operands[1], ty.bits(), false)?;
    let b = body.source(&i.operands[2], 32, false)?;
    let all = i.opcode.has(Modifier::All);
    let effect = if all { Effect::MatchAll { wide } } else { Effect::MatchAny { wide } };
    body.effect(effect, Operands { d, a, b, p, ..Operands::default() });
    Ok(())
}

fn redux(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let ty = i.opcode.ty().ok_or(Unsupported)?;
    let reduction = match (i.opcode.modifiers.of_group(Group::Operation), ty) {
        (Some(Modifier::AddOperation), _) => Reduction::Add,
        (Some(Modifier::And), _) => Reduction::And,
        (Some(Modifier::Or), _) => Reduction::Or,
        (Some(Modifier::Xor), _) => Reduction::Xor,
        (Some(Modifier::MinOperation), Type::F32) => Reduction::MinimumF,
        (Some(Modifier::MaxOperation), Type::F32) => Reduction::MaximumF,
        (Some(Modifier::MinOperation), Type::S32) => Reduction::MinimumS,
        (Some(Modifier::MaxOperation), Type::S32) => Reduction::MaximumS,
        (Some(Modifier::MinOperation), _) => Reduction::MinimumU,
        (Some(Modifier::MaxOperation), _) => Reduction::MaximumU,
        _ => return Err(Unsupported),
    };
    let d = body.destination(&i.operands[0], 32)?;
    let a = body.source(&i.operands[1], 32, false)?;
    let b = body.source(&i.operands[2], 32, false)?;
    let nan = u16::from(i.opcode.has(Modifier::NanPropagating));
    let flags = nan | u16::from(i.opcode.has(Modifier::Absolute)) << 1;
    body.effect(Effect::Redux(reduction), Operands { d, a, b, flags, ..Operands::default() });
    Ok(())
}

fn elect(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let (d, p) = match &i.operands[0] {
        Operand::Register(id) if body.register_bits(*id) == 1 => {
            (body.temporary(32), body.predicate_of(*id))
        }
        other => pair(body, other)?,
    };
    let b = body.source(&i.operands[1], 32, false)?;
    body.effect(Effect::Elect, Operands { d, b, p, ..Operands::default() });
    Ok(())
}

/// `bar.sync a{, b}`, `bar.arrive a, b`, `bar.red.popc.u32 d, a{, b}, {!}c`, and `barrier.*`.
fn barrier(body: &mut Body<'_, '_>, i: &Instruction) -> Lowered {
    let modifiers = i.opcode.modifiers;
    let kind =
        match (modifiers.of_group(Group::BarrierOperation), modifiers.of_group(Group::Operation)) {
            (Some(Modifier::Sync), _) => BarrierKind::Sync,
            (Some(Modifier::Arrive), _) => BarrierKind::Arrive,
            (Some(Modifier::Red), Some(Modifier::Popc)) => BarrierKind::Population,
            (Some(Modifier::Red), Some(Modifier::And)) => BarrierKind::All,
            (Some(Modifier::Red), Some(Modifier::Or)) => BarrierKind::Any,
            _ => return Err(Unsupported),
        };
    // `bar` is `barrier.aligned`.
    let aligned = i.opcode.base == Base::Bar || i.opcode.has(Modifier::Aligned);
    let reduces = !matches!(kind, BarrierKind::Sync | BarrierKind::Arrive);
    let mut operands = Operands { r: ALWAYS, ..Operands::default() };
    let mut rest = &i.operands[..];
    if reduces {
        if kind == BarrierKind::Population {
            operands.d = body.destination(&rest[0], 32)?;
        } else {
            (operands.p, operands.q) = body.predicates(&rest[0])?;
        }
        let (r, negated) = body.source_predicate(rest.last().ok_or(Unsupported)?)?;
        operands.r = r;
        operands.flags = if negated { NEGATE_R } else { 0 };
        rest = &rest[1..rest.len() - 1];
    }
    operands.a = body.source(rest.first().ok_or(Unsupported)?, 32, false)?;
    let counted = rest.len() > 1;
    if counted {
        operands.b = body.source(&rest[1], 32, false)?;
    }
    body.effect(Effect::Barrier { kind, aligned, counted }, operands);
    Ok(())
}

/// The special registers that the emulator has.
pub(super) fn special(register: SpecialRegister, axis: Option<Axis>) -> Lowered<Special> {
    let axis = axis.map_or(0, |axis| axis.index() as u8);
    Ok(match register {
        SpecialRegister::Tid => Special::Thread(axis),
        SpecialRegister::Ntid => Special::Threads(axis),
        SpecialRegister::Ctaid => Special::Block(axis),
        SpecialRegister::Nctaid => Special::Blocks(axis),
        SpecialRegister::Laneid => Special::Lane,
        SpecialRegister::Warpid => Special::Warp,
        SpecialRegister::Nwarpid => Special::Warps,
        SpecialRegister::Smid => Special::Multiprocessor,
        SpecialRegister::Nsmid => Special::Multiprocessors,
        SpecialRegister::LanemaskEq => Special::LaneMaskEqual,
        SpecialRegister::LanemaskLe => Special::LaneMaskLessEqual,
        SpecialRegister::LanemaskLt => Special::LaneMaskLess,
        SpecialRegister::LanemaskGe => Special::LaneMaskGreaterEqual,
        SpecialRegister::LanemaskGt => Special::LaneMaskGreater,
        SpecialRegister::Clock => Special::Clock,
        SpecialRegister::ClockHi => Special::ClockHigh,
        SpecialRegister::Clock64 => Special::Clock64,
        SpecialRegister::Globaltimer => Special::GlobalTimer,
        SpecialRegister::GlobaltimerLo => Special::GlobalTimerLow,
        SpecialRegister::GlobaltimerHi => Special::GlobalTimerHigh,
        SpecialRegister::TotalSmemSize | SpecialRegister::AggrSmemSize => Special::TotalShared,
        SpecialRegister::DynamicSmemSize => Special::DynamicShared,
        SpecialRegister::Envreg(number) => Special::Environment(number),
        // Without clusters every block is a cluster of one.
        SpecialRegister::Clusterid => Special::Cluster(axis),
        SpecialRegister::Nclusterid => Special::Clusters(axis),
        SpecialRegister::ClusterCtaid => Special::ClusterBlock(axis),
        SpecialRegister::ClusterNctaid => Special::ClusterBlocks(axis),
        SpecialRegister::ClusterCtarank => Special::ClusterRank,
        SpecialRegister::ClusterNctarank => Special::ClusterRanks,
        SpecialRegister::Pm(_)
        | SpecialRegister::ReservedSmemOffset(_)
        | SpecialRegister::ReservedSmemOffsetBegin
        | SpecialRegister::ReservedSmemOffsetEnd
        | SpecialRegister::ReservedSmemOffsetCap => Special::Zero,
        SpecialRegister::Gridid | SpecialRegister::Pm64(_) | SpecialRegister::CurrentGraphExec => {
            Special::Zero64
        }
        // A predicate: `mov.pred` lowers it.
        SpecialRegister::IsExplicitCluster => return Err(Unsupported),
    })
}
