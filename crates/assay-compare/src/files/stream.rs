//! Elements of a file, a piece at a time.

use std::path::Path;

use assay_num::Format;

use super::Placed;
use super::member::MemberReader;
use crate::array::{ArrayView, element_count, storage};
use crate::source::{Source, SourceError};

/// The most bytes of a file that are held to put Fortran order into row-major order: 4 GiB.
const MOST_HELD: u64 = 1 << 32;

/// The most bytes that are held of what was compressed, which may be a thousand times as large as
/// its file: 1 GiB.
const MOST_INFLATED: u64 = 1 << 30;

/// Bytes by which an array grows that is held as a whole.
const GROWTH: u64 = 1 << 24;

/// An array in a file.
pub(super) struct FileSource {
    reader: MemberReader,
    placed: Placed,
    format: Format,
    /// The whole array, where its order must be turned.
    turned: Option<Vec<u8>>,
}

impl FileSource {
    /// Opens an array whose elements are of the format, as its file says or as was asked for.
    pub(super) fn open(
        path: &Path,
        placed: Placed,
        format: Format,
    ) -> Result<FileSource, SourceError> {
        let reader = MemberReader::open(path, placed.member.clone())?;
        let source = FileSource { reader, placed, format, turned: None };
        if source.placed.fortran {
            source.check_size("it is in Fortran order, which is served")?;
        }
        Ok(source)
    }

    /// Whether parts of it lie in the file as they are.
    pub(super) fn is_contiguous(&self) -> bool {
        !self.placed.fortran && !self.placed.member.compressed
    }

    /// Refuses what is more than may be held, or more than the file has.
    fn check_size(&self, what: &str) -> Result<(), SourceError> {
        let (bytes, compressed) = (self.bytes(), self.placed.member.compressed);
        let most = if compressed { MOST_INFLATED } else { MOST_HELD };
        if bytes > most {
            let packed = if compressed { " where it is compressed" } else { "" };
            return Err(SourceError::Broken(format!(
                "{what} up to {most} bytes{packed}, and takes {bytes}"
            )));
        }
        self.check_held(0, bytes)
    }

    fn check_held(&self, from: u64, bytes: u64) -> Result<(), SourceError> {
        if from + bytes <= self.placed.held {
            return Ok(());
        }
        Err(SourceError::Broken(format!(
            "the array's elements end after {} bytes, where its shape {:?} takes {}",
            self.placed.held,
            self.placed.shape,
            self.bytes()
        )))
    }

    /// How many there are: that they can be counted was seen when the header was read.
    fn elements(&self) -> u64 {
        element_count(&self.placed.shape).unwrap_or_default()
    }

    /// Bytes that the whole array takes.
    fn bytes(&self) -> u64 {
        storage(self.format, self.elements())
    }

    fn read_bytes(&mut self, from: u64, bytes: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        self.check_held(from, bytes)?;
        out.resize(bytes as usize, 0);
        self.fill(from, out)
    }

    fn fill(&mut self, from: u64, out: &mut [u8]) -> Result<(), SourceError> {
        self.reader.read_at(self.placed.offset + from, out)?;
        if self.placed.big_endian && self.format.bits() > 8 {
            out.chunks_exact_mut(self.format.bits() as usize / 8).for_each(<[u8]>::reverse);
        }
        Ok(())
    }

    /// The whole array as it lies in the file, which grows as it is read.
    fn whole(&mut self) -> Result<Vec<u8>, SourceError> {
        let (mut bytes, all) = (Vec::new(), self.bytes());
        while (bytes.len() as u64) < all {
            let from = bytes.len();
            let more = GROWTH.min(all - from as u64) as usize;
            bytes.try_reserve(more).map_err(|error| SourceError::Broken(error.to_string()))?;
            bytes.resize(from + more, 0);
            self.fill(from as u64, &mut bytes[from..])?;
        }
        Ok(bytes)
    }

    /// The whole array in row-major order.
    pub(super) fn all(&mut self) -> Result<Vec<u8>, SourceError> {
        self.check_size("it is held as a whole, which is served")?;
        if !self.placed.fortran {
            return self.whole();
        }
        let mut out = Vec::new();
        self.read(0, self.elements(), &mut out)?;
        Ok(out)
    }
}

impl Source for FileSource {
    fn format(&self) -> Format {
        self.format
    }

    fn shape(&self) -> &[u64] {
        &self.placed.shape
    }

    fn readable(&self) -> Option<u64> {
        let end = self.reader.end().map(|end| end.saturating_sub(self.placed.offset));
        let end = end.unwrap_or(u64::MAX).min(self.placed.held);
        let is_short = end < self.bytes() && !self.placed.fortran;
        is_short.then(|| (u128::from(end) * 8 / u128::from(self.format.bits())) as u64)
    }

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        let format = self.format;
        if !self.placed.fortran {
            return self.read_bytes(storage(format, first), storage(format, count), out);
        }
        let whole = match self.turned.take() {
            Some(whole) => whole,
            None => self.whole()?,
        };
        let strides = fortran_strides(&self.placed.shape);
        let view = ArrayView::strided(format, &whole, &self.placed.shape, &strides, 0)
            .map_err(|error| SourceError::Broken(error.to_string()))?;
        view.gather(first, count, out);
        self.turned = Some(whole);
        Ok(())
    }
}

/// Strides of an array whose first axis varies fastest.
fn fortran_strides(shape: &[u64]) -> Vec<i64> {
    let mut stride = 1i64;
    let mut strides = Vec::with_capacity(shape.len());
    for &size in shape {
        strides.push(stride);
        stride = stride.saturating_mul(size as i64);
    }
    strides
}
