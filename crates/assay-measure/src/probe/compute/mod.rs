//! What a device computes, and what its threads cost each other: multiply-add, tensor cores,
//! atomics, barriers, occupancy, and the clock under load.
//!
//! Every kernel leaves results that tell whether all of its work was done: the ends of chaotic
//! orbits, every accumulator, every word added to. A rate whose results are not right is no rate.

mod atomics;
mod barrier;
mod clock;
mod contention;
#[cfg(test)]
mod controls_test;
mod fma;
mod load;
mod matrix;
mod occupancy;
mod products;
#[cfg(test)]
mod products_test;
mod rate;
mod rates;
mod silicon;
#[cfg(test)]
mod small_test;
mod span;
mod tile_check;
#[cfg(test)]
mod whole_test;
mod wide;

pub use clock::measure_clock;
pub use tile_check::{TileCheck, mma_tile_check};

use super::{Probe, ProbeContext, ProbeError, Quantity};

/// The probes of this module, in the order in which they run.
pub(super) const PROBES: [Probe; 7] = [
    occupancy::OCCUPANCY_PROBE,
    contention::ATOMICS_PROBE,
    contention::BARRIER_PROBE,
    rates::FMA_PROBE,
    rates::MMA_PROBE,
    rates::WGMMA_PROBE,
    load::LOAD_PROBE,
];
