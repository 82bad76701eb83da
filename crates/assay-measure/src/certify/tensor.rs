//! The ratios of the tensor cores' rates among each other.

use assay_record::Dossier;

use super::Finding;
use super::figures::{Missing, figure, set};

/// What each kind's rate is of fp16's, in the silicon of every chip from `sm_80` to `sm_120`.
const KINDS: [(&str, f64); 4] = [("bf16", 1.0), ("tf32", 0.5), ("e4m3", 2.0), ("s8", 2.0)];
/// How far under the silicon's ratio a measured one may lie: fp8 and int8 run into the power limit
/// before fp16 does.
const LEAST: f64 = 0.75;
/// How far over: fp16 itself may have been held down.
const MOST: f64 = 1.15;

/// The path whose rates are compared: wgmma where the device has it.
fn path(dossier: &Dossier) -> &'static str {
    if figure(dossier, "wgmma_f16").is_ok() { "wgmma" } else { "mma" }
}

/// A rate in operations per clock where that is there, which the clock does not sway.
fn of(dossier: &Dossier, path: &str, kind: &str) -> Result<f64, Missing> {
    let name = format!("{path}_{kind}");
    figure(dossier, &format!("{name}_per_clock")).or_else(|_| figure(dossier, &name))
}

/// Every kind's rate over fp16's. Warp-wide fp8 is a lower bound on chips whose fp8 is fed by
/// warpgroups, so that it is only compared along its own path.
pub(super) fn ratios(dossier: &Dossier) -> Result<Finding, Missing> {
    let path = path(dossier);
    let half = of(dossier, path, "f16")?;
    let compared = |kind: &str| path == "wgmma" || kind != "e4m3";
    let found: Vec<(&str, f64, f64)> = KINDS
        .into_iter()
        .filter(|(kind, _)| compared(kind))
        .filter_map(|(kind, silicon)| Some((kind, of(dossier, path, kind).ok()? / half, silicon)))
        .collect();
    if found.is_empty() {
        // Says why: bf16 is one of those that are not there.
        of(dossier, path, "bf16")?;
    }
    let within = |&(_, ratio, silicon): &(&str, f64, f64)| {
        (LEAST * silicon..=MOST * silicon).contains(&ratio)
    };
    let said: Vec<String> = found
        .iter()
        .map(|(kind, ratio, silicon)| format!("{kind} {ratio:.2} ({silicon})"))
        .collect();
    let said = format!("{path}, to fp16, the silicon's in brackets: {}", said.join(", "));
    Ok(Finding { holds: found.iter().all(within), said })
}

/// Breaks [`ratios`].
pub(super) fn doctor(dossier: &mut Dossier) {
    let path = path(dossier);
    for suffix in ["", "_per_clock"] {
        if let Ok(half) = figure(dossier, &format!("{path}_f16{suffix}")) {
            for kind in ["tf32", "bf16"] {
                let factor = if kind == "tf32" { 1.0 } else { 0.5 };
                set(dossier, &format!("{path}_{kind}{suffix}"), factor * half);
            }
        }
    }
}

/// Sparse over dense, in dense-equivalent operations.
pub(super) fn sparse(dossier: &Dossier) -> Result<Finding, Missing> {
    let path = path(dossier);
    let ratio = of(dossier, path, "f16_sparse")? / of(dossier, path, "f16")?;
    let said = format!("{path}_f16_sparse is {ratio:.3} of {path}_f16");
    Ok(Finding { holds: ratio > 1.0 && ratio <= 2.0 * MOST, said })
}

/// Breaks [`sparse`].
pub(super) fn doctor_sparse(dossier: &mut Dossier) {
    let path = path(dossier);
    for suffix in ["", "_per_clock"] {
        if let Ok(half) = figure(dossier, &format!("{path}_f16{suffix}")) {
            set(dossier, &format!("{path}_f16_sparse{suffix}"), 2.5 * half);
        }
    }
}
