//! msgpack, read forwards and without building anything, so that no file can make the reader need
//! memory: what the metadata note holds is picked out as it goes by, and the rest is skipped.

use crate::bytes::{Bytes, Cursor};
use crate::error::ImageError;

/// How deep arrays and maps may lie in one another. The metadata note needs six.
const DEEPEST: usize = 32;

/// Reads one value after another.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    cursor: Cursor<'a>,
}

/// One value, or the beginning of one that holds others.
#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    Nothing,
    Truth(bool),
    Unsigned(u64),
    Negative,
    Fraction,
    Text(Bytes<'a>),
    Binary,
    /// So many values follow.
    Array(u64),
    /// So many pairs follow.
    Map(u64),
}

impl Token<'_> {
    fn noun(self) -> &'static str {
        match self {
            Token::Nothing => "nothing",
            Token::Truth(_) => "a truth value",
            Token::Unsigned(_) => "a number",
            Token::Negative => "a negative number",
            Token::Fraction => "a fraction",
            Token::Text(_) => "text",
            Token::Binary => "bytes",
            Token::Array(_) => "an array",
            Token::Map(_) => "a map",
        }
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: Bytes<'a>) -> Reader<'a> {
        Reader { cursor: Cursor::new(bytes) }
    }

    /// Where in the file the next value lies.
    pub(crate) fn place(&self) -> u64 {
        self.cursor.place()
    }

    /// The number of values in an array, which come next.
    pub(crate) fn array(&mut self, field: &'static str) -> Result<u64, ImageError> {
        let place = self.place();
        match self.token(field)? {
            Token::Array(count) => Ok(count),
            other => Err(unexpected(place, field, "an array", other)),
        }
    }

    /// The number of pairs in a map, which come next.
    pub(crate) fn map(&mut self, field: &'static str) -> Result<u64, ImageError> {
        let place = self.place();
        match self.token(field)? {
            Token::Map(count) => Ok(count),
            other => Err(unexpected(place, field, "a map", other)),
        }
    }

    pub(crate) fn text(&mut self, field: &'static str) -> Result<&'a str, ImageError> {
        let place = self.place();
        match self.token(field)? {
            Token::Text(text) => std::str::from_utf8(text.data()).map_err(|error| {
                let at = text.place(error.valid_up_to() as u64);
                ImageError::malformed(at, field, "is not text")
            }),
            other => Err(unexpected(place, field, "text", other)),
        }
    }

    /// A number from 0 up.
    pub(crate) fn unsigned(&mut self, field: &'static str) -> Result<u64, ImageError> {
        let place = self.place();
        match self.token(field)? {
            Token::Unsigned(value) => Ok(value),
            other => Err(unexpected(place, field, "a number from 0 up", other)),
        }
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, ImageError> {
        let place = self.place();
        let value = self.unsigned(field)?;
        u32::try_from(value).map_err(|_| {
            let detail = format!("is {value}, which no chip has");
            ImageError::malformed(place, field, detail)
        })
    }

    /// True or false; compilers write some of them as 0 or 1.
    pub(crate) fn truth(&mut self, field: &'static str) -> Result<bool, ImageError> {
        let place = self.place();
        match self.token(field)? {
            Token::Truth(value) => Ok(value),
            Token::Unsigned(value) if value <= 1 => Ok(value == 1),
            other => Err(unexpected(place, field, "true or false", other)),
        }
    }

    /// Passes over one value and all that it holds.
    pub(crate) fn skip(&mut self, field: &'static str) -> Result<(), ImageError> {
        // How many values are still to come, at each depth.
        let mut left = [0_u64; DEEPEST];
        let mut depth = 0;
        loop {
            let place = self.place();
            let inside = match self.token(field)? {
                Token::Array(count) => count,
                // Checked against the bytes left, so that twice as many are no overflow.
                Token::Map(count) => count.saturating_mul(2),
                _ => 0,
            };
            if inside > 0 {
                let Some(level) = left.get_mut(depth) else {
                    let detail = format!("lies in more than {DEEPEST} arrays and maps");
                    return Err(ImageError::too_large(place, field, detail));
                };
                *level = inside;
                depth += 1;
                continue;
            }
            // A value is complete, and with it whatever it was the last value of.
            while let Some(level) = depth.checked_sub(1).and_then(|top| left.get_mut(top)) {
                *level -= 1;
                if *level > 0 {
                    break;
                }
                depth -= 1;
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The next token. `field` is what it should be the value of.
    fn token(&mut self, field: &'static str) -> Result<Token<'a>, ImageError> {
        let place = self.place();
        let tag = self.cursor.u8(field)?;
        let token = match tag {
            0x00..=0x7f => Token::Unsigned(tag.into()),
            0x80..=0x8f => self.held(place, u64::from(tag & 0xf), 2, field).map(Token::Map)?,
            0x90..=0x9f => self.held(place, u64::from(tag & 0xf), 1, field).map(Token::Array)?,
            0xa0..=0xbf => Token::Text(self.cursor.take(u64::from(tag & 0x1f), field)?),
            0xc0 => Token::Nothing,
            0xc1 => {
                return Err(ImageError::malformed(
                    place,
                    field,
                    "starts with 0xc1, as no value does",
                ));
            }
            0xc2 | 0xc3 => Token::Truth(tag == 0xc3),
            0xc4..=0xc9 => self.binary(tag, field)?,
            0xca | 0xcb => {
                self.cursor.take(4 << (tag - 0xca), field)?;
                Token::Fraction
            }
            0xcc..=0xcf => Token::Unsigned(self.number(tag - 0xcc, field)?),
            0xd0..=0xd3 => self.signed(tag - 0xd0, field)?,
            // One to sixteen bytes of a type of somebody's own.
            0xd4..=0xd8 => {
                self.cursor.take(1 + (1 << (tag - 0xd4)), field)?;
                Token::Binary
            }
            0xd9..=0xdb => {
                let length = self.number(tag - 0xd9, field)?;
                Token::Text(self.cursor.take(length, field)?)
            }
            0xdc | 0xdd => {
                let count = self.number(tag - 0xdb, field)?;
                self.held(place, count, 1, field).map(Token::Array)?
            }
            0xde | 0xdf => {
                let count = self.number(tag - 0xdd, field)?;
                self.held(place, count, 2, field).map(Token::Map)?
            }
            0xe0..=0xff => Token::Negative,
        };
        Ok(token)
    }

    /// A big-endian number of 1, 2, 4 or 8 bytes.
    fn number(&mut self, log_bytes: u8, field: &'static str) -> Result<u64, ImageError> {
        match log_bytes {
            0 => self.cursor.u8(field).map(u64::from),
            1 => self.cursor.u16_be(field).map(u64::from),
            2 => self.cursor.u32_be(field).map(u64::from),
            _ => self.cursor.u64_be(field),
        }
    }

    fn signed(&mut self, log_bytes: u8, field: &'static str) -> Result<Token<'a>, ImageError> {
        let value = self.number(log_bytes, field)?;
        let sign = 1_u64 << ((8_u32 << log_bytes) - 1);
        Ok(if value & sign == 0 { Token::Unsigned(value) } else { Token::Negative })
    }

    /// Bytes, or a type of somebody's own with its length in front.
    fn binary(&mut self, tag: u8, field: &'static str) -> Result<Token<'a>, ImageError> {
        let own_type = tag >= 0xc7;
        let length = self.number(if own_type { tag - 0xc7 } else { tag - 0xc4 }, field)?;
        self.cursor.take(length.saturating_add(own_type.into()), field)?;
        Ok(Token::Binary)
    }

    /// Each value takes at least a byte: a count that the bytes left cannot hold is a lie.
    fn held(
        &self,
        place: u64,
        count: u64,
        values: u64,
        field: &'static str,
    ) -> Result<u64, ImageError> {
        let left = self.cursor.left();
        if count.saturating_mul(values) <= left {
            return Ok(count);
        }
        let noun = if values == 2 { "pairs" } else { "values" };
        let detail = format!("promises {count} {noun}, and {left} bytes are left");
        Err(ImageError::malformed(place, field, detail))
    }
}

fn unexpected(place: u64, field: &'static str, wanted: &str, found: Token<'_>) -> ImageError {
    ImageError::malformed(place, field, format!("should be {wanted}, and is {}", found.noun()))
}

#[cfg(test)]
mod tests {
    use super::{DEEPEST, Reader};
    use crate::bytes::Bytes;
    use crate::error::ErrorKind;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new(Bytes::new(bytes))
    }

    #[test]
    fn numbers_of_every_width_are_read() {
        for (bytes, value) in [
            (&[0x7f][..], 127),
            (&[0xcc, 0xff], 255),
            (&[0xcd, 1, 2], 0x0102),
            (&[0xce, 1, 2, 3, 4], 0x0102_0304),
            (&[0xcf, 1, 2, 3, 4, 5, 6, 7, 8], 0x0102_0304_0506_0708),
            (&[0xd0, 0x7f], 127),
            (&[0xd1, 0x7f, 0xff], 0x7fff),
            (&[0xd2, 0, 0, 0, 9], 9),
            (&[0xd3, 0, 0, 0, 0, 0, 0, 0, 7], 7),
        ] {
            assert_eq!(reader(bytes).unsigned("n").expect("a number"), value, "{bytes:x?}");
        }
        for bytes in [&[0xff][..], &[0xd0, 0x80], &[0xd1, 0x80, 0], &[0xc3], &[0xa1, b'1']] {
            let error = reader(bytes).unsigned("n").expect_err("no number from 0 up");
            assert_eq!((error.kind, error.offset), (ErrorKind::Malformed, 0), "{bytes:x?}");
        }
    }

    #[test]
    fn text_of_every_width_is_read_and_other_bytes_are_an_error() {
        for bytes in [
            &[0xa2, b'o', b'k'][..],
            &[0xd9, 2, b'o', b'k'],
            &[0xda, 0, 2, b'o', b'k'],
            &[0xdb, 0, 0, 0, 2, b'o', b'k'],
        ] {
            assert_eq!(reader(bytes).text("t").expect("text"), "ok");
        }
        let error = reader(&[0xa2, b'o', 0xff]).text("t").expect_err("not text");
        assert_eq!((error.kind, error.offset), (ErrorKind::Malformed, 2));
        let error = reader(&[0xc4, 1, b'o']).text("t").expect_err("bytes");
        assert_eq!(error.to_string(), "at byte 0x0, `t` should be text, and is bytes");
    }

    #[test]
    fn a_value_of_any_kind_is_passed_over_whole() {
        let values: [&[u8]; 14] = [
            &[0xc0],
            &[0xc2],
            &[0x05],
            &[0xe0],
            &[0xca, 0, 0, 0, 0],
            &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0xc4, 2, 0xde, 0xad],
            &[0xc7, 1, 9, 0xff],
            &[0xd4, 1, 2],
            &[0xd8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x90],
            &[0x92, 0x80, 0x81, 0x01, 0x91, 0x02],
            &[0xdc, 0, 2, 0x01, 0x91, 0xc0],
            &[0xde, 0, 1, 0xa1, b'k', 0x93, 1, 2, 3],
        ];
        for value in values {
            let mut bytes = value.to_vec();
            bytes.push(42);
            let mut reader = reader(&bytes);
            reader.skip("value").expect("well formed");
            assert_eq!(reader.unsigned("next").expect("the next value"), 42, "{value:x?}");
        }
    }

    #[test]
    fn a_count_that_the_file_cannot_hold_is_an_error_at_its_byte() {
        for bytes in [
            &[0xdd, 0xff, 0xff, 0xff, 0xff][..],
            &[0xdf, 0xff, 0xff, 0xff, 0xff, 1],
            &[0x9f],
            &[0x81, 1],
            &[0xdc, 0, 2, 1],
        ] {
            let error = reader(bytes).skip("bomb").expect_err("a lie");
            assert_eq!((error.kind, error.offset), (ErrorKind::Malformed, 0), "{bytes:x?}");
            assert!(error.detail.starts_with("promises"), "{error}");
        }
        let error = reader(&[0xdb, 0xff, 0xff, 0xff, 0xff, b'x']).text("t").expect_err("a lie");
        assert_eq!(error.kind, ErrorKind::Truncated);
        let error = reader(&[0xc6, 0xff, 0xff, 0xff, 0xff]).skip("t").expect_err("a lie");
        assert_eq!(error.kind, ErrorKind::Truncated);
    }

    #[test]
    fn arrays_in_arrays_without_end_are_an_error_and_no_deeper_stack() {
        let mut bomb = vec![0x91; 1 << 20];
        bomb.push(0);
        let error = reader(&bomb).skip("bomb").expect_err("too deep");
        assert_eq!((error.kind, error.offset), (ErrorKind::TooLarge, DEEPEST as u64));
        // As deep as is allowed is no error.
        let mut deep = vec![0x91; DEEPEST];
        deep.push(0);
        reader(&deep).skip("deep").expect("within the depth");
    }

    #[test]
    fn the_one_byte_that_starts_no_value_is_an_error() {
        let error = reader(&[0x91, 0xc1]).skip("v").expect_err("no value");
        assert_eq!((error.kind, error.offset), (ErrorKind::Malformed, 1));
    }
}
