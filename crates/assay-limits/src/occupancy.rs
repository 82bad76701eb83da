//! How many blocks of a launch are resident at once, and what holds back the next one.

use std::fmt;

use serde::Serialize;

/// How full one multiprocessor is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Occupancy {
    /// Blocks resident at once in one place.
    pub blocks: u32,
    /// Their warps, or waves.
    pub warps: u32,
    /// The warps, or waves, that the place can hold.
    pub warps_max: u32,
    /// What a place is.
    pub place: Place,
    /// What leaves no room for one more block: every resource that is exhausted.
    pub binding: Vec<Resource>,
}

/// Where blocks are resident.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A streaming multiprocessor (CUDA).
    Multiprocessor,
    /// A compute unit (HIP).
    ComputeUnit,
    /// A pair of compute units (HIP, work-group processor mode).
    WorkgroupProcessor,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Place::Multiprocessor => "multiprocessor",
            Place::ComputeUnit => "compute unit",
            Place::WorkgroupProcessor => "work-group processor",
        })
    }
}

/// What blocks take of a multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Slots of warps or waves.
    Warps,
    /// Registers; vector registers on HIP.
    Registers,
    /// Scalar registers.
    ScalarRegisters,
    /// Shared memory, or LDS.
    Shared,
    /// Slots of blocks or work-groups.
    Blocks,
    /// Named barriers.
    Barriers,
}

impl fmt::Display for Resource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Resource::Warps => "warps",
            Resource::Registers => "registers",
            Resource::ScalarRegisters => "scalar registers",
            Resource::Shared => "shared memory",
            Resource::Blocks => "blocks",
            Resource::Barriers => "barriers",
        })
    }
}

impl Occupancy {
    /// The occupancy that the least of the limits allows; `None` if it allows no block.
    pub(crate) fn of(
        limits: &[(Resource, u64)],
        warps_per_block: u64,
        warps_max: u64,
        place: Place,
    ) -> Option<Occupancy> {
        let blocks = limits.iter().map(|(_, blocks)| *blocks).min().filter(|blocks| *blocks > 0)?;
        let binding = limits.iter().filter(|(_, most)| *most == blocks);
        Some(Occupancy {
            blocks: u32::try_from(blocks).ok()?,
            warps: u32::try_from(blocks.checked_mul(warps_per_block)?).ok()?,
            warps_max: u32::try_from(warps_max).ok()?,
            place,
            binding: binding.map(|(resource, _)| *resource).collect(),
        })
    }
}

/// An amount rounded up to whole steps; the largest number if that is more.
pub(crate) fn rounded(amount: u64, step: u64) -> u64 {
    amount.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}
