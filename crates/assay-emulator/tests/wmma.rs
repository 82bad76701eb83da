//! `wmma` against a plain matrix product on values that are exact.

mod common;

use assay_emulator::{FaultKind, LaunchConfig, Schedule};
use assay_num::random::SplitMix64;
use common::{Bench, line_of, pointer_kernel};

const SCHEDULES: [Schedule; 3] = [Schedule::InOrder, Schedule::Reversed, Schedule::Seeded(5)];

/// A tile in memory: rows, columns, elements between lines, column by column or not.
#[derive(Clone, Copy)]
struct Tile {
    rows: usize,
    columns: usize,
    stride: usize,
    by_columns: bool,
}

impl Tile {
    fn at(self, row: usize, column: usize) -> usize {
        if self.by_columns { column * self.stride + row } else { row * self.stride + column }
    }

    fn layout(self) -> &'static str {
        if self.by_columns { "col" } else { "row" }
    }
}

/// What the elements of a type look like in memory.
fn bytes_of(ty: &str, value: i64) -> Vec<u8> {
    let single = value as f32;
    match ty {
        "f16" => half(value).to_le_bytes().to_vec(),
        "bf16" => ((single.to_bits() >> 16) as u16).to_le_bytes().to_vec(),
        "f32" | "tf32" => single.to_bits().to_le_bytes().to_vec(),
        "f64" => (value as f64).to_bits().to_le_bytes().to_vec(),
        "s32" => (value as i32).to_le_bytes().to_vec(),
        _ => vec![value as u8],
    }
}

/// The f16 of a small integer.
fn half(value: i64) -> u16 {
    let bits = (value as f32).to_bits();
    let magnitude = (bits >> 13 & 0x3_ffff).saturating_sub(112 << 10) as u16;
    if value == 0 { 0 } else { (bits >> 31 << 15) as u16 | magnitude }
}

fn value_of(ty: &str, bytes: &[u8]) -> i64 {
    match ty {
        "f16" => {
            let bits = u32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            let magnitude = f32::from_bits(((bits & 0x7fff) << 13) + (112 << 23));
            let value = if matches!(bits, 0 | 0x8000) { 0.0 } else { magnitude };
            (if bits >> 15 == 1 { -value } else { value }) as i64
        }
        "f64" => f64::from_bits(u64::from_le_bytes(bytes.try_into().unwrap())) as i64,
        "f32" => f32::from_bits(u32::from_le_bytes(bytes.try_into().unwrap())) as i64,
        _ => i64::from(i32::from_le_bytes(bytes.try_into().unwrap())),
    }
}

/// One product: shape, types of A and B, C, D, layouts by columns of A, B, C, D, and how many
/// elements more than needed lie between lines.
struct Case {
    shape: [usize; 3],
    types: [&'static str; 3],
    by_columns: [bool; 4],
    gap: usize,
}

const PART: usize = 8192;

impl Case {
    fn tiles(&self) -> [Tile; 4] {
        let [m, n, k] = self.shape;
        let sizes = [(m, k), (k, n), (m, n), (m, n)];
        std::array::from_fn(|index| {
            let ((rows, columns), by_columns) = (sizes[index], self.by_columns[index]);
            let stride = if by_columns { rows } else { columns } + self.gap;
            Tile { rows, columns, stride, by_columns }
        })
    }

