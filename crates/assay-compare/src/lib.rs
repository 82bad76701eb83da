//! Compares two outputs: how far apart, where, in which way, and whether the order in which sums
//! may be taken explains it.
//!
//! Inputs are host arrays, device buffers and files of arrays. The counts are the same to the bit
//! on the CPU and on a GPU, and the sums too: they are taken in one fixed tree.
//!
//! ```
//! use assay_compare::{Options, Tensor, compare};
//! use assay_record::Tolerance;
//!
//! let reference = Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0])?;
//! let candidate = Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.5])?;
//! let options = Options { tolerance: Tolerance::new(1e-5, 1e-5), ..Options::default() };
//! let comparison = compare(&reference.view(), &candidate.view(), &options)?;
//! assert!(!comparison.passes());
//! assert_eq!(comparison.first_outside, Some(vec![1, 1]));
//! # Ok::<(), assay_compare::CompareError>(())
//! ```

#![expect(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the vectors that the processor has"
)]

mod ahead;
mod array;
mod band;
mod bounds;
mod compare;
mod counts;
mod device;
mod error;
mod files;
mod judge;
mod map;
mod operation;
mod quick;
mod row;
mod scan;
mod shuffle;
mod source;
mod student;
mod sums;
mod table;
mod tables;
mod tree;
mod wander;
mod worst;

pub use array::{ArrayView, Tensor};
pub use band::{BandOptions, Bands, compare_shuffled, shuffled_map};
pub use compare::{Options, Side, compare, compare_sources, compare_with_progress};
pub use counts::{BLOCK, Counts, LANES};
pub use device::{DeviceArray, DeviceComparer};
pub use error::{ArrayError, CompareError};
pub use files::{ArrayFile, EntryError, FileEntry, FileError, NpzWriter};
pub use map::error_map;
pub use operation::{Generator, Operation, compare_generated, compare_operations};
pub use shuffle::Shuffle;
pub use source::{Source, SourceError};
pub use sums::{matmul, sum_last_dim};
