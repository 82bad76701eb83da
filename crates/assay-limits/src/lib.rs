//! Whether a launch fits a chip: tables of chips, recorded compiles for each compiler release, and
//! the rules of gate 5. Knows the facts of kernels, and not how an image is parsed.

mod chips;
mod cuda;
mod fit;
mod hip;
mod launch;
mod metal;
mod metal_records;
mod occupancy;
mod offline;
mod records;
mod rule;

pub use chips::{Chip, ChipError, Chips, CudaChip, HipChip, MetalChip, Sourced, Vendor};
pub use cuda::fit_cuda;
pub use fit::{Fit, Need, Problem, Verdict};
pub use hip::fit_hip;
pub use launch::Launch;
pub use metal::fit_metal;
pub use metal_records::{
    Exemption, MaxThreads, MetalCompile, MetalPipeline, MetalRecord, MetalRecords,
    MetalRecordsError,
};
pub use occupancy::{Occupancy, Place, Resource};
pub use offline::{Mac, NotNative, Offline, OfflineError, Workshop, native_code, offline};
pub use records::{
    COMMAND as RECORDS_COMMAND, Change, Chosen, Difference, Digest, FieldChange, FileName, NoSet,
    NotADigest, RecordSet, Recorded, Records, RecordsError, RecordsProblem, SourceText, Stale,
    StaleReason,
};
pub use rule::Rule;
