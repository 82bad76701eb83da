//! Checks a launch, makes blocks resident, and runs them until the grid is done.

mod cluster;
mod cooperative;
mod spread;
mod waiters;

use waiters::Stalls;

use std::sync::Arc;

use crate::execute::address;
use crate::execute::block::Block;
use crate::execute::engine::{Engine, Launch, Outcome};
use crate::execute::frame::{LANES, Row};
use crate::execute::warp::{Group, Wait, Warp};
use crate::execute::wgmma::WarpgroupState;
use crate::fault::{Fault, FaultKind, Waiter};
use crate::machine::{
    Approximation, LaunchConfig, LaunchStatistics, MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK,
    Machine, MachineConfig, broadcast,
};
use crate::memory::AllocationError;
use crate::observer::Observer;
use crate::program::{Constant, Function, Program};
use crate::schedule::{Chooser, Schedule};
use crate::watch::{Seen, Watch};

/// The most local memory that a thread may have, in bytes.
const LARGEST_LOCAL: u32 = 512 << 10;
/// Bytes of the grid barrier's workspace.
const WORKSPACE_BYTES: u64 = 64;

/// Refuses a launch that the CUDA driver would refuse, or that the emulator cannot run.
pub(crate) fn check(
    machine: &MachineConfig,
    program: &Program,
    symbol: &str,
    config: &LaunchConfig,
) -> Result<(), Fault> {
    let Some(function) = program.function(symbol) else {
        let available = program.kernels().into_iter().map(str::to_owned).collect();
        return Err(Fault::of_launch(FaultKind::SymbolNotFound { available }, symbol));
    };
    let reason = shape_problem(config)
        .or_else(|| block_problem(function, config))
        .or_else(|| cluster::problem(machine, function, config))
        .or_else(|| memory_problem(machine, function, config))
        .or_else(|| cooperative::problem(machine, function, config));
    if let Some(reason) = reason {
        return Err(Fault::of_launch(FaultKind::InvalidLaunch { reason }, symbol));
    }
    if function.resources.blocks_are_clusters {
        let opcode = ".blocksareclusters".to_owned();
        return Err(Fault::of_launch(FaultKind::Unsupported { opcode }, symbol));
    }
    if let Some((opcode, line)) = program.unsupported(symbol) {
        let kind = FaultKind::Unsupported { opcode: opcode.to_owned() };
        let opcode = Some(opcode.to_owned());
        return Err(Fault { line: Some(line), opcode, ..Fault::of_launch(kind, symbol) });
    }
    Ok(())
}

fn shape_problem(config: &LaunchConfig) -> Option<String> {
    let (grid, block) = (config.grid, config.block);
    if grid.contains(&0) || block.contains(&0) {
        return Some(format!("grid {grid:?} of blocks {block:?} has no threads"));
    }
    if (0..3).any(|axis| grid[axis] > MAX_GRID[axis]) {
        return Some(format!("grid {grid:?} is larger than {MAX_GRID:?}"));
    }
    if (0..3).any(|axis| block[axis] > MAX_BLOCK[axis]) {
        return Some(format!("block {block:?} is larger than {MAX_BLOCK:?}"));
    }
    let threads = block.iter().map(|&axis| u64::from(axis)).product::<u64>();
    (threads > u64::from(MAX_THREADS_PER_BLOCK)).then(|| {
        format!("{threads} threads per block; at most {MAX_THREADS_PER_BLOCK} are possible")
    })
}

fn block_problem(function: &Function, config: &LaunchConfig) -> Option<String> {
    let threads: u32 = config.block.iter().product();
    let resources = &function.resources;
    if let Some(required) = resources.required_block
        && required != config.block
    {
        return Some(format!("the kernel requires blocks of {required:?}"));
    }
    resources.max_threads.filter(|&most| threads > most).map(|most| {
        format!("{threads} threads per block; the kernel was compiled for at most {most}")
    })
}