    fn kernel(&self) -> String {
        let [m, n, k] = self.shape;
        let shape = format!("m{m}n{n}k{k}");
        let [input, c, d] = self.types;
        let registers = |ty: &str, elements: usize, letter: &str| {
            let size = bytes_of(ty, 0).len();
            let count = match ty {
                "f16" if letter == "a" || letter == "b" => 8,
                "f64" => elements / 32,
                _ => elements * size / 128,
            };
            let class = if ty == "f64" { "e" } else { letter };
            let names = (0..count).map(|index| format!("%{class}{letter}{index}"));
            format!("{{{}}}", names.collect::<Vec<_>>().join(", "))
        };
        let a = registers(input, m * k, "a");
        let b = registers(input, n * k, "b");
        let (c_list, d_list) = (registers(c, m * n, "c"), registers(d, m * n, "d"));
        let declared: Vec<String> = [("a", &a), ("b", &b), ("c", &c_list), ("d", &d_list)]
            .iter()
            .map(|(_, list)| {
                let bits = if list.contains("%e") { "b64" } else { "b32" };
                format!(".reg .{bits} {};", list.trim_matches(['{', '}']))
            })
            .collect();
        let tiles = self.tiles();
        let types = match (input, c, d) {
            ("f16", _, _) => format!("{d}.{c}"),
            _ => format!("{d}.{input}.{input}.{c}"),
        };
        let load = |letter: &str, index: usize, ty: &str, list: &str| {
            let Tile { stride, .. } = tiles[index];
            let (layout, at) = (tiles[index].layout(), index * PART);
            format!(
                "    wmma.load.{letter}.sync.aligned.{layout}.{shape}.global.{ty} \
                 {list}, [%rd1+{at}], {stride};\n"
            )
        };
        let body = [
            load("a", 0, input, &a),
            load("b", 1, input, &b),
            load("c", 2, c, &c_list),
            format!(
                "    wmma.mma.sync.aligned.{}.{}.{shape}.{types} {d_list}, {a}, {b}, {c_list};\n",
                tiles[0].layout(),
                tiles[1].layout()
            ),
            format!(
                "    wmma.store.d.sync.aligned.{}.{shape}.global.{d} [%rd1+{}], {d_list}, {};\n",
                tiles[3].layout(),
                3 * PART,
                tiles[3].stride
            ),
        ];
        pointer_kernel(&declared.join("\n"), &body.concat())
    }

