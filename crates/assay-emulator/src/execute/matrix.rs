//! What a warp does with matrices, but for `mma`: `ldmatrix`, `stmatrix`, `movmatrix` (ISA
//! 9.7.14.5).
//!
//! All are `.aligned`: the 32 lanes of the warp execute them together.

use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step, Trouble};
use super::fast::reach;
use super::frame::{LANES, Operands};
use crate::fault::FaultKind;
use crate::observer::Observer;

/// Bytes of a row of eight elements of 16 bits.
const ROW: u64 = 16;

/// `ldmatrix` or `stmatrix` of 8 by 8 elements of 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MatrixAccess {
    pub(crate) space: SpaceKind,
    pub(crate) wide_address: bool,
    /// Matrices: 1, 2 or 4.
    pub(crate) count: u8,
    pub(crate) transposed: bool,
}

impl<O: Observer> Engine<'_, O> {
    /// Waits for the whole warp. `Some(flow)` when this group has to stop here.
    pub(crate) fn whole_warp(&mut self, mask: u32) -> Step<Option<Flow>> {
        if let Some(flow) = self.converge(u32::MAX, mask) {
            return Ok(Some(flow));
        }
        if mask == u32::MAX {
            return Ok(None);
        }
        let what =
            format!("a matrix instruction takes a whole warp: lanes {:#010x} are gone", !mask);
        Err(Trouble::new(FaultKind::WarpMisuse { what }, mask))
    }

    /// The rows that lanes' addresses stand for, shown to the observer: lanes 0 to 7 have those of
    /// the first matrix.
    fn row_addresses(
        &mut self,
        access: MatrixAccess,
        operands: &Operands,
        writes: bool,
    ) -> [u64; LANES] {
        let addresses = self.addresses(operands.a, access.wide_address, operands.immediate);
        let used = u32::MAX >> (LANES - 8 * usize::from(access.count));
        self.observe(access.space, &addresses, ROW as u32, writes, used);
        addresses
    }

    /// `ldmatrix`
    pub(crate) fn load_matrix(
        &mut self,
        access: MatrixAccess,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let addresses = self.row_addresses(access, operands, false);
        let used = u32::MAX >> (LANES - 8 * usize::from(access.count));
        let fine = self.rows_fit(access, &addresses, used);
        for matrix in 0..usize::from(access.count) {
            let mut rows = [[0_u8; ROW as usize]; 8];
            for (lane, row) in (8 * matrix..).zip(&mut rows) {
                let start = addresses[lane] as usize;
                let bytes = if fine {
                    self.block.shared.get(start..start + ROW as usize)
                } else {
                    Some(self.lane_bytes(access.space, lane, addresses[lane], ROW, mask)?)
                };
                row.copy_from_slice(bytes.unwrap_or(&[0; ROW as usize]));
            }
            let slot = self.code().lists[operands.c as usize][matrix];
            self.store_lanes32(slot, fragment_of(&rows, access.transposed));
        }
        Ok(Flow::Next)
    }

    /// Whether the rows need no look of their own: all are aligned and inside one variable in
    /// shared memory.
    fn rows_fit(&mut self, access: MatrixAccess, addresses: &[u64; LANES], used: u32) -> bool {
        let (low, high, bits) = reach(addresses, used);
        let inside = high.wrapping_sub(low).checked_add(ROW);
        access.space == SpaceKind::Shared
            && bits & (ROW - 1) == 0
            && inside.is_some_and(|inside| self.shared_range(low, inside).is_some())
    }

    /// `stmatrix`
    pub(crate) fn store_matrix(
        &mut self,
        access: MatrixAccess,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let addresses = self.row_addresses(access, operands, true);
        for matrix in 0..usize::from(access.count) {
            let slot = self.code().lists[operands.c as usize][matrix];
            let words = self.read_register(slot, false);
            for row in 0..8 {
                let lane = 8 * matrix + row;
                let bytes = self.lane_bytes_mut(access.space, lane, addresses[lane], ROW)?;
                for (column, bytes) in bytes.chunks_exact_mut(2).enumerate() {
                    let (r, c) = if access.transposed { (column, row) } else { (row, column) };
                    let half = words[4 * r + c / 2] >> (16 * (c % 2));
                    bytes.copy_from_slice(&(half as u16).to_le_bytes());
                }
            }
        }
        Ok(Flow::Next)
    }

    /// `movmatrix`: transposes 8 by 8 elements of 16 bits.
    pub(crate) fn move_matrix(&mut self, operands: &Operands, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let words = self.read_register(operands.a, false);
        let moved = std::array::from_fn(|lane| {
            let at = |column: usize| {
                let (row, column) = (2 * (lane % 4) + column, lane / 4);
                words[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff
            };
            at(0) | at(1) << 16
        });
        self.write_register(operands.d, false, &moved, mask);
        Ok(Flow::Next)
    }
}

/// The register that holds a matrix: four lanes have a row, or a column, two elements each.
#[inline(always)]
fn fragment_of(rows: &[[u8; ROW as usize]; 8], transposed: bool) -> [u32; LANES] {
    let mut words = [0; LANES];
    if transposed {
        for (column, row) in rows.iter().enumerate() {
            for (line, element) in row.as_chunks::<2>().0.iter().enumerate() {
                let element = u32::from(u16::from_le_bytes(*element));
                words[4 * line + column / 2] |= element << (16 * (column % 2));
            }
        }
    } else {
        for (four, row) in words.as_chunks_mut::<4>().0.iter_mut().zip(rows) {
            for (word, bytes) in four.iter_mut().zip(row.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
    }
    words
}
