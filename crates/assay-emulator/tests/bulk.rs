//! Bulk copies: what arrives, when, and what a kernel that breaks their rules is told.
#![allow(clippy::result_large_err, reason = "as in the crate")]

mod common;

use assay_emulator::{Fault, FaultKind, LaunchConfig, Machine, MachineConfig, Schedule, Space};
use common::{Bench, line_of, pointer_kernel};

const SCHEDULES: [Schedule; 4] =
    [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(1), Schedule::Seeded(2)];

const TILE: &str = ".shared .align 128 .b8 tile[256]; .shared .align 8 .b64 gate;";

/// A buffer of the words 0 to 63, and 64 words of zeros behind them.
fn run(source: &str, schedule: Schedule) -> Result<Vec<u32>, Fault> {
    let mut bench = Bench::new(512);
    let words: Vec<u8> = (0..64_u32).flat_map(u32::to_le_bytes).collect();
    bench.machine.write(bench.buffer, &words).unwrap();
    let config = LaunchConfig {
        block: [64, 1, 1],
        schedule,
        instruction_budget: 1_000_000,
        ..LaunchConfig::default()
    };
    bench.launch(source, &config).map(|_| bench.words())
}

/// One thread copies 256 bytes into the tile; `wait` is what all do before they read it.
fn load(expected: u32, copy: &str, wait: &str) -> String {
    pointer_kernel(
        TILE,
        &format!(
            "    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r2, tile;
    mov.u32 %r3, gate;
    mov.u32 %r5, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [gate], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], {expected};
    {copy}
READY:
    bar.sync 0;
    {wait}
    shl.b32 %r6, %r1, 2;
    add.u32 %r7, %r2, %r6;
    ld.shared.u32 %r8, [%r7];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2+256], %r8;"
        ),
    )
}

const COPY: &str = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes \
                    [%r2], [%rd1], 256, [%r3];";
const WAIT: &str = "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [gate], 0; @!%p2 bra WAIT;";

#[test]
fn a_bulk_load_arrives_when_its_mbarrier_says_so() {
    let counted: Vec<u32> = (0..64).collect();
    for schedule in SCHEDULES {
        let words = run(&load(256, COPY, WAIT), schedule).unwrap();
        assert_eq!(words[64..], counted, "{schedule:?}");
    }
}

#[test]
fn control_a_bulk_load_that_nobody_waits_for_leaves_poison() {
    for schedule in SCHEDULES {
        let words = run(&load(256, COPY, ""), schedule).unwrap();
        assert_eq!(words[64..], [0xaaaa_aaaa; 64], "{schedule:?}");
    }
}

#[test]
fn control_an_mbarrier_that_expects_too_few_bytes_opens_too_early() {
    let halves = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes \
                  [%r2], [%rd1], 128, [%r3];
    add.u64 %rd3, %rd1, 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2+128], [%rd3], 128, [%r3];";
    let counted: Vec<u32> = (0..64).collect();
    let words = run(&load(256, halves, WAIT), Schedule::InOrder).unwrap();
    assert_eq!(words[64..], counted);
    let words = run(&load(128, halves, WAIT), Schedule::InOrder).unwrap();
    assert_eq!(words[64..96], counted[..32]);
    assert_eq!(words[96..], [0xaaaa_aaaa; 32]);
    let reversed = run(&load(128, halves, WAIT), Schedule::Reversed).unwrap();
    assert_eq!(reversed[64..96], [0xaaaa_aaaa; 32], "the last copy may come first");
}

#[test]
fn control_an_mbarrier_that_expects_too_many_bytes_stays_closed() {
    let fault = run(&load(272, COPY, WAIT), Schedule::InOrder).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
    assert!(fault.to_string().contains("16 bytes"), "{fault}");
}

