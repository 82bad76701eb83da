//! 64-bit little-endian ELF: the header, the sections and the symbols, each checked as it is read.

use crate::bytes::{Bytes, Cursor};
use crate::error::ImageError;

/// The most sections that are read of one file.
const MOST_SECTIONS: u64 = 1 << 20;
/// The longest name of a section or a symbol. Names of templated kernels have thousands of bytes.
const LONGEST_NAME: usize = 1 << 20;
/// The most bytes of names that are read of one file: many headers may point at one long name.
const MOST_NAME_BYTES: u64 = 1 << 30;

const HEADER_BYTES: u64 = 64;
const SECTION_BYTES: u64 = 64;
const SYMBOL_BYTES: u64 = 24;

/// `sh_type` of a symbol table.
const SYMBOL_TABLE: u32 = 2;
/// `sh_type` of the symbol table that is loaded, which a stripped file still has.
const DYNAMIC_SYMBOL_TABLE: u32 = 11;
/// `sh_type` of a section of notes.
pub(crate) const NOTES: u32 = 7;
/// `sh_type` of a section without bytes in the file.
pub(crate) const NO_BYTES: u32 = 8;

/// What the header says, as far as a reader of images asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// `EI_OSABI`.
    pub(crate) os_abi: u8,
    /// `EI_ABIVERSION`.
    pub(crate) abi_version: u8,
    /// `e_type`: 1 relocatable, 2 executable, 3 shared.
    pub(crate) kind: u16,
    /// `e_machine`.
    pub(crate) machine: u16,
    /// `e_version`.
    pub(crate) version: u32,
    /// `e_flags`.
    pub(crate) flags: u32,
}

/// One section's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    /// Where it lies in memory; 0 in a file that is not linked.
    pub(crate) address: u64,
    pub(crate) flags: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
    pub(crate) info: u32,
    /// Where in the file this header lies.
    pub(crate) header_at: u64,
}

/// One symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) name: &'a str,
    /// `st_info`: the type in the low four bits.
    pub(crate) info: u8,
    /// `st_other`.
    pub(crate) other: u8,
    /// The section that it lies in.
    pub(crate) section: u16,
    pub(crate) value: u64,
    pub(crate) size: u64,
}

/// A file whose header and sections have been read.
#[derive(Clone, Debug)]
pub(crate) struct Elf<'a> {
    bytes: Bytes<'a>,
    pub(crate) header: Header,
    sections: Vec<Section<'a>>,
}

impl<'a> Elf<'a> {
    /// Reads the header and the names and places of all sections.
    pub(crate) fn read(bytes: Bytes<'a>) -> Result<Elf<'a>, ImageError> {
        check_identity(bytes)?;
        let header = read_header(bytes)?;
        let sections = read_sections(bytes)?;
        Ok(Elf { bytes, header, sections })
    }

    /// Where in the file the image starts.
    pub(crate) fn start(&self) -> u64 {
        self.bytes.place(0)
    }

    /// How many bytes the image has.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len()
    }

    /// All sections, in the order of the file; the first is the empty one.
    pub(crate) fn sections(&self) -> &[Section<'a>] {
        &self.sections
    }

    /// The first section of a name.
    pub(crate) fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The bytes of a section; none where it takes no room in the file.
    pub(crate) fn contents(&self, section: &Section<'a>) -> Result<Bytes<'a>, ImageError> {
        if section.kind == NO_BYTES {
            return self.bytes.slice(0, 0, "sh_size");
        }
        let field = if section.name.is_empty() { "sh_offset" } else { section.name };
        self.bytes.slice(section.offset, section.size, field.to_owned())
    }

    /// The symbols of the first `.symtab`; none where there is no such section.
    pub(crate) fn symbols(&self) -> Result<Symbols<'a>, ImageError> {
        self.table(SYMBOL_TABLE)
    }

