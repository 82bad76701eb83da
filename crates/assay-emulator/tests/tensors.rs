//! Tensor maps: boxes of tensors in and out, in every order that shared memory may have them.
#![allow(clippy::result_large_err, reason = "as in the crate")]

mod common;

use assay_emulator::{
    Fault, FaultKind, LaunchConfig, Machine, MachineConfig, PixelBox, Schedule, Space,
    TensorElement, TensorMap, TensorSwizzle,
};
use common::{HEADER, compile, line_of};

/// Bytes of the tile, and of what a test sees of it.
const TILE: usize = 4096;
const SCHEDULES: [Schedule; 3] = [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(5)];

/// A kernel of one warp with a map in its parameters. It fills the tile with ones, runs `body` in
/// one thread, and copies the tile to `out`.
fn kernel(body: &str) -> String {
    format!(
        "{HEADER}
.visible .entry test(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 tensor)
{{
    .reg .pred %p<10>;
    .reg .b16 %h<10>;
    .reg .b32 %r<30>;
    .reg .b64 %rd<30>;
    .shared .align 1024 .b8 tile[{TILE}];
    .shared .align 128 .b8 made[128];
    .shared .align 8 .b64 gate;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd5, [tensor];
    mov.u64 %rd2, map;
    cvta.param.u64 %rd3, %rd2;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, tile;
    mov.u32 %r3, gate;
    mov.u32 %r4, 0;
    shl.b32 %r5, %r1, 2;
FILL:
    add.u32 %r6, %r2, %r5;
    st.shared.u32 [%r6], 0x01010101;
    add.u32 %r5, %r5, 128;
    setp.lt.u32 %p1, %r5, {TILE};
    @%p1 bra FILL;
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    setp.ne.u32 %p2, %r1, 0;
    @%p2 bra READY;
    mbarrier.init.shared::cta.b64 [gate], 1;
{body}
READY:
    bar.warp.sync 0xffffffff;
    shl.b32 %r5, %r1, 2;
COPY:
    add.u32 %r6, %r2, %r5;
    ld.shared.u32 %r7, [%r6];
    cvt.u64.u32 %rd4, %r5;
    add.u64 %rd4, %rd4, %rd1;
    st.global.u32 [%rd4], %r7;
    add.u32 %r5, %r5, 128;
    setp.lt.u32 %p1, %r5, {TILE};
    @%p1 bra COPY;
    ret;
}}"
    )
}

