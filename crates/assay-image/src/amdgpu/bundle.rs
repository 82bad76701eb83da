//! Offload bundles: code objects for several architectures in one file, as hipcc leaves them in
//! the section `.hip_fatbin` of a host file, plain or compressed.
//!
//! Layout: "Clang Offload Bundler" in clang's documentation, and `OffloadBundle.cpp` for compressed
//! bundles of versions 1 to 3.

use super::{RELOCATABLE, read_code_object_at};
use crate::bytes::{Bytes, Cursor};
use crate::decompress::{self, Budget};
use crate::error::ImageError;
use crate::facts::{Contents, Entry, Skipped, Why};

/// What a plain bundle starts with.
const PLAIN: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// What a compressed bundle starts with.
const COMPRESSED: &[u8] = b"CCOB";

/// True if a file starts as an offload bundle does, compressed or not.
pub(crate) fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(PLAIN) || bytes.starts_with(COMPRESSED)
}

/// Reads every code object of a bundle; `bytes` may go on behind it (`.hip_fatbin` holds several,
/// each aligned to a page). Places are `[0]`, `[1]`, ...
///
/// # Errors
/// A bundle or one of its code objects is damaged or is of a kind that is not read here.
pub(crate) fn read_bundle(bytes: Bytes<'_>) -> Result<Vec<Entry>, ImageError> {
    let mut found = Found { entries: Vec::new(), budget: Budget::new() };
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
    /// What may still be decompressed.
    budget: Budget,
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
        let contents = read_contents(name, contents).map_err(|error| error.in_place(&place))?;
        self.entries.push(Entry { place, contents });
        Ok(())
    }

    /// Reads a compressed bundle and returns its length.
    fn read_compressed(&mut self, bytes: Bytes<'_>) -> Result<u64, ImageError> {
        let header = Compressed::read(bytes)?;
        if header.method != ZSTD {
            let known = if header.method == ZLIB { " (zlib)" } else { "" };
            let detail = format!("is {}{known}; {ZSTD} (zstd) is read", header.method);
            return Err(ImageError::unsupported(bytes.place(6), "compression method", detail));
        }
        self.budget.spend(header.uncompressed, bytes.place(0), "uncompressed size")?;
        let data = decompress::zstd(header.data, header.uncompressed, "compressed bundle")?;
        let inside = format!("[{}..], decompressed", self.entries.len());
        if !data.starts_with(PLAIN) {
            let detail = "is no bundle when decompressed";
            let place = header.data.place(0);
            return Err(ImageError::malformed(place, "compressed bundle", detail));
        }
        self.read_plain(Bytes::new(&data)).map_err(|error| error.in_place(&inside))?;
        Ok(header.length)
    }
}

/// Reads what an entry holds: a code object, or something that must yet become one.
fn read_contents(name: Bytes<'_>, contents: Bytes<'_>) -> Result<Contents, ImageError> {
    let named = String::from_utf8_lossy(name.data());
    let target = named.rsplit_once("--").map_or(&*named, |(_, target)| target);
    let target: String = target.chars().take(80).collect();
    let skipped = |why| Ok(Contents::Skipped(Skipped { architecture: target.clone(), why }));
    let data = contents.data();
    if BITCODE.iter().any(|magic| data.starts_with(magic)) {
        return skipped(Why::Intermediate);
    }
    if !data.starts_with(b"\x7fELF") {
        let detail = format!("`{target}` is neither an ELF file nor bitcode");
        return Err(ImageError::unsupported(contents.place(0), "entry", detail));
    }
    if contents.u16(16, "e_type")? == RELOCATABLE {
        return skipped(Why::Relocatable);
    }
    let image = read_code_object_at(contents)?;
    let processor = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    if target.starts_with("gfx") && processor(&target) != processor(&image.architecture) {
        let detail = format!("is `{target}`, and holds code for {}", image.architecture);
        return Err(ImageError::malformed(name.place(0), "entry name", detail));
    }
    Ok(Contents::Hip(image))
}

/// What starts LLVM's bitcode, with or without a wrapper, and SPIR-V.
const BITCODE: [&[u8]; 3] = [b"BC\xc0\xde", b"\xde\xc0\x17\x0b", b"\x03\x02\x23\x07"];

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

#[cfg(test)]
mod tests {
    use super::{COMPRESSED, PLAIN, is_bundle, read_bundle};
    use crate::amdgpu::sample::{code_object, kernel};
    use crate::bytes::Bytes;
    use crate::error::{ErrorKind, ImageError};
    use crate::facts::{Contents, Entry, Why};

