//! Which bytes of a tensor a box takes, row by row (ISA 5.5.3 and 5.5.4).

use crate::tensor_map::{MAX_TENSOR_RANK, PixelBox, TensorMap};

/// Where a box starts: coordinates of its first element, innermost first, and for `.im2col` the
/// offsets that move every pixel, W first. Four rows have a column and a coordinate each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Corner {
    pub(crate) coordinates: [i32; MAX_TENSOR_RANK],
    pub(crate) offsets: [u16; 3],
    /// `.tile::gather4`, `.tile::scatter4`
    pub(crate) four_rows: bool,
}

/// A row of a box: bytes that are together in both memories.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Row {
    /// Where it starts in the box.
    pub(crate) start: u64,
    /// Bytes in front of the tensor, inside it, and behind it.
    pub(crate) before: u64,
    pub(crate) inside: u64,
    pub(crate) after: u64,
    /// The address of the first byte inside.
    pub(crate) address: u64,
}

/// How many rows a box has.
pub(crate) fn row_count(map: &TensorMap, corner: &Corner) -> u64 {
    if corner.four_rows {
        return 4;
    }
    if let Some(pixels) = map.pixels {
        return pixels.pixels.into();
    }
    (1..map.rank).map(|dimension| u64::from(steps(map, dimension))).product()
}

/// Elements that a box takes along a dimension.
fn steps(map: &TensorMap, dimension: usize) -> u32 {
    map.box_sizes[dimension].div_ceil(map.element_strides[dimension].max(1))
}

/// Calls `visit` with each row of a box, in the order in which they lie in shared memory.
pub(crate) fn rows(map: &TensorMap, corner: &Corner, mut visit: impl FnMut(Row)) {
    match map.pixels {
        None if corner.four_rows => {
            let [column, rows @ ..] = corner.coordinates.map(i64::from);
            for (number, at) in rows.into_iter().enumerate() {
                visit(row(map, number as u64 * map.row_bytes(), &[column, at, 0, 0, 0]));
            }
        }
        None => tile_rows(map, corner, &mut visit),
        Some(pixels) => pixel_rows(map, pixels, corner, &mut visit),
    }
}

fn tile_rows(map: &TensorMap, corner: &Corner, visit: &mut impl FnMut(Row)) {
    let mut index = [0_u32; MAX_TENSOR_RANK];
    let mut at = corner.coordinates.map(i64::from);
    for number in 0..row_count(map, corner) {
        visit(row(map, number * map.row_bytes(), &at));
        for dimension in 1..map.rank {
            index[dimension] += 1;
            at[dimension] += i64::from(map.element_strides[dimension]);
            if index[dimension] < steps(map, dimension) {
                break;
            }
            index[dimension] = 0;
            at[dimension] = corner.coordinates[dimension].into();
        }
    }
}

/// Pixels one after another: along W, then H, then D inside the pixel box, then the next image.
fn pixel_rows(map: &TensorMap, pixels: PixelBox, corner: &Corner, visit: &mut impl FnMut(Row)) {
    let mut at = corner.coordinates.map(i64::from);
    let image = map.rank - 1;
    for number in 0..row_count(map, corner) {
        let mut moved = at;
        for dimension in 1..image {
            moved[dimension] += i64::from(corner.offsets[dimension - 1]);
        }
        visit(row(map, number * map.row_bytes(), &moved));
        let mut carried = true;
        for dimension in 1..image {
            at[dimension] += i64::from(map.element_strides[dimension]);
            let end = i64::from(map.sizes[dimension]) + i64::from(pixels.upper[dimension - 1]);
            carried = at[dimension] >= end;
            if !carried {
                break;
            }
            at[dimension] = pixels.lower[dimension - 1].into();
        }
        at[image] += i64::from(carried);
    }
}