/// A load of `bytes` bytes, and the wait for it.
fn load(form: &str, map: &str, operands: &str, bytes: u64) -> String {
    kernel(&format!(
        "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], {bytes};
    cp.async.bulk.tensor.{form}.shared::cluster.global.mbarrier::complete_tx::bytes \
                [%r2], [{map}, {operands};
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [gate], 0;
    @!%p3 bra WAIT;"
    ))
}

struct Bench {
    machine: Machine,
    tensor: u64,
    out: u64,
    bytes: usize,
}

impl Bench {
    /// A tensor with its byte numbers divided by `unit` in it.
    fn new(bytes: usize, unit: usize) -> Bench {
        let mut machine = Machine::new(MachineConfig::default());
        let tensor = machine.allocate(bytes as u64, 256).unwrap();
        let out = machine.allocate(TILE as u64, 256).unwrap();
        let content: Vec<u8> = (0..bytes).map(|at| (at / unit) as u8).collect();
        machine.write(tensor, &content).unwrap();
        Bench { machine, tensor, out, bytes }
    }

    fn run(&mut self, source: &str, map: &TensorMap, schedule: Schedule) -> Result<(), Fault> {
        let map = TensorMap { address: map.address.wrapping_add(self.tensor), ..*map };
        let mut parameters = map.encode().to_vec();
        parameters.extend(self.out.to_le_bytes());
        parameters.extend(self.tensor.to_le_bytes());
        let config = LaunchConfig {
            parameters,
            schedule,
            instruction_budget: 1_000_000,
            ..LaunchConfig::default()
        };
        self.machine.launch(&compile(source), "test", &config).map(drop)
    }

    fn out(&self) -> Vec<u8> {
        let mut bytes = vec![0; TILE];
        self.machine.read(self.out, &mut bytes).unwrap();
        bytes
    }

    fn tensor(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        self.machine.read(self.tensor, &mut bytes).unwrap();
        bytes
    }
}

/// What `load` brings with a map, in order.
fn loaded(bench: &mut Bench, map: &TensorMap, at: &[i32], bytes: u64) -> Vec<u8> {
    let coordinates: Vec<String> = at.iter().map(ToString::to_string).collect();
    let operands = format!("{{{}}}], [%r3]", coordinates.join(", "));
    let source = load(&format!("{}d", at.len()), "%rd3", &operands, bytes);
    bench.run(&source, map, Schedule::InOrder).unwrap_or_else(|fault| panic!("{fault}"));
    bench.out()
}

#[test]
fn a_box_of_a_matrix_arrives_row_by_row() {
    // Twelve rows of 64 bytes, a byte of each its row's number times four and its 16 bytes'.
    let mut bench = Bench::new(12 * 64, 16);
    let map = TensorMap::dense(TensorElement::U8, 0, &[64, 12], &[32, 4]);
    let tile = loaded(&mut bench, &map, &[16, 5], 128);
    for row in 0..4 {
        let want = [4 * (row + 5) + 1, 4 * (row + 5) + 2].map(|byte| byte as u8);
        assert_eq!(tile[32 * row..32 * row + 16], [want[0]; 16]);
        assert_eq!(tile[32 * row + 16..32 * row + 32], [want[1]; 16]);
    }
    assert_eq!(tile[128..], [1; TILE - 128], "nothing behind the box is written");
}

#[test]
fn what_lies_outside_the_tensor_is_zero_or_nan() {
    let mut bench = Bench::new(4 * 16, 2);
    let mut map = TensorMap::dense(TensorElement::F16, 0, &[8, 4], &[16, 4]);
    let tile = loaded(&mut bench, &map, &[-8, 2], 128);
    assert_eq!(tile[..16], [0; 16]);
    assert_eq!(tile[16..20], [16, 16, 17, 17]);
    assert_eq!(tile[64..128], [0; 64], "rows behind the last are outside");
    map.fills_nan = true;
    let tile = loaded(&mut bench, &map, &[-8, 2], 128);
    assert_eq!(tile[..4], [0xf7, 0x7f, 0xf7, 0x7f]);
    assert_eq!(tile[16..20], [16, 16, 17, 17]);
}

#[test]
fn a_swizzled_box_lies_in_shared_memory_as_the_isa_draws_it() {
    for (number, swizzle) in TensorSwizzle::ALL.into_iter().enumerate() {
        let row = [128, 32, 64, 128][number];
        let mut bench = Bench::new(1024, 16);
        let rows = (1024 / row) as u32;
        let mut map = TensorMap::dense(TensorElement::U8, 0, &[row as u32, rows], &[row as u32, 8]);
        map.swizzle = swizzle;
        let tile = loaded(&mut bench, &map, &[0, 0], 8 * row as u64);
        for part in 0..8 * row / 16 {
            let (line, column) = (part / 8, part % 8);
            let moved = [column, column ^ line & 1, column ^ line & 3, column ^ line & 7][number];
            assert_eq!(usize::from(tile[128 * line + 16 * moved]), part, "{swizzle:?} {part}");
        }
    }
}

#[test]
fn rows_shorter_than_the_swizzle_keep_its_pitch() {
    let mut bench = Bench::new(1024, 16);
    let mut map = TensorMap::dense(TensorElement::U8, 0, &[64, 16], &[32, 8]);
    map.swizzle = TensorSwizzle::Bytes128;
    let tile = loaded(&mut bench, &map, &[16, 2], 256);
    let parts: Vec<u8> = tile.chunks(16).take(16).map(|part| part[0]).collect();
    assert_eq!(parts, [9, 10, 1, 1, 1, 1, 1, 1, 14, 13, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn tf32_rounds_and_ftz_flushes_nothing_on_the_way_in() {
    let bits = [0x1000_u32, 0x1001, 0x3000, 0x3f80_1000, 0xbf80_3000, 0x7f80_0000, 0xff80_0001, 1];
    let rounded = [0, 0x2000, 0x4000, 0x3f80_0000, 0xbf80_4000, 0x7f80_0000, 0x7fff_e000, 0];
    for (element, want) in [(TensorElement::Tf32, rounded), (TensorElement::F32Ftz, bits)] {
        let mut bench = Bench::new(32, 4);
        let bytes: Vec<u8> = bits.iter().flat_map(|word| word.to_le_bytes()).collect();
        bench.machine.write(bench.tensor, &bytes).unwrap();
        let map = TensorMap::dense(element, 0, &[8], &[8]);
        let tile = loaded(&mut bench, &map, &[0], 32);
        let got: Vec<u32> =
            tile[..32].as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!(got, want, "{element:?}");
    }
}

#[test]
fn boxes_start_at_multiples_of_16_bytes_and_pixels_inside_their_box() {
    let map = TensorMap::dense(TensorElement::F16, 0, &[32, 4], &[16, 4]);
    let said = |source: &str, map: &TensorMap| {
        let fault = Bench::new(512, 1).run(source, map, Schedule::InOrder).unwrap_err();
        assert_eq!(fault.line, Some(line_of(source, "cp.async.bulk.tensor")));
        fault.to_string()
    };
    let text = said(&load("2d", "%rd3", "{4, 0}], [%r3]", 128), &map);
    assert!(text.contains("starts at element 4 of 2 bytes"), "{text}");
    let form = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";
    let text = said(&store(form, "{0, -1}"), &map);
    assert!(text.contains("negative coordinate -1"), "{text}");
    let mut map = TensorMap::dense(TensorElement::U8, 0, &[16, 4, 3, 1], &[1; 4]);
    let pixels = PixelBox { channels: 16, pixels: 4, ..PixelBox::default() };
    map.pixels = Some(pixels);
    let source = load("4d.im2col", "%rd3", "{0, 0, 3, 0}], [%r3], {0, 0}", 64);
    let text = said(&source, &map);
    assert!(text.contains("starts at 3 along dimension 2"), "{text}");
}

#[test]
fn boxes_of_one_to_five_dimensions_arrive() {
    let sizes = [16, 3, 2, 2, 2];
    for rank in 1..=5 {
        let mut bench = Bench::new(16 * 24, 16);
        let map = TensorMap::dense(TensorElement::U8, 0, &sizes[..rank], &[16, 2, 2, 1, 2][..rank]);
        let count = [1, 2, 4, 4, 8][rank - 1];
        let at = [0, 1, 0, 1, 0];
        let tile = loaded(&mut bench, &map, &at[..rank], 16 * count);
        let want: &[u8] = match rank {
            1 => &[0],
            2 => &[1, 2],
            3 => &[1, 2, 4, 5],
            4 => &[7, 8, 10, 11],
            _ => &[7, 8, 10, 11, 19, 20, 22, 23],
        };
        let got: Vec<u8> = tile.chunks(16).take(want.len()).map(|part| part[0]).collect();
        assert_eq!(got, want, "{rank} dimensions");
    }
}

#[test]
fn pixels_arrive_as_im2col_takes_them() {
    // One image of 4 by 3 pixels of 16 channels; a filter of 3 by 3 with padding 1.
    let mut bench = Bench::new(12 * 16, 16);
    let mut map = TensorMap::dense(TensorElement::U8, 0, &[16, 4, 3, 1], &[1; 4]);
    let corners = ([-1, -1, 0], [-1, -1, 0]);
    map.pixels = Some(PixelBox { lower: corners.0, upper: corners.1, channels: 16, pixels: 12 });
    let operands = "{0, -1, -1, 0}], [%r3], {2, 1}";
    let source = load("4d.im2col", "%rd3", operands, 192);
    bench.run(&source, &map, Schedule::InOrder).unwrap_or_else(|fault| panic!("{fault}"));
    let got: Vec<u8> = bench.out().chunks(16).take(12).map(|pixel| pixel[0]).collect();
    // The filter's column 2 is one to the right, its row 1 is in place.
    assert_eq!(got, [1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11, 0]);
}

#[test]
fn four_rows_are_gathered_and_scattered() {
    let mut bench = Bench::new(12 * 32, 16);
    let map = TensorMap::dense(TensorElement::U8, 0, &[32, 12], &[16, 1]);
    let source = load("2d", "%rd3", "{16, 7, 2, -1, 11}], [%r3]", 64)
        .replace(".global.mbarrier", ".global.tile::gather4.mbarrier");
    bench.run(&source, &map, Schedule::InOrder).unwrap_or_else(|fault| panic!("{fault}"));
    let got: Vec<u8> = bench.out().chunks(16).take(5).map(|row| row[0]).collect();
    assert_eq!(got, [15, 5, 0, 23, 1]);
    let form = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group";
    let mut bench = Bench::new(12 * 32, 1000);
    bench.run(&store(form, "{0, 3, 12, 0, 5}"), &map, Schedule::Seeded(2)).unwrap();
    let rows: Vec<usize> = (0..12).filter(|row| bench.tensor()[32 * row] == 1).collect();
    assert_eq!(rows, [0, 3, 5], "row 12 is outside");
}

fn store(form: &str, at: &str) -> String {
    kernel(&format!(
        "    {form} [%rd3, {at}], [%r2];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;"
    ))
}

#[test]
fn a_box_is_stored_without_what_lies_outside() {
    let form = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group";
    for schedule in SCHEDULES {
        let mut bench = Bench::new(4 * 32, 1000);
        let map = TensorMap::dense(TensorElement::U8, 0, &[32, 4], &[32, 4]);
        bench.run(&store(form, "{16, 2}"), &map, schedule).unwrap();
        let want: Vec<u8> = (0..128).map(|at| u8::from(at % 32 >= 16 && at >= 64)).collect();
        assert_eq!(bench.tensor(), want, "{schedule:?}");
    }
}

#[test]
fn a_swizzled_box_comes_back_as_it_went() {
    let body = "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], 1024;
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes \
                [%r2], [%rd3, {0, 0}], [%r3];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [gate], 0;
    @!%p3 bra WAIT;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {0, 8}], [%r2];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;";
    for schedule in SCHEDULES {
        let mut bench = Bench::new(2048, 16);
        let mut map = TensorMap::dense(TensorElement::U8, 0, &[128, 16], &[128, 8]);
        map.swizzle = TensorSwizzle::Bytes128;
        bench.run(&kernel(body), &map, schedule).unwrap();
        let tensor = bench.tensor();
        assert_eq!(tensor[1024..], tensor[..1024], "{schedule:?}");
    }
}

#[test]
fn a_box_is_added_to_a_tensor() {
    let form = "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group";
    let mut bench = Bench::new(64, 4);
    let map = TensorMap::dense(TensorElement::U32, 0, &[16], &[16]);
    bench.run(&store(form, "{8}"), &map, Schedule::InOrder).unwrap();
    let words: Vec<u32> =
        bench.tensor().as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let want = (0..16).map(|word| (word + u32::from(word >= 8)) * 0x0101_0101);
    assert_eq!(words, want.collect::<Vec<u32>>());
}

/// Makes a map of 8 by 4 words in shared memory, as a compiler does, and loads with a copy of it.
fn made() -> String {
    let fields = [
        "global_address.shared::cta.b1024.b64 [made], %rd5",
        "rank.shared::cta.b1024.b32 [made], 1",
        "box_dim.shared::cta.b1024.b32 [made], 0, 8",
        "box_dim.shared::cta.b1024.b32 [made], 1, 2",
        "global_dim.shared::cta.b1024.b32 [made], 0, 8",
        "global_dim.shared::cta.b1024.b32 [made], 1, 4",
        "global_stride.shared::cta.b1024.b64 [made], 0, 32",
        "element_stride.shared::cta.b1024.b32 [made], 0, 1",
        "element_stride.shared::cta.b1024.b32 [made], 1, 1",
        "elemtype.shared::cta.b1024.b32 [made], 2",
        "interleave_layout.shared::cta.b1024.b32 [made], 0",
        "swizzle_mode.shared::cta.b1024.b32 [made], 1",
        "fill_mode.shared::cta.b1024.b32 [made], 0",
    ];
    let zeros: Vec<String> =
        (0..16).map(|at| format!("    st.shared.u64 [made+{}], 0;", 8 * at)).collect();
    let replaced: Vec<String> =
        fields.iter().map(|field| format!("    tensormap.replace.tile.{field};")).collect();
    let make = format!("{}\n{}", zeros.join("\n"), replaced.join("\n"));
    let copy = "    add.u64 %rd6, %rd1, 2048;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned \
                [%rd6], [made], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd6], 128;";
    load("2d", "%rd6", "{0, 1}], [%r3]", 64).replace(
        "    setp.ne.u32 %p2, %r1, 0;",
        &format!("{make}\n{copy}\n    setp.ne.u32 %p2, %r1, 0;"),
    )
}

#[test]
fn a_map_made_by_the_kernel_works_as_one_of_the_host() {
    for schedule in SCHEDULES {
        let mut bench = Bench::new(128, 4);
        let map = TensorMap::dense(TensorElement::U8, 0, &[16], &[16]);
        bench.run(&made(), &map, schedule).unwrap();
        let got: Vec<u8> = bench.out().chunks(4).take(16).map(|word| word[0]).collect();
        let want: Vec<u8> = (8..24).collect();
        assert_eq!(got, want, "{schedule:?}");
    }
}

#[test]
fn a_map_that_promises_more_than_the_buffer_has_is_out_of_bounds() {
    let map = TensorMap::dense(TensorElement::U8, 0, &[32, 5], &[32, 5]);
    let source = load("2d", "%rd3", "{0, 0}], [%r3]", 160);
    let fault = Bench::new(128, 1).run(&source, &map, Schedule::InOrder).unwrap_err();
    let past = matches!(fault.kind, FaultKind::OutOfBounds { space: Space::Global, .. });
    assert!(past, "{fault}");
    assert_eq!(fault.line, Some(line_of(&source, "cp.async.bulk.tensor")));
}

#[test]
fn copies_and_maps_that_do_not_fit_each_other_are_misuse() {
    let map = TensorMap::dense(TensorElement::U8, 0, &[32, 4], &[32, 4]);
    let run = |source: &str, map: &TensorMap| {
        Bench::new(128, 1).run(source, map, Schedule::InOrder).unwrap_err().kind
    };
    let flat = load("1d", "%rd3", "{0}], [%r3]", 128);
    let kind = run(&flat, &map);
    assert!(kind.to_string().contains("1 dimensions from a map of 2"), "{kind}");
    let good = load("2d", "%rd3", "{0, 0}], [%r3]", 128);
    let odd = TensorMap { strides: [40, 0, 0, 0], ..map };
    assert!(
        matches!(run(&good, &odd), FaultKind::CopyMisuse { what } if what.contains("stride 40"))
    );
    let shifted =
        load("2d", "%rd3", "{0, 0}], [%r3]", 128).replace("[%r2], [%rd3", "[%r2+16], [%rd3");
    assert!(matches!(
        run(&shifted, &map),
        FaultKind::Misaligned { space: Space::Shared, bytes: 128, .. }
    ));
}
