//! Shuffles, votes, matches, reductions, barriers, divergence, calls, special registers.

mod common;

use assay_emulator::{LaunchConfig, Schedule};
use common::{Bench, HEADER, pointer_kernel};

/// Runs a kernel of one warp whose threads each store `%r2` and gives the words.
fn lanes(body: &str) -> Vec<u32> {
    lanes_under(body, Schedule::InOrder)
}

fn lanes_under(body: &str, schedule: Schedule) -> Vec<u32> {
    let source = pointer_kernel(
        "",
        &format!(
            "{body}
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;"
        ),
    );
    let mut bench = Bench::new(128);
    bench.launch(&source, &LaunchConfig { schedule, ..LaunchConfig::default() }).unwrap();
    bench.words()
}

fn each(function: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(function).collect()
}

#[test]
fn shuffles_follow_the_formula_of_the_isa() {
    let twice = "mul.lo.u32 %r3, %r1, 2;\n";
    let run = |text: &str| lanes(&format!("{twice} {text}"));
    assert_eq!(run("shfl.sync.bfly.b32 %r2, %r3, 5, 31, -1;"), each(|n| 2 * (n ^ 5)));
    assert_eq!(
        run("shfl.sync.down.b32 %r2, %r3, 3, 31, -1;"),
        each(|n| 2 * if n + 3 < 32 { n + 3 } else { n })
    );
    assert_eq!(
        run("shfl.sync.up.b32 %r2, %r3, 3, 0, -1;"),
        each(|n| 2 * if n >= 3 { n - 3 } else { n })
    );
    assert_eq!(run("shfl.sync.idx.b32 %r2, %r3, 9, 31, -1;"), each(|_| 18));
    // Segments of eight lanes.
    assert_eq!(
        run("shfl.sync.down.b32 %r2, %r3, 3, 0x181f, -1;"),
        each(|n| 2 * if n % 8 + 3 < 8 { n + 3 } else { n })
    );
    assert_eq!(run("shfl.sync.idx.b32 %r2, %r3, 2, 0x181f, -1;"), each(|n| 2 * (n & 0x18 | 2)));
    // The predicate says whether the source was inside.
    assert_eq!(
        run("shfl.sync.down.b32 %r4|%p1, %r3, 4, 31, -1; selp.u32 %r2, 1, 0, %p1;"),
        each(|n| u32::from(n + 4 < 32))
    );
}

#[test]
fn votes_and_masks_see_all_members() {
    let low = "setp.lt.u32 %p1, %r1, 5;\n";
    let run = |text: &str| lanes(&format!("{low} {text}"));
    assert_eq!(run("vote.sync.ballot.b32 %r2, %p1, -1;"), each(|_| 0x1f));
    assert_eq!(run("vote.sync.ballot.b32 %r2, !%p1, -1;"), each(|_| !0x1f));
    assert_eq!(run("vote.sync.any.pred %p2, %p1, -1; selp.u32 %r2, 1, 0, %p2;"), each(|_| 1));
    assert_eq!(run("vote.sync.all.pred %p2, %p1, -1; selp.u32 %r2, 1, 0, %p2;"), each(|_| 0));
    assert_eq!(run("vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r2, 1, 0, %p2;"), each(|_| 0));
    assert_eq!(
        run("mov.u32 %r2, 7; @%p1 activemask.b32 %r2;"),
        each(|n| if n < 5 { 0x1f } else { 7 })
    );
    assert_eq!(
        lanes("and.b32 %r3, %r1, 3; match.any.sync.b32 %r2, %r3, -1;"),
        each(|n| 0x1111_1111 << (n & 3))
    );
    assert_eq!(lanes("mov.u32 %r3, 4; match.all.sync.b32 %r2|%p1, %r3, -1;"), each(|_| u32::MAX));
    assert_eq!(lanes("match.all.sync.b32 %r2|%p1, %r1, -1;"), each(|_| 0));
    assert_eq!(
        lanes("elect.sync %r2|%p1, -1; selp.u32 %r2, 1, 0, %p1;"),
        each(|n| u32::from(n == 0))
    );
}