fn memory_problem(
    machine: &MachineConfig,
    function: &Function,
    config: &LaunchConfig,
) -> Option<String> {
    let fixed = u64::from(function.resources.static_shared);
    let shared = fixed + u64::from(config.shared_bytes);
    let most = machine.shared_per_block;
    if shared > u64::from(most) {
        return Some(format!(
            "{shared} bytes of shared memory per block ({fixed} static); at most {most} are there"
        ));
    }
    if function.local_bytes > LARGEST_LOCAL {
        let local = function.local_bytes;
        return Some(format!(
            "{local} bytes of local memory per thread; at most {LARGEST_LOCAL} are possible"
        ));
    }
    let (given, needed) = (config.parameters.len(), function.parameter_bytes);
    (given != needed as usize)
        .then(|| format!("{given} bytes of parameters; the kernel takes {needed}"))
}

/// Fills in the addresses that initial values name.
pub(crate) fn relocate(
    machine: &mut Machine,
    program: &Program,
    addresses: &[u64],
) -> Result<(), AllocationError> {
    use assay_ptx::module::Symbol;
    for (variable, &base) in program.inner.variables.iter().zip(addresses) {
        for reference in &variable.references {
            let target = match reference.symbol {
                Symbol::Function(id) => address::function(id.0),
                Symbol::Global(index) => variable_address(program, index, addresses),
                _ => 0,
            };
            let value = target.wrapping_add(reference.addend as u64);
            let value = match reference.mask {
                Some(mask) if mask != 0 => (value & mask) >> mask.trailing_zeros(),
                _ => value,
            };
            let width = usize::from(reference.width).min(8);
            machine.write(base + reference.offset, &value.to_le_bytes()[..width])?;
        }
    }
    Ok(())
}

/// The address of module-scope variable `index`.
fn variable_address(program: &Program, index: u32, addresses: &[u64]) -> u64 {
    use assay_ptx::opcode::StateSpace::{Const, Global};
    let globals = &program.inner.module.globals;
    let in_memory = |space| matches!(space, Const | Global);
    let before = globals[..index as usize].iter().filter(|v| in_memory(v.space)).count();
    if in_memory(globals[index as usize].space) { addresses[before] } else { 0 }
}

/// The constant pool of a launch.
fn constants(program: &Program, launch: &Launch, addresses: &[u64]) -> Vec<Row> {
    let mut rows = Vec::new();
    for &constant in &program.inner.code.constants {
        let value = match constant {
            Constant::Bits32(bits) => u64::from(bits),
            Constant::Bits64(bits) => bits,
            Constant::Parameter { offset, bytes, signed, .. } => {
                parameter(&launch.parameters, offset as usize, usize::from(bytes), signed)
            }
            Constant::Variable { variable, offset, .. } => {
                let base = addresses.get(variable as usize).copied().unwrap_or(0);
                base.wrapping_add(offset as u64)
            }
            Constant::DynamicShared { offset, .. } => {
                u64::from(launch.dynamic_start).wrapping_add(offset as u64)
            }
        };
        if constant.rows() == 1 {
            rows.push(broadcast(value as u32));
        } else {
            // Two rows hold 32 words of 64 bits, lane after lane.
            let mut pair = [0; LANES];
            for lane in 0..LANES / 2 {
                pair[2 * lane] = value as u32;
                pair[2 * lane + 1] = (value >> 32) as u32;
            }
            rows.extend([Row(pair), Row(pair)]);
        }
    }
    rows
}

fn parameter(bytes: &[u8], offset: usize, size: usize, signed: bool) -> u64 {
    let mut word = [0; 8];
    // Other kernels' parameters are in the same pool; they may lie outside this one's.
    if let Some(found) = bytes.get(offset..offset + size) {
        word[..size].copy_from_slice(found);
    }
    let value = u64::from_le_bytes(word);
    let shift = 64 - 8 * size as u32;
    if signed { (((value << shift) as i64) >> shift) as u64 } else { value }
}

