//! Loads, stores, atomics, address spaces, asynchronous copies.

mod common;

use assay_emulator::{LaunchConfig, Schedule};
use assay_num::random::SplitMix64;
use common::{Bench, Out, check, check_on, check_wide, pointer_kernel, wide_triples, word_triples};

#[test]
fn loads_extend_and_stores_cut() {
    // Through shared memory, 8 bytes a thread.
    let address = "mov.u32 %r10, buffer; shl.b32 %r11, %i4, 3; add.s32 %r10, %r10, %r11;";
    let through = |body: &str| format!("{address} st.shared.b64 [%r10], %rd1; {body}");
    let wide = wide_triples(61);
    let load = |body: &str, out: Out, want: fn(u64) -> u64| {
        check_on(&through(body), out, &wide, |a, _, _| want(a));
    };
    load("ld.shared.u8 %r4, [%r10];", Out::Word, |a| a & 0xff);
    load("ld.shared.s8 %r4, [%r10+1];", Out::Word, |a| (a >> 8) as i8 as u32 as u64);
    load("ld.shared.s8 %h4, [%r10];", Out::Half, |a| a as i8 as u16 as u64);
    load("ld.shared.u16 %r4, [%r10+2];", Out::Word, |a| a >> 16 & 0xffff);
    load("ld.shared.s16 %rd4, [%r10];", Out::Wide, |a| a as i16 as u64);
    load("ld.shared.s32 %rd4, [%r10+4];", Out::Wide, |a| (a >> 32) as i32 as u64);
    load("ld.shared.v2.b32 {%r5, %r4}, [%r10];", Out::Word, |a| a >> 32);
    load("ld.shared.v4.b16 {%h5, %h6, _, %h4}, [%r10];", Out::Half, |a| a >> 48);
    load("ld.volatile.shared.b32 %r4, [%r10+0];", Out::Word, |a| a & 0xffff_ffff);
    load("st.shared.u8 [%r10+3], 255; ld.shared.b32 %r4, [%r10];", Out::Word, |a| {
        a & 0xff_ffff | 0xff00_0000
    });
    load(
        "st.shared.b16 [%r10], %h2; ld.shared.b64 %rd4, [%r10]; and.b64 %rd4, %rd4, -65536;",
        Out::Wide,
        |a| a & !0xffff,
    );
    load("st.shared.v2.b32 [%r10], {%r1, 7}; ld.shared.b64 %rd4, [%r10];", Out::Wide, |a| {
        a & 0xffff_ffff | 7 << 32
    });
}

#[test]
fn scattered_and_masked_accesses_reach_the_right_lanes() {
    // Every thread reads its neighbour's word, backwards, and odd threads keep their own.
    let body = "
        mov.u32 %r10, buffer;
        mad.lo.s32 %r11, %i4, 4, %r10;
        st.shared.b32 [%r11], %r1;
        bar.sync 0;
        xor.b32 %r12, %i4, 31;
        mad.lo.s32 %r13, %r12, 4, %r10;
        mov.b32 %r4, %r1;
        and.b32 %r14, %i4, 1;
        setp.eq.u32 %p2, %r14, 0;
        @%p2 ld.shared.b32 %r4, [%r13];";
    let operands: Vec<[u64; 3]> = (0..256).map(|n| [n * 3 + 1, 0, 0]).collect();
    check_on(body, Out::Word, &operands, |a, _, _| {
        let n = (a - 1) / 3;
        if n % 2 == 0 { (n ^ 31) * 3 + 1 } else { a }
    });
}

#[test]
fn generic_addresses_reach_every_space() {
    check_wide(
        "mov.u64 %rd10, buffer; mad.wide.u32 %rd10, %i4, 8, %rd10; cvta.shared.u64 %rd11, %rd10;
         st.b64 [%rd11], %rd1; ld.shared.b64 %rd4, [%rd10];",
        |a, _, _| a,
    );
    check_wide(
        "cvta.to.global.u64 %rd10, %rd23; cvta.global.u64 %rd11, %rd10; ld.b64 %rd4, [%rd11+8];",
        |_, b, _| b,
    );
    check_on(
        "mov.u64 %rd10, buffer; cvta.shared.u64 %rd11, %rd10; isspacep.shared %p2, %rd11;
         isspacep.global %p3, %rd11; isspacep.global %p4, %rd23;
         not.pred %p3, %p3; and.pred %p1, %p2, %p3; and.pred %p1, %p1, %p4;",
        Out::Bit,
        &word_triples(62)[..64],
        |_, _, _| 1,
    );
}

