//! Which transfers there are.

use assay_device::{PixelBox, TensorElement, TensorMap, TensorSwizzle};
use assay_ptx::Type;

use super::{Transfer, kernel, plain};

/// All transfers.
pub fn transfers() -> Vec<Transfer> {
    let mut all = plain::transfers();
    all.extend(tiles());
    all.extend(swizzles());
    all.extend(fills());
    all.extend(steps());
    all.extend(pixels());
    all.extend(stores());
    all.extend(reductions());
    all.extend(multicasts());
    all
}

/// To both blocks of a cluster of two, which each send a half.
fn multicasts() -> Vec<Transfer> {
    let map = TensorMap { swizzle: TensorSwizzle::Bytes64, ..matrix(TensorElement::U8, 64, 8) };
    let copy = "mov.u32 %r0, %cluster_ctarank;
mov.b16 %h0, 3;
shl.b32 %r1, %r0, 9;
add.u32 %r1, %r1, %tile;
mad.lo.s32 %c1, %r0, 8, 3;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes\
.multicast::cluster [%r1], [%map, {%c0, %c1}], [%gate], %h0;";
    let line = "mov.u32 %r0, %cluster_ctarank;
mov.b16 %h0, 3;
shl.b32 %r1, %r0, 9;
add.u32 %r1, %r1, %tile;
mad.wide.u32 %tensor, %r0, 1024, %tensor;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \
                [%r1], [%tensor], 512, [%gate], %h0;";
    [("2d to a cluster", copy), ("line to a cluster", line)]
        .map(|(name, copy)| Transfer {
            name: format!("multicast {name}"),
            body: kernel::load(copy, 1024),
            blocks: 4,
            cluster: 2,
            ..load("", map)
        })
        .to_vec()
}

/// The type whose special values an element has.
fn values(element: TensorElement) -> Type {
    match element {
        TensorElement::U8 => Type::U8,
        TensorElement::U16 => Type::U16,
        TensorElement::U32 => Type::U32,
        TensorElement::S32 => Type::S32,
        TensorElement::U64 => Type::U64,
        TensorElement::S64 => Type::S64,
        TensorElement::F16 => Type::F16,
        TensorElement::F64 => Type::F64,
        TensorElement::Bf16 => Type::Bf16,
        _ => Type::F32,
    }
}

/// `{%c0, %c1}`
fn coordinates(rank: usize) -> String {
    let names: Vec<String> = (0..rank).map(|axis| format!("%c{axis}")).collect();
    format!("{{{}}}", names.join(", "))
}

fn box_bytes(map: &TensorMap) -> u64 {
    let steps = |axis: usize| match axis {
        0 => map.box_sizes[0],
        _ => map.box_sizes[axis].div_ceil(map.element_strides[axis]),
    };
    let elements: u64 = match map.pixels {
        Some(pixels) => u64::from(pixels.channels) * u64::from(pixels.pixels),
        None => (0..map.rank).map(|axis| u64::from(steps(axis))).product(),
    };
    elements * u64::from(map.element.bytes())
}

/// A load to `at` bytes behind the tile's start.
fn load_at(name: &str, map: TensorMap, at: u32) -> Transfer {
    let (rank, to) = (map.rank, coordinates(map.rank));
    let copy = format!(
        "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
         [%tile+{at}], [%map, {to}], [%gate];"
    );
    Transfer {
        name: format!("load {rank}d {name}"),
        body: kernel::load(&copy, box_bytes(&map)),
        map,
        made: false,
        start: [0; 5],
        step: [0; 5],
        blocks: 1,
        cluster: 1,
        content: values(map.element),
    }
}

fn load(name: &str, map: TensorMap) -> Transfer {
    load_at(name, map, 0)
}

/// Coordinates that go from in front of the tensor to behind it.
fn across(transfer: Transfer, start: [i32; 5], step: [i32; 5]) -> Transfer {
    Transfer { start, step, blocks: 5, ..transfer }
}

/// A matrix of 40 rows of 256 bytes, taken by rows of `row` bytes.
fn matrix(element: TensorElement, row: u32, rows: u32) -> TensorMap {
    let size = element.bytes();
    TensorMap::dense(element, 0, &[256 / size, 40], &[row / size, rows])
}

/// One to five dimensions, over all edges.
fn tiles() -> Vec<Transfer> {
    let mut all = Vec::new();
    let sizes = [24, 7, 5, 3, 2];
    let taken = [8, 4, 2, 2, 2];
    for rank in 1..=5 {
        let map = TensorMap::dense(TensorElement::F32, 0, &sizes[..rank], &taken[..rank]);
        let made = Transfer { made: true, ..load("f32 map made on the device", map) };
        for transfer in [load("f32 over all edges", map), made] {
            all.push(across(transfer, [-4, -3, -1, -1, -1], [8, 3, 2, 1, 1]));
        }
    }
    for element in TensorElement::ALL {
        let map = matrix(element, 64, 8);
        let transfer = load(&format!("{element:?}"), map);
        let units = (64 / element.bytes()) as i32;
        all.push(across(transfer, [-units / 2, -4, 0, 0, 0], [units, 12, 0, 0, 0]));
    }
    all
}

