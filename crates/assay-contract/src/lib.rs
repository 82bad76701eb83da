//! The kernel contract: what a kernel registers, the gates it must pass, and the run that judges
//! kernels and planted controls together.
//!
//! A [`spec::Spec`] says what a kernel promises, whether a [`manifest`] or a Rust type states it;
//! a [`subject::Subject`] is that kernel bound to something that runs it; a gate ([`gates`]) sees
//! only subjects and answers with a result; [`run`] takes kernels through gates and decides.

mod bind;
mod build;
pub mod fault;
mod function;
pub mod gates;
mod kernel;
mod launcher;
mod layout;
pub mod limits;
pub mod manifest;
mod memory;
mod meter;
mod prepared;
pub mod repeated;
pub mod run;
pub mod shrink;
pub mod spec;
pub mod subject;
pub mod triton;
pub mod twins;

pub use bind::DeviceSubject;
pub use build::{build, difference};
pub use function::FunctionKernel;
pub use kernel::Kernel;
pub use launcher::Launcher;
pub use manifest::{Manifest, ManifestError, ManifestKernel, load_manifest, parse_manifest};
pub use prepared::{Prepared, stamp_lanes};
pub use run::{CheckOptions, KernelOutcome, Progress, RunOutcome, Silent};
