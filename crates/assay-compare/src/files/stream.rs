//! Elements of a file, a piece at a time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use assay_num::Format;

use super::Placed;
use crate::array::{ArrayView, storage};
use crate::source::{Source, SourceError};

/// The most bytes that are held to put an array of Fortran order into row-major order: 4 GiB.
const MOST_HELD: u64 = 1 << 32;

/// An array in a file.
pub(super) struct FileSource {
    file: File,
    placed: Placed,
    /// The whole array, where its order must be turned.
    turned: Option<Vec<u8>>,
}

impl FileSource {
    pub(super) fn open(path: &Path, placed: Placed) -> io::Result<Box<dyn Source>> {
        let file = File::open(path)?;
        let bytes = storage(placed.format, placed.shape.iter().product());
        if placed.fortran && bytes > MOST_HELD {
            return Err(io::Error::other(format!(
                "it is in Fortran order, which is served up to {MOST_HELD} bytes, and takes {bytes}"
            )));
        }
        if placed.fortran && placed.held < bytes {
            return Err(io::Error::other(format!(
                "it takes {bytes} bytes, of which there are {}",
                placed.held
            )));
        }
        Ok(Box::new(FileSource { file, placed, turned: None }))
    }

    fn read_bytes(&mut self, from: u64, bytes: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        if from + bytes > self.placed.held {
            return Err(SourceError::Broken(format!(
                "the array's elements end after {} bytes, where its shape {:?} takes {}",
                self.placed.held,
                self.placed.shape,
                storage(self.placed.format, self.placed.shape.iter().product())
            )));
        }
        out.resize(bytes as usize, 0);
        self.file.seek(SeekFrom::Start(self.placed.offset + from))?;
        self.file.read_exact(out)?;
        if self.placed.big_endian {
            let width = self.placed.format.bits() as usize / 8;
            out.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        Ok(())
    }

    /// The whole array as it lies in the file, read once.
    fn whole(&mut self) -> Result<Vec<u8>, SourceError> {
        if let Some(bytes) = self.turned.take() {
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        self.read_bytes(0, self.placed.held, &mut bytes)?;
        Ok(bytes)
    }
}

impl Source for FileSource {
    fn format(&self) -> Format {
        self.placed.format
    }

    fn shape(&self) -> &[u64] {
        &self.placed.shape
    }

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        let format = self.placed.format;
        if !self.placed.fortran {
            return self.read_bytes(storage(format, first), storage(format, count), out);
        }
        let whole = self.whole()?;
        let strides: Vec<i64> = self
            .placed
            .shape
            .iter()
            .scan(1i64, |stride, &size| {
                let mine = *stride;
                *stride = stride.saturating_mul(size as i64);
                Some(mine)
            })
            .collect();
        let view = ArrayView::strided(format, &whole, &self.placed.shape, &strides, 0)
            .map_err(|error| SourceError::Broken(error.to_string()))?;
        view.gather(first, count, out);
        self.turned = Some(whole);
        Ok(())
    }
}