#[test]
fn sizes_and_addresses_of_bulk_copies_are_multiples_of_16() {
    let at = |source: &str| Some(line_of(source, "cp.async.bulk"));
    let source = load(256, &COPY.replace("256", "40"), WAIT);
    let fault = run(&source, Schedule::InOrder).unwrap_err();
    assert!(matches!(&fault.kind, FaultKind::CopyMisuse { what } if what.contains("40 bytes")));
    assert_eq!(fault.line, at(&source));
    let misaligned = |copy: &str| {
        let source = load(256, copy, WAIT);
        let fault = run(&source, Schedule::InOrder).unwrap_err();
        assert_eq!(fault.line, at(&source));
        match fault.kind {
            FaultKind::Misaligned { space, bytes, .. } => (space, bytes),
            other => panic!("{other}"),
        }
    };
    let bytes = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
    assert_eq!(misaligned(&format!("{bytes} [%r2+8], [%rd1], 64, [%r3];")), (Space::Shared, 16));
    assert_eq!(misaligned(&format!("{bytes} [%r2], [%rd1+4], 64, [%r3];")), (Space::Global, 16));
    assert_eq!(misaligned(&format!("{bytes} [%r2], [%rd1], 64, [%r3+4];")), (Space::Shared, 8));
}

#[test]
fn a_bulk_copy_stays_inside_what_it_names() {
    let bytes = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes";
    let past = |copy: &str| {
        let fault = run(&load(256, copy, WAIT), Schedule::InOrder).unwrap_err();
        match fault.kind {
            FaultKind::OutOfBounds { space, write, .. } => (space, write),
            other => panic!("{other}"),
        }
    };
    assert_eq!(past(&format!("{bytes} [%r2], [%rd1+496], 32, [%r3];")), (Space::Global, false));
    assert_eq!(past(&format!("{bytes} [%r2+240], [%rd1], 32, [%r3];")), (Space::Shared, true));
}

/// All threads write their number times three; one copies the tile out behind the words.
fn store(fence: &str, copy: &str, behind: &str) -> String {
    pointer_kernel(
        TILE,
        &format!(
            "    mov.u32 %r2, tile;
    shl.b32 %r6, %r1, 2;
    add.u32 %r7, %r2, %r6;
    mul.lo.u32 %r8, %r1, 3;
    st.shared.u32 [%r7], %r8;
    {fence}
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    add.u64 %rd2, %rd1, 256;
    {copy}
    {behind}
DONE:"
        ),
    )
}

const FENCE: &str = "fence.proxy.async.shared::cta;";
const OUT: &str = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 256;
    cp.async.bulk.commit_group;";

#[test]
fn a_bulk_store_writes_what_was_fenced() {
    let tripled: Vec<u32> = (0..64).map(|word| 3 * word).collect();
    for schedule in SCHEDULES {
        let source = store(FENCE, OUT, "cp.async.bulk.wait_group.read 0;");
        assert_eq!(run(&source, schedule).unwrap()[64..], tripled, "{schedule:?}");
    }
}

#[test]
fn control_a_bulk_store_without_the_fence_writes_old_bytes() {
    let source = store("", OUT, "cp.async.bulk.wait_group.read 0;");
    let tripled: Vec<u32> = (0..64).map(|word| 3 * word).collect();
    assert_eq!(run(&source, Schedule::InOrder).unwrap()[64..], tripled);
    for schedule in &SCHEDULES[1..] {
        assert_eq!(run(&source, *schedule).unwrap()[64..], [0x5555_5555; 64], "{schedule:?}");
    }
}

#[test]
fn a_fence_of_the_thread_that_copies_serves_behind_a_barrier() {
    let tripled: Vec<u32> = (0..64).map(|word| 3 * word).collect();
    let copy = format!("{FENCE}\n{OUT}");
    for schedule in SCHEDULES {
        let source = store("", &copy, "cp.async.bulk.wait_group.read 0;");
        assert_eq!(run(&source, schedule).unwrap()[64..], tripled, "{schedule:?}");
    }
}

#[test]
fn control_a_source_changed_before_the_wait_is_what_is_written() {
    let change = "st.shared.u32 [%r2], 7;\n    fence.proxy.async.shared::cta;";
    let early = format!("{change}\n    cp.async.bulk.wait_group.read 0;");
    let late = format!("cp.async.bulk.wait_group.read 0;\n    {change}");
    for schedule in SCHEDULES {
        let changed = run(&store(FENCE, OUT, &early), schedule).unwrap();
        assert_eq!(changed[64], 7, "{schedule:?}");
        let kept = run(&store(FENCE, OUT, &late), schedule).unwrap();
        assert_eq!(kept[64], 0, "{schedule:?}");
    }
}

#[test]
fn control_a_block_that_ends_before_its_store_was_read_loses_it() {
    let source = store(FENCE, OUT, "");
    assert_eq!(run(&source, Schedule::InOrder).unwrap()[65], 3);
    for schedule in &SCHEDULES[1..] {
        assert_eq!(run(&source, *schedule).unwrap()[64..], [0xaaaa_aaaa; 64], "{schedule:?}");
    }
}

