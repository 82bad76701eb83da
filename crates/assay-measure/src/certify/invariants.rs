//! The invariants and how each is doctored.

use assay_record::{Dossier, Entry};

use super::figures::{Missing, best, figure, rate, set};
use super::{Evidence, Finding, Invariant, tensor};

/// A second run of a chase may differ from the first by this part of it.
const CHASE_TOLERANCE: f64 = 0.20;
/// A library's large matrix product reaches at least this part of the register rate.
const GEMM_LEAST: f64 = 0.30;
/// And at most this, since the register rate has no memory traffic at all.
const GEMM_MOST: f64 = 1.05;

/// All invariants.
pub(super) fn all() -> impl Iterator<Item = &'static Invariant> {
    INVARIANTS.iter()
}

const INVARIANTS: &[Invariant] = &[
    Invariant {
        name: "l2_over_dram",
        claim: "the L2 cache is read faster than DRAM",
        judge: |dossier, _| above(dossier, "l2_read", "dram_read", "B/s"),
        doctored: "l2_read set to 0.9 of dram_read",
        doctor: |dossier, _| scaled(dossier, "l2_read", 0.9, "dram_read"),
    },
    Invariant {
        name: "gather_dearer",
        claim: "a random gather from DRAM costs more than a stream",
        judge: |dossier, _| above(dossier, "dram_read", "dram_gather", "B/s"),
        doctored: "dram_gather set to 1.1 of dram_read",
        doctor: |dossier, _| scaled(dossier, "dram_gather", 1.1, "dram_read"),
    },
    Invariant {
        name: "latencies_ordered",
        claim: "a dependent load takes longer the farther its memory: shared < L1 < L2 < DRAM",
        judge: |dossier, _| latencies_ordered(dossier),
        doctored: "the latencies of L1 and DRAM swapped",
        doctor: |dossier, _| swap(dossier, "latency_l1_cycles", "latency_dram_cycles"),
    },
    Invariant {
        name: "fma_ratios",
        claim: "the FMA pipes hold the silicon's ratio of f64 to f32",
        judge: |dossier, _| fma_ratios(dossier),
        doctored: "fma_f64 set to fma_f32",
        doctor: |dossier, _| scaled(dossier, "fma_f64", 1.0, "fma_f32"),
    },
    Invariant {
        name: "tensor_over_fma",
        claim: "the tensor cores' fp16 rate beats the f32 FMA pipe at least twice",
        judge: |dossier, _| tensor_over_fma(dossier),
        doctored: "every fp16 tensor rate set to fma_f32",
        doctor: |dossier, _| {
            for name in ["mma_f16", "wgmma_f16"] {
                scaled(dossier, name, 1.0, "fma_f32");
            }
        },
    },
    Invariant {
        name: "tensor_ratios",
        claim: "tensor rates hold the silicon's ratios to fp16: bf16 1, tf32 1/2, fp8 and int8 2",
        judge: |dossier, _| tensor::ratios(dossier),
        doctored: "the tf32 rates doubled, to those of fp16",
        doctor: |dossier, _| tensor::doctor(dossier),
    },
    Invariant {
        name: "sparse_over_dense",
        claim: "2:4 sparsity is faster than dense and at most twice as fast",
        judge: |dossier, _| tensor::sparse(dossier),
        doctored: "every sparse fp16 rate set to 2.5 of the dense one",
        doctor: |dossier, _| tensor::doctor_sparse(dossier),
    },
    Invariant {
        name: "library_gemm",
        claim: "a library's large fp16 GEMM is within 0.30 and 1.05 of the tensor cores' rate",
        judge: library_gemm,
        doctored: "the GEMM's rate set to 1.2 of the fp16 rate",
        doctor: |dossier, evidence| {
            let most = best(dossier, &["wgmma_f16", "mma_f16"]).unwrap_or(1.0);
            evidence.gemm = Some((1.2 * most, "doctored".into()));
        },
    },
    Invariant {
        name: "chases_repeat",
        claim: "a chase repeats within 20 %",
        judge: chases_repeat,
        doctored: "a second run of one chase set to 1.3 of the first",
        doctor: |dossier, evidence| {
            let first = dossier.entries.iter().find(|entry| is_latency(entry));
            evidence.chases_again = first.cloned().into_iter().collect();
            for again in &mut evidence.chases_again {
                again.value = again.value.map(|value| 1.3 * value);
            }
        },
    },
    Invariant {
        name: "atomics_contend",
        claim: "atomics on one address are slower than on one address a thread",
        judge: |dossier, _| atomics_contend(dossier),
        doctored: "the curve of atomic_add_f32 turned round",
        doctor: |dossier, _| {
            if let Some(entry) = dossier.entries.iter_mut().find(|e| e.name == "atomic_add_f32") {
                let mut ys: Vec<f64> = entry.points.iter().map(|point| point.1).collect();
                ys.reverse();
                entry.points.iter_mut().zip(ys).for_each(|(point, y)| point.1 = y);
            }
        },
    },
    Invariant {
        name: "below_the_silicon",
        claim: "no figure is over what the silicon can do",
        judge: |dossier, _| below_the_silicon(dossier),
        doctored: "the first figure with a limit set to 1.01 of it",
        doctor: |dossier, _| {
            let limited = |entry: &&mut Entry| entry.value.is_some() && entry.limit.is_some();
            if let Some(entry) = dossier.entries.iter_mut().find(limited) {
                entry.value = entry.limit.map(|limit| 1.01 * limit);
            }
        },
    },
];

