//! Arrays in memory: bytes with a format, a shape and strides.

use std::borrow::Cow;

use assay_num::Format;

use crate::error::ArrayError;

/// An array that owns its bytes, in row-major order without gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    format: Format,
    shape: Vec<u64>,
    bytes: Vec<u8>,
}

impl Tensor {
    /// An array of little-endian bytes.
    ///
    /// # Errors
    /// If there are not exactly as many bytes as the elements take.
    pub fn new(format: Format, shape: &[u64], bytes: Vec<u8>) -> Result<Tensor, ArrayError> {
        let elements = element_count(shape)?;
        let needed = storage(format, elements);
        if needed != bytes.len() as u64 {
            let found = bytes.len() as u64;
            return Err(ArrayError::Length { format, elements, needed, found });
        }
        Ok(Tensor { format, shape: shape.to_vec(), bytes })
    }

    /// An array of values, each rounded to the nearest value of the format.
    ///
    /// # Errors
    /// If there are not exactly as many values as the shape has elements.
    pub fn from_values(
        format: Format,
        shape: &[u64],
        values: &[f64],
    ) -> Result<Tensor, ArrayError> {
        Tensor::checked(format, shape, values.len(), format.encode_slice(values))
    }

    /// An array of `f32`.
    ///
    /// # Errors
    /// As [`Tensor::from_values`].
    pub fn from_f32(shape: &[u64], values: &[f32]) -> Result<Tensor, ArrayError> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor::checked(Format::F32, shape, values.len(), bytes)
    }

    /// An array of `f64`.
    ///
    /// # Errors
    /// As [`Tensor::from_values`].
    pub fn from_f64(shape: &[u64], values: &[f64]) -> Result<Tensor, ArrayError> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor::checked(Format::F64, shape, values.len(), bytes)
    }

    fn checked(
        format: Format,
        shape: &[u64],
        values: usize,
        bytes: Vec<u8>,
    ) -> Result<Tensor, ArrayError> {
        let elements = element_count(shape)?;
        if elements != values as u64 {
            let (needed, found) = (storage(format, elements), bytes.len() as u64);
            return Err(ArrayError::Length { format, elements, needed, found });
        }
        Tensor::new(format, shape, bytes)
    }

    /// The format of the elements.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The size of every axis.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The elements, little-endian, in row-major order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The values of all elements.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        let mut values = self.format.decode_slice(&self.bytes);
        values.truncate(usize::try_from(self.view().elements()).unwrap_or(usize::MAX));
        values
    }

    /// The bytes of some elements, where they start at a whole byte.
    pub(crate) fn plain(&self, first: u64, count: u64) -> Option<&[u8]> {
        if self.format.is_packed() && !first.is_multiple_of(8) {
            return None;
        }
        let from = storage(self.format, first) as usize;
        self.bytes.get(from..from + storage(self.format, count) as usize)
    }

    /// All of it as a view.
    #[must_use]
    pub fn view(&self) -> ArrayView<'_> {
        ArrayView {
            format: self.format,
            bytes: &self.bytes,
            shape: Cow::Borrowed(&self.shape),
            strides: None,
            offset: 0,
        }
    }
}

/// An array in somebody's bytes: element `(i, j, ..)` is element `offset + i * strides[0] + ..` of
/// the buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayView<'a> {
    format: Format,
    bytes: &'a [u8],
    shape: Cow<'a, [u64]>,
    /// None for row-major order without gaps.
    strides: Option<Vec<i64>>,
    offset: u64,
}

impl<'a> ArrayView<'a> {
    /// An array without gaps, in row-major order, from the first byte on.
    ///
    /// # Errors
    /// If the bytes are too few.
    pub fn new(format: Format, bytes: &'a [u8], shape: &[u64]) -> Result<Self, ArrayError> {
        let elements = element_count(shape)?;
        let (needed, found) = (storage(format, elements), bytes.len() as u64);
        if needed > found {
            return Err(ArrayError::Length { format, elements, needed, found });
        }
        let shape = Cow::Owned(shape.to_vec());
        Ok(ArrayView { format, bytes, shape, strides: None, offset: 0 })
    }

    /// An array with strides and an offset, all in elements. Strides may be 0 (an axis that is
    /// broadcast) or negative.
    ///
    /// # Errors
    /// If any element lies outside the bytes.
    pub fn strided(
        format: Format,
        bytes: &'a [u8],
        shape: &[u64],
        strides: &[i64],
        offset: u64,
    ) -> Result<Self, ArrayError> {
        if shape.len() != strides.len() {
            return Err(ArrayError::Strides { axes: shape.len(), strides: strides.len() });
        }
        let elements = element_count(shape)?;
        let held = bytes.len() as u64 * 8 / u64::from(format.bits());
        let (mut first, mut last) = (i128::from(offset), i128::from(offset));
        for (&size, &stride) in shape.iter().zip(strides) {
            let reach = i128::from(size.max(1) - 1) * i128::from(stride);
            *(if reach < 0 { &mut first } else { &mut last }) += reach;
        }
        if elements > 0 && (first < 0 || last >= i128::from(held)) {
            return Err(ArrayError::OutOfRange { first, last, held });
        }
        let plain = offset == 0 && row_major(shape).as_deref() == Some(strides);
        let strides = (!plain).then(|| strides.to_vec());
        Ok(ArrayView { format, bytes, shape: Cow::Owned(shape.to_vec()), strides, offset })
    }

