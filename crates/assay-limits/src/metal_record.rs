//! What is recorded of a Metal pipeline on one chip: there is no formula for it.

use serde::{Deserialize, Serialize};

/// One pipeline on one chip.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetalRecord {
    /// The pipeline's function, with its constants where it has some.
    pub pipeline: String,
    /// The most threads of a threadgroup.
    pub max_threads: MaxThreads,
    /// Threadgroup memory that the source declares, in bytes.
    pub threadgroup_bytes: u64,
    /// Threads of a SIMD group, where it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_width: Option<u32>,
    /// True if the kernel uses the tensor operations of Metal 4.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tensor_operations: bool,
}

/// The most threads of a threadgroup, or why it need not be known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaxThreads {
    /// A compile for the chip, or the pipeline on it, says so many.
    Compiled(u32),
    /// The launcher sizes its groups to the pipeline it made.
    SizedToPipeline,
    /// The source reserves so many (`[[max_total_threads_per_threadgroup(n)]]`).
    Reserved(u32),
    /// Nothing is recorded.
    Unknown,
}
