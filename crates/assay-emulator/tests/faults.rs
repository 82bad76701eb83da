//! Every kind of fault, with its place, and that the machine survives it.

mod common;

use assay_emulator::{Fault, FaultKind, LaunchConfig, Program, Space};
use common::{Bench, HEADER, compile, line_of, pointer_kernel};

/// Runs a body that must fault at the line that says `// here`.
fn fault_of(declarations: &str, body: &str, config: &LaunchConfig) -> Fault {
    let source = pointer_kernel(declarations, body);
    let mut bench = Bench::new(128);
    let fault = bench.launch(&source, config).unwrap_err();
    assert_eq!(fault.line, Some(line_of(&source, "// here")), "{fault}");
    assert_eq!(fault.symbol, "test");
    // The machine goes on working.
    let fine = pointer_kernel("", "    st.global.u32 [%rd1], 77;");
    bench.launch(&fine, &LaunchConfig::default()).unwrap();
    assert_eq!(bench.words()[0], 77);
    fault
}

fn simple_fault(body: &str) -> Fault {
    fault_of("", body, &LaunchConfig::default())
}

#[test]
fn a_write_past_the_end_names_the_allocation() {
    let fault = simple_fault(
        "    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2+4], %r1; // here",
    );
    let FaultKind::OutOfBounds { space: Space::Global, bytes: 4, write: true, nearest, .. } =
        &fault.kind
    else {
        panic!("{fault}");
    };
    let nearest = nearest.as_ref().unwrap();
    assert_eq!((nearest.bytes, nearest.offset), (128, 128));
    assert_eq!(fault.thread, [31, 0, 0]);
    assert!(fault.to_string().contains("0 bytes past the end of the allocation"), "{fault}");
}

#[test]
fn reads_before_the_start_and_through_null_are_caught() {
    let fault = simple_fault("    ld.global.u8 %r2, [%rd1+-1]; // here");
    assert!(fault.to_string().contains("1 bytes before the start"), "{fault}");
    let fault = simple_fault("    mov.u64 %rd2, 0;\n    ld.global.u32 %r2, [%rd2]; // here");
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { address: 0, write: false, .. }));
    let fault = simple_fault("    mov.u64 %rd2, 16;\n    ld.u32 %r2, [%rd2]; // here");
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }));
}

#[test]
fn freed_memory_is_out_of_bounds() {
    let mut bench = Bench::new(128);
    let stale = bench.machine.allocate(64, 64).unwrap();
    bench.machine.free(stale).unwrap();
    let program = compile(&pointer_kernel("", "    ld.global.u32 %r2, [%rd1];"));
    let parameters = stale.to_le_bytes().to_vec();
    let config = LaunchConfig { parameters, ..LaunchConfig::default() };
    let fault = bench.machine.launch(&program, "test", &config).unwrap_err();
    assert!(fault.to_string().contains("freed allocation"), "{fault}");
}

#[test]
fn shared_and_local_memory_have_ends() {
    let fault = fault_of(
        ".shared .align 4 .b8 small[64];",
        "    mov.u32 %r2, small;
    mad.lo.s32 %r3, %r1, 4, %r2;
    st.shared.u32 [%r3], %r1; // here",
        &LaunchConfig::default(),
    );
    assert!(matches!(
        fault.kind,
        FaultKind::OutOfBounds { space: Space::Shared, address: 1088, .. }
    ));
    assert_eq!(fault.thread, [16, 0, 0]);
    let fault = fault_of(
        ".local .align 4 .b8 mine[16];",
        "    mov.u64 %rd2, mine;
    ld.local.u32 %r2, [%rd2+16]; // here",
        &LaunchConfig::default(),
    );
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { space: Space::Local, .. }));
}

#[test]
fn one_array_in_shared_memory_does_not_reach_into_the_next() {
    let fault = fault_of(
        ".shared .align 4 .b8 first[64]; .shared .align 4 .b8 second[64];",
        "    mov.u32 %r2, first;
    mov.u32 %r3, second;
    st.shared.u32 [%r3], %r1;
    st.shared.u32 [%r2+60], %r1;
    st.shared.u32 [%r2+64], %r1; // here",
        &LaunchConfig::default(),
    );
    let text = fault.to_string();
    assert!(text.contains("0 bytes past the end of the allocation 0x400 of 64 bytes"), "{text}");
}