#[test]
fn what_a_store_wrote_is_there_after_the_whole_wait_and_not_after_the_read() {
    let look = |wait: &str| {
        let behind = format!(
            "cp.async.bulk.wait_group{wait} 0;
    ld.global.u32 %r9, [%rd2+4];
    st.global.u32 [%rd1], %r9;"
        );
        run(&store(FENCE, OUT, &behind), Schedule::InOrder).unwrap()[0]
    };
    assert_eq!(look(""), 3);
    assert_eq!(look(".read"), 0);
}

#[test]
fn a_wait_leaves_the_youngest_groups_under_way() {
    let copies = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r2], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2+16], [%r2+16], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 1;
    ld.global.u32 %r9, [%rd2+4];
    ld.global.u32 %r10, [%rd2+20];
    st.global.v2.u32 [%rd1], {%r9, %r10};
    cp.async.bulk.wait_group.read 0;";
    let words = run(&store(FENCE, copies, ""), Schedule::InOrder).unwrap();
    assert_eq!(words[..2], [3, 0]);
    assert_eq!(words[69], 15);
}

#[test]
fn a_masked_store_keeps_the_other_bytes() {
    let copy = "mov.u16 %h1, 0x000f;
    cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r2], 32, %h1;
    cp.async.bulk.commit_group;";
    let source = store(FENCE, copy, "cp.async.bulk.wait_group.read 0;");
    let words = run(&source, Schedule::InOrder).unwrap();
    assert_eq!(words[..8], [0, 1, 2, 3, 12, 5, 6, 7]);
}

#[test]
fn a_bulk_copy_reduces_into_global_memory() {
    let reduced = |form: &str| {
        let copy = format!(
            "cp.reduce.async.bulk.global.shared::cta.bulk_group.{form} [%rd1], [%r2], 256;
    cp.async.bulk.commit_group;"
        );
        let source = store(FENCE, &copy, "cp.async.bulk.wait_group.read 0;");
        run(&source, Schedule::Seeded(3)).unwrap()[..64].to_vec()
    };
    let want = |function: fn(u32, u32) -> u32| {
        (0..64).map(|word| function(word, 3 * word)).collect::<Vec<u32>>()
    };
    assert_eq!(reduced("add.u32"), want(|a, b| a + b));
    assert_eq!(reduced("min.u32"), want(u32::min));
    assert_eq!(reduced("max.s32"), want(u32::max));
    assert_eq!(reduced("and.b32"), want(|a, b| a & b));
    assert_eq!(reduced("or.b32"), want(|a, b| a | b));
    assert_eq!(reduced("xor.b32"), want(|a, b| a ^ b));
    assert_eq!(reduced("inc.u32"), want(|a, b| if a >= b { 0 } else { a + 1 }));
    assert_eq!(reduced("dec.u32"), want(|a, b| if a == 0 || a > b { b } else { a - 1 }));
    let wide = |a: u64, b: u64| a.wrapping_add(b);
    let sums = reduced("add.u64");
    assert_eq!(u64::from(sums[2]) | u64::from(sums[3]) << 32, wide(3 << 32 | 2, 9 << 32 | 6));
}

/// Two blocks of a cluster; block 0 copies into both by `copy`, and each shows the first half of
/// its tile.
fn cluster(copy: &str, schedule: Schedule) -> Result<Vec<u32>, Fault> {
    let source = pointer_kernel(
        TILE,
        &format!(
            "    mov.u32 %r2, tile;
    mov.u32 %r3, gate;
    mov.u32 %r4, %cluster_ctarank;
    shl.b32 %r5, %r1, 2;
    add.u32 %r6, %r2, %r5;
    add.u32 %r7, %r1, 100;
    st.shared.u32 [%r6], %r7;
    fence.proxy.async.shared::cta;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared::cta.b64 [gate], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], 128;
READY:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    setp.ne.or.u32 %p2, %r4, 0, %p1;
    @%p2 bra WAIT;
    {copy}
    {WAIT}
    mad.lo.u32 %r8, %r4, 32, %r1;
    mad.wide.u32 %rd2, %r8, 4, %rd1;
    setp.gt.u32 %p3, %r1, 31;
    @%p3 bra LAST;
    ld.shared.u32 %r9, [%r6];
    st.global.u32 [%rd2+256], %r9;
LAST:
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;"
        ),
    );
    let mut bench = Bench::new(512);
    bench.machine = Machine::new(MachineConfig { architecture: 90, ..MachineConfig::default() });
    bench.buffer = bench.machine.allocate(512, 256).unwrap();
    let words: Vec<u8> = (0..64_u32).flat_map(u32::to_le_bytes).collect();
    bench.machine.write(bench.buffer, &words).unwrap();
    let config = LaunchConfig {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        block: [64, 1, 1],
        schedule,
        instruction_budget: 1_000_000,
        ..LaunchConfig::default()
    };
    bench.launch(&source, &config).map(|_| bench.words()[64..].to_vec())
}

