//! Where a tensor's elements lie in its buffer.

use assay_num::Format;
use assay_reference::{Dims, Extent, Tensor};

use crate::spec::ArgumentSpec;
use crate::subject::RunError;

/// More bytes than any device holds; keeps products of sizes from overflowing.
const MOST_BYTES: usize = 1 << 46;

/// A tensor's shape and strides at one choice of dims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    pub(crate) shape: Vec<usize>,
    /// In elements; `None` for dense row-major.
    strides: Option<Vec<usize>>,
    /// Size of the buffer.
    pub(crate) bytes: usize,
}

impl Layout {
    /// The layout of a buffer argument at `dims`.
    pub(crate) fn of(argument: &ArgumentSpec, dims: &Dims) -> Result<Layout, RunError> {
        let shape = sizes(&argument.name, &argument.shape, dims)?;
        let strides = match &argument.strides {
            Some(strides) => Some(evaluate(&argument.name, strides, dims, 0)?),
            None => None,
        };
        let elements = match &strides {
            Some(strides) => span(&shape, strides),
            None => product(&shape),
        };
        let elements = elements.filter(|elements| *elements < MOST_BYTES / 8);
        let elements = elements.ok_or_else(|| too_large(&argument.name))?;
        let bytes = argument.format.storage_bytes(elements);
        Ok(Layout { format: argument.format, shape, strides, bytes })
    }

    /// The dense layout of a tensor at `dims`.
    pub(crate) fn dense(tensor: &Tensor, dims: &Dims) -> Result<Layout, RunError> {
        let shape = sizes(&tensor.name, &tensor.shape, dims)?;
        let elements = product(&shape).filter(|elements| *elements < MOST_BYTES / 8);
        let bytes = elements.map(|elements| tensor.format.storage_bytes(elements));
        let bytes = bytes.ok_or_else(|| too_large(&tensor.name))?;
        Ok(Layout { format: tensor.format, shape, strides: None, bytes })
    }

    /// Elements of the tensor.
    pub(crate) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The index along each axis of a dense position.
    pub(crate) fn index(&self, position: usize) -> Vec<i64> {
        let mut rest = position;
        let mut index: Vec<i64> = self.shape.iter().map(|_| 0).collect();
        for (axis, size) in self.shape.iter().enumerate().rev() {
            index[axis] = (rest % size) as i64;
            rest /= size;
        }
        index
    }

    /// Lays dense bytes out; gaps between strided elements hold `poison`.
    pub(crate) fn scatter(&self, dense: &[u8], poison: u8) -> Vec<u8> {
        if self.strides.is_none() {
            return dense.to_vec();
        }
        let width = self.format.storage_bytes(1);
        let mut bytes = vec![poison; self.bytes];
        for (element, from) in dense.chunks_exact(width).enumerate() {
            let at = self.offset(element) * width;
            bytes[at..at + width].copy_from_slice(from);
        }
        bytes
    }

    /// The dense bytes of a buffer.
    pub(crate) fn gather(&self, bytes: &[u8]) -> Vec<u8> {
        if self.strides.is_none() {
            return bytes.to_vec();
        }
        let width = self.format.storage_bytes(1);
        let element = |at: usize| {
            let at = self.offset(at) * width;
            bytes[at..at + width].iter().copied()
        };
        (0..self.elements()).flat_map(element).collect()
    }

    /// Gives elements that lie in one place the value of the first of them.
    pub(crate) fn agree(&self, values: &mut [f64]) {
        if !self.overlaps() {
            return;
        }
        let mut first = std::collections::HashMap::new();
        for (element, value) in values.iter_mut().enumerate().take(self.elements()) {
            *value = *first.entry(self.offset(element)).or_insert(*value);
        }
    }

    /// True if two elements may lie in one place: some axis steps into what those inside it span.
    pub(crate) fn overlaps(&self) -> bool {
        let Some(strides) = &self.strides else { return false };
        let mut axes: Vec<(usize, usize)> =
            strides.iter().copied().zip(self.shape.iter().copied()).collect();
        axes.retain(|(_, size)| *size > 1);
        axes.sort_unstable();
        let mut inside = 1usize;
        for (stride, size) in axes {
            if stride < inside {
                return true;
            }
            inside = inside.saturating_add((size - 1).saturating_mul(stride));
        }
        false
    }

    /// The first byte between strided elements that is not `poison`.
    pub(crate) fn written_gap(&self, bytes: &[u8], poison: u8) -> Option<usize> {
        self.strides.as_ref()?;
        let width = self.format.storage_bytes(1);
        let mut gap = vec![true; bytes.len()];
        for element in 0..self.elements() {
            let at = self.offset(element) * width;
            gap[at..at + width].fill(false);
        }
        (0..bytes.len()).find(|at| gap[*at] && bytes[*at] != poison)
    }

