//! Triton sources as modules: what a manifest says of one, and what compiling it gives.
//!
//! Plain data. Whoever reads manifests from disk compiles ([`crate::manifest::Files::triton`]);
//! nothing here starts a compiler.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::limits::Compiled;

/// One kernel of a Triton source, and how it is compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct TritonSource {
    /// The Python file, relative to the manifest.
    pub file: PathBuf,
    /// The name of the function in it.
    pub function: String,
    /// The types of the parameters that are no constexprs, in order, with Triton's hints:
    /// `*fp32:16` is a pointer that 16 divides.
    pub signature: Vec<String>,
    /// The values of the constexprs, by name.
    pub constexprs: BTreeMap<String, TritonValue>,
    /// Options of the compile: `num_warps`, `num_stages`, `num_ctas`, `maxnreg`, ...
    pub options: BTreeMap<String, TritonValue>,
    /// The architectures to compile for: 90 for `sm_90`.
    pub targets: Vec<u32>,
}

/// A value that a manifest gives to Triton.
#[derive(Debug, Clone, PartialEq)]
pub enum TritonValue {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text; `None`, and names such as `tl.float16`, stand for what Python calls so.
    Text(String),
}

/// What Triton made of a source for one target.
#[derive(Debug, Clone)]
pub struct TritonBuild {
    /// The PTX.
    pub ptx: String,
    /// Where the PTX lies, for messages.
    pub path: PathBuf,
    /// What the assembler made of it, where there is one.
    pub compiled: Compiled,
    /// What a launch needs to know.
    pub facts: TritonFacts,
}

/// What Triton's metadata says of a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TritonFacts {
    /// The kernel's symbol in the PTX.
    pub symbol: String,
    /// Warps of a block, those of warp specialization included.
    pub warps: u32,
    /// Blocks of a cluster, 1 without clusters; each of them is one of the grid's along x.
    pub blocks_per_cluster: u32,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// The memory behind the first hidden pointer: bytes a block, and their alignment.
    pub global_scratch: (u64, u64),
    /// The memory behind the second hidden pointer.
    pub profile_scratch: (u64, u64),
    /// True if all blocks must be resident together.
    pub cooperative: bool,
}

/// Why there is no build for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TritonFailure {
    /// There is no Triton on this machine, or it cannot be used: nothing is known of the source.
    Missing {
        /// What was looked for, and how to install it.
        what: String,
    },
    /// Triton does not compile the source.
    Refused {
        /// What Triton said.
        message: String,
        /// What to do next.
        hint: Option<String>,
    },
}

/// The builds of a source, in the order of its targets.
pub type TritonBuilds = Vec<(u32, Result<TritonBuild, TritonFailure>)>;