fn above(dossier: &Dossier, high: &str, low: &str, unit: &str) -> Result<Finding, Missing> {
    let (more, less) = (figure(dossier, high)?, figure(dossier, low)?);
    let times = more / less;
    let said = format!("{high} {} is {times:.3} of {low} {}", rate(more, unit), rate(less, unit));
    Ok(Finding { holds: times > 1.0, said })
}

fn scaled(dossier: &mut Dossier, name: &str, factor: f64, of: &str) {
    if let Ok(value) = figure(dossier, of) {
        set(dossier, name, factor * value);
    }
}

fn swap(dossier: &mut Dossier, a: &str, b: &str) {
    if let (Ok(of_a), Ok(of_b)) = (figure(dossier, a), figure(dossier, b)) {
        set(dossier, a, of_b);
        set(dossier, b, of_a);
    }
}

/// The far part of the L2 cache is in between where the device has one.
fn latencies_ordered(dossier: &Dossier) -> Result<Finding, Missing> {
    let of = |stem: &str| figure(dossier, &format!("latency_{stem}_cycles"));
    let mut steps = vec![("shared", of("shared")?), ("l1", of("l1")?), ("l2", of("l2_near")?)];
    if let Ok(far) = of("l2_far") {
        steps.push(("l2 far", far));
    }
    steps.push(("dram", of("dram")?));
    let rises = |pair: &[(&str, f64)]| match pair {
        [(_, near), (name, far)] if *name == "l2 far" => near <= far,
        [(_, near), (_, far)] => near < far,
        _ => true,
    };
    let holds = steps.windows(2).all(rises);
    let said: Vec<String> =
        steps.iter().map(|(name, cycles)| format!("{name} {cycles:.1}")).collect();
    Ok(Finding { holds, said: format!("{} cycles", said.join(", ")) })
}

/// f64 over f32: half on the data-centre chips, a 64th on the others from `sm_86` on.
fn fma_ratios(dossier: &Dossier) -> Result<Finding, Missing> {
    let (double, single) = (figure(dossier, "fma_f64")?, figure(dossier, "fma_f32")?);
    let silicon = match dossier.device.architecture.trim_end_matches(['a', 'f']) {
        "sm_80" | "sm_90" | "sm_100" => 0.5,
        "sm_86" | "sm_89" | "sm_120" | "sm_121" => 1.0 / 64.0,
        other => return Err(Missing::absent(format!("the ratio of {other} is not known here"))),
    };
    let ratio = double / single;
    let holds = (0.8 * silicon..=1.15 * silicon).contains(&ratio);
    let said = format!("fma_f64 is {ratio:.4} of fma_f32, in silicon {silicon:.4}");
    Ok(Finding { holds, said })
}

