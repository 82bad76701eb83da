//! `wgmma` against a plain matrix product on values that are exact, in every layout of the ISA,
//! and what happens where its rules are broken.

mod common;

use std::fmt::Write as _;

use assay_emulator::{FaultKind, LaunchConfig, Schedule};
use assay_num::random::SplitMix64;
use common::{Bench, line_of};

/// Where the variables of a block's shared memory begin.
const SHARED: usize = 1024;

/// Bytes of shared memory for each of A and B.
const IMAGE: usize = 16 << 10;

/// A matrix in shared memory.
#[derive(Clone, Copy)]
struct Place {
    /// Bytes of a line: 16, 32, 64, 128.
    line: usize,
    /// MN-major.
    turned: bool,
    leading: usize,
    stride: usize,
}

impl Place {
    fn descriptor(self, start: usize) -> u64 {
        let mode = [(16, 0), (128, 1), (64, 2), (32, 3)];
        let (_, mode) = mode.into_iter().find(|(line, _)| *line == self.line).unwrap();
        let field = |bytes: usize| bytes as u64 >> 4;
        field(SHARED + start) | field(self.leading) << 16 | field(self.stride) << 32 | mode << 62
    }

    /// The canonical layouts of the ISA's table, in bytes from the start of the matrix.
    fn byte(self, row: usize, depth: usize, bytes: usize) -> usize {
        let per_run = 16 / bytes;
        let runs = self.line / 16;
        let plain = match (self.turned, self.line) {
            (false, 16) => {
                let (inner, outer) = (depth % per_run, depth / per_run);
                row % 8 * 16 + row / 8 * self.stride + inner * bytes + outer * self.leading
            }
            (false, _) => row % 8 * self.line + row / 8 * self.stride + depth * bytes,
            (true, 16) => {
                let rows = row % 8 * 2 + row / 8 * self.stride;
                rows + depth % 8 * 16 + depth / 8 * self.leading
            }
            (true, _) => {
                let rows = row % (8 * runs) * 2 + row / (8 * runs) * self.leading;
                rows + depth % 8 * self.line + depth / 8 * self.stride
            }
        };
        plain ^ ((plain / 128 % runs) * 16)
    }
}

/// One product with its kernel and its matrices.
struct Case {
    columns: usize,
    depth: usize,
    /// `f32.f16.f16`
    types: &'static str,
    /// Bytes of an element of A and B.
    bytes: usize,
    a: Place,
    b: Place,
    a_in_registers: bool,
    /// What follows the scale-d.
    immediates: &'static str,
    seed: u64,
}

impl Case {
    fn value(&self, random: &mut SplitMix64) -> i64 {
        let unsigned = self.types.contains("u8");
        random.below(8) as i64 - if unsigned { 0 } else { 4 }
    }

    /// The bits of a small integer as an element of A or B.
    fn element(&self, value: i64) -> u64 {
        let single = (value as f32).to_bits();
        match self.types.rsplit('.').next().unwrap() {
            "f16" => {
                let sign = u64::from(single >> 31) << 15;
                let exponent = (u64::from(single >> 23 & 255) + 15).saturating_sub(127);
                let mantissa = u64::from(single >> 13 & 0x3ff);
                if value == 0 { 0 } else { sign | exponent << 10 | mantissa }
            }
            "bf16" => u64::from(single >> 16),
            "tf32" => u64::from(single),
            "e4m3" | "e5m2" => self.byte(value),
            _ => value as u64 & 0xff,
        }
    }

    /// The e4m3 or e5m2 of a small integer: the top of an f16 with another bias.
    fn byte(&self, value: i64) -> u64 {
        let half = Case { types: "f16", ..*self }.element(value);
        let (sign, magnitude) = (half >> 15 << 7, half & 0x7fff);
        if value == 0 {
            0
        } else if self.types.ends_with("e5m2") {
            sign | magnitude >> 8
        } else {
            sign | (magnitude - (8 << 10)) >> 7
        }
    }

    fn packed(&self) -> bool {
        self.types.starts_with("f16")
    }

    fn accumulators(&self) -> usize {
        self.columns / if self.packed() { 4 } else { 2 }
    }

