//! What a warp does with matrices: `ldmatrix`, `stmatrix`, `movmatrix` and `mma` (ISA 9.7.14.5).
//!
//! All are `.aligned`: the 32 lanes of the warp execute them together.

use super::access::{lanes_of, read_value};
use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands, Slot};
use crate::arithmetic::soft::Rounding;
use crate::arithmetic::tensor::{Element, dot_f16, dot_f32, dot_f64};
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

/// What a matrix of `mma` holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matrix {
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    S32,
    S8,
    U8,
    S4,
    U4,
    B1,
}

impl Matrix {
    pub(crate) fn bits(self) -> usize {
        match self {
            Matrix::F64 => 64,
            Matrix::F32 | Matrix::Tf32 | Matrix::S32 => 32,
            Matrix::F16 | Matrix::Bf16 => 16,
            Matrix::S8 | Matrix::U8 => 8,
            Matrix::S4 | Matrix::U4 => 4,
            Matrix::B1 => 1,
        }
    }

    /// Bits of the registers that hold its fragments.
    pub(crate) fn register_bits(self) -> u32 {
        if self == Matrix::F64 { 64 } else { 32 }
    }

    /// Elements of one register.
    fn elements(self) -> usize {
        self.register_bits() as usize / self.bits()
    }

    pub(crate) fn float(self, bits: u64) -> Element {
        match self {
            Matrix::F16 => Element::open(bits, 5, 10),
            Matrix::Bf16 => Element::open(bits, 8, 7),
            // The low 13 bits are ignored.
            _ => Element::open(bits >> 13, 8, 10),
        }
    }

    pub(crate) fn integer(self, bits: u64) -> i64 {
        let signed = |width: u32| ((bits << (64 - width)) as i64) >> (64 - width);
        match self {
            Matrix::S8 => signed(8),
            Matrix::S4 => signed(4),
            _ => bits as i64,
        }
    }
}

/// A dense `mma` of `rows` by `depth` times `depth` by 8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Multiply {
    pub(crate) rows: u8,
    pub(crate) depth: u16,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    pub(crate) c: Matrix,
    pub(crate) d: Matrix,
    /// `.satfinite`
    pub(crate) saturates: bool,
    /// `.and` of single bits, rather than `.xor`
    pub(crate) conjunction: bool,
    /// The rounding of f64.
    pub(crate) rounding: Rounding,
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
        for matrix in 0..usize::from(access.count) {
            let mut elements = [[0_u64; 8]; 8];
            for (row, elements) in elements.iter_mut().enumerate() {
                let lane = 8 * matrix + row;
                let bytes = self.lane_bytes(access.space, lane, addresses[lane], ROW, mask)?;
                for (column, element) in elements.iter_mut().enumerate() {
                    *element = read_value(&bytes[2 * column..], 2);
                }
            }
            let slot = self.code().lists[operands.c as usize][matrix];
            let words = std::array::from_fn(|lane| {
                let at = |column: usize| {
                    let (row, column) = (lane / 4, 2 * (lane % 4) + column);
                    if access.transposed { elements[column][row] } else { elements[row][column] }
                };
                at(0) | at(1) << 16
            });
            self.write_register(slot, false, &words, mask);
        }
        Ok(Flow::Next)
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

    /// `mma`
    pub(crate) fn multiply(&mut self, multiply: Multiply, operands: &Operands, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let first = operands.c as usize;
        let lists = [0, 1, 2].map(|list| self.code().lists[first + list]);
        let rows = usize::from(multiply.rows);
        let a = self.fragment(&lists[0], multiply.a, rows, usize::from(multiply.depth));
        let b = self.fragment(&lists[1], multiply.b, 8, usize::from(multiply.depth));
        let mut result = self.accumulator(&lists[2], multiply.c, rows);
        for (index, value) in result.iter_mut().enumerate() {
            *value = product(multiply, &a[index / 8], &b[index % 8], *value);
        }
        self.write_accumulator(&lists[2][4..], multiply.d, &result, mask);
        Ok(Flow::Next)
    }

    /// A or the transposed B, row by row: registers hold neighbours along the depth, lanes of four
    /// share a row, and of 16 rows the upper and lower eight alternate.
    fn fragment(
        &self,
        list: &[Slot; 8],
        matrix: Matrix,
        rows: usize,
        depth: usize,
    ) -> Vec<Vec<u64>> {
        let (count, bits) = (matrix.elements(), matrix.bits());
        let groups = rows / 8;
        let registers = groups * depth / (4 * count);
        let mut elements = vec![vec![0; depth]; rows];
        for (register, &slot) in list.iter().enumerate().take(registers) {
            let words = self.read_register(slot, matrix == Matrix::F64);
            for lane in lanes_of(u32::MAX) {
                let row = lane / 4 + 8 * (register % groups);
                let start = count * (lane % 4) + register / groups * 4 * count;
                for index in 0..count {
                    let element = words[lane] >> (index * bits) & (u64::MAX >> (64 - bits));
                    elements[row][start + index] = element;
                }
            }
        }
        elements
    }

    /// C, row by row, eight columns each.
    fn accumulator(&self, list: &[Slot], matrix: Matrix, rows: usize) -> Vec<u64> {
        let mut elements = vec![0; 8 * rows];
        for (register, lane, part, index) in places(matrix, rows) {
            let words = self.read_register(list[register], matrix == Matrix::F64);
            elements[index] = if matrix == Matrix::F16 {
                words[lane] >> (16 * part) & 0xffff
            } else {
                words[lane]
            };
        }
        elements
    }

    fn write_accumulator(&mut self, list: &[Slot], matrix: Matrix, from: &[u64], mask: u32) {
        let mut registers = [[0_u64; LANES]; 4];
        let mut used = 0;
        for (register, lane, part, index) in places(matrix, from.len() / 8) {
            registers[register][lane] |= from[index] << (16 * part);
            used = used.max(register + 1);
        }
        for (words, &slot) in registers.iter().zip(list).take(used) {
            self.write_register(slot, matrix == Matrix::F64, words, mask);
        }
    }
}

