//! Reading of bytes that may lie about themselves: every access is checked, and an error names the
//! field and its place in the file.

use std::borrow::Cow;

use crate::error::{ErrorKind, ImageError};

/// Part of a file, which knows where in the file it lies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bytes<'a> {
    data: &'a [u8],
    base: u64,
}

/// The name of a field, as an error shows it.
pub(crate) type Field = &'static str;

impl<'a> Bytes<'a> {
    /// A whole file.
    pub(crate) fn new(data: &'a [u8]) -> Bytes<'a> {
        Bytes { data, base: 0 }
    }

    pub(crate) fn data(self) -> &'a [u8] {
        self.data
    }

    pub(crate) fn len(self) -> u64 {
        self.data.len() as u64
    }

    /// Where in the file a byte of this part lies.
    pub(crate) fn place(self, offset: u64) -> u64 {
        self.base.saturating_add(offset)
    }

    /// `length` bytes from `offset` on.
    pub(crate) fn slice(
        self,
        offset: u64,
        length: u64,
        field: impl Into<Cow<'static, str>>,
    ) -> Result<Bytes<'a>, ImageError> {
        let found = usize::try_from(offset).ok().and_then(|start| {
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            self.data.get(start..end)
        });
        let base = self.place(offset);
        match found {
            Some(data) => Ok(Bytes { data, base }),
            None => Err(self.short(offset, length, field)),
        }
    }

    /// All bytes from `offset` on; none where it is past the end.
    pub(crate) fn after(self, offset: u64) -> Bytes<'a> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.data.len());
        Bytes { data: self.data.get(start..).unwrap_or_default(), base: self.place(start as u64) }
    }

    fn short(self, offset: u64, length: u64, field: impl Into<Cow<'static, str>>) -> ImageError {
        let there = self.len().saturating_sub(offset);
        let detail = if offset > self.len() {
            format!("lies past the end, which is at byte {:#x}", self.place(self.len()))
        } else {
            format!("needs {length} bytes and has {there}")
        };
        ImageError::new(ErrorKind::Truncated, self.place(offset), field, detail)
    }

    fn array<const N: usize>(self, offset: u64, field: Field) -> Result<[u8; N], ImageError> {
        let found = self.slice(offset, N as u64, field)?;
        found.data.try_into().map_err(|_| self.short(offset, N as u64, field))
    }

    pub(crate) fn u8(self, offset: u64, field: Field) -> Result<u8, ImageError> {
        self.array::<1>(offset, field).map(|[byte]| byte)
    }

    /// Little-endian, as are all below.
    pub(crate) fn u16(self, offset: u64, field: Field) -> Result<u16, ImageError> {
        self.array(offset, field).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(self, offset: u64, field: Field) -> Result<u32, ImageError> {
        self.array(offset, field).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(self, offset: u64, field: Field) -> Result<u64, ImageError> {
        self.array(offset, field).map(u64::from_le_bytes)
    }

    /// The text from `offset` up to a zero byte, of at most `most` bytes.
    pub(crate) fn c_string(
        self,
        offset: u64,
        most: usize,
        field: Field,
    ) -> Result<&'a str, ImageError> {
        if offset >= self.len() {
            return Err(self.short(offset, 1, field));
        }
        let rest = self.after(offset).data;
        let Some(length) = rest.iter().take(most.saturating_add(1)).position(|byte| *byte == 0)
        else {
            let kind = if rest.len() > most { ErrorKind::TooLarge } else { ErrorKind::Truncated };
            let seen = rest.len().min(most);
            let detail = format!("has no end within {seen} bytes");
            return Err(ImageError::new(kind, self.place(offset), field, detail));
        };
        let text = rest.get(..length).unwrap_or_default();
        std::str::from_utf8(text).map_err(|error| {
            let at = self.place(offset).saturating_add(error.valid_up_to() as u64);
            ImageError::malformed(at, field, "is not text")
        })
    }
}

