//! Transfers without a tensor map.

use assay_device::{TensorElement, TensorMap};
use assay_ptx::Type;

use super::{Transfer, kernel};

fn plain(name: &str, body: String, content: Type) -> Transfer {
    Transfer {
        name: name.to_string(),
        body,
        map: TensorMap::dense(TensorElement::U8, 0, &[16], &[16]),
        made: false,
        start: [0; 5],
        step: [0; 5],
        blocks: 1,
        cluster: 1,
        content,
    }
}

/// Copies and reductions of lines, every way that one block can show.
pub(super) fn transfers() -> Vec<Transfer> {
    let mut all = Vec::new();
    for (to, bytes) in [("cluster", 16_u64), ("cluster", 2048), ("cta", 48), ("cta", 4000)] {
        let copy = format!(
            "cp.async.bulk.shared::{to}.global.mbarrier::complete_tx::bytes \
             [%tile+16], [%tensor+32], {bytes}, [%gate];"
        );
        let name = format!("cp.async.bulk.shared::{to}.global of {bytes} bytes");
        all.push(plain(&name, kernel::load(&copy, bytes), Type::U8));
    }
    let form = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes";
    all.extend(pair(form, 2000, Type::U8));
    let out = "cp.async.bulk.global.shared::cta.bulk_group [%tensor+16], [%tile+32], 1040;";
    let name = "cp.async.bulk.global.shared::cta of 1040 bytes";
    all.push(plain(name, kernel::store(out), Type::U8));
    for (ty, operations) in GLOBAL {
        for operation in *operations {
            let flush = if matches!(ty, Type::F16 | Type::Bf16) && *operation == "add" {
                ".noftz"
            } else {
                ""
            };
            let ty_name = ty.name();
            let form = format!(
                "cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}{flush}.{ty_name}"
            );
            let copy = format!("{form} [%tensor+16], [%tile], 2048;");
            all.push(plain(&form, kernel::store(&copy), *ty));
        }
    }
    for (ty, operations) in SHARED {
        for operation in *operations {
            let form = format!(
                "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes\
                 .{operation}.{}",
                ty.name()
            );
            all.extend(pair(&form, 2048, *ty));
        }
    }
    all
}

/// From each block of a cluster of two to the other, and from each to itself.
fn pair(form: &str, bytes: u64, content: Type) -> [Transfer; 2] {
    [1, 0].map(|away| {
        let copy = format!(
            "mov.u32 %r0, %cluster_ctarank;
xor.b32 %r0, %r0, {away};
mapa.shared::cluster.u32 %r1, %tile, %r0;
mapa.shared::cluster.u32 %r2, %gate, %r0;
{form} [%r1+2048], [%tile], {bytes}, [%r2];"
        );
        let to = if away == 1 { "to the other block" } else { "to itself" };
        let body = kernel::load(&copy, bytes);
        Transfer { blocks: 2, cluster: 2, ..plain(&format!("{form} {to}"), body, content) }
    })
}

/// What reductions into global memory do, by type.
const GLOBAL: &[(Type, &[&str])] = &[
    (Type::B32, &["and", "or", "xor"]),
    (Type::B64, &["and", "or", "xor"]),
    (Type::U32, &["add", "min", "max", "inc", "dec"]),
    (Type::S32, &["add", "min", "max"]),
    (Type::U64, &["add", "min", "max"]),
    (Type::S64, &["min", "max"]),
    (Type::F32, &["add"]),
    (Type::F64, &["add"]),
    (Type::F16, &["add", "min", "max"]),
    (Type::Bf16, &["add", "min", "max"]),
];

/// And into shared memory.
const SHARED: &[(Type, &[&str])] = &[
    (Type::B32, &["and", "or", "xor"]),
    (Type::U32, &["add", "min", "max", "inc", "dec"]),
    (Type::S32, &["add", "min", "max"]),
    (Type::U64, &["add"]),
];
