//! The suite's sources as HIP: clang, called without `ROCm`, and its code objects read back.
//!
//! Every code object is read by `assay-image` and, where it is installed, by `llvm-readelf` as
//! well: a record is a number that both agree on.

mod compiler;
mod readelf;
mod toolchain;

pub(crate) use compiler::{Compiler, OPTIONS};
pub(crate) use toolchain::{install, installed};

#[cfg(test)]
mod tests;