/// Every swizzle with full and shorter rows, and at each place of its pattern.
fn swizzles() -> Vec<Transfer> {
    let mut all = Vec::new();
    for swizzle in TensorSwizzle::ALL {
        for row in [16, 32, 48, 64, 96, 128] {
            let span = swizzle.span();
            if row > span && span > 0 || span == 0 && row > 64 {
                continue;
            }
            let map = TensorMap { swizzle, ..matrix(TensorElement::U8, row, 16) };
            let transfer = load(&format!("u8 swizzle {span} rows of {row}"), map);
            all.push(across(transfer, [16, -3, 0, 0, 0], [32, 9, 0, 0, 0]));
        }
        for at in [128, 256, 384, 512, 896] {
            let map =
                TensorMap { swizzle, ..matrix(TensorElement::F16, swizzle.span().max(32), 8) };
            all.push(load_at(&format!("f16 swizzle {} at {at}", swizzle.span()), map, at));
        }
        let map = TensorMap { swizzle, ..matrix(TensorElement::Bf16, swizzle.span().max(32), 8) };
        let name = format!("bf16 swizzle {} map made on the device", swizzle.span());
        all.push(Transfer { made: true, ..load(&name, map) });
    }
    all
}

/// What lies outside is NaN where elements are floats.
fn fills() -> Vec<Transfer> {
    let elements = [
        TensorElement::F16,
        TensorElement::Bf16,
        TensorElement::F32,
        TensorElement::F32Ftz,
        TensorElement::Tf32,
        TensorElement::Tf32Ftz,
        TensorElement::F64,
    ];
    let mut all = Vec::new();
    for element in elements {
        let map = TensorMap { fills_nan: true, ..matrix(element, 64, 4) };
        let units = (64 / element.bytes()) as i32;
        for made in [false, true] {
            let how = if made { "map made on the device" } else { "" };
            let transfer = load(&format!("{element:?} NaN outside {how}"), map);
            let transfer = Transfer { made, ..transfer };
            all.push(across(transfer, [-units / 2, -2, 0, 0, 0], [units, 12, 0, 0, 0]));
        }
    }
    all
}

/// Element strides.
fn steps() -> Vec<Transfer> {
    let mut all = Vec::new();
    for (rank, strides) in [(2, [1, 2, 1, 1, 1]), (2, [1, 3, 1, 1, 1]), (3, [1, 2, 3, 1, 1])] {
        let mut map = TensorMap::dense(
            TensorElement::U16,
            0,
            &[32, 12, 9, 1, 1][..rank],
            &[8, 7, 4, 1, 1][..rank],
        );
        map.element_strides = strides;
        let transfer = load(&format!("u16 element strides {:?}", &strides[..rank]), map);
        all.push(across(transfer, [-8, -3, -2, 0, 0], [8, 4, 3, 0, 0]));
    }
    all
}

/// A load by pixels, moved by `offsets`.
fn pixel_load(name: &str, map: TensorMap, offsets: &[u16]) -> Transfer {
    let (rank, to) = (map.rank, coordinates(map.rank));
    let moved: Vec<String> = offsets.iter().map(ToString::to_string).collect();
    let moved = moved.join(", ");
    let registers = offsets.iter().enumerate();
    let registers = registers.map(|(axis, offset)| format!("mov.b16 %h{axis}, {offset};\n"));
    let registers = registers.collect::<Vec<_>>().concat();
    let names: Vec<String> = (0..offsets.len()).map(|axis| format!("%h{axis}")).collect();
    let names = names.join(", ");
    let copy = format!(
        "{registers}cp.async.bulk.tensor.{rank}d.shared::cluster.global.im2col\
         .mbarrier::complete_tx::bytes [%tile], [%map, {to}], [%gate], {{{names}}};"
    );
    Transfer {
        name: format!("load {rank}d im2col {name} by {moved}"),
        body: kernel::load(&copy, box_bytes(&map)),
        ..load("", map)
    }
}

fn pixel_map(sizes: &[u32], corners: ([i16; 3], [i16; 3]), pixels: u16) -> TensorMap {
    let mut map = TensorMap::dense(TensorElement::F16, 0, sizes, &[1; 5][..sizes.len()]);
    let (lower, upper) = corners;
    map.pixels = Some(PixelBox { lower, upper, channels: 16, pixels });
    map
}

