//! The tensors of a `.safetensors` file: eight bytes of length, a header in JSON, then the data.

use std::fmt;
use std::fs::File;
use std::io::Read;

use assay_num::Format;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::member::Member;
use super::{Element, EntryError, FileEntry, FileError, Placed, count_of};
use crate::array::storage;

/// The longest header that the format allows, in bytes.
const LONGEST: u64 = 100_000_000;

/// What is said of one tensor.
#[derive(serde::Deserialize)]
#[serde(expecting = "an object with `dtype`, `shape` and `data_offsets`")]
struct Described {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// The header: names in the file's order, those that repeat too.
struct Header(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Header, D::Error> {
        deserializer.deserialize_map(Names)
    }
}

/// Collects names and what is said of them.
struct Names;

impl<'de> Visitor<'de> for Names {
    type Value = Header;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(Header(all))
    }
}

/// Lists the tensors, in the order of their data.
pub(super) fn entries(file: &mut File, length: u64) -> Result<Vec<FileEntry>, FileError> {
    let mut size = [0; 8];
    file.read_exact(&mut size)?;
    let size = u64::from_le_bytes(size);
    if size > LONGEST || size + 8 > length {
        let reason = format!("it says that its header takes {size} bytes, of {length} in all");
        return Err(FileError::Header(reason));
    }
    let mut header = vec![0; size as usize];
    file.read_exact(&mut header)?;
    let Header(described) = serde_json::from_slice(&header)
        .map_err(|error| FileError::Header(format!("its header is no JSON: {error}")))?;
    let data = (size + 8, length - size - 8);
    let tensors = described.into_iter().filter(|(name, _)| name != "__metadata__");
    let mut entries: Vec<FileEntry> =
        tensors.map(|(name, value)| FileEntry { name, placed: placed(value, data) }).collect();
    let start = |entry: &FileEntry| entry.placed.as_ref().map_or(u64::MAX, |placed| placed.offset);
    entries.sort_by_key(start);
    refuse_what_overlaps(&mut entries);
    Ok(entries)
}

/// Two tensors cannot have the same bytes: which of them is wrong nobody can say.
fn refuse_what_overlaps(entries: &mut [FileEntry]) {
    let (mut end, mut holder) = (0, None);
    for at in 0..entries.len() {
        let Ok(placed) = &entries[at].placed else { continue };
        let (start, bytes) = (placed.offset, bytes_of(placed));
        if bytes == 0 {
            continue;
        }
        if let Some(other) = holder.filter(|_| start < end) {
            for (one, with) in [(at, other), (other, at)] {
                let what = format!("its bytes are also those of `{}`", entries[with].name);
                entries[one].placed = Err(EntryError::Header(what));
            }
        }
        if start.saturating_add(bytes) > end {
            (end, holder) = (start.saturating_add(bytes), Some(at));
        }
    }
}

/// Bytes that a tensor takes, of which a file that was cut off may hold fewer.
fn bytes_of(placed: &Placed) -> u64 {
    match &placed.element {
        Element::Number(format) => storage(*format, count_of(&placed.shape).unwrap_or_default()),
        _ => placed.held,
    }
}

fn placed(value: Value, (data, held): (u64, u64)) -> Result<Placed, EntryError> {
    let described: Described = serde_json::from_value(value)
        .map_err(|error| EntryError::Header(format!("its header is broken: {error}")))?;
    let format = format(&described.dtype)?;
    let [start, end] = described.data_offsets;
    let needed = storage(format, count_of(&described.shape)?);
    if end < start || end - start != needed {
        return Err(EntryError::Header(format!(
            "its shape {:?} takes {needed} bytes of {format}, and it says that it lies from \
             {start} to {end}",
            described.shape
        )));
    }
    if start > held {
        let reason = format!("it says that it starts at {start} of {held} bytes of data");
        return Err(EntryError::Header(reason));
    }
    Ok(Placed {
        element: Element::Number(format),
        shape: described.shape,
        member: Member::whole(data + held),
        offset: data + start,
        held: needed.min(held - start),
        big_endian: false,
        fortran: false,
    })
}

fn format(name: &str) -> Result<Format, EntryError> {
    Ok(match name {
        "F64" => Format::F64,
        "F32" => Format::F32,
        "F16" => Format::F16,
        "BF16" => Format::Bf16,
        "F8_E4M3" => Format::E4m3,
        "F8_E5M2" => Format::E5m2,
        "F8_E8M0" => Format::E8m0,
        "F4" => Format::E2m1,
        "I64" => Format::I64,
        "I32" => Format::I32,
        "I16" => Format::I16,
        "I8" => Format::I8,
        "U64" => Format::U64,
        "U32" => Format::U32,
        "U16" => Format::U16,
        "U8" | "BOOL" => Format::U8,
        "C64" => {
            let why = "complex numbers; compare real and imaginary parts";
            return Err(EntryError::Elements(name.to_owned(), why));
        }
        _ => {
            let why = "which is no format that is compared";
            return Err(EntryError::Elements(name.to_owned(), why));
        }
    })
}
