//! The committed PTX is what the pinned compiler writes.

mod common;

#[test]
fn the_committed_ptx_is_what_the_compiler_writes() {
    common::holds(&["kernels", "--check"], "same     row_sum.ptx");
}
