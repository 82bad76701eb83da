//! Readies images for the driver, which is given an address without a length: text gets its NUL,
//! and a binary whose own tables point past its end is refused, since the driver would follow
//! them.

use std::ffi::{CString, c_void};

use crate::device::Image;
use crate::error::{DeviceError, Rejection};

/// An image in a form that the driver can read to its end.
pub(super) enum Prepared {
    Text(CString),
    /// Whole words, so that the address is aligned as the tables in it expect.
    Binary(Vec<u64>),
}

impl Prepared {
    /// Checks and copies an image.
    ///
    /// # Errors
    /// [`DeviceError::ModuleRejected`].
    pub(super) fn new(image: &Image) -> Result<Prepared, DeviceError> {
        let whole = match image {
            Image::Ptx { text, .. } => {
                let text = CString::new(text.as_str())
                    .map_err(|_| rejected(image, "the PTX text has a NUL character in it"))?;
                return Ok(Prepared::Text(text));
            }
            Image::Cubin(bytes) => is_whole_cubin(bytes).then_some(bytes),
            Image::Fatbin(bytes) => is_whole_fatbin(bytes).then_some(bytes),
        };
        let bytes = whole.ok_or_else(|| {
            rejected(image, "it is no complete NVIDIA image: truncated, or another kind of file")
        })?;
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        Ok(Prepared::Binary(words.collect()))
    }

    pub(super) fn address(&self) -> *const c_void {
        match self {
            Prepared::Text(text) => text.as_ptr().cast(),
            Prepared::Binary(words) => words.as_ptr().cast(),
        }
    }
}

/// A rejection with nothing but a reason.
pub(super) fn rejected(image: &Image, reason: &str) -> DeviceError {
    DeviceError::ModuleRejected(Box::new(Rejection {
        image: image.name().to_string(),
        reason: reason.to_string(),
        ..Rejection::default()
    }))
}

/// ELF64 for NVIDIA's machine (190), with every table and section inside the file.
fn is_whole_cubin(bytes: &[u8]) -> bool {
    const NO_BITS: u64 = 8;
    let sections = || -> Option<bool> {
        let is_cubin = bytes.starts_with(b"\x7fELF\x02\x01") && number(bytes, 18, 2)? == 190;
        let programs = [number(bytes, 32, 8)?, number(bytes, 54, 2)?, number(bytes, 56, 2)?];
        let [table, size, count] =
            [number(bytes, 40, 8)?, number(bytes, 58, 2)?, number(bytes, 60, 2)?];
        let mut whole = is_cubin && size == 64 && lies_inside(bytes, table, size * count);
        whole &= lies_inside(bytes, programs[0], programs[1] * programs[2]);
        for index in 0..if whole { count } else { 0 } {
            let header = usize::try_from(table + index * size).ok()?;
            let kind = number(bytes, header + 4, 4)?;
            let (offset, length) = (number(bytes, header + 24, 8)?, number(bytes, header + 32, 8)?);
            whole &= kind == NO_BITS || lies_inside(bytes, offset, length);
        }
        Some(whole)
    };
    sections().unwrap_or(false)
}

/// A fatbin header and, one after the other, entries whose sizes add up to what it says.
fn is_whole_fatbin(bytes: &[u8]) -> bool {
    let entries = || -> Option<bool> {
        let header = number(bytes, 6, 2)?;
        let end = header.checked_add(number(bytes, 8, 8)?)?;
        let known = number(bytes, 0, 4)? == 0xBA55_ED50 && header >= 16;
        if !known || !lies_inside(bytes, 0, end) {
            return Some(false);
        }
        let mut at = header;
        while at < end {
            let entry = usize::try_from(at).ok()?;
            let step = number(bytes, entry + 4, 4)?.checked_add(number(bytes, entry + 8, 8)?)?;
            at = at.checked_add(step.max(1))?;
        }
        Some(at == end)
    };
    entries().unwrap_or(false)
}

fn lies_inside(bytes: &[u8], offset: u64, length: u64) -> bool {
    offset.checked_add(length).is_some_and(|end| end <= bytes.len() as u64)
}

/// A little-endian number of 1 to 8 bytes.
fn number(bytes: &[u8], offset: usize, width: usize) -> Option<u64> {
    let field = bytes.get(offset..offset.checked_add(width)?)?;
    Some(field.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with one section of `length` bytes right behind the section table.
    fn cubin(length: u64) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 64 + 16];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = 190;
        bytes[40] = 64;
        bytes[58] = 64;
        bytes[60] = 1;
        bytes[64 + 4] = 1;
        bytes[64 + 24] = 128;
        bytes[64 + 32..64 + 40].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    fn fatbin(payload: u64) -> Vec<u8> {
        let mut bytes = vec![0; 16 + 64 + 8];
        bytes[..8].copy_from_slice(&[0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0]);
        bytes[8] = 72;
        bytes[16 + 4] = 64;
        bytes[16 + 8..16 + 16].copy_from_slice(&payload.to_le_bytes());
        bytes
    }

    #[test]
    fn a_whole_binary_is_accepted_and_copied() {
        assert!(Prepared::new(&Image::Cubin(cubin(16))).is_ok());
        let Ok(Prepared::Binary(words)) = Prepared::new(&Image::Fatbin(fatbin(8))) else {
            panic!("refused")
        };
        assert_eq!((words.len(), words[0] & 0xFFFF_FFFF), (11, 0xBA55_ED50));
    }

    #[test]
    fn a_binary_that_points_past_its_end_is_refused() {
        for length in [17, u64::MAX, u64::MAX - 127] {
            assert!(Prepared::new(&Image::Cubin(cubin(length))).is_err(), "{length}");
        }
        for payload in [0, 7, 9, u64::MAX] {
            assert!(Prepared::new(&Image::Fatbin(fatbin(payload))).is_err(), "{payload}");
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        for (whole, make) in [
            (cubin(16), Image::Cubin as fn(Vec<u8>) -> Image),
            (fatbin(8), Image::Fatbin as fn(Vec<u8>) -> Image),
        ] {
            for length in 0..whole.len() {
                assert!(Prepared::new(&make(whole[..length].to_vec())).is_err(), "{length}");
            }
        }
    }

    #[test]
    fn text_with_a_nul_is_refused() {
        let error = Prepared::new(&Image::ptx("a.ptx", "x\0y")).err();
        assert!(error.is_some_and(|error| error.to_string().starts_with("a.ptx: ")));
    }
}