#[test]
fn dynamic_shared_memory_ends_where_the_launch_says() {
    let source = |offset: u32| {
        format!(
            "{HEADER}.extern .shared .align 16 .b8 dynamic[];\n{}",
            pointer_kernel(
                ".shared .align 4 .b8 fixed[12];",
                &format!(
                    "    mov.u32 %r2, dynamic;
    st.shared.u32 [fixed+8], %r1;
    st.shared.u32 [%r2+{offset}], %r1;"
                )
            )
            .strip_prefix(HEADER)
            .unwrap()
        )
    };
    let config = LaunchConfig { shared_bytes: 100, ..LaunchConfig::default() };
    assert!(Bench::new(4).launch(&source(96), &config).is_ok());
    let fault = Bench::new(4).launch(&source(100), &config).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { space: Space::Shared, .. }), "{fault}");
}

#[test]
fn huge_variables_are_refused_rather_than_allocated() {
    let source =
        pointer_kernel(".local .align 8 .b8 depot[1099511627776];", "    mov.u64 %rd2, depot;");
    assert!(refused(&compile(&source), &LaunchConfig::default()).contains("local memory"));
    let source =
        pointer_kernel(".shared .align 8 .b8 tile[4398046511104];", "    mov.u64 %rd2, tile;");
    assert!(refused(&compile(&source), &LaunchConfig::default()).contains("shared memory"));
    let source = format!(
        "{HEADER}.global .align 8 .b8 big[1099511627777];\n.visible .entry test() {{ ret; }}"
    );
    assert!(Program::compile(&assay_ptx::parse(&source).unwrap()).is_err());
}

#[test]
fn frames_whose_sizes_add_up_to_more_than_32_bits_are_refused() {
    let function = |name: &str, bytes: u64, next: &str| {
        format!(
            ".func {name}()\n{{\n.local .align 8 .b8 frame[{bytes}];\nst.local.u32 [frame], 1;\n\
             {next}\nret;\n}}\n"
        )
    };
    for bytes in [0xffff_fff8, 0x8000_0000, 0x4000_0000, 0x1_0000_0000, (1 << 40) - 8] {
        let inner = function("inner", bytes, "");
        let outer = function("outer", bytes, "call inner, ();\ncall inner, ();");
        let kernel = pointer_kernel("", "    call outer, ();\n    call inner, ();");
        let source = kernel.replacen(HEADER, &format!("{HEADER}{inner}{outer}"), 1);
        let reason = refused(&compile(&source), &LaunchConfig::default());
        assert!(reason.contains("local memory"), "{bytes}: {reason}");
    }
}

#[test]
fn misaligned_accesses_are_caught() {
    let fault = simple_fault("    ld.global.u32 %r2, [%rd1+2]; // here");
    assert!(matches!(fault.kind, FaultKind::Misaligned { bytes: 4, .. }), "{fault}");
    let fault = simple_fault("    ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+8]; // here");
    assert!(matches!(fault.kind, FaultKind::Misaligned { bytes: 16, .. }), "{fault}");
}

#[test]
fn constants_cannot_be_written() {
    let source = format!(
        "{HEADER}.const .align 4 .u32 fixed = 3;\n{}",
        pointer_kernel(
            "",
            "    mov.u64 %rd2, fixed;
    cvta.const.u64 %rd3, %rd2;
    st.u32 [%rd3], 1; // here"
        )
        .strip_prefix(HEADER)
        .unwrap()
    );
    let fault = Bench::new(4).launch(&source, &LaunchConfig::default()).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::ReadOnlyWrite { space: Space::Const, .. }), "{fault}");
    assert_eq!(fault.line, Some(line_of(&source, "// here")));
}

#[test]
fn a_barrier_in_divergent_code_is_misuse() {
    let fault = simple_fault(
        "    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra SKIP;
    bar.sync 0; // here
    bra END;
SKIP:
    bar.sync 1;
END:",
    );
    let FaultKind::BarrierMisuse { what } = &fault.kind else { panic!("{fault}") };
    assert!(what.contains("divergent"), "{what}");
    let fault = simple_fault(
        "    setp.lt.u32 %p1, %r1, 16;
    @%p1 bar.sync 0; // here",
    );
    assert!(matches!(fault.kind, FaultKind::BarrierMisuse { .. }), "{fault}");
}

#[test]
fn a_barrier_after_some_lanes_of_the_warp_exited_is_misuse() {
    let fault = simple_fault(
        "    setp.lt.u32 %p1, %r1, 5;
    @%p1 ret;
    bar.sync 0; // here",
    );
    let FaultKind::BarrierMisuse { what } = &fault.kind else { panic!("{fault}") };
    assert!(what.contains("exited"), "{what}");
}

#[test]
fn barriers_have_numbers_and_thread_counts() {
    let fault = simple_fault("    bar.sync 16; // here");
    assert!(matches!(fault.kind, FaultKind::BarrierMisuse { .. }), "{fault}");
    let fault = simple_fault("    bar.sync 1, 33; // here");
    assert!(matches!(fault.kind, FaultKind::BarrierMisuse { .. }), "{fault}");
}