/// Convolutions: along one, two and three axes, with padding, strides and wraps to the next image.
fn pixels() -> Vec<Transfer> {
    let mut all = Vec::new();
    let padded = ([-1, -1, -1], [-1, -1, -1]);
    let inner = ([0, 0, 0], [-2, -2, -1]);
    let uneven = ([-2, -1, 0], [0, -1, -1]);
    for (corners, named) in [(padded, "padded"), (inner, "inner"), (uneven, "uneven")] {
        for offsets in [[0_u16, 0, 0], [1, 2, 1]] {
            for (rank, sizes) in
                [(3, [32, 13, 5, 1, 1]), (4, [32, 9, 8, 3, 1]), (5, [32, 8, 7, 3, 2])]
            {
                let map = pixel_map(&sizes[..rank], corners, 40);
                let transfer = pixel_load(named, map, &offsets[..rank - 2]);
                let (w, h) = (i32::from(corners.0[0]), i32::from(corners.0[1]));
                let mut start = [0, w, h, 0, 0];
                let mut step = [8, 1, 1, 0, 0];
                // The image is the last coordinate.
                if rank == 3 {
                    (start[2], step[2]) = (0, 1);
                }
                all.push(across(transfer, start, step));
            }
        }
    }
    for strides in [[1, 2, 1, 1, 1], [1, 2, 2, 1, 1], [1, 3, 2, 1, 1]] {
        let mut map = pixel_map(&[32, 9, 10, 2], padded, 24);
        map.element_strides = strides;
        let transfer = pixel_load(&format!("strides {:?}", &strides[1..3]), map, &[1, 0]);
        all.push(across(transfer, [0, -1, -1, 0, 0], [8, 2, 2, 0, 0]));
    }
    let mut map = pixel_map(&[32, 7, 6, 3], padded, 40);
    map.fills_nan = true;
    map.swizzle = TensorSwizzle::Bytes32;
    let transfer = pixel_load("NaN outside, swizzle 32", map, &[0, 1]);
    all.push(across(transfer, [8, -1, -1, 0, 0], [8, 1, 1, 0, 0]));
    all
}

/// Out of shared memory.
fn stores() -> Vec<Transfer> {
    let mut all = Vec::new();
    let out = |name: &str, map: TensorMap, mode: &str| {
        let (rank, to) = (map.rank, coordinates(map.rank));
        let copy = format!(
            "cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group \
             [%map, {to}], [%tile];"
        );
        Transfer {
            name: format!("store {rank}d {name}"),
            body: kernel::store(&copy),
            ..load("", map)
        }
    };
    let sizes = [24, 7, 5, 3, 2];
    let taken = [8, 4, 2, 2, 2];
    for rank in 1..=5 {
        let map = TensorMap::dense(TensorElement::F32, 0, &sizes[..rank], &taken[..rank]);
        for (edge, start) in [
            ("in front of the innermost", [-4, 1, 1, 1, 0]),
            ("in front of all", [-4, -1, -1, -1, -1]),
            ("behind all", [20, 5, 4, 2, 1]),
        ] {
            let transfer = out(&format!("f32 {edge}"), map, "tile");
            all.push(Transfer { start, ..transfer });
        }
    }
    for swizzle in TensorSwizzle::ALL {
        let map = TensorMap { swizzle, ..matrix(TensorElement::U8, swizzle.span().max(32), 16) };
        let transfer = out(&format!("u8 swizzle {}", swizzle.span()), map, "tile");
        all.push(Transfer { start: [16, 30, 0, 0, 0], ..transfer });
    }
    for element in TensorElement::ALL {
        let transfer = out(&format!("{element:?}"), matrix(element, 64, 8), "tile");
        let start = [(16 / element.bytes()) as i32, -2, 0, 0, 0];
        all.push(Transfer { start, ..transfer });
    }
    let mut map = TensorMap::dense(TensorElement::U16, 0, &[32, 12], &[8, 7]);
    map.element_strides[1] = 2;
    all.push(out("u16 element stride 2", map, "tile"));
    let map = pixel_map(&[32, 7, 5, 3], ([-1, -1, 0], [-1, -1, 0]), 40);
    for start in [[8, 0, 0, 0, 0], [8, -1, -1, 0, 0], [0, 3, 2, 1, 0]] {
        let transfer = out(&format!("im2col from {start:?}"), map, "im2col_no_offs");
        all.push(Transfer { start, ..transfer });
    }
    all
}

/// Added to, or otherwise combined with, what is there.
fn reductions() -> Vec<Transfer> {
    let integers = [TensorElement::U32, TensorElement::S32, TensorElement::U64, TensorElement::S64];
    let floats = [
        TensorElement::F16,
        TensorElement::Bf16,
        TensorElement::F32,
        TensorElement::F32Ftz,
        TensorElement::F64,
    ];
    let mut all = Vec::new();
    for element in integers.into_iter().chain(floats) {
        for operation in operations(element) {
            let map = matrix(element, 64, 16);
            let copy = format!(
                "cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.tile.bulk_group \
                 [%map, {{%c0, %c1}}], [%tile];"
            );
            for row in [30, -2] {
                all.push(Transfer {
                    name: format!("reduce 2d {element:?} {operation} from row {row}"),
                    body: kernel::store(&copy),
                    start: [(16 / element.bytes()) as i32, row, 0, 0, 0],
                    ..load("", map)
                });
            }
        }
    }
    all
}

fn operations(element: TensorElement) -> &'static [&'static str] {
    match element {
        TensorElement::U32 => &["add", "min", "max", "inc", "dec", "and", "or", "xor"],
        TensorElement::S32 => &["add", "min", "max", "and"],
        TensorElement::U64 => &["add", "min", "max", "and", "or", "xor"],
        TensorElement::S64 | TensorElement::F16 | TensorElement::Bf16 => &["add", "min", "max"],
        _ => &["add"],
    }
}
