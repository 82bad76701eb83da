//! What kind of file this is, and which reader reads it.

use crate::amdgpu;
use crate::bytes::Bytes;
use crate::error::{ErrorKind, ImageError};
use crate::facts::{Contents, Entry};

/// Reads every image of a file.
///
/// # Errors
/// The file is none of the kinds that are read here, or it is damaged; the error names the byte
/// and the field.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry>, ImageError> {
    let file = Bytes::new(bytes);
    if bytes.starts_with(b"\x7fELF") {
        return read_elf(file);
    }
    if amdgpu::is_bundle(bytes) {
        return amdgpu::read_bundle(file);
    }
    let detail = "starts no ELF file, no fatbin and no offload bundle";
    Err(ImageError::new(ErrorKind::Unrecognised, 0, "magic", detail))
}

fn read_elf(file: Bytes<'_>) -> Result<Vec<Entry>, ImageError> {
    let machine = file.u16(18, "e_machine")?;
    match machine {
        amdgpu::MACHINE => {
            let image = amdgpu::read_code_object(file.data())?;
            Ok(vec![Entry { place: String::new(), contents: Contents::Hip(image) }])
        }
        _ => Err(ImageError::unsupported(18, "e_machine", format!("is {machine}"))),
    }
}