/// Runs a launch that has been checked.
pub(crate) fn run<O: Observer>(
    machine: &mut Machine,
    program: &Program,
    symbol: &str,
    config: &LaunchConfig,
    variables: &[u64],
    observer: O,
) -> Result<(LaunchStatistics, O), Fault> {
    let internal =
        |what: &str| Fault::of_launch(FaultKind::Internal { what: what.to_owned() }, symbol);
    let function = program.function(symbol).ok_or_else(|| internal("the kernel is gone"))?;
    let workspace = machine
        .memory
        .allocate(WORKSPACE_BYTES, 64, 0)
        .map_err(|_| internal("no memory for the grid barrier"))?;
    let launch = plan(&machine.config, function, config, workspace);
    let window = cooperative::window(&machine.config, function, config, &launch);
    let window = cluster::whole(window, &launch);
    let rows = constants(program, &launch, variables);
    let seed = match config.approximation {
        Approximation::Nearest => 0,
        // Zero means none, so every seed is moved away from it.
        Approximation::Seeded(seed) => seed | 1 << 63,
    };
    let chooser = Chooser::new(config.schedule);
    let engine =
        Engine::new(&mut machine.memory, &program.inner, launch, rows, observer, chooser, seed);
    let mut grid = Grid::new(engine, window);
    if function.independent && config.schedule == Schedule::InOrder && config.cluster == [1; 3] {
        grid.workers = spread::workers(machine.config.workers);
    }
    grid.watch.clone_from(&machine.watch);
    let result = grid.run();
    let engine = grid.engine;
    let statistics = LaunchStatistics {
        lane_operations: engine.lane_operations,
        warp_instructions: engine.executed,
        blocks: grid.started,
        resident_blocks: window,
        output: engine.output,
    };
    let observer = engine.observer;
    let _ = machine.memory.free(workspace);
    match result {
        Ok(()) => Ok((statistics, observer)),
        Err(fault) => {
            let (symbol, output) = (symbol.to_owned(), statistics.output);
            Err(Fault { symbol, output, ..*fault })
        }
    }
}

fn plan(
    machine: &MachineConfig,
    function: &Function,
    config: &LaunchConfig,
    workspace: u64,
) -> Launch {
    let (shared_ranges, dynamic_start) = function.shared.with_dynamic(config.shared_bytes);
    let shared_bytes = shared_ranges.iter().map(|&(_, end)| end).max().unwrap_or(0);
    Launch {
        grid: config.grid,
        block: config.block,
        cluster: cluster::of(function, config),
        explicit_cluster: cluster::is_explicit(function, config),
        threads: config.block.iter().product(),
        entry: function.entry,
        rows: function.rows,
        predicates: function.predicates,
        local_bytes: function.local_bytes,
        shared_ranges,
        shared_bytes,
        dynamic_start,
        counted_shared: function.resources.static_shared + config.shared_bytes,
        dynamic_shared: config.shared_bytes,
        multiprocessors: machine.multiprocessors.max(1),
        parameters: config.parameters.clone(),
        workspace,
        budget: config.instruction_budget,
        poison: config.poison,
        timers: config.timers,
        lanes_reversed: config.schedule == Schedule::Reversed,
        tensor_model: machine.tensor_model(),
    }
}

/// The blocks of a launch: those that run, and those still to come.
struct Grid<'m, O> {
    engine: Engine<'m, O>,
    window: u64,
    /// The next block to start.
    next: u64,
    started: u64,
    /// Blocks that have started and not finished. Finished ones are used again.
    resident: Vec<Block>,
    /// Turns of blocks so far.
    turns: u64,
    stalls: Stalls,
    /// Threads that may run blocks at once; 1 where the order of the blocks could be seen.
    workers: usize,
    /// Shown how far the launch is.
    watch: Option<Arc<Watch>>,
}

