//! The nouns that Assay stores and passes on: case, evidence, gate result, report.
//!
//! Everything here is plain data. A [`CaseName`] holds all that is needed to run a case again and
//! is its own repro command; a [`Report`] is what `--json` writes and a later version reads back.
//! How any of it is made is not known here.
//!
//! # Versions
//!
//! A stored record carries `schema`. Within one schema, keys may be added and readers ignore those
//! that they do not know. Anything else (a removed key, a new word for an outcome) raises
//! [`SCHEMA`], and an older reader says that the record is newer than itself.

mod bench;
mod case;
mod certificate;
mod checked;
mod chip;
mod comparison;
mod dossier;
mod error_map;
mod exit;
mod fault;
mod fuzz;
mod gate;
mod number;
mod outcome;
mod peer;
mod recipe;
mod report;
mod shard;
mod stamps;
mod stored;
mod sweep;
mod watched;

pub use bench::{
    BENCH_SCHEMA, BenchError, BenchRecord, Effect, FlopCount, Placement, RejectedSample, Rounds,
    Series, Timing, Verdict, Versus,
};
pub use case::{CaseName, CaseNameError};
pub use certificate::{
    CERTIFICATE_SCHEMA, Certificate, Drift, DriftStanding, EntryDrift, InvariantControl,
    InvariantResult, InvariantStanding,
};
pub use checked::{Checked, NotChecked, Standing};
pub use chip::{ChipFit, ChipOccupancy, LoadedKernel, LoadedOccupancy};
pub use comparison::{
    BandEvidence, COMPARISON_SCHEMA, ClassPair, Comparison, ComparisonReport, ErrorEvidence,
    Finding, FindingKind, NotCompared, OutputFloor, Tolerance, UlpEvidence, WorstElement,
};
pub use dossier::{
    Conditions, DOSSIER_SCHEMA, Dossier, DossierError, Entry, EntryStatus, Figure, ProbedDevice,
};
pub use error_map::{ErrorMap, MOST_CELLS};
pub use exit::ExitCode;
pub use fault::{Discrimination, FaultResult, FaultVerdict};
pub use fuzz::{
    FUZZ_SCHEMA, FuzzCandidate, FuzzCase, FuzzCounts, FuzzFailure, FuzzKind, FuzzReport, FuzzSkip,
    FuzzSummary, FuzzVerdict,
};
pub use gate::{Gate, UnknownGate};
pub use number::Number;
pub use outcome::Outcome;
pub use peer::{Peer, PeerStanding};
pub use recipe::{FuzzShape, Recipe, RecipeError, ViewStep};
pub use report::{
    Build, DeviceRecord, Evidence, GateResult, KernelResult, ReadError, Report, SCHEMA, Smallest,
    Summary,
};
pub use shard::{NoPart, Part, Shard};
pub use stamps::{Mark, PhaseStatistics, STAMPS_SCHEMA, StampLane, StampOverhead, StampRecord};
pub use sweep::{Configuration, RowStatus, SWEEP_SCHEMA, SweepRecord, SweepRow, SweepVerdict};
pub use watched::{ReasonSeen, Spread, Watched};
