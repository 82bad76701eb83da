//! The metadata note of a code object: what the compiler says of each kernel.
//!
//! Keys: LLVM's "User Guide for AMDGPU Backend", section Code Object Metadata (versions 3 to 6).

use super::msgpack::Reader;
use crate::bytes::{Bytes, Cursor};
use crate::elf::{Elf, NOTES};
use crate::error::ImageError;
use crate::facts::{HipKernel, Parameter};

/// The type of the note that holds the metadata, `NT_AMDGPU_METADATA`.
const METADATA: u32 = 32;
/// The type of the note of code object version 2, which holds YAML.
const METADATA_OF_VERSION_2: u32 = 10;

/// What the note holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata<'a> {
    /// `amdhsa.target`, and where it lies.
    pub(super) target: Option<(&'a str, u64)>,
    pub(super) kernels: Vec<Described<'a>>,
}

/// A kernel as the note describes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Described<'a> {
    pub(super) facts: HipKernel,
    /// The symbol of its descriptor.
    pub(super) symbol: &'a str,
    /// `.workgroup_processor_mode`, which only some architectures have.
    pub(super) workgroup_processor_mode: Option<bool>,
    /// Where in the file it lies.
    pub(super) place: u64,
}

/// Finds the note and reads it.
pub(super) fn read<'a>(elf: &Elf<'a>) -> Result<Metadata<'a>, ImageError> {
    for section in elf.sections().iter().filter(|section| section.kind == NOTES) {
        if let Some(note) = find_note(elf.contents(section)?)? {
            return read_note(note);
        }
    }
    let detail = "is not there: no note tells of the kernels";
    Err(ImageError::malformed(0, "NT_AMDGPU_METADATA", detail))
}

