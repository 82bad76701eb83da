//! Why an image cannot be read, and where.

use std::borrow::Cow;
use std::fmt;

/// What kind of fault stops the reading.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// The file is none of the kinds that are read here.
    Unrecognised,
    /// The bytes end before what a field promises.
    Truncated,
    /// A field holds what it cannot hold.
    Malformed,
    /// Well formed, but of a kind that is not read here: 32-bit, big-endian, a later version.
    Unsupported,
    /// More than is read of one file, whatever the file says of itself.
    TooLarge,
}

/// A file that cannot be read: the kind of fault, the byte and the field where it shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageError {
    /// What kind of fault it is.
    pub kind: ErrorKind,
    /// The image inside the file, as [`crate::Entry::place`] names it; empty for the file itself.
    pub place: String,
    /// Bytes from the start of the file; of the decompressed image where `place` says so.
    pub offset: u64,
    /// The field or section: `e_shoff`, `.nv.info`.
    pub field: Cow<'static, str>,
    /// What is wrong with it, as a clause: "ends after 12 of 64 bytes".
    pub detail: String,
}

impl ImageError {
    /// A fault of a field at a byte.
    pub fn new(
        kind: ErrorKind,
        offset: u64,
        field: impl Into<Cow<'static, str>>,
        detail: impl Into<String>,
    ) -> ImageError {
        let place = String::new();
        ImageError { kind, place, offset, field: field.into(), detail: detail.into() }
    }

    /// A field that holds what it cannot hold.
    pub fn malformed(
        offset: u64,
        field: impl Into<Cow<'static, str>>,
        detail: impl Into<String>,
    ) -> ImageError {
        ImageError::new(ErrorKind::Malformed, offset, field, detail)
    }

    /// A field that asks for what is not read here.
    pub fn unsupported(
        offset: u64,
        field: impl Into<Cow<'static, str>>,
        detail: impl Into<String>,
    ) -> ImageError {
        ImageError::new(ErrorKind::Unsupported, offset, field, detail)
    }

    /// A field that asks for more than is read of one file.
    pub fn too_large(
        offset: u64,
        field: impl Into<Cow<'static, str>>,
        detail: impl Into<String>,
    ) -> ImageError {
        ImageError::new(ErrorKind::TooLarge, offset, field, detail)
    }

    /// The same fault, of an image inside the file.
    #[must_use]
    pub fn in_place(mut self, place: &str) -> ImageError {
        self.place.insert_str(0, place);
        self
    }
}

impl fmt::Display for ImageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(formatter, "{}: ", self.place)?;
        }
        write!(formatter, "at byte {:#x}, `{}` {}", self.offset, self.field, self.detail)
    }
}

impl std::error::Error for ImageError {}

#[cfg(test)]
mod tests {
    use super::ImageError;

    #[test]
    fn an_error_names_the_place_the_byte_and_the_field() {
        let error = ImageError::malformed(64, "e_shoff", "points past the end");
        assert_eq!(error.to_string(), "at byte 0x40, `e_shoff` points past the end");
        let error = error.in_place("[2]").in_place(".nv_fatbin");
        let shown = ".nv_fatbin[2]: at byte 0x40, `e_shoff` points past the end";
        assert_eq!(error.to_string(), shown);
    }
}
