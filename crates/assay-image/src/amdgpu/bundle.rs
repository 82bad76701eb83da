//! Offload bundles: code objects for several architectures in one file, as hipcc leaves them in
//! the section `.hip_fatbin` of a host file, plain or compressed.
//!
//! Layout: "Clang Offload Bundler" in clang's documentation, and `OffloadBundle.cpp` for compressed
//! bundles of versions 1 to 3.

use super::read_code_object_at;
use crate::bytes::{Bytes, Cursor};
use crate::error::ImageError;
use crate::facts::{Contents, Entry};

/// What a plain bundle starts with.
const PLAIN: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// What a compressed bundle starts with.
const COMPRESSED: &[u8] = b"CCOB";

/// True if a file starts as an offload bundle does, compressed or not.
pub(crate) fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(PLAIN) || bytes.starts_with(COMPRESSED)
}

/// The most bytes that one compressed bundle may hold.
const MOST_BYTES: u64 = 1 << 30;
/// The most bytes that all compressed bundles of one file may hold.
const MOST_BYTES_IN_ALL: u64 = 1 << 32;

/// Reads every code object of a bundle; `bytes` may go on behind it (`.hip_fatbin` holds several,
/// each aligned to a page). Places are `[0]`, `[1]`, ...
///
/// # Errors
/// A bundle or one of its code objects is damaged or is of a kind that is not read here.
pub(crate) fn read_bundle(bytes: Bytes<'_>) -> Result<Vec<Entry>, ImageError> {
    let mut found = Found { entries: Vec::new(), left: MOST_BYTES_IN_ALL };
    let mut rest = bytes;
    while let Some(padding) = rest.data().iter().position(|byte| *byte != 0) {
        rest = rest.after(padding as u64);
        let length = match rest.data() {
            data if data.starts_with(PLAIN) => found.read_plain(rest)?,
            data if data.starts_with(COMPRESSED) => found.read_compressed(rest)?,
            _ => {
                let detail = "is neither padding nor the start of a bundle";
                return Err(ImageError::malformed(rest.place(0), "offload bundle", detail));
            }
        };
        rest = rest.after(length);
    }
    Ok(found.entries)
}

/// What has been read so far.
struct Found {
    entries: Vec<Entry>,
    /// Bytes that may still be decompressed.
    left: u64,
}

impl Found {
    /// Reads a plain bundle and returns its length.
    fn read_plain(&mut self, bytes: Bytes<'_>) -> Result<u64, ImageError> {
        let mut cursor = Cursor::new(bytes.after(PLAIN.len() as u64));
        let at = cursor.place();
        let count = cursor.u64("number of entries")?;
        let mut end = PLAIN.len() as u64 + 8;
        // Entries that overlap would make a small file hold any number of code objects.
        let mut held = 0_u64;
        for _ in 0..count {
            let place = cursor.place();
            let (offset, size) = (cursor.u64("entry offset")?, cursor.u64("entry size")?);
            let length = cursor.u64("entry name size")?;
            let name = cursor.take(length, "entry name")?;
            let contents = bytes.slice(offset, size, "entry")?;
            held = held.saturating_add(size);
            if held > bytes.len() {
                let detail = "overlaps others: together they are longer than the file";
                return Err(ImageError::malformed(place, "entry", detail));
            }
            end = end.max(offset.saturating_add(size));
            end = end.max(cursor.place().saturating_sub(at) + PLAIN.len() as u64);
            self.read_entry(name, contents)?;
        }
        Ok(end)
    }

