//! Orders of execution: waiting across blocks, replay, grid barriers.
#![allow(clippy::result_large_err, reason = "as in the crate")]

mod common;

use assay_emulator::{FaultKind, LaunchConfig, Machine, MachineConfig, Schedule};
use common::{Bench, compile, pointer_kernel};

const SCHEDULES: [Schedule; 5] = [
    Schedule::InOrder,
    Schedule::Reversed,
    Schedule::Seeded(1),
    Schedule::Seeded(2),
    Schedule::Seeded(3),
];

/// Every block waits for the one behind it, so that the last to start goes first.
fn chain() -> String {
    pointer_kernel(
        "",
        "    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %nctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    sub.s32 %r4, %r3, 1;
    setp.eq.u32 %p2, %r2, %r4;
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    @%p2 bra GO;
WAIT:
    ld.acquire.gpu.global.u32 %r5, [%rd2+4];
    setp.eq.u32 %p3, %r5, 0;
    @%p3 bra WAIT;
GO:
    membar.gl;
    add.s32 %r6, %r2, 1;
    st.global.u32 [%rd2], %r6;",
    )
}

#[test]
fn a_spin_wait_across_resident_blocks_ends() {
    for schedule in SCHEDULES {
        let mut bench = Bench::new(64);
        let config = LaunchConfig {
            grid: [16, 1, 1],
            schedule,
            instruction_budget: 10_000_000,
            ..LaunchConfig::default()
        };
        bench.launch(&chain(), &config).unwrap();
        let want: Vec<u32> = (1..=16).collect();
        assert_eq!(bench.words(), want, "{schedule:?}");
    }
}

#[test]
fn a_wait_for_a_block_that_cannot_be_resident_runs_away() {
    let config = MachineConfig {
        multiprocessors: 1,
        blocks_per_multiprocessor: 2,
        ..MachineConfig::default()
    };
    let mut machine = Machine::new(config);
    let buffer = machine.allocate(64, 64).unwrap();
    let launch = LaunchConfig {
        grid: [16, 1, 1],
        parameters: buffer.to_le_bytes().to_vec(),
        instruction_budget: 100_000,
        ..LaunchConfig::default()
    };
    let fault = machine.launch(&compile(&chain()), "test", &launch).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Runaway { budget: 100_000, .. }), "{fault}");
}

#[test]
fn a_lock_between_lanes_of_a_warp_is_released() {
    let source = pointer_kernel(
        "",
        "TRY:
    atom.global.cas.b32 %r2, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra TRY;
    ld.volatile.global.u32 %r3, [%rd1+4];
    add.s32 %r3, %r3, 1;
    st.volatile.global.u32 [%rd1+4], %r3;
    membar.gl;
    atom.global.exch.b32 %r4, [%rd1], 0;",
    );
    for schedule in SCHEDULES {
        let mut bench = Bench::new(8);
        let config = LaunchConfig {
            block: [64, 1, 1],
            schedule,
            instruction_budget: 20_000_000,
            ..LaunchConfig::default()
        };
        bench.launch(&source, &config).unwrap();
        assert_eq!(bench.words(), [0, 64], "{schedule:?}");
    }
}

