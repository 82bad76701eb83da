//! `ldmatrix`, `stmatrix`, `movmatrix` and `mma` against plain Rust on values that are exact.

mod common;

use assay_emulator::{FaultKind, LaunchConfig};
use common::{Bench, pointer_kernel};

/// Runs a body in one warp on a buffer of so many words.
fn warp(declarations: &str, body: &str, words: u64) -> Vec<u32> {
    let mut bench = Bench::new(4 * words);
    let config = LaunchConfig { block: [32, 1, 1], ..LaunchConfig::default() };
    let source = pointer_kernel(declarations, body);
    bench.launch(&source, &config).unwrap_or_else(|fault| panic!("{fault}"));
    bench.words()
}

#[test]
fn a_matrix_that_is_stored_and_loaded_transposed_is_what_movmatrix_makes_of_it() {
    let words = warp(
        ".shared .align 16 .b8 tile[128];",
        "    mul.lo.u32 %r2, %r1, 0x00020003;
    add.u32 %r2, %r2, 0x00010000;
    and.b32 %r3, %r1, 7;
    mov.u32 %r4, tile;
    mad.lo.u32 %r4, %r3, 16, %r4;
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r2};
    bar.warp.sync 0xffffffff;
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r5}, [%r4];
    movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r2;
    mad.wide.u32 %rd2, %r1, 8, %rd1;
    st.global.v2.b32 [%rd2], {%r5, %r6};",
        64,
    );
    for lane in 0..32 {
        // Element (row, column) is in lane 4 * row + column / 2.
        let element = |row: u32, column: u32| {
            let word = (4 * row + column / 2) * 0x0002_0003 + 0x0001_0000;
            word >> (16 * (column % 2)) & 0xffff
        };
        let (row, column) = (lane / 4, 2 * (lane % 4));
        let want = element(column, row) | element(column + 1, row) << 16;
        assert_eq!(words[2 * lane as usize..][..2], [want, want], "lane {lane}");
    }
}

#[test]
fn a_product_of_bytes_has_the_sums_of_the_matrices_it_stands_for() {
    // A is 1 everywhere and B is the lane's column + 1: each sum is 32 * (column + 1), beside C.
    let words = warp(
        "",
        "    shr.u32 %r2, %r1, 2;
    add.u32 %r2, %r2, 1;
    mul.lo.u32 %r2, %r2, 0x01010101;
    mov.u32 %r3, 0x01010101;
    mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
        {%r4, %r5, %r6, %r7}, {%r3, %r3, %r3, %r3}, {%r2, %r2}, {%r1, %r1, %r1, %r1};
    mad.wide.u32 %rd2, %r1, 16, %rd1;
    st.global.v4.b32 [%rd2], {%r4, %r5, %r6, %r7};",
        128,
    );
    for lane in 0..32 {
        for part in 0..4 {
            let column = 2 * (lane % 4) + part % 2;
            let want = 32 * (column + 1) + lane;
            assert_eq!(words[4 * lane as usize + part as usize], want, "lane {lane} part {part}");
        }
    }
}

#[test]
fn a_matrix_instruction_without_its_whole_warp_is_a_fault_that_says_so() {
    let source = pointer_kernel("", "    movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;");
    let config = LaunchConfig { block: [16, 1, 1], ..LaunchConfig::default() };
    let fault = Bench::new(4).launch(&source, &config).unwrap_err();
    let FaultKind::WarpMisuse { what } = &fault.kind else { panic!("{fault}") };
    assert!(what.contains("whole warp"), "{what}");
}
