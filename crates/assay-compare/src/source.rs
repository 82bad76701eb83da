//! Where elements come from, a piece at a time.

use assay_num::Format;
use thiserror::Error;

use crate::array::{ArrayView, Tensor};

/// Why elements could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The device refused or was lost.
    #[error("{0}")]
    Device(#[from] assay_device::DeviceError),
    /// What was read is not what was promised.
    #[error("{0}")]
    Broken(String),
}

/// An array whose elements are read in pieces, so that it need not fit into memory.
pub trait Source: Send {
    /// The format of the elements.
    fn format(&self) -> Format;

    /// The size of every axis.
    fn shape(&self) -> &[u64];

    /// Replaces `out` by the bytes of `count` elements from `first` on, in row-major order.
    /// `first` is a multiple of 8; both lie inside.
    ///
    /// # Errors
    /// Whatever stops the reading.
    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError>;

    /// How many elements from the first on can be read, where it is known to be fewer than all:
    /// asked after [`Source::read`] failed.
    fn readable(&self) -> Option<u64> {
        None
    }

    /// The same bytes where they lie in memory already.
    fn in_memory(&self, first: u64, count: u64) -> Option<&[u8]> {
        let _ = (first, count);
        None
    }
}

impl Source for ArrayView<'_> {
    fn format(&self) -> Format {
        ArrayView::format(self)
    }

    fn shape(&self) -> &[u64] {
        ArrayView::shape(self)
    }

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        self.gather(first, count, out);
        Ok(())
    }

    fn in_memory(&self, first: u64, count: u64) -> Option<&[u8]> {
        self.plain(first, count)
    }
}

impl Source for Tensor {
    fn format(&self) -> Format {
        Tensor::format(self)
    }

    fn shape(&self) -> &[u64] {
        Tensor::shape(self)
    }

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        self.view().gather(first, count, out);
        Ok(())
    }

    fn in_memory(&self, first: u64, count: u64) -> Option<&[u8]> {
        self.plain(first, count)
    }
}
