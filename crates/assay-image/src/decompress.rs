//! Decompression of parts of an image, with a cap on what comes out.

use std::io::Read as _;

use crate::bytes::{Bytes, Field};
use crate::error::ImageError;

/// The most bytes that one part may have when decompressed.
pub(crate) const MOST_OF_A_PART: u64 = 1 << 29;
/// The most bytes that all parts of a file may have when decompressed.
const MOST_OF_A_FILE: u64 = 1 << 34;
/// LZ4 makes no more than this many bytes of one.
const MOST_OF_ONE_LZ4_BYTE: u64 = 255;

/// What may still be decompressed of one file.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    /// The budget of a whole file.
    pub(crate) fn new() -> Budget {
        Budget { left: MOST_OF_A_FILE }
    }

    /// Takes the bytes that a part says it will have, before anything is made of it.
    pub(crate) fn spend(&mut self, size: u64, at: u64, field: Field) -> Result<(), ImageError> {
        if size > MOST_OF_A_PART {
            let detail = format!("promises {size} bytes; at most {MOST_OF_A_PART} are read");
            return Err(ImageError::too_large(at, field, detail));
        }
        self.left = self.left.checked_sub(size).ok_or_else(|| {
            let detail = format!("passes the {MOST_OF_A_FILE} bytes that are read of one file");
            ImageError::too_large(at, field, detail)
        })?;
        Ok(())
    }
}

/// Decompresses one zstd frame to exactly `size` bytes, which the caller has taken of a [`Budget`].
pub(crate) fn zstd(packed: Bytes<'_>, size: u64, field: Field) -> Result<Vec<u8>, ImageError> {
    let wrong = |detail: String| ImageError::malformed(packed.place(0), field, detail);
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed.data())
        .map_err(|error| wrong(format!("is no zstd frame that is read here: {error}")))?;
    let mut unpacked = Vec::new();
    // One byte more than promised shows a frame that is longer than it says.
    let read = decoder.take(size.saturating_add(1)).read_to_end(&mut unpacked);
    read.map_err(|error| wrong(format!("is a damaged zstd frame: {error}")))?;
    check_size(&unpacked, size, packed, field)?;
    Ok(unpacked)
}

/// Decompresses one LZ4 block to exactly `size` bytes, which the caller has taken of a [`Budget`].
pub(crate) fn lz4(packed: Bytes<'_>, size: u64, field: Field) -> Result<Vec<u8>, ImageError> {
    let wrong = |detail: String| ImageError::malformed(packed.place(0), field, detail);
    if size / MOST_OF_ONE_LZ4_BYTE > packed.len() {
        return Err(wrong(format!("promises {size} bytes of {} packed ones", packed.len())));
    }
    let unpacked = lz4_flex::block::decompress(packed.data(), size as usize)
        .map_err(|error| wrong(format!("is a damaged LZ4 block: {error}")))?;
    check_size(&unpacked, size, packed, field)?;
    Ok(unpacked)
}

fn check_size(
    unpacked: &[u8],
    size: u64,
    packed: Bytes<'_>,
    field: Field,
) -> Result<(), ImageError> {
    let found = unpacked.len() as u64;
    if found == size {
        return Ok(());
    }
    let more = if found > size { "more than " } else { "" };
    let found = found.min(size);
    let detail = format!("holds {more}{found} bytes where {size} are promised");
    Err(ImageError::malformed(packed.place(0), field, detail))
}

#[cfg(test)]
mod tests {
    use super::{Budget, MOST_OF_A_FILE, MOST_OF_A_PART, lz4, zstd};
    use crate::bytes::Bytes;
    use crate::error::ErrorKind;

    fn text() -> Vec<u8> {
        b".version 9.0 .target sm_90 ".repeat(300)
    }

    fn zstd_of(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn both_kinds_of_packing_come_back_as_they_were() {
        let text = text();
        let size = text.len() as u64;
        let packed = zstd_of(&text);
        assert_eq!(zstd(Bytes::new(&packed), size, "payload").expect("unpacks"), text);
        let packed = lz4_flex::block::compress(&text);
        assert_eq!(lz4(Bytes::new(&packed), size, "payload").expect("unpacks"), text);
    }

    #[test]
    fn a_promise_of_another_size_is_an_error() {
        let text = text();
        let (zstd_packed, lz4_packed) = (zstd_of(&text), lz4_flex::block::compress(&text));
        for wrong in [0, 1, text.len() as u64 - 1, text.len() as u64 + 1] {
            let error = zstd(Bytes::new(&zstd_packed), wrong, "payload").expect_err("lies");
            assert_eq!(error.kind, ErrorKind::Malformed, "{error}");
            let error = lz4(Bytes::new(&lz4_packed), wrong, "payload").expect_err("lies");
            assert_eq!(error.kind, ErrorKind::Malformed, "{error}");
        }
    }

    #[test]
    fn a_bomb_is_stopped_before_it_is_unpacked() {
        let packed = zstd_of(&vec![0; 1 << 24]);
        assert!(packed.len() < 1 << 16, "16 MiB of zeroes in {} bytes", packed.len());
        let error = zstd(Bytes::new(&packed), 1000, "payload").expect_err("a bomb");
        let shown = "at byte 0x0, `payload` holds more than 1000 bytes where 1000 are promised";
        assert_eq!(error.to_string(), shown);
        let error = lz4(Bytes::new(&[0; 10]), 1 << 28, "payload").expect_err("a bomb");
        let shown = "at byte 0x0, `payload` promises 268435456 bytes of 10 packed ones";
        assert_eq!(error.to_string(), shown);
    }

    #[test]
    fn a_file_cannot_promise_more_than_its_budget() {
        let mut budget = Budget::new();
        let error = budget.spend(MOST_OF_A_PART + 1, 7, "size").expect_err("too large a part");
        assert_eq!((error.kind, error.offset), (ErrorKind::TooLarge, 7));
        for _ in 0..MOST_OF_A_FILE / MOST_OF_A_PART {
            budget.spend(MOST_OF_A_PART, 7, "size").expect("within the budget");
        }
        let error = budget.spend(1, 7, "size").expect_err("one byte too many");
        assert_eq!(error.kind, ErrorKind::TooLarge);
    }
}
