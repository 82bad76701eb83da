//! Where two arrays differ, over their last two axes.

use assay_record::ErrorMap;

use crate::array::storage;
use crate::compare::{Options, Plan};
use crate::counts::{LANES, class_index};
use crate::error::CompareError;
use crate::row::Row;
use crate::source::Source;

/// Rows of lanes that are read at a time.
const PIECE_ROWS: u64 = 2048;

/// The largest distance in ulp of every tile of the last two axes. The arrays are read once more.
///
/// # Errors
/// As [`crate::compare_sources`].
pub fn error_map(
    title: &str,
    reference: &mut dyn Source,
    candidate: &mut dyn Source,
    options: &Options,
) -> Result<ErrorMap, CompareError> {
    let plan = Plan::new(reference, candidate, options)?;
    let cols = plan.shape.last().copied().unwrap_or(1);
    let rows = plan.shape.len().checked_sub(2).map_or(1, |axis| plan.shape[axis]);
    let mut map = ErrorMap::new(title, rows, cols, "ulp");
    let mut row = Row::new(plan.rules.format);
    let mut buffers = (Vec::new(), Vec::new());
    let bytes = storage(plan.rules.format, LANES as u64) as usize;
    let mut first = 0;
    while first < plan.elements {
        let count = (PIECE_ROWS * LANES as u64).min(plan.elements - first);
        // What could be read until now is drawn.
        let Ok((one, other)) = plan.read(reference, candidate, (first, count), &mut buffers) else {
            break;
        };
        let pieces = one.chunks(bytes).zip(other.chunks(bytes));
        for (at, (one, other)) in pieces.enumerate() {
            row.decode(plan.rules.format, one, other);
            let start = first + (at * LANES) as u64;
            for lane in 0..LANES.min((first + count - start) as usize) {
                let index = start + lane as u64;
                let place = (index / cols % rows, index % cols);
                map.add(place.0, place.1, difference(&row, lane, options));
            }
        }
        first += count;
    }
    Ok(map)
}

/// The distance of one element; infinite for another class.
fn difference(row: &Row, lane: usize, options: &Options) -> f64 {
    let classes = (class_index(row.reference[lane]), class_index(row.candidate[lane]));
    let is_nan = classes == (1, 1);
    if classes.0 != classes.1 || (is_nan && !options.equal_nan) {
        return f64::INFINITY;
    }
    if classes == (0, 0) { row.ulp.get(lane) as f64 } else { 0.0 }
}
