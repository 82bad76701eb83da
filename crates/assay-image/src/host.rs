//! Executables, shared libraries and object files of the host that carry images in their sections.

use crate::amdgpu;
use crate::bytes::Bytes;
use crate::elf::Elf;
use crate::error::{ErrorKind, ImageError};
use crate::fatbin::Reading;

/// Sections that hold fatbins. The second is that of relocatable device code.
const CUDA_SECTIONS: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];
/// The section that holds offload bundles.
const HIP_SECTION: &str = ".hip_fatbin";

/// Reads every image of a file of the host.
pub(crate) fn read(file: Bytes<'_>, reading: &mut Reading) -> Result<(), ImageError> {
    let elf = Elf::read(file)?;
    let mut found = false;
    let mut left = file.len();
    for section in elf.sections() {
        let is_cuda = CUDA_SECTIONS.contains(&section.name);
        if !is_cuda && section.name != HIP_SECTION {
            continue;
        }
        found = true;
        let contents = elf.contents(section)?;
        left = left.checked_sub(contents.len()).ok_or_else(|| {
            let detail = format!("makes `{}` overlap another section", section.name);
            ImageError::malformed(section.header_at + 32, "sh_size", detail)
        })?;
        if is_cuda {
            reading.read_section(contents, section.name)?;
        } else {
            let entries = amdgpu::read_bundle(contents);
            let entries = entries.map_err(|error| error.in_place(section.name))?;
            let placed = entries.into_iter().map(|mut entry| {
                entry.place.insert_str(0, section.name);
                entry
            });
            reading.entries.extend(placed);
        }
    }
    if found {
        return Ok(());
    }
    let detail = format!(
        "names no section that holds GPU code ({}, {HIP_SECTION})",
        CUDA_SECTIONS.join(", ")
    );
    Err(ImageError::new(ErrorKind::Unrecognised, 40, "e_shoff", detail))
}
