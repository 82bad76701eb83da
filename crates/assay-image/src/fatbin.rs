//! Fatbins: containers of machine code and PTX for several NVIDIA architectures.
//!
//! NVIDIA documents no layout. This one was measured on what nvcc 11.8 to 13.5 write and on
//! libraries of the CUDA toolkit: a header of 16 bytes (magic, version, header size, size of the
//! entries), then entries, each a header of 64 bytes or more and a payload. A payload is stored as
//! it is, as an LZ4 block (flag `0x2000`) or as a zstd frame (flag `0x8000`).

use std::borrow::Cow;

use crate::bytes::{Bytes, Cursor};
use crate::cuda;
use crate::decompress::{self, Budget};
use crate::error::ImageError;
use crate::facts::{Contents, CudaKernel, Entry, Parameter, PtxImage, Skipped, Why};

/// The first four bytes of a fatbin.
const MAGIC: u32 = 0xba55_ed50;
const HEADER_BYTES: u16 = 16;
const ENTRY_HEADER_BYTES: u32 = 64;
/// The most entries that are read of one file.
const MOST_ENTRIES: usize = 1 << 20;
/// The most bytes of PTX that are kept of one file.
const MOST_TEXT: u64 = 1 << 28;
/// The most bytes of facts that are kept of one file: a small file may unpack to many kernels.
const MOST_FACTS: u64 = 1 << 30;

/// `kind` of an entry.
const PTX: u16 = 1;
const ELF: u16 = 2;
/// Intermediate code for optimisation at link time (`-dlto`).
const INTERMEDIATE: u16 = 8;

/// `flags` of an entry.
const LZ4: u32 = 0x2000;
const ZSTD: u32 = 0x8000;
/// The architecture has the suffix `a`.
const ACCELERATED: u32 = 0x10_0000;

/// True if a file starts as a fatbin does.
pub(crate) fn is_fatbin(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_le_bytes())
}

/// What is read of one file, and what may still be.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) entries: Vec<Entry>,
    budget: Budget,
    text_left: u64,
    facts_left: u64,
}

impl Reading {
    pub(crate) fn new() -> Reading {
        Reading {
            entries: Vec::new(),
            budget: Budget::new(),
            text_left: MOST_TEXT,
            facts_left: MOST_FACTS,
        }
    }

    /// Reads a file that is one fatbin, or several one after another.
    pub(crate) fn read_file(&mut self, file: Bytes<'_>) -> Result<(), ImageError> {
        let count = count_fatbins(file);
        let mut cursor = Cursor::new(file);
        let mut index = 0;
        while !cursor.is_at_end() {
            let place = if count > 1 { format!("[{index}]") } else { String::new() };
            self.read_fatbin(&mut cursor, &place)?;
            skip_zeroes(&mut cursor)?;
            index += 1;
        }
        Ok(())
    }

    /// Reads a section that holds fatbins one after another, aligned with zeroes.
    pub(crate) fn read_section(&mut self, bytes: Bytes<'_>, name: &str) -> Result<(), ImageError> {
        let mut cursor = Cursor::new(bytes);
        skip_zeroes(&mut cursor)?;
        let mut index = 0;
        while !cursor.is_at_end() {
            self.read_fatbin(&mut cursor, &format!("{name}[{index}]"))?;
            skip_zeroes(&mut cursor)?;
            index += 1;
        }
        Ok(())
    }

    fn read_fatbin(&mut self, cursor: &mut Cursor<'_>, place: &str) -> Result<(), ImageError> {
        let mut entries = Cursor::new(read_header(cursor)?);
        let mut index = 0;
        while !entries.is_at_end() {
            let place = format!("{place}[{index}]");
            let entry = RawEntry::read(&mut entries).map_err(|error| error.in_place(&place))?;
            self.check_count(&entry)?;
            let contents = self.contents(&entry, &place)?;
            self.keep(&contents, entry.at).map_err(|error| error.in_place(&place))?;
            self.entries.push(Entry { place, contents });
            index += 1;
        }
        Ok(())
    }

    fn check_count(&self, entry: &RawEntry<'_>) -> Result<(), ImageError> {
        if self.entries.len() < MOST_ENTRIES {
            return Ok(());
        }
        let detail = format!("starts more than {MOST_ENTRIES} entries");
        Err(ImageError::too_large(entry.at, "kind", detail))
    }

    /// Counts the facts of an image among those that are kept.
    fn keep(&mut self, contents: &Contents, at: u64) -> Result<(), ImageError> {
        let Contents::Cuda(image) = contents else { return Ok(()) };
        let of_kernel = |kernel: &CudaKernel| {
            let parameters = size_of::<Parameter>() * kernel.parameters.len();
            (size_of::<CudaKernel>() + kernel.name.len() + parameters) as u64
        };
        let size = image.kernels.iter().map(of_kernel).sum();
        self.facts_left = self.facts_left.checked_sub(size).ok_or_else(|| {
            let detail = format!("passes the {MOST_FACTS} bytes of facts that are kept of a file");
            ImageError::too_large(at, "entry payload", detail)
        })?;
        Ok(())
    }

    fn contents(&mut self, entry: &RawEntry<'_>, place: &str) -> Result<Contents, ImageError> {
        let architecture = entry.architecture();
        let why = match entry.kind {
            ELF | PTX => return self.unpacked(entry, architecture, place),
            INTERMEDIATE => Why::Intermediate,
            kind => Why::UnknownKind(kind),
        };
        Ok(Contents::Skipped(Skipped { architecture, why }))
    }

