//! A dossier: what a device can do, as measured on it, one entry a probe.
//!
//! A number is never NaN here. What could not be measured is `null`, and a status and a reason
//! say why; a figure over what the silicon can do is a failed probe and not a record.

use serde::{Deserialize, Serialize};

use crate::peer::Peer;
use crate::stored::{self, Unread};

/// The schema of dossiers that this version writes, and the newest that it reads.
pub const DOSSIER_SCHEMA: u32 = 1;

/// Everything that one run of the probes measured on one device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Dossier {
    /// The version of this layout.
    pub schema: u32,
    /// The version of Assay that wrote it.
    pub assay_version: String,
    /// The command line.
    pub command: String,
    /// When the run started, in UTC, as `2026-11-29T21:00:00Z`.
    pub date: String,
    /// Where work buffers' random contents and the orders of chases came from.
    pub seed: u64,
    /// Whether it was the short run, with fewer samples and smaller buffers.
    pub quick: bool,
    /// The device.
    pub device: ProbedDevice,
    /// What the device said of its state before the first probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Conditions>,
    /// What it said after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Conditions>,
    /// The entries in the order in which they were made; no two have the same name.
    pub entries: Vec<Entry>,
    /// What other libraries got in the same call, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
    /// Peers that were asked for and gave no figure, and why, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers_missing: Vec<String>,
    /// Why the run ended before its last probe, such as a device that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// Time spent, in seconds.
    pub seconds: f64,
}

/// The device that was probed, as it describes itself. What it does not tell is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbedDevice {
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// What drives it: `cuda`.
    pub backend: String,
    /// The architecture, such as `sm_90`.
    pub architecture: String,
    /// The driver's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Device memory, in bytes.
    pub memory_bytes: u64,
    /// The level-2 cache, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_bytes: Option<u64>,
    /// The highest clock of the multiprocessors, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_max_mhz: Option<u32>,
    /// The highest clock of the memory, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_max_mhz: Option<u32>,
    /// The width of the memory's bus, in bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bus_bits: Option<u32>,
}

/// A device's state at one moment, as its management library tells it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Conditions {
    /// The multiprocessors' clock, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<f64>,
    /// The memory's clock, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<f64>,
    /// The power drawn, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The power limit in force, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// The power limit that the device ships with, in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_default_w: Option<f64>,
    /// The temperature, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// Every reason for which clocks are held down, one word or phrase each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
    /// What could not be told, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// What became of an entry's probe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryStatus {
    /// There is a value.
    Measured,
    /// The device, or this way to it, has no such thing.
    Unsupported,
    /// It should have worked: wrong results, no steady clock, a figure over the silicon's limit.
    Failed,
}

/// One quantity of a device. Start from [`Entry::measured`], [`Entry::unsupported`] or
/// [`Entry::failed`], which keep value, status and reason in step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in every dossier: `dram_read`.
    pub name: String,
    /// The value's unit: `B/s`, `cycles`, `ns`, `FLOP/s`.
    pub unit: String,
    /// What became of the probe.
    pub status: EntryStatus,
    /// The value: the median of the samples unless `method` says otherwise.
    pub value: Option<f64>,
    /// Samples that the value stands on.
    pub samples: u64,
    /// The 5th percentile of the samples.
    pub p5: Option<f64>,
    /// The 95th percentile of the samples.
    pub p95: Option<f64>,
    /// The multiprocessors' clock while it was measured, in MHz.
    pub sm_clock_mhz: Option<f64>,
    /// How it was measured, in a sentence.
    pub method: String,
    /// How far to trust it, from 0 to 1.
    pub confidence: f64,
    /// Why no further, in words.
    pub confidence_reason: String,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the silicon can do at most, in the same unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Where the limit comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_source: Option<String>,
    /// What `points` count along x: `bytes`, `addresses`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_unit: Option<String>,
    /// A curve, as pairs of x and a value in `unit`, by ascending x; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<(f64, f64)>,
}

/// The numbers of a measured entry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The value.
    pub value: f64,
    /// Samples that it stands on.
    pub samples: u64,
    /// The 5th percentile of the samples.
    pub p5: f64,
    /// The 95th percentile of the samples.
    pub p95: f64,
    /// The multiprocessors' clock meanwhile, in MHz, where it was measured.
    pub sm_clock_mhz: Option<f64>,
}

impl Entry {
    /// An entry with a value. A value, percentile or clock that is no finite number makes it a
    /// failed one.
    #[must_use]
    pub fn measured(name: &str, unit: &str, method: &str, figure: Figure) -> Entry {
        let mut entry = Entry::blank(name, unit, method, EntryStatus::Measured);
        let Figure { value, samples, p5, p95, sm_clock_mhz } = figure;
        entry.samples = samples;
        entry.sm_clock_mhz = sm_clock_mhz.filter(|clock| clock.is_finite());
        if ![value, p5, p95].iter().all(|number| number.is_finite()) {
            return entry.turned(EntryStatus::Failed, "the samples gave no finite number".into());
        }
        (entry.value, entry.p5, entry.p95) = (Some(value), Some(p5), Some(p95));
        (entry.confidence, entry.confidence_reason) = (0.9, "a direct measurement".into());
        entry
    }