/// Reads one field after another.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: Bytes<'a>,
    position: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: Bytes<'a>) -> Cursor<'a> {
        Cursor { bytes, position: 0 }
    }

    /// Where in the file the next byte lies.
    pub(crate) fn place(&self) -> u64 {
        self.bytes.place(self.position)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.position >= self.bytes.len()
    }

    pub(crate) fn left(&self) -> u64 {
        self.bytes.len().saturating_sub(self.position)
    }

    /// Everything that is left.
    pub(crate) fn rest(&self) -> Bytes<'a> {
        self.bytes.after(self.position)
    }

    /// The next `length` bytes.
    pub(crate) fn take(&mut self, length: u64, field: Field) -> Result<Bytes<'a>, ImageError> {
        let taken = self.bytes.slice(self.position, length, field)?;
        self.position += length;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self, field: Field) -> Result<u8, ImageError> {
        self.take(1, field)?.u8(0, field)
    }

    pub(crate) fn u16(&mut self, field: Field) -> Result<u16, ImageError> {
        self.take(2, field)?.u16(0, field)
    }

    pub(crate) fn u32(&mut self, field: Field) -> Result<u32, ImageError> {
        self.take(4, field)?.u32(0, field)
    }

    pub(crate) fn u64(&mut self, field: Field) -> Result<u64, ImageError> {
        self.take(8, field)?.u64(0, field)
    }

    /// Big-endian, as msgpack has it.
    pub(crate) fn u16_be(&mut self, field: Field) -> Result<u16, ImageError> {
        self.u16(field).map(u16::swap_bytes)
    }

    pub(crate) fn u32_be(&mut self, field: Field) -> Result<u32, ImageError> {
        self.u32(field).map(u32::swap_bytes)
    }

    pub(crate) fn u64_be(&mut self, field: Field) -> Result<u64, ImageError> {
        self.u64(field).map(u64::swap_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, Cursor};
    use crate::error::ErrorKind;

    #[test]
    fn a_read_past_the_end_names_the_field_and_its_byte_in_the_file() {
        let file = Bytes::new(&[1, 2, 3, 4, 5, 6]);
        let part = file.slice(2, 3, "part").expect("within the file");
        assert_eq!(part.u16(0, "first").expect("within the part"), 0x0403);
        let error = part.u32(1, "second").expect_err("one byte short");
        assert_eq!((error.kind, error.offset), (ErrorKind::Truncated, 3));
        assert_eq!(error.to_string(), "at byte 0x3, `second` needs 4 bytes and has 2");
        let error = part.u8(9, "third").expect_err("past the end");
        let shown = "at byte 0xb, `third` lies past the end, which is at byte 0x5";
        assert_eq!(error.to_string(), shown);
    }

    #[test]
    fn no_offset_or_length_overflows() {
        let bytes = Bytes::new(&[0; 8]);
        for offset in [0, 1, 8, 9, u64::MAX - 1, u64::MAX] {
            assert!(bytes.slice(offset, u64::MAX, "all").is_err());
            assert!(bytes.slice(offset, 9, "nine").is_err());
            assert_eq!(bytes.after(offset).len(), 8_u64.saturating_sub(offset));
        }
    }

    #[test]
    fn a_string_ends_at_its_zero_byte_and_not_at_the_end_of_the_file() {
        let bytes = Bytes::new(b"one\0two");
        assert_eq!(bytes.c_string(0, 99, "name").expect("ends"), "one");
        let error = bytes.c_string(4, 99, "name").expect_err("has no end");
        assert_eq!((error.kind, error.offset), (ErrorKind::Truncated, 4));
        let error = bytes.c_string(0, 2, "name").expect_err("too long");
        assert_eq!(error.kind, ErrorKind::TooLarge);
        let error = bytes.c_string(7, 99, "name").expect_err("past the end");
        assert_eq!((error.kind, error.offset), (ErrorKind::Truncated, 7));
        let error = Bytes::new(b"a\xff\0").c_string(0, 9, "name").expect_err("not text");
        assert_eq!((error.kind, error.offset), (ErrorKind::Malformed, 1));
    }

    #[test]
    fn a_cursor_stays_where_it_was_when_a_field_does_not_fit() {
        let mut cursor = Cursor::new(Bytes::new(&[1, 2, 3]));
        assert_eq!(cursor.u16_be("first").expect("fits"), 0x0102);
        assert!(cursor.u32("second").is_err());
        assert_eq!((cursor.place(), cursor.left(), cursor.is_at_end()), (2, 1, false));
    }
}