/// The metadata in a section of notes, each with its owner's name, a type, and its contents.
fn find_note(section: Bytes<'_>) -> Result<Option<Bytes<'_>>, ImageError> {
    let mut cursor = Cursor::new(section);
    while !cursor.is_at_end() {
        let place = cursor.place();
        let name_size = cursor.u32("n_namesz")?;
        let size = cursor.u32("n_descsz")?;
        let kind = cursor.u32("n_type")?;
        let name = cursor.take(name_size.into(), "note name")?;
        skip_padding(&mut cursor, name_size)?;
        let contents = cursor.take(size.into(), "note")?;
        match (name.data(), kind) {
            (b"AMDGPU\0", METADATA) => return Ok(Some(contents)),
            (b"AMD\0", METADATA_OF_VERSION_2) => {
                let detail = "is of code object version 2; images are read from version 3 on";
                return Err(ImageError::unsupported(place, "n_type", detail));
            }
            _ => skip_padding(&mut cursor, size)?,
        }
    }
    Ok(None)
}

/// Parts of a note end at multiples of four bytes; the last one's padding may be missing.
fn skip_padding(cursor: &mut Cursor<'_>, size: u32) -> Result<(), ImageError> {
    let padding = u64::from(size.wrapping_neg() % 4).min(cursor.left());
    cursor.take(padding, "padding").map(|_| ())
}

fn read_note(note: Bytes<'_>) -> Result<Metadata<'_>, ImageError> {
    let mut reader = Reader::new(note);
    let mut found = Metadata::default();
    let mut version = None;
    let mut seen = Seen::default();
    for _ in 0..reader.map("metadata")? {
        match seen.key(&mut reader, &["amdhsa.version", "amdhsa.target", "amdhsa.kernels"])? {
            "amdhsa.version" => version = Some(read_version(&mut reader)?),
            "amdhsa.target" => {
                let place = reader.place();
                found.target = Some((reader.text("amdhsa.target")?, place));
            }
            "amdhsa.kernels" => found.kernels = read_kernels(&mut reader)?,
            _ => reader.skip("metadata")?,
        }
    }
    match version {
        Some(_) => Ok(found),
        None => Err(ImageError::malformed(note.place(0), "amdhsa.version", "is not there")),
    }
}

/// The version of the metadata: 1.0 to 1.2 today, and what follows 1 has the same keys.
fn read_version(reader: &mut Reader<'_>) -> Result<u64, ImageError> {
    let place = reader.place();
    let mut first = None;
    for index in 0..reader.array("amdhsa.version")? {
        let number = reader.unsigned("amdhsa.version")?;
        if index == 0 {
            first = Some(number);
        }
    }
    match first {
        Some(1) => Ok(1),
        other => {
            let other = other.map_or("empty".to_owned(), |number| number.to_string());
            let detail = format!("is {other}; 1 is read");
            Err(ImageError::unsupported(place, "amdhsa.version", detail))
        }
    }
}

/// Which keys of a map have come by.
#[derive(Default)]
struct Seen(u64);

impl Seen {
    /// The next key. One of `known` must not come twice, as the second would be believed or not.
    fn key<'a>(
        &mut self,
        reader: &mut Reader<'a>,
        known: &[&'static str],
    ) -> Result<&'a str, ImageError> {
        let place = reader.place();
        let key = reader.text("key")?;
        let Some(index) = known.iter().position(|name| *name == key) else { return Ok(key) };
        if self.0 >> index & 1 == 1 {
            let name = known.get(index).copied().unwrap_or("key");
            return Err(ImageError::malformed(place, name, "is there twice"));
        }
        self.0 |= 1 << index;
        Ok(key)
    }

    /// An error for the first of `known` that must be there and has not come by.
    fn require(
        &self,
        place: u64,
        known: &[&'static str],
        required: &[&'static str],
    ) -> Result<(), ImageError> {
        for name in required {
            let index = known.iter().position(|other| other == name);
            if index.is_none_or(|index| self.0 >> index & 1 == 0) {
                let detail = "is not there, and every kernel has one";
                return Err(ImageError::malformed(place, *name, detail));
            }
        }
        Ok(())
    }
}

fn read_kernels<'a>(reader: &mut Reader<'a>) -> Result<Vec<Described<'a>>, ImageError> {
    let mut kernels = Vec::new();
    // However many are promised, each that is kept has taken its keys from the file.
    for _ in 0..reader.array("amdhsa.kernels")? {
        kernels.push(read_kernel(reader)?);
    }
    Ok(kernels)
}

const NAME: &str = ".name";
const SYMBOL: &str = ".symbol";
const VGPRS: &str = ".vgpr_count";
const SGPRS: &str = ".sgpr_count";
const AGPRS: &str = ".agpr_count";
const LDS: &str = ".group_segment_fixed_size";
const SCRATCH: &str = ".private_segment_fixed_size";
const BOUND: &str = ".max_flat_workgroup_size";
const WAVE: &str = ".wavefront_size";
const VGPR_SPILLS: &str = ".vgpr_spill_count";
const SGPR_SPILLS: &str = ".sgpr_spill_count";
const PAIR: &str = ".workgroup_processor_mode";
const ARGUMENT_BYTES: &str = ".kernarg_segment_size";
const ARGUMENTS: &str = ".args";
const EXACT: &str = ".reqd_workgroup_size";
const STACK: &str = ".uses_dynamic_stack";

/// Every key that is read.
const KEYS: [&str; 16] = [
    NAME,
    SYMBOL,
    VGPRS,
    SGPRS,
    AGPRS,
    LDS,
    SCRATCH,
    BOUND,
    WAVE,
    VGPR_SPILLS,
    SGPR_SPILLS,
    PAIR,
    ARGUMENT_BYTES,
    ARGUMENTS,
    EXACT,
    STACK,
];

/// The keys without which nothing can be said of a kernel. LLVM requires them as well.
const REQUIRED: [&str; 9] = [NAME, SYMBOL, VGPRS, SGPRS, LDS, SCRATCH, BOUND, WAVE, ARGUMENT_BYTES];

fn read_kernel<'a>(reader: &mut Reader<'a>) -> Result<Described<'a>, ImageError> {
    let place = reader.place();
    let mut kernel = Described { place, ..Described::default() };
    let mut seen = Seen::default();
    for _ in 0..reader.map("kernel")? {
        let key = seen.key(reader, &KEYS)?;
        let facts = &mut kernel.facts;
        match key {
            NAME => reader.text(NAME)?.clone_into(&mut facts.name),
            SYMBOL => kernel.symbol = reader.text(SYMBOL)?,
            VGPRS => facts.vgprs = reader.u32(VGPRS)?,
            SGPRS => facts.sgprs = reader.u32(SGPRS)?,
            AGPRS => facts.agprs = reader.u32(AGPRS)?,
            LDS => facts.static_lds_bytes = reader.u32(LDS)?,
            SCRATCH => facts.scratch_bytes = reader.u32(SCRATCH)?,
            BOUND => facts.max_workgroup = reader.u32(BOUND)?,
            WAVE => facts.wave_size = read_wave(reader)?,
            VGPR_SPILLS => facts.vgpr_spills = reader.u32(VGPR_SPILLS)?,
            SGPR_SPILLS => facts.sgpr_spills = reader.u32(SGPR_SPILLS)?,
            PAIR => kernel.workgroup_processor_mode = Some(reader.truth(PAIR)?),
            ARGUMENT_BYTES => facts.parameter_bytes = reader.u32(ARGUMENT_BYTES)?,
            ARGUMENTS => facts.parameters = read_arguments(reader)?,
            EXACT => facts.required_workgroup = Some(read_size(reader)?),
            STACK => facts.dynamic_stack = reader.truth(STACK)?,
            _ => reader.skip("kernel")?,
        }
    }
    seen.require(place, &KEYS, &REQUIRED)?;
    kernel.facts.workgroup_processor_mode = kernel.workgroup_processor_mode.unwrap_or(false);
    Ok(kernel)
}

