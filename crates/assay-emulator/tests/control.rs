//! Control flow and sizes that compilers seldom make: irreducible loops, thousands of registers,
//! recursion without end, grids without end.

#![expect(clippy::print_stdout, reason = "what was measured is printed")]

mod common;

use std::fmt::Write as _;
use std::time::Duration;

use assay_emulator::{Fault, FaultKind, LaunchConfig, Schedule};
use common::{Bench, HEADER, line_of, pointer_kernel};

const SCHEDULES: [Schedule; 3] = [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(5)];
const STORE: &str = "\n    mad.wide.u32 %rd2, %r1, 4, %rd1;\n    st.global.u32 [%rd2], %r2;";

/// Runs a body of 32 lanes whose results are in `%r2`, under three schedules.
fn check_lanes(body: &str, want: impl Fn(u32) -> u32) {
    let want: Vec<u32> = (0..32).map(want).collect();
    for schedule in SCHEDULES {
        let mut bench = Bench::new(128);
        let config = LaunchConfig { schedule, ..LaunchConfig::default() };
        bench.launch(&pointer_kernel("", &format!("{body}{STORE}")), &config).unwrap();
        assert_eq!(bench.words(), want, "{schedule:?}");
    }
}

#[test]
fn a_kernel_with_2500_live_registers_computes_what_rust_does() {
    const COUNT: u32 = 2_500;
    let mut body = format!("    .reg .b32 %x<{COUNT}>;\n    mov.u32 %r2, 0;\n");
    for index in 0..COUNT {
        writeln!(body, "    mad.lo.u32 %x{index}, %r1, {index}, {};", index * index).unwrap();
    }
    // In this order all are live at once.
    for index in (0..COUNT).rev() {
        writeln!(body, "    mad.lo.u32 %r2, %r2, 31, %x{index};").unwrap();
    }
    check_lanes(&body, |lane| {
        let step =
            |sum: u32, index: u32| sum.wrapping_mul(31).wrapping_add(lane * index + index * index);
        (0..COUNT).rev().fold(0, step)
    });
}

#[test]
fn a_loop_with_two_entries_runs_each_lane_through_its_own() {
    let body = "
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p1, %r3, 1;
    mov.u32 %r2, %r1;
    mov.u32 %r4, 0;
    @%p1 bra MIDDLE;
TOP:
    mad.lo.u32 %r2, %r2, 3, 1;
    add.u32 %r4, %r4, 1;
    setp.gt.u32 %p2, %r4, %r1;
    @%p2 bra END;
MIDDLE:
    xor.b32 %r2, %r2, %r4;
    add.u32 %r2, %r2, 7;
    setp.lt.u32 %p3, %r4, 9;
    @%p3 bra TOP;
END:";
    check_lanes(body, |lane| {
        let (mut value, mut count) = (lane, 0);
        let mut skip = lane % 2 == 1;
        loop {
            if !skip {
                value = value * 3 + 1;
                count += 1;
                if count > lane {
                    return value;
                }
            }
            skip = false;
            value = (value ^ count) + 7;
            if count >= 9 {
                return value;
            }
        }
    });
}

#[test]
fn a_state_machine_of_indexed_branches_runs_each_lane_through_its_states() {
    let body = "
    and.b32 %r3, %r1, 3;
    mov.u32 %r2, %r1;
    mov.u32 %r4, 0;
STATES: .branchtargets A, B, C, D;
NEXT:
    add.u32 %r4, %r4, 1;
    brx.idx %r3, STATES;
A:
    add.u32 %r2, %r2, 5;
    mov.u32 %r3, 1;
    bra NEXT;
B:
    mul.lo.u32 %r2, %r2, 3;
    and.b32 %r5, %r2, 4;
    setp.eq.u32 %p1, %r5, 0;
    selp.u32 %r3, 0, 2, %p1;
    bra CHECK;
C:
    xor.b32 %r2, %r2, 9;
    mov.u32 %r3, 1;
CHECK:
    setp.lt.u32 %p2, %r4, 12;
    @%p2 bra NEXT;
D:";
    check_lanes(body, |lane| {
        let (mut value, mut state, mut steps) = (lane, lane & 3, 0);
        loop {
            steps += 1;
            match state {
                0 => {
                    (value, state) = (value + 5, 1);
                    continue;
                }
                1 => {
                    value = value.wrapping_mul(3);
                    state = if value & 4 == 0 { 0 } else { 2 };
                }
                2 => (value, state) = (value ^ 9, 1),
                _ => return value,
            }
            if steps >= 12 {
                return value;
            }
        }
    });
}

#[test]
fn an_index_past_the_branch_table_is_a_fault_at_its_line() {
    let body = "
TABLE: .branchtargets END, END;
    brx.idx %r1, TABLE; // here
END:";
    let source = pointer_kernel("", body);
    let fault = Bench::new(128).launch(&source, &LaunchConfig::default()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidAddress { address: 2 });
    assert_eq!((fault.line, fault.thread), (Some(line_of(&source, "// here")), [2, 0, 0]));
}

#[test]
fn a_call_to_what_is_no_function_is_a_fault_at_its_line() {
    let body = "
    mov.u64 %rd3, 1234;
PROTOTYPE: .callprototype _ ();
    call %rd3, (), PROTOTYPE; // here";
    let source = pointer_kernel("", body);
    let fault = Bench::new(128).launch(&source, &LaunchConfig::default()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidAddress { address: 1234 });
    assert_eq!(fault.line, Some(line_of(&source, "// here")));
}

