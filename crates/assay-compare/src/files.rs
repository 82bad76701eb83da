//! Files of arrays: `.npy`, `.npz` and `.safetensors`, read in pieces.
//!
//! Opening a file reads its headers alone. An array that cannot be compared is still listed, with
//! its reason, so that the others can be.

mod cut;
mod inflate;
mod member;
mod npy;
mod npz;
mod safetensors;
mod slice;
mod stream;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_num::Format;
use thiserror::Error;

use crate::array::{Tensor, element_count, storage};
use crate::error::ArrayError;
use crate::source::{Source, SourceError};
use member::Member;
pub use npz::NpzWriter;
use slice::TensorSlice;
use stream::FileSource;

/// The most parts that an array is cut into, each an open file.
const MOST_SLICES: u64 = 512;

/// The most axes that an array may have, as in numpy.
const MOST_AXES: usize = 64;

/// The longest text that is read, in letters.
const LONGEST_TEXT: u64 = 1 << 16;

/// Why a file holds no arrays that can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is a folder.
    #[error("it is a folder")]
    Folder,
    /// It is no file on a disk, so that waiting for it may never end.
    #[error("it is a pipe or a device, and arrays are read from files alone")]
    Stream,
    /// Its first bytes are of no kind that is known.
    #[error("it is no .npy, .npz or .safetensors file")]
    Unknown,
    /// A header does not hold together.
    #[error("{0}")]
    Header(String),
    /// The archive is broken.
    #[error("it is no .npz file, or only the beginning of one")]
    Zip(#[from] zip::result::ZipError),
    /// An array cannot be written: its elements are smaller than bytes.
    #[error("numpy has no type for {0}, whose elements are smaller than bytes")]
    Packed(Format),
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
    /// Its elements cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// What an element of an array is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    Number(Format),
    /// Bits of that size, of a type that the file does not say; and what it says.
    Raw(Format, String),
    /// So many letters of 32 bits.
    Text(u64),
}

/// Where an array lies in its file, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Placed {
    pub(crate) element: Element,
    pub(crate) shape: Vec<u64>,
    /// The run of bytes that holds it.
    pub(crate) member: Member,
    /// Where its elements start in that run.
    pub(crate) offset: u64,
    /// Bytes from there to the end of what is the array's own.
    pub(crate) held: u64,
    pub(crate) big_endian: bool,
    /// Whether the first axis varies fastest.
    pub(crate) fortran: bool,
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
        match &placed.element {
            Element::Number(format) | Element::Raw(format, _) => Ok((*format, &placed.shape)),
            Element::Text(letters) => Err(not_text(*letters)),
        }
    }
}

/// How many elements a shape of a file has.
fn count_of(shape: &[u64]) -> Result<u64, EntryError> {
    if shape.len() > MOST_AXES {
        let axes = shape.len();
        let what = format!("it has {axes} axes, more than the {MOST_AXES} that are served");
        return Err(EntryError::Layout(what));
    }
    Ok(element_count(shape)?)
}

fn not_text(letters: u64) -> EntryError {
    EntryError::Elements(format!("U{letters}"), "text")
}

/// A file of arrays.
#[derive(Clone, Debug)]
pub struct ArrayFile {
    path: PathBuf,
    entries: Vec<FileEntry>,
    /// Where each name stands among the entries.
    places: HashMap<String, usize>,
    damage: Option<String>,
}

/// What the headers of a file say.
struct Listed {
    entries: Vec<FileEntry>,
    /// Why there may be more arrays than these.
    damage: Option<String>,
}

impl From<Vec<FileEntry>> for Listed {
    fn from(entries: Vec<FileEntry>) -> Listed {
        Listed { entries, damage: None }
    }
}

impl ArrayFile {
    /// Reads the headers of a file, whose kind its first bytes tell.
    ///
    /// # Errors
    /// If it cannot be read, is no file or is of no known kind.
    pub fn open(path: &Path) -> Result<ArrayFile, FileError> {
        // To open a pipe is to wait for somebody who writes to it.
        let kind = fs::metadata(path)?;
        if kind.is_dir() {
            return Err(FileError::Folder);
        }
        if !kind.is_file() {
            return Err(FileError::Stream);
        }
        let mut file = File::open(path)?;
        let length = kind.len();
        let mut start = Vec::new();
        file.by_ref().take(9).read_to_end(&mut start)?;
        file.rewind()?;
        let listed = if start.starts_with(npy::MAGIC) {
            let placed = npy::placed(&mut file, Member::whole(length));
            vec![FileEntry { name: String::new(), placed }].into()
        } else if start.starts_with(b"PK") {
            npz::entries(&file, length)?
        } else if start.get(8) == Some(&b'{') {
            safetensors::entries(&mut file, length)?.into()
        } else {
            return Err(FileError::Unknown);
        };
        Ok(ArrayFile::of(path, listed))
    }

    /// Of arrays of one name nobody can say which is meant: they become one that cannot be read.
    fn of(path: &Path, listed: Listed) -> ArrayFile {
        let mut entries: Vec<FileEntry> = Vec::with_capacity(listed.entries.len());
        let mut places = HashMap::new();
        for entry in listed.entries {
            let place = *places.entry(entry.name.clone()).or_insert(entries.len());
            match entries.get_mut(place) {
                Some(other) => {
                    let what = "the file has more than one array of that name";
                    other.placed = Err(EntryError::Layout(what.to_owned()));
                }
                None => entries.push(entry),
            }
        }
        ArrayFile { path: path.to_owned(), entries, places, damage: listed.damage }
    }