    fn kernel(&self, between: &str, wait: &str) -> String {
        let d: Vec<String> = (0..self.accumulators()).map(|i| format!("%d{i}")).collect();
        let d = d.join(", ");
        let a = if self.a_in_registers { "{%a0, %a1, %a2, %a3}" } else { "%rd3" };
        let shape = format!("m64n{}k{}", self.columns, self.depth);
        let mut text = format!(
            ".version 8.0\n.target sm_90a\n.address_size 64
.visible .entry test(.param .u64 out)
{{
    .reg .pred %p<4>;
    .reg .b32 %r<10>, %a<4>, %d<128>;
    .reg .b64 %rd<10>;
    .shared .align 1024 .b8 image[{total}];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, image;
    mul.lo.u32 %r3, %r1, 16;
    mov.u32 %r9, 0;
COPY:
    cvt.u64.u32 %rd2, %r3;
    add.u64 %rd2, %rd1, %rd2;
    ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd2];
    add.u32 %r8, %r2, %r3;
    st.shared.v4.b32 [%r8], {{%r4, %r5, %r6, %r7}};
    add.u32 %r3, %r3, 2048;
    setp.lt.u32 %p1, %r3, {total};
    @%p1 bra COPY;
    fence.proxy.async;
    bar.sync 0;
    mul.wide.u32 %rd4, %r1, {row};
    add.u64 %rd4, %rd4, %rd1;
    mov.b64 %rd3, {a_descriptor};
    mov.b64 %rd5, {b_descriptor};
    setp.eq.u32 %p2, 0, 0;
",
            total = 2 * IMAGE,
            row = 4 * (self.accumulators() + 4),
            a_descriptor = self.a.descriptor(0),
            b_descriptor = self.b.descriptor(IMAGE),
        );
        let at = |index: usize| 2 * IMAGE + 4 * index;
        for index in 0..self.accumulators() {
            let _ = writeln!(text, "    ld.global.b32 %d{index}, [%rd4+{}];", at(index));
        }
        for index in 0..4 {
            let from = at(self.accumulators() + index);
            let _ = writeln!(text, "    ld.global.b32 %a{index}, [%rd4+{from}];");
        }
        let _ = write!(
            text,
            "    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.{shape}.{types} {{{d}}}, {a}, %rd5, %p2{immediates};
{between}
    wgmma.commit_group.sync.aligned;
{wait}
",
            types = self.types,
            immediates = self.immediates,
        );
        for index in 0..self.accumulators() {
            let _ = writeln!(text, "    st.global.b32 [%rd4+{}], %d{index};", at(index));
        }
        text + "    ret;\n}\n"
    }

    /// Where element (row, column) of D is: thread, register, half.
    fn home(&self, row: usize, column: usize) -> (usize, usize, usize) {
        let thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
        let pair = column / 8 * 2 + row % 16 / 8;
        if self.packed() { (thread, pair, column % 2) } else { (thread, 2 * pair + column % 2, 0) }
    }

    /// As [`Case::run`], with the kept half of A in its own place.
    fn run_sparse(&self, text: &str, kept: Place) -> (Vec<i64>, Vec<i64>) {
        let mut random = SplitMix64::new(self.seed);
        let mut bytes = vec![0; 2 * IMAGE + 4 * (self.accumulators() + 4) * 128];
        let mut b = vec![vec![0; self.depth]; self.columns];
        for (n, column) in b.iter_mut().enumerate() {
            for (k, value) in column.iter_mut().enumerate() {
                *value = self.value(&mut random);
                let at = IMAGE + self.b.byte(n, k, self.bytes);
                bytes[at..at + 2].copy_from_slice(&self.element(*value).to_le_bytes()[..2]);
            }
        }
        let mut want = vec![0; 64 * self.columns];
        for r in 0..64 {
            for k in 0..self.depth / 2 {
                let value = self.value(&mut random);
                let at = kept.byte(r, k, self.bytes);
                bytes[at..at + 2].copy_from_slice(&self.element(value).to_le_bytes()[..2]);
                for (n, column) in b.iter().enumerate() {
                    want[r * self.columns + n] += value * column[4 * (k / 2) + 1 + k % 2 * 2];
                }
            }
        }
        let mut bench = Bench::new(bytes.len() as u64);
        bench.machine.write(bench.buffer, &bytes).unwrap();
        let config = LaunchConfig { block: [128, 1, 1], ..LaunchConfig::default() };
        bench.launch(text, &config).unwrap_or_else(|fault| panic!("{fault}"));
        let words = bench.words();
        let row = self.accumulators() + 4;
        let got = (0..64 * self.columns).map(|index| {
            let (r, n) = (index / self.columns, index % self.columns);
            let (thread, register, half) = self.home(r, n);
            self.number(words[2 * IMAGE / 4 + thread * row + register] >> (16 * half))
        });
        (got.collect(), want)
    }

    /// Runs the kernel text and gives D beside what it should be.
    fn run(&self, text: &str, schedule: Schedule) -> (Vec<i64>, Vec<i64>) {
        let mut random = SplitMix64::new(self.seed);
        let mut matrix = |rows: usize, depth: usize| -> Vec<Vec<i64>> {
            let mut row = || (0..depth).map(|_| self.value(&mut random)).collect();
            (0..rows).map(|_| row()).collect()
        };
        let (a, b, c) =
            (matrix(64, self.depth), matrix(self.columns, self.depth), matrix(64, self.columns));
        let row = self.accumulators() + 4;
        let mut bytes = vec![0xee; 2 * IMAGE + 4 * row * 128];
        for (start, place, rows) in [(0, self.a, &a), (IMAGE, self.b, &b)] {
            for (r, values) in rows.iter().enumerate() {
                for (k, &value) in values.iter().enumerate() {
                    let at = start + place.byte(r, k, self.bytes);
                    let word = self.element(value).to_le_bytes();
                    bytes[at..at + self.bytes].copy_from_slice(&word[..self.bytes]);
                }
            }
        }
        self.write_registers(&mut bytes, &a, &c);
        let mut bench = Bench::new(bytes.len() as u64);
        bench.machine.write(bench.buffer, &bytes).unwrap();
        let config = LaunchConfig { block: [128, 1, 1], schedule, ..LaunchConfig::default() };
        bench.launch(text, &config).unwrap_or_else(|fault| panic!("{fault}"));
        let words = bench.words();
        let mut got = Vec::new();
        let mut want = Vec::new();
        let signs = self.immediates.matches("-1").count();
        for r in 0..64 {
            for n in 0..self.columns {
                let sum: i64 = a[r].iter().zip(&b[n]).map(|(x, y)| x * y).sum();
                want.push(if signs == 1 { c[r][n] - sum } else { c[r][n] + sum });
                let (thread, register, half) = self.home(r, n);
                let word = words[2 * IMAGE / 4 + thread * row + register] >> (16 * half);
                got.push(self.number(word));
            }
        }
        (got, want)
    }

    fn write_registers(&self, bytes: &mut [u8], a: &[Vec<i64>], c: &[Vec<i64>]) {
        let row = self.accumulators() + 4;
        for (r, values) in c.iter().enumerate() {
            for (n, &value) in values.iter().enumerate() {
                let (thread, register, half) = self.home(r, n);
                let at = 2 * IMAGE + 4 * (thread * row + register) + 2 * half;
                let word = self.result(value).to_le_bytes();
                let size = if self.packed() { 2 } else { 4 };
                bytes[at..at + size].copy_from_slice(&word[..size]);
            }
        }
        let count = 4 / self.bytes;
        for (r, values) in a.iter().enumerate() {
            for (k, &value) in values.iter().enumerate() {
                let (lane, outer) = (r % 8 * 4 + k / count % 4, k / (4 * count));
                let register = self.accumulators() + 2 * outer + r % 16 / 8;
                let thread = r / 16 * 32 + lane;
                let at = 2 * IMAGE + 4 * (thread * row + register) + k % count * self.bytes;
                let word = self.element(value).to_le_bytes();
                bytes[at..at + self.bytes].copy_from_slice(&word[..self.bytes]);
            }
        }
    }

    /// A small integer as an element of D.
    fn result(&self, value: i64) -> u32 {
        match self.types.split('.').next().unwrap() {
            "s32" => value as u32,
            "f32" => (value as f32).to_bits(),
            _ => Case { types: "f16", ..*self }.element(value) as u32,
        }
    }

    fn number(&self, word: u32) -> i64 {
        match self.types.split('.').next().unwrap() {
            "s32" => i64::from(word as i32),
            "f32" => f32::from_bits(word) as i64,
            _ => {
                let (sign, word) = (word >> 15 & 1, word & 0x7fff);
                let scale = f32::from_bits(((word >> 10) + 112) << 23 | (word & 0x3ff) << 13);
                let value = if word == 0 { 0 } else { scale as i64 };
                if sign == 1 { -value } else { value }
            }
        }
    }
}

const WAIT: &str = "    wgmma.wait_group.sync.aligned 0;";

/// 16-bit elements, A and B in lines of so many bytes.
fn half_case(columns: usize, line: usize, a_turned: bool, b_turned: bool) -> Case {
    let immediates = match (a_turned, b_turned) {
        (false, false) => ", 1, 1, 0, 0",
        (true, false) => ", 1, 1, 1, 0",
        (false, true) => ", 1, 1, 0, 1",
        (true, true) => ", 1, 1, 1, 1",
    };
    Case {
        columns,
        depth: 16,
        types: "f32.f16.f16",
        bytes: 2,
        a: place(line, a_turned, 64),
        b: place(line, b_turned, columns),
        a_in_registers: false,
        immediates,
        seed: 7,
    }
}

/// A layout of so many rows and a depth of 32 bytes, each part behind the other.
fn place(line: usize, turned: bool, rows: usize) -> Place {
    let (leading, stride) = match (turned, line) {
        (false, 16) => (rows * 16, 128),
        (false, _) => (16, 8 * line),
        (true, 16) => (128, 256),
        (true, _) => (16 * line, 8 * line),
    };
    Place { line, turned, leading, stride }
}

fn check(case: &Case) {
    let text = case.kernel("", WAIT);
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(3)] {
        let (got, want) = case.run(&text, schedule);
        assert!(got == want, "seed {} {schedule:?}\n{text}", case.seed);
    }
}

