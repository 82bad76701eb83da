//! Who runs next: blocks, warps and groups of lanes.

use crate::execute::warp::{Group, Wait};

/// The order in which a launch runs what could run at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// Blocks, warps and lanes in index order.
    #[default]
    InOrder,
    /// Blocks of the resident window, warps, and lanes of atomics in reverse order.
    Reversed,
    /// Everything in an order that the seed decides, switching in the middle of straight code.
    Seeded(u64),
}

/// Makes the choices of a [`Schedule`]. The same schedule makes the same choices.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    schedule: Schedule,
    state: u64,
}

impl Chooser {
    pub(crate) fn new(schedule: Schedule) -> Chooser {
        let state = match schedule {
            Schedule::Seeded(seed) => seed,
            _ => 0,
        };
        Chooser { schedule, state }
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        ((u128::from(self.next()) * count as u128) >> 64) as usize
    }

    /// The group to run, of those that are ready; at least one is.
    pub(crate) fn group(&mut self, groups: &[Group], last_first: bool) -> usize {
        let ready = || groups.iter().enumerate().filter(|(_, group)| group.wait == Wait::Ready);
        let count = ready().count();
        if count > 1
            && matches!(self.schedule, Schedule::Seeded(_))
            && self.next().is_multiple_of(8)
        {
            let chosen = self.below(count);
            return ready().nth(chosen).map_or(0, |(index, _)| index);
        }
        let key = |group: &Group| {
            let depth = u64::from(u32::MAX - group.depth) << 32;
            let order = depth | u64::from(group.pc);
            if last_first { !order } else { order }
        };
        ready().min_by_key(|(_, group)| key(group)).map_or(0, |(index, _)| index)
    }

    /// The lanes of a group that go ahead of the others, which since Volta they may anywhere.
    pub(crate) fn ahead(&mut self, mask: u32) -> Option<u32> {
        if !matches!(self.schedule, Schedule::Seeded(_)) || mask.count_ones() < 2 {
            return None;
        }
        let random = self.next();
        let part = mask & (random >> 32) as u32;
        (random.is_multiple_of(16) && part != 0 && part != mask).then_some(part)
    }

    /// Where a group that starts at `pc` stops at the latest.
    pub(crate) fn preempt(&mut self, pc: u32, limit: u32) -> u32 {
        if !matches!(self.schedule, Schedule::Seeded(_)) {
            return limit;
        }
        // Mostly long runs, now and then a stop after a few instructions.
        let random = self.next();
        let stop = match random % 4 {
            0 => 1 + (random >> 32) as u32 % 16,
            1 => 1 + (random >> 32) as u32 % 128,
            _ => return limit,
        };
        limit.min(pc.saturating_add(stop))
    }

    /// The next of `count` warps or blocks that are in index order, given which are ready.
    pub(crate) fn among(&mut self, ready: &[bool]) -> Option<usize> {
        match self.schedule {
            Schedule::InOrder => ready.iter().position(|&ready| ready),
            Schedule::Reversed => ready.iter().rposition(|&ready| ready),
            Schedule::Seeded(_) => {
                let count = ready.iter().filter(|&&ready| ready).count();
                if count == 0 {
                    return None;
                }
                let chosen = self.below(count);
                let mut all = ready.iter().enumerate().filter(|(_, ready)| **ready);
                all.nth(chosen).map(|(index, _)| index)
            }
        }
    }

    /// Instructions that a warp may run before another gets its turn.
    pub(crate) fn warp_slice(&mut self) -> i64 {
        match self.schedule {
            Schedule::Seeded(_) => 16 << (self.next() % 9),
            _ => 100_000,
        }
    }

    /// Turns of warps before another block gets its turn.
    pub(crate) fn block_turns(&mut self, warps: usize) -> usize {
        match self.schedule {
            Schedule::Seeded(_) => 1 + self.below(4 * warps),
            _ => 4 * warps,
        }
    }

    /// Whether an asynchronous operation that starts now takes effect as late as it may.
    pub(crate) fn is_late(&mut self) -> bool {
        match self.schedule {
            Schedule::InOrder => false,
            Schedule::Reversed => true,
            Schedule::Seeded(_) => !self.next().is_multiple_of(4),
        }
    }

    pub(crate) fn is_in_order(&self) -> bool {
        self.schedule == Schedule::InOrder
    }

    /// How the lanes that hold a `wmma` fragment are permuted: by this exclusive or.
    pub(crate) fn twist(&self) -> usize {
        match self.schedule {
            Schedule::InOrder => 0,
            Schedule::Reversed => 31,
            Schedule::Seeded(seed) => (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize,
        }
    }

    pub(crate) fn is_seeded(&self) -> bool {
        matches!(self.schedule, Schedule::Seeded(_))
    }

    pub(crate) fn is_reversed(&self) -> bool {
        self.schedule == Schedule::Reversed
    }
}