    /// The bits of a dense element.
    pub(crate) fn bits(&self, dense: &[u8], element: usize) -> u64 {
        if self.format.is_packed() {
            return self.packed_bits(dense, element);
        }
        let width = self.format.storage_bytes(1);
        let bytes = &dense[element * width..(element + 1) * width];
        bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// The bits of an element that shares its bytes; it reaches into two bytes at most.
    fn packed_bits(&self, dense: &[u8], element: usize) -> u64 {
        let bits = self.format.bits() as usize;
        let (byte, shift) = (element * bits / 8, element * bits % 8);
        let high = dense.get(byte + 1).copied().unwrap_or(0);
        let pair = u64::from(u16::from_le_bytes([dense[byte], high]));
        pair >> shift & ((1 << bits) - 1)
    }

    /// The element that a dense byte belongs to; the first of several that share it.
    pub(crate) fn element_of_byte(&self, byte: usize) -> usize {
        byte * 8 / self.format.bits() as usize
    }

    /// The place of a dense element, in elements from the buffer's start.
    fn offset(&self, element: usize) -> usize {
        let Some(strides) = &self.strides else { return element };
        let mut rest = element;
        let mut offset = 0;
        for (size, stride) in self.shape.iter().zip(strides).rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        offset
    }
}

fn too_large(name: &str) -> RunError {
    RunError::request(format!("argument `{name}` is larger than any memory"))
}

/// The size of each axis, all at least 1.
pub(crate) fn sizes(name: &str, shape: &[Extent], dims: &Dims) -> Result<Vec<usize>, RunError> {
    evaluate(name, shape, dims, 1)
}

fn evaluate(
    name: &str,
    extents: &[Extent],
    dims: &Dims,
    least: i64,
) -> Result<Vec<usize>, RunError> {
    let value = |extent: &Extent| {
        let value = extent.eval(dims).map_err(|error| {
            RunError::request(format!("argument `{name}`: `{extent}`: {error}"))
        })?;
        let size = usize::try_from(value).ok().filter(|_| value >= least);
        size.ok_or_else(|| {
            RunError::request(format!("argument `{name}`: `{extent}` is {value}, below {least}"))
        })
    };
    extents.iter().map(value).collect()
}

fn product(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size))
}

/// Elements from the first to the last of a strided tensor.
fn span(shape: &[usize], strides: &[usize]) -> Option<usize> {
    shape
        .iter()
        .zip(strides)
        .try_fold(1usize, |span, (size, stride)| span.checked_add((size - 1).checked_mul(*stride)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Role;

    fn argument(format: Format, shape: &[i64], strides: Option<&[i64]>) -> ArgumentSpec {
        let extents = |values: &[i64]| values.iter().map(|v| Extent::constant(*v)).collect();
        ArgumentSpec {
            name: "x".to_owned(),
            role: Role::In,
            format,
            shape: extents(shape),
            strides: strides.map(extents),
            align: 16,
            value: None,
            extent: None,
            zeroed: false,
            limits: assay_reference::Limits::default(),
        }
    }

    fn layout(format: Format, shape: &[i64], strides: Option<&[i64]>) -> Layout {
        Layout::of(&argument(format, shape, strides), &Dims::new()).expect("the shape is valid")
    }

    #[test]
    fn a_padded_tensor_scatters_and_gathers_its_elements_and_sees_its_gaps() {
        let padded = layout(Format::U8, &[2, 3], Some(&[4, 1]));
        let bytes = padded.scatter(&[1, 2, 3, 4, 5, 6], 0x55);
        assert_eq!(bytes, [1, 2, 3, 0x55, 4, 5, 6]);
        assert_eq!(padded.gather(&bytes), [1, 2, 3, 4, 5, 6]);
        assert_eq!(padded.written_gap(&bytes, 0x55), None);
        assert_eq!(padded.written_gap(&[1, 2, 3, 0, 4, 5, 6], 0x55), Some(3));
    }

    #[test]
    fn elements_in_one_place_get_one_value_and_padding_is_no_overlap() {
        let broadcast = layout(Format::F32, &[2, 3], Some(&[0, 1]));
        assert!(broadcast.overlaps());
        let mut values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        broadcast.agree(&mut values);
        assert_eq!(values, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        for strides in [[4, 1], [3, 1], [1, 2]] {
            assert!(!layout(Format::F32, &[2, 3], Some(&strides)).overlaps(), "{strides:?}");
        }
        assert!(layout(Format::F32, &[2, 3], Some(&[2, 1])).overlaps());
    }

    #[test]
    fn a_dense_position_becomes_an_index() {
        let tensor = layout(Format::F32, &[2, 3, 4], None);
        assert_eq!(tensor.index(23), [1, 2, 3]);
        assert_eq!(tensor.bytes, 96);
    }

    #[test]
    fn four_bit_elements_share_a_byte() {
        let tensor = layout(Format::E2m1, &[3], None);
        assert_eq!(tensor.bytes, 2);
        assert_eq!(tensor.bits(&[0x21, 0x03], 1), 2);
        assert_eq!(tensor.element_of_byte(1), 2);
    }

    #[test]
    fn an_element_of_three_bits_is_read_across_a_byte() {
        let tensor = layout(Format::U3, &[8], None);
        let dense = Format::U3.encode_slice(&[0.0, 1.0, 6.0, 3.0, 4.0, 5.0, 2.0, 7.0]);
        assert_eq!((tensor.bytes, dense.len()), (3, 3));
        let codes: Vec<u64> = (0..8).map(|element| tensor.bits(&dense, element)).collect();
        assert_eq!(codes, [0, 1, 6, 3, 4, 5, 2, 7]);
        assert_eq!(tensor.element_of_byte(1), 2);
    }

    #[test]
    fn a_shape_that_no_memory_holds_is_refused() {
        let huge = argument(Format::F32, &[1 << 40, 1 << 40], None);
        let error = Layout::of(&huge, &Dims::new()).expect_err("no memory holds it");
        assert!(error.to_string().contains("larger than any memory"), "{error}");
        let empty = argument(Format::F32, &[0], None);
        assert!(Layout::of(&empty, &Dims::new()).is_err());
    }
}
