//! Records that are no longer of what they say: a failure, always with the command that mends it.

use std::collections::BTreeMap;
use std::fmt;

use assay_image::Release;

use super::COMMAND;
use super::digest::Digest;
use super::set::{Change, Difference, RecordSet, Recorded};

/// Why a record does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stale {
    /// The compiler: `nvcc`.
    pub compiler: &'static str,
    /// The release of the set.
    pub release: Release,
    /// What is wrong.
    pub reason: StaleReason,
}

/// What is wrong with a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StaleReason {
    /// A source, a header or an option has changed since it was recorded.
    Source(String),
    /// A module that the set does not hold.
    Missing(String),
    /// A module that the set holds and the suite has no more.
    Removed(String),
    /// The compiler makes something else of a kernel.
    Facts(Difference),
}

impl fmt::Display for Stale {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stale { compiler, release, reason } = self;
        write!(formatter, "stale records of {compiler} {release}: ")?;
        match reason {
            StaleReason::Source(module) => {
                write!(formatter, "what {module} is compiled from has changed")?;
            }
            StaleReason::Missing(module) => write!(formatter, "{module} is not recorded")?,
            StaleReason::Removed(module) => {
                write!(formatter, "{module} is recorded and is no source of the suite")?;
            }
            StaleReason::Facts(Difference { module, symbol, chip, change: Change::New }) => {
                write!(formatter, "{module}/{symbol} on {chip} is compiled and not recorded")?;
            }
            StaleReason::Facts(difference) => write!(formatter, "{difference}")?,
        }
        write!(formatter, "; derive them again with `{COMMAND} --release {release}`")
    }
}

impl<K: Recorded> RecordSet<K> {
    /// Where the digests of the set are not those of the sources today.
    pub fn stale_sources(&self, today: &BTreeMap<String, Digest>) -> Vec<Stale> {
        let mut reasons = Vec::new();
        for (module, digest) in today {
            match self.sources.get(module) {
                None => reasons.push(StaleReason::Missing(module.clone())),
                Some(recorded) if recorded == digest => {}
                Some(_) => reasons.push(StaleReason::Source(module.clone())),
            }
        }
        let removed = self.sources.keys().filter(|module| !today.contains_key(*module));
        reasons.extend(removed.cloned().map(StaleReason::Removed));
        reasons.into_iter().map(|reason| self.stale(reason)).collect()
    }

    /// Where the set does not hold what its compiler has just made, among the modules and chips
    /// that `within` names.
    pub fn stale_facts(
        &self,
        fresh: &RecordSet<K>,
        within: impl Fn(&str, &str) -> bool,
    ) -> Vec<Stale> {
        let differences = self.differences(fresh, within).into_iter();
        differences.map(|difference| self.stale(StaleReason::Facts(difference))).collect()
    }

    fn stale(&self, reason: StaleReason) -> Stale {
        Stale { compiler: K::COMPILER, release: self.release, reason }
    }
}
