//! The header of a `.npy` array (NEP 1 of the `numpy` project, format versions 1.0 to 3.0).

use std::io::{Error, ErrorKind, Read};

use assay_num::Format;

use super::member::Member;
use super::{Element, EntryError, FileError, Placed, count_of};

/// What every array begins with.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read, in bytes; numpy itself stops at 10,000.
pub(super) const LONGEST: u64 = 1 << 16;

/// Reads the header of an array, from the front of the run of bytes that holds it.
pub(super) fn placed(stream: &mut impl Read, member: Member) -> Result<Placed, EntryError> {
    let broken = |what: &str| EntryError::Header(format!("it {what}"));
    let io = |error: Error| match error.kind() {
        ErrorKind::UnexpectedEof => broken("ends within its header"),
        _ => EntryError::Header(format!("its header cannot be read: {error}")),
    };
    let mut fixed = [0; 8];
    stream.read_exact(&mut fixed).map_err(io)?;
    if !fixed.starts_with(MAGIC) {
        return Err(broken("is no .npy array"));
    }
    let size_bytes = match fixed[6] {
        1 => 2,
        2 | 3 => 4,
        other => return Err(broken(&format!("is of version {other}, not of 1 to 3"))),
    };
    let mut size = [0; 4];
    stream.read_exact(&mut size[..size_bytes]).map_err(io)?;
    let size = u64::from(u32::from_le_bytes(size));
    let offset = 8 + size_bytes as u64 + size;
    if size > LONGEST {
        let what = "says that its header takes";
        return Err(broken(&format!("{what} {size} bytes, more than the {LONGEST} that are read")));
    }
    if offset > member.size {
        let all = member.size;
        return Err(broken(&format!("says that its header takes {size} bytes, of {all} in all")));
    }
    let mut header = vec![0; size as usize];
    stream.read_exact(&mut header).map_err(io)?;
    described(&String::from_utf8_lossy(&header), member, offset)
}

/// What the header's dictionary says.
fn described(header: &str, member: Member, offset: u64) -> Result<Placed, EntryError> {
    let (element, big_endian) = element(value_of(header, "descr")?)?;
    let fortran = match value_of(header, "fortran_order")? {
        text if text.starts_with("True") => true,
        text if text.starts_with("False") => false,
        _ => return Err(missing("fortran_order")),
    };
    let shape = shape(value_of(header, "shape")?)?;
    count_of(&shape)?;
    // With one axis or none both orders are the same.
    let fortran = fortran && shape.iter().filter(|&&size| size > 1).count() > 1;
    let held = member.size - offset;
    Ok(Placed { element, shape, member, offset, held, big_endian, fortran })
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
    let none = || {
        let start: String = text.chars().take(40).collect();
        let start = start.split_inclusive(')').next().unwrap_or_default().to_owned();
        EntryError::Header(format!("its header's `shape` is none: {start}"))
    };
    let (inside, _) = inside.ok_or_else(none)?;
    let sizes = inside.split(',').map(str::trim).filter(|size| !size.is_empty());
    let sizes = sizes.map(|size| size.trim_end_matches('L').parse::<u64>());
    sizes.collect::<Result<_, _>>().map_err(|_| none())
}

/// What a type string says of an element, and whether it is big-endian.
fn element(text: &str) -> Result<(Element, bool), EntryError> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let kind = quote.and_then(|quote| text[1..].split_once(quote));
    let Some((kind, _)) = kind else {
        if quote.is_some() || !text.starts_with('[') {
            return Err(missing("descr"));
        }
        return Err(EntryError::Elements("records".to_owned(), "which have no one format"));
    };
    let (big_endian, name) = match kind.strip_prefix(['<', '>', '|', '=']) {
        Some(name) => (kind.starts_with('>'), name),
        None => (false, kind),
    };
    let letters = name.strip_prefix('U').and_then(|letters| letters.parse::<u64>().ok());
    let element = if let Some(format) = number(name) {
        Element::Number(format)
    } else if let Some(format) = raw(name) {
        Element::Raw(format, name.to_owned())
    } else if let Some(letters) = letters {
        Element::Text(letters)
    } else {
        return Err(EntryError::Elements(kind.to_owned(), reason(name)));
    };
    Ok((element, big_endian))
}

/// The format of a numpy type.
fn number(name: &str) -> Option<Format> {
    Some(match name {
        "f8" => Format::F64,
        "f4" => Format::F32,
        "f2" => Format::F16,
        "i1" => Format::I8,
        "u1" | "b1" => Format::U8,
        "i2" => Format::I16,
        "u2" => Format::U16,
        "i4" => Format::I32,
        "u4" => Format::U32,
        "i8" => Format::I64,
        "u8" => Format::U64,
        _ => return None,
    })
}

/// The bits of types that numpy does not name: bf16 is written as `V2`, and floats of 8 bits as
/// `V1` or `f1`, whichever they are.
fn raw(name: &str) -> Option<Format> {
    Some(match name {
        "V1" | "f1" => Format::U8,
        "V2" => Format::U16,
        "V4" => Format::U32,
        "V8" => Format::U64,
        _ => return None,
    })
}

/// Why elements of a type are not compared.
fn reason(name: &str) -> &'static str {
    match name.chars().next() {
        Some('O') => "Python objects, which are not read: that would run their code",
        Some('c') => "complex numbers; compare real and imaginary parts",
        Some('S' | 'a') => "text",
        Some('M' | 'm') => "times",
        _ => "which is no format that is compared",
    }
}

/// How numpy names a format: what has no name there by its size.
pub(super) fn kind_of(format: Format) -> Result<&'static str, FileError> {
    Ok(match format {
        Format::F64 => "<f8",
        Format::F32 | Format::Tf32 => "<f4",
        Format::F16 => "<f2",
        Format::Bf16 => "<V2",
        Format::E4m3 | Format::E5m2 | Format::E8m0 => "|V1",
        Format::I8 => "|i1",
        Format::U8 => "|u1",
        Format::I16 => "<i2",
        Format::U16 => "<u2",
        Format::I32 => "<i4",
        Format::U32 => "<u4",
        Format::I64 => "<i8",
        Format::U64 => "<u8",
        packed => return Err(FileError::Packed(packed)),
    })
}

/// A header of version 1.0, padded so that the data start at a multiple of 64 bytes.
pub(super) fn header(kind: &str, shape: &[u64]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
    let text =
        format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}", axes.join(" "));
    let before = MAGIC.len() + 4;
    let length = (before + text.len() + 1).next_multiple_of(64) - before;
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(before + length - 1, b' ');
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_an_array_start_at_a_multiple_of_64_bytes() {
        for shape in [vec![], vec![1], vec![1000, 4096, 7]] {
            let header = header("<f4", &shape);
            assert_eq!(header.len() % 64, 0);
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }

    #[test]
    fn what_is_written_of_a_format_is_read_as_it_or_as_bits_of_its_size() {
        for format in Format::ALL {
            let Ok(kind) = kind_of(format) else {
                assert!(format.is_packed(), "{format}");
                continue;
            };
            let (element, big_endian) = element(&format!("'{kind}'")).expect("known");
            assert!(!big_endian);
            match element {
                Element::Number(read) if format == Format::Tf32 => assert_eq!(read, Format::F32),
                Element::Number(read) => assert_eq!(read, format),
                Element::Raw(read, _) => assert_eq!(read.bits(), format.bits()),
                Element::Text(_) => panic!("{format} is no text"),
            }
        }
    }
}
