//! The interpreter: picks a group of lanes and runs it until it has to stop.
//!
//! A warp's lanes are in groups that share a program counter. The group with the lowest counter in
//! the deepest call runs first, up to where another group waits, so that lanes that parted meet
//! again. A group that spins for long lets the others go first for a while.

use crate::arithmetic::tensor::TensorModel;
use crate::fault::{Fault, FaultKind};
use crate::machine::Timers;
use crate::memory::Memory;
use crate::observer::Observer;
use crate::program::{Action, Code, Inner, Op};
use crate::schedule::Chooser;

use super::block::Block;
use super::calls::CallStacks;
use super::frame::{Frame, Row};
use super::warp::{Group, Wait};

/// Instructions after which other groups of the warp get their turn.
const GROUP_TURN: u64 = 20_000;
/// Waiting loads after which other groups, warps and blocks get their turn.
pub(crate) const POLL_TURN: u32 = 64;
/// How long the other groups' turn is.
const REVERSED_TURN: u64 = 2_000;

/// What the interpreter does after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    /// Goes on behind it.
    Next,
    /// The group has been put away; another is picked.
    Reschedule,
}

/// Something wrong, and the lane to blame.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) kind: FaultKind,
    pub(crate) lane: u32,
}

impl Trouble {
    pub(crate) fn new(kind: FaultKind, lanes: u32) -> Box<Trouble> {
        Box::new(Trouble { kind, lane: lanes.trailing_zeros() & 31 })
    }
}

/// What an effect gives.
pub(crate) type Step<T = Flow> = Result<T, Box<Trouble>>;

/// What a run of one warp ends with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// All lanes wait or have exited.
    Blocked,
    /// The slice is used up.
    Sliced,
}

/// What stays the same during a launch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Blocks per cluster; `[1, 1, 1]` without clusters.
    pub(crate) cluster: [u32; 3],
    /// Whether the launch or the kernel asked for clusters.
    pub(crate) explicit_cluster: bool,
    pub(crate) threads: u32,
    pub(crate) entry: u32,
    pub(crate) rows: u32,
    pub(crate) predicates: u32,
    pub(crate) local_bytes: u32,
    /// The parts of shared memory that are variables.
    pub(crate) shared_ranges: Vec<(u32, u32)>,
    /// All of the block's shared memory, red zones included.
    pub(crate) shared_bytes: u32,
    /// Where dynamic shared memory starts.
    pub(crate) dynamic_start: u32,
    /// Bytes of shared memory as a chip counts them.
    pub(crate) counted_shared: u32,
    /// The part whose size the launch gave.
    pub(crate) dynamic_shared: u32,
    pub(crate) multiprocessors: u32,
    pub(crate) parameters: Vec<u8>,
    pub(crate) workspace: u64,
    pub(crate) budget: u64,
    pub(crate) poison: u8,
    pub(crate) timers: Timers,
    /// Lanes act last to first.
    pub(crate) lanes_reversed: bool,
    pub(crate) tensor_model: TensorModel,
}

/// Runs a launch.
pub(crate) struct Engine<'m, O> {
    pub(crate) memory: &'m mut Memory,
    pub(crate) program: &'m Inner,
    pub(crate) launch: Launch,
    /// What the frame points at.
    pub(crate) constants: Vec<Row>,
    pub(crate) observer: O,
    pub(crate) chooser: Chooser,
    pub(crate) frame: Frame,
    pub(crate) block: Block,
    /// The other blocks of the running block's cluster, by rank; `None` for those that have exited
    /// and for the running one.
    pub(crate) peers: Vec<Option<Block>>,
    /// Whether any thread has arrived at a cluster's barrier.
    pub(crate) cluster_barrier_used: bool,
    /// Whether some group may wait for a phase of an mbarrier.
    pub(crate) sleepers: bool,
    /// Counts what others may wait for: exits, barriers and phases that complete.
    pub(crate) progress: u64,
    /// The running warp, as an index into the block.
    pub(crate) warp: usize,
    pub(crate) group: Group,
    /// Where the group must stop because another waits there.
    limit: u32,
    /// Whether other groups of the warp can run.
    diverged: bool,
    /// Instructions left in the slice.
    pub(crate) slice: i64,
    /// Warp instructions run so far, up to the start of the current straight line.
    pub(crate) executed: u64,
    /// Where the current straight line started.
    pub(crate) line_start: u32,
    pub(crate) lane_operations: u64,
    pub(crate) stacks: CallStacks,
    /// For each op, the allocation that it last touched.
    pub(crate) hints: Vec<u32>,
    pub(crate) output: String,
}

