//! Clusters: launches, special registers, the cluster's barrier, and shared memory of its blocks.
#![allow(clippy::result_large_err, reason = "as in the crate")]

mod common;

use assay_emulator::{Fault, FaultKind, LaunchConfig, Machine, MachineConfig, Schedule};

use common::{compile, line_of, pointer_kernel};

/// Runs a kernel in blocks of 32 threads on an `sm_90` and reads `words` back.
fn run(
    source: &str,
    grid: [u32; 3],
    cluster: [u32; 3],
    schedule: Schedule,
    words: usize,
) -> Result<Vec<u32>, Fault> {
    let config = MachineConfig { architecture: 90, ..MachineConfig::default() };
    let mut machine = Machine::new(config);
    let out = machine.allocate(4 * words as u64, 256).unwrap();
    let parameters = out.to_le_bytes().to_vec();
    let launch = LaunchConfig { grid, cluster, parameters, schedule, ..LaunchConfig::default() };
    machine.launch(&compile(source), "test", &launch)?;
    let mut bytes = vec![0; 4 * words];
    machine.read(out, &mut bytes).unwrap();
    Ok(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

fn schedules(seeds: u64) -> impl Iterator<Item = Schedule> {
    let fixed = [Schedule::InOrder, Schedule::Reversed];
    fixed.into_iter().chain((0..seeds).map(Schedule::Seeded))
}

/// Each block writes the sum of the first words of all blocks of its cluster, read through
/// `load`. `first` and `last` stand where cluster barriers belong.
fn reduction(first: &str, load: &str, last: &str) -> String {
    pointer_kernel(
        ".shared .align 4 .b32 own;",
        &format!(
            "    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
    mov.u32 %r4, %ctaid.x;
    add.u32 %r5, %r4, 100;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 st.shared.u32 [own], %r5;
    {first}
    mov.u32 %r6, 0;
    mov.u32 %r7, 0;
    mov.u32 %r8, own;
    cvta.shared.u64 %rd2, own;
NEXT:
    {load}
    add.u32 %r6, %r6, %r9;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p2, %r7, %r3;
    @%p2 bra NEXT;
    {last}
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd1, %rd3;
    @!%p1 st.global.u32 [%rd4], %r6;"
        ),
    )
}

const SYNC: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
const MAPPED: &str =
    "mapa.shared::cluster.u32 %r10, %r8, %r7; ld.shared::cluster.u32 %r9, [%r10]; // load";
const GENERIC: &str = "mapa.u64 %rd5, %rd2, %r7; ld.u32 %r9, [%rd5];";
const ATOMIC: &str = "mapa.u64 %rd5, %rd2, %r7; atom.add.u32 %r9, [%rd5], 0;";

/// What [`reduction`] writes in a grid of `blocks` along x.
fn sums(blocks: u32, cluster: u32) -> Vec<u32> {
    let sum = |block: u32| (0..cluster).map(|rank| 100 + block / cluster * cluster + rank).sum();
    (0..blocks).map(sum).collect()
}

#[test]
fn blocks_of_a_cluster_sum_each_others_shared_memory_under_50_schedules() {
    for load in [MAPPED, GENERIC, ATOMIC] {
        let source = reduction(SYNC, load, SYNC);
        for schedule in schedules(48) {
            let got = run(&source, [8, 1, 1], [4, 1, 1], schedule, 8);
            let got = got.unwrap_or_else(|fault| panic!("{schedule:?}: {fault}"));
            assert_eq!(got, sums(8, 4), "{schedule:?}");
        }
    }
}

#[test]
fn a_missing_cluster_barrier_is_seen() {
    let source = reduction("", MAPPED, SYNC);
    let mut wrong = 0;
    for schedule in schedules(10) {
        match run(&source, [8, 1, 1], [4, 1, 1], schedule, 8) {
            Ok(words) => wrong += u32::from(words != sums(8, 4)),
            Err(fault) => {
                let FaultKind::ClusterMisuse { what } = &fault.kind else { panic!("{fault}") };
                assert!(what.contains("has not started"), "{what}");
                assert_eq!(fault.line, Some(line_of(&source, "// load")));
                wrong += 1;
            }
        }
    }
    assert!(wrong >= 10, "{wrong} of 12 schedules show it");
}

#[test]
fn a_block_that_exits_while_its_shared_memory_is_in_use_is_reported() {
    let source = reduction(SYNC, MAPPED, "");
    let mut seen = 0;
    for schedule in schedules(20) {
        if let Err(fault) = run(&source, [8, 1, 1], [4, 1, 1], schedule, 8) {
            let FaultKind::ClusterMisuse { what } = &fault.kind else { panic!("{fault}") };
            assert!(what.contains("has exited"), "{what}");
            seen += 1;
        }
    }
    assert!(seen >= 15, "{seen} of 22 schedules show it");
}

/// Stores a word that `body` leaves in `%r4` for each block, by its number.
fn per_block(declarations: &str, body: &str) -> String {
    pointer_kernel(
        declarations,
        &format!(
            "    {body}
    mov.u32 %r20, %ctaid.x;
    mov.u32 %r21, %ctaid.y;
    mov.u32 %r22, %nctaid.x;
    mad.lo.u32 %r23, %r21, %r22, %r20;
    mul.wide.u32 %rd20, %r23, 4;
    add.u64 %rd21, %rd1, %rd20;
    st.global.u32 [%rd21], %r4;"
        ),
    )
}

/// One decimal digit for each register.
fn digits(registers: &[&str]) -> String {
    let mut body = "mov.u32 %r4, 0;\n".to_owned();
    for register in registers {
        body.push_str("    mov.u32 %r5, %");
        body.push_str(register);
        body.push_str(";\n    mad.lo.u32 %r4, %r4, 10, %r5;\n");
    }
    per_block("", &body)
}

#[test]
fn blocks_know_their_place_in_clusters_of_two_dimensions() {
    let place = digits(&["clusterid.x", "clusterid.y", "cluster_ctaid.x", "cluster_ctaid.y"]);
    for schedule in schedules(3) {
        let got = run(&place, [4, 4, 1], [2, 2, 1], schedule, 16).unwrap();
        let want: Vec<u32> = (0..16)
            .map(|block| (block % 4, block / 4))
            .map(|(x, y)| 1000 * (x / 2) + 100 * (y / 2) + 10 * (x % 2) + y % 2)
            .collect();
        assert_eq!(got, want, "{schedule:?}");
    }
    let sizes = digits(&["nclusterid.x", "nclusterid.y", "cluster_nctaid.x", "cluster_nctaid.y"]);
    let got = run(&sizes, [6, 4, 1], [2, 4, 1], Schedule::InOrder, 24).unwrap();
    assert!(got.iter().all(|&word| word == 3124), "{got:?}");
    let ranks = digits(&["cluster_ctarank", "cluster_nctarank"]);
    let got = run(&ranks, [4, 2, 1], [2, 2, 1], Schedule::InOrder, 8).unwrap();
    assert_eq!(got, [4, 14, 4, 14, 24, 34, 24, 34]);
}

#[test]
fn without_clusters_a_block_is_a_cluster_of_its_own() {
    let registers = ["clusterid.x", "nclusterid.x", "cluster_nctarank", "cluster_ctarank"];
    let got = run(&digits(&registers), [3, 1, 1], [1; 3], Schedule::InOrder, 3).unwrap();
    assert_eq!(got, [310, 1310, 2310]);
    let sync = per_block("", &format!("{SYNC} mov.u32 %r4, 7;"));
    assert_eq!(run(&sync, [2, 1, 1], [1; 3], Schedule::InOrder, 2).unwrap(), [7, 7]);
}

#[test]
fn a_kernel_may_bring_its_own_clusters() {
    let body = "mov.pred %p1, %is_explicit_cluster; selp.u32 %r4, 1, 0, %p1;
    mov.u32 %r5, %cluster_nctarank; mad.lo.u32 %r4, %r4, 10, %r5;";
    let plain = per_block("", body);
    let required = plain.replace("(.param .u64 out)", "(.param .u64 out) .reqnctapercluster 2");
    let order = Schedule::InOrder;
    assert_eq!(run(&plain, [2, 1, 1], [1; 3], order, 2).unwrap(), [1, 1]);
    assert_eq!(run(&plain, [2, 1, 1], [2, 1, 1], order, 2).unwrap(), [12, 12]);
    assert_eq!(run(&required, [2, 1, 1], [1; 3], order, 2).unwrap(), [12, 12]);
    assert_eq!(run(&required, [2, 1, 1], [2, 1, 1], order, 2).unwrap(), [12, 12]);
}

#[test]
fn launches_that_break_the_rules_of_clusters_are_refused() {
    let plain = per_block("", "mov.u32 %r4, 0;");
    let with =
        |text: &str| plain.replace("(.param .u64 out)", &format!("(.param .u64 out) {text}"));
    let cases = [
        (plain.clone(), 3, 2, "is not whole clusters"),
        (plain.clone(), 32, 32, "1 to 16"),
        (with(".reqnctapercluster 4"), 8, 2, "requires clusters of [4, 1, 1]"),
        (with(".explicitcluster"), 8, 1, "explicitcluster"),
        (with(".maxclusterrank 2"), 8, 4, "at most 2"),
    ];
    for (source, blocks, cluster, text) in cases {
        let fault = run(&source, [blocks, 1, 1], [cluster, 1, 1], Schedule::InOrder, 64);
        let fault = fault.expect_err(text);
        assert!(matches!(fault.kind, FaultKind::InvalidLaunch { .. }), "{fault}");
        assert!(fault.to_string().contains(text), "{fault}");
    }
    let mut machine = Machine::new(MachineConfig { architecture: 80, ..MachineConfig::default() });
    let launch = LaunchConfig {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        parameters: vec![0; 8],
        ..LaunchConfig::default()
    };
    let fault = machine.launch(&compile(&plain), "test", &launch).expect_err("sm_80");
    assert!(fault.to_string().contains("sm_80 has no clusters"), "{fault}");
}

#[test]
fn addresses_tell_their_block() {
    let body = "mov.u32 %r10, own;
    mov.u32 %r11, %cluster_ctarank;
    getctarank.shared::cluster.u32 %r12, %r10;
    xor.b32 %r13, %r11, 1;
    mapa.shared::cluster.u32 %r14, %r10, %r13;
    getctarank.shared::cluster.u32 %r15, %r14;
    cvta.shared.u64 %rd2, own;
    mapa.u64 %rd3, %rd2, %r13;
    getctarank.u64 %r16, %rd3;
    mapa.u64 %rd4, %rd2, %r11;
    isspacep.shared::cta %p1, %rd3;
    isspacep.shared::cluster %p2, %rd3;
    isspacep.shared %p3, %rd4;
    isspacep.global %p4, %rd3;
    selp.u32 %r17, 1, 0, %p1;
    selp.u32 %r18, 2, %r17, %p2;
    selp.u32 %r19, 10, 0, %p3;
    selp.u32 %r4, 1000, %r19, %p4;
    add.u32 %r4, %r4, %r18;
    mad.lo.u32 %r4, %r12, 100, %r4;
    mad.lo.u32 %r4, %r15, 1000, %r4;
    mad.lo.u32 %r4, %r16, 10000, %r4;";
    let source = per_block(".shared .align 4 .b32 own;", body);
    let got = run(&source, [2, 1, 1], [2, 1, 1], Schedule::InOrder, 2).unwrap();
    assert_eq!(got, [11012, 112]);
    let beyond = per_block(
        ".shared .align 4 .b32 own;",
        "mov.u32 %r10, own; mapa.shared::cluster.u32 %r4, %r10, 2; // beyond",
    );
    let fault = run(&beyond, [2, 1, 1], [2, 1, 1], Schedule::InOrder, 2).expect_err("rank 2");
    assert!(fault.to_string().contains("mapa to block 2 of a cluster of 2"), "{fault}");
    assert_eq!(fault.line, Some(line_of(&beyond, "// beyond")));
}

#[test]
fn shared_memory_of_another_block_has_bounds() {
    let body = format!(
        "mov.u32 %r10, own; {SYNC}
    mapa.shared::cluster.u32 %r11, %r10, 1;
    st.shared::cluster.u32 [%r11+4], 1; // past"
    );
    let source = per_block(".shared .align 4 .b32 own;", &body);
    let fault = run(&source, [2, 1, 1], [2, 1, 1], Schedule::InOrder, 2).expect_err("past the end");
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { write: true, .. }), "{fault}");
    assert_eq!(fault.line, Some(line_of(&source, "// past")));
    let body = format!(
        "mov.u32 %r10, own; {SYNC}
    mapa.shared::cluster.u32 %r11, %r10, 1;
    ld.shared.u32 %r4, [%r11]; // of another"
    );
    let source = per_block(".shared .align 4 .b32 own;", &body);
    let fault = run(&source, [2, 1, 1], [2, 1, 1], Schedule::InOrder, 2).expect_err("not its own");
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }), "{fault}");
}