#[test]
fn every_swizzle_and_major_order_of_halves_gives_the_product() {
    for line in [16, 32, 64, 128] {
        for (a, b) in [(false, false), (true, false), (false, true), (true, true)] {
            check(&half_case(64, line, a, b));
        }
    }
}

#[test]
fn widths_from_8_to_256_columns_fill_their_registers() {
    for columns in [8, 24, 96, 128, 256] {
        check(&half_case(columns, 64, false, false));
        check(&Case { types: "f16.f16.f16", ..half_case(columns, 32, false, false) });
    }
}

#[test]
fn a_from_registers_multiplies_like_a_from_memory() {
    for types in ["f32.f16.f16", "f32.bf16.bf16", "f16.f16.f16"] {
        let case = half_case(32, 128, false, true);
        check(&Case { a_in_registers: true, immediates: ", 1, 1, 1", types, ..case });
    }
}

#[test]
fn signs_of_the_scales_negate_a_or_b() {
    for immediates in [", -1, 1, 0, 0", ", 1, -1, 0, 0", ", -1, -1, 0, 0"] {
        check(&Case { immediates, types: "f32.bf16.bf16", ..half_case(16, 128, false, false) });
    }
}

#[test]
fn tf32_and_bytes_have_their_own_depths() {
    for registers in [false, true] {
        let case = half_case(64, 128, false, false);
        let case = Case { a_in_registers: registers, ..case };
        check(&Case { depth: 8, bytes: 4, types: "f32.tf32.tf32", immediates: ", 1, 1", ..case });
        for types in ["s32.s8.s8", "s32.u8.u8", "s32.s8.u8", "s32.u8.s8"] {
            check(&Case { depth: 32, bytes: 1, types, immediates: "", ..case });
        }
    }
}

