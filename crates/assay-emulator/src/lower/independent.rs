//! Which kernels' blocks cannot tell in which order they run.
//!
//! Blocks that communicate do so by atomics, volatile or ordered accesses, a barrier of the grid or
//! cluster, or what the emulator keeps for the whole launch: clock, heap, output. A kernel is held
//! independent when it and all that it calls is made of instructions listed here, none of which is
//! of that kind. What is left are plain loads and stores of global memory; whether blocks meet
//! there is known when they have run, see [`crate::memory::Memory::reclaim`].

use crate::execute::effect::{Effect, SpaceKind, Special};
use crate::program::{Action, Callee, Code};

/// Whether the blocks of a kernel that can reach `functions` are independent.
pub(super) fn check(code: &Code, functions: &[usize]) -> bool {
    functions.iter().all(|&function| {
        let first = code.functions[function].entry;
        if first == u32::MAX {
            // A declaration: calls of what the emulator has inside are judged at the call.
            return true;
        }
        let entries = code.functions.iter().map(|function| function.entry);
        let later = entries.filter(|&entry| entry > first && entry != u32::MAX).min();
        let end = later.map_or(code.ops.len(), |end| end as usize);
        code.ops[first as usize..end].iter().all(|op| match op.action {
            Action::Nothing | Action::Compute(_) | Action::Jump(_) => true,
            Action::Effect(Effect::Call) => {
                let call = &code.calls[op.operands.immediate as usize];
                !matches!(call.callee, Callee::BuiltIn(_))
            }
            Action::Effect(effect) => stays_inside(effect),
        })
    })
}

/// Whether an effect has to do with its own block alone, or is a plain access.
fn stays_inside(effect: Effect) -> bool {
    match effect {
        Effect::Load(access) => !access.polls,
        Effect::Atomic(atomic) => atomic.space == SpaceKind::Shared,
        Effect::Special(special) => !matches!(
            special,
            Special::Clock
                | Special::ClockHigh
                | Special::Clock64
                | Special::GlobalTimer
                | Special::GlobalTimerLow
                | Special::GlobalTimerHigh
                | Special::Environment(_)
        ),
        Effect::Store(_)
        | Effect::FrameAddress { .. }
        | Effect::ToGeneric(_)
        | Effect::FromGeneric(_)
        | Effect::IsSpace(_)
        | Effect::Shuffle(_)
        | Effect::Vote(_)
        | Effect::MatchAny { .. }
        | Effect::MatchAll { .. }
        | Effect::Redux(_)
        | Effect::ActiveMask
        | Effect::Elect
        | Effect::WarpBarrier
        | Effect::Barrier { .. }
        | Effect::CopyAsync { .. }
        | Effect::CommitCopies
        | Effect::WaitCopies { .. }
        | Effect::WaitAllCopies
        | Effect::Return
        | Effect::Exit
        | Effect::BranchIndexed
        | Effect::Alloca { .. }
        | Effect::StackSave { .. }
        | Effect::StackRestore { .. }
        | Effect::LoadMatrix(_)
        | Effect::StoreMatrix(_)
        | Effect::MoveMatrix
        | Effect::Multiply(_)
        | Effect::Carry(_) => true,
        // `trap` and what is unsupported end a launch; all others are not known to stay inside.
        _ => false,
    }
}