impl<'m, O: Observer> Engine<'m, O> {
    pub(crate) fn new(
        memory: &'m mut Memory,
        program: &'m Inner,
        launch: Launch,
        constants: Vec<Row>,
        observer: O,
        chooser: Chooser,
        seed: u64,
    ) -> Engine<'m, O> {
        let frame = Frame {
            registers: std::ptr::null_mut(),
            constants: constants.as_ptr(),
            predicates: std::ptr::null_mut(),
            alive: 0,
            seed,
        };
        let group = Group { mask: 0, pc: 0, stack: 0, depth: 0, level: 0, wait: Wait::Ready };
        Engine {
            memory,
            program,
            launch,
            constants,
            observer,
            chooser,
            frame,
            block: Block::default(),
            peers: Vec::new(),
            cluster_barrier_used: false,
            sleepers: false,
            progress: 0,
            warp: 0,
            group,
            limit: 0,
            diverged: false,
            slice: 0,
            executed: 0,
            line_start: 0,
            lane_operations: 0,
            stacks: CallStacks::new(),
            hints: vec![0; program.code.ops.len()],
            output: String::new(),
        }
    }

    pub(crate) fn code(&self) -> &'m Code {
        &self.program.code
    }

    /// Runs warp `warp` of the current block for up to `slice` instructions.
    pub(crate) fn run_warp(&mut self, warp: usize, slice: i64) -> Result<Outcome, Box<Fault>> {
        self.warp = warp;
        self.slice = slice;
        loop {
            if !self.pick_group() {
                return Ok(Outcome::Blocked);
            }
            let step = self.interpret();
            match step {
                Ok(true) => self.block.warps[warp].groups.push(self.group),
                Ok(false) => {}
                Err(trouble) => return Err(self.fault(*trouble)),
            }
            if self.executed > self.launch.budget {
                let lines = self.places();
                let kind = FaultKind::Runaway { budget: self.launch.budget, lines };
                return Err(
                    self.fault(Trouble { kind, lane: self.group.mask.trailing_zeros() & 31 })
                );
            }
            if self.slice <= 0 {
                return Ok(Outcome::Sliced);
            }
        }
    }

    fn interpret(&mut self) -> Step<bool> {
        #[cfg(target_arch = "x86_64")]
        if self.program.wide {
            // SAFETY: a program is wide only on hosts that have these features.
            return unsafe { self.interpret_wide() };
        }
        self.interpret_inner()
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
    unsafe fn interpret_wide(&mut self) -> Step<bool> {
        self.interpret_inner()
    }

    /// Runs the current group. `true` when it is to be put back among the others.
    #[inline(always)]
    fn interpret_inner(&mut self) -> Step<bool> {
        let ops: &'m [Op] = &self.program.code.ops;
        let limit = self.limit;
        let mut mask = self.group.mask;
        let mut pc = self.group.pc;
        let mut start = pc;
        loop {
            if pc >= limit {
                self.group.pc = pc;
                self.account(pc - start);
                return Ok(true);
            }
            // Every function ends in an exit or a return, so a counter never runs off the end.
            let op = &ops[pc as usize];
            // SAFETY: guards are predicates of this program, which `enter` sized the frame for.
            let guard = unsafe { self.frame.predicate(op.guard) } ^ op.flip;
            let active = mask & guard;
            if active == 0 {
                pc += 1;
                continue;
            }
            match op.action {
                Action::Compute(function) => {
                    // SAFETY: the operands are of this program, and lowering picked the function
                    // for the features of this host.
                    unsafe { function(&mut self.frame, &op.operands, active) };
                    pc += 1;
                }
                Action::Nothing => pc += 1,
                Action::Jump(target) => {
                    self.account(pc + 1 - start);
                    if active == mask {
                        pc = target;
                    } else {
                        self.split(active, target, pc + 1);
                        (pc, mask) = (self.group.pc, self.group.mask);
                    }
                    start = pc;
                    if self.diverged || self.slice <= 0 {
                        self.group.pc = pc;
                        return Ok(true);
                    }
                }
                Action::Effect(effect) => {
                    self.group.pc = pc;
                    self.line_start = start;
                    match self.effect(effect, op, active)? {
                        Flow::Next => pc += 1,
                        Flow::Reschedule => {
                            self.account(pc + 1 - start);
                            return Ok(false);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn account(&mut self, instructions: u32) {
        let instructions = u64::from(instructions);
        self.executed += instructions;
        self.lane_operations += instructions * u64::from(self.group.mask.count_ones());
        self.slice -= instructions as i64;
    }

    /// The lanes of `mask` go to `target`, the other lanes of the group to `other`.
    pub(crate) fn split(&mut self, mask: u32, target: u32, other: u32) {
        let rest = Group { mask: self.group.mask & !mask, pc: other, ..self.group };
        self.group.mask = mask;
        self.group.pc = target;
        if rest.mask != 0 {
            self.block.warps[self.warp].groups.push(rest);
            self.diverged = true;
        }
    }

    /// Takes the next group of the warp that can run; `false` when there is none.
    fn pick_group(&mut self) -> bool {
        let executed = self.executed;
        let warp = &mut self.block.warps[self.warp];
        if warp.groups.len() > 1 {
            warp.merge();
        }
        let ready = warp.groups.iter().filter(|group| group.wait == Wait::Ready).count();
        if ready == 0 {
            return false;
        }
        if ready > 1 && (warp.streak > GROUP_TURN || warp.polls > POLL_TURN) {
            warp.reversed_until = executed + REVERSED_TURN;
            warp.streak = 0;
            warp.polls = 0;
        }
        let last_first = executed < warp.reversed_until;
        let chosen = self.chooser.group(&warp.groups, last_first);
        self.group = warp.groups.swap_remove(chosen);
        self.diverged = ready > 1;
        if let Some(part) = self.chooser.ahead(self.group.mask) {
            warp.groups.push(Group { mask: self.group.mask & !part, ..self.group });
            self.group.mask = part;
            self.diverged = true;
        }
        self.enter();
        true
    }

    /// Points the frame at the group's registers and finds where it has to stop.
    pub(crate) fn enter(&mut self) {
        let code = &self.program.code;
        let group = self.group;
        let warp = &mut self.block.warps[self.warp];
        let row = group.level as usize * code.level_rows as usize;
        let predicate = group.level as usize * code.level_predicates as usize;
        let rows = row + self.launch.rows as usize;
        let predicates = predicate + self.launch.predicates as usize;
        assert!(rows <= warp.registers.len() && predicates <= warp.predicates.len());
        self.frame.registers = warp.registers[row..].as_mut_ptr();
        self.frame.predicates = warp.predicates[predicate..].as_mut_ptr();
        self.frame.alive = warp.alive;
        let others = warp.groups.iter().filter(|other| {
            other.wait == Wait::Ready && other.depth == group.depth && other.pc > group.pc
        });
        self.limit = others.map(|other| other.pc).min().unwrap_or(u32::MAX);
        if self.diverged {
            warp.streak += 1;
        }
        self.limit = self.chooser.preempt(group.pc, self.limit);
    }

    /// Makes the warp wait for all lanes of `members` at this instruction. `None` when they are all
    /// here.
    pub(crate) fn converge(&mut self, members: u32, active: u32) -> Option<Flow> {
        let warp = &mut self.block.warps[self.warp];
        let needed = members & warp.alive;
        if needed & !active == 0 {
            return None;
        }
        let rest = Group { mask: self.group.mask & !active, pc: self.group.pc + 1, ..self.group };
        if rest.mask != 0 {
            warp.groups.push(rest);
        }
        self.park(members, active);
        Some(Flow::Reschedule)
    }

    /// Puts lanes of this group away until all members are here.
    pub(crate) fn park(&mut self, members: u32, lanes: u32) {
        let warp = &mut self.block.warps[self.warp];
        let here = Group { mask: lanes, wait: Wait::Converge(members), ..self.group };
        let mut joined = here;
        warp.groups.retain(|other| {
            let same = other.wait == here.wait && other.pc == here.pc && other.stack == here.stack;
            joined.mask |= if same { other.mask } else { 0 };
            !same
        });
        if members & warp.alive & !joined.mask == 0 {
            // All here: the joined group runs the instruction once more, together.
            joined.wait = Wait::Ready;
        }
        warp.groups.push(joined);
    }

    /// Counts a load that may be waiting for another thread.
    #[inline(always)]
    pub(crate) fn poll(&mut self, count: u32) {
        let warp = &mut self.block.warps[self.warp];
        warp.polls += count;
        if warp.polls > POLL_TURN {
            if self.diverged {
                return;
            }
            warp.polls = 0;
            self.slice = 0;
        }
    }

    /// The PTX lines that the warps of the block are at, those with most warps first.
    fn places(&self) -> Vec<(u32, u32)> {
        let mut counts = std::collections::BTreeMap::new();
        for warp in &self.block.warps {
            let mut lines: Vec<u32> = warp.groups.iter().map(|group| self.line(group.pc)).collect();
            lines.sort_unstable();
            lines.dedup();
            for line in lines {
                *counts.entry(line).or_insert(0) += 1;
            }
        }
        let mut lines: Vec<(u32, u32)> = counts.into_iter().collect();
        lines.sort_by_key(|&(line, warps)| (std::cmp::Reverse(warps), line));
        lines
    }

    /// The PTX line of an op.
    pub(crate) fn line(&self, pc: u32) -> u32 {
        let code = self.code();
        code.places[code.ops[pc as usize].place as usize].position.line
    }

    /// A fault at the current instruction.
    pub(crate) fn fault(&self, trouble: Trouble) -> Box<Fault> {
        let code = self.code();
        let place = &code.places[code.ops[self.group.pc as usize].place as usize];
        let files = &self.program.module.files;
        let source = place.source.and_then(|at| {
            let name = files.iter().find(|(number, _)| *number == at.file)?;
            Some((name.1.clone(), at.line))
        });
        let thread = self.warp as u32 * 32 + trouble.lane;
        let [x, y, _] = self.launch.block;
        Box::new(Fault {
            kind: trouble.kind,
            symbol: String::new(),
            line: Some(place.position.line),
            source,
            opcode: Some(place.opcode.text.clone()),
            block: self.block.index,
            thread: [thread % x, thread / x % y, thread / (x * y)],
            output: String::new(),
        })
    }
}
