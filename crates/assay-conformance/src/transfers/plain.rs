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
    let within = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes \
                  [%tile+2048], [%tile+16], 512, [%gate];";
    let name = "cp.async.bulk.shared::cluster.shared::cta of 512 bytes";
    all.push(plain(name, kernel::load(within, 512), Type::U8));
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
            let copy = format!("{form} [%tile+2048], [%tile], 2048, [%gate];");
            all.push(plain(&form, kernel::load(&copy, 2048), *ty));
        }
    }
    all
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
