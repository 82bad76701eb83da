//! Measures a device and the kernels that run on it: clocks, timing, statistics, probes, dossiers,
//! sweeps and stamps.
//!
//! What is measured here is plain data of `assay-record`, with its unit, sample count, spread and
//! the clock it was taken at. Gates are not known here: a kernel that has passed its checks comes
//! with a token that says so, and only such a kernel is timed.
//!
//! A [`Stopwatch`] times launches as a [`Plan`] says and gives [`Samples`]; a [`Summary`] holds
//! what they say. docs/measuring.md tells how, and what cannot be known this way.

pub mod certify;
mod clock;
mod drift;
mod error;
mod pinned;
mod plan;
pub mod probe;
mod record;
mod samples;
pub mod stamps;
pub mod statistics;
mod stopwatch;
mod summary;
pub mod sweep;
mod ulp;
mod verdict;
mod versus;
mod watch;

pub use clock::{Taken, is_off, reference_clock};
pub use drift::dossier_drift;
pub use error::MeasureError;
pub use pinned::{pinned_dossiers, pinned_for};
pub use plan::{Cache, Plan};
pub use record::{place, series, versus_series};
pub use samples::{Ended, Method, Rejected, Samples};
pub use stopwatch::{Bracket, Stopwatch, Work};
pub use summary::Summary;
pub use ulp::ulp_diff;
pub use verdict::{Bar, Judged, Pairs, decide, effect, judge};
pub use versus::VersusPlan;
pub use watch::{Gauge, Reading};
