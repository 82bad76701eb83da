//! Basic blocks and the edges between them.

use crate::base::Base;
use crate::module::{Function, Instruction, Operand, Targets};

/// A run of instructions that is entered at its start and left at its end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Index of the first instruction.
    pub start: u32,
    /// Index one past the last instruction.
    pub end: u32,
    /// Blocks that can run next, without repeats.
    pub successors: Vec<u32>,
    /// Blocks that can run before, without repeats.
    pub predecessors: Vec<u32>,
    /// Whether a thread can leave the function at the end of the block: `ret`, `exit`, `trap`, or
    /// the end of the body.
    pub exits: bool,
}

/// The control-flow graph of a function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// The blocks, in the order of the body; the first is the entry.
    pub blocks: Vec<Block>,
    /// The block of each instruction.
    pub block_of: Vec<u32>,
}

impl Graph {
    /// Builds the graph of a function. A body without instructions has no blocks.
    pub fn of(function: &Function) -> Graph {
        let mut graph = split(function);
        for index in 0..graph.blocks.len() {
            connect(&mut graph, function, index);
        }
        graph
    }

    /// The blocks that can be reached from the entry, in reverse postorder: a block comes before
    /// its successors, except along the back edges of loops.
    pub fn reverse_postorder(&self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut seen = vec![false; self.blocks.len()];
        // A block and how many of its successors were visited.
        let mut stack: Vec<(u32, usize)> = Vec::new();
        if let Some(first) = seen.first_mut() {
            *first = true;
            stack.push((0, 0));
        }
        while let Some((block, visited)) = stack.last_mut() {
            let successor = self.blocks[*block as usize].successors.get(*visited).copied();
            *visited += 1;
            match successor {
                Some(next) if !seen[next as usize] => {
                    seen[next as usize] = true;
                    stack.push((next, 0));
                }
                Some(_) => {}
                None => {
                    order.push(*block);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }
}

/// How an instruction ends its block.
enum Ending {
    /// It does not.
    Falls,
    /// A branch to one label.
    Branch(u32),
    /// A branch to one of a list.
    Table(usize),
    /// The thread leaves the function.
    Leaves,
}

fn ending(instruction: &Instruction) -> Ending {
    match (instruction.opcode.base, instruction.operands.as_slice()) {
        (Base::Bra, [Operand::Label(target)]) => Ending::Branch(*target),
        (Base::BrxIdx, [_, Operand::Targets(list)]) => Ending::Table(*list as usize),
        (Base::Ret | Base::Exit | Base::Trap, _) => Ending::Leaves,
        _ => Ending::Falls,
    }
}

/// Where the instruction can jump to.
fn jumps<'f>(function: &'f Function, instruction: &Instruction) -> (Option<u32>, &'f [u32]) {
    match ending(instruction) {
        Ending::Branch(target) => (Some(target), &[]),
        Ending::Table(list) => match function.targets.get(list).map(|list| &list.targets) {
            Some(Targets::Branch(targets)) => (None, targets),
            _ => (None, &[]),
        },
        Ending::Falls | Ending::Leaves => (None, &[]),
    }
}

fn split(function: &Function) -> Graph {
    let body = &function.body;
    let mut starts = vec![false; body.len() + 1];
    starts[0] = true;
    starts[body.len()] = true;
    for (index, instruction) in body.iter().enumerate() {
        if !matches!(ending(instruction), Ending::Falls) {
            starts[index + 1] = true;
        }
        let (one, table) = jumps(function, instruction);
        for target in one.iter().chain(table) {
            if let Some(start) = starts.get_mut(*target as usize) {
                *start = true;
            }
        }
    }
    let mut graph = Graph::default();
    for (index, &starts_here) in starts[..body.len()].iter().enumerate() {
        if starts_here {
            let start = index as u32;
            graph.blocks.push(Block { start, ..Block::default() });
        }
        let current = graph.blocks.len() - 1;
        graph.blocks[current].end = index as u32 + 1;
        graph.block_of.push(current as u32);
    }
    graph
}

fn connect(graph: &mut Graph, function: &Function, index: usize) {
    let last = graph.blocks[index].end as usize - 1;
    let Some(instruction) = function.body.get(last) else { return };
    let (one, table) = jumps(function, instruction);
    let always = instruction.guard.is_none() && !matches!(ending(instruction), Ending::Falls);
    let next = if always { None } else { Some(last as u32 + 1) };
    if matches!(ending(instruction), Ending::Leaves) {
        graph.blocks[index].exits = true;
    }
    for target in one.iter().chain(table).chain(&next) {
        match graph.block_of.get(*target as usize).copied() {
            // A label behind the last instruction, or falling off the end: the function returns.
            None => graph.blocks[index].exits = true,
            Some(block) if graph.blocks[index].successors.contains(&block) => {}
            Some(block) => {
                graph.blocks[index].successors.push(block);
                graph.blocks[block as usize].predecessors.push(index as u32);
            }
        }
    }
}
