//! The native code in what `metal-tt` writes: a Mach-O file whose `__compute` section is a Mach-O
//! file again, with the code in its `__TEXT` segment.

/// The magic of 64-bit little-endian Mach-O.
const MAGIC: u32 = 0xfeed_facf;
const HEADER_BYTES: usize = 32;
const SEGMENT: u32 = 0x19;
const SEGMENT_BYTES: usize = 72;
const SECTION_BYTES: usize = 80;
/// More load commands than any compiler writes.
const MOST: u32 = 4096;

/// A file without native code, or one that lies about where it is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no native code: {what} at byte {offset}")]
pub struct NotNative {
    /// What is missing or wrong.
    pub what: &'static str,
    /// Where, from the start of the Mach-O file that was read.
    pub offset: usize,
}

/// The machine code of a pipeline that was compiled for one chip.
///
/// # Errors
/// If the bytes are no Mach-O file with one inside, or sections lie outside of it.
pub fn native_code(file: &[u8]) -> Result<Vec<u8>, NotNative> {
    let inner = sections(file)?
        .into_iter()
        .find(|section| section.name == "__compute")
        .ok_or(NotNative { what: "no section `__compute`", offset: 0 })?;
    let code: Vec<u8> = sections(inner.bytes)?
        .into_iter()
        .filter(|section| section.segment == "__TEXT")
        .flat_map(|section| section.bytes.iter().copied())
        .collect();
    if code.is_empty() {
        return Err(NotNative { what: "no code in `__TEXT`", offset: 0 });
    }
    Ok(code)
}

struct Section<'a> {
    segment: &'a str,
    name: &'a str,
    bytes: &'a [u8],
}

fn slice<'a>(
    bytes: &'a [u8],
    offset: usize,
    length: usize,
    what: &'static str,
) -> Result<&'a [u8], NotNative> {
    let end = offset.checked_add(length);
    end.and_then(|end| bytes.get(offset..end)).ok_or(NotNative { what, offset })
}

fn number<const N: usize>(
    bytes: &[u8],
    offset: usize,
    what: &'static str,
) -> Result<u64, NotNative> {
    let little = slice(bytes, offset, N, what)?.iter().rev();
    Ok(little.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// A name of at most 16 bytes, ended by a zero.
fn name(bytes: &[u8], offset: usize) -> Result<&str, NotNative> {
    let field = slice(bytes, offset, 16, "a name is cut off")?;
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    std::str::from_utf8(text).map_err(|_| NotNative { what: "a name is no text", offset })
}

fn sections(file: &[u8]) -> Result<Vec<Section<'_>>, NotNative> {
    if number::<4>(file, 0, "the header is cut off")? != u64::from(MAGIC) {
        return Err(NotNative { what: "no 64-bit Mach-O file", offset: 0 });
    }
    let commands = number::<4>(file, 16, "the header is cut off")?;
    if commands > u64::from(MOST) {
        return Err(NotNative { what: "too many load commands", offset: 16 });
    }
    let mut all = Vec::new();
    let mut at = HEADER_BYTES;
    for _ in 0..commands {
        let kind = number::<4>(file, at, "a load command is cut off")?;
        let size = number::<4>(file, at + 4, "a load command is cut off")? as usize;
        if size < 8 {
            return Err(NotNative { what: "a load command of no size", offset: at });
        }
        let command = slice(file, at, size, "a load command is cut off")?;
        if kind == u64::from(SEGMENT) {
            of_segment(file, command, &mut all)?;
        }
        at += size;
    }
    Ok(all)
}

/// Adds the sections of one segment; each header is within the command, so there are no more than
/// the file has bytes for.
fn of_segment<'a>(
    file: &'a [u8],
    command: &'a [u8],
    all: &mut Vec<Section<'a>>,
) -> Result<(), NotNative> {
    let count = number::<4>(command, 64, "a segment is cut off")? as usize;
    for section in 0..count {
        let start = section
            .checked_mul(SECTION_BYTES)
            .and_then(|offset| offset.checked_add(SEGMENT_BYTES))
            .ok_or(NotNative { what: "too many sections", offset: 64 })?;
        let header = slice(command, start, SECTION_BYTES, "a section is cut off")?;
        let size = number::<8>(header, 40, "a section is cut off")? as usize;
        let offset = number::<4>(header, 48, "a section is cut off")? as usize;
        let bytes = slice(file, offset, size, "a section lies outside the file")?;
        all.push(Section { segment: name(header, 16)?, name: name(header, 0)?, bytes });
    }
    Ok(())
}
