//! Operands as an operation sees them: views of memory that somebody else owns, of any strides.
//!
//! An operation may go through a view by its indices, or take the first element's address and
//! count from there, as a kernel does. Memory is only as large as what lies in it: 2^31 elements
//! of stride 0 are one element, rows 2^30 apart are their rows, and the elements of a long dense
//! operand are made when they are looked at.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_num::Format;

/// Elements of a page of memory that is mostly unused.
const PAGE: u64 = 1024;

/// What the operands of one case lie in.
#[derive(Debug)]
pub(crate) struct Storage {
    contents: Contents,
    len: u64,
    format: Format,
    /// Loads from outside, and the first such place, as two's complement.
    strays: AtomicU64,
    first_stray: AtomicU64,
}

#[derive(Debug)]
enum Contents {
    Dense(Vec<f64>),
    Pages(BTreeMap<u64, Vec<f64>>),
    Made(Made),
}

/// Elements that are made when they are looked at: any number of them, each with a value of its
/// own, in no memory.
struct Made {
    /// Where the first one lies.
    offset: u64,
    element: Box<dyn Fn(u64) -> f64 + Send + Sync>,
}

impl fmt::Debug for Made {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "made from {} on", self.offset)
    }
}

impl Storage {
    /// Memory of `len` elements that holds nothing yet.
    pub(crate) fn new(format: Format, len: u64, sparse: bool) -> Storage {
        let contents = if sparse {
            Contents::Pages(BTreeMap::new())
        } else {
            Contents::Dense(vec![unused(format); usize::try_from(len).unwrap_or(0)])
        };
        let (strays, first_stray) = (AtomicU64::new(0), AtomicU64::new(0));
        Storage { contents, len, format, strays, first_stray }
    }

    /// Dense memory of `len` elements, of which the one at a place from `offset` on is what
    /// `element` makes of its number.
    pub(crate) fn made(
        format: Format,
        (offset, len): (u64, u64),
        element: impl Fn(u64) -> f64 + Send + Sync + 'static,
    ) -> Storage {
        let made = Made { offset, element: Box::new(element) };
        Storage { contents: Contents::Made(made), len, ..Storage::new(format, 0, true) }
    }

    pub(crate) fn store(&mut self, place: u64, value: f64) {
        let poison = unused(self.format);
        match &mut self.contents {
            Contents::Dense(values) => {
                if let Some(slot) = usize::try_from(place).ok().and_then(|at| values.get_mut(at)) {
                    *slot = value;
                }
            }
            Contents::Pages(pages) => {
                let page = pages.entry(place / PAGE);
                let page = page.or_insert_with(|| vec![poison; PAGE as usize]);
                page[(place % PAGE) as usize] = value;
            }
            Contents::Made(_) => {}
        }
    }

    fn load(&self, place: i64) -> f64 {
        if let Some(place) = u64::try_from(place).ok().filter(|place| *place < self.len) {
            return self.held(place);
        }
        if self.strays.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first_stray.store(place as u64, Ordering::Relaxed);
        }
        f64::NAN
    }

    fn held(&self, place: u64) -> f64 {
        match &self.contents {
            Contents::Dense(values) => values[place as usize],
            Contents::Pages(pages) => pages
                .get(&(place / PAGE))
                .map_or_else(|| unused(self.format), |page| page[(place % PAGE) as usize]),
            Contents::Made(made) => match place.checked_sub(made.offset) {
                Some(number) => self.format.round((made.element)(number)),
                None => unused(self.format),
            },
        }
    }

    /// How many loads went outside, and the first of their places.
    pub(crate) fn strays(&self) -> Option<(u64, i64)> {
        let count = self.strays.load(Ordering::Relaxed);
        (count > 0).then(|| (count, self.first_stray.load(Ordering::Relaxed) as i64))
    }
}

/// What memory between elements holds: no value that an operand has.
fn unused(format: Format) -> f64 {
    if format.has_nan() { f64::NAN } else { format.max_finite() }
}

