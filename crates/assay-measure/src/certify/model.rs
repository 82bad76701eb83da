//! A made-up dossier of a plausible device: what controls are doctored from where the dossier in
//! question lacks a figure, and what tests start from.

use assay_record::{DOSSIER_SCHEMA, Dossier, Entry, Figure, ProbedDevice};

use super::Evidence;

const CLOCK_MHZ: f64 = 1755.0;

/// Rates of the model: name, unit, value, limit.
const RATES: [(&str, &str, f64, f64); 14] = [
    ("dram_read", "B/s", 4.1e12, 4.8e12),
    ("dram_write", "B/s", 3.9e12, 4.8e12),
    ("dram_gather", "B/s", 1.9e12, 4.8e12),
    ("l2_read", "B/s", 9.4e12, 2e13),
    ("fma_f64", "FLOP/s", 29e12, 33.5e12),
    ("fma_f32", "FLOP/s", 58e12, 67e12),
    ("mma_f16", "FLOP/s", 620e12, 1070e12),
    ("mma_bf16", "FLOP/s", 620e12, 1070e12),
    ("wgmma_f16", "FLOP/s", 880e12, 1070e12),
    ("wgmma_bf16", "FLOP/s", 880e12, 1070e12),
    ("wgmma_tf32", "FLOP/s", 440e12, 535e12),
    ("wgmma_e4m3", "FLOP/s", 1.72e15, 2.14e15),
    ("wgmma_s8", "OP/s", 1.72e15, 2.14e15),
    ("wgmma_f16_sparse", "FLOP/s", 1.6e15, 2.14e15),
];

/// Latencies of the model, in cycles.
const LATENCIES: [(&str, f64); 5] =
    [("shared", 29.0), ("l1", 38.0), ("l2_near", 215.0), ("l2_far", 262.0), ("dram", 640.0)];

/// The model.
pub fn model() -> Dossier {
    let rates = RATES.iter().map(|&(name, unit, value, limit)| {
        Entry::measured(name, unit, "made up", figure(value)).within(Some(limit), "made up")
    });
    let latencies = LATENCIES.iter().map(|&(stem, cycles)| {
        Entry::measured(&format!("latency_{stem}_cycles"), "cycles", "made up", figure(cycles))
    });
    let atomics = Entry::measured("atomic_add_f32", "op/s", "made up", figure(5e11))
        .along("addresses", vec![(1.0, 2e9), (32.0, 5e10), (1024.0, 5e11)]);
    Dossier {
        schema: DOSSIER_SCHEMA,
        assay_version: env!("CARGO_PKG_VERSION").into(),
        command: "made up".into(),
        date: "2026-01-01T00:00:00Z".into(),
        seed: 1,
        quick: false,
        device: device(),
        before: None,
        after: None,
        entries: rates.chain(latencies).chain([atomics]).collect(),
        peers: Vec::new(),
        peers_missing: Vec::new(),
        incomplete: None,
        seconds: 0.0,
    }
}

fn device() -> ProbedDevice {
    ProbedDevice {
        name: "a model of a device".into(),
        backend: "none".into(),
        architecture: "sm_90".into(),
        driver: Some("none".into()),
        multiprocessors: 132,
        memory_bytes: 1 << 37,
        l2_bytes: Some(50 << 20),
        sm_clock_max_mhz: Some(1980),
        memory_clock_max_mhz: None,
        memory_bus_bits: None,
    }
}

fn figure(value: f64) -> Figure {
    let (p5, p95) = (0.99 * value, 1.01 * value);
    Figure { value, samples: 20, p5, p95, sm_clock_mhz: Some(CLOCK_MHZ) }
}

/// What goes with the model.
pub(super) fn evidence() -> Evidence {
    Evidence { gemm: Some((700e12, "made up".into())), chases_again: Vec::new() }
}