#[test]
fn warp_reductions_combine_all_members() {
    let sum: u32 = (0..32).sum();
    assert_eq!(lanes("redux.sync.add.s32 %r2, %r1, -1;"), each(|_| sum));
    assert_eq!(lanes("redux.sync.max.u32 %r2, %r1, -1;"), each(|_| 31));
    assert_eq!(
        lanes("sub.s32 %r3, %r1, 9; redux.sync.min.s32 %r2, %r3, -1;"),
        each(|_| -9_i32 as u32)
    );
    assert_eq!(lanes("redux.sync.xor.b32 %r2, %r1, -1;"), each(|_| 0));
    assert_eq!(lanes("redux.sync.or.b32 %r2, %r1, -1;"), each(|_| 31));
}

/// Odd and even lanes part, loop different times, and meet again.
const DIVERGENT: &str = "
    mov.u32 %r2, 0;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p1, %r3, 1;
    @%p1 bra ODD;
    add.s32 %r2, %r2, 100;
    bra JOIN;
ODD:
    add.s32 %r2, %r2, 200;
JOIN:
    mov.u32 %r4, 0;
LOOP:
    add.s32 %r2, %r2, 1;
    add.s32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, %r1;
    @%p2 bra LOOP;
    vote.sync.ballot.b32 %r5, %p1, -1;
    popc.b32 %r5, %r5;
    add.s32 %r2, %r2, %r5;";

#[test]
fn divergent_lanes_meet_again_under_every_schedule() {
    let want = each(|n| if n % 2 == 1 { 200 } else { 100 } + n.max(1) + 16);
    assert_eq!(lanes(DIVERGENT), want);
    assert_eq!(lanes_under(DIVERGENT, Schedule::Reversed), want);
    for seed in 0..50 {
        assert_eq!(lanes_under(DIVERGENT, Schedule::Seeded(seed)), want, "seed {seed}");
    }
}

#[test]
fn indexed_branches_send_each_lane_to_its_target() {
    let body = "
    and.b32 %r3, %r1, 3;
TABLE: .branchtargets ZERO, ONE, TWO, ONE;
    brx.idx %r3, TABLE;
ZERO:
    mov.u32 %r2, 10;
    bra END;
ONE:
    mov.u32 %r2, 11;
    bra END;
TWO:
    mov.u32 %r2, 12;
END:";
    assert_eq!(lanes(body), each(|n| [10, 11, 12, 11][n as usize & 3]));
}

#[test]
fn lanes_that_wait_in_a_branch_keep_their_registers() {
    // Registers of one lane may live in a slot that another lane, elsewhere, uses for something
    // else; 64-bit and 32-bit values must not meet.
    let body = "
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra LOW;
    cvt.u64.u32 %rd5, %r1;
    mul.lo.u64 %rd5, %rd5, 0x100000001;
    add.u64 %rd5, %rd5, 7;
    shr.u64 %rd6, %rd5, 32;
    cvt.u32.u64 %r7, %rd6;
    bar.warp.sync 0xffff0000;
    mov.u32 %r2, %r7;
    bra END;
LOW:
    add.s32 %r8, %r1, 1;
    mul.lo.s32 %r9, %r8, 3;
    sub.s32 %r10, %r9, %r8;
    bar.warp.sync 0x0000ffff;
    mov.u32 %r2, %r10;
END:";
    let want = each(|n| if n < 16 { 2 * (n + 1) } else { n });
    for seed in 0..50 {
        assert_eq!(lanes_under(body, Schedule::Seeded(seed)), want, "seed {seed}");
    }
}

#[test]
fn tiles_of_a_warp_act_on_their_own_at_the_same_instruction() {
    let tile = "and.b32 %r3, %r1, 24; shl.b32 %r3, 255, %r3;\n";
    let sums = |tile: u32| tile * 64 + 28;
    // Lanes 5 and 20 come later, so two of the four tiles have to wait.
    let late = "setp.eq.u32 %p1, %r1, 5; setp.eq.or.u32 %p1, %r1, 20, %p1;
    @!%p1 bra HERE; add.u32 %r4, %r1, 1; bra HERE;
HERE:\n";
    for before in ["", late] {
        for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(5)] {
            let run = |body: &str| lanes_under(&format!("{tile}{before}{body}"), schedule);
            assert_eq!(run("redux.sync.add.u32 %r2, %r1, %r3;"), each(|n| sums(n / 8)));
            assert_eq!(
                run("shfl.sync.bfly.b32 %r2, %r1, 7, 0x181f, %r3; bar.warp.sync %r3;"),
                each(|n| n ^ 7)
            );
            assert_eq!(
                run("setp.gt.u32 %p2, %r1, 18; vote.sync.ballot.b32 %r2, %p2, %r3;"),
                each(|n| [0, 0, 0x00f8_0000, 0xff00_0000][n as usize / 8])
            );
            assert_eq!(
                run("and.b32 %r4, %r1, 1; match.any.sync.b32 %r2, %r4, %r3;"),
                each(|n| (0x55 << (n & 1)) << (n & 0x18))
            );
        }
    }
}