    /// The symbols of the first `.dynsym`; none where there is no such section.
    pub(crate) fn dynamic_symbols(&self) -> Result<Symbols<'a>, ImageError> {
        self.table(DYNAMIC_SYMBOL_TABLE)
    }

    fn table(&self, kind: u32) -> Result<Symbols<'a>, ImageError> {
        let found = self.sections.iter().find(|section| section.kind == kind);
        let Some(table) = found else { return Ok(Symbols::default()) };
        let names = self.sections.get(table.link as usize).ok_or_else(|| {
            let detail = format!("names section {} of {}", table.link, self.sections.len());
            ImageError::malformed(table.header_at + 40, "sh_link", detail)
        })?;
        Ok(Symbols { table: self.contents(table)?, names: self.contents(names)? })
    }
}

/// A symbol table whose entries are read when asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Symbols<'a> {
    table: Bytes<'a>,
    names: Bytes<'a>,
}

impl<'a> Symbols<'a> {
    pub(crate) fn len(&self) -> u64 {
        self.table.len() / SYMBOL_BYTES
    }

    /// Where in the file the symbol of an index lies.
    pub(crate) fn place(&self, index: u64) -> u64 {
        self.table.place(index.saturating_mul(SYMBOL_BYTES))
    }

    /// The symbol of an index.
    pub(crate) fn get(&self, index: u64) -> Result<Symbol<'a>, ImageError> {
        let at = index.saturating_mul(SYMBOL_BYTES);
        let mut cursor = Cursor::new(self.table.slice(at, SYMBOL_BYTES, "symbol")?);
        let name = cursor.u32("st_name")?;
        Ok(Symbol {
            name: self.names.c_string(name.into(), LONGEST_NAME, "st_name")?,
            info: cursor.u8("st_info")?,
            other: cursor.u8("st_other")?,
            section: cursor.u16("st_shndx")?,
            value: cursor.u64("st_value")?,
            size: cursor.u64("st_size")?,
        })
    }

    /// Every symbol in order. Ends with an error where the names are more than a file may have.
    pub(crate) fn iter(self) -> impl Iterator<Item = Result<Symbol<'a>, ImageError>> {
        let mut left = MOST_NAME_BYTES;
        (0..self.len()).map(move |index| {
            let symbol = self.get(index)?;
            left = left.checked_sub(symbol.name.len() as u64).ok_or_else(|| {
                let at = self.table.place(index * SYMBOL_BYTES);
                let detail = format!("ends more than {MOST_NAME_BYTES} bytes of names");
                ImageError::too_large(at, "st_name", detail)
            })?;
            Ok(symbol)
        })
    }
}

/// 64 bits, little-endian, or an error that says what it is.
fn check_identity(bytes: Bytes<'_>) -> Result<(), ImageError> {
    if !bytes.data().starts_with(b"\x7fELF") {
        return Err(ImageError::malformed(bytes.place(0), "EI_MAG0", "does not start an ELF file"));
    }
    match bytes.u8(4, "EI_CLASS")? {
        2 => {}
        1 => {
            let detail = "says 32 bits; images are read of 64 bits";
            return Err(ImageError::unsupported(bytes.place(4), "EI_CLASS", detail));
        }
        other => {
            let detail = format!("is {other}, neither 1 (32 bits) nor 2 (64 bits)");
            return Err(ImageError::malformed(bytes.place(4), "EI_CLASS", detail));
        }
    }
    match bytes.u8(5, "EI_DATA")? {
        1 => Ok(()),
        2 => {
            let detail = "says big-endian; images are read little-endian";
            Err(ImageError::unsupported(bytes.place(5), "EI_DATA", detail))
        }
        other => {
            let detail = format!("is {other}, neither 1 (little-endian) nor 2 (big-endian)");
            Err(ImageError::malformed(bytes.place(5), "EI_DATA", detail))
        }
    }
}

