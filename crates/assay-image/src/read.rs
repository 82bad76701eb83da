//! What kind of file this is, and which reader reads it.

use crate::amdgpu;
use crate::bytes::Bytes;
use crate::cuda;
use crate::error::{ErrorKind, ImageError};
use crate::facts::{Contents, Entry};
use crate::fatbin::{self, Reading};
use crate::host;

/// Reads every image of a file: a CUDA ELF image, a fatbin, an AMDGPU code object, an offload
/// bundle, or an executable, shared library or object file of the host that holds some of them.
///
/// # Errors
/// The file is none of these, or it is damaged; the error names the byte and the field.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, ImageError> {
    let file = Bytes::new(bytes);
    if bytes.starts_with(b"\x7fELF") {
        return read_elf(file);
    }
    if fatbin::is_fatbin(bytes) {
        let mut reading = Reading::new();
        reading.read_file(file)?;
        return Ok(reading.entries);
    }
    if amdgpu::is_bundle(bytes) {
        return amdgpu::read_bundle(file);
    }
    let detail = "starts no ELF file, no fatbin and no offload bundle";
    Err(ImageError::new(ErrorKind::Unrecognised, 0, "magic", detail))
}

fn read_elf(file: Bytes<'_>) -> Result<Vec<Entry>, ImageError> {
    let whole = |contents| vec![Entry { place: String::new(), contents }];
    match file.u16(18, "e_machine")? {
        cuda::MACHINE => cuda::read_image(file, "").map(whole),
        amdgpu::MACHINE => {
            amdgpu::read_code_object(file.data()).map(|image| whole(Contents::Hip(image)))
        }
        _ => {
            let mut reading = Reading::new();
            host::read(file, &mut reading)?;
            Ok(reading.entries)
        }
    }
}
