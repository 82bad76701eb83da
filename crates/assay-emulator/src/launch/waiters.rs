//! Those who wait for a phase of an mbarrier: when they look again, and when they never need to.

use super::Grid;
use crate::execute::block::Block;
use crate::execute::mbarrier::describe;
use crate::execute::warp::Wait;
use crate::observer::Observer;

/// Turns of blocks after which all waiters look again, so that one that does something else when
/// its wait fails is not kept from it by others that spin.
const LOOK_AGAIN: u64 = 16;
/// How often all waiters look in vain, with nobody else able to run, before it is a deadlock.
const MOST_STALLS: u32 = 10_000;
/// Instructions between two looks of a waiter that only spins.
const SPIN: u64 = 256;

/// What was seen when nobody could run.
#[derive(Default)]
pub(super) struct Stalls {
    count: u32,
    progress: u64,
    executed: u64,
}

impl<O: Observer> Grid<'_, O> {
    /// Lets all waiters look again once in a while.
    pub(super) fn wake_now_and_then(&mut self) {
        if self.engine.sleepers && self.turns.is_multiple_of(LOOK_AGAIN) {
            self.wake_all();
        }
    }

    fn wake_all(&mut self) {
        self.engine.sleepers = false;
        self.resident.iter_mut().for_each(|block| block.wake(None));
    }

    /// Lets the waiters look again when nobody else can run. `false` when there are none, or when
    /// they have looked so often in vain that nothing can change any more.
    pub(super) fn time_out(&mut self) -> bool {
        let groups = self.resident.iter().flat_map(|block| &block.warps);
        let groups = groups.flat_map(|warp| &warp.groups);
        let waiting = groups.filter(|group| matches!(group.wait, Wait::Phase(_))).count() as u64;
        let (progress, executed) = (self.engine.progress, self.engine.executed);
        let stalls = &mut self.stalls;
        let spun = executed - stalls.executed <= SPIN * waiting && progress == stalls.progress;
        stalls.count = if spun { stalls.count + 1 } else { 0 };
        (stalls.progress, stalls.executed) = (progress, executed);
        if waiting == 0 || stalls.count > MOST_STALLS {
            return false;
        }
        self.wake_all();
        true
    }
}

/// What a waiter for the object at `at` waits for.
pub(super) fn phase(at: u32, block: &Block) -> String {
    let object = block.objects.iter().find(|object| object.at == at);
    let state = object.map_or_else(|| "gone by now".to_owned(), |object| describe(object.word));
    format!("for the mbarrier at shared {at:#x}: {state}")
}
