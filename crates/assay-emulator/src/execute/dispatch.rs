//! Sends each effect to the function that has it.

use super::effect::Effect;
use super::engine::{Engine, Flow, Step, Trouble};
use crate::fault::FaultKind;
use crate::observer::Observer;
use crate::program::Op;

impl<O: Observer> Engine<'_, O> {
    /// Runs an effect in the lanes of `mask`, which is never empty.
    #[inline(always)]
    pub(crate) fn effect(&mut self, effect: Effect, op: &Op, mask: u32) -> Step {
        let operands = &op.operands;
        match effect {
            Effect::Load(access) => self.load(access, operands, mask),
            Effect::Store(access) => self.store(access, operands, mask),
            Effect::Atomic(atomic) => self.atomic(atomic, operands, mask),
            Effect::AtomicWide(atomic) => self.atomic_wide(atomic, operands, mask),
            Effect::Special(special) => self.special(special, operands, mask),
            Effect::FrameAddress { wide } => self.frame_address(wide, operands, mask),
            Effect::ToGeneric(space) => self.move_window(space, operands, mask, false),
            Effect::FromGeneric(space) => self.move_window(space, operands, mask, true),
            Effect::IsSpace(space) => self.is_space(space, operands, mask),
            Effect::Shuffle(mode) => self.shuffle(mode, op, mask),
            Effect::Vote(vote) => self.vote(vote, operands, mask),
            Effect::MatchAny { wide } => self.match_any(wide, operands, mask),
            Effect::MatchAll { wide } => self.match_all(wide, operands, mask),
            Effect::Redux(reduction) => self.redux(reduction, operands, mask),
            Effect::ActiveMask => self.active_mask(operands, mask),
            Effect::Elect => self.elect(operands, mask),
            Effect::WarpBarrier => self.warp_barrier(operands, mask),
            Effect::Barrier { kind, aligned, counted } => {
                self.barrier(kind, aligned, counted, operands, mask)
            }
            Effect::ClusterBarrier { waits, aligned } => self.cluster_barrier(waits, aligned, mask),
            Effect::MapShared { wide, generic } => self.map_shared(wide, generic, operands, mask),
            Effect::RankOfShared { wide, generic } => {
                self.rank_of_shared(wide, generic, operands, mask)
            }
            Effect::ExplicitCluster => self.explicit_cluster(operands, mask),
            Effect::CopyAsync { bytes, sized } => self.copy_async(bytes, sized, operands, mask),
            Effect::CommitCopies => self.commit_copies(mask),
            Effect::WaitCopies { groups } => self.wait_copies(groups, mask),
            Effect::WaitAllCopies => self.wait_all_copies(mask),
            Effect::Bulk(bulk) => self.bulk(bulk, operands, mask),
            Effect::BulkTensor(tensor) => self.bulk_tensor(tensor, operands, mask),
            Effect::CommitBulk => self.commit_bulk(mask),
            Effect::WaitBulk { groups, read } => self.wait_bulk(groups, read, mask),
            Effect::FenceAsync => self.fence_async(),
            Effect::Call => self.call(operands, mask),
            Effect::Return => self.return_from_call(mask),
            Effect::Exit => self.exit(mask),
            Effect::BranchIndexed => self.branch_indexed(operands, mask),
            Effect::Sleep => self.sleep(),
            Effect::Trap => Err(Trouble::new(FaultKind::Trap, mask)),
            Effect::Alloca { wide } => self.alloca(wide, operands, mask),
            Effect::StackSave { wide } => self.stack_save(wide, operands, mask),
            Effect::StackRestore { wide } => self.stack_restore(wide, operands, mask),
            Effect::Mbarrier(mbarrier) => self.mbarrier(mbarrier, operands, mask),
            Effect::StoreAsync(access) => self.store_async(access, operands, mask),
            Effect::LoadMatrix(access) => self.load_matrix(access, operands, mask),
            Effect::StoreMatrix(access) => self.store_matrix(access, operands, mask),
            Effect::MoveMatrix => self.move_matrix(operands, mask),
            Effect::Multiply(multiply) => self.multiply(multiply, operands, mask),
            Effect::LoadTile(tile) => self.load_tile(tile, operands, mask),
            Effect::StoreTile(tile) => self.store_tile(tile, operands, mask),
            Effect::MultiplyTiles(multiply) => self.multiply_tiles(multiply, operands, mask),
            Effect::WarpgroupMultiply(multiply) => {
                self.warpgroup_multiply(multiply, operands, mask)
            }
            Effect::WarpgroupFence => self.warpgroup_fence(mask),
            Effect::WarpgroupCommit => self.warpgroup_commit(mask),
            Effect::WarpgroupWait { groups } => self.warpgroup_wait(groups, mask),
            Effect::Carry(kind) => self.carry(kind, operands, mask),
            Effect::Unsupported => self.unsupported(op, mask),
        }
    }

    #[cold]
    fn unsupported(&mut self, op: &Op, mask: u32) -> Step {
        let opcode = self.code().places[op.place as usize].opcode.text.clone();
        Err(Trouble::new(FaultKind::Unsupported { opcode }, mask))
    }

    fn sleep(&mut self) -> Step {
        self.poll(super::engine::POLL_TURN + 1);
        Ok(Flow::Next)
    }
}