/// What this thread has computed so far, which does not count what other processes do; zero where
/// the system does not say.
fn computed() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

/// Recursion without end through frames of so many bytes: its fault, at its call, and its time.
fn endless(frame: u32, schedule: Schedule, threads: u32) -> (Fault, Duration) {
    let module = format!(
        "{HEADER}.func deeper(.param .b32 in)
{{
    .reg .b32 %r<2>;
    .local .align 16 .b8 frame[{frame}];
    ld.param.b32 %r1, [in];
    st.local.b32 [frame], %r1;
    {{
    .param .b32 next;
    st.param.b32 [next], %r1;
    call.uni deeper, (next); // here
    }}
    ret;
}}"
    );
    let body = "    {\n    .param .b32 first;\n    st.param.b32 [first], %r1;
    call.uni deeper, (first);\n    }";
    let source = pointer_kernel("", body).replacen(HEADER, &module, 1);
    let config = LaunchConfig { schedule, block: [threads, 1, 1], ..LaunchConfig::default() };
    let start = computed();
    let fault = Bench::new(4).launch(&source, &config).unwrap_err();
    assert_eq!(fault.line, Some(line_of(&source, "// here")), "{fault}");
    (fault, computed().saturating_sub(start))
}

#[test]
fn recursion_without_end_is_a_stack_overflow_at_its_call_within_bounded_memory() {
    for schedule in SCHEDULES {
        for (frame, threads) in [(16, 32), (1024, 1024), (65_536, 32), (400_000, 64)] {
            let (fault, time) = endless(frame, schedule, threads);
            let FaultKind::StackOverflow { depth, bytes } = fault.kind else { panic!("{fault}") };
            println!("frames of {frame} bytes, {threads} threads: {fault}; {time:?}");
            // 64 MiB a warp, or 1,024 calls; 32 warps in turns reach the limit of a block first.
            assert!(threads == 1024 || (depth > 1024) == (frame <= 1024), "{fault}");
            assert!(bytes > u64::from(frame) * u64::from(depth - 1), "{fault}");
            assert!(bytes <= (2 << 20) + 2 * 450_000, "{fault}");
            // It takes milliseconds, because not every level copies all that there is.
            assert!(time < Duration::from_secs(20), "{time:?}");
        }
    }
}

#[test]
fn recursion_that_ends_may_be_a_thousand_deep() {
    let module = format!(
        "{HEADER}.func (.param .b32 out) sum(.param .b32 in)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .local .align 4 .b8 frame[64];
    ld.param.b32 %r1, [in];
    st.local.b32 [frame+60], %r1;
    mov.u32 %r2, 0;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra END;
    sub.u32 %r3, %r1, 1;
    {{
    .param .b32 next, answer;
    st.param.b32 [next], %r3;
    call.uni (answer), sum, (next);
    ld.param.b32 %r2, [answer];
    }}
END:
    ld.local.b32 %r4, [frame+60];
    add.u32 %r2, %r2, %r4;
    st.param.b32 [out], %r2;
    ret;
}}"
    );
    let body = "    add.u32 %r5, %r1, 980;\n    {\n    .param .b32 first, answer;
    st.param.b32 [first], %r5;\n    call.uni (answer), sum, (first);
    ld.param.b32 %r2, [answer];\n    }";
    let source = pointer_kernel("", &format!("{body}{STORE}")).replacen(HEADER, &module, 1);
    let mut bench = Bench::new(128);
    bench.launch(&source, &LaunchConfig::default()).unwrap();
    let want: Vec<u32> = (980..1012).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(bench.words(), want);
}

#[test]
fn a_tree_of_calls_ends_at_its_budget_in_time_that_grows_with_the_budget_alone() {
    let module = format!(
        "{HEADER}.func tree(.param .b32 in)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [in];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 ret;
    sub.u32 %r2, %r1, 1;
    {{ .param .b32 left; st.param.b32 [left], %r2; call.uni tree, (left); }}
    {{ .param .b32 right; st.param.b32 [right], %r2; call.uni tree, (right); }}
    ret;
}}"
    );
    let body = "    { .param .b32 all; st.param.b32 [all], 40; call.uni tree, (all); }";
    let source = pointer_kernel("", body).replacen(HEADER, &module, 1);
    let instruction_budget = 2_000_000;
    let config = LaunchConfig { instruction_budget, ..LaunchConfig::default() };
    let start = computed();
    let fault = Bench::new(4).launch(&source, &config).unwrap_err();
    let time = computed().saturating_sub(start);
    println!("{fault}; {time:?}");
    assert!(matches!(fault.kind, FaultKind::Runaway { budget: 2_000_000, .. }), "{fault}");
    // Looking for each stack among all so far would take the square of it.
    assert!(time < Duration::from_secs(20), "{time:?}");
}

#[test]
fn a_grid_of_nine_quintillion_blocks_ends_at_its_budget_with_the_line() {
    let source = pointer_kernel("", "    add.u32 %r2, %r1, 1; // here");
    let grid = [0x7fff_ffff, 0xffff, 0xffff];
    for schedule in SCHEDULES {
        let instruction_budget = 1_000_000;
        let config = LaunchConfig { grid, schedule, instruction_budget, ..LaunchConfig::default() };
        let fault = Bench::new(4).launch(&source, &config).unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Runaway { budget: 1_000_000, .. }), "{fault}");
        let text = fault.to_string();
        println!("{text}");
        assert!(text.contains("1000000 warp instructions"), "{text}");
    }
}