#[test]
fn a_cluster_barrier_that_not_all_reach_is_a_deadlock() {
    let body = "mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p1, %r4, 0;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    @%p1 bra SKIP;
    barrier.cluster.arrive.aligned;
SKIP:
    @!%p1 bra STOP;
WAITS:
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; // all meet
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; // alone
STOP:
    @%p1 bra END;
    barrier.cluster.wait.aligned;
    bar.sync 0;
    mov.u32 %r9, 0;
LOOP:
    barrier.cluster.arrive.aligned;
    bar.sync 1, 64; // never
END:";
    let source = per_block("", body);
    let fault = run(&source, [2, 1, 1], [2, 1, 1], Schedule::InOrder, 2).expect_err("deadlock");
    assert!(fault.to_string().contains("threads in a block of 32"), "{fault}");
    let body = "mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p1, %r4, 0; setp.eq.u32 %p2, %r1, 0;
    @!%p1 bra OTHER;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; // waits
    bra END;
OTHER:
    bar.sync 0; @%p2 bra HANG; bra END;
HANG: bar.sync 2; // hangs
END:";
    let source = per_block("", body);
    let fault = run(&source, [2, 1, 1], [2, 1, 1], Schedule::InOrder, 2).expect_err("stands still");
    assert!(fault.to_string().contains("barrier"), "{fault}");
}

#[test]
fn arriving_twice_or_waiting_before_arriving_is_misuse() {
    for (body, text) in [
        ("barrier.cluster.arrive; barrier.cluster.arrive; mov.u32 %r4, 0;", "twice"),
        ("barrier.cluster.wait; mov.u32 %r4, 0;", "without a barrier.cluster.arrive"),
    ] {
        let fault = run(&per_block("", body), [2, 1, 1], [2, 1, 1], Schedule::InOrder, 2);
        let fault = fault.expect_err(text);
        assert!(matches!(fault.kind, FaultKind::ClusterMisuse { .. }), "{fault}");
        assert!(fault.to_string().contains(text), "{fault}");
    }
}

#[test]
fn threads_that_exit_are_not_waited_for_at_a_cluster_barrier() {
    let body = format!(
        "setp.ge.u32 %p1, %r1, 8; mov.u32 %r4, 5;
    @%p1 exit;
    {}",
        SYNC.replace(".aligned", "")
    );
    for schedule in schedules(10) {
        let got = run(&per_block("", &body), [4, 1, 1], [4, 1, 1], schedule, 4);
        assert_eq!(got.unwrap(), [5; 4], "{schedule:?}");
    }
}
