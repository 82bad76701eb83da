//! The generic address space: windows for the spaces that are not global memory.

use super::effect::SpaceKind;

/// Bytes that every window spans.
pub(crate) const WINDOW_BYTES: u64 = 1 << 32;
/// Bytes that each block of a cluster has in the window of shared memory. The first part is the
/// own block; block `rank` is part `rank + 1`, so that a mapped address means the same everywhere.
pub(crate) const BLOCK_WINDOW: u64 = 1 << 24;
const SHARED: u64 = 0x0001_0000_0000_0000;
const LOCAL: u64 = 0x0002_0000_0000_0000;
const PARAM: u64 = 0x0003_0000_0000_0000;
const FUNCTIONS: u64 = 0x0004_0000_0000_0000;
const FUNCTION_STRIDE: u64 = 16;

/// The address of a function, for indirect calls.
pub(crate) fn function(index: u32) -> u64 {
    FUNCTIONS + u64::from(index) * FUNCTION_STRIDE
}

/// The function at an address.
pub(crate) fn function_at(address: u64) -> Option<usize> {
    let offset = address.checked_sub(FUNCTIONS)?;
    (offset % FUNCTION_STRIDE == 0 && offset < WINDOW_BYTES)
        .then_some((offset / FUNCTION_STRIDE) as usize)
}

/// Where the window of a space starts; global and const memory have none.
pub(crate) fn window(space: SpaceKind) -> u64 {
    match space {
        SpaceKind::Shared | SpaceKind::Cluster => SHARED,
        SpaceKind::Local | SpaceKind::Frame => LOCAL,
        SpaceKind::Param => PARAM,
        SpaceKind::Global | SpaceKind::Const | SpaceKind::Generic => 0,
    }
}

/// The space of a generic address and the address inside it.
pub(crate) fn resolve(address: u64) -> (SpaceKind, u64) {
    for space in [SpaceKind::Shared, SpaceKind::Local, SpaceKind::Param] {
        let offset = address.wrapping_sub(window(space));
        if offset < WINDOW_BYTES {
            let mapped = space == SpaceKind::Shared && offset >= BLOCK_WINDOW;
            return (if mapped { SpaceKind::Cluster } else { space }, offset);
        }
    }
    (SpaceKind::Global, address)
}

/// The address in the cluster's window of a byte of block `rank`.
pub(crate) fn mapped(rank: u32, offset: u64) -> u64 {
    (u64::from(rank) + 1) * BLOCK_WINDOW + offset
}

/// The rank and offset of an address in the cluster's window; `None` for the own block's.
pub(crate) fn unmapped(at: u64) -> (Option<u64>, u64) {
    ((at / BLOCK_WINDOW).checked_sub(1), at % BLOCK_WINDOW)
}
