//! AMDGPU code objects, and the bundles that hold several of them.
//!
//! A code object says everything twice: for tools in a note, and for the command processor in a
//! descriptor beside each kernel. Both are read, and must agree.

mod bundle;
mod descriptor;
mod metadata;
mod msgpack;
#[cfg(test)]
mod sample;
mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(crate) use bundle::{is_bundle, read_bundle};
use descriptor::Generation;
use metadata::Described;

use crate::bytes::Bytes;
use crate::elf::{Elf, Section, Symbol};
use crate::error::ImageError;
use crate::facts::HipImage;

/// `e_machine` of a code object.
pub(crate) const MACHINE: u16 = 224;
/// `EI_OSABI` of a code object for HSA, which HIP and `OpenCL` use.
const HSA: u8 = 64;
/// `e_type` of a file that is not linked yet.
const RELOCATABLE: u16 = 1;
/// The longest name of a compiler that is kept.
const LONGEST_COMPILER: usize = 200;
/// The most bytes that the names of symbols may have together: many may point at one long name.
const MOST_NAME_BYTES: usize = 1 << 26;

/// Reads a code object: an ELF file of machine 224.
///
/// # Errors
/// The file is damaged, of a version that is not read here, or says of a kernel one thing in its
/// note and another in its descriptor.
pub fn read_code_object(bytes: &[u8]) -> Result<HipImage, ImageError> {
    read_code_object_at(Bytes::new(bytes))
}

/// As [`read_code_object`], with offsets in errors counted from the start of the file around it.
fn read_code_object_at(bytes: Bytes<'_>) -> Result<HipImage, ImageError> {
    let elf = Elf::read(bytes)?;
    let header = elf.header;
    if header.machine != MACHINE {
        let detail = format!("is {}; a code object has {MACHINE}", header.machine);
        return Err(ImageError::unsupported(bytes.place(18), "e_machine", detail));
    }
    if header.os_abi != HSA {
        let detail = format!("is {}; code objects for HSA have {HSA}", header.os_abi);
        return Err(ImageError::unsupported(bytes.place(7), "EI_OSABI", detail));
    }
    if header.kind == RELOCATABLE {
        let detail = "says that the file is not linked yet, so that its registers are not known";
        return Err(ImageError::unsupported(bytes.place(16), "e_type", detail));
    }
    let found = metadata::read(&elf)?;
    let architecture = target::architecture(header, found.target)?;
    check_descriptors(&elf, &found.kernels, Generation::of(&architecture))?;
    let mut kernels: Vec<_> = found.kernels.into_iter().map(|kernel| kernel.facts).collect();
    kernels.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(HipImage { architecture, compiler: compiler(&elf)?, kernels })
}

/// Checks every kernel of the metadata against its descriptor.
fn check_descriptors(
    elf: &Elf<'_>,
    kernels: &[Described<'_>],
    generation: Generation,
) -> Result<(), ImageError> {
    let descriptors = descriptors(elf)?;
    for kernel in kernels {
        let Some(symbol) = descriptors.get(kernel.symbol) else {
            let symbol: String = kernel.symbol.chars().take(80).collect();
            let detail = format!("names `{symbol}`, and there is no such symbol");
            return Err(ImageError::malformed(kernel.place, ".symbol", detail));
        };
        descriptor::check(kernel, contents(elf, symbol)?, generation)?;
    }
    Ok(())
}

/// The symbols of descriptors by name. Both tables are searched: a stripped file has the dynamic
/// one alone.
fn descriptors<'a>(elf: &Elf<'a>) -> Result<BTreeMap<&'a str, Symbol<'a>>, ImageError> {
    let mut found = BTreeMap::new();
    let mut left = MOST_NAME_BYTES;
    for table in [elf.dynamic_symbols()?, elf.symbols()?] {
        for symbol in table.iter() {
            let symbol = symbol?;
            left = left.checked_sub(symbol.name.len()).ok_or_else(|| {
                let detail = format!("ends more than {MOST_NAME_BYTES} bytes of names");
                ImageError::too_large(0, "st_name", detail)
            })?;
            if symbol.name.strip_suffix(".kd").is_some() {
                found.insert(symbol.name, symbol);
            }
        }
    }
    Ok(found)
}

/// The bytes of a descriptor: its symbol holds an address in the section that it names.
fn contents<'a>(elf: &Elf<'a>, symbol: &Symbol<'a>) -> Result<Bytes<'a>, ImageError> {
    let section: &Section<'a> =
        elf.sections().get(usize::from(symbol.section)).ok_or_else(|| {
            let detail = format!("of a descriptor is {}", symbol.section);
            ImageError::malformed(0, "st_shndx", detail)
        })?;
    let offset = symbol.value.checked_sub(section.address).ok_or_else(|| {
        let detail = format!("of a descriptor is {:#x}, before its section", symbol.value);
        ImageError::malformed(section.header_at, "st_value", detail)
    })?;
    elf.contents(section)?.slice(offset, descriptor::BYTES, "kernel descriptor")
}

/// The compiler, from a section of texts that each tool adds to.
fn compiler(elf: &Elf<'_>) -> Result<Option<String>, ImageError> {
    let Some(section) = elf.section(".comment") else { return Ok(None) };
    let contents = elf.contents(section)?.data();
    let named = contents
        .split(|byte| *byte == 0)
        .filter_map(|text| std::str::from_utf8(text).ok())
        .find(|text| text.contains("clang version"));
    Ok(named.map(|text| text.chars().take(LONGEST_COMPILER).collect()))
}
