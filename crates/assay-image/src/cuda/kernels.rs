//! The kernels of an image, put together from its symbols, its sections and its attributes.

use std::collections::HashMap;

use super::info::{self, FunctionInfo};
use crate::elf::{Elf, Section};
use crate::error::ImageError;
use crate::facts::CudaKernel;

/// The low bits of `st_info` of a function.
const FUNCTION: u8 = 2;
/// The bit of `st_other` of a function that can be launched.
const ENTRY: u8 = 0x10;
/// The bytes of shared memory that the system takes of every block, from `sm_90` on counted in a
/// kernel's section.
const RESERVED_SHARED_BYTES: u64 = 1024;
const RESERVES_SINCE: u32 = 90;
/// The symbol that says how much is reserved, in images from `sm_100` on.
const RESERVED_CAP: &str = ".nv.reservedSmem.cap";

/// The most kernels that are read of one image.
const MOST_KERNELS: usize = 1 << 18;

/// The sections of one kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Parts<'e, 'a> {
    text: Option<&'e Section<'a>>,
    info: Option<&'e Section<'a>>,
    shared: Option<&'e Section<'a>>,
}

/// Reads every kernel, in order of their names.
pub(crate) fn read(elf: &Elf<'_>, architecture: u32) -> Result<Vec<CudaKernel>, ImageError> {
    let functions = match elf.section(".nv.info") {
        Some(section) => info::read_global(elf.contents(section)?)?,
        None => HashMap::new(),
    };
    let parts = parts(elf);
    check_overlap(elf, &parts)?;
    let symbols = elf.symbols()?;
    let mut reserved = (architecture >= RESERVES_SINCE).then_some(RESERVED_SHARED_BYTES);
    let mut entries = Entries { found: HashMap::new(), names_left: elf.len() };
    for (index, symbol) in symbols.iter().enumerate() {
        let symbol = symbol?;
        if symbol.name == RESERVED_CAP && reserved.is_some() {
            reserved = Some(symbol.value);
        }
        if symbol.info & 0xf == FUNCTION && symbol.other & ENTRY != 0 && symbol.section != 0 {
            entries.add(symbol.name, index as u32, symbols.place(index as u64))?;
        }
    }
    let reader = Reader { elf, functions, parts, reserved: reserved.unwrap_or(0) };
    let kernels = entries.found.iter().map(|(name, index)| reader.kernel(name, *index));
    let mut kernels = kernels.collect::<Result<Vec<_>, _>>()?;
    kernels.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(kernels)
}

/// The sections of every kernel by its name.
fn parts<'e, 'a>(elf: &'e Elf<'a>) -> HashMap<&'a str, Parts<'e, 'a>> {
    let mut parts: HashMap<&str, Parts<'_, '_>> = HashMap::new();
    for section in elf.sections() {
        if let Some(name) = section.name.strip_prefix(".text.") {
            parts.entry(name).or_default().text.get_or_insert(section);
        } else if let Some(name) = section.name.strip_prefix(".nv.info.") {
            parts.entry(name).or_default().info.get_or_insert(section);
        } else if let Some(name) = section.name.strip_prefix(".nv.shared.") {
            parts.entry(name).or_default().shared.get_or_insert(section);
        }
    }
    parts
}

/// Sections of one file share no bytes. If they could, a small file would name as much to read as
/// it likes.
fn check_overlap(elf: &Elf<'_>, parts: &HashMap<&str, Parts<'_, '_>>) -> Result<(), ImageError> {
    let mut left = elf.len();
    for section in parts.values().filter_map(|parts| parts.info) {
        left = left.checked_sub(section.size).ok_or_else(|| {
            let detail = format!("makes `{}` overlap another section", section.name);
            ImageError::malformed(section.header_at + 32, "sh_size", detail)
        })?;
    }
    Ok(())
}

/// The kernels of the symbol table: the index of each one's symbol, by its name.
struct Entries<'a> {
    found: HashMap<&'a str, u32>,
    names_left: u64,
}

impl<'a> Entries<'a> {
    fn add(&mut self, name: &'a str, index: u32, at: u64) -> Result<(), ImageError> {
        if self.found.insert(name, index).is_some() {
            let detail = format!("names a second kernel `{name}`");
            return Err(ImageError::malformed(at, "st_name", detail));
        }
        if self.found.len() > MOST_KERNELS {
            let detail = format!("names more than {MOST_KERNELS} kernels");
            return Err(ImageError::too_large(at, "st_name", detail));
        }
        self.names_left = self.names_left.checked_sub(name.len() as u64).ok_or_else(|| {
            let detail = "makes the names of kernels longer than the image";
            ImageError::malformed(at, "st_name", detail)
        })?;
        Ok(())
    }
}

/// What the facts of a kernel are put together from.
struct Reader<'e, 'a> {
    elf: &'e Elf<'a>,
    functions: HashMap<u32, FunctionInfo>,
    parts: HashMap<&'a str, Parts<'e, 'a>>,
    reserved: u64,
}

impl Reader<'_, '_> {
    fn kernel(&self, name: &str, symbol: u32) -> Result<CudaKernel, ImageError> {
        let parts = self.parts.get(name).copied().unwrap_or_default();
        let function = self.functions.get(&symbol).copied().unwrap_or_default();
        let mut kernel = CudaKernel {
            name: name.to_owned(),
            registers: registers(self.elf, name, function, parts.text)?,
            static_shared_bytes: self.static_shared(parts.shared)?,
            stack_bytes: function.stack_bytes(),
            ..CudaKernel::default()
        };
        let counts_barriers = match parts.info {
            Some(section) => info::read_of_kernel(self.elf.contents(section)?, &mut kernel)?,
            None => false,
        };
        if !counts_barriers {
            kernel.barriers = parts.text.map_or(0, barriers);
        }
        Ok(kernel)
    }

    /// The bytes that the source declares: those of the section, without what is reserved.
    fn static_shared(&self, section: Option<&Section<'_>>) -> Result<u32, ImageError> {
        let Some(section) = section else { return Ok(0) };
        let declared = section.size.saturating_sub(self.reserved);
        u32::try_from(declared).map_err(|_| {
            let detail = format!("is {}: no kernel has so much shared memory", section.size);
            ImageError::malformed(section.header_at + 32, "sh_size", detail)
        })
    }
}

/// Registers of a thread: recorded in `.nv.info`, and by older assemblers in the section of the
/// code.
fn registers(
    elf: &Elf<'_>,
    name: &str,
    function: FunctionInfo,
    text: Option<&Section<'_>>,
) -> Result<u32, ImageError> {
    let older = || text.map(|section| section.info >> 24).filter(|count| *count != 0);
    function.registers.or_else(older).ok_or_else(|| {
        let detail = format!("has no record for kernel `{name}`");
        ImageError::malformed(elf.start(), "REGCOUNT", detail)
    })
}

/// Barriers as older assemblers keep them, in the flags of the section of the code.
fn barriers(text: &Section<'_>) -> u32 {
    (text.flags >> 20) as u32 & 0x7f
}