#[test]
fn local_memory_belongs_to_its_thread() {
    let source = pointer_kernel(
        ".local .align 8 .b8 depot[64]; .reg .b64 %SP;",
        "    mov.u64 %rd2, depot;
    cvta.local.u64 %SP, %rd2;
    and.b32 %r2, %r1, 7;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %SP, %rd3;
    st.u32 [%rd4], %r1;
    bar.sync 0;
    ld.local.u32 %r3, [depot];
    add.s64 %rd5, %rd2, %rd3;
    ld.local.u32 %r4, [%rd5];
    mad.wide.u32 %rd6, %r1, 8, %rd1;
    st.global.v2.u32 [%rd6], {%r3, %r4};",
    );
    let mut bench = Bench::new(512);
    let config = LaunchConfig { block: [64, 1, 1], poison: 0xaa, ..LaunchConfig::default() };
    bench.launch(&source, &config).unwrap();
    for (thread, pair) in bench.words().chunks(2).enumerate() {
        let first = if thread % 8 == 0 { thread as u32 } else { 0xaaaa_aaaa };
        assert_eq!(pair, [first, thread as u32], "thread {thread}");
    }
}

#[test]
fn shared_variables_lie_behind_what_the_system_keeps_and_are_aligned_from_there() {
    let source = pointer_kernel(
        ".shared .align 4 .b8 word[4]; .shared .align 1024 .b8 tile[64];
    .shared .align 2048 .b8 pair[64];",
        "    mov.u32 %r2, word;
    mov.u32 %r3, tile;
    mov.u32 %r4, pair;
    st.global.u32 [%rd1], %r2;
    st.global.v2.u32 [%rd1+8], {%r3, %r4};",
    );
    let mut bench = Bench::new(16);
    bench.launch(&source, &LaunchConfig::default()).unwrap();
    let words = bench.words();
    let (word, tile, pair) = (words[0], words[2], words[3]);
    assert_eq!((word, tile % 1024), (1024, 0));
    // A kernel that takes its low bits for zeros is as wrong as on a GPU.
    assert_eq!(pair % 2048, 1024);
}

#[test]
fn shared_memory_starts_as_poison() {
    let source = pointer_kernel(
        ".shared .align 4 .b8 scratch[128]; .shared .align 4 .b8 more[8];",
        "    mov.u32 %r2, scratch;
    mad.lo.s32 %r3, %r1, 4, %r2;
    ld.shared.u32 %r4, [%r3];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r4;",
    );
    let mut bench = Bench::new(128);
    for poison in [0x55, 0xaa] {
        bench.launch(&source, &LaunchConfig { poison, ..LaunchConfig::default() }).unwrap();
        assert!(bench.words().iter().all(|&word| word == u32::from_le_bytes([poison; 4])));
    }
}

#[test]
fn module_variables_are_initialised_and_kept_between_launches() {
    let source = format!(
        "{}.global .align 4 .u32 counter = 5;
.const .align 4 .b8 table[8] = {{1, 0, 0, 0, 2, 0, 0, 0}};\n
.global .align 8 .u64 pointer = generic(counter);\n{}",
        common::HEADER,
        pointer_kernel(
            "",
            "    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    ld.global.u64 %rd2, [pointer];
    ld.u32 %r2, [%rd2];
    ld.const.u32 %r3, [table+4];
    add.s32 %r2, %r2, %r3;
    st.global.u32 [counter], %r2;
    st.global.u32 [%rd1], %r2;"
        )
        .strip_prefix(common::HEADER)
        .unwrap()
    );
    let program = common::compile(&source);
    let mut bench = Bench::new(4);
    let config =
        LaunchConfig { parameters: bench.buffer.to_le_bytes().to_vec(), ..LaunchConfig::default() };
    for want in [7, 9, 11] {
        bench.machine.launch(&program, "test", &config).unwrap();
        assert_eq!(bench.words(), [want]);
    }
    let address = bench.machine.variable(&program, "counter").unwrap();
    let mut bytes = [0; 4];
    bench.machine.read(address, &mut bytes).unwrap();
    assert_eq!(u32::from_le_bytes(bytes), 11);
}