/// The row whose first element has the coordinates `at`.
fn row(map: &TensorMap, start: u64, at: &[i64; MAX_TENSOR_RANK]) -> Row {
    let size = i64::from(map.element.bytes());
    let whole = map.row_bytes();
    let outside = (1..map.rank)
        .any(|dimension| !(0..i64::from(map.sizes[dimension])).contains(&at[dimension]));
    if outside {
        return Row { start, before: whole, ..Row::default() };
    }
    let end = i64::from(map.sizes[0]);
    let elements = whole as i64 / size;
    let first = at[0].clamp(0, end);
    let last = (at[0] + elements).clamp(0, end);
    let inside = ((last - first).max(0) * size) as u64;
    let before = ((first - at[0]).clamp(0, elements) * size) as u64;
    let mut address = map.address.wrapping_add((first * size) as u64);
    for dimension in 1..map.rank {
        let step = map.strides[dimension - 1].wrapping_mul(at[dimension] as u64);
        address = address.wrapping_add(step);
    }
    Row { start, before, inside, after: whole - before - inside, address }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::TensorElement;

    fn all(map: &TensorMap, corner: &Corner) -> Vec<Row> {
        let mut all = Vec::new();
        rows(map, corner, |row| all.push(row));
        all
    }

    #[test]
    fn a_box_over_the_edge_has_bytes_on_both_sides_of_it() {
        let map = TensorMap::dense(TensorElement::U32, 0x1000, &[8, 3], &[16, 4]);
        let corner = Corner { coordinates: [-4, -1, 0, 0, 0], ..Corner::default() };
        let rows = all(&map, &corner);
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[0], Row { before: 64, ..Row::default() });
        let second = Row { start: 64, before: 16, inside: 32, after: 16, address: 0x1000 };
        assert_eq!(rows[1], second);
        assert_eq!(rows[3].address, 0x1000 + 2 * 32);
    }

    #[test]
    fn a_box_beside_the_tensor_takes_nothing_of_it() {
        let map = TensorMap::dense(TensorElement::U32, 0x1000, &[8], &[4]);
        for start in [-4, -100, 8, 1000, i32::MIN, i32::MAX] {
            let corner = Corner { coordinates: [start, 0, 0, 0, 0], ..Corner::default() };
            let rows = all(&map, &corner);
            assert_eq!((rows[0].inside, rows[0].before + rows[0].after), (0, 16), "{start}");
        }
    }

    #[test]
    fn an_element_stride_takes_every_second_row() {
        let mut map = TensorMap::dense(TensorElement::U32, 0x1000, &[4, 9], &[4, 5]);
        map.element_strides[1] = 2;
        let rows = all(&map, &Corner::default());
        let addresses: Vec<u64> = rows.iter().map(|row| row.address).collect();
        assert_eq!(addresses, [0x1000, 0x1020, 0x1040]);
    }

    #[test]
    fn pixels_wrap_to_the_next_line_and_the_next_image() {
        // Four channels, images of 3 by 2 pixels, a filter of 3 by 3 with padding 1.
        let mut map = TensorMap::dense(TensorElement::U32, 0x1000, &[4, 3, 2, 2], &[1; 4]);
        map.pixels =
            Some(PixelBox { lower: [-1, -1, 0], upper: [-1, -1, 0], channels: 4, pixels: 8 });
        let corner =
            Corner { coordinates: [0, -1, -1, 0, 0], offsets: [1, 1, 0], four_rows: false };
        let rows = all(&map, &corner);
        let pixels: Vec<u64> = rows.iter().map(|row| (row.address - 0x1000) / 16).collect();
        assert_eq!(pixels, [0, 1, 2, 3, 4, 5, 6, 7]);
        let corner = Corner { offsets: [0, 0, 0], ..corner };
        let inside: Vec<bool> = all(&map, &corner).iter().map(|row| row.inside > 0).collect();
        // The first line and the first column lie in the padding.
        assert_eq!(inside, [false, false, false, false, true, true, false, false]);
    }
}