fn read_wave(reader: &mut Reader<'_>) -> Result<u32, ImageError> {
    let place = reader.place();
    match reader.u32(WAVE)? {
        size @ (32 | 64) => Ok(size),
        other => {
            let detail = format!("is {other}; waves have 32 or 64 lanes");
            Err(ImageError::malformed(place, WAVE, detail))
        }
    }
}

fn read_size(reader: &mut Reader<'_>) -> Result<[u32; 3], ImageError> {
    let place = reader.place();
    let count = reader.array(EXACT)?;
    if count != 3 {
        let detail = format!("has {count} dimensions, not three");
        return Err(ImageError::malformed(place, EXACT, detail));
    }
    Ok([reader.u32(EXACT)?, reader.u32(EXACT)?, reader.u32(EXACT)?])
}

/// The arguments that a launch passes: those that the system adds are left out.
fn read_arguments(reader: &mut Reader<'_>) -> Result<Vec<Parameter>, ImageError> {
    let mut parameters = Vec::new();
    for _ in 0..reader.array(ARGUMENTS)? {
        parameters.extend(read_argument(reader)?);
    }
    Ok(parameters)
}

/// One argument; nothing where the system passes it.
fn read_argument(reader: &mut Reader<'_>) -> Result<Option<Parameter>, ImageError> {
    const KEYS: [&str; 3] = [".offset", ".size", ".value_kind"];
    let place = reader.place();
    let mut seen = Seen::default();
    let mut parameter = Parameter::default();
    let mut is_hidden = false;
    for _ in 0..reader.map("argument")? {
        match seen.key(reader, &KEYS)? {
            ".offset" => parameter.offset = reader.u32(".offset")?,
            ".size" => parameter.size = reader.u32(".size")?,
            ".value_kind" => is_hidden = reader.text(".value_kind")?.starts_with("hidden_"),
            _ => reader.skip("argument")?,
        }
    }
    seen.require(place, &KEYS, &KEYS)?;
    Ok((!is_hidden).then_some(parameter))
}