/// Runs one atomic of every lane of a warp on the same word.
fn atomics(space: &str, operation: &str, register: &str, initial: u64, bytes: usize) -> u64 {
    let (declare, base) = match space {
        "shared" => (".shared .align 8 .b8 word[8];", "mov.u64 %rd5, word;"),
        _ => ("", "mov.u64 %rd5, %rd1;"),
    };
    let suffix = if space == "generic" { String::new() } else { format!(".{space}") };
    let kind = if bytes == 8 { "b64" } else { "b32" };
    let source = pointer_kernel(
        declare,
        &format!(
            "    cvt.u64.u32 %rd2, %r1;
    cvt.rn.f32.u32 %r5, %r1;
    cvt.rn.f64.u32 %rd6, %r1;
    add.s32 %r6, %r1, 1;
    cvt.u64.u32 %rd7, %r6;
    {base}
    setp.eq.u32 %p1, %r1, 0;
    mov.b64 %rd8, {initial};
    cvt.u32.u64 %r8, %rd8;
    @%p1 st{suffix}.{kind} [%rd5], {};
    bar.warp.sync 0xffffffff;
    atom{suffix}.{operation} {register}, [%rd5], {};
    bar.warp.sync 0xffffffff;
    ld{suffix}.b64 %rd9, [%rd5];
    @%p1 st.global.b64 [%rd1], %rd9;",
            if bytes == 8 { "%rd8" } else { "%r8" },
            match operation {
                o if o.contains("f32") => "%r5",
                o if o.contains("f64") => "%rd6",
                _ if bytes == 8 => "%rd7",
                _ => "%r6",
            }
        ),
    );
    let mut bench = Bench::new(8);
    bench.machine.fill(bench.buffer, 8, 0).unwrap();
    bench.launch(&source, &LaunchConfig::default()).unwrap();
    let words = bench.words();
    let wide = u64::from(words[1]) << 32 | u64::from(words[0]);
    if bytes == 8 { wide } else { wide & 0xffff_ffff }
}

#[test]
fn atomics_of_a_warp_combine_all_lanes_in_every_space() {
    for space in ["global", "shared", "generic"] {
        let word = |operation: &str, initial: u64| atomics(space, operation, "%r9", initial, 4);
        assert_eq!(word("add.u32", 10), 10 + 32 * 33 / 2, "{space}");
        assert_eq!(word("min.s32", 0xffff_fff0), 0xffff_fff0);
        assert_eq!(word("min.u32", 0xffff_fff0), 1);
        assert_eq!(word("max.u32", 3), 32);
        assert_eq!(word("or.b32", 0), 63);
        assert_eq!(word("and.b32", 0xff), 0);
        assert_eq!(word("xor.b32", 0), (1..=32).fold(0, |all, n| all ^ n));
        assert_eq!(word("exch.b32", 0), 32);
        assert_eq!(word("add.f32", 0), u64::from((31.0_f32 * 16.0).to_bits()));
        let wide = |operation: &str, initial: u64| atomics(space, operation, "%rd10", initial, 8);
        assert_eq!(wide("add.u64", u64::MAX), 32 * 33 / 2 - 1);
        assert_eq!(wide("max.s64", u64::MAX), 32);
        assert_eq!(wide("add.f64", 0), (31.0_f64 * 16.0).to_bits());
    }
    // The limit is the lane's own operand, 1 to 32: counting up past 1, 2, 3, ... wraps.
    let inc = (1..=32).fold(7_u64, |old, limit| if old >= limit { 0 } else { old + 1 });
    assert_eq!(atomics("global", "inc.u32", "%r9", 7, 4), inc);
    let dec =
        (1..=32).fold(7_u64, |old, limit| if old == 0 || old > limit { limit } else { old - 1 });
    assert_eq!(atomics("shared", "dec.u32", "%r9", 7, 4), dec);
}

