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
mod dossier;
pub mod ends;
mod hang;
pub mod host;
mod latency;
pub mod launch;
mod memory;
mod onchip;
pub mod stream;

use assay_record::{Entry, Figure};

pub use context::{ProbeContext, ProbeError, Rate};
pub use dossier::{Head, conditions, describe, take};
pub use hang::HANG;

/// With this begins the doubt about a figure that says as much of the host as of the device.
pub(crate) const HOST_CLOCK: &str = "the host's clock";

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

/// All probes, in the order in which they run: what launching costs first, since a context that
/// has run other kernels takes longer for each; then bandwidths, which warm it up.
pub fn probes() -> Vec<Probe> {
    let mut all = launch::PROBES.to_vec();
    all.extend([memory::PROBE, onchip::L2, onchip::SHARED, latency::PROBE]);
    all.extend(host::PROBES);
    all.extend(compute::PROBES);
    all
}

/// The quantities of a probe that a context asks for.
fn wanted<'p>(context: &ProbeContext<'_>, probe: &'p Probe) -> Vec<&'p Quantity> {
    probe.quantities.iter().filter(|quantity| context.wants(quantity)).collect()
}

/// The probes with a quantity that a context asks for.
pub fn select(context: &ProbeContext<'_>, probes: &[Probe]) -> Vec<Probe> {
    probes.iter().filter(|probe| !wanted(context, probe).is_empty()).copied().collect()
}

/// What [`run`] tells its caller while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// A probe begins.
    Started(&'a Probe),
    /// A probe has ended with these entries.
    Finished(&'a Probe, &'a [Entry]),
}

/// Runs probes one after another and gives an entry for every quantity of them that is asked for.
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
        let wanted = wanted(context, probe);
        let made = match context.lost() {
            Some(cause) => {
                let reason = format!("not run: the device was lost before it: {cause}");
                wanted.iter().map(|quantity| quantity.failed(&reason)).collect()
            }
            None if wanted.is_empty() => Vec::new(),
            None => {
                let made = (probe.run)(context);
                complete(&wanted, made, context.lost())
            }
        };
        progress(Progress::Finished(probe, &made));
        entries.extend(made);
    }
    entries
}

/// One entry for each quantity, and no others.
fn complete(wanted: &[&Quantity], mut made: Vec<Entry>, lost: Option<&str>) -> Vec<Entry> {
    let missing = match lost {
        Some(cause) => format!("not run: the device was lost before it: {cause}"),
        None => "the probe ended without it".to_owned(),
    };
    let take = |quantity: &&Quantity| match made.iter().position(|e| e.name == quantity.name) {
        Some(index) => made.swap_remove(index),
        None => quantity.failed(&missing),
    };
    wanted.iter().map(take).collect()
}