#[test]
fn block_barriers_order_warps() {
    let source = pointer_kernel(
        ".shared .align 4 .b8 exchange[1024];",
        "    mov.u32 %r2, exchange;
    mad.lo.s32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    xor.b32 %r4, %r1, 255;
    mad.lo.s32 %r5, %r4, 4, %r2;
    ld.shared.u32 %r6, [%r5];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r6;",
    );
    let want: Vec<u32> = (0..256).map(|n| n ^ 255).collect();
    for schedule in
        [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(1), Schedule::Seeded(2)]
    {
        let mut bench = Bench::new(1024);
        let config = LaunchConfig { block: [256, 1, 1], schedule, ..LaunchConfig::default() };
        bench.launch(&source, &config).unwrap();
        assert_eq!(bench.words(), want, "{schedule:?}");
    }
}

#[test]
fn barrier_reductions_count_the_whole_block() {
    let source = pointer_kernel(
        "",
        "    setp.lt.u32 %p1, %r1, 70;
    barrier.red.popc.u32 %r2, 1, %p1;
    bar.red.and.pred %p2, 2, 96, %p1;
    bar.red.or.pred %p3, 3, !%p1;
    selp.u32 %r3, 1000, 0, %p2;
    selp.u32 %r4, 2000, 0, %p3;
    add.s32 %r2, %r2, %r3;
    add.s32 %r2, %r2, %r4;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;",
    );
    let mut bench = Bench::new(4 * 96);
    let config = LaunchConfig { block: [96, 1, 1], ..LaunchConfig::default() };
    bench.launch(&source, &config).unwrap();
    assert!(bench.words().iter().all(|&word| word == 2070), "{:?}", bench.words());
}

#[test]
fn producers_arrive_and_consumers_wait() {
    let source = pointer_kernel(
        ".shared .align 4 .b8 value[4];",
        "    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra CONSUMER;
    st.shared.u32 [value], 42;
    bar.arrive 1, 64;
    bra END;
CONSUMER:
    bar.sync 1, 64;
    ld.shared.u32 %r2, [value];
    st.global.u32 [%rd1], %r2;
END:",
    );
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(9)] {
        let mut bench = Bench::new(4);
        let config = LaunchConfig { block: [64, 1, 1], schedule, ..LaunchConfig::default() };
        bench.launch(&source, &config).unwrap();
        assert_eq!(bench.words(), [42], "{schedule:?}");
    }
}

#[test]
fn warps_that_have_exited_are_not_waited_for() {
    let source = pointer_kernel(
        "",
        "    setp.lt.u32 %p1, %r1, 32;
    @%p1 ret;
    bar.sync 0;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r1;",
    );
    let mut bench = Bench::new(256);
    bench.launch(&source, &LaunchConfig { block: [64, 1, 1], ..LaunchConfig::default() }).unwrap();
    assert_eq!(bench.words()[63], 63);
}

#[test]
fn special_registers_tell_where_a_thread_is() {
    let source = pointer_kernel(
        "",
        "    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r4, %r2, %r3, %r1;
    mov.u32 %r5, %ctaid.y;
    mov.u32 %r6, %nctaid.x;
    mov.u32 %r7, %ctaid.x;
    mad.lo.s32 %r8, %r5, %r6, %r7;
    mov.u32 %r9, %ntid.y;
    mul.lo.s32 %r10, %r3, %r9;
    mad.lo.s32 %r11, %r8, %r10, %r4;
    mad.wide.u32 %rd2, %r11, 4, %rd1;
    mov.u32 %r12, %laneid;
    mov.u32 %r13, %lanemask_lt;
    mov.u32 %r14, %warpid;
    shl.b32 %r15, %r14, 8;
    popc.b32 %r16, %r13;
    add.s32 %r17, %r12, %r16;
    add.s32 %r18, %r17, %r15;
    st.global.u32 [%rd2], %r18;",
    );
    let mut bench = Bench::new(4 * 4 * 48);
    let config = LaunchConfig { grid: [2, 2, 1], block: [8, 6, 1], ..LaunchConfig::default() };
    bench.launch(&source, &config).unwrap();
    for (index, word) in bench.words().into_iter().enumerate() {
        let thread = index as u32 % 48;
        assert_eq!(word, 2 * (thread % 32) + 256 * (thread / 32), "thread {thread}");
    }
}