#[test]
fn global_float_atomics_flush_subnormals_and_shared_ones_do_not() {
    let sum = |space: &str, declare: &str, base: &str| {
        let source = pointer_kernel(
            declare,
            &format!(
                "    setp.ne.u32 %p1, %r1, 0;
    @%p1 ret;
    {base}
    st.{space}.b32 [%rd5], 0x00000005;
    mov.b32 %r2, 0x00000003;
    red.{space}.add.f32 [%rd5], %r2;
    ld.{space}.b32 %r3, [%rd5];
    st.global.b32 [%rd1], %r3;"
            ),
        );
        let mut bench = Bench::new(4);
        bench.launch(&source, &LaunchConfig::default()).unwrap();
        bench.words()[0]
    };
    assert_eq!(sum("global", "", "mov.u64 %rd5, %rd1;"), 0);
    assert_eq!(sum("shared", ".shared .align 4 .b8 word[4];", "mov.u64 %rd5, word;"), 8);
}

#[test]
fn compare_and_swap_and_packed_atomics_work_on_their_own_words() {
    check(
        "mov.u32 %r10, buffer; mad.lo.s32 %r10, %i4, 4, %r10; st.shared.b32 [%r10], %r1;
         atom.shared.cas.b32 %r5, [%r10], %r2, %r3;
         ld.shared.b32 %r6, [%r10]; xor.b32 %r4, %r5, %r6;",
        |a, b, c| a ^ if a == b { c } else { a },
    );
    check(
        "mov.u32 %r10, buffer; mad.lo.s32 %r10, %i4, 4, %r10; st.shared.b32 [%r10], 0x3c003c00;
         mov.b32 %r6, 0x40003c00;
         atom.shared.add.noftz.f16x2 %r5, [%r10], %r6; ld.shared.b32 %r4, [%r10];",
        |_, _, _| 0x4200_4000,
    );
    check_wide(
        "mov.u32 %r10, buffer; mad.lo.s32 %r10, %i4, 8, %r10; st.shared.b64 [%r10], %rd1;
         atom.shared.exch.b64 %rd5, [%r10], %rd2;
         ld.shared.b64 %rd6, [%r10]; sub.s64 %rd4, %rd5, %rd6;",
        |a, b, _| a.wrapping_sub(b),
    );
}

#[test]
fn float_atomics_depend_on_the_schedule() {
    let mut random = SplitMix64::new(63);
    let values: Vec<f32> = (0..256)
        .map(|_| random.range(-1.0, 1.0) as f32 * (random.below(20) as f32).exp2())
        .collect();
    let source = pointer_kernel(
        "",
        "    mov.u32 %r2, %ctaid.x;
    mad.lo.s32 %r3, %r2, 32, %r1;
    mad.wide.u32 %rd2, %r3, 4, %rd1;
    ld.global.f32 %r4, [%rd2+4];
    red.global.add.f32 [%rd1], %r4;",
    );
    let sum = |schedule: Schedule| {
        let mut bench = Bench::new(4 * 257);
        let bytes: Vec<u8> = std::iter::once(&0.0_f32)
            .chain(&values)
            .flat_map(|value| value.to_le_bytes())
            .collect();
        bench.machine.write(bench.buffer, &bytes).unwrap();
        let config = LaunchConfig { grid: [8, 1, 1], schedule, ..LaunchConfig::default() };
        bench.launch(&source, &config).unwrap();
        bench.words()[0]
    };
    let in_order = values.iter().fold(0.0_f32, |sum, value| sum + value);
    let reversed = values.iter().rev().fold(0.0_f32, |sum, value| sum + value);
    assert_eq!(f32::from_bits(sum(Schedule::InOrder)), in_order);
    assert_eq!(f32::from_bits(sum(Schedule::Reversed)), reversed);
    assert_ne!(in_order, reversed, "values that cannot tell");
    assert_eq!(sum(Schedule::Seeded(4)), sum(Schedule::Seeded(4)));
    let seeds: std::collections::HashSet<u32> = (0..8).map(|n| sum(Schedule::Seeded(n))).collect();
    assert!(seeds.len() > 1, "all seeds sum in the same order");
}

