//! The tensors of a `.safetensors` file: eight bytes of length, a header in JSON, then the data.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use assay_num::Format;
use serde::Deserialize;
use serde_json::Value;

use super::member::Member;
use super::{Element, EntryError, FileEntry, FileError, Placed};
use crate::array::{element_count, storage};

/// The longest header that the format allows, in bytes.
const LONGEST: u64 = 100_000_000;

#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
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
    let described: BTreeMap<String, Value> = serde_json::from_slice(&header)
        .map_err(|error| FileError::Header(format!("its header is no JSON: {error}")))?;
    let data = (size + 8, length - size - 8);
    let tensors = described.into_iter().filter(|(name, _)| name != "__metadata__");
    let mut entries: Vec<FileEntry> =
        tensors.map(|(name, value)| FileEntry { name, placed: placed(value, data) }).collect();
    let start = |entry: &FileEntry| entry.placed.as_ref().map_or(u64::MAX, |placed| placed.offset);
    entries.sort_by_key(start);
    Ok(entries)
}

fn placed(value: Value, (data, held): (u64, u64)) -> Result<Placed, EntryError> {
    let described: Described = serde_json::from_value(value)
        .map_err(|error| EntryError::Header(format!("its header is broken: {error}")))?;
    let format = format(&described.dtype)?;
    let [start, end] = described.data_offsets;
    let needed = storage(format, element_count(&described.shape)?);
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
