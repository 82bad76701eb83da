//! Which forms of the table get a program.
//!
//! Everything on registers does, but for `set` and `setp` with a second predicate, where each
//! comparison takes one of the three Boolean operators in turn. Where memory is touched, every
//! type, width and space occurs, and every ordering, scope and hint, but not each with each.

use crate::wgmma;
use assay_ptx::forms::{Form, each_form, is_hint};
use assay_ptx::{Base, Group, Layout, Modifier, Opcode, StateSpace, Type};

/// The forms of a base.
pub(crate) fn forms(base: Base) -> Vec<Form> {
    let mut forms = Vec::new();
    each_form(base, wanted, |form| forms.push(form));
    if base == Base::WgmmaMmaAsync {
        return forms.iter().flat_map(wgmma::widths).collect();
    }
    forms
}

fn wanted(opcode: &Opcode) -> bool {
    match opcode.base {
        Base::Set | Base::Setp => boolean_in_turn(opcode),
        Base::Ld | Base::Ldu | Base::St | Base::Atom | Base::Red => memory(opcode),
        Base::Mma => dense(opcode),
        Base::WmmaMma | Base::WmmaLoad | Base::WmmaStore => tiles(opcode),
        Base::CpAsyncBulkTensor
        | Base::CpReduceAsyncBulk
        | Base::CpReduceAsyncBulkTensor
        | Base::MultimemLdReduce
        | Base::MultimemRed
        | Base::MultimemSt => false,
        Base::StAsync | Base::RedAsync => asynchronous(opcode),
        // An ordering and its scope stand together.
        Base::MbarrierArrive
        | Base::MbarrierArriveDrop
        | Base::MbarrierTestWait
        | Base::MbarrierTryWait
        | Base::MbarrierExpectTx
        | Base::MbarrierCompleteTx => {
            let given = [Group::Ordering, Group::Scope];
            let [order, scope] = given.map(|group| opcode.modifiers.of_group(group).is_some());
            let local = opcode.has(Modifier::NoComplete) && opcode.has(Modifier::ClusterScope);
            order == scope && !local
        }
        _ => true,
    }
}

/// Stores and reductions that complete at an mbarrier, of the types that the ISA gives them.
fn asynchronous(opcode: &Opcode) -> bool {
    let Some(ty) = opcode.ty() else { return false };
    if !opcode.has(Modifier::MbarrierCompleteTx) {
        return false;
    }
    if opcode.base == Base::StAsync {
        return ty.bytes() * u32::from(opcode.vector) <= 16;
    }
    let types: &[Type] = match opcode.modifiers.of_group(Group::Operation) {
        Some(Modifier::Inc | Modifier::Dec) => &[Type::U32],
        Some(Modifier::MinOperation | Modifier::MaxOperation) => &[Type::U32, Type::S32],
        Some(Modifier::AddOperation) => &[Type::U32, Type::S32, Type::U64],
        _ => &[Type::B32],
    };
    opcode.has(Modifier::Relaxed) && opcode.has(Modifier::ClusterScope) && types.contains(&ty)
}

/// Elements of less than a byte lie along the depth; floats do not saturate since PTX 6.5.
fn tiles(opcode: &Opcode) -> bool {
    let b = opcode.has(Modifier::MatrixB);
    let input = match (opcode.base, opcode.types.as_slice()) {
        (Base::WmmaMma, [_, input, ..]) => Some(*input),
        (_, [ty]) => Some(*ty),
        _ => None,
    };
    let narrow = input.is_some_and(|ty| matches!(ty, Type::S4 | Type::U4 | Type::B1));
    let along = match opcode.base {
        Base::WmmaMma => opcode.layouts == [Layout::Row, Layout::Column],
        _ => opcode.layouts == [if b { Layout::Column } else { Layout::Row }],
    };
    let saturates = opcode.has(Modifier::Satfinite) && opcode.ty() != Some(Type::S32);
    !saturates && (along || !narrow)
}

/// The layouts that most shapes have, with no sparsity and no scales.
fn dense(opcode: &Opcode) -> bool {
    let groups = [Group::Kind, Group::Sparsity, Group::ScaleVector];
    let plain = !groups.into_iter().any(|group| opcode.modifiers.of_group(group).is_some());
    plain && opcode.layouts == [Layout::Row, Layout::Column]
}

fn boolean_in_turn(opcode: &Opcode) -> bool {
    let Some(boolean) = opcode.modifiers.of_group(Group::Operation) else { return true };
    let operators = [Modifier::And, Modifier::Or, Modifier::Xor];
    // Of `set`, one destination with Boolean operators is enough.
    if opcode.base == Base::Set && opcode.ty() != Some(Type::U32) {
        return false;
    }
    let turn = opcode.comparison().map_or(0, |comparison| comparison as usize);
    operators.get(turn % operators.len()) == Some(&boolean)
}

/// A plain access of any type, width and space; or an access of 32 bits with anything else on it.
fn memory(opcode: &Opcode) -> bool {
    let atomic = matches!(opcode.base, Base::Atom | Base::Red);
    if too_wide(opcode) || opcode.has(Modifier::Unified) {
        return false;
    }
    let extra = |modifier: Modifier| {
        let group = modifier.group();
        is_hint(modifier) || group == Group::Ordering || group == Group::Scope
    };
    if !opcode.modifiers.iter().any(extra) {
        return true;
    }
    let simple = [Modifier::AddOperation, Modifier::Exch, Modifier::Cas, Modifier::Inc];
    let first = match opcode.ty() {
        Some(Type::B32 | Type::U32) if atomic => simple.into_iter().any(|m| opcode.has(m)),
        Some(_) if atomic => false,
        Some(ty) => ty == Type::B32,
        None => false,
    };
    let hinted = opcode.modifiers.iter().any(is_hint);
    let ordered = opcode.modifiers.iter().any(|m| m.group() == Group::Ordering);
    let space = match opcode.space() {
        StateSpace::Global => true,
        StateSpace::Shared | StateSpace::Generic => !hinted,
        _ => false,
    };
    first && space && opcode.vector == 1 && !(hinted && ordered)
}

/// More at once than the space moves: 256 bits in global memory, 128 elsewhere; atomics on vectors
/// exist in global memory alone. Eight parts are of 32 bits: the assembler of CUDA 13.0 does not
/// reject eight loads of 16 bits from shared memory, it crashes.
fn too_wide(opcode: &Opcode) -> bool {
    let bits = u32::from(opcode.vector) * opcode.ty().map_or(0, Type::bits);
    let global = opcode.space() == StateSpace::Global;
    let atomic = matches!(opcode.base, Base::Atom | Base::Red);
    let eight = opcode.vector == 8 && !atomic && opcode.ty().is_none_or(|ty| ty.bits() != 32);
    eight || bits > if global { 256 } else { 128 } || atomic && opcode.vector > 1 && !global
}