    /// The format of the elements.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The size of every axis.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many elements it has, those of broadcast axes counted every time.
    #[must_use]
    pub fn elements(&self) -> u64 {
        // A size of zero makes it none, whatever the others come to.
        element_count(&self.shape).unwrap_or_default()
    }

    /// The bytes of elements in row-major order, where they lie so.
    pub(crate) fn plain(&self, first: u64, count: u64) -> Option<&[u8]> {
        if self.strides.is_some() || (self.format.is_packed() && !first.is_multiple_of(8)) {
            return None;
        }
        let from = storage(self.format, first) as usize;
        self.bytes.get(from..from + storage(self.format, count) as usize)
    }

    /// The array's elements from `first` on, as many as `out` holds, in row-major order.
    ///
    /// `first` and `first + count` must lie inside; packed formats start at whole bytes of `out`.
    pub(crate) fn gather(&self, first: u64, count: u64, out: &mut Vec<u8>) {
        out.clear();
        let Some(strides) = &self.strides else {
            let from = storage(self.format, first) as usize;
            let bytes = storage(self.format, count) as usize;
            if !self.format.is_packed() || first.is_multiple_of(8) {
                out.extend_from_slice(&self.bytes[from..from + bytes]);
                return;
            }
            return self.gather_strided(
                &row_major(&self.shape).unwrap_or_default(),
                first,
                count,
                out,
            );
        };
        self.gather_strided(strides, first, count, out);
    }

    fn gather_strided(&self, strides: &[i64], first: u64, count: u64, out: &mut Vec<u8>) {
        out.resize(storage(self.format, count) as usize, 0);
        let mut coordinates = coordinates(&self.shape, first);
        let mut at = i128::from(self.offset);
        for (&coordinate, &stride) in coordinates.iter().zip(strides) {
            at += i128::from(coordinate) * i128::from(stride);
        }
        for slot in 0..count as usize {
            self.copy_element(at as usize, slot, out);
            for axis in (0..strides.len()).rev() {
                coordinates[axis] += 1;
                at += i128::from(strides[axis]);
                if coordinates[axis] < self.shape[axis] {
                    break;
                }
                at -= i128::from(strides[axis]) * i128::from(self.shape[axis]);
                coordinates[axis] = 0;
            }
        }
    }

    fn copy_element(&self, from: usize, to: usize, out: &mut [u8]) {
        let bits = self.format.bits() as usize;
        if let Some(bytes) = (bits >= 8).then_some(bits / 8) {
            out[to * bytes..(to + 1) * bytes]
                .copy_from_slice(&self.bytes[from * bytes..(from + 1) * bytes]);
            return;
        }
        for bit in 0..bits {
            let (source, target) = (from * bits + bit, to * bits + bit);
            let value = self.bytes[source / 8] >> (source % 8) & 1;
            out[target / 8] |= value << (target % 8);
        }
    }
}

/// How many elements a shape has.
///
/// # Errors
/// If they are too many for 64 bits.
pub(crate) fn element_count(shape: &[u64]) -> Result<u64, ArrayError> {
    if shape.contains(&0) {
        return Ok(0);
    }
    let product = shape.iter().try_fold(1u64, |all, &size| all.checked_mul(size));
    // Room to count their bits too.
    product
        .filter(|&elements| elements <= u64::MAX / 64)
        .ok_or_else(|| ArrayError::TooManyElements(shape.to_vec()))
}

/// Bytes that so many elements take.
pub(crate) fn storage(format: Format, elements: u64) -> u64 {
    (elements * u64::from(format.bits())).div_ceil(8)
}

/// The coordinates of an element in row-major order.
pub(crate) fn coordinates(shape: &[u64], index: u64) -> Vec<u64> {
    let mut rest = index;
    let mut reversed: Vec<u64> = Vec::with_capacity(shape.len());
    for &size in shape.iter().rev() {
        reversed.push(rest % size.max(1));
        rest /= size.max(1);
    }
    reversed.reverse();
    reversed
}

/// The strides of row-major order; none where they overflow.
fn row_major(shape: &[u64]) -> Option<Vec<i64>> {
    let mut stride = 1i64;
    let mut reversed = Vec::with_capacity(shape.len());
    for &size in shape.iter().rev() {
        reversed.push(stride);
        stride = stride.checked_mul(i64::try_from(size).ok()?.max(1))?;
    }
    reversed.reverse();
    Some(reversed)
}
