//! Where two outputs differ, over their last two dimensions, small enough to draw.

use serde::{Deserialize, Serialize};

/// The most cells of an [`ErrorMap`] along one dimension.
pub const MOST_CELLS: usize = 64;

/// The worst difference of every tile of the last two dimensions of a tensor.
///
/// All other dimensions are folded: a cell holds the worst of them all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ErrorMap {
    /// What was compared.
    pub title: String,
    /// What the last dimension but one is called.
    pub row_name: String,
    /// What the last dimension is called.
    pub col_name: String,
    /// The true size of the last dimension but one.
    pub rows: u64,
    /// The true size of the last dimension.
    pub cols: u64,
    /// Cells along the last dimension but one, at most [`MOST_CELLS`].
    pub cell_rows: usize,
    /// Cells along the last dimension, at most [`MOST_CELLS`].
    pub cell_cols: usize,
    /// What a cell counts: `ulp`, or `half widths` of an element's band.
    pub unit: String,
    /// The worst difference of each cell, row by row; `None` where nothing could be compared.
    pub cells: Vec<Option<f64>>,
    /// Elements of each cell of which one side is NaN or infinite and the other is not; empty where
    /// there are none at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nonfinite: Vec<u64>,
    /// A cell over this fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

impl ErrorMap {
    /// An empty map of a tensor whose last two dimensions have these sizes.
    #[must_use]
    pub fn new(title: &str, rows: u64, cols: u64, unit: &str) -> ErrorMap {
        let cells = |size: u64| usize::try_from(size).unwrap_or(usize::MAX).min(MOST_CELLS);
        let (cell_rows, cell_cols) = (cells(rows), cells(cols));
        ErrorMap {
            title: title.to_owned(),
            row_name: "row".to_owned(),
            col_name: "column".to_owned(),
            rows,
            cols,
            cell_rows,
            cell_cols,
            unit: unit.to_owned(),
            cells: vec![None; cell_rows * cell_cols],
            nonfinite: Vec::new(),
            limit: None,
        }
    }

    /// The cell of an element; `None` outside.
    #[must_use]
    pub fn cell(&self, row: u64, col: u64) -> Option<usize> {
        if row >= self.rows || col >= self.cols {
            return None;
        }
        let part = |index: u64, size: u64, cells: usize| {
            (u128::from(index) * cells as u128 / u128::from(size)) as usize
        };
        let (row, col) =
            (part(row, self.rows, self.cell_rows), part(col, self.cols, self.cell_cols));
        Some(row * self.cell_cols + col)
    }

    /// Adds the difference of one element. One that is no finite number counts as `nonfinite`.
    pub fn add(&mut self, row: u64, col: u64, difference: f64) {
        let Some(cell) = self.cell(row, col) else { return };
        if difference.is_finite() {
            let worst = self.cells[cell].map_or(difference, |worst| worst.max(difference));
            self.cells[cell] = Some(worst);
        } else {
            self.nonfinite.resize(self.cells.len(), 0);
            self.nonfinite[cell] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_the_worst_of_its_tile_and_every_element_has_one() {
        let mut map = ErrorMap::new("y", 3, 200, "ulp");
        assert_eq!((map.cell_rows, map.cell_cols), (3, 64));
        for col in 0..200 {
            map.add(2, col, if col == 199 { 7.0 } else { 1.0 });
        }
        map.add(2, 198, f64::NAN);
        map.add(3, 0, 9.0);
        let filled = map.cells.iter().filter(|cell| cell.is_some()).count();
        assert_eq!((filled, map.cells[3 * 64 - 1], map.nonfinite[3 * 64 - 1]), (64, Some(7.0), 1));
        assert_eq!(map.cells.iter().flatten().copied().fold(0.0, f64::max), 7.0);
    }

    #[test]
    fn a_map_of_a_tensor_with_no_elements_has_no_cells() {
        let mut map = ErrorMap::new("y", 0, u64::MAX, "ulp");
        map.add(0, 0, 1.0);
        assert!(map.cells.is_empty());
    }
}
