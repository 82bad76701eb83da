//! Where a candidate lies in its bands, over its last two axes.

use assay_record::ErrorMap;

use super::spread::{Spread, Totals, width};
use super::stream::{PIECE, check_all, decoded, spread_of};
use super::verdict::distance;
use super::{BandOptions, Bands, CHUNK};
use crate::array::ArrayView;
use crate::compare::Options;
use crate::error::CompareError;
use crate::source::Source;

/// A map of distances from the mean in half widths of each element's band, and how it is filled.
struct Drawing {
    map: ErrorMap,
    z: f64,
    next: u64,
}

impl Drawing {
    fn new(title: &str, shape: &[u64], z: f64) -> Drawing {
        let cols = shape.last().copied().unwrap_or(1);
        let rows = shape.len().checked_sub(2).map_or(1, |axis| shape[axis]);
        let mut map = ErrorMap::new(title, rows, cols, "half widths");
        map.limit = Some(1.0);
        Drawing { map, z, next: 0 }
    }

    /// Adds the next elements, whose bands `spread` holds from its place `at` on.
    fn add(&mut self, values: &[f64], spread: &Spread, at: usize) {
        let (rows, cols) = (self.map.rows, self.map.cols);
        for (place, &value) in values.iter().enumerate() {
            let place_of = (self.next / cols % rows, self.next % cols);
            let far = distance(self.z, value, spread, at + place);
            self.map.add(place_of.0, place_of.1, far);
            self.next += 1;
        }
    }
}

impl Bands {
    /// Where a candidate of the same shape lies in its bands: the worst `|candidate - mean|` of
    /// every tile of the last two axes, over what is allowed.
    #[must_use]
    pub fn map(&self, title: &str, candidate: &ArrayView<'_>) -> ErrorMap {
        let mut drawing = Drawing::new(title, candidate.shape(), self.z);
        let elements = candidate.elements().min(self.spread.mean.len() as u64);
        for first in (0..elements).step_by(CHUNK as usize) {
            let values = super::decoded(candidate, (first, CHUNK.min(elements - first)));
            drawing.add(&values, &self.spread, first as usize);
        }
        drawing.map
    }
}

/// The same of bands that come from the outputs for shuffled inputs, which are read once more. What
/// could be read until one of them ends is drawn.
///
/// # Errors
/// As [`super::compare_shuffled`].
pub fn shuffled_map(
    title: &str,
    candidate: &mut dyn Source,
    shuffled: &mut [Box<dyn Source>],
    (options, bands): (&Options, &BandOptions),
) -> Result<ErrorMap, CompareError> {
    check_all(candidate, shuffled, (options, bands))?;
    let elements = crate::array::element_count(candidate.shape())?;
    let z = width(shuffled.len(), elements, bands.false_alarm);
    let mut drawing = Drawing::new(title, candidate.shape(), z);
    let (format, mut totals) = (candidate.format(), Totals::new(shuffled.len()));
    for first in (0..elements).step_by(PIECE as usize) {
        let piece = (first, PIECE.min(elements - first));
        let Ok(spread) = spread_of(shuffled, format, piece, &mut totals) else { break };
        let Ok(values) = decoded(candidate, format, piece) else { break };
        drawing.add(&values, &spread, 0);
    }
    Ok(drawing.map)
}
