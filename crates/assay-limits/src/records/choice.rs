//! Which set an image of some release is checked against.

use std::fmt;
use std::ops::Deref;

use assay_image::Release;

use super::COMMAND;
use super::set::{RecordSet, Recorded};

/// A set, and what it was chosen for: part of every answer that is taken from it.
#[derive(Debug)]
pub struct Chosen<'a, K> {
    /// The set.
    pub set: &'a RecordSet<K>,
    /// The release that was asked for, where it is known.
    pub asked: Option<Release>,
}

impl<K> Clone for Chosen<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Chosen<'_, K> {}

impl<K> Deref for Chosen<'_, K> {
    type Target = RecordSet<K>;

    fn deref(&self) -> &RecordSet<K> {
        self.set
    }
}

impl<K: Recorded> fmt::Display for Chosen<'_, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = self.set.release;
        write!(formatter, "records of {} {release}", K::COMPILER)?;
        match self.asked {
            Some(asked) if asked == release => Ok(()),
            Some(asked) if line(asked) == line(release) => {
                write!(formatter, ", of the same line as {asked}")
            }
            Some(asked) => write!(formatter, ", the newest at or below {asked}"),
            None => formatter.write_str(", the oldest, since no release is named"),
        }
    }
}

/// No set serves a release.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoSet {
    /// There are no records of this compiler at all.
    #[error("there are no records of {compiler}: `{COMMAND}` makes them")]
    Empty {
        /// The compiler.
        compiler: &'static str,
    },
    /// All sets are of newer releases.
    #[error(
        "no records of {compiler} at or below release {asked}: the oldest are of {oldest}; install \
         that release and run `{COMMAND}`, or check its images by themselves with `assay limits`"
    )]
    Older {
        /// The compiler.
        compiler: &'static str,
        /// What was asked for.
        asked: Release,
        /// The oldest that there is.
        oldest: Release,
    },
}

/// Patches of one line share a set: an image of 13.0.48 is checked against the set of 13.0.88.
fn line(release: Release) -> (u16, u16) {
    (release.major, release.minor)
}

/// The newest set at or below a release; the oldest where the release is not known. `sets` are in
/// the order of their releases.
pub(super) fn choose<K: Recorded>(
    sets: &[RecordSet<K>],
    asked: Option<Release>,
) -> Result<Chosen<'_, K>, NoSet> {
    let oldest = sets.first().ok_or(NoSet::Empty { compiler: K::COMPILER })?;
    let Some(release) = asked else { return Ok(Chosen { set: oldest, asked }) };
    let set = sets.iter().rev().find(|set| line(set.release) <= line(release));
    let older = NoSet::Older { compiler: K::COMPILER, asked: release, oldest: oldest.release };
    Ok(Chosen { set: set.ok_or(older)?, asked })
}
