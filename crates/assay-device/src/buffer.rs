//! Buffers with guards: what is asked for, how it lies in memory, and what damage looks like.
//!
//! ```text
//! base            payload                      end
//! | guard (4096 + misalign) | payload (bytes) | guard (4096) |
//! ```
//!
//! The guards hold a pattern that changes from byte to byte, so neither a fill nor a shifted
//! copy of a guard passes for it. The payload starts out filled with the poison that the caller
//! chooses, and the guard after it begins at its very last byte's neighbour.

use crate::error::DeviceError;

/// Guard bytes on each side of every buffer.
pub const GUARD_BYTES: u64 = 4096;

/// Addresses of buffers with no misalignment are multiples of this, in bytes.
pub const ALIGNMENT: u64 = 256;

/// A buffer to allocate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Size of the payload, in bytes. Zero is allowed.
    pub bytes: u64,
    /// How far past an address of full alignment (256 bytes) the payload starts, in bytes; it
    /// varies a buffer's alignment class. At most [`Allocation::MAX_MISALIGN`].
    pub misalign: u64,
    /// What every byte of the payload holds at first.
    pub poison: u8,
}

impl Allocation {
    /// The largest misalignment, in bytes.
    pub const MAX_MISALIGN: u64 = ALIGNMENT - 1;

    /// A fully aligned buffer, poisoned with `0xFF`: a NaN in every float format.
    pub fn new(bytes: u64) -> Self {
        Allocation { bytes, misalign: 0, poison: 0xFF }
    }

    /// Where everything lies, counted from the start of the raw memory.
    ///
    /// # Errors
    /// [`DeviceError::InvalidRequest`] for a misalignment out of range, and
    /// [`DeviceError::OutOfMemory`] for a size that no address space holds.
    pub fn layout(&self) -> Result<Layout, DeviceError> {
        if self.misalign > Self::MAX_MISALIGN {
            return Err(DeviceError::InvalidRequest {
                reason: format!(
                    "a misalignment of {} bytes is over the largest, {}",
                    self.misalign,
                    Self::MAX_MISALIGN
                ),
                hint: "take the misalignment modulo 256".to_string(),
            });
        }
        let start = GUARD_BYTES + self.misalign;
        let end = start.checked_add(self.bytes);
        let total = end.and_then(|end| end.checked_add(GUARD_BYTES));
        match (end, total) {
            (Some(end), Some(total)) => Ok(Layout { start, end, total }),
            _ => Err(DeviceError::OutOfMemory { requested: self.bytes, available: None }),
        }
    }
}

/// Offsets of a guarded buffer from the start of its raw memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The payload's first byte, and so the length of the guard before it.
    pub start: u64,
    /// One past the payload's last byte.
    pub end: u64,
    /// The length of everything.
    pub total: u64,
}

/// Which guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The guard before the payload.
    Before,
    /// The guard after the payload.
    After,
}

/// The guard byte nearest to the payload that a kernel changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuardDamage {
    /// Which guard.
    pub side: Side,
    /// Bytes outside the payload: 1 is the byte right before it or right after it.
    pub offset: u64,
    /// What the byte holds now.
    pub byte: u8,
}

impl std::fmt::Display for GuardDamage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = match self.side {
            Side::Before => "before",
            Side::After => "after",
        };
        let unit = if self.offset == 1 { "byte" } else { "bytes" };
        write!(f, "{} {unit} {side} the buffer now holds {:#04x}", self.offset, self.byte)
    }
}

/// The pattern of a guard of `length` bytes.
pub fn guard_pattern(length: u64) -> Vec<u8> {
    (0..length).map(|index| 0xA5 ^ (index as u8).wrapping_mul(29)).collect()
}

/// Compares a guard's bytes with its pattern; reports the changed byte nearest to the payload.
pub fn find_damage(side: Side, found: &[u8]) -> Option<GuardDamage> {
    let pattern = guard_pattern(found.len() as u64);
    let differs = |index: &usize| found[*index] != pattern[*index];
    let index = match side {
        Side::Before => (0..found.len()).rev().find(differs)?,
        Side::After => (0..found.len()).find(differs)?,
    };
    let distance = match side {
        Side::Before => found.len() - index,
        Side::After => index + 1,
    };
    Some(GuardDamage { side, offset: distance as u64, byte: found[index] })
}

/// Checks that `length` bytes from `offset` lie inside a payload of `bytes` bytes.
///
/// # Errors
/// [`DeviceError::OutOfRange`] if they do not.
pub fn check_range(bytes: u64, offset: u64, length: u64) -> Result<(), DeviceError> {
    match offset.checked_add(length) {
        Some(end) if end <= bytes => Ok(()),
        _ => Err(DeviceError::OutOfRange { offset, length, bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intact_guard_shows_no_damage() {
        assert_eq!(find_damage(Side::Before, &guard_pattern(300)), None);
        assert_eq!(find_damage(Side::After, &guard_pattern(300)), None);
    }

    #[test]
    fn damage_is_measured_from_the_payload() {
        let mut guard = guard_pattern(300);
        guard[2] ^= 1;
        guard[290] ^= 1;
        let before = find_damage(Side::Before, &guard).map(|damage| damage.offset);
        let after = find_damage(Side::After, &guard).map(|damage| damage.offset);
        assert_eq!((before, after), (Some(10), Some(3)));
    }

    #[test]
    fn a_fill_with_any_one_byte_is_damage() {
        for byte in 0..=u8::MAX {
            assert!(find_damage(Side::After, &[byte; 4]).is_some(), "fill of {byte}");
        }
    }

    #[test]
    fn the_layout_has_no_gap_and_no_overflow() {
        let layout = Allocation { bytes: 10, misalign: 3, poison: 0 }.layout();
        assert_eq!(layout, Ok(Layout { start: 4099, end: 4109, total: 8205 }));
        let huge = Allocation::new(u64::MAX - 5).layout();
        assert!(matches!(huge, Err(DeviceError::OutOfMemory { .. })), "{huge:?}");
        let skewed = Allocation { bytes: 1, misalign: 256, poison: 0 }.layout();
        assert!(matches!(skewed, Err(DeviceError::InvalidRequest { .. })), "{skewed:?}");
    }

    #[test]
    fn a_range_ends_at_the_payloads_end() {
        assert_eq!(check_range(8, 4, 4), Ok(()));
        assert_eq!(check_range(8, 8, 0), Ok(()));
        assert!(check_range(8, 4, 5).is_err());
        assert!(check_range(8, u64::MAX, 2).is_err());
    }
}
