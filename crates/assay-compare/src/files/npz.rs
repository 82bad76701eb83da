//! The members of a `.npz` archive: a zip file of `.npy` arrays, stored or deflated.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::member::Member;
use super::{EntryError, FileEntry, FileError, Placed, npy};
use crate::array::Tensor;

/// Lists the arrays.
pub(super) fn entries(file: &File, length: u64) -> Result<Vec<FileEntry>, FileError> {
    let mut archive = ZipArchive::new(file)?;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let name = match archive.name_for_index(index) {
            Some(Ok(name)) => name.into_owned(),
            _ => format!("member {index}"),
        };
        let placed = member(&mut archive, index, length).and_then(|member| placed(file, member));
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        entries.push(FileEntry { name, placed });
    }
    Ok(entries)
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

fn placed(file: &File, member: Member) -> Result<Placed, EntryError> {
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
