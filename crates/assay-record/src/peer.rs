//! Peers of a dossier's entries: what another library got of the same thing, on the same device
//! and in the same call.

use serde::{Deserialize, Serialize};

use crate::dossier::{Dossier, Entry};

/// One figure of another library.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// The entry that it stands beside: `dram_read`.
    pub entry: String,
    /// What was measured: `torch sum`.
    pub name: String,
    /// The library's version.
    pub version: String,
    /// The median of its samples.
    pub value: f64,
    /// The value's unit, which is the entry's.
    pub unit: String,
    /// Samples.
    pub n: u64,
    /// The 95th less the 5th percentile of the samples.
    pub spread: f64,
}

/// How an entry stands to its best peer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PeerStanding<'a> {
    /// The peer with the best figure.
    pub peer: &'a Peer,
    /// How many times as good the entry is: over 1 it is the better one, whether the unit is one of
    /// a rate or of a time.
    pub times: f64,
    /// Whether the entry's better end (of its 5th and 95th percentile) is worse than the peer by
    /// more than the peer's spread.
    pub below: bool,
}

/// Whether less of a unit is better: times are, rates are not.
fn less_is_better(unit: &str) -> bool {
    matches!(unit, "ns" | "us" | "ms" | "s" | "cycles")
}

impl Dossier {
    /// The entry's standing to the best of its peers; none where it has no value or no peer.
    #[must_use]
    pub fn standing(&self, entry: &Entry) -> Option<PeerStanding<'_>> {
        let value = entry.value.filter(|value| *value > 0.0)?;
        let less = less_is_better(&entry.unit);
        let good = |value: f64| if less { 1.0 / value } else { value };
        let peers = self.peers.iter().filter(|peer| peer.entry == entry.name && peer.value > 0.0);
        let peer = peers.max_by(|a, b| good(a.value).total_cmp(&good(b.value)))?;
        let end = if less { entry.p5 } else { entry.p95 }.unwrap_or(value);
        let behind = if less { end - peer.value } else { peer.value - end };
        let times = good(value) / good(peer.value);
        Some(PeerStanding { peer, times, below: behind > peer.spread })
    }
}