#[test]
fn clocks_count_instructions() {
    let run = lanes(
        "mov.u32 %r3, %clock; add.s32 %r5, %r1, 1; mov.u32 %r4, %clock; sub.s32 %r2, %r4, %r3;",
    );
    // Each reading of a special register is lowered to two.
    assert!(run.iter().all(|&passed| (2..=4).contains(&passed)), "{run:?}");
    let wait = "mov.u64 %rd4, %clock64; WAIT: mov.u64 %rd5, %clock64; sub.u64 %rd6, %rd5, %rd4;
    setp.lt.u64 %p1, %rd6, 5000; @%p1 bra WAIT; cvt.u32.u64 %r2, %rd6;";
    assert!(lanes(wait).iter().all(|&passed| (5000..5100).contains(&passed)));
}

#[test]
fn functions_take_and_return_values() {
    let source = format!(
        "{HEADER}
.func (.param .b32 result) square(.param .b32 x)
{{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [x];
    mul.lo.s32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}}
.func (.param .b32 result) sum(.param .align 8 .b8 pair[16])
{{
    .reg .b32 %r<4>;
    ld.param.b32 %r1, [pair];
    ld.param.b32 %r2, [pair+8];
    add.s32 %r3, %r1, %r2;
    st.param.b32 [result+0], %r3;
    ret;
}}
{}",
        pointer_kernel(
            "",
            "    {
    .param .b32 argument;
    .param .b32 answer;
    st.param.b32 [argument], %r1;
    call.uni (answer), square, (argument);
    ld.param.b32 %r2, [answer];
    }
    {
    .param .align 8 .b8 both[16];
    .param .b32 answer;
    st.param.b32 [both], %r2;
    st.param.b32 [both+8], %r1;
    and.b32 %r4, %r1, 1;
    setp.eq.u32 %p1, %r4, 1;
    @%p1 call.uni (answer), sum, (both);
    @%p1 ld.param.b32 %r2, [answer];
    }
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;"
        )
        .strip_prefix(HEADER)
        .unwrap()
    );
    for schedule in [Schedule::InOrder, Schedule::Seeded(3)] {
        let mut bench = Bench::new(128);
        bench.launch(&source, &LaunchConfig { schedule, ..LaunchConfig::default() }).unwrap();
        assert_eq!(bench.words(), each(|n| n * n + if n % 2 == 1 { n } else { 0 }));
    }
}

/// `depth(n)` calls itself `n` times and counts.
fn recursive(depth: &str) -> String {
    format!(
        "{HEADER}
.func (.param .b32 result) depth(.param .b32 n)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    ld.param.b32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r2, 0;
    @%p1 bra END;
    sub.s32 %r3, %r1, 1;
    {{
    .param .b32 argument;
    .param .b32 answer;
    st.param.b32 [argument], %r3;
    call.uni (answer), depth, (argument);
    ld.param.b32 %r4, [answer];
    }}
    add.s32 %r2, %r4, %r1;
END:
    st.param.b32 [result], %r2;
    ret;
}}
{}",
        pointer_kernel(
            "",
            &format!(
                "    {{
    .param .b32 argument;
    .param .b32 answer;
    {depth}
    st.param.b32 [argument], %r5;
    call.uni (answer), depth, (argument);
    ld.param.b32 %r2, [answer];
    }}
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;"
            )
        )
        .strip_prefix(HEADER)
        .unwrap()
    )
}

#[test]
fn recursion_keeps_the_registers_of_every_level() {
    let mut bench = Bench::new(128);
    bench.launch(&recursive("mov.u32 %r5, %r1;"), &LaunchConfig::default()).unwrap();
    assert_eq!(bench.words(), each(|n| n * (n + 1) / 2));
}

#[test]
fn indirect_calls_reach_their_function() {
    let source = format!(
        "{HEADER}
.func (.param .b32 result) one() {{ st.param.b32 [result], 1; ret; }}
.func (.param .b32 result) two() {{ st.param.b32 [result], 2; ret; }}
{}",
        pointer_kernel(
            "",
            "    mov.u64 %rd3, one;
    mov.u64 %rd4, two;
    and.b32 %r3, %r1, 1;
    setp.eq.u32 %p1, %r3, 0;
    selp.b64 %rd5, %rd3, %rd4, %p1;
    {
    .param .b32 answer;
PROTOTYPE: .callprototype (.param .b32 _) _ ();
    call (answer), %rd5, (), PROTOTYPE;
    ld.param.b32 %r2, [answer];
    }
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;"
        )
        .strip_prefix(HEADER)
        .unwrap()
    );
    let mut bench = Bench::new(128);
    bench.launch(&source, &LaunchConfig::default()).unwrap();
    assert_eq!(bench.words(), each(|n| 1 + n % 2));
}

