//! A dossier's figures as invariants ask for them, and what is said where one is missing.

use assay_record::{Dossier, EntryStatus};

/// Figures that an invariant needs and that are not there.
pub(super) struct Missing {
    /// Whether a probe failed; else the device or the run has no such thing.
    pub(super) failed: bool,
    pub(super) said: String,
}

impl Missing {
    pub(super) fn absent(said: impl Into<String>) -> Missing {
        Missing { failed: false, said: said.into() }
    }
}

/// The measured value of an entry.
pub(super) fn figure(dossier: &Dossier, name: &str) -> Result<f64, Missing> {
    let Some(entry) = dossier.entry(name) else {
        return Err(Missing::absent(format!("the dossier has no {name}")));
    };
    entry.value.ok_or_else(|| {
        let reason = entry.reason.as_deref().unwrap_or("no reason given");
        let failed = entry.status == EntryStatus::Failed;
        Missing { failed, said: format!("{name} has no value: {reason}") }
    })
}

/// The highest of several entries of which some may be missing.
pub(super) fn best(dossier: &Dossier, names: &[&str]) -> Result<f64, Missing> {
    let found = names.iter().filter_map(|name| figure(dossier, name).ok());
    match found.reduce(f64::max) {
        Some(value) => Ok(value),
        None => figure(dossier, names.first().copied().unwrap_or_default()),
    }
}

/// Sets an entry's value, its percentiles with it.
pub(super) fn set(dossier: &mut Dossier, name: &str, value: f64) {
    if let Some(entry) = dossier.entries.iter_mut().find(|entry| entry.name == name) {
        (entry.value, entry.p5, entry.p95) = (Some(value), Some(value), Some(value));
    }
}

/// A rate in words.
pub(super) fn rate(value: f64, unit: &str) -> String {
    let (scaled, prefix) = match value.abs() {
        v if v >= 1e12 => (value / 1e12, "T"),
        v if v >= 1e9 => (value / 1e9, "G"),
        _ => (value, ""),
    };
    format!("{scaled:.4} {prefix}{unit}")
}