impl<'m, O: Observer> Grid<'m, O> {
    /// No blocks yet, and none on other threads.
    fn new(engine: Engine<'m, O>, window: u64) -> Grid<'m, O> {
        Grid {
            engine,
            window,
            next: 0,
            started: 0,
            resident: Vec::new(),
            turns: 0,
            stalls: Stalls::default(),
            workers: 1,
            watch: None,
        }
    }

    fn total(&self) -> u64 {
        self.engine.launch.grid.iter().map(|&axis| u64::from(axis)).product()
    }

    fn run(&mut self) -> Result<(), Box<Fault>> {
        let mut spare = Vec::new();
        loop {
            self.wake_now_and_then();
            self.admit(&mut spare);
            if self.resident.is_empty() {
                return Ok(());
            }
            let ready: Vec<bool> = self.resident.iter().map(Block::is_ready).collect();
            let Some(chosen) = self.choose(&ready) else {
                if self.time_out() {
                    continue;
                }
                return Err(self.deadlock());
            };
            let block = self.resident.remove(chosen);
            let peers = self.take_peers(&block);
            let block = self.run_block(block)?;
            self.return_peers(peers);
            self.turns += 1;
            self.show(block.is_finished());
            if block.is_finished() {
                spare.push(block);
                if self.workers > 1 && self.resident.is_empty() {
                    self.spread();
                }
            } else if self.engine.chooser.is_reversed() {
                // Behind those that have not had their turn.
                self.resident.insert(0, block);
            } else {
                self.resident.push(block);
            }
        }
    }

    /// Shows how far the launch is, a block having had its turn.
    fn show(&self, finished: bool) {
        if let Some(watch) = &self.watch {
            let waiting = self.resident.len() as u64 + u64::from(!finished);
            watch.show(Seen {
                blocks: self.total(),
                finished: self.started.saturating_sub(waiting),
                instructions: self.engine.executed,
            });
        }
    }

    /// Starts blocks. Only as many as are needed: a block that runs to its end needs no company.
    fn admit(&mut self, spare: &mut Vec<Block>) {
        let whole_window = self.engine.chooser.is_seeded() || self.engine.chooser.is_reversed();
        // A new reversed window starts when the last one is done; waiting blocks let others in.
        let room = self.window - (self.resident.len() as u64).min(self.window);
        let wanted = if !whole_window {
            u64::from(!self.resident.iter().any(|block| block.is_ready() && !block.has_run))
        } else if self.engine.chooser.is_reversed() && self.resident.iter().any(|b| !b.has_run) {
            0
        } else {
            room
        };
        let left = self.total() - self.next;
        // Blocks of a cluster start together.
        let size = u64::from(self.engine.cluster_size());
        let count = (wanted.next_multiple_of(size)).min(room / size * size).min(left);
        for _ in 0..count {
            let block = self.start(spare.pop().unwrap_or_default());
            self.resident.push(block);
        }
    }

    fn choose(&mut self, ready: &[bool]) -> Option<usize> {
        // In order, a block that has not run comes before those that had a turn and wait.
        let fresh: Vec<bool> = self
            .resident
            .iter()
            .zip(ready)
            .map(|(block, ready)| *ready && !block.has_run)
            .collect();
        if !self.engine.chooser.is_seeded() && fresh.contains(&true) {
            return self.engine.chooser.among(&fresh);
        }
        self.engine.chooser.among(ready)
    }

    /// Makes a block resident, in memory that another block may have used.
    fn start(&mut self, mut block: Block) -> Block {
        let launch = &self.engine.launch;
        cluster::place(&mut block, launch, self.next);
        self.next += 1;
        self.started += 1;
        block.alive = launch.threads;
        block.barriers = Default::default();
        block.has_run = false;
        block.objects.clear();
        block.stores.clear();
        block.shared.clear();
        block.shared.resize(launch.shared_bytes as usize, launch.poison);
        let apart = self.engine.code().async_reads && !self.engine.chooser.is_in_order();
        block.keep_view(apart);
        block.bulk.clear();
        let warps = launch.threads.div_ceil(32) as usize;
        block.warps.resize_with(warps, Warp::default);
        for (index, warp) in block.warps.iter_mut().enumerate() {
            start_warp(warp, launch, launch.threads - 32 * index as u32);
        }
        block
    }

    /// Runs a block until it finishes, waits, or has had its turn.
    fn run_block(&mut self, block: Block) -> Result<Block, Box<Fault>> {
        let engine = &mut self.engine;
        let old = std::mem::replace(&mut engine.block, block);
        debug_assert!(old.warps.is_empty());
        engine.block.has_run = true;
        let mut turns = engine.chooser.block_turns(engine.block.warps.len());
        let mut ready: Vec<bool> = engine.block.warps.iter().map(Warp::is_ready).collect();
        while let Some(warp) = engine.chooser.among(&ready) {
            let slice = engine.chooser.warp_slice();
            let outcome = engine.run_warp(warp, slice)?;
            ready[warp] = false;
            if outcome == Outcome::Sliced {
                turns = turns.saturating_sub(1);
            }
            if turns == 0 {
                break;
            }
            if !ready.contains(&true) {
                ready = engine.block.warps.iter().map(Warp::is_ready).collect();
            }
        }
        Ok(std::mem::take(&mut engine.block))
    }

    /// Who waits where, when nobody can go on.
    fn deadlock(&mut self) -> Box<Fault> {
        let mut waiting = Vec::new();
        for block in &self.resident {
            for (warp, state) in block.warps.iter().enumerate() {
                for group in &state.groups {
                    waiting.push(Waiter {
                        block: block.index,
                        warp: warp as u32,
                        lanes: group.mask,
                        line: self.engine.line(group.pc),
                        what: waits_for(group.wait, block),
                    });
                }
            }
        }
        let first = waiting.first().cloned();
        let divergent = self.resident.iter().flat_map(|block| &block.warps).any(|warp| {
            let converging = |group: &Group| matches!(group.wait, Wait::Converge(_));
            warp.groups.iter().any(converging)
        });
        let kind = self.deadlock_kind(divergent, waiting);
        let mut fault = Fault::of_launch(kind, "");
        if let Some(waiter) = first {
            fault.line = Some(waiter.line);
            fault.block = waiter.block;
            let [x, y, _] = self.engine.launch.block;
            let thread = waiter.warp * 32 + waiter.lanes.trailing_zeros();
            fault.thread = [thread % x, thread / x % y, thread / (x * y)];
        }
        Box::new(fault)
    }

    /// A barrier in divergent code is misuse; anything else that stands still is a deadlock.
    fn deadlock_kind(&self, divergent: bool, waiting: Vec<Waiter>) -> FaultKind {
        let code = self.engine.code();
        let at_barrier = |group: &&Group| {
            use crate::execute::effect::Effect;
            use crate::program::Action;
            let effect = code.ops[group.pc as usize].action;
            matches!(group.wait, Wait::Converge(_))
                && matches!(
                    effect,
                    Action::Effect(Effect::Barrier { .. } | Effect::ClusterBarrier { .. })
                )
        };
        let groups =
            self.resident.iter().flat_map(|block| &block.warps).flat_map(|warp| &warp.groups);
        let misused = divergent.then(|| groups.clone().find(at_barrier)).flatten();
        match misused {
            None => FaultKind::Deadlock { waiting },
            Some(group) => {
                let others: Vec<String> = waiting.iter().take(4).map(ToString::to_string).collect();
                FaultKind::BarrierMisuse {
                    what: format!(
                        "the aligned barrier at line {} is in divergent code: {}",
                        self.engine.line(group.pc),
                        others.join("; ")
                    ),
                }
            }
        }
    }
}

fn waits_for(wait: Wait, block: &Block) -> String {
    match wait {
        Wait::Ready => "can run".to_owned(),
        Wait::Converge(members) => format!("for lanes {members:#010x} of its warp"),
        Wait::Barrier(number) => format!("at barrier {number}"),
        Wait::Warpgroup => {
            "for the other warps of its warpgroup to start the same wgmma.mma_async".to_owned()
        }
        Wait::Cluster => "at the cluster's barrier".to_owned(),
        Wait::Phase(at) => waiters::phase(at, block),
    }
}

fn start_warp(warp: &mut Warp, launch: &Launch, threads: u32) {
    let exists = if threads >= 32 { u32::MAX } else { (1 << threads) - 1 };
    let poison = u32::from_ne_bytes([launch.poison; 4]);
    warp.registers.clear();
    warp.registers.resize(launch.rows as usize, broadcast(poison));
    warp.predicates.clear();
    warp.predicates.resize(launch.predicates.max(3) as usize, 0);
    warp.predicates[0] = u32::MAX;
    warp.local.clear();
    warp.local.resize(launch.local_bytes as usize * LANES, launch.poison);
    warp.stack.clear();
    warp.stack_used = [0; LANES];
    warp.groups.clear();
    warp.groups.push(Group {
        mask: exists,
        pc: launch.entry,
        stack: 0,
        depth: 0,
        level: 0,
        wait: Wait::Ready,
    });
    warp.exists = exists;
    warp.alive = exists;
    warp.copies.clear();
    warp.arrivals.clear();
    warp.copy_sequence = 0;
    warp.copy_group = [0; LANES];
    warp.wgmma = WarpgroupState::default();
    warp.bulk_group = [0; LANES];
    warp.cluster_arrived = 0;
    warp.cluster_open = 0;
    warp.streak = 0;
    warp.polls = 0;
    warp.reversed_until = 0;
}
