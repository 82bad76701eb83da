//! What a dossier was held against: invariants that every working device satisfies, each with the
//! control that shows that it can fail, and an earlier dossier of the same kind of device.

use serde::{Deserialize, Serialize};

use crate::stored;

/// The schema of certificates that this version writes, and the newest that it reads.
pub const CERTIFICATE_SCHEMA: u32 = 1;

/// A dossier's certificate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Certificate {
    /// The version of this layout.
    pub schema: u32,
    /// The version of Assay that wrote it.
    pub assay_version: String,
    /// The command line.
    pub command: String,
    /// When, in UTC.
    pub date: String,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// When the dossier was made, in UTC.
    pub dossier_date: String,
    /// The invariants.
    pub invariants: Vec<InvariantResult>,
    /// The differences from a pinned dossier, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// What else was not as it should be, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What became of an invariant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InvariantStanding {
    /// The figures satisfy it.
    Holds,
    /// They do not.
    Broken,
    /// A figure is missing since its probe failed: nothing was shown.
    Unproven,
    /// A figure is missing that this device, or this run, does not have.
    Inapplicable,
}

/// One invariant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InvariantResult {
    /// Its name: `l2_over_dram`.
    pub name: String,
    /// What it says, in a sentence.
    pub claim: String,
    /// What became of it.
    pub standing: InvariantStanding,
    /// The figures, in words.
    pub found: String,
    /// The control.
    pub control: InvariantControl,
}

/// The same invariant on a dossier that was doctored to break it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InvariantControl {
    /// What was changed.
    pub doctored: String,
    /// Whether the invariant was seen broken, as it must be.
    pub red: bool,
    /// The figures, in words.
    pub found: String,
}

impl Certificate {
    /// Whether nothing is broken, no control is green and no entry has drifted for the worse.
    #[must_use]
    pub fn holds(&self) -> bool {
        let sound = |result: &InvariantResult| {
            result.standing != InvariantStanding::Broken && result.control.red
        };
        self.invariants.iter().all(sound)
            && self.drift.as_ref().is_none_or(|drift| drift.worse().next().is_none())
    }

    /// Whether an invariant could not be judged since a probe had failed.
    #[must_use]
    pub fn is_unproven(&self) -> bool {
        self.invariants.iter().any(|result| result.standing == InvariantStanding::Unproven)
    }

    /// The certificate as JSON, indented, ending in a line break.
    ///
    /// # Errors
    /// None in practice: the types here all have JSON forms.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        stored::to_json(self)
    }
}

/// The differences of one dossier from another.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Drift {
    /// The device, driver and date of the earlier dossier.
    pub pinned: String,
    /// The device, driver and date of the later one.
    pub current: String,
    /// Why the two are hardly comparable, such as other devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// The relative change from which on an entry has drifted.
    pub rel_tol: f64,
    /// One for every entry of either.
    pub entries: Vec<EntryDrift>,
}

impl Drift {
    /// The entries that drifted for the worse or lost their figure.
    pub fn worse(&self) -> impl Iterator<Item = &EntryDrift> {
        let is_worse = |entry: &&EntryDrift| {
            matches!(entry.standing, DriftStanding::Worse | DriftStanding::Lost)
        };
        self.entries.iter().filter(is_worse)
    }
}

/// How an entry has drifted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftStanding {
    /// Within the tolerance.
    Steady,
    /// Outside it, for the better.
    Better,
    /// Outside it, for the worse.
    Worse,
    /// Outside it; the unit does not tell which way is better.
    Changed,
    /// It had a figure and has none.
    Lost,
    /// It has a figure and had none.
    New,
    /// Neither has a figure.
    Absent,
}

/// One entry in both dossiers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct EntryDrift {
    /// The entry's name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The earlier value.
    pub pinned: Option<f64>,
    /// The later value.
    pub current: Option<f64>,
    /// The later over the earlier, less 1.
    pub change: Option<f64>,
    /// The same with every rate or time put in cycles of the SM clock it was taken at: what is left
    /// of the change when the clocks are put aside.
    pub change_in_cycles: Option<f64>,
    /// How it has drifted.
    pub standing: DriftStanding,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
