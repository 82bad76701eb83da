//! `mbarrier` objects: phases, counts, bytes to come, misuse, deadlocks, and stores that complete
//! at them.
#![allow(clippy::result_large_err, reason = "as in the crate")]

mod common;

use assay_emulator::{Fault, FaultKind, LaunchConfig, Machine, MachineConfig, Schedule};

use common::{compile, line_of, pointer_kernel};

const GATE: &str = ".shared .align 8 .b64 gate, other; .shared .align 16 .b32 slots[64];";

/// Runs `body` in blocks of `threads` threads, `blocks` of them in one cluster, on an `sm_90`.
fn run_in(
    body: &str,
    (threads, blocks): (u32, u32),
    schedule: Schedule,
) -> Result<Vec<u32>, (Fault, String)> {
    let source = pointer_kernel(GATE, body);
    let config = MachineConfig { architecture: 90, ..MachineConfig::default() };
    let mut machine = Machine::new(config);
    let out = machine.allocate(512, 256).unwrap();
    let launch = LaunchConfig {
        grid: [blocks, 1, 1],
        cluster: [blocks, 1, 1],
        block: [threads, 1, 1],
        parameters: out.to_le_bytes().to_vec(),
        schedule,
        instruction_budget: 20_000_000,
        ..LaunchConfig::default()
    };
    let result = machine.launch(&compile(&source), "test", &launch);
    result.map_err(|fault| (fault, source))?;
    let mut bytes = vec![0; 512];
    machine.read(out, &mut bytes).unwrap();
    Ok(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

/// As [`run_in`], one thread.
fn alone(body: &str) -> Result<Vec<u32>, (Fault, String)> {
    run_in(body, (1, 1), Schedule::InOrder)
}

fn schedules(seeds: u64) -> impl Iterator<Item = Schedule> {
    let fixed = [Schedule::InOrder, Schedule::Reversed];
    fixed.into_iter().chain((0..seeds).map(Schedule::Seeded))
}

/// Stores `%r4` of thread 0.
const STORE: &str = "setp.ne.u32 %p9, %r1, 0; @!%p9 st.global.u32 [%rd1], %r4;";

#[test]
fn arrivals_count_down_to_the_next_phase() {
    let body = format!(
        "    mbarrier.init.shared::cta.b64 [gate], 5;
    mbarrier.arrive.noComplete.shared.b64 %rd2, [gate], 2;
    mbarrier.pending_count.b64 %r5, %rd2;
    mbarrier.arrive.release.cta.shared::cta.b64 %rd3, [gate];
    mbarrier.pending_count.b64 %r6, %rd3;
    mbarrier.test_wait.shared.b64 %p1, [gate], %rd3;
    mbarrier.arrive_drop.shared.b64 %rd4, [gate];
    mbarrier.arrive.shared::cta.b64 _, [gate];
    mbarrier.test_wait.shared.b64 %p2, [gate], %rd3;
    mbarrier.arrive.noComplete.shared.b64 %rd5, [gate], 1;
    mbarrier.pending_count.b64 %r7, %rd5;
    mbarrier.try_wait.parity.shared.b64 %p3, [gate], 0, 100;
    selp.u32 %r8, 1, 0, %p1;
    selp.u32 %r9, 10, %r8, %p2;
    selp.u32 %r10, 100, 0, %p3;
    add.u32 %r4, %r9, %r10;
    mad.lo.u32 %r4, %r5, 1000, %r4;
    mad.lo.u32 %r4, %r6, 10000, %r4;
    mad.lo.u32 %r4, %r7, 100000, %r4;
    {STORE}"
    );
    // Pending before: 5, then 3; after a phase that one thread left, 4.
    assert_eq!(alone(&body).unwrap_or_else(|(fault, _)| panic!("{fault}"))[0], 435_110);
}

#[test]
fn a_phase_waits_for_the_bytes_that_it_expects() {
    let body = format!(
        "    mbarrier.init.shared.b64 [gate], 1;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [gate], 8;
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd2, [gate], 24;
    mbarrier.test_wait.shared.b64 %p1, [gate], %rd2;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [gate], 16;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [gate], 16;
    mbarrier.test_wait.parity.shared.b64 %p2, [gate], 0;
    mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [gate], 16;
    mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p3, [gate], 0;
    selp.u32 %r4, 1, 0, %p1;
    selp.u32 %r4, 10, %r4, %p2;
    selp.u32 %r5, 100, 0, %p3;
    add.u32 %r4, %r4, %r5;
    {STORE}"
    );
    assert_eq!(alone(&body).unwrap_or_else(|(fault, _)| panic!("{fault}"))[0], 100);
}

#[test]
fn misuse_of_an_object_names_its_line() {
    let init = "cvta.shared.u64 %rd9, gate; mbarrier.init.shared.b64 [gate], 2;";
    let cases = [
        ("mbarrier.arrive.shared.b64 %rd2, [gate]; // here".to_owned(), "is no mbarrier object"),
        (format!("{init}\n{init} // here"), "live object"),
        ("mbarrier.init.shared.b64 [gate], 0; // here".to_owned(), "count of 0"),
        ("mbarrier.init.shared.b64 [gate], 1048576; // here".to_owned(), "count of 1048576"),
        (
            format!(
                "{init}\nmbarrier.inval.b64 [%rd9];\nmbarrier.inval.shared.b64 [gate]; // here"
            ),
            "is no mbarrier object",
        ),
        (
            format!(
                "{init}\nst.shared.u32 [gate], 7;\nmbarrier.arrive.shared.b64 _, [gate]; // here"
            ),
            "is overwritten",
        ),
        (format!("{init}\nmbarrier.arrive.shared.b64 _, [gate], 3; // here"), "3 arrivals"),
        (format!("{init}\nmbarrier.arrive.shared.b64 _, [gate], 0; // here"), "count of 0"),
        (
            format!("{init}\nmbarrier.arrive.noComplete.shared.b64 %rd2, [gate], 2; // here"),
            "noComplete completes",
        ),
        (
            format!(
                "{init}\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [gate], 1048576; // here"
            ),
            "1048576 bytes to come",
        ),
        (
            format!("{init}\nmbarrier.arrive_drop.shared.b64 _, [gate], 3; // here"),
            "3 threads drop out",
        ),
    ];
    for (body, text) in cases {
        let (fault, source) = alone(&format!("    {body}")).expect_err(text);
        assert!(matches!(fault.kind, FaultKind::BarrierMisuse { .. }), "{fault}");
        assert!(fault.to_string().contains(text), "{fault}");
        assert_eq!(fault.line, Some(line_of(&source, "// here")), "{fault}");
    }
    let again = format!("{init} mbarrier.inval.shared.b64 [gate]; {init} mov.u32 %r4, 3; {STORE}");
    assert_eq!(alone(&again).unwrap_or_else(|(fault, _)| panic!("{fault}"))[0], 3);
}

/// Two warps: each writes its slots and reads the other's, `count` arrivals expected.
fn exchange(count: u32, wait: &str) -> String {
    format!(
        "    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared.b64 [gate], {count};
    bar.sync 0;
    mov.u32 %r2, slots;
    mad.lo.s32 %r3, %r1, 4, %r2;
    add.u32 %r5, %r1, 7;
    st.shared.u32 [%r3], %r5;
    mbarrier.arrive.shared.b64 %rd2, [gate];
WAIT:
    {wait}
    xor.b32 %r6, %r1, 63;
    mad.lo.s32 %r7, %r6, 4, %r2;
    ld.shared.u32 %r8, [%r7];
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    st.global.u32 [%rd3], %r8;"
    )
}

const TRY: &str = "mbarrier.try_wait.shared.b64 %p2, [gate], %rd2; @!%p2 bra WAIT; // waits";
const TEST: &str = "mbarrier.test_wait.shared.b64 %p2, [gate], %rd2; @!%p2 bra WAIT; // waits";
const NAP: &str =
    "mbarrier.test_wait.shared.b64 %p2, [gate], %rd2; @!%p2 nanosleep.u32 20; @!%p2 bra WAIT;";

#[test]
fn warps_meet_at_an_mbarrier_under_every_schedule() {
    let want: Vec<u32> = (0..64).map(|thread| (63 - thread) + 7).collect();
    for wait in [TRY, TEST, NAP] {
        for schedule in schedules(10) {
            let got = run_in(&exchange(64, wait), (64, 1), schedule);
            let got = got.unwrap_or_else(|(fault, _)| panic!("{schedule:?}: {fault}"));
            assert_eq!(got[..64], want, "{schedule:?}");
        }
    }
}

#[test]
fn a_missing_wait_at_an_mbarrier_is_seen() {
    let want: Vec<u32> = (0..64).map(|thread| (63 - thread) + 7).collect();
    let wrong = schedules(10)
        .filter(|&schedule| {
            let got = run_in(&exchange(64, ""), (64, 1), schedule);
            got.unwrap_or_else(|(fault, _)| panic!("{fault}"))[..64] != want
        })
        .count();
    assert!(wrong > 0);
}

#[test]
fn an_mbarrier_with_a_wrong_count_is_a_deadlock_and_says_what_is_missing() {
    for wait in [TRY, TEST] {
        for schedule in schedules(2) {
            let (fault, source) =
                run_in(&exchange(65, wait), (64, 1), schedule).expect_err("deadlock");
            assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
            assert!(fault.to_string().contains("1 of 65 arrivals and 0 bytes"), "{fault}");
            assert!(fault.line.unwrap() >= line_of(&source, "// waits"), "{fault}");
        }
    }
}

#[test]
fn a_wait_that_gives_up_is_no_deadlock() {
    let body = format!(
        "    mbarrier.init.shared.b64 [gate], 2;
    mbarrier.arrive.shared.b64 %rd2, [gate];
    mov.u32 %r4, 0;
WAIT:
    mbarrier.try_wait.shared.b64 %p2, [gate], %rd2, 1000;
    add.u32 %r4, %r4, 1;
    setp.ge.u32 %p3, %r4, 50;
    @%p3 bra DONE;
    @!%p2 bra WAIT;
DONE:
    {STORE}"
    );
    assert_eq!(alone(&body).unwrap_or_else(|(fault, _)| panic!("{fault}"))[0], 50);
}

#[test]
fn a_waiter_that_works_between_its_looks_is_not_kept_from_it() {
    // Warp 1 spins on a flag that thread 0 sets only after its wait failed.
    let body = "    setp.ne.u32 %p1, %r1, 0;
    setp.ge.u32 %p4, %r1, 32;
    @!%p1 mbarrier.init.shared.b64 [gate], 1;
    @!%p1 st.shared.u32 [slots], 0;
    bar.sync 0;
    @%p4 bra SPIN;
    @%p1 bra DONE;
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [gate], 0;
    st.volatile.shared.u32 [slots], 1;
    @!%p2 bra WAIT;
    mov.u32 %r4, 9;
    st.global.u32 [%rd1], %r4;
    bra DONE;
SPIN:
    ld.volatile.shared.u32 %r5, [slots];
    setp.eq.u32 %p3, %r5, 0;
    @%p3 bra SPIN;
    setp.eq.u32 %p5, %r1, 32;
    @%p5 mbarrier.arrive.shared.b64 _, [gate];
DONE:";
    for schedule in schedules(5) {
        let got = run_in(body, (64, 1), schedule);
        let got = got.unwrap_or_else(|(fault, _)| panic!("{schedule:?}: {fault}"));
        assert_eq!(got[0], 9, "{schedule:?}");
    }
}

const SYNC: &str = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";

/// Block 1 sends each thread's word to block 0, which waits for them and writes them out.
fn send(store: &str, wait: &str, last: &str) -> String {
    format!(
        "    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r2, %cluster_ctarank;
    setp.eq.u32 %p3, %r2, 0;
    mov.u32 %r3, slots;
    mad.lo.u32 %r3, %r1, 4, %r3;
    mov.u32 %r4, 1;
    st.shared.u32 [%r3], %r4;
    @!%p1 mbarrier.init.shared.b64 [gate], 1;
    @!%p1 mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [gate], 128;
    fence.mbarrier_init.release.cluster;
    {SYNC}
    @%p3 bra TAKE;
    mapa.shared::cluster.u32 %r5, %r3, 0;
    mov.u32 %r6, gate;
    mapa.shared::cluster.u32 %r7, %r6, 0;
    add.u32 %r8, %r1, 40;
    {store}
    bra DONE;
TAKE:
    {wait}
    ld.shared.u32 %r9, [%r3];
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    st.global.u32 [%rd3], %r9;
DONE:
    {last}"
    )
}

const STORE_ASYNC: &str =
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r8, [%r7];";
const ADD_ASYNC: &str = "red.async.relaxed.cluster.shared::cluster.\
                         mbarrier::complete_tx::bytes.add.u32 [%r5], %r8, [%r7];";
const WAIT: &str =
    "TRY: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [gate], 0; @!%p2 bra TRY;";

#[test]
fn asynchronous_stores_reach_the_block_that_waits_for_them() {
    for (store, extra) in [(STORE_ASYNC, 0), (ADD_ASYNC, 1)] {
        let want: Vec<u32> = (0..32).map(|thread| thread + 40 + extra).collect();
        for schedule in schedules(10) {
            let got = run_in(&send(store, WAIT, ""), (32, 2), schedule);
            let got = got.unwrap_or_else(|(fault, _)| panic!("{schedule:?}: {fault}"));
            assert_eq!(got[..32], want, "{schedule:?}");
        }
    }
}

#[test]
fn an_asynchronous_store_that_nobody_waits_for_is_seen() {
    // The cluster's barrier does not wait for it.
    let body = send(STORE_ASYNC, "", "");
    let body = body.replace("DONE:", &format!("DONE: {SYNC}"));
    let (fault, _) = run_in(&body, (32, 2), Schedule::InOrder).expect_err("under way");
    assert!(fault.to_string().contains("under way"), "{fault}");
    let late = send(
        STORE_ASYNC,
        "",
        "@!%p3 bra END;
TRY: mbarrier.try_wait.parity.shared.b64 %p2, [gate], 0; @!%p2 bra TRY;
END:",
    );
    for schedule in schedules(4) {
        let got = run_in(&late, (32, 2), schedule).unwrap_or_else(|(fault, _)| panic!("{fault}"));
        assert_eq!(got[..32], [1; 32], "the old words: {schedule:?}");
    }
}

#[test]
fn an_asynchronous_store_of_too_few_bytes_is_a_deadlock() {
    let store = format!("@%p1 {STORE_ASYNC}");
    let (fault, _) = run_in(&send(&store, WAIT, ""), (32, 2), Schedule::InOrder)
        .expect_err("four bytes never come");
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
    assert!(fault.to_string().contains("4 bytes to come"), "{fault}");
}

#[test]
fn an_asynchronous_store_and_its_mbarrier_are_in_one_block() {
    let store =
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r8, [%r6]; // here";
    let (fault, source) =
        run_in(&send(store, WAIT, ""), (32, 2), Schedule::InOrder).expect_err("two blocks");
    assert!(matches!(fault.kind, FaultKind::ClusterMisuse { .. }), "{fault}");
    assert_eq!(fault.line, Some(line_of(&source, "// here")));
}

#[test]
fn remote_arrivals_complete_a_phase_of_another_block() {
    let body = format!(
        "    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, slots;
    mad.lo.u32 %r3, %r1, 4, %r3;
    @!%p1 mbarrier.init.shared.b64 [gate], 128;
    {SYNC}
    mov.u32 %r6, gate;
    mapa.shared::cluster.u32 %r5, %r3, 0;
    mapa.shared::cluster.u32 %r7, %r6, 0;
    add.u32 %r8, %r1, 40;
    setp.ne.u32 %p3, %r2, 3;
    @!%p3 st.shared::cluster.u32 [%r5], %r8;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
    setp.ne.u32 %p4, %r2, 0;
    @%p4 bra DONE;
    {WAIT}
    ld.shared.u32 %r9, [%r3];
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    st.global.u32 [%rd3], %r9;
DONE:"
    );
    let want: Vec<u32> = (0..32).map(|thread| thread + 40).collect();
    for schedule in schedules(10) {
        let got = run_in(&body, (32, 4), schedule);
        let got = got.unwrap_or_else(|(fault, _)| panic!("{schedule:?}: {fault}"));
        assert_eq!(got[..32], want, "{schedule:?}");
    }
    let waits = body.replace("[gate], 0; @!%p2", "[%r7], 0; @!%p2").replace("%r6, 0;", "%r6, 1;");
    let (fault, _) = run_in(&waits, (32, 4), Schedule::InOrder).expect_err("not its own object");
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }), "not in the own window: {fault}");
}