    /// The array of that name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&FileEntry> {
        self.entries.get(*self.places.get(name)?)
    }

    /// Why the file may have held more arrays than are listed: it was cut off.
    #[must_use]
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
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
        Ok(Box::new(self.stream(name, format)?))
    }

    /// An array as a whole, in row-major order. One that is compressed may take up to 1 GiB.
    ///
    /// # Errors
    /// Why the array cannot be read.
    pub fn tensor(&self, name: &str, format: Option<Format>) -> Result<Tensor, EntryError> {
        let mut stream = self.stream(name, format)?;
        let bytes = stream.all().map_err(|error| EntryError::Unreadable(error.to_string()))?;
        Ok(Tensor::new(stream.format(), stream.shape(), bytes)?)
    }

    /// The parts of an array along its first axis, each a source of its own.
    ///
    /// Those of an array that is compressed or in Fortran order lie in memory.
    ///
    /// # Errors
    /// Why the array cannot be compared, or cannot be cut at whole bytes.
    pub fn slices(
        &self,
        name: &str,
        format: Option<Format>,
    ) -> Result<Vec<Box<dyn Source>>, EntryError> {
        let whole = self.stream(name, format)?;
        let format = whole.format();
        let [count, rest @ ..] = whole.shape() else {
            return Err(EntryError::Layout("it has no axis to be cut along".to_owned()));
        };
        let (count, shape) = (*count, rest.to_vec());
        let elements = element_count(&shape)?;
        if !(elements * u64::from(format.bits())).is_multiple_of(8) {
            let reason = format!("parts of {elements} elements of {format} end inside a byte");
            return Err(EntryError::Layout(reason));
        }
        if count > MOST_SLICES {
            let reason =
                format!("its {count} parts are more than the {MOST_SLICES} that are served");
            return Err(EntryError::Layout(reason));
        }
        if whole.is_contiguous() {
            return (0..count)
                .map(|at| Ok(Box::new(self.slice(name, format, at)?) as Box<dyn Source>))
                .collect();
        }
        let tensor = Arc::new(self.tensor(name, Some(format))?);
        let slice = |at| Box::new(TensorSlice::new(&tensor, &shape, at)) as Box<dyn Source>;
        Ok((0..count).map(slice).collect())
    }

    fn slice(&self, name: &str, format: Format, at: u64) -> Result<FileSource, EntryError> {
        let mut placed = self.placed(name)?;
        placed.shape.remove(0);
        let bytes = storage(format, element_count(&placed.shape)?);
        placed.offset += at * bytes;
        placed.held = placed.held.saturating_sub(at * bytes).min(bytes);
        // That of the archive is not of a part.
        placed.member.checksum = None;
        self.open_stream(placed, format)
    }

    /// A text: an array without axes, as numpy writes a `str`.
    ///
    /// # Errors
    /// If there is none, or it is longer than a line should be.
    pub fn text(&self, name: &str) -> Result<String, EntryError> {
        let mut placed = self.placed(name)?;
        let (Element::Text(letters @ 0..=LONGEST_TEXT), []) = (&placed.element, &placed.shape[..])
        else {
            return Err(EntryError::Layout("it is no text of one line".to_owned()));
        };
        placed.shape = vec![*letters];
        let bytes = self.open_stream(placed, Format::U32)?.all();
        let bytes = bytes.map_err(|error| EntryError::Unreadable(error.to_string()))?;
        let letters = bytes.as_chunks().0.iter().map(|letter| u32::from_le_bytes(*letter));
        let letters = letters.filter(|&letter| letter != 0).map(char::from_u32);
        let text: Option<String> = letters.collect();
        text.ok_or_else(|| EntryError::Layout("it is no text".to_owned()))
    }

    fn placed(&self, name: &str) -> Result<Placed, EntryError> {
        let entry = self.entry(name);
        entry.ok_or_else(|| EntryError::Missing(name.to_owned()))?.placed.clone()
    }

    fn stream(&self, name: &str, format: Option<Format>) -> Result<FileSource, EntryError> {
        let placed = self.placed(name)?;
        let (held, raw) = match &placed.element {
            Element::Number(held) => (*held, None),
            Element::Raw(held, kind) => (*held, Some(kind)),
            Element::Text(letters) => return Err(not_text(*letters)),
        };
        let format = match (format, raw) {
            (Some(format), _) if format.bits() != held.bits() => {
                return Err(EntryError::Format { held: held.bits(), format });
            }
            (Some(format), _) => format,
            (None, Some(kind)) => {
                let hint = "bytes of no known format; say which with `--format`";
                return Err(EntryError::Elements(kind.clone(), hint));
            }
            (None, None) => held,
        };
        self.open_stream(placed, format)
    }

    fn open_stream(&self, placed: Placed, format: Format) -> Result<FileSource, EntryError> {
        let needed = storage(format, element_count(&placed.shape)?);
        if placed.held > needed {
            return Err(EntryError::Header(format!(
                "its shape {:?} takes {needed} bytes of {format}, and there are {}",
                placed.shape, placed.held
            )));
        }
        FileSource::open(&self.path, placed, format).map_err(|error| match error {
            SourceError::Broken(what) => EntryError::Layout(what),
            other => EntryError::Unreadable(other.to_string()),
        })
    }
}
