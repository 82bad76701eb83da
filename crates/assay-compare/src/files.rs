//! Files of arrays: `.npy`, `.npz` and `.safetensors`, read in pieces.
//!
//! Opening a file reads its headers alone. An array that cannot be compared is still listed, with
//! its reason, so that the others can be.

mod npy;
mod npz;
mod safetensors;
mod stream;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use assay_num::Format;
use thiserror::Error;

use crate::array::{element_count, storage};
use crate::error::ArrayError;
use crate::source::Source;
use stream::FileSource;

/// Why a file holds no arrays that can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Its first bytes are of no kind that is known.
    #[error("it is no .npy, .npz or .safetensors file")]
    Unknown,
    /// A header does not hold together.
    #[error("{0}")]
    Header(String),
    /// The archive is broken.
    #[error("it is no .npz file")]
    Zip(#[from] zip::result::ZipError),
}

/// Why one array of a file cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum EntryError {
    /// There is no array of that name.
    #[error("there is no array `{0}`")]
    Missing(String),
    /// Its header does not hold together.
    #[error("{0}")]
    Header(String),
    /// Its elements are no numbers that can be compared.
    #[error("its elements are `{0}`, {1}")]
    Elements(String, &'static str),
    /// Its shape cannot be.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The format asked for does not fit the elements.
    #[error("its elements take {held} bits and {format} takes {}", format.bits())]
    Format {
        /// Bits of an element of the file.
        held: u32,
        /// The format asked for.
        format: Format,
    },
    /// Its layout is not served.
    #[error("{0}")]
    Layout(String),
}

/// Where an array lies in its file, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    pub(crate) format: Format,
    pub(crate) shape: Vec<u64>,
    /// Where its bytes start.
    pub(crate) offset: u64,
    /// Bytes from there to the end of what is the array's own.
    pub(crate) held: u64,
    pub(crate) big_endian: bool,
    /// Whether the first axis varies fastest.
    pub(crate) fortran: bool,
    /// Whether the file says nothing of the format but its size.
    pub(crate) untyped: bool,
}

/// One array of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileEntry {
    /// Its name; a `.npy` file's only array has the empty one.
    pub name: String,
    placed: Result<Placed, EntryError>,
}

impl FileEntry {
    /// The format and shape, where the array can be compared.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn layout(&self) -> Result<(Format, &[u64]), EntryError> {
        let placed = self.placed.as_ref().map_err(Clone::clone)?;
        Ok((placed.format, &placed.shape))
    }
}

/// A file of arrays.
#[derive(Clone, Debug)]
pub struct ArrayFile {
    path: PathBuf,
    entries: Vec<FileEntry>,
}

impl ArrayFile {
    /// Reads the headers of a file, whose kind its first bytes tell.
    ///
    /// # Errors
    /// If it cannot be read or is of no known kind.
    pub fn open(path: &Path) -> Result<ArrayFile, FileError> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut start = Vec::new();
        file.by_ref().take(9).read_to_end(&mut start)?;
        file.seek(SeekFrom::Start(0))?;
        let entries = if start.starts_with(npy::MAGIC) {
            vec![FileEntry { name: String::new(), placed: npy::placed(&mut file, 0, length) }]
        } else if start.starts_with(b"PK") {
            npz::entries(file)?
        } else if start.get(8) == Some(&b'{') {
            safetensors::entries(&mut file, length)?
        } else {
            return Err(FileError::Unknown);
        };
        Ok(ArrayFile { path: path.to_owned(), entries })
    }

    /// All arrays, in the file's order.
    #[must_use]
    pub fn entries(&self) -> &[FileEntry] {
        &self.entries
    }

    /// An array as a source of elements. With `format` its bits are taken for that format, which
    /// must have as many: bf16 kept as `u2`, say.
    ///
    /// # Errors
    /// Why the array cannot be compared.
    pub fn source(
        &self,
        name: &str,
        format: Option<Format>,
    ) -> Result<Box<dyn Source>, EntryError> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| EntryError::Missing(name.to_owned()))?;
        let mut placed = entry.placed.clone()?;
        match format {
            Some(format) if format.bits() != placed.format.bits() => {
                return Err(EntryError::Format { held: placed.format.bits(), format });
            }
            Some(format) => placed.format = format,
            None if placed.untyped => {
                let hint = "bytes of no known format; say which with `--format`";
                return Err(EntryError::Elements(format!("V{}", placed.format.bits() / 8), hint));
            }
            None => {}
        }
        let needed = storage(placed.format, element_count(&placed.shape)?);
        if placed.held > needed {
            return Err(EntryError::Header(format!(
                "its shape {:?} takes {needed} bytes of {}, and there are {}",
                placed.shape, placed.format, placed.held
            )));
        }
        let broken = |error: io::Error| EntryError::Header(error.to_string());
        FileSource::open(&self.path, placed).map_err(broken)
    }
}
