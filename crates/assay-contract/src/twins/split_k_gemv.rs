//! The twin of `split_k_gemv`: a warp adds a slice of the columns, and a second launch adds the
//! slices in order.

use super::{Computed, Twin, TwinInputs};
use crate::subject::RunError;

pub(super) const TWIN: Twin =
    Twin { name: "split_k_gemv", inputs: &[("w", 2), ("x", 1)], outputs: &["y"], compute };

/// Columns of a slice, of the tiles in it, and of a lane in a tile.
const SLICE: usize = 512;
const TILE: usize = 256;
const LANE: usize = 8;
const LANES: usize = TILE / LANE;

fn compute(inputs: &TwinInputs<'_>) -> Result<Computed, RunError> {
    let [_, cols] = inputs.matrix("w")?;
    let (w, x) = (inputs.values("w")?, inputs.values("x")?);
    let y = w.chunks_exact(cols.max(1)).map(|row| merge(partials(row, &x))).collect();
    Ok(Computed::from([("y", y)]))
}

/// The sums of a row's slices.
fn partials<'a>(row: &'a [f32], x: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
    row.chunks(SLICE).zip(x.chunks(SLICE)).map(|(row, x)| slice_sum(row, x))
}

/// Adds the slices in ascending order.
fn merge(mut partials: impl Iterator<Item = f32>) -> f32 {
    let first = partials.next().unwrap_or(0.0);
    partials.fold(first, |sum, partial| sum + partial)
}

/// One slice by one warp: a lane takes eight neighbours of every tile, then the lanes meet in a
/// butterfly. A lane that is partly past the end still adds the products of zeros.
fn slice_sum(row: &[f32], x: &[f32]) -> f32 {
    let mut lanes = [0f32; LANES];
    for (row, x) in row.chunks(TILE).zip(x.chunks(TILE)) {
        for ((row, x), sum) in row.chunks(LANE).zip(x.chunks(LANE)).zip(&mut lanes) {
            for place in 0..LANE {
                let of = |values: &[f32]| values.get(place).copied().unwrap_or(0.0);
                *sum = of(row).mul_add(of(x), *sum);
            }
        }
    }
    let mut distance = LANES / 2;
    while distance > 0 {
        let before = lanes;
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = before[lane] + before[lane ^ distance];
        }
        distance /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::{SLICE, merge, partials, slice_sum};

    #[test]
    fn small_integers_sum_exactly_whatever_the_length() {
        for length in [1, 7, 8, 255, 256, 257, 511, 512, 513, 2051] {
            let row: Vec<f32> = (0..length).map(|at| (at % 13) as f32 - 4.0).collect();
            let x: Vec<f32> = (0..length).map(|at| (at % 5) as f32 - 2.0).collect();
            let exact: f32 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
            assert_eq!(merge(partials(&row, &x)), exact, "{length}");
        }
    }

    #[test]
    fn the_order_of_the_slices_shows() {
        // The loud slices cancel; what comes between them is lost only where it comes first.
        let mut row = vec![0f32; 3 * SLICE];
        (row[0], row[SLICE], row[2 * SLICE]) = (1e10, 1.0, -1e10);
        let x = vec![1f32; row.len()];
        assert_eq!(merge(partials(&row, &x)), 0.0);
        let mut other: Vec<f32> = partials(&row, &x).collect();
        other.swap(1, 2);
        assert_eq!(merge(other.into_iter()), 1.0);
    }

    #[test]
    fn a_lane_adds_its_neighbours_before_the_lanes_meet() {
        let mut row = vec![0f32; 16];
        (row[0], row[1], row[8]) = (1e10, 1.0, -1e10);
        assert_eq!(slice_sum(&row, &[1.0; 16]), 0.0);
        // In another lane the one survives.
        (row[1], row[9]) = (0.0, 1.0);
        assert_eq!(slice_sum(&row, &[1.0; 16]), 0.0);
        (row[8], row[9], row[1]) = (0.0, 1.0, -1e10);
        assert_eq!(slice_sum(&row, &[1.0; 16]), 1.0);
    }
}
