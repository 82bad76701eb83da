//! What a dossier gives to draw: the roofs of its rates, the rungs of its latencies.

use assay_record::{Dossier, Entry, EntryStatus};

use crate::ladder::Rung;
use crate::roofline::{Roof, RoofKind, RoofSource, Roofline};

/// The bandwidths that bound a kernel, by the names of their entries.
const MEMORY: [&str; 3] = ["dram_read", "l2_read", "shared_read"];

/// The latencies from the nearest memory to the farthest, by the stems of their entries' names.
/// What a TLB miss adds to them is no rung: it is a step.
const LATENCIES: [&str; 6] = ["shared", "l1", "distributed_shared", "l2_near", "l2_far", "dram"];

impl Roofline {
    /// The roofs of a dossier: its memory's rates, its dense rates in FLOP/s by the fastest path to
    /// each kind of tensor core, and the silicon's own limit of DRAM. There are no kernels yet.
    pub fn of(dossier: &Dossier) -> Roofline {
        let memory = MEMORY.iter().filter_map(|name| dossier.entry(name));
        let memory = memory.filter_map(|entry| roof(entry, RoofKind::Memory));
        let is_roof = |entry: &&Entry| entry.unit == "FLOP/s" && is_drawn(dossier, &entry.name);
        let flops = dossier.entries.iter().filter(is_roof);
        let compute = flops.filter_map(|entry| roof(entry, RoofKind::Compute));
        let roofs = memory.chain(paper(dossier)).chain(compute).collect();
        Roofline { title: title(dossier), roofs, points: Vec::new() }
    }
}

/// Sparse rates count operations that nobody does, and the warps' own path to the tensor cores is
/// no roof where warpgroups have a faster one.
fn is_drawn(dossier: &Dossier, name: &str) -> bool {
    let faster = name.strip_prefix("mma_").map(|kind| format!("wgmma_{kind}"));
    let is_slower = faster.is_some_and(|faster| dossier.value(&faster).is_some());
    !name.ends_with("_sparse") && !is_slower
}

/// The device, its driver and the day.
fn title(dossier: &Dossier) -> String {
    let day = dossier.date.split('T').next().unwrap_or_default();
    let driver = dossier.device.driver.as_deref().map(|driver| format!(", driver {driver}"));
    format!("{}{}, {day}", dossier.device.name, driver.unwrap_or_default())
}

fn roof(entry: &Entry, kind: RoofKind) -> Option<Roof> {
    let value = entry.value.filter(|_| entry.status == EntryStatus::Measured)?;
    let source = RoofSource::Measured { sm_clock_mhz: entry.sm_clock_mhz };
    Some(Roof { name: entry.name.clone(), kind, value, source })
}

/// What the bus of the memory could carry.
fn paper(dossier: &Dossier) -> Option<Roof> {
    let value = dossier.entry("dram_read")?.limit?;
    let name = "dram_bus".to_owned();
    Some(Roof { name, kind: RoofKind::Memory, value, source: RoofSource::Datasheet })
}

impl Rung {
    /// The rungs of a dossier's latencies in cycles that were measured, the nearest memory first.
    pub fn all_of(dossier: &Dossier) -> Vec<Rung> {
        LATENCIES.iter().filter_map(|stem| Rung::of(dossier, stem)).collect()
    }

    fn of(dossier: &Dossier, stem: &str) -> Option<Rung> {
        let entry = dossier.entry(&format!("latency_{stem}_cycles"))?;
        Some(Rung {
            name: stem.to_owned(),
            cycles: entry.value?,
            nanoseconds: dossier.value(&format!("latency_{stem}_ns")),
            spread: entry.p5.zip(entry.p95),
        })
    }
}

/// The ladder of a dossier's latencies as SVG.
pub fn dossier_ladder(dossier: &Dossier) -> String {
    crate::ladder(&format!("Latencies of {}", title(dossier)), &Rung::all_of(dossier))
}
