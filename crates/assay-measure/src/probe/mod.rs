//! Probes: kernels built to show one thing that a device can do, each making an entry of a
//! [dossier](assay_record::Dossier).
//!
//! A probe is a function from a [`ProbeContext`] to entries, registered in [`probes`] with the
//! quantities that it gives. It works on random data and checks what its kernel did, so that a
//! kernel that skips part of its work gives a failed entry and no figure.

pub mod cached;
pub mod chase;
pub mod compute;
pub mod contents;
mod context;
pub mod host;
pub mod launch;
pub mod stream;

use assay_record::{Entry, Figure};

pub use context::{ProbeContext, ProbeError};

/// What an entry is: its name, unit and method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// The entry's name: `dram_read`.
    pub name: &'static str,
    /// Its unit: `B/s`.
    pub unit: &'static str,
    /// How it is measured, in a sentence.
    pub method: &'static str,
}

impl Quantity {
    /// The quantity's entry with a value.
    #[must_use]
    pub fn measured(&self, figure: Figure) -> Entry {
        Entry::measured(self.name, self.unit, self.method, figure)
    }

    /// The quantity's entry on a device that has no such thing.
    #[must_use]
    pub fn unsupported(&self, reason: impl Into<String>) -> Entry {
        Entry::unsupported(self.name, self.unit, self.method, reason)
    }

    /// The quantity's entry after a failed probe.
    #[must_use]
    pub fn failed(&self, reason: impl Into<String>) -> Entry {
        Entry::failed(self.name, self.unit, self.method, reason)
    }
}

/// One probe: a kernel or a few, and the quantities that come of them.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// What progress calls it.
    pub title: &'static str,
    /// The entries that it makes, in order.
    pub quantities: &'static [Quantity],
    /// Makes them. A quantity without an entry counts as failed.
    pub run: fn(&mut ProbeContext<'_>) -> Vec<Entry>,
}

/// All probes, in the order in which they run: bandwidths first, since they warm the device up.
pub fn probes() -> Vec<Probe> {
    let mut all = Vec::new();
    all.extend(host::PROBES);
    all.extend(launch::PROBES);
    all.extend(compute::PROBES);
    all
}

/// The probes with a quantity whose name contains `text`.
pub fn select(probes: &[Probe], text: &str) -> Vec<Probe> {
    let named = |probe: &&Probe| probe.quantities.iter().any(|q| q.name.contains(text));
    probes.iter().filter(named).copied().collect()
}

/// What [`run`] tells its caller while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A probe begins.
    Started(&'a Probe),
    /// A probe has ended with these entries.
    Finished(&'a Probe, &'a [Entry]),
}

/// Runs probes one after another and gives an entry for every quantity of them.
///
/// A probe that fails fails alone. Once the device is lost, what is left is not tried, and its
/// entries say so: [`ProbeContext::lost`] has the cause.
pub fn run(
    context: &mut ProbeContext<'_>,
    probes: &[Probe],
    progress: &mut dyn FnMut(Progress<'_>),
) -> Vec<Entry> {
    let mut entries = Vec::new();
    for probe in probes {
        progress(Progress::Started(probe));
        let made = match context.lost() {
            Some(cause) => {
                let reason = format!("not run: the device was lost before it: {cause}");
                probe.quantities.iter().map(|quantity| quantity.failed(&reason)).collect()
            }
            None => complete(probe, (probe.run)(context)),
        };
        progress(Progress::Finished(probe, &made));
        entries.extend(made);
    }
    entries
}

/// One entry for each quantity of the probe, and no others.
fn complete(probe: &Probe, mut made: Vec<Entry>) -> Vec<Entry> {
    let take = |quantity: &Quantity| match made.iter().position(|entry| entry.name == quantity.name)
    {
        Some(index) => made.swap_remove(index),
        None => quantity.failed("the probe ended without it"),
    };
    probe.quantities.iter().map(take).collect()
}
