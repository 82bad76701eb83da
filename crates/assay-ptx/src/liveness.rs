//! Which registers hold a value that is still needed, and few slots to keep them in.
//!
//! Liveness is that of one thread: threads of a warp may stand at different instructions, but each
//! uses only its own lane of a slot, so two registers may share a slot when no single thread needs
//! both at once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::base::Base;
use crate::control_flow::Graph;
use crate::module::{Function, Instruction, RegisterId};
use crate::types::Type;

/// Registers that one file of slots can hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// `.pred`.
    Predicate,
    /// 8 and 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
    /// 128 bits.
    Bits128,
}

impl Class {
    /// All classes, in order.
    pub const ALL: [Class; 5] =
        [Class::Predicate, Class::Bits16, Class::Bits32, Class::Bits64, Class::Bits128];

    /// The class of registers of a type.
    pub fn of(ty: Type) -> Class {
        match (ty, ty.bits()) {
            (Type::Pred, _) => Class::Predicate,
            (_, 0..=16) => Class::Bits16,
            (_, 17..=32) => Class::Bits32,
            (_, 33..=64) => Class::Bits64,
            _ => Class::Bits128,
        }
    }
}

/// The instructions over which a register must keep its slot: from `start` to `end`, both
/// included. An instruction that writes a register keeps the slots of those it reads, so a
/// destination never shares a slot with a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Index of the first instruction that touches the register.
    pub start: u32,
    /// Index of the last one, over loops.
    pub end: u32,
}

/// Calls back with every register that the instruction writes.
pub fn for_each_written(instruction: &Instruction, mut see: impl FnMut(RegisterId)) {
    if let Some(destination) = instruction.destination() {
        destination.for_each_register(&mut see);
    }
}

/// Calls back with every register that the instruction reads, its guard included.
///
/// A guarded instruction keeps the old value of its destination where the guard is false, and
/// `wgmma.mma_async` adds to its destination: both read it.
pub fn for_each_read(instruction: &Instruction, mut see: impl FnMut(RegisterId)) {
    if let Some(guard) = instruction.guard {
        see(guard.register);
    }
    let keeps = instruction.guard.is_some() || instruction.opcode.base == Base::WgmmaMmaAsync;
    if let Some(destination) = instruction.destination().filter(|_| keeps) {
        destination.for_each_register(&mut see);
    }
    for source in instruction.sources() {
        source.for_each_register(&mut see);
    }
}

/// The liveness of the registers of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Liveness {
    /// The interval of each register; `None` when no instruction touches it.
    pub intervals: Vec<Option<Interval>>,
    /// Registers that some path reads before it writes them. Compilers leave a few, whose value is
    /// not used; in hand-written code they are errors.
    pub undefined: Vec<RegisterId>,
}

impl Liveness {
    /// Computes the liveness of a function.
    pub fn of(function: &Function, graph: &Graph) -> Liveness {
        let crossing = Crossing::of(function, graph);
        let live_in = crossing.live_in(graph);
        let mut intervals = vec![None; function.registers.len()];
        for (index, instruction) in function.body.iter().enumerate() {
            let index = index as u32;
            for_each_read(instruction, |id| touch(&mut intervals, id, index));
            for_each_written(instruction, |id| touch(&mut intervals, id, index));
        }
        for (block, live) in graph.blocks.iter().zip(&live_in) {
            for id in live.iter().map(|&place| crossing.registers[place]) {
                touch(&mut intervals, id, block.start);
                for &before in &block.predecessors {
                    let end = graph.blocks[before as usize].end;
                    touch(&mut intervals, id, end.saturating_sub(1));
                }
            }
        }
        keep_until_waits(function, &mut intervals);
        let undefined = live_in.first().map_or_else(Vec::new, |live| {
            live.iter().map(|&place| crossing.registers[place]).collect()
        });
        Liveness { intervals, undefined }
    }
}

/// The accumulators of `wgmma.mma_async` are written as late as at the wait for it.
fn keep_until_waits(function: &Function, intervals: &mut [Option<Interval>]) {
    let is = |base: Base| move |i: &&Instruction| i.opcode.base == base;
    let products = function.body.iter().filter(is(Base::WgmmaMmaAsync));
    let mut accumulators = Vec::new();
    for product in products {
        for_each_written(product, |id| accumulators.push(id));
    }
    accumulators.sort_unstable();
    accumulators.dedup();
    for (index, instruction) in function.body.iter().enumerate() {
        if instruction.opcode.base == Base::WgmmaWaitGroup {
            for &id in &accumulators {
                touch(intervals, id, index as u32);
            }
        }
    }
}

