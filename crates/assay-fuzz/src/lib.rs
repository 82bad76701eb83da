//! Runs candidates over the ugly shapes: empty, prime, misaligned, transposed, strided, broadcast
//! and huge, each with a recipe that repeats it, failures shrunk to the smallest shape.
//!
//! A [`Candidate`] says what its cases are: an [`Operation`] of Rust closures, or a kernel with a
//! manifest. A [`Runner`] runs them, in this process or, as [`Isolated`], in one that may die of
//! it. [`fuzz`] takes a candidate through all of them.

mod call;
mod candidate;
mod closure;
mod envelope;
mod fuzz;
mod isolate;
mod judge;
mod kernel;
mod operands;
mod operation;
pub mod planted;
mod shrink;
mod tensor;

pub use call::fuzz_shapes;
pub use candidate::{Candidate, HUGE, Planned, Runner};
pub use closure::OperationCandidate;
pub use fuzz::{Options, Progress, Silent, fuzz, selected};
pub use isolate::{Isolated, serve};
pub use kernel::{KernelCandidate, KernelRunner, Limits};
pub use operation::{Body, Operation, OperationShapes, Refusal};
pub use tensor::View;
