//! The members of a `.npz` archive: a zip file of `.npy` arrays, stored or deflated.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::member::Member;
use super::{EntryError, FileEntry, FileError, Listed, Placed, cut, npy};
use crate::array::Tensor;

/// Lists the arrays: those whose beginnings are found, where the list of them is not there.
pub(super) fn entries(file: &File, length: u64) -> Result<Listed, FileError> {
    let mut archive = match ZipArchive::new(file) {
        Ok(archive) => archive,
        Err(error) => return cut::entries(file, length)?.ok_or(FileError::Zip(error)),
    };
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let name = match archive.name_for_index(index) {
            Some(Ok(name)) => name.into_owned(),
            _ => format!("member {index}"),
        };
        let placed = member(&mut archive, index, length).and_then(|member| placed(file, member));
        entries.push(FileEntry { name: array_name(&name), placed });
    }
    let start = archive.central_directory_start();
    if let Some(names) = repeated(file, start, length, entries.len())? {
        // One of each is listed already, and a second one says that there are more.
        let more = |name: String| {
            let placed = Err(EntryError::Layout(String::new()));
            FileEntry { name: array_name(&name), placed }
        };
        entries.extend(names.into_iter().map(more));
    }
    Ok(entries.into())
}

/// The names of members that have had the name of another, of which the archive is read as if they
/// were not there. `known` is how many members it gives.
fn repeated(
    mut file: &File,
    start: u64,
    length: u64,
    known: usize,
) -> Result<Option<Vec<String>>, FileError> {
    // A list with room for one member more has at least its bytes.
    const LEAST: u64 = 46;
    if length.saturating_sub(start) < (known as u64 + 1) * LEAST {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(start))?;
    let mut list = BufReader::new(file);
    let (mut seen, mut again) = (HashSet::new(), Vec::new());
    let mut fixed = [0; LEAST as usize];
    while list.read_exact(&mut fixed).is_ok() && fixed.starts_with(b"PK\x01\x02") {
        let size = |at: usize| usize::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
        let mut name = vec![0; size(28)];
        list.read_exact(&mut name)?;
        list.seek_relative((size(30) + size(32)) as i64)?;
        let name = String::from_utf8_lossy(&name).into_owned();
        if !seen.insert(name.clone()) {
            again.push(name);
        }
    }
    Ok(Some(again))
}

/// What numpy calls the array of a member.
pub(super) fn array_name(member: &str) -> String {
    member.strip_suffix(".npy").unwrap_or(member).to_owned()
}

/// Where a member lies. What lies of it past the end of the file is not there.
fn member(
    archive: &mut ZipArchive<&File>,
    index: usize,
    length: u64,
) -> Result<Member, EntryError> {
    let broken = |what: String| EntryError::Layout(what);
    let member = archive
        .by_index_raw(index)
        .map_err(|error| broken(format!("its place in the archive cannot be read: {error}")))?;
    if member.encrypted() {
        return Err(broken("it is encrypted".to_owned()));
    }
    let compressed = match member.compression() {
        CompressionMethod::Stored => false,
        CompressionMethod::Deflated => true,
        other => {
            let why = "`numpy.savez` and `numpy.savez_compressed` write what is read";
            return Err(broken(format!("it is compressed by {other}; {why}")));
        }
    };
    let start = member.data_start();
    let start = start.ok_or_else(|| broken("its place in the archive is not known".to_owned()))?;
    let packed = member.compressed_size().min(length.saturating_sub(start));
    let size = if compressed { member.size() } else { packed };
    Ok(Member { start, packed, size, compressed, checksum: Some(member.crc32()) })
}

/// Where the array of a member lies.
pub(super) fn placed(file: &File, member: Member) -> Result<Placed, EntryError> {
    let mut stream = member.open(file).map_err(|error| EntryError::Header(error.to_string()))?;
    npy::placed(&mut stream, member)
}

/// Writes a `.npz` archive, without compression, an array at a time.
pub struct NpzWriter {
    archive: ZipWriter<File>,
}

impl NpzWriter {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn create(path: &Path) -> Result<NpzWriter, FileError> {
        Ok(NpzWriter { archive: ZipWriter::new(File::create(path)?) })
    }

    /// Adds an array.
    ///
    /// # Errors
    /// If the file system refuses, or numpy has no type of the format's size.
    pub fn tensor(&mut self, name: &str, tensor: &Tensor) -> Result<(), FileError> {
        let kind = npy::kind_of(tensor.format())?;
        self.member(name, (kind, tensor.shape()), tensor.bytes())
    }

    /// Adds a text as an array without axes.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn text(&mut self, name: &str, text: &str) -> Result<(), FileError> {
        let kind = format!("<U{}", text.chars().count().max(1));
        let mut bytes: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        bytes.resize(bytes.len().max(4), 0);
        self.member(name, (&kind, &[]), &bytes)
    }

    fn member(
        &mut self,
        name: &str,
        (kind, shape): (&str, &[u64]),
        bytes: &[u8],
    ) -> Result<(), FileError> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes.len() as u64 > u64::from(u32::MAX) - npy::LONGEST);
        self.archive.start_file(format!("{name}.npy"), options)?;
        self.archive.write_all(&npy::header(kind, shape))?;
        Ok(self.archive.write_all(bytes)?)
    }

    /// Writes the list of arrays and returns the size of the file in bytes.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn finish(self) -> Result<u64, FileError> {
        Ok(self.archive.finish()?.stream_position()?)
    }
}
