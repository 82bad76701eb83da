//! Runs the blocks of a launch on several threads, with the results of one.
//!
//! Only blocks of kernels that [`crate::lower`] holds independent. Each worker takes blocks in
//! rising order and sees memory as it was, and its own writes go to overlays. When all are done and
//! no byte was written by two workers, and nothing written was read, then the order of the blocks
//! made no difference and the writes are made. In every other case (a fault, a deadlock, a block
//! that waits, a budget that ran out) all of it is thrown away, and the blocks run one after
//! another as if nothing had happened: the same bytes, the same fault, the same statistics.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Grid;
use crate::execute::block::Block;
use crate::execute::engine::{Engine, Launch};
use crate::execute::frame::Row;
use crate::memory::Memory;
use crate::observer::{NoObserver, Observer};
use crate::program::Inner;
use crate::schedule::{Chooser, Schedule};

/// Warp instructions below which threads cost more than they save, about three milliseconds.
const WORTH: u64 = 300_000;
/// Runs of blocks per worker, so that all are done at about the same time.
const RUNS: u64 = 8;

/// How many threads a launch may use when its machine was made with `wanted`.
pub(super) fn workers(wanted: u32) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    match wanted {
        0 => *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from)),
        wanted => wanted as usize,
    }
}

/// What the workers share.
struct Plan<'p> {
    program: &'p Inner,
    launch: &'p Launch,
    constants: &'p [Row],
    seed: u64,
    /// Warp instructions that had run before.
    executed: u64,
    next: AtomicU64,
    end: u64,
    /// Blocks that a worker takes at once.
    run: u64,
    failed: AtomicBool,
}

/// What a worker did.
struct Work {
    view: Memory,
    lane_operations: u64,
    executed: u64,
    blocks: u64,
}

impl<O: Observer> Grid<'_, O> {
    /// Runs the blocks that have not started, if that is worth threads and can be done; otherwise
    /// leaves all as it is.
    pub(super) fn spread(&mut self) {
        let (next, end) = (self.next, self.total());
        let left = end - next;
        let workers = self.workers.min(usize::try_from(left).unwrap_or(usize::MAX));
        let each = self.engine.executed / self.started.max(1);
        if O::MEMORY || O::BARRIERS || workers < 2 || each.saturating_mul(left) < WORTH {
            return;
        }
        let engine = &mut self.engine;
        let views = engine.memory.views(workers);
        let plan = Plan {
            program: engine.program,
            launch: &engine.launch,
            constants: &engine.constants,
            seed: engine.frame.seed,
            executed: engine.executed,
            next: AtomicU64::new(next),
            end,
            run: (left / (workers as u64 * RUNS)).max(1),
            failed: AtomicBool::new(false),
        };
        let all = plan.work_together(views);
        let failed = plan.failed.into_inner();
        let executed: u64 = all.iter().map(|work| work.executed).sum();
        let lane_operations: u64 = all.iter().map(|work| work.lane_operations).sum();
        let blocks: u64 = all.iter().map(|work| work.blocks).sum();
        let fine = !failed && blocks == left && engine.executed + executed <= engine.launch.budget;
        let views = all.into_iter().map(|work| work.view).collect();
        if engine.memory.reclaim(views, fine) {
            engine.executed += executed;
            engine.lane_operations += lane_operations;
            self.started += blocks;
            self.next = end;
        } else {
            // It would not go better a second time.
            self.workers = 1;
        }
    }
}

impl Plan<'_> {
    /// One thread a view; the last view is this thread's.
    fn work_together(&self, mut views: Vec<Memory>) -> Vec<Work> {
        let own = views.pop();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for view in views {
                let thread = std::thread::Builder::new();
                // A thread that the system does not give leaves its blocks to the others.
                threads.extend(thread.spawn_scoped(scope, move || self.work(view)));
            }
            let mut all: Vec<Work> = own.map(|view| self.work(view)).into_iter().collect();
            for thread in threads {
                match thread.join() {
                    Ok(work) => all.push(work),
                    Err(_) => self.failed.store(true, Ordering::Relaxed),
                }
            }
            all
        })
    }

    fn work(&self, mut view: Memory) -> Work {
        let mut engine = Engine::new(
            &mut view,
            self.program,
            self.launch.clone(),
            self.constants.to_vec(),
            NoObserver,
            Chooser::new(Schedule::InOrder),
            self.seed,
        );
        engine.executed = self.executed;
        let mut grid = Grid::new(engine, 1);
        let mut block = Block::default();
        while !self.failed.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(self.run, Ordering::Relaxed);
            if first >= self.end {
                break;
            }
            for number in first..(first + self.run).min(self.end) {
                let Some(used) = run_whole(&mut grid, block, number) else {
                    self.failed.store(true, Ordering::Relaxed);
                    block = Block::default();
                    break;
                };
                block = used;
            }
        }
        let (executed, lane_operations) = (grid.engine.executed, grid.engine.lane_operations);
        let (executed, blocks) = (executed - self.executed, grid.started);
        Work { view, lane_operations, executed, blocks }
    }
}

/// Runs a block to its end; `None` when it does not get there in one go, or reads what it or
/// another block of this worker may have written.
fn run_whole(grid: &mut Grid<'_, NoObserver>, block: Block, number: u64) -> Option<Block> {
    grid.next = number;
    let block = grid.start(block);
    let block = grid.run_block(block).ok()?;
    (block.is_finished() && !grid.engine.memory.is_torn()).then_some(block)
}
