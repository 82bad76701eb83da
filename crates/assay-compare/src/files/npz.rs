//! The arrays of a `.npz` archive: a zip file of `.npy` members, stored without compression.

use std::fs::File;

use zip::{CompressionMethod, ZipArchive};

use super::{EntryError, FileEntry, FileError, npy};

/// Lists the arrays.
pub(super) fn entries(file: File) -> Result<Vec<FileEntry>, FileError> {
    let mut headers = file.try_clone()?;
    let mut archive = ZipArchive::new(file)?;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let (name, compressed, start, size) = {
            let member = archive.by_index_raw(index)?;
            let compressed = member.compression() != CompressionMethod::Stored;
            let hidden = compressed || member.encrypted();
            (member.name()?.into_owned(), hidden, member.data_start(), member.compressed_size())
        };
        let placed = if compressed {
            let why = "it is compressed; save it with `numpy.savez`";
            Err(EntryError::Layout(why.to_owned()))
        } else if let Some(start) = start {
            npy::placed(&mut headers, start, size)
        } else {
            Err(EntryError::Layout("its place in the archive is not known".to_owned()))
        };
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        entries.push(FileEntry { name, placed });
    }
    Ok(entries)
}