    /// An entry's name and contents.
    type Part<'a> = (&'a str, &'a [u8]);

    const HOST: Part<'static> = ("host-x86_64-unknown-linux-gnu-", b"");
    const GFX1100: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";

    /// A plain bundle, each entry at a multiple of 64 bytes.
    fn bundle(parts: &[Part<'_>]) -> Vec<u8> {
        let names: usize = parts.iter().map(|(name, _)| 24 + name.len()).sum();
        let mut header = PLAIN.to_vec();
        header.extend((parts.len() as u64).to_le_bytes());
        let mut bodies = vec![0; (header.len() + names).next_multiple_of(64)];
        for (name, contents) in parts {
            for field in [bodies.len(), contents.len(), name.len()] {
                header.extend((field as u64).to_le_bytes());
            }
            header.extend(name.bytes());
            bodies.extend(*contents);
            bodies.resize(bodies.len().next_multiple_of(64), 0);
        }
        bodies[..header.len()].copy_from_slice(&header);
        bodies
    }

    /// A zstd frame that holds bytes as they are.
    fn stored(bytes: &[u8]) -> Vec<u8> {
        let mut frame = b"\x28\xb5\x2f\xfd\xa0".to_vec();
        frame.extend((bytes.len() as u32).to_le_bytes());
        // One block, the last, stored.
        frame.extend(&((bytes.len() as u32) << 3 | 1).to_le_bytes()[..3]);
        frame.extend(bytes);
        frame
    }

    /// A compressed bundle of a version around a frame.
    fn compressed(version: u16, frame: &[u8], uncompressed: u64) -> Vec<u8> {
        let mut file = COMPRESSED.to_vec();
        file.extend(version.to_le_bytes());
        file.extend(1_u16.to_le_bytes());
        let size = |file: &mut Vec<u8>, value: u64| match version {
            3 => file.extend(value.to_le_bytes()),
            _ => file.extend((value as u32).to_le_bytes()),
        };
        match version {
            1 => {}
            2 => size(&mut file, frame.len() as u64 + 24),
            _ => size(&mut file, frame.len() as u64 + 32),
        }
        size(&mut file, uncompressed);
        file.extend([0; 8]);
        file.extend(frame);
        file
    }

    fn read(bytes: &[u8]) -> Result<Vec<Entry>, ImageError> {
        assert!(is_bundle(bytes));
        read_bundle(Bytes::new(bytes))
    }

    fn kernels(entries: &[Entry]) -> Vec<(&str, Vec<&str>)> {
        let hip = entries.iter().filter_map(|entry| match &entry.contents {
            Contents::Hip(image) => Some((entry.place.as_str(), image)),
            _ => None,
        });
        hip.map(|(place, image)| {
            (place, image.kernels.iter().map(|kernel| kernel.name.as_str()).collect())
        })
        .collect()
    }

    #[test]
    fn code_objects_of_all_bundles_of_a_section_are_read() {
        let (one, two) = (code_object(&[kernel("one")]), code_object(&[kernel("two")]));
        let mut section = bundle(&[HOST, (GFX1100, &one)]);
        section.resize(section.len().next_multiple_of(4096), 0);
        section.extend(bundle(&[(GFX1100, &two), (GFX1100, &one), HOST]));
        section.resize(section.len() + 100, 0);
        let entries = read(&section).expect("they are well formed");
        let expected = [("[0]", vec!["one"]), ("[1]", vec!["two"]), ("[2]", vec!["one"])];
        assert_eq!(kernels(&entries), expected);
        assert!(read(&bundle(&[HOST])).expect("the host's alone is no error").is_empty());
    }

    #[test]
    fn compressed_bundles_of_every_version_are_read() {
        let plain = bundle(&[HOST, (GFX1100, &code_object(&[kernel("one")]))]);
        let frame = stored(&plain);
        for version in [1, 2, 3] {
            let file = compressed(version, &frame, plain.len() as u64);
            let entries = read(&file).expect("it is well formed");
            assert_eq!(kernels(&entries), [("[0]", vec!["one"])], "version {version}");
        }
        // From version 2 on the length is known, so that another bundle may follow.
        let mut section = compressed(2, &frame, plain.len() as u64);
        section.extend([0; 7]);
        section.extend(compressed(3, &frame, plain.len() as u64));
        section.extend(&plain);
        assert_eq!(read(&section).expect("they are well formed").len(), 3);
        let error = read(&compressed(4, &frame, plain.len() as u64)).expect_err("too new");
        assert_eq!((error.kind, error.offset), (ErrorKind::Unsupported, 4), "{error}");
    }

    #[test]
    fn a_bundle_that_lies_of_its_size_is_an_error() {
        let plain = bundle(&[HOST, (GFX1100, &code_object(&[kernel("one")]))]);
        let frame = stored(&plain);
        for promised in [0, 1, plain.len() as u64 - 1, plain.len() as u64 + 1] {
            let error = read(&compressed(2, &frame, promised)).expect_err("it lies");
            assert_eq!(error.kind, ErrorKind::Malformed, "{error}");
        }
        let error = read(&compressed(3, &frame, u64::MAX)).expect_err("far too much");
        assert_eq!(error.kind, ErrorKind::TooLarge, "{error}");
        let mut short = compressed(2, &frame, plain.len() as u64);
        short[8..12].copy_from_slice(&7_u32.to_le_bytes());
        let error = read(&short).expect_err("shorter than its header");
        assert_eq!(error.field, "bundle size", "{error}");
        let mut long = compressed(2, &frame, plain.len() as u64);
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = read(&long).expect_err("longer than the file");
        assert_eq!(error.kind, ErrorKind::Truncated, "{error}");
        let mut zlib = compressed(2, &frame, plain.len() as u64);
        zlib[6] = 0;
        let error = read(&zlib).expect_err("another method");
        assert_eq!((error.kind, error.offset), (ErrorKind::Unsupported, 6), "{error}");
    }

    #[test]
    fn entries_that_share_their_bytes_are_an_error() {
        let object = code_object(&[kernel("one")]);
        let mut file = bundle(&[(GFX1100, &object), (GFX1100, b""), (GFX1100, b"")]);
        // Where the first lies and how long it is, for all three.
        let (first, each) = (PLAIN.len() + 8, 24 + GFX1100.len());
        for entry in 1..3 {
            file.copy_within(first..first + 16, first + entry * each);
        }
        let error = read(&file).expect_err("together they are longer than the file");
        assert_eq!((error.kind, error.field.as_ref()), (ErrorKind::Malformed, "entry"), "{error}");
        assert_eq!(error.offset, (first + each) as u64, "{error}");
    }

    #[test]
    fn a_code_object_under_another_chips_name_is_an_error() {
        let object = code_object(&[kernel("one")]);
        let named = |name| read(&bundle(&[HOST, (name, &object)]));
        named("hipv4-amdgcn-amd-amdhsa--gfx1100:xnack+").expect("features are no other chip");
        named("openmp-amdgcn-amd-amdhsa--gfx1100").expect("no other chip");
        let error = named("hipv4-amdgcn-amd-amdhsa--gfx1101").expect_err("another chip");
        assert_eq!((error.place.as_str(), error.field.as_ref()), ("[0]", "entry name"), "{error}");
    }

    #[test]
    fn what_is_not_linked_or_compiled_yet_is_listed_as_such() {
        let mut object = code_object(&[kernel("one")]);
        object[16] = 1;
        let parts: [Part<'_>; 3] =
            [(GFX1100, &object), (GFX1100, b"BC\xc0\xde..."), (GFX1100, b"\x03\x02\x23\x07...")];
        let entries = read(&bundle(&parts)).expect("they are listed");
        let why: Vec<Why> = entries
            .iter()
            .filter_map(|entry| match &entry.contents {
                Contents::Skipped(skipped) if skipped.architecture == "gfx1100" => {
                    Some(skipped.why)
                }
                _ => None,
            })
            .collect();
        assert_eq!(why, [Why::Relocatable, Why::Intermediate, Why::Intermediate]);
        let error = read(&bundle(&[(GFX1100, b"text")])).expect_err("no code");
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    }

    #[test]
    fn what_follows_a_bundle_must_be_padding_or_a_bundle() {
        let mut file = bundle(&[HOST]);
        let length = file.len() as u64;
        file.extend([0, 0, 7]);
        let error = read(&file).expect_err("no bundle");
        assert_eq!((error.kind, error.offset), (ErrorKind::Malformed, length + 2), "{error}");
    }

    #[test]
    fn a_damaged_entry_is_named_with_its_place_and_byte_in_the_file() {
        let object = code_object(&[kernel("one")]);
        let mut file = bundle(&[(GFX1100, &object), (GFX1100, &object)]);
        let second = file.len() - object.len().next_multiple_of(64);
        file[second + 7] = 0;
        let error = read(&file).expect_err("it is damaged");
        assert_eq!((error.place.as_str(), error.offset), ("[1]", second as u64 + 7), "{error}");
    }
}