#[test]
fn warps_that_wait_for_each_other_at_different_barriers_are_a_deadlock() {
    let source = pointer_kernel(
        "",
        "    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra OTHER;
    barrier.sync 1; // first
    bra END;
OTHER:
    barrier.sync 2; // second
END:",
    );
    let config = LaunchConfig { block: [64, 1, 1], ..LaunchConfig::default() };
    let fault = Bench::new(4).launch(&source, &config).unwrap_err();
    let FaultKind::Deadlock { waiting } = &fault.kind else { panic!("{fault}") };
    let lines: Vec<u32> = waiting.iter().map(|waiter| waiter.line).collect();
    assert_eq!(lines, [line_of(&source, "// second"), line_of(&source, "// first")]);
    assert!(fault.to_string().contains("at barrier 1"), "{fault}");
}

#[test]
fn a_member_that_never_comes_is_a_deadlock() {
    let source = pointer_kernel(
        "",
        "    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra OTHER;
    bar.warp.sync 0xffffffff; // first
    bra END;
OTHER:
    barrier.sync 1, 64; // second
END:",
    );
    let config = LaunchConfig { block: [64, 1, 1], ..LaunchConfig::default() };
    let fault = Bench::new(4).launch(&source, &config).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Deadlock { .. }), "{fault}");
}

#[test]
fn shuffles_from_absent_lanes_are_caught() {
    let fault = simple_fault(
        "    setp.lt.u32 %p1, %r1, 16;
    @!%p1 ret;
    shfl.sync.bfly.b32 %r2, %r1, 16, 31, 0x0000ffff; // here",
    );
    let FaultKind::InactiveLaneRead { opcode, lane } = &fault.kind else { panic!("{fault}") };
    assert_eq!((opcode.as_str(), *lane), ("shfl.sync.bfly.b32", 16));
    // A block that ends inside a warp.
    let config = LaunchConfig { block: [20, 1, 1], ..LaunchConfig::default() };
    let fault = fault_of("", "    shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1; // here", &config);
    assert!(matches!(fault.kind, FaultKind::InactiveLaneRead { .. }));
}

#[test]
fn member_masks_must_hold_the_caller() {
    let fault = simple_fault("    bar.warp.sync 0x0000ffff; // here");
    assert!(matches!(fault.kind, FaultKind::WarpMisuse { .. }), "{fault}");
    let fault = simple_fault("    shfl.sync.idx.b32 %r2, %r1, 0, 31, %r1; // here");
    assert!(matches!(fault.kind, FaultKind::WarpMisuse { .. }), "{fault}");
}

#[test]
fn an_endless_loop_runs_into_its_budget() {
    let source = pointer_kernel("", "FOREVER:\n    add.s32 %r2, %r2, 1;\n    bra FOREVER;");
    let config = LaunchConfig { instruction_budget: 50_000, ..LaunchConfig::default() };
    let fault = Bench::new(4).launch(&source, &config).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::Runaway { budget: 50_000, .. }), "{fault}");
    let lines = ["add.s32 %r2, %r2, 1;", "bra FOREVER;"].map(|text| line_of(&source, text));
    let FaultKind::Runaway { lines: found, .. } = &fault.kind else { panic!("{fault}") };
    assert!(matches!(found[..], [(line, 1)] if lines.contains(&line)), "{fault}");
    assert!(fault.to_string().contains("50000 warp instructions: 1 warp at line"), "{fault}");
}