    /// An entry that this device cannot have.
    #[must_use]
    pub fn unsupported(name: &str, unit: &str, method: &str, reason: impl Into<String>) -> Entry {
        Entry::blank(name, unit, method, EntryStatus::Unsupported)
            .turned(EntryStatus::Unsupported, reason.into())
    }

    /// An entry whose probe failed.
    #[must_use]
    pub fn failed(name: &str, unit: &str, method: &str, reason: impl Into<String>) -> Entry {
        Entry::blank(name, unit, method, EntryStatus::Failed)
            .turned(EntryStatus::Failed, reason.into())
    }

    /// Says how far to trust the value, from 0 to 1, and why no further.
    #[must_use]
    pub fn trusted(mut self, confidence: f64, reason: impl Into<String>) -> Entry {
        if self.status == EntryStatus::Measured {
            self.confidence = confidence.clamp(0.0, 1.0);
            self.confidence_reason = reason.into();
        }
        self
    }

    /// Adds a curve. Pairs that are not finite are left out.
    #[must_use]
    pub fn along(mut self, x_unit: &str, points: Vec<(f64, f64)>) -> Entry {
        let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        self.points = points.into_iter().filter(finite).collect();
        self.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.x_unit = Some(x_unit.to_owned());
        self
    }

    /// Holds the value against what the silicon can do at most. A value over it is a failed probe:
    /// the bytes or operations were not all moved or done, or the clock lied. No limit is known
    /// where it is `None`.
    #[must_use]
    pub fn within(mut self, limit: Option<f64>, source: &str) -> Entry {
        let Some(limit) = limit.filter(|limit| limit.is_finite() && *limit > 0.0) else {
            return self;
        };
        self.limit = Some(limit);
        self.limit_source = Some(source.to_owned());
        match self.value {
            Some(value) if value > limit => {
                let unit = &self.unit;
                let reason = format!(
                    "{value:.4e} {unit} is over what the silicon can do, {limit:.4e} {unit} \
                     ({source}): not all of it was done, or the clock is wrong"
                );
                self.turned(EntryStatus::Failed, reason)
            }
            _ => self,
        }
    }

    /// Says of a value that is the best of several ways that it is no more than a lower bound of
    /// what the device can do, unless it lies close to the limit; call it after
    /// [`Entry::within`].
    #[must_use]
    pub fn best_of_ways(mut self) -> Entry {
        const CLOSE: f64 = 0.85;
        const TRUSTED: f64 = 0.8;
        if self.status != EntryStatus::Measured {
            return self;
        }
        let why = match self.part_of_limit() {
            Some(part) if part >= CLOSE => return self,
            Some(part) => format!("; a lower bound at {:.0} % of the limit", 100.0 * part),
            None => "; no limit of this architecture is known: it may be a lower bound".to_owned(),
        };
        self.confidence = self.confidence.min(TRUSTED);
        self.confidence_reason += &why;
        self.confidence_reason += ", as it is the best of the ways that were tried";
        self
    }

    /// The value as a part of the limit, where both are known.
    #[must_use]
    pub fn part_of_limit(&self) -> Option<f64> {
        Some(self.value? / self.limit?)
    }

    fn blank(name: &str, unit: &str, method: &str, status: EntryStatus) -> Entry {
        Entry {
            name: name.to_owned(),
            unit: unit.to_owned(),
            status,
            value: None,
            samples: 0,
            p5: None,
            p95: None,
            sm_clock_mhz: None,
            method: method.to_owned(),
            confidence: 0.0,
            confidence_reason: String::new(),
            reason: None,
            limit: None,
            limit_source: None,
            x_unit: None,
            points: Vec::new(),
        }
    }

    /// The entry without a value, and why.
    fn turned(mut self, status: EntryStatus, reason: String) -> Entry {
        (self.status, self.reason) = (status, Some(reason));
        (self.value, self.p5, self.p95) = (None, None, None);
        (self.confidence, self.confidence_reason) = (0.0, "there is no value".into());
        self
    }
}

impl Dossier {
    /// The entry of that name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The measured value of that name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        self.entry(name).and_then(|entry| entry.value)
    }

    /// The dossier as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// None in practice: the types here all have JSON forms.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }

    /// Reads a dossier that this version or an earlier one wrote. Unknown keys are ignored.
    ///
    /// # Errors
    /// If the text is not JSON, is no dossier, or is of a newer schema.
    pub fn from_json(text: &str) -> Result<Dossier, DossierError> {
        Ok(stored::from_json(text, DOSSIER_SCHEMA)?)
    }
}

/// Why a text could not be read as a dossier.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DossierError {
    /// The record was written by a later version.
    #[error(
        "the dossier has schema {found}, and this version of assay reads schemas up to \
         {DOSSIER_SCHEMA}; read it with the version that wrote it, or a later one"
    )]
    Newer {
        /// The schema of the record.
        found: u64,
    },
    /// There is no schema that was ever written.
    #[error("this is not a dossier of assay: it has no `schema` key with a number from 1")]
    NoSchema,
    /// It is not JSON, or a key is missing or of the wrong kind.
    #[error("the dossier does not read as schema {DOSSIER_SCHEMA}: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl From<Unread> for DossierError {
    fn from(unread: Unread) -> DossierError {
        match unread {
            Unread::Newer(found) => DossierError::Newer { found },
            Unread::NoSchema => DossierError::NoSchema,
            Unread::Malformed(error) => DossierError::Malformed(error),
        }
    }
}