/// To the tile of block 0 and of block 1, by one copy each.
fn to_both(form: &str, from: &str) -> String {
    let one = |rank: u32| {
        format!(
            "mapa.shared::cluster.u32 %r10, %r2, {rank};
    mapa.shared::cluster.u32 %r11, %r3, {rank};
    {form} [%r10], [{from}], 128, [%r11];"
        )
    };
    format!("{}\n    {}", one(0), one(1))
}

#[test]
fn bulk_copies_reach_every_block_of_a_cluster() {
    let global = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    let shared = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
    let add = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes\
               .add.u32";
    let counted: Vec<u32> = (0..32).chain(0..32).collect();
    let behind: Vec<u32> = (132..164).chain(132..164).collect();
    let sums: Vec<u32> = (0..32).map(|at| 232 + 2 * at).collect();
    for schedule in SCHEDULES {
        let got = |form, from| cluster(&to_both(form, from), schedule).unwrap();
        assert_eq!(got(global, "%rd1"), counted, "{schedule:?}");
        assert_eq!(got(shared, "%r2+128"), behind, "{schedule:?}");
        assert_eq!(got(add, "%r2+128"), [&sums[..], &sums[..]].concat(), "{schedule:?}");
    }
}

#[test]
fn a_multicast_brings_the_same_bytes_to_each_block_of_its_mask() {
    let copy = |mask: u32| {
        format!(
            "mov.u16 %h1, {mask};
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \
                [%r2], [%rd1], 128, [%r3], %h1;"
        )
    };
    let counted: Vec<u32> = (0..32).chain(0..32).collect();
    for schedule in SCHEDULES {
        assert_eq!(cluster(&copy(3), schedule).unwrap(), counted, "{schedule:?}");
    }
    let fault = cluster(&copy(1), Schedule::InOrder).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "block 1 waits for ever: {fault}");
    let fault = cluster(&copy(7), Schedule::InOrder).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }), "there is no block 2: {fault}");
}

#[test]
fn a_bulk_copy_signals_in_the_block_that_it_fills() {
    let copy = "mapa.shared::cluster.u32 %r10, %r2, 1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes \
                [%r10], [%rd1], 128, [%r3];";
    let fault = cluster(copy, Schedule::InOrder).unwrap_err();
    assert!(matches!(&fault.kind, FaultKind::CopyMisuse { what } if what.contains("in another")));
}

#[test]
fn a_copy_within_shared_memory_takes_a_cluster() {
    let copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes \
                [%r2+128], [%r2], 16, [%r3];";
    let fault = run(&load(16, copy, WAIT), Schedule::InOrder).unwrap_err();
    assert!(matches!(&fault.kind, FaultKind::CopyMisuse { what } if what.contains("clusters")));
}

#[test]
fn prefetches_and_hints_change_nothing() {
    let copy = "cp.async.bulk.prefetch.L2.global [%rd1], 256;
    createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint \
                [%r2], [%rd1], 256, [%r3], %rd5;";
    let words = run(&load(256, copy, WAIT), Schedule::InOrder).unwrap();
    assert_eq!(words[64..], (0..64).collect::<Vec<u32>>());
}

#[test]
fn multimem_takes_several_gpus_and_is_refused_by_name() {
    let source = pointer_kernel("", "    multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;");
    let fault = run(&source, Schedule::InOrder).unwrap_err();
    assert!(fault.is_unsupported(), "{fault}");
    assert!(fault.to_string().contains("multimem.red"), "{fault}");
    assert_eq!(fault.line, Some(line_of(&source, "multimem.red")));
}
