//! What `wgmma` takes: matrices as an image of shared memory with their descriptors, and A as the
//! registers of four warps.

use super::matrix::{Matrix, ROW_BYTES};
use super::products::{Inputs, Products};

/// Columns of one product.
pub(crate) const COLUMNS: usize = 256;

/// Products before the second half of A comes in.
pub(crate) const STAGES: usize = 2;

/// Registers of a thread's accumulators.
pub(crate) const ACCUMULATORS: usize = COLUMNS / 2;

/// Bytes of a swizzled row, and of the pattern that its 16-byte parts are swapped by.
const LINE: usize = 128;

/// The image of shared memory, and the kernel's argument that says where in it what lies.
pub(crate) struct Image {
    pub bytes: Vec<u8>,
    pub places: Vec<u8>,
}

/// Where the parts of one matrix lie: K-major, side by side in rows of 128 bytes, whose 16-byte
/// units are swizzled.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of a row of one part.
    width: usize,
    rows: usize,
}

impl Layout {
    /// The place of a byte of the part with that number.
    fn byte(self, part: usize, row: usize, byte: usize) -> usize {
        let plain = row * LINE + part * self.width + byte;
        plain ^ (plain / LINE % 8 * 16)
    }

    fn total(self) -> usize {
        self.rows * LINE
    }

    /// The descriptor of the first part, of a matrix that lies at `start`.
    fn descriptor(start: usize) -> u64 {
        let field = |bytes: usize| (bytes as u64 & 0x3_ffff) >> 4;
        // The leading offset means nothing here; mode 1 is that of 128 bytes.
        field(start) | field(16) << 16 | field(8 * LINE) << 32 | 1 << 62
    }
}

impl Image {
    pub(crate) fn of(inputs: &Inputs, products: &Products) -> Image {
        let a = Layout { width: ROW_BYTES, rows: 64 };
        let b = Layout { width: ROW_BYTES * products.density.times(), rows: COLUMNS };
        let start = a.total();
        let mut bytes = vec![0; start + b.total()];
        for (part, matrix) in inputs.a.iter().flatten().enumerate() {
            place(&mut bytes, matrix, |row, byte| a.byte(part, row, byte));
        }
        for (part, matrix) in inputs.b.iter().enumerate() {
            place(&mut bytes, matrix, |row, byte| start + b.byte(part, row, byte));
        }
        let steps = [a.width, STAGES * a.width, b.width, 0].map(|bytes| bytes as u32);
        let mut places = Vec::new();
        for descriptor in [Layout::descriptor(0), Layout::descriptor(start)] {
            places.extend(descriptor.to_le_bytes());
        }
        places.extend(steps.into_iter().flat_map(u32::to_le_bytes));
        Image { bytes, places }
    }
}

fn place(bytes: &mut [u8], matrix: &Matrix, at: impl Fn(usize, usize) -> usize) {
    for row in 0..matrix.rows {
        for depth in 0..matrix.depth {
            let (element, size) = matrix.bytes_at(row, depth);
            let start = at(row, depth * size);
            bytes[start..start + size].copy_from_slice(&element[..size]);
        }
    }
}

/// A as registers: for each half and stage those of four warps.
pub(crate) fn fragments(inputs: &Inputs) -> Vec<u32> {
    let warps = |a: &Matrix| (0..4).flat_map(|warp| a.fragment_a(16 * warp)).collect::<Vec<u32>>();
    inputs.a.iter().flatten().flat_map(warps).collect()
}

/// The row and column of a register of the accumulators of a warpgroup's thread.
pub(crate) fn accumulator_place(thread: usize, register: usize) -> (usize, usize) {
    let (row, column) = super::matrix::accumulator_place(thread % 32, register % 4);
    (thread / 32 * 16 + row, register / 4 * 8 + column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_bytes_of_an_image_share_a_place() {
        for width in [32, 64] {
            let layout = Layout { width, rows: 64 };
            let mut seen = vec![false; layout.total()];
            for part in 0..LINE / width {
                for row in 0..64 {
                    for byte in 0..width {
                        let at = layout.byte(part, row, byte);
                        assert!(!std::mem::replace(&mut seen[at], true), "{at}");
                    }
                }
            }
            assert!(seen.iter().all(|seen| *seen));
        }
    }
}