    fn unpacked(
        &mut self,
        entry: &RawEntry<'_>,
        architecture: String,
        place: &str,
    ) -> Result<Contents, ImageError> {
        let payload = entry.unpack(&mut self.budget).map_err(|error| error.in_place(place))?;
        let (bytes, place) = match &payload {
            Cow::Borrowed(_) => (entry.payload, Cow::Borrowed(place)),
            Cow::Owned(unpacked) => {
                (Bytes::new(unpacked), Cow::Owned(format!("{place} (decompressed)")))
            }
        };
        if entry.kind == ELF {
            let suffix = if entry.flags & ACCELERATED == 0 { "" } else { "a" };
            return cuda::read_image(bytes, suffix).map_err(|error| error.in_place(&place));
        }
        let text = self.text(bytes).map_err(|error| error.in_place(&place))?;
        Ok(Contents::Ptx(PtxImage { architecture, text }))
    }

    /// The PTX of a payload, without the zeroes that fill it up.
    fn text(&mut self, bytes: Bytes<'_>) -> Result<String, ImageError> {
        let data = bytes.data();
        let end = data.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let data = data.get(..end).unwrap_or_default();
        self.text_left = self.text_left.checked_sub(end as u64).ok_or_else(|| {
            let detail = format!("passes the {MOST_TEXT} bytes of PTX that are kept of one file");
            ImageError::too_large(bytes.place(0), "PTX", detail)
        })?;
        let text = std::str::from_utf8(data).map_err(|error| {
            ImageError::malformed(bytes.place(error.valid_up_to() as u64), "PTX", "is not text")
        })?;
        Ok(text.to_owned())
    }
}

/// Reads the header of a fatbin: the bytes of all its entries.
fn read_header<'a>(cursor: &mut Cursor<'a>) -> Result<Bytes<'a>, ImageError> {
    let at = cursor.place();
    let magic = cursor.u32("fatbin magic")?;
    if magic != MAGIC {
        let detail = format!("is {magic:#010x}; a fatbin starts with {MAGIC:#010x}");
        return Err(ImageError::malformed(at, "fatbin magic", detail));
    }
    let version = cursor.u16("fatbin version")?;
    if version != 1 {
        let detail = format!("is {version}; 1 is read here");
        return Err(ImageError::unsupported(at + 4, "fatbin version", detail));
    }
    let header = cursor.u16("fatbin header size")?;
    if header < HEADER_BYTES {
        let detail = format!("is {header}; the header has {HEADER_BYTES} bytes");
        return Err(ImageError::malformed(at + 6, "fatbin header size", detail));
    }
    let size = cursor.u64("fatbin size")?;
    cursor.take((header - HEADER_BYTES).into(), "fatbin header size")?;
    cursor.take(size, "fatbin size")
}

/// How many fatbins follow one another; what cannot be told counts as one.
fn count_fatbins(file: Bytes<'_>) -> usize {
    let mut cursor = Cursor::new(file);
    let mut count = 0;
    while !cursor.is_at_end() && count < 2 {
        count += 1;
        if read_header(&mut cursor).and_then(|_| skip_zeroes(&mut cursor)).is_err() {
            break;
        }
    }
    count
}

/// Skips the zeroes between two fatbins.
fn skip_zeroes(cursor: &mut Cursor<'_>) -> Result<(), ImageError> {
    let zeroes = cursor.rest().data().iter().take_while(|byte| **byte == 0).count();
    cursor.take(zeroes as u64, "padding").map(|_| ())
}

/// One entry as it lies in the file.
#[derive(Debug)]
struct RawEntry<'a> {
    at: u64,
    kind: u16,
    payload: Bytes<'a>,
    compressed_size: u32,
    architecture: u32,
    flags: u32,
    size: u64,
}

impl<'a> RawEntry<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<RawEntry<'a>, ImageError> {
        let at = cursor.place();
        let kind = cursor.u16("entry kind")?;
        cursor.u16("entry version")?;
        let header_size = cursor.u32("entry header size")?;
        let payload_size = cursor.u64("entry payload size")?;
        if header_size < ENTRY_HEADER_BYTES {
            let detail = format!("is {header_size}; the header has {ENTRY_HEADER_BYTES} or more");
            return Err(ImageError::malformed(at + 4, "entry header size", detail));
        }
        let rest = cursor.take(u64::from(header_size) - 16, "entry header size")?;
        Ok(RawEntry {
            at,
            kind,
            payload: cursor.take(payload_size, "entry payload size")?,
            compressed_size: rest.u32(0, "entry compressed size")?,
            architecture: rest.u32(12, "entry architecture")?,
            flags: rest.u32(24, "entry flags")?,
            size: rest.u64(40, "entry uncompressed size")?,
        })
    }

    fn architecture(&self) -> String {
        let suffix = if self.flags & ACCELERATED == 0 { "" } else { "a" };
        format!("sm_{}{suffix}", self.architecture)
    }

    /// The payload as it was before it was compressed.
    fn unpack(&self, budget: &mut Budget) -> Result<Cow<'a, [u8]>, ImageError> {
        if self.flags & (LZ4 | ZSTD) == 0 {
            return Ok(Cow::Borrowed(self.payload.data()));
        }
        budget.spend(self.size, self.at + 56, "entry uncompressed size")?;
        let packed = self.payload.slice(0, self.compressed_size.into(), "entry compressed size")?;
        let unpack = match self.flags & ZSTD {
            0 => decompress::lz4,
            _ => decompress::zstd,
        };
        unpack(packed, self.size, "entry payload").map(Cow::Owned)
    }
}
