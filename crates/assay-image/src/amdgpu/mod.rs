//! AMDGPU code objects, and the bundles that hold several of them.

use crate::bytes::Bytes;
use crate::error::ImageError;
use crate::facts::{Entry, HipImage};

/// `e_machine` of a code object.
pub(crate) const MACHINE: u16 = 224;

/// Reads a code object: an ELF file of machine 224.
///
/// # Errors
/// The file is damaged, or of a version that is not read here.
pub fn read_code_object(bytes: &[u8]) -> Result<HipImage, ImageError> {
    let machine = Bytes::new(bytes).u16(18, "e_machine")?;
    Err(ImageError::unsupported(18, "e_machine", format!("is {machine}")))
}

/// True if a file starts as an offload bundle does, compressed or not.
pub(crate) fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(b"__CLANG_OFFLOAD_BUNDLE__") || bytes.starts_with(b"CCOB")
}

/// Reads every code object of a bundle; `bytes` may go on behind it (`.hip_fatbin` holds several,
/// each aligned to a page). Places are `[0]`, `[1]`, ...
pub(crate) fn read_bundle(bytes: Bytes<'_>) -> Result<Vec<Entry>, ImageError> {
    Err(ImageError::unsupported(bytes.place(0), "magic", "starts an offload bundle"))
}