#[test]
fn traps_and_assertions_stop_the_kernel() {
    let fault = simple_fault(
        "    setp.eq.u32 %p1, %r1, 9;
    @%p1 trap; // here",
    );
    assert_eq!((fault.kind.clone(), fault.thread), (FaultKind::Trap, [9, 0, 0]));
    let source = format!(
        "{HEADER}
.extern .func __assertfail(
    .param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 text[6] = {{120, 32, 62, 32, 48, 0}};
.global .align 1 .b8 file[5] = {{97, 46, 99, 117, 0}};
{}",
        pointer_kernel(
            "",
            "    mov.u64 %rd2, text;
    cvta.global.u64 %rd3, %rd2;
    mov.u64 %rd4, file;
    cvta.global.u64 %rd5, %rd4;
    {
    .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    st.param.b64 [a], %rd3;
    st.param.b64 [b], %rd5;
    st.param.b32 [c], 12;
    st.param.b64 [d], %rd5;
    st.param.b64 [e], 1;
    call.uni __assertfail, (a, b, c, d, e);
    }"
        )
        .strip_prefix(HEADER)
        .unwrap()
    );
    let fault = Bench::new(4).launch(&source, &LaunchConfig::default()).unwrap_err();
    let FaultKind::Assertion { message } = &fault.kind else { panic!("{fault}") };
    assert!(message.contains("a.cu:12") && message.contains("`x > 0`"), "{message}");
}

#[test]
fn unsupported_opcodes_are_named_and_are_not_the_kernel_s_fault() {
    let source = pointer_kernel(
        "",
        "    multimem.ld_reduce.relaxed.gpu.global.add.u32 %r2, [%rd1]; // here",
    );
    let fault = Bench::new(4).launch(&source, &LaunchConfig::default()).unwrap_err();
    assert!(fault.is_unsupported());
    let FaultKind::Unsupported { opcode } = &fault.kind else { panic!("{fault}") };
    assert!(opcode.starts_with("multimem"), "{opcode}");
    assert_eq!(fault.line, Some(line_of(&source, "// here")));
    assert!(compile(&source).unsupported("test").is_some());
}

fn refused(program: &Program, config: &LaunchConfig) -> String {
    let mut bench = Bench::new(4);
    let parameters = bench.buffer.to_le_bytes().to_vec();
    let parameters =
        if config.parameters.is_empty() { parameters } else { config.parameters.clone() };
    let config = LaunchConfig { parameters, ..config.clone() };
    let fault = bench.machine.launch(program, "test", &config).unwrap_err();
    let FaultKind::InvalidLaunch { reason } = fault.kind else { panic!("{fault}") };
    reason
}

#[test]
fn launches_that_cannot_be_are_refused_with_a_reason() {
    let program = compile(&pointer_kernel("", ""));
    let with = |change: fn(&mut LaunchConfig)| {
        let mut config = LaunchConfig::default();
        change(&mut config);
        refused(&program, &config)
    };
    assert!(with(|c| c.grid = [0, 1, 1]).contains("no threads"));
    assert!(with(|c| c.block = [32, 0, 1]).contains("no threads"));
    assert!(with(|c| c.block = [1024, 2, 1]).contains("2048 threads per block"));
    assert!(with(|c| c.block = [1, 1, 65]).contains("larger than"));
    assert!(with(|c| c.grid = [1, 65_536, 1]).contains("larger than"));
    assert!(with(|c| c.shared_bytes = 1 << 20).contains("bytes of shared memory"));
    assert!(
        with(|c| c.parameters = vec![0; 5]).contains("5 bytes of parameters; the kernel takes 8")
    );
    let source = pointer_kernel("", "").replace(
        ".visible .entry test(.param .u64 out)",
        ".visible .entry test(.param .u64 out) .maxntid 64, 1, 1",
    );
    let limited = compile(&source);
    let config = LaunchConfig { block: [96, 1, 1], ..LaunchConfig::default() };
    assert!(refused(&limited, &config).contains("at most 64"));
}

#[test]
fn an_unknown_symbol_lists_the_kernels() {
    let program = compile(&pointer_kernel("", ""));
    let mut bench = Bench::new(4);
    let fault = bench.machine.launch(&program, "tset", &LaunchConfig::default()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::SymbolNotFound { available: vec!["test".to_owned()] });
}

#[test]
fn thirty_two_bit_modules_are_refused() {
    let source = ".version 8.0\n.target sm_80\n.address_size 32\n.visible .entry test() { ret; }";
    assert!(Program::compile(&assay_ptx::parse(source).unwrap()).is_err());
}

#[test]
fn too_many_arrivals_at_an_mbarrier_are_misuse() {
    let fault = fault_of(
        ".shared .align 8 .b64 gate;",
        "    mbarrier.init.shared.b64 [gate], 1;
    mbarrier.arrive.noComplete.shared.b64 %rd4, [gate], 2; // here",
        &LaunchConfig { block: [1, 1, 1], ..LaunchConfig::default() },
    );
    assert!(matches!(fault.kind, FaultKind::BarrierMisuse { .. }), "{fault}");
}

#[test]
fn freeing_what_malloc_did_not_give_is_an_invalid_address() {
    let source = format!(
        "{HEADER}
.extern .func free(.param .b64 address);
{}",
        pointer_kernel(
            "",
            "    {
    .param .b64 address;
    st.param.b64 [address], %rd1;
    call.uni free, (address);
    }"
        )
        .strip_prefix(HEADER)
        .unwrap()
    );
    let fault = Bench::new(4).launch(&source, &LaunchConfig::default()).unwrap_err();
    assert!(matches!(fault.kind, FaultKind::InvalidAddress { .. }), "{fault}");
}
