//! The kernel around a transfer.
//!
//! A block fills its tile, one thread copies and waits, and the block shows the tile. Names that a
//! body may use: `%tile` and `%gate`, the tile and an mbarrier in shared memory; `%map`, the
//! map's address; `%c0` to `%c4`, the block's coordinates; `%tensor`, the tensor's address;
//! `%source`, the address of what the tile was filled from.

use assay_device::TensorMap;

use super::{TILE, Transfer};
use crate::run::HEAD;

pub(super) const NAME: &str = "transfer";
pub(super) const THREADS: u32 = 128;

/// The whole module.
pub(super) fn text(transfer: &Transfer) -> String {
    let coordinates = (0..5).map(|axis| {
        let (start, step) = (transfer.start[axis], transfer.step[axis]);
        format!("mad.lo.s32 %c{axis}, %block, {step}, {start};\n")
    });
    let coordinates = coordinates.collect::<Vec<_>>().concat();
    let map = if transfer.made {
        make(&transfer.map)
    } else {
        "mov.b64 %map, map;\ncvta.param.u64 %map, %map;\n".to_string()
    };
    let body = &transfer.body;
    let meet = match transfer.cluster {
        1 => "bar.sync 0;",
        _ => "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;",
    };
    format!(
        "{}setp.eq.u32 %first, %lane, 0;
@%first mbarrier.init.shared::cta.b64 [gate], 1;
@%first fence.mbarrier_init.release.cluster;
fence.proxy.async.shared::cta;
{meet}
{map}@!%first bra READY;
{body}
READY:
{meet}
{}",
        fill(&coordinates),
        show(),
    )
}

/// The head, and the tile's filling. Coordinates are what computes them.
fn fill(coordinates: &str) -> String {
    let stride = 4 * THREADS;
    format!(
        "{HEAD}.visible .entry {NAME}(.param .u64 tensor, .param .u64 source, .param .u64 out,
.param .u64 scratch, .param .align 64 .b8 map[128])
{{
.reg .pred %first, %done, %more;
.reg .b16 %h<9>;
.reg .b32 %lane, %block, %tile, %gate, %at, %place, %word, %c<5>, %r<9>;
.reg .b64 %tensor, %source, %out, %scratch, %map, %from, %rd<9>;
.shared .align 1024 .b8 tile[{TILE}];
.shared .align 128 .b8 made[128];
.shared .align 8 .b64 gate;
ld.param.u64 %tensor, [tensor];
ld.param.u64 %source, [source];
ld.param.u64 %out, [out];
ld.param.u64 %scratch, [scratch];
mov.u32 %lane, %tid.x;
mov.u32 %block, %ctaid.x;
mov.u32 %tile, tile;
mov.u32 %gate, gate;
mad.wide.u32 %source, %block, {TILE}, %source;
mad.wide.u32 %out, %block, {TILE}, %out;
mad.wide.u32 %scratch, %block, 128, %scratch;
{coordinates}shl.b32 %at, %lane, 2;
FILL:
cvt.u64.u32 %from, %at;
add.u64 %from, %from, %source;
ld.global.b32 %word, [%from];
add.u32 %place, %tile, %at;
st.shared.b32 [%place], %word;
add.u32 %at, %at, {stride};
setp.lt.u32 %more, %at, {TILE};
@%more bra FILL;
"
    )
}

/// The tile, shown.
fn show() -> String {
    let stride = 4 * THREADS;
    format!(
        "shl.b32 %at, %lane, 2;
SHOW:
add.u32 %place, %tile, %at;
ld.shared.b32 %word, [%place];
cvt.u64.u32 %from, %at;
add.u64 %from, %from, %out;
st.global.b32 [%from], %word;
add.u32 %at, %at, {stride};
setp.lt.u32 %more, %at, {TILE};
@%more bra SHOW;
ret;
}}
"
    )
}

/// What a loading body ends with: the bytes to come, the copy, and the wait.
pub(super) fn load(copy: &str, bytes: u64) -> String {
    format!(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [gate], {bytes};
{copy}
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %done, [gate], 0;
@!%done bra WAIT;"
    )
}

/// What a storing body ends with.
pub(super) fn store(copy: &str) -> String {
    format!("{copy}\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;")
}

/// Makes the map in shared memory, as Triton does, and puts it into global memory.
fn make(map: &TensorMap) -> String {
    let field = |text: &str| {
        format!("@%first tensormap.replace.tile.{}.b1024.{};\n", named(text).0, named(text).1)
    };
    let mut fields = vec![
        field("global_address b64 [made], %tensor"),
        field(&format!("rank b32 [made], {}", map.rank - 1)),
        field(&format!("elemtype b32 [made], {}", map.element as u32)),
        field("interleave_layout b32 [made], 0"),
        field(&format!("swizzle_mode b32 [made], {}", map.swizzle as u32)),
        field(&format!("fill_mode b32 [made], {}", u32::from(map.fills_nan))),
    ];
    for axis in 0..map.rank {
        fields.push(field(&format!("global_dim b32 [made], {axis}, {}", map.sizes[axis])));
        fields.push(field(&format!("box_dim b32 [made], {axis}, {}", map.box_sizes[axis])));
        let step = map.element_strides[axis];
        fields.push(field(&format!("element_stride b32 [made], {axis}, {step}")));
    }
    for axis in 0..map.rank - 1 {
        fields.push(field(&format!("global_stride b64 [made], {axis}, {}", map.strides[axis])));
    }
    format!(
        "setp.lt.u32 %more, %lane, 32;
shl.b32 %at, %lane, 2;
mov.u32 %place, made;
add.u32 %place, %place, %at;
@%more st.shared.b32 [%place], 0;
bar.sync 0;
{}bar.sync 0;
@!%more bra MADE;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned \
                [%scratch], [made], 128;
fence.proxy.tensormap::generic.acquire.gpu [%scratch], 128;
MADE:
bar.sync 0;
mov.b64 %map, %scratch;
",
        fields.concat()
    )
}

/// The field with its space, and the type with its operands.
fn named(text: &str) -> (String, &str) {
    let (field, rest) = text.split_once(' ').unwrap_or((text, ""));
    (format!("{field}.shared::cta"), rest)
}