/// A kernel that copies 16 bytes a thread through shared memory with `cp.async`.
fn copy_kernel(wait: &str, source_bytes: &str) -> String {
    pointer_kernel(
        ".shared .align 16 .b8 stage[512];",
        &format!(
            "    mov.u32 %r2, stage;
    mad.lo.s32 %r3, %r1, 16, %r2;
    mad.wide.u32 %rd2, %r1, 16, %rd1;
    cp.async.cg.shared.global [%r3], [%rd2], 16{source_bytes};
    cp.async.commit_group;
    {wait}
    ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r3];
    st.global.v4.u32 [%rd2+512], {{%r4, %r5, %r6, %r7}};"
        ),
    )
}

fn copied(wait: &str, source_bytes: &str) -> Vec<u32> {
    let mut bench = Bench::new(1024);
    let bytes: Vec<u8> = (0..128_u32).flat_map(|n| (n + 1).to_le_bytes()).collect();
    bench.machine.write(bench.buffer, &bytes).unwrap();
    bench.launch(&copy_kernel(wait, source_bytes), &LaunchConfig::default()).unwrap();
    bench.words()[128..].to_vec()
}

#[test]
fn asynchronous_copies_arrive_when_waited_for() {
    let want: Vec<u32> = (1..=128).collect();
    assert_eq!(copied("cp.async.wait_group 0;", ""), want);
    assert_eq!(copied("cp.async.wait_all;", ""), want);
    let partial = copied("cp.async.wait_group 0;", ", 8");
    for (n, quad) in partial.chunks(4).enumerate() {
        assert_eq!(quad, [4 * n as u32 + 1, 4 * n as u32 + 2, 0, 0]);
    }
}

#[test]
fn asynchronous_copies_arrive_as_late_as_allowed() {
    let poison = u32::from_le_bytes([!0x55; 4]);
    assert!(copied("", "").iter().all(|&word| word == poison));
    assert!(copied("cp.async.wait_group 1;", "").iter().all(|&word| word == poison));
}

#[test]
fn asynchronous_copies_arrive_at_an_mbarrier() {
    let source = |wait: &str| {
        pointer_kernel(
            ".shared .align 8 .b64 gate; .shared .align 16 .b8 stage[512];",
            &format!(
                "    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [gate], 32;
READY:
    bar.sync 0;
    mov.u32 %r2, stage;
    mad.lo.s32 %r3, %r1, 16, %r2;
    mad.wide.u32 %rd2, %r1, 16, %rd1;
    cp.async.ca.shared.global [%r3], [%rd2], 16;
    cp.async.mbarrier.arrive.noinc.shared.b64 [gate];
    {wait}
    ld.shared.u32 %r4, [%r3+4];
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    st.global.u32 [%rd3+512], %r4;"
            ),
        )
    };
    let copied = |wait: &str| {
        let mut bench = Bench::new(640);
        let bytes: Vec<u8> = (0..128_u32).flat_map(|n| (n + 1).to_le_bytes()).collect();
        bench.machine.write(bench.buffer, &bytes).unwrap();
        let config = LaunchConfig { instruction_budget: 100_000, ..LaunchConfig::default() };
        bench.launch(&source(wait), &config).unwrap();
        bench.words()[128..].to_vec()
    };
    let wait = "WAIT: mbarrier.test_wait.parity.shared.b64 %p2, [gate], 0; @!%p2 bra WAIT;";
    let want: Vec<u32> = (0..32).map(|n| 4 * n + 2).collect();
    assert_eq!(copied(wait), want);
    assert!(copied("").iter().all(|&word| word == u32::from_le_bytes([!0x55; 4])));
}

#[test]
fn alloca_gives_each_thread_its_own_bytes() {
    let source = pointer_kernel(
        "",
        "    stacksave.u64 %rd7;
    mad.wide.u32 %rd3, %r1, 4, 8;
    alloca.u64 %rd4, %rd3, 16;
    st.local.u32 [%rd4], %r1;
    add.u64 %rd5, %rd4, %rd3;
    st.local.u32 [%rd5+-4], %r1;
    cvta.local.u64 %rd6, %rd4;
    ld.u32 %r2, [%rd6];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r2;
    stackrestore.u64 %rd7;",
    );
    let mut bench = Bench::new(128);
    bench.launch(&source, &LaunchConfig::default()).unwrap();
    assert_eq!(bench.words(), (0..32).collect::<Vec<u32>>());
}