fn touch(intervals: &mut [Option<Interval>], id: RegisterId, index: u32) {
    let Some(interval) = intervals.get_mut(id.index()) else { return };
    match interval {
        None => *interval = Some(Interval { start: index, end: index }),
        Some(interval) => {
            interval.start = interval.start.min(index);
            interval.end = interval.end.max(index);
        }
    }
}

/// Registers that some block reads before it writes them. Only these can be live between blocks,
/// and they are few, so the sets stay small.
struct Crossing {
    registers: Vec<RegisterId>,
    /// Per block: places of registers that it reads first.
    reads: Vec<Vec<usize>>,
    /// Per block: places of registers that it writes for sure, sorted.
    writes: Vec<Vec<usize>>,
}

impl Crossing {
    fn of(function: &Function, graph: &Graph) -> Crossing {
        let mut places: HashMap<RegisterId, usize> = HashMap::new();
        let mut registers = Vec::new();
        let mut reads = Vec::with_capacity(graph.blocks.len());
        let mut written_in = vec![u32::MAX; function.registers.len()];
        for (number, block) in graph.blocks.iter().enumerate() {
            let mut first = Vec::new();
            for instruction in &function.body[block.start as usize..block.end as usize] {
                for_each_read(instruction, |id| {
                    if written_in.get(id.index()) != Some(&(number as u32)) {
                        first.push(*places.entry(id).or_insert_with(|| {
                            registers.push(id);
                            registers.len() - 1
                        }));
                    }
                });
                for_each_written(instruction, |id| {
                    if let Some(place) = written_in.get_mut(id.index()) {
                        *place = number as u32;
                    }
                });
            }
            first.sort_unstable();
            first.dedup();
            reads.push(first);
        }
        let writes = graph.blocks.iter().map(|block| {
            let mut written = Vec::new();
            for instruction in &function.body[block.start as usize..block.end as usize] {
                for_each_written(instruction, |id| written.extend(places.get(&id).copied()));
            }
            written.sort_unstable();
            written.dedup();
            written
        });
        let writes = writes.collect();
        Crossing { registers, reads, writes }
    }

    /// The places live at the start of each block: one walk backwards per register, from the
    /// blocks that read it first up to the blocks that write it.
    fn live_in(&self, graph: &Graph) -> Vec<Vec<usize>> {
        let mut live: Vec<Vec<usize>> = vec![Vec::new(); graph.blocks.len()];
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); self.registers.len()];
        for (block, reads) in self.reads.iter().enumerate() {
            for &place in reads {
                readers[place].push(block as u32);
            }
        }
        for (place, mut pending) in readers.into_iter().enumerate() {
            while let Some(block) = pending.pop() {
                let known = &mut live[block as usize];
                if known.last() == Some(&place) {
                    continue;
                }
                known.push(place);
                let before = graph.blocks[block as usize].predecessors.iter().copied();
                let writes = |b: u32| self.writes[b as usize].binary_search(&place).is_ok();
                pending.extend(before.filter(|&b| !writes(b)));
            }
        }
        live
    }
}

/// A slot for every register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// The slot of each register in the file of its class; 0 for registers that nothing touches.
    pub slots: Vec<u32>,
    /// Slots needed per class, in the order of [`Class::ALL`].
    pub counts: [u32; 5],
}

impl Allocation {
    /// Gives every register a slot, so that registers needed at the same time differ.
    pub fn of(function: &Function, liveness: &Liveness) -> Allocation {
        let mut allocation =
            Allocation { slots: vec![0; function.registers.len()], counts: [0; 5] };
        for class in Class::ALL {
            allocation.fill(function, liveness, class);
        }
        allocation
    }

    /// Linear scan: by start, the lowest slot that is free; a slot is free after its end.
    fn fill(&mut self, function: &Function, liveness: &Liveness, class: Class) {
        let of_class = |index: &usize| Class::of(function.registers[*index].ty) == class;
        let intervals = (0..function.registers.len()).filter(of_class);
        let mut intervals: Vec<(Interval, usize)> = intervals
            .filter_map(|index| Some((liveness.intervals.get(index).copied()??, index)))
            .collect();
        intervals.sort_unstable_by_key(|(interval, index)| (interval.start, *index));
        let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
        let mut busy: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let count = &mut self.counts[class as usize];
        for (interval, index) in intervals {
            while let Some(Reverse((end, slot))) = busy.peek().copied() {
                if end >= interval.start {
                    break;
                }
                busy.pop();
                free.push(Reverse(slot));
            }
            let slot = free.pop().map_or_else(
                || {
                    *count += 1;
                    *count - 1
                },
                |Reverse(slot)| slot,
            );
            busy.push(Reverse((interval.end, slot)));
            self.slots[index] = slot;
        }
    }

    /// The slots of a class.
    pub fn count(&self, class: Class) -> u32 {
        self.counts[class as usize]
    }
}