    /// Reads one code object; what is for the host is passed over.
    fn read_entry(&mut self, name: Bytes<'_>, contents: Bytes<'_>) -> Result<(), ImageError> {
        if name.data().starts_with(b"host") {
            return Ok(());
        }
        let place = format!("[{}]", self.entries.len());
        let named = String::from_utf8_lossy(name.data());
        let named: String = named.chars().take(80).collect();
        if !contents.data().starts_with(b"\x7fELF") {
            let detail = format!("`{named}` is no ELF file; code objects alone are read");
            let error = ImageError::unsupported(contents.place(0), "entry", detail);
            return Err(error.in_place(&place));
        }
        let image = read_code_object_at(contents).map_err(|error| error.in_place(&place))?;
        let processor = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
        if let Some((_, target)) = named.rsplit_once("--")
            && target.starts_with("gfx")
            && processor(target) != processor(&image.architecture)
        {
            let detail = format!("is `{named}`, and holds code for {}", image.architecture);
            let error = ImageError::malformed(name.place(0), "entry name", detail);
            return Err(error.in_place(&place));
        }
        self.entries.push(Entry { place, contents: Contents::Hip(image) });
        Ok(())
    }

    /// Reads a compressed bundle and returns its length.
    fn read_compressed(&mut self, bytes: Bytes<'_>) -> Result<u64, ImageError> {
        let header = Compressed::read(bytes)?;
        let most = MOST_BYTES.min(self.left);
        if header.uncompressed > most {
            let detail = format!("is {}; at most {most} bytes are read", header.uncompressed);
            return Err(ImageError::too_large(bytes.place(0), "uncompressed size", detail));
        }
        self.left -= header.uncompressed;
        let data = match header.method {
            ZSTD => unpacked(header.data)?,
            other => {
                let known = if other == ZLIB { ", zlib" } else { "" };
                let detail = format!("is {other}{known}; zstd (1) is read");
                return Err(ImageError::unsupported(bytes.place(6), "compression method", detail));
            }
        };
        let place = format!("[{}]", self.entries.len());
        if data.len() as u64 != header.uncompressed || !data.starts_with(PLAIN) {
            let detail = format!(
                "decompresses to {} of {} bytes, or to something else than a bundle",
                data.len(),
                header.uncompressed
            );
            return Err(ImageError::malformed(header.data.place(0), "compressed bundle", detail));
        }
        self.read_plain(Bytes::new(&data))
            .map_err(|error| error.in_place(&format!("{place}, decompressed")))?;
        Ok(header.length)
    }
}

/// Compression methods of a header.
const ZLIB: u16 = 0;
const ZSTD: u16 = 1;

/// A compressed bundle's header.
struct Compressed<'a> {
    method: u16,
    /// Bytes of header and data.
    length: u64,
    /// Bytes after decompression.
    uncompressed: u64,
    data: Bytes<'a>,
}

impl<'a> Compressed<'a> {
    fn read(bytes: Bytes<'a>) -> Result<Compressed<'a>, ImageError> {
        let mut cursor = Cursor::new(bytes.after(COMPRESSED.len() as u64));
        let place = cursor.place();
        let version = cursor.u16("bundle version")?;
        let method = cursor.u16("compression method")?;
        let size = |cursor: &mut Cursor<'a>, field| match version {
            3 => cursor.u64(field),
            _ => cursor.u32(field).map(u64::from),
        };
        let length = match version {
            // The whole rest of the file.
            1 => bytes.len(),
            2 | 3 => size(&mut cursor, "bundle size")?,
            other => {
                let detail = format!("is {other}; 1 to 3 are read");
                return Err(ImageError::unsupported(place, "bundle version", detail));
            }
        };
        let uncompressed = size(&mut cursor, "uncompressed size")?;
        cursor.u64("hash")?;
        let header = cursor.place().saturating_sub(bytes.place(0));
        let data = length.checked_sub(header).ok_or_else(|| {
            let detail = format!("is {length}, less than its header");
            ImageError::malformed(place, "bundle size", detail)
        })?;
        let data = bytes.slice(header, data, "compressed bundle")?;
        Ok(Compressed { method, length, uncompressed, data })
    }
}

/// Until decompression is here.
fn unpacked(packed: Bytes<'_>) -> Result<Vec<u8>, ImageError> {
    Err(ImageError::unsupported(packed.place(0), "compressed bundle", "is not read yet"))
}
