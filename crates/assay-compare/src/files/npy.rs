//! The header of a `.npy` array (NEP 1 of the `numpy` project, format versions 1.0 to 3.0).

use std::io::{Read, Seek, SeekFrom};

use assay_num::Format;

use super::{EntryError, Placed};
use crate::array::element_count;

/// What every array begins with.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// Reads the header of an array that takes `length` bytes from `start` on.
pub(super) fn placed(
    file: &mut (impl Read + Seek),
    start: u64,
    length: u64,
) -> Result<Placed, EntryError> {
    let broken = |what: &str| EntryError::Header(format!("it {what}"));
    let io = |error: std::io::Error| EntryError::Header(format!("its header ends: {error}"));
    file.seek(SeekFrom::Start(start)).map_err(io)?;
    let mut fixed = [0; 8];
    file.read_exact(&mut fixed).map_err(io)?;
    if !fixed.starts_with(MAGIC) {
        return Err(broken("is no .npy array"));
    }
    let size_bytes = match fixed[6] {
        1 => 2,
        2 | 3 => 4,
        other => return Err(broken(&format!("is of version {other}, later than 3"))),
    };
    let mut size = [0; 4];
    file.read_exact(&mut size[..size_bytes]).map_err(io)?;
    let size = u64::from(u32::from_le_bytes(size));
    let before = 8 + size_bytes as u64;
    if size > LONGEST || before + size > length {
        return Err(broken(&format!("says that its header takes {size} bytes")));
    }
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header).map_err(io)?;
    let header = String::from_utf8_lossy(&header).into_owned();
    described(&header, start + before + size, length - before - size)
}

/// What the header's dictionary says.
fn described(header: &str, offset: u64, held: u64) -> Result<Placed, EntryError> {
    let kind = value_of(header, "descr")?;
    let fortran = match value_of(header, "fortran_order")? {
        text if text.starts_with("True") => true,
        text if text.starts_with("False") => false,
        _ => return Err(missing("fortran_order")),
    };
    let shape = shape(value_of(header, "shape")?)?;
    element_count(&shape)?;
    let (format, big_endian, untyped) = element(kind)?;
    // With one axis or none both orders are the same.
    let fortran = fortran && shape.iter().filter(|&&size| size > 1).count() > 1;
    Ok(Placed { format, shape, offset, held, big_endian, fortran, untyped })
}

/// The text after a key and its colon.
fn value_of<'a>(header: &'a str, key: &str) -> Result<&'a str, EntryError> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let rest = quoted.iter().find_map(|key| header.split_once(key.as_str()));
    let rest = rest.and_then(|(_, rest)| rest.trim_start().strip_prefix(':'));
    rest.map(str::trim_start).ok_or_else(|| missing(key))
}

fn missing(key: &str) -> EntryError {
    EntryError::Header(format!("its header says no `{key}`"))
}

fn shape(text: &str) -> Result<Vec<u64>, EntryError> {
    let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (inside, _) = inside.ok_or_else(|| missing("shape"))?;
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes = sizes.map(|size| size.trim_end_matches('L').parse::<u64>());
    sizes.collect::<Result<_, _>>().map_err(|_| missing("shape"))
}

/// The format of a type string, whether it is big-endian, and whether it is bytes of no type.
fn element(text: &str) -> Result<(Format, bool, bool), EntryError> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let kind = quote.and_then(|quote| text[1..].split(quote).next());
    let Some(kind) = kind else {
        return Err(EntryError::Elements("records".to_owned(), "which have no one format"));
    };
    let (order, name) = match kind.chars().next() {
        Some(order @ ('<' | '>' | '|' | '=')) => (order, &kind[1..]),
        _ => ('=', kind),
    };
    let (format, untyped) = match name {
        "f8" => (Format::F64, false),
        "f4" => (Format::F32, false),
        "f2" => (Format::F16, false),
        "i1" => (Format::I8, false),
        "u1" | "b1" => (Format::U8, false),
        "i2" => (Format::I16, false),
        "u2" => (Format::U16, false),
        "i4" => (Format::I32, false),
        "u4" => (Format::U32, false),
        "i8" => (Format::I64, false),
        "u8" => (Format::U64, false),
        "V1" => (Format::U8, true),
        "V2" => (Format::U16, true),
        _ => {
            let why = match name.chars().next() {
                Some('O') => "Python objects, which are not read: that would run their code",
                Some('c') => "complex numbers; compare real and imaginary parts",
                Some('U' | 'S') => "text",
                Some('M' | 'm') => "times",
                _ => "which is no format that is compared",
            };
            return Err(EntryError::Elements(kind.to_owned(), why));
        }
    };
    Ok((format, order == '>' && format.bits() > 8, untyped))
}