fn read_header(bytes: Bytes<'_>) -> Result<Header, ImageError> {
    bytes.slice(0, HEADER_BYTES, "ELF header")?;
    Ok(Header {
        os_abi: bytes.u8(7, "EI_OSABI")?,
        abi_version: bytes.u8(8, "EI_ABIVERSION")?,
        kind: bytes.u16(16, "e_type")?,
        machine: bytes.u16(18, "e_machine")?,
        version: bytes.u32(20, "e_version")?,
        flags: bytes.u32(48, "e_flags")?,
    })
}

/// Where the table of sections lies, and how many there are.
fn section_table(bytes: Bytes<'_>) -> Result<(Bytes<'_>, u64), ImageError> {
    let start = bytes.u64(40, "e_shoff")?;
    if start == 0 {
        return Ok((bytes.slice(0, 0, "e_shoff")?, 0));
    }
    let size = bytes.u16(58, "e_shentsize")?;
    if u64::from(size) != SECTION_BYTES {
        let detail = format!("is {size}; a 64-bit file has {SECTION_BYTES}");
        return Err(ImageError::malformed(bytes.place(58), "e_shentsize", detail));
    }
    let first = bytes.slice(start, SECTION_BYTES, "e_shoff")?;
    let count = match bytes.u16(60, "e_shnum")? {
        // More than the field can hold: the count is in the first header.
        0 => first.u64(32, "sh_size")?,
        count => count.into(),
    };
    if count > MOST_SECTIONS {
        let detail = format!("is {count}; at most {MOST_SECTIONS} are read");
        return Err(ImageError::too_large(bytes.place(60), "e_shnum", detail));
    }
    Ok((bytes.slice(start, count * SECTION_BYTES, "section headers")?, count))
}

/// The section that holds the names of sections.
fn names_of_sections<'a>(
    bytes: Bytes<'a>,
    table: Bytes<'a>,
    count: u64,
) -> Result<Bytes<'a>, ImageError> {
    const IN_THE_FIRST_HEADER: u64 = 0xffff;
    let index = match u64::from(bytes.u16(62, "e_shstrndx")?) {
        IN_THE_FIRST_HEADER => table.u32(40, "sh_link")?.into(),
        index => index,
    };
    if index >= count {
        let detail = format!("names section {index} of {count}");
        return Err(ImageError::malformed(bytes.place(62), "e_shstrndx", detail));
    }
    let header = table.slice(index * SECTION_BYTES, SECTION_BYTES, "e_shstrndx")?;
    bytes.slice(header.u64(24, "sh_offset")?, header.u64(32, "sh_size")?, "section names")
}

fn read_sections(bytes: Bytes<'_>) -> Result<Vec<Section<'_>>, ImageError> {
    let (table, count) = section_table(bytes)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let names = names_of_sections(bytes, table, count)?;
    let mut sections = Vec::with_capacity(count as usize);
    let mut left = MOST_NAME_BYTES;
    for index in 0..count {
        let header = table.slice(index * SECTION_BYTES, SECTION_BYTES, "section header")?;
        let section = read_section(header, names)?;
        left = left.checked_sub(section.name.len() as u64).ok_or_else(|| {
            let detail = format!("ends more than {MOST_NAME_BYTES} bytes of names");
            ImageError::too_large(header.place(0), "sh_name", detail)
        })?;
        sections.push(section);
    }
    Ok(sections)
}

fn read_section<'a>(header: Bytes<'a>, names: Bytes<'a>) -> Result<Section<'a>, ImageError> {
    let name = header.u32(0, "sh_name")?;
    Ok(Section {
        name: names.c_string(name.into(), LONGEST_NAME, "sh_name")?,
        kind: header.u32(4, "sh_type")?,
        address: header.u64(16, "sh_addr")?,
        flags: header.u64(8, "sh_flags")?,
        offset: header.u64(24, "sh_offset")?,
        size: header.u64(32, "sh_size")?,
        link: header.u32(40, "sh_link")?,
        info: header.u32(44, "sh_info")?,
        header_at: header.place(0),
    })
}