fn tensor_over_fma(dossier: &Dossier) -> Result<Finding, Missing> {
    let tensor = best(dossier, &["wgmma_f16", "mma_f16"])?;
    let single = figure(dossier, "fma_f32")?;
    let times = tensor / single;
    let said = format!(
        "fp16 {} is {times:.2} of fma_f32 {}",
        rate(tensor, "FLOP/s"),
        rate(single, "FLOP/s")
    );
    Ok(Finding { holds: times >= 2.0, said })
}

fn library_gemm(dossier: &Dossier, evidence: &Evidence) -> Result<Finding, Missing> {
    let (gemm, source) = evidence.gemm.as_ref().ok_or_else(|| {
        Missing::absent("no library's GEMM was measured: no torch, and no --gemm-flops")
    })?;
    let tensor = best(dossier, &["wgmma_f16", "mma_f16"])?;
    let part = gemm / tensor;
    let holds = (GEMM_LEAST..=GEMM_MOST).contains(&part);
    let said =
        format!("{} ({source}) is {part:.3} of {}", rate(*gemm, "FLOP/s"), rate(tensor, "FLOP/s"));
    Ok(Finding { holds, said })
}

fn is_latency(entry: &Entry) -> bool {
    entry.name.starts_with("latency_") && entry.unit == "cycles" && entry.value.is_some()
}

/// A second run where there was one; else the samples of the first among themselves.
fn chases_repeat(dossier: &Dossier, evidence: &Evidence) -> Result<Finding, Missing> {
    let spread = |entry: &Entry| {
        let value = entry.value.filter(|value| *value > 0.0)?;
        let again = evidence.chases_again.iter().find(|again| again.name == entry.name);
        match again.and_then(|again| again.value) {
            Some(again) => Some((again / value - 1.0).abs()),
            None => Some((entry.p95? - entry.p5?) / value),
        }
    };
    let chases = dossier.entries.iter().filter(|entry| is_latency(entry));
    let spreads = chases.filter_map(|entry| Some((spread(entry)?, entry.name.as_str())));
    let (worst, name) = spreads
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .ok_or_else(|| Missing::absent("the dossier has no latency"))?;
    let between =
        if evidence.chases_again.is_empty() { "p5 to p95 of one run" } else { "between two runs" };
    let said = format!("at most {:.1} % {between}, of {name}", 100.0 * worst);
    Ok(Finding { holds: worst <= CHASE_TOLERANCE, said })
}

fn atomics_contend(dossier: &Dossier) -> Result<Finding, Missing> {
    figure(dossier, "atomic_add_f32")?;
    let points = dossier.entry("atomic_add_f32").map(|entry| entry.points.as_slice());
    let Some([(few, slow), .., (many, fast)]) = points else {
        return Err(Missing::absent("atomic_add_f32 has no curve"));
    };
    let said =
        format!("{} at {few} addresses, {} at {many}", rate(*slow, "op/s"), rate(*fast, "op/s"));
    Ok(Finding { holds: slow < fast, said })
}

fn below_the_silicon(dossier: &Dossier) -> Result<Finding, Missing> {
    let parts = dossier.entries.iter();
    let parts = parts.filter_map(|entry| Some((entry.part_of_limit()?, entry.name.as_str())));
    let (most, name) = parts
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .ok_or_else(|| Missing::absent("no entry has a limit"))?;
    let said = format!("the nearest is {name} at {:.1} % of its limit", 100.0 * most);
    Ok(Finding { holds: most <= 1.0, said })
}