/// One operand: a shape over memory, with strides and a first element.
#[derive(Debug, Clone)]
pub struct View {
    pub(crate) storage: Arc<Storage>,
    pub(crate) shape: Vec<u64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) offset: u64,
}

impl View {
    /// Sizes along each axis; none for a scalar.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Elements from each index to the next, per axis.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// The format of an element.
    pub fn format(&self) -> Format {
        self.storage.format
    }

    /// Logical elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |all, size| all.saturating_mul(*size))
    }

    /// The address of the first element, in bytes; memory itself starts at a multiple of 256.
    pub fn address(&self) -> u64 {
        256 + self.offset * u64::from(self.format().bits()) / 8
    }

    /// Whether elements lie in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        let mut expected = 1i64;
        let axes = self.shape.iter().zip(&self.strides).rev();
        for (size, stride) in axes.filter(|(size, _)| **size != 1) {
            if *stride != expected {
                return false;
            }
            expected = expected.saturating_mul(*size as i64);
        }
        true
    }

    /// What lies `place` elements after the first one, as behind a pointer. Outside the operand's
    /// memory it is NaN, and the case fails.
    pub fn load(&self, place: i64) -> f64 {
        self.storage.load((self.offset as i64).wrapping_add(place))
    }

    /// The element at an index; 0 along the axes that `index` leaves out.
    pub fn at(&self, index: &[u64]) -> f64 {
        let steps = index.iter().zip(&self.strides);
        let place = steps.map(|(index, stride)| (*index as i64).wrapping_mul(*stride));
        self.load(place.fold(0, i64::wrapping_add))
    }

    /// The element at a place in row-major order.
    pub fn linear(&self, place: u64) -> f64 {
        let (mut rest, mut at) = (place, 0i64);
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            let size = (*size).max(1);
            at = at.wrapping_add(((rest % size) as i64).wrapping_mul(*stride));
            rest /= size;
        }
        self.load(at)
    }
}

/// The index along each axis of a place in row-major order.
pub(crate) fn index(shape: &[u64], place: u64) -> Vec<i64> {
    let mut rest = place;
    let mut index = vec![0; shape.len()];
    for (index, size) in index.iter_mut().zip(shape).rev() {
        let size = (*size).max(1);
        *index = (rest % size) as i64;
        rest /= size;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(shape: &[u64], strides: &[i64], offset: u64, len: u64) -> View {
        let mut storage = Storage::new(Format::F32, len, false);
        for place in 0..len {
            storage.store(place, place as f64);
        }
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        View { storage: Arc::new(storage), shape, strides, offset }
    }

    #[test]
    fn a_transposed_view_is_read_by_indices_and_in_row_major_order() {
        let view = view(&[2, 3], &[1, 2], 1, 7);
        assert_eq!(view.at(&[1, 2]), 6.0);
        let all: Vec<f64> = (0..6).map(|place| view.linear(place)).collect();
        assert_eq!(all, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        assert!(!view.is_dense());
        assert_eq!(view.address(), 260);
    }

    #[test]
    fn a_scalar_and_an_axis_of_one_are_dense_whatever_their_strides() {
        assert!(view(&[], &[], 0, 1).is_dense());
        assert!(view(&[3, 1], &[1, 77], 0, 3).is_dense());
        assert!(!view(&[4], &[0], 0, 1).is_dense());
    }

    #[test]
    fn a_load_from_outside_is_nan_and_is_remembered() {
        let view = view(&[3], &[1], 0, 3);
        assert!(view.load(-1).is_nan() && view.load(3).is_nan());
        assert_eq!(view.storage.strays(), Some((2, -1)));
    }

    #[test]
    fn memory_that_is_mostly_unused_holds_what_is_stored_and_no_more() {
        let mut storage = Storage::new(Format::F32, 3 << 31, true);
        storage.store(1 << 32, 5.0);
        assert_eq!(storage.load(1 << 32), 5.0);
        assert!(storage.load((1 << 32) + 1).is_nan());
        assert!(storage.load(7).is_nan());
        assert_eq!(storage.strays(), None);
    }
}
