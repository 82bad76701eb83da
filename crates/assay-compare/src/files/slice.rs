//! A part of a tensor in memory, as a source.

use std::sync::Arc;

use assay_num::Format;

use crate::array::{Tensor, storage};
use crate::source::{Source, SourceError};

/// One place of a tensor's first axis.
pub(super) struct TensorSlice {
    tensor: Arc<Tensor>,
    shape: Vec<u64>,
    /// Where it starts, in bytes.
    start: u64,
}

impl TensorSlice {
    /// The part at place `at`, whose shape is that of all parts and ends at a whole byte.
    pub(super) fn new(tensor: &Arc<Tensor>, shape: &[u64], at: u64) -> TensorSlice {
        let start = at * storage(tensor.format(), shape.iter().product());
        TensorSlice { tensor: Arc::clone(tensor), shape: shape.to_vec(), start }
    }
}

impl Source for TensorSlice {
    fn format(&self) -> Format {
        self.tensor.format()
    }

    fn shape(&self) -> &[u64] {
        &self.shape
    }

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        let bytes = self.in_memory(first, count);
        let bytes = bytes.ok_or_else(|| SourceError::Broken("it ends early".to_owned()))?;
        out.clear();
        out.extend_from_slice(bytes);
        Ok(())
    }

    fn in_memory(&self, first: u64, count: u64) -> Option<&[u8]> {
        let format = self.tensor.format();
        let from = (self.start + storage(format, first)) as usize;
        self.tensor.bytes().get(from..from + storage(format, count) as usize)
    }
}
