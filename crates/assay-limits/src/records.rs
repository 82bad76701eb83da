//! What each release of a compiler made of the suite's kernels, for every chip.
//!
//! A set holds one release: the facts of every kernel on every chip, and a digest of every source
//! that they were compiled from. Registers differ from one release to the next, though rarely, so
//! a launch is checked against the newest set at or below the release that it is compiled with,
//! and the answer says which one that was. On disk a set stores only what differs from the set of
//! the release before it.

mod choice;
mod digest;
mod file;
mod set;
mod stale;

use assay_image::{CudaKernel, HipKernel, Release};

pub use choice::{Chosen, NoSet};
pub use digest::{Digest, NotADigest, SourceText};
pub use file::{FileName, Problem as RecordsProblem, RecordsError};
pub use set::{Change, Difference, FieldChange, RecordSet, Recorded};
pub use stale::{Stale, StaleReason};

/// The command that makes the records anew; every failure about records names it.
pub const COMMAND: &str = "cargo xtask records";

/// The sets that come with the program: the file's name and its text.
const BUILT_IN: &[(&str, &str)] = &[
    ("cuda-13.0.88.json", include_str!("../../../records/limits/cuda-13.0.88.json")),
    ("cuda-13.2.86.json", include_str!("../../../records/limits/cuda-13.2.86.json")),
    ("cuda-13.3.73.json", include_str!("../../../records/limits/cuda-13.3.73.json")),
    ("cuda-13.5.37.json", include_str!("../../../records/limits/cuda-13.5.37.json")),
    ("hip-19.1.7.json", include_str!("../../../records/limits/hip-19.1.7.json")),
    ("hip-22.1.8.json", include_str!("../../../records/limits/hip-22.1.8.json")),
];

/// Every set of records, for both vendors whose compilers can be recorded.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Records {
    /// One set for each release of nvcc, oldest first.
    pub cuda: Vec<RecordSet<CudaKernel>>,
    /// One set for each release of clang, oldest first.
    pub hip: Vec<RecordSet<HipKernel>>,
}

impl Records {
    /// The records of the built-in suite.
    ///
    /// # Errors
    ///
    /// None as long as the tests pass, which read the same texts.
    pub fn built_in() -> Result<Records, RecordsError> {
        Records::read(BUILT_IN.iter().copied())
    }

    /// Reads sets from files, each a name (for the errors) and a text, in any order.
    ///
    /// # Errors
    ///
    /// The file and what is wrong with it: no JSON, another schema, a record twice, or the set of
    /// the release before it missing.
    pub fn read<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Records, RecordsError> {
        file::read(files)
    }

    /// The texts of all sets, each with its file's name: what [`Records::read`] reads.
    pub fn write(&self) -> Vec<(String, String)> {
        let mut files = file::write(&self.cuda);
        files.extend(file::write(&self.hip));
        files
    }

    /// The CUDA records for images of one release, or of the oldest release recorded where the
    /// release is not known.
    ///
    /// # Errors
    ///
    /// No set is of that release or an older one; the error says what to do.
    pub fn cuda_for(&self, release: Option<Release>) -> Result<Chosen<'_, CudaKernel>, NoSet> {
        choice::choose(&self.cuda, release)
    }

    /// The HIP records for code objects of one release of clang, or of the oldest recorded.
    ///
    /// # Errors
    ///
    /// No set is of that release or an older one; the error says what to do.
    pub fn hip_for(&self, release: Option<Release>) -> Result<Chosen<'_, HipKernel>, NoSet> {
        choice::choose(&self.hip, release)
    }

    /// A kernel as the oldest release of nvcc recorded compiles it. The module is the source's
    /// path in the suite without `.cu` (`rms_norm`, `controls/norms`), the chip such as `sm_90`.
    pub fn cuda(&self, module: &str, symbol: &str, chip: &str) -> Option<&CudaKernel> {
        self.cuda.first()?.get(module, symbol, chip)
    }

    /// A kernel as the oldest release of clang recorded compiles it; the chip such as `gfx1100`.
    pub fn hip(&self, module: &str, symbol: &str, chip: &str) -> Option<&HipKernel> {
        self.hip.first()?.get(module, symbol, chip)
    }
}

#[cfg(test)]
mod tests;
