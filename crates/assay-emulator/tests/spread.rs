//! Blocks of one launch on several threads: the same bytes, faults and statistics as on one.

mod common;

use assay_emulator::{Fault, LaunchConfig, LaunchStatistics, Machine, MachineConfig};
use common::compile_with;

const BLOCKS: u32 = 96;
const WORDS: u64 = BLOCKS as u64 * 64;

/// A kernel of blocks of 64 that turns a loop, long enough to be worth threads, and then does what
/// `tail` says: `%rd3` is the thread's word of `out`, `%rd4` that of `in`, `%r4` a number of its
/// own, `%r1` the block.
fn kernel(tail: &str) -> String {
    format!(
        ".version 8.0
        .target sm_80
        .address_size 64
        .visible .entry test(.param .u64 out, .param .u64 in)
        {{
            .reg .pred %p<4>;
            .reg .b32 %r<16>;
            .reg .b64 %rd<16>;
            ld.param.u64 %rd1, [out];
            ld.param.u64 %rd2, [in];
            mov.u32 %r1, %ctaid.x;
            mov.u32 %r2, %tid.x;
            mad.lo.u32 %r3, %r1, 64, %r2;
            mad.wide.u32 %rd3, %r3, 4, %rd1;
            mad.wide.u32 %rd4, %r3, 4, %rd2;
            mov.u32 %r4, %r3;
            mov.u32 %r5, 0;
        LOOP:
            mad.lo.u32 %r4, %r4, 1664525, 1013904223;
            add.u32 %r5, %r5, 1;
            setp.lt.u32 %p1, %r5, 1000;
            @%p1 bra LOOP;
            {tail}
            ret;
        }}"
    )
}

type Outcome = (Result<LaunchStatistics, Fault>, Vec<u8>);

/// Runs it with so many workers on a buffer of words that is `out`, and one that is `in`, the same
/// if `in_place`.
fn run(source: &str, workers: u32, in_place: bool, budget: u64) -> Outcome {
    let program = compile_with(source, assay_emulator::CompileOptions::default());
    let mut machine = Machine::new(MachineConfig { workers, ..MachineConfig::default() });
    let out = machine.allocate(4 * WORDS, 256).unwrap();
    let input = machine.allocate(4 * WORDS, 256).unwrap();
    let words: Vec<u8> = (0..WORDS as u32).flat_map(|n| (n * n).to_le_bytes()).collect();
    machine.write(input, &words).unwrap();
    machine.write(out, &words).unwrap();
    let input = if in_place { out } else { input };
    let parameters = [out.to_le_bytes(), input.to_le_bytes()].concat();
    let config = LaunchConfig {
        grid: [BLOCKS, 1, 1],
        block: [64, 1, 1],
        parameters,
        instruction_budget: budget,
        ..LaunchConfig::default()
    };
    let result = machine.launch(&program, "test", &config);
    let mut bytes = vec![0; 4 * WORDS as usize];
    machine.read(out, &mut bytes).unwrap();
    (result, bytes)
}

const BUDGET: u64 = 1 << 40;

#[track_caller]
fn same(tail: &str, in_place: bool) -> Outcome {
    let source = kernel(tail);
    let alone = run(&source, 1, in_place, BUDGET);
    for workers in [2, 3, 5] {
        assert_eq!(run(&source, workers, in_place, BUDGET), alone, "{workers} workers");
    }
    alone
}

#[test]
fn blocks_on_several_threads_write_the_bytes_of_one_thread() {
    let (result, bytes) = same(
        "ld.global.u32 %r6, [%rd4];
         add.u32 %r6, %r6, %r4;
         st.global.u32 [%rd3], %r6;",
        false,
    );
    assert_eq!(result.unwrap().blocks, u64::from(BLOCKS));
    assert!(bytes.iter().any(|&byte| byte != 0));
}

#[test]
fn a_kernel_that_works_in_place_is_run_in_order() {
    let tail = "ld.global.u32 %r6, [%rd4];
         add.u32 %r6, %r6, %r4;
         st.global.u32 [%rd3], %r6;";
    same(tail, true).0.unwrap();
}

#[test]
fn where_blocks_write_the_same_word_the_last_one_wins() {
    let (_, bytes) = same("st.global.u32 [%rd1], %r1;", false);
    assert_eq!(bytes[..4], (BLOCKS - 1).to_le_bytes());
}

#[test]
fn a_block_that_reads_what_the_one_before_wrote_finds_it() {
    // Each block adds one to the word of the block before it.
    let tail = "mul.wide.u32 %rd5, %r1, 4;
         add.u64 %rd6, %rd1, %rd5;
         ld.global.u32 %r6, [%rd6];
         add.u32 %r6, %r6, 1;
         setp.lt.u32 %p2, %r1, 95;
         @%p2 st.global.u32 [%rd6+4], %r6;";
    let (_, bytes) = same(tail, false);
    assert_eq!(bytes[4 * 95..4 * 96], 95_u32.to_le_bytes());
}

#[test]
fn lanes_that_scatter_are_written_exactly() {
    // The words of even threads, backwards; the others keep what is there.
    let tail = "xor.b32 %r6, %r3, 62;
         mad.wide.u32 %rd5, %r6, 4, %rd1;
         and.b32 %r7, %r3, 1;
         setp.eq.u32 %p2, %r7, 0;
         @%p2 st.global.u32 [%rd5], %r4;";
    same(tail, false).0.unwrap();
}

#[test]
fn the_fault_is_that_of_the_first_block_that_has_one() {
    let tail = "setp.lt.u32 %p2, %r1, 37;
         st.global.u32 [%rd3], %r4;
         @%p2 bra FINE;
         st.global.u32 [%rd3+1000000], %r4;
        FINE:";
    let (result, _) = same(tail, false);
    let fault = result.unwrap_err();
    assert_eq!(fault.block, [37, 0, 0]);
}

#[test]
fn a_budget_ends_in_the_same_block() {
    let source = kernel("st.global.u32 [%rd3], %r4;");
    let alone = run(&source, 1, false, 300_000);
    assert_eq!(run(&source, 4, false, 300_000), alone);
    assert!(alone.0.is_err());
}

#[test]
fn blocks_that_count_with_atomics_are_run_in_order() {
    let tail = "atom.global.add.u32 %r6, [%rd1], 1;
         add.u64 %rd5, %rd3, 0;
         setp.gt.u32 %p2, %r3, 0;
         @%p2 st.global.u32 [%rd5], %r6;";
    same(tail, false).0.unwrap();
}
