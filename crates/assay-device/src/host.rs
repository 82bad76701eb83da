//! Sorts of host memory.

use crate::error::DeviceError;

/// How the host holds a buffer that a device copies from and to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HostKind {
    /// Ordinary memory, which the driver copies through a buffer of its own.
    Pageable,
    /// As [`HostKind::Pageable`], in pages of 2 MiB where the system grants them.
    LargePages,
    /// Memory that stays where it is, so that the device copies by itself.
    Pinned,
    /// Pinned memory that kernels read and write as well.
    Mapped,
}

impl HostKind {
    /// The kind in a word.
    pub fn name(self) -> &'static str {
        match self {
            HostKind::Pageable => "pageable",
            HostKind::LargePages => "large-page",
            HostKind::Pinned => "pinned",
            HostKind::Mapped => "mapped",
        }
    }
}

/// Refuses to let kernels or the host beside them at memory that is not mapped.
pub(crate) fn check_mapped(kind: HostKind) -> Result<(), DeviceError> {
    if kind == HostKind::Mapped {
        return Ok(());
    }
    Err(DeviceError::InvalidRequest {
        reason: format!("a {} host buffer has no address for kernels", kind.name()),
        hint: "allocate it with HostKind::Mapped".to_string(),
    })
}

/// Refuses a 32-bit word that does not lie whole and aligned in a buffer of `bytes` bytes.
pub(crate) fn check_word(bytes: u64, offset: u64) -> Result<(), DeviceError> {
    crate::buffer::check_range(bytes, offset, 4)?;
    if offset.is_multiple_of(4) {
        return Ok(());
    }
    Err(DeviceError::InvalidRequest {
        reason: format!("byte {offset} is not the start of a 32-bit word"),
        hint: "take a multiple of 4".to_string(),
    })
}

/// Refuses a copy of a range onto itself or its neighbour.
pub(crate) fn check_apart(from: u64, to: u64, bytes: u64) -> Result<(), DeviceError> {
    if from.abs_diff(to) >= bytes {
        return Ok(());
    }
    Err(DeviceError::InvalidRequest {
        reason: format!("a copy of {bytes} bytes from {from:#x} to {to:#x} overlaps itself"),
        hint: "copy between ranges that lie apart".to_string(),
    })
}
