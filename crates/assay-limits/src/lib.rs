//! Whether a launch fits a chip: tables of chips, recorded compiles for each compiler release, and
//! the rules of gate 5. Knows the facts of kernels, and not how an image is parsed.

mod launch;
mod records;

pub use launch::Launch;
pub use records::{
    COMMAND as RECORDS_COMMAND, Change, Chosen, Difference, Digest, FieldChange, FileName, NoSet,
    NotADigest, RecordSet, Recorded, Records, RecordsError, RecordsProblem, SourceText, Stale,
    StaleReason,
};
