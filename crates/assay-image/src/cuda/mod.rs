//! CUDA ELF images (cubins): one NVIDIA architecture's machine code, with what the assembler
//! records of each kernel.
//!
//! NVIDIA documents no layout. This one was measured on images of ptxas 11.8 to 13.5 and is held
//! against `cuobjdump -res-usage` in the tests. Section names are matched exactly: images from
//! `sm_100` on carry a second set of the same sections for another stage (`.nv.merc.nv.info`).

mod info;
mod kernels;
mod note;

use crate::bytes::Bytes;
use crate::elf::Elf;
use crate::error::ImageError;
use crate::facts::{Contents, CudaImage, Skipped, Why};

/// `e_machine` of a CUDA image.
pub(crate) const MACHINE: u16 = 190;

/// `e_type` of code that is not linked.
const RELOCATABLE: u16 = 1;
/// `e_type` of code that a driver loads.
const EXECUTABLE: u16 = 2;

/// Reads an image. `suffix` is that of its architecture (`a`) where the container names one and
/// the image does not.
pub(crate) fn read_image(bytes: Bytes<'_>, suffix: &str) -> Result<Contents, ImageError> {
    let elf = Elf::read(bytes)?;
    let machine = elf.header.machine;
    if machine != MACHINE {
        let detail = format!("is {machine}; a CUDA image has {MACHINE}");
        return Err(ImageError::malformed(bytes.place(18), "e_machine", detail));
    }
    let number = architecture_number(&elf, bytes)?;
    let note = note::read(&elf)?;
    let architecture = match note.architecture {
        Some(named) if is_of(&named, number) => named,
        _ => format!("sm_{number}{suffix}"),
    };
    match elf.header.kind {
        EXECUTABLE => {
            let kernels = kernels::read(&elf, number)?;
            Ok(Contents::Cuda(CudaImage { architecture, release: note.release, kernels }))
        }
        RELOCATABLE => Ok(Contents::Skipped(Skipped { architecture, why: Why::Relocatable })),
        other => {
            let detail = format!("is {other}, neither 1 (relocatable) nor 2 (executable)");
            Err(ImageError::malformed(bytes.place(16), "e_type", detail))
        }
    }
}

/// The number of the architecture: 90 of `sm_90a`. Two generations of headers keep it in two
/// places of `e_flags`.
fn architecture_number(elf: &Elf<'_>, bytes: Bytes<'_>) -> Result<u32, ImageError> {
    let flags = elf.header.flags;
    let number = match elf.header.abi_version {
        7 => flags & 0xff,
        8 => (flags >> 8) & 0xff,
        other => {
            let detail = format!("is {other}; 7 and 8 are read here");
            return Err(ImageError::unsupported(bytes.place(8), "EI_ABIVERSION", detail));
        }
    };
    if number == 0 {
        let detail = format!("is {flags:#010x}, which names no architecture");
        return Err(ImageError::malformed(bytes.place(48), "e_flags", detail));
    }
    Ok(number)
}

/// True if a name such as `sm_90a` has this number.
fn is_of(name: &str, number: u32) -> bool {
    let Some(rest) = name.strip_prefix("sm_") else { return false };
    let digits = rest.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    digits.parse() == Ok(number)
}