#[test]
fn printf_collects_text() {
    let source = format!(
        "{HEADER}
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[14] = {{110, 61, 37, 100, 32, 120, 61, 37, 46, 50, 102, 10, 0, 0}};
{}",
        pointer_kernel(
            ".local .align 8 .b8 depot[16];",
            "    setp.gt.u32 %p1, %r1, 1;
    @%p1 ret;
    mov.u64 %rd3, depot;
    cvta.local.u64 %rd4, %rd3;
    st.local.u32 [%rd3], %r1;
    st.local.f64 [%rd3+8], 0d4004000000000000;
    mov.u64 %rd5, text;
    cvta.global.u64 %rd6, %rd5;
    {
    .param .b64 first;
    .param .b64 second;
    .param .b32 answer;
    st.param.b64 [first], %rd6;
    st.param.b64 [second], %rd4;
    call.uni (answer), vprintf, (first, second);
    }"
        )
        .strip_prefix(HEADER)
        .unwrap()
    );
    let mut bench = Bench::new(128);
    let statistics = bench.launch(&source, &LaunchConfig::default()).unwrap();
    assert_eq!(statistics.output, "n=0 x=2.50\nn=1 x=2.50\n");
}

#[test]
fn an_mbarrier_completes_its_phases() {
    // Two warps pass a token back and forth: 64 arrivals a phase.
    let source = pointer_kernel(
        ".shared .align 8 .b64 gate; .shared .align 4 .b8 slots[256];",
        "    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [gate], 64;
READY:
    bar.sync 0;
    mov.u32 %r2, slots;
    mad.lo.s32 %r3, %r1, 4, %r2;
    mov.u32 %r5, 0;
AGAIN:
    add.s32 %r6, %r1, %r5;
    st.shared.u32 [%r3], %r6;
    mbarrier.arrive.shared.b64 %rd4, [gate];
WAIT:
    mbarrier.try_wait.shared.b64 %p2, [gate], %rd4;
    @!%p2 bra WAIT;
    xor.b32 %r7, %r1, 63;
    mad.lo.s32 %r8, %r7, 4, %r2;
    ld.shared.u32 %r9, [%r8];
    mbarrier.arrive.shared.b64 _, [gate];
WAIT2:
    mbarrier.test_wait.parity.shared.b64 %p3, [gate], 1;
    @!%p3 bra WAIT2;
    add.s32 %r5, %r5, 100;
    setp.lt.u32 %p4, %r5, 300;
    @%p4 bra AGAIN;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r9;",
    );
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(7)] {
        let mut bench = Bench::new(256);
        let config = LaunchConfig {
            block: [64, 1, 1],
            schedule,
            instruction_budget: 1_000_000,
            ..LaunchConfig::default()
        };
        bench.launch(&source, &config).unwrap();
        let want: Vec<u32> = (0..64).map(|n| (n ^ 63) + 200).collect();
        assert_eq!(bench.words(), want, "{schedule:?}");
    }
}

#[test]
fn kernels_can_allocate_from_the_device_heap() {
    let source = format!(
        "{HEADER}
.extern .func (.param .b64 result) malloc(.param .b64 size);
.extern .func free(.param .b64 address);
{}",
        pointer_kernel(
            "",
            "    {
    .param .b64 size;
    .param .b64 answer;
    st.param.b64 [size], 8;
    call.uni (answer), malloc, (size);
    ld.param.b64 %rd3, [answer];
    }
    st.u32 [%rd3], %r1;
    shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;
    ld.u32 %r2, [%rd3];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;
    {
    .param .b64 address;
    st.param.b64 [address], %rd3;
    call.uni free, (address);
    }"
        )
        .strip_prefix(HEADER)
        .unwrap()
    );
    let mut bench = Bench::new(128);
    let before = bench.machine.available_bytes();
    bench.launch(&source, &LaunchConfig::default()).unwrap();
    assert_eq!(bench.words(), each(|n| n));
    assert_eq!(bench.machine.available_bytes(), before);
}