#[test]
fn bytes_of_floats_multiply_in_both_formats() {
    for types in ["f32.e4m3.e4m3", "f16.e4m3.e4m3", "f32.e5m2.e5m2", "f16.e5m2.e5m2"] {
        for a_in_registers in [false, true] {
            let case = half_case(64, 32, false, false);
            let case = Case { depth: 32, bytes: 1, types, immediates: ", 1, 1", ..case };
            check(&Case { a_in_registers, ..case });
        }
    }
}

/// A sparse product: of each four of a row of A, the second and the fourth are kept.
#[test]
fn a_sparse_matrix_multiplies_what_its_metadata_name() {
    let dense = half_case(16, 64, false, false);
    let wide = Place { line: 64, turned: false, leading: 16, stride: 512 };
    let case = Case { depth: 32, b: wide, ..dense };
    let text = case.kernel("", WAIT);
    let text = text.replace("mma_async.sync", "mma_async.sp.sync");
    let text = text.replace("%rd5, %p2", "%rd5, 0xdddddddd, 0, %p2");
    let text = text.replace(
        &case.a.descriptor(0).to_string(),
        &place(32, false, 64).descriptor(0).to_string(),
    );
    let (got, want) = case.run_sparse(&text, place(32, false, 64));
    assert!(got == want);
}

#[test]
fn a_wrong_stride_in_a_descriptor_gives_a_wrong_product() {
    let case = half_case(64, 128, false, false);
    let text = case.kernel("", WAIT);
    let wrong = Place { stride: 512, ..case.b };
    let text =
        text.replace(&case.b.descriptor(IMAGE).to_string(), &wrong.descriptor(IMAGE).to_string());
    let (got, want) = case.run(&text, Schedule::InOrder);
    assert!(got != want);
}