#[test]
fn a_grid_barrier_as_cooperative_groups_emit_it_completes() {
    // this_grid().sync(): the workspace comes from two environment registers.
    let source = pointer_kernel(
        "",
        "    mov.u32 %r2, %envreg1;
    mov.u32 %r3, %envreg2;
    mov.b64 %rd2, {%r3, %r2};
    mov.u32 %r4, %ctaid.x;
    mad.wide.u32 %rd3, %r4, 4, %rd1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra ARRIVED;
    add.s32 %r5, %r4, 1;
    st.global.u32 [%rd3], %r5;
ARRIVED:
    barrier.sync 0;
    @%p1 bra PASSED;
    mov.u32 %r6, %nctaid.x;
    setp.eq.u32 %p2, %r4, 0;
    sub.s32 %r7, 0x80000001, %r6;
    selp.b32 %r8, %r7, 1, %p2;
    membar.gl;
    atom.add.release.gpu.u32 %r9, [%rd2+4], %r8;
SPIN:
    ld.acquire.gpu.u32 %r10, [%rd2+4];
    xor.b32 %r11, %r10, %r9;
    setp.gt.s32 %p3, %r11, -1;
    @%p3 bra SPIN;
PASSED:
    barrier.sync 0;
    @%p1 ret;
    sub.s32 %r12, %r6, %r4;
    mad.wide.u32 %rd4, %r12, 4, %rd1;
    ld.global.u32 %r13, [%rd4+-4];
    add.s32 %r14, %r4, %r6;
    mad.wide.u32 %rd5, %r14, 4, %rd1;
    st.global.u32 [%rd5], %r13;",
    );
    for schedule in SCHEDULES {
        let mut bench = Bench::new(4 * 24);
        let config = LaunchConfig {
            grid: [12, 1, 1],
            block: [64, 1, 1],
            schedule,
            instruction_budget: 10_000_000,
            ..LaunchConfig::default()
        };
        bench.launch(&source, &config).unwrap();
        let want: Vec<u32> = (1..=12).rev().collect();
        assert_eq!(&bench.words()[12..], want, "{schedule:?}");
    }
}

/// Threads race to append their number to a list.
const APPEND: &str = "    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    atom.global.add.u32 %r5, [%rd1], 1;
    mad.wide.u32 %rd2, %r5, 4, %rd1;
    st.global.u32 [%rd2+4], %r4;";

fn order(schedule: Schedule) -> Vec<u32> {
    let mut bench = Bench::new(4 * 513);
    let config =
        LaunchConfig { grid: [4, 1, 1], block: [128, 1, 1], schedule, ..LaunchConfig::default() };
    bench.launch(&pointer_kernel("", APPEND), &config).unwrap();
    bench.words()[1..].to_vec()
}

#[test]
fn schedules_order_threads_as_they_say() {
    let ascending: Vec<u32> = (0..512).collect();
    assert_eq!(order(Schedule::InOrder), ascending);
    let descending: Vec<u32> = (0..512).rev().collect();
    assert_eq!(order(Schedule::Reversed), descending);
    let mut shuffled = order(Schedule::Seeded(5));
    assert!(shuffled != ascending && shuffled != descending);
    shuffled.sort_unstable();
    assert_eq!(shuffled, ascending);
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..20 {
        assert_eq!(order(Schedule::Seeded(seed)), order(Schedule::Seeded(seed)));
    }
    assert_ne!(order(Schedule::Seeded(0)), order(Schedule::Seeded(1)));
}

#[test]
fn reversal_stays_inside_the_resident_window() {
    let config = MachineConfig {
        multiprocessors: 1,
        blocks_per_multiprocessor: 4,
        ..MachineConfig::default()
    };
    let mut machine = Machine::new(config);
    let buffer = machine.allocate(4 * 513, 64).unwrap();
    let launch = LaunchConfig {
        grid: [16, 1, 1],
        parameters: buffer.to_le_bytes().to_vec(),
        schedule: Schedule::Reversed,
        ..LaunchConfig::default()
    };
    machine.launch(&compile(&pointer_kernel("", APPEND)), "test", &launch).unwrap();
    let mut bytes = vec![0; 4 * 512];
    machine.read(buffer + 4, &mut bytes).unwrap();
    let blocks: Vec<u8> = bytes.chunks(128).map(|warp| warp[0] / 32 + 8 * (warp[1] % 2)).collect();
    assert_eq!(blocks, [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12]);
}