    fn check(&self) {
        let text = self.kernel();
        let mut random = SplitMix64::new(11);
        let unsigned = self.types[0].starts_with('u');
        let mut matrix = |tile: Tile, ty: &str, bytes: &mut Vec<u8>| -> Vec<Vec<i64>> {
            let mut values = vec![vec![0; tile.columns]; tile.rows];
            for (r, row) in values.iter_mut().enumerate() {
                for (c, value) in row.iter_mut().enumerate() {
                    *value = random.below(8) as i64 - if unsigned { 0 } else { 4 };
                    let element = bytes_of(ty, *value);
                    let at = tile.at(r, c) * element.len();
                    bytes[at..at + element.len()].copy_from_slice(&element);
                }
            }
            values
        };
        let [input, c_type, d_type] = self.types;
        let tiles = self.tiles();
        let mut bytes = Vec::new();
        let mut values = Vec::new();
        for (index, ty) in [input, input, c_type].into_iter().enumerate() {
            let mut part = vec![0xee; PART];
            values.push(matrix(tiles[index], ty, &mut part));
            bytes.extend(part);
        }
        for schedule in SCHEDULES {
            let mut bench = Bench::new(4 * PART as u64);
            bench.machine.write(bench.buffer, &bytes).unwrap();
            let config = LaunchConfig { schedule, ..LaunchConfig::default() };
            bench.launch(&text, &config).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
            let words: Vec<u8> = bench.words().iter().flat_map(|word| word.to_le_bytes()).collect();
            let size = bytes_of(d_type, 0).len();
            for row in 0..tiles[3].rows {
                for column in 0..tiles[3].columns {
                    let at = 3 * PART + tiles[3].at(row, column) * size;
                    let got = value_of(d_type, &words[at..at + size]);
                    let products =
                        (0..self.shape[2]).map(|k| values[0][row][k] * values[1][k][column]);
                    let want = values[2][row][column] + products.sum::<i64>();
                    assert_eq!(got, want, "({row}, {column}) {schedule:?}\n{text}");
                }
            }
        }
    }
}

#[test]
fn every_shape_and_type_gives_the_product() {
    let types = [
        ["f16", "f32", "f32"],
        ["f16", "f16", "f16"],
        ["f16", "f16", "f32"],
        ["f16", "f32", "f16"],
        ["bf16", "f32", "f32"],
        ["s8", "s32", "s32"],
        ["u8", "s32", "s32"],
    ];
    for shape in [[16, 16, 16], [8, 32, 16], [32, 8, 16]] {
        for types in types {
            Case { shape, types, by_columns: [false, true, false, false], gap: 0 }.check();
        }
    }
    let other = [([16, 16, 8], ["tf32", "f32", "f32"]), ([8, 8, 4], ["f64", "f64", "f64"])];
    for (shape, types) in other {
        Case { shape, types, by_columns: [false, true, false, false], gap: 0 }.check();
    }
}

#[test]
fn every_layout_and_a_stride_of_each_tile_is_followed() {
    for number in 0..16 {
        let by_columns = [0, 1, 2, 3].map(|bit| number >> bit & 1 == 1);
        let types = ["f16", "f32", "f32"];
        Case { shape: [8, 32, 16], types, by_columns, gap: 16 }.check();
    }
}

#[test]
fn a_kernel_that_counts_on_a_layout_of_fragments_shows_under_a_seed() {
    // Lane 0 stores its first register as if it were element (0, 0).
    let body = "    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r2, %r3, %r4, %r5, %r6, \
         %r7, %r8, %r9}, [%rd1];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    st.global.b32 [%rd1+1024], %r2;
DONE:";
    let text = pointer_kernel("", body);
    let element = |schedule| {
        let mut bench = Bench::new(2048);
        let bytes: Vec<u8> = (1..=256_u32).flat_map(u32::to_le_bytes).collect();
        bench.machine.write(bench.buffer, &bytes).unwrap();
        bench.launch(&text, &LaunchConfig { schedule, ..LaunchConfig::default() }).unwrap();
        bench.words()[256]
    };
    assert_eq!(element(Schedule::InOrder), 1);
    assert_ne!(element(Schedule::Reversed), 1);
}

#[test]
fn lanes_that_give_different_addresses_are_refused_with_the_line() {
    let body = "    mad.wide.u32 %rd1, %r1, 32, %rd1;
    wmma.load.c.sync.aligned.row.m8n8k32.global.s32 {%r2, %r3}, [%rd1];";
    let text = pointer_kernel("", body);
    let fault = Bench::new(4096).launch(&text, &LaunchConfig::default()).unwrap_err();
    let FaultKind::WarpMisuse { what } = &fault.kind else { panic!("{fault}") };
    assert!(what.contains("different addresses"), "{what}");
    assert_eq!(fault.line, Some(line_of(&text, "wmma.load")));
}

#[test]
fn single_bits_and_nibbles_multiply_in_words() {
    // Every bit of A and B set: 128 bits in common, and none that only one has.
    for (operation, want) in [("and", 128 + 5), ("xor", 5)] {
        let body = format!(
            "    mov.b32 %r2, 0xffffffff;
    mov.b32 %r3, 5;
    wmma.mma.{operation}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 \
             {{%r4, %r5}}, {{%r2}}, {{%r2}}, {{%r3, %r3}};
    wmma.store.d.sync.aligned.row.m8n8k128.global.s32 [%rd1], {{%r4, %r5}};"
        );
        let mut bench = Bench::new(256);
        bench.launch(&pointer_kernel("", &body), &LaunchConfig::default()).unwrap();
        assert_eq!(bench.words(), vec![want; 64]);
    }
    let body = "    mov.b32 %r2, 0xfefefefe;
    mov.b32 %r3, 5;
    wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {%r4, %r5}, {%r2}, {%r2}, {%r3, %r3};
    wmma.store.d.sync.aligned.row.m8n8k32.global.s32 [%rd1], {%r4, %r5};";
    let mut bench = Bench::new(256);
    bench.launch(&pointer_kernel("", body), &LaunchConfig::default()).unwrap();
    // Sixteen times (-1)(-1), sixteen times (-2)(-2).
    assert_eq!(bench.words(), vec![16 + 64 + 5; 64]);
}
