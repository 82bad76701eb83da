//! Phase stamps: the buffer that `kernels/measure/stamps.cuh` fills, what it says, and what a stamp
//! costs.
//!
//! An author includes that header, marks phases, and passes [`StampBuffer::argument`] behind the
//! kernel's own arguments. [`StampBuffer::read`] gives the lanes, and [`statistics`] what each
//! phase took.

mod buffer;
mod demo;
mod summary;

use assay_device::DeviceError;
use thiserror::Error;

pub use buffer::{MOST_BYTES, StampBuffer};
pub use demo::{DEMO_PHASES, Demo, demo, overhead};
pub use summary::{sm_clock_mhz, statistics, warnings};

/// The header, for those who have no copy of the repository at hand.
pub const HEADER: &str = include_str!("../../../../kernels/measure/stamps.cuh");

/// Why there are no stamps.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum StampError {
    /// The device refused or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A buffer that cannot be.
    #[error("{lanes} lanes of {capacity} stamps {why}")]
    Size {
        /// Lanes asked for.
        lanes: u32,
        /// Stamps of each.
        capacity: u32,
        /// What is wrong with them.
        why: String,
    },
    /// The stamped kernel computed something else than the unstamped one would.
    #[error("the stamped demonstration computed {found} in block {block}, not {wanted}")]
    Wrong {
        /// The block.
        block: u32,
        /// What it computed.
        found: f32,
        /// What it should have.
        wanted: f32,
    },
}