#[test]
fn a_missing_wait_shows_under_the_late_schedule_and_not_in_order() {
    let case = half_case(64, 128, false, false);
    for wait in ["", "    wgmma.wait_group.sync.aligned 1;"] {
        let text = case.kernel("", wait);
        let (got, want) = case.run(&text, Schedule::InOrder);
        assert!(got == want);
        let (got, want) = case.run(&text, Schedule::Reversed);
        assert!(got != want);
    }
}

#[test]
fn shared_memory_overwritten_before_the_wait_shows_under_the_late_schedule() {
    let case = half_case(64, 128, false, false);
    let change = "    st.shared.b32 [%r2], 0x3c003c00;\n    fence.proxy.async.shared::cta;";
    let text = case.kernel("", &format!("{change}\n{WAIT}"));
    let (got, want) = case.run(&text, Schedule::Reversed);
    assert!(got != want);
}

/// The fault of a kernel text in a block of so many threads, and the line it names.
fn fault(text: &str, threads: u32) -> (String, Option<u32>) {
    let mut bench = Bench::new(1 << 20);
    let config = LaunchConfig { block: [threads, 1, 1], ..LaunchConfig::default() };
    let fault = bench.launch(text, &config).unwrap_err();
    match fault.kind {
        FaultKind::WarpMisuse { what } => (what, fault.line),
        kind => (kind.to_string(), fault.line),
    }
}

#[test]
fn a_warpgroup_with_a_missing_warp_is_refused_with_its_line() {
    let text = half_case(64, 128, false, false).kernel("", WAIT);
    let (what, line) = fault(&text, 96);
    assert!(what.contains("four whole warps"), "{what}");
    assert_eq!(line, Some(line_of(&text, "wgmma.mma_async")));
}

#[test]
fn a_warp_that_leaves_before_the_product_is_named() {
    let text = half_case(64, 128, false, false).kernel("", WAIT);
    let text = text.replace(
        "    wgmma.fence",
        "    setp.ge.u32 %p3, %r1, 96;\n    @%p3 bra LAST;\n    wgmma.fence",
    );
    let text = text.replace("    ret;", "LAST:\n    ret;");
    let (what, line) = fault(&text, 128);
    assert!(what.contains("warp 3 has exited") || what.contains("deadlock"), "{what}");
    assert_eq!(line, Some(line_of(&text, "wgmma.wait_group")));
}

#[test]
fn warps_that_give_other_descriptors_or_scales_disagree() {
    let text = half_case(64, 128, false, false).kernel("", WAIT);
    let changed = [
        ("%rd5, %p2", "    selp.b64 %rd5, %rd5, %rd3, %p3;", "descriptors"),
        ("%rd5, %p3", "", "scale-d"),
    ];
    for (operands, setup, says) in changed {
        let text = text.replace("%rd5, %p2", operands);
        let with = format!("    setp.lt.u32 %p3, %r1, 64;\n{setup}\n    wgmma.fence");
        let text = text.replace("    wgmma.fence", &with);
        let (what, line) = fault(&text, 128);
        assert!(what.contains("disagree") && what.contains(says), "{what}");
        assert_eq!(line, Some(line_of(&text, "wgmma.mma_async")));
    }
}

#[test]
fn a_product_without_a_fence_before_it_is_refused() {
    let text = half_case(64, 128, false, false).kernel("", WAIT);
    let text = text.replace("    wgmma.fence.sync.aligned;\n", "");
    let (what, line) = fault(&text, 128);
    assert!(what.contains("wgmma.fence"), "{what}");
    assert_eq!(line, Some(line_of(&text, "wgmma.mma_async")));
}

#[test]
fn control_matrices_stored_without_a_proxy_fence_are_not_what_is_multiplied() {
    let case = half_case(64, 128, false, false);
    let text = case.kernel("", WAIT).replace("    fence.proxy.async;\n", "");
    let (got, want) = case.run(&text, Schedule::InOrder);
    assert_eq!(got, want);
    for schedule in [Schedule::Reversed, Schedule::Seeded(1), Schedule::Seeded(2)] {
        let (got, want) = case.run(&text, schedule);
        assert_ne!(got, want, "{schedule:?}");
    }
}

#[test]
fn a_descriptor_outside_shared_memory_is_a_fault_of_the_product() {
    let case = half_case(64, 128, false, false);
    let text = case.kernel("", WAIT);
    let text = text
        .replace(&case.b.descriptor(IMAGE).to_string(), &case.b.descriptor(2 * IMAGE).to_string());
    let (what, line) = fault(&text, 128);
    assert!(what.contains("out-of-bounds"), "{what}");
    assert_eq!(line, Some(line_of(&text, "wgmma.mma_async")));
}