/// Register, lane, half of the register and index of each element of an accumulator.
fn places(matrix: Matrix, rows: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let halves = matrix == Matrix::F16;
    (0..rows / 8 * 2 * LANES).map(move |number| {
        let (pair, lane) = (number / LANES, number % LANES);
        let (row, column) = (lane / 4 + pair / 2 * 8, 2 * (lane % 4) + pair % 2);
        let (register, part) = if halves { (pair / 2, pair % 2) } else { (pair, 0) };
        (register, lane, part, 8 * row + column)
    })
}

/// One element of D.
fn product(multiply: Multiply, a: &[u64], b: &[u64], c: u64) -> u64 {
    let pairs = a.iter().copied().zip(b.iter().copied());
    match multiply.a {
        Matrix::F64 => dot_f64(pairs, c, multiply.rounding),
        Matrix::B1 => {
            let both = |(a, b)| if multiply.conjunction { a & b } else { a ^ b };
            u64::from((c as u32).wrapping_add(pairs.map(both).sum::<u64>() as u32))
        }
        Matrix::S8 | Matrix::U8 | Matrix::S4 | Matrix::U4 => {
            let sum: i64 = pairs
                .map(|(x, y)| multiply.a.integer(x) * multiply.b.integer(y))
                .chain([i64::from(c as u32 as i32)])
                .sum();
            let limits = (i64::from(i32::MIN), i64::from(i32::MAX));
            let sum = if multiply.saturates { sum.clamp(limits.0, limits.1) } else { sum };
            u64::from(sum as u32)
        }
        _ => {
            let pairs: Vec<(Element, Element)> =
                pairs.map(|(x, y)| (multiply.a.float(x), multiply.b.float(y))).collect();
            if multiply.d == Matrix::F16 {
                u64::from(dot_f16(&pairs, c as u16))
            } else {
                u64::from(dot_f32(&pairs, c as u32))
            }
        }
    }
}