#[test]
fn a_cooperative_launch_has_all_its_blocks_resident() {
    let source = pointer_kernel(
        "",
        "    mov.u32 %r2, %nctaid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    atom.global.add.u32 %r3, [%rd1], 1;
SPIN:
    ld.acquire.gpu.global.u32 %r4, [%rd1];
    setp.lt.u32 %p2, %r4, %r2;
    @%p2 bra SPIN;",
    );
    let launch = |blocks: u32, cooperative: bool| {
        let mut bench = Bench::new(4);
        let config = LaunchConfig {
            grid: [blocks, 1, 1],
            block: [512, 1, 1],
            cooperative,
            instruction_budget: 3_000_000,
            ..LaunchConfig::default()
        };
        bench.launch(&source, &config).map(|_| bench.words()[0])
    };
    assert_eq!(launch(200, true).unwrap(), 200);
    let fault = launch(200, false).expect_err("32 blocks spin for the others");
    assert!(matches!(fault.kind, FaultKind::Runaway { .. }), "{fault}");
    let fault = launch(100_000, true).expect_err("no chip is that large");
    assert!(fault.to_string().contains("a cooperative launch of 100000 blocks"), "{fault}");
}

#[test]
fn lanes_that_stop_inside_an_instruction_keep_what_it_has_computed_so_far() {
    // Even lanes take 64-bit registers apart and join them, odd lanes 32-bit ones.
    let source = pointer_kernel(
        "",
        "    .reg .b32 %w<4>;
    .reg .b64 %q<4>;
    mov.u32 %r2, 0;
    mul.lo.u32 %r3, %r1, 0x01010101;
    cvt.u64.u32 %q1, %r3;
    mul.lo.u64 %q1, %q1, 0x100000001;
    and.b32 %r4, %r1, 1;
    setp.eq.u32 %p1, %r4, 0;
    @%p1 bra WIDE;
NARROW:
    mov.b32 {%h1, %h2}, %r3;
    mov.b32 %r3, {%h1, %h2};
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 40;
    @%p2 bra NARROW;
    bra STORE;
WIDE:
    mov.b64 {%w1, %w2}, %q1;
    mov.b64 %q1, {%w1, %w2};
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p2, %r2, 40;
    @%p2 bra WIDE;
    shr.u64 %q2, %q1, 32;
    cvt.u32.u64 %r3, %q2;
STORE:
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r3;",
    );
    let want: Vec<u32> = (0..32).map(|lane| lane * 0x0101_0101).collect();
    for seed in 0..60 {
        let mut bench = Bench::new(128);
        let schedule = Schedule::Seeded(seed);
        bench.launch(&source, &LaunchConfig { schedule, ..LaunchConfig::default() }).unwrap();
        assert_eq!(bench.words(), want, "seed {seed}");
    }
}

/// Each lane stores a word, and reads its neighbour's after `between`.
fn neighbours(between: &str) -> String {
    pointer_kernel(
        ".shared .align 4 .b32 slots[32];",
        &format!(
            "    mov.u32 %r2, slots;
    mad.lo.u32 %r3, %r1, 4, %r2;
    xor.b32 %r4, %r1, 31;
    mad.lo.u32 %r5, %r4, 4, %r2;
    add.u32 %r6, %r1, 500;
    st.shared.u32 [%r3], %r6;
    {between}
    ld.shared.u32 %r7, [%r5];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r7;"
        ),
    )
}

#[test]
fn a_missing_barrier_between_lanes_that_never_parted_is_seen() {
    let want: Vec<u32> = (0..32).map(|lane| 31 - lane + 500).collect();
    let wrong = |between: &str| {
        (0..60)
            .filter(|&seed| {
                let mut bench = Bench::new(128);
                let schedule = Schedule::Seeded(seed);
                let config = LaunchConfig { schedule, ..LaunchConfig::default() };
                bench.launch(&neighbours(between), &config).unwrap();
                bench.words() != want
            })
            .count()
    };
    assert_eq!(wrong("bar.warp.sync 0xffffffff;"), 0);
    let seen = wrong("");
    assert!(seen >= 3, "{seen} of 60 seeds show it");
}

#[test]
fn an_order_without_choices_keeps_lanes_that_never_parted_together() {
    let want: Vec<u32> = (0..32).map(|lane| 31 - lane + 500).collect();
    let mut bench = Bench::new(128);
    bench.launch(&neighbours(""), &LaunchConfig::default()).unwrap();
    assert_eq!(bench.words(), want);
}
