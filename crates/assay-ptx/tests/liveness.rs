//! Control flow and slots, checked by walking random paths.

mod common;

use std::collections::HashMap;
use std::path::Path;

use assay_num::random::SplitMix64;
use assay_ptx::control_flow::Graph;
use assay_ptx::liveness::{Allocation, Class, Liveness, for_each_read, for_each_written};
use assay_ptx::{Function, RegisterId, parse};
use common::{files, read};

fn function(body: &str) -> Function {
    let text = format!(
        ".version 8.0\n.target sm_80\n.entry k()\n\
         {{ .reg .pred %p<9>; .reg .b32 %r<99>; .reg .b64 %rd<9>;\n{body}\n}}"
    );
    match parse(&text) {
        Ok(mut module) => module.functions.remove(0),
        Err(error) => panic!("{error}"),
    }
}

fn allocate(function: &Function) -> (Graph, Liveness, Allocation) {
    let graph = Graph::of(function);
    let liveness = Liveness::of(function, &graph);
    let allocation = Allocation::of(function, &liveness);
    (graph, liveness, allocation)
}

/// Walks a random path; `Err` names a register whose slot another register took while it was
/// still needed.
fn walk(
    function: &Function,
    graph: &Graph,
    allocation: &Allocation,
    random: &mut SplitMix64,
) -> Result<(), String> {
    let mut owner: HashMap<(Class, u32), RegisterId> = HashMap::new();
    let mut written = vec![false; function.registers.len()];
    let slot = |id: RegisterId| (Class::of(function.register(id).ty), allocation.slots[id.index()]);
    let mut block = 0;
    for _ in 0..200 {
        let Some(current) = graph.blocks.get(block) else { return Ok(()) };
        for instruction in &function.body[current.start as usize..current.end as usize] {
            let mut lost = None;
            for_each_read(instruction, |id| {
                if written[id.index()] && owner.get(&slot(id)) != Some(&id) {
                    lost = Some(id);
                }
            });
            if let Some(id) = lost {
                let name = &function.register(id).name;
                return Err(format!("line {}: {name} is lost", instruction.position.line));
            }
            let mut read = Vec::new();
            for_each_read(instruction, |id| read.push(id));
            for_each_written(instruction, |id| {
                let shared = read.iter().any(|&other| other != id && slot(other) == slot(id));
                if shared {
                    lost = Some(id);
                }
                owner.insert(slot(id), id);
                written[id.index()] = true;
            });
            if let Some(id) = lost {
                let name = &function.register(id).name;
                let line = instruction.position.line;
                return Err(format!("line {line}: {name} overwrites a source"));
            }
        }
        if current.successors.is_empty() {
            return Ok(());
        }
        let choice = random.below(current.successors.len() as u64) as usize;
        block = current.successors[choice] as usize;
    }
    Ok(())
}

fn parse_file(path: &Path) -> assay_ptx::Module {
    match parse(&read(path)) {
        Ok(module) => module,
        Err(error) => panic!("{}:{error}", path.display()),
    }
}

#[test]
fn no_path_loses_a_register_to_another_one() {
    let mut random = SplitMix64::new(3);
    for path in files() {
        for function in &parse_file(&path).functions {
            let (graph, _, allocation) = allocate(function);
            for _ in 0..20 {
                if let Err(problem) = walk(function, &graph, &allocation, &mut random) {
                    panic!("{}: {}: {problem}", path.display(), function.name);
                }
            }
        }
    }
}

#[test]
fn the_walk_notices_a_slot_shared_too_early() {
    let function = function("mov.b32 %r1, 1; mov.b32 %r2, 2; add.s32 %r3, %r1, %r2; ret;");
    let (graph, _, mut allocation) = allocate(&function);
    let mut random = SplitMix64::new(1);
    assert_eq!(walk(&function, &graph, &allocation, &mut random), Ok(()));
    allocation.slots[1] = allocation.slots[0];
    assert!(walk(&function, &graph, &allocation, &mut random).is_err());
}

#[test]
fn blocks_end_at_branches_and_start_at_labels() {
    let function = function(
        "mov.b32 %r1, 0;\nL: add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 9;\n@%p1 bra L;\n\
         @%p1 ret;\nbra END;\nmov.b32 %r2, 1;\nEND:",
    );
    let graph = Graph::of(&function);
    let ranges: Vec<(u32, u32)> = graph.blocks.iter().map(|b| (b.start, b.end)).collect();
    assert_eq!(ranges, [(0, 1), (1, 4), (4, 5), (5, 6), (6, 7)]);
    assert_eq!(graph.blocks[1].successors, [1, 2]);
    assert_eq!(graph.blocks[1].predecessors, [0, 1]);
    assert!(graph.blocks[2].exits && graph.blocks[3].exits && graph.blocks[4].exits);
    assert!(graph.blocks[3].successors.is_empty());
    assert_eq!(graph.reverse_postorder(), [0, 1, 2, 3]);
    assert_eq!(graph.block_of[3], 1);
}

#[test]
fn a_chain_of_temporaries_needs_two_slots() {
    let chain: Vec<String> = (1..90).map(|n| format!("add.s32 %r{}, %r{n}, 1;", n + 1)).collect();
    let chain = chain.join(
        "
",
    );
    let function = function(&format!("mov.b32 %r1, 0;\n{chain}ret;"));
    let (_, liveness, allocation) = allocate(&function);
    assert_eq!(allocation.count(Class::Bits32), 2);
    assert!(liveness.undefined.is_empty());
}

#[test]
fn a_value_used_in_a_loop_lives_through_the_loop() {
    let function = function(
        "mov.b32 %r1, 5; mov.b32 %r2, 0;\nL: mov.b32 %r3, 1; add.s32 %r2, %r2, %r1;\n\
         mov.b32 %r4, 7; setp.lt.s32 %p1, %r2, %r4; @%p1 bra L; ret;",
    );
    let (_, liveness, allocation) = allocate(&function);
    let branch = function.body.len() as u32 - 2;
    assert_eq!(liveness.intervals[0].map(|interval| interval.end), Some(branch));
    assert_eq!(allocation.count(Class::Bits32), 3);
}

#[test]
fn a_guarded_write_keeps_the_old_value() {
    let function = function(
        "mov.b32 %r1, 1; setp.eq.s32 %p1, %r1, 1; @%p1 mov.b32 %r1, 2; @!%p1 mov.b32 %r2, 3;\n\
         add.s32 %r3, %r1, %r2; ret;",
    );
    let (_, liveness, _) = allocate(&function);
    assert_eq!(liveness.intervals[0].map(|interval| (interval.start, interval.end)), Some((0, 4)));
    // `%r2` may keep whatever it had.
    let undefined: Vec<&str> =
        liveness.undefined.iter().map(|&id| function.register(id).name.as_str()).collect();
    assert_eq!(undefined, ["%r2"]);
}
