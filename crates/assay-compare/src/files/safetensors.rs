//! The tensors of a `.safetensors` file: eight bytes of length, a header in JSON, then the data.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;

use assay_num::Format;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
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

/// The header: names in the file's order, those that repeat too, and what is said of each.
struct Header<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Header<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Header<T>, D::Error> {
        deserializer.deserialize_map(Names(PhantomData))
    }
}

/// Collects names and what is said of them.
struct Names<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
    type Value = Header<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
            } else {
                all.push((name, map.next_value()?));
            }
        }
        Ok(Header(all))
    }
}

/// What a header says of each tensor, or what is wrong with it.
fn described(header: &[u8]) -> Result<Header<Result<Described, String>>, FileError> {
    // One that is whole takes a tenth of the memory so.
    if let Ok(Header(all)) = serde_json::from_slice(header) {
        return Ok(Header(all.into_iter().map(|(name, one)| (name, Ok(one))).collect()));
    }
    let Header(all) = serde_json::from_slice::<Header<Value>>(header)
        .map_err(|error| FileError::Header(format!("its header is no JSON: {error}")))?;
    let one = |value| serde_json::from_value(value).map_err(|error| error.to_string());
    Ok(Header(all.into_iter().map(|(name, value)| (name, one(value))).collect()))
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
    let Header(described) = described(&header)?;
    drop(header);
    let data = (size + 8, length - size - 8);
    let mut entries: Vec<FileEntry> = described
        .into_iter()
        .map(|(name, described)| FileEntry { name, placed: placed(described, data) })
        .collect();
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

fn placed(
    described: Result<Described, String>,
    (data, held): (u64, u64),
) -> Result<Placed, EntryError> {
    let described =
        described.map_err(|error| EntryError::Header(format!("its header is broken: {error}")))?;
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
