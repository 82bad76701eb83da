//! Fragments: the parts of a matrix that the registers of a warp hold (ISA 9.7.14.5).
//!
//! Of A, and of B column by column, registers hold neighbours along the depth, lanes of four share
//! a row, and of 16 rows the upper and lower eight alternate.

use super::engine::Engine;
use super::frame::{LANES, Slot};
use crate::arithmetic::tensor::Format;
use crate::observer::Observer;

/// What a matrix of `mma` holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Matrix {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    /// In the low six bits of a byte.
    E3m2,
    /// In the low six bits of a byte.
    E2m3,
    /// In the middle four bits of a byte.
    E2m1Byte,
    E2m1,
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
    /// Bits that an element takes in a register.
    pub(crate) fn bits(self) -> usize {
        match self {
            Matrix::F64 => 64,
            Matrix::F32 | Matrix::Tf32 | Matrix::S32 => 32,
            Matrix::F16 | Matrix::Bf16 => 16,
            Matrix::S4 | Matrix::U4 | Matrix::E2m1 => 4,
            Matrix::B1 => 1,
            _ => 8,
        }
    }

    /// Bits of the registers that hold its fragments.
    pub(crate) fn register_bits(self) -> u32 {
        if self == Matrix::F64 { 64 } else { 32 }
    }

    /// The format of its elements, where they are short floats.
    pub(crate) fn format(self) -> Option<Format> {
        Some(match self {
            Matrix::F16 => Format::F16,
            Matrix::Bf16 => Format::Bf16,
            Matrix::Tf32 => Format::Tf32,
            Matrix::E4m3 => Format::E4m3,
            Matrix::E5m2 => Format::E5m2,
            Matrix::E3m2 => Format::E3m2,
            Matrix::E2m3 => Format::E2m3,
            Matrix::E2m1Byte | Matrix::E2m1 => Format::E2m1,
            _ => return None,
        })
    }

    /// The element in the bits of its place in a register.
    pub(crate) fn element(self, bits: u32) -> u32 {
        match self {
            Matrix::S8 => bits as u8 as i8 as u32,
            Matrix::S4 => ((bits << 28) as i32 >> 28) as u32,
            Matrix::E2m1Byte => bits >> 2 & 15,
            Matrix::E3m2 | Matrix::E2m3 => bits & 63,
            _ => bits,
        }
    }
}

/// Elements row by row; most are on the stack.
pub(crate) type Lines = [u32; 1024];

impl<O: Observer> Engine<'_, O> {
    /// The lanes of a register of 32 bits.
    #[inline(always)]
    pub(crate) fn lanes32(&self, slot: Slot) -> [u32; LANES] {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        unsafe { self.frame.lanes32(slot) }
    }

    /// A or the transposed B, row by row. At most 1,024 elements: 16 rows of 64, or 8 of 128.
    pub(crate) fn fragment(
        &self,
        list: &[Slot; 8],
        matrix: Matrix,
        rows: usize,
        depth: usize,
    ) -> Lines {
        let mut lines = [0; 1024];
        self.fragment_to(&mut lines, list, matrix, rows, depth);
        lines
    }

    /// As [`Engine::fragment`], into zeros, as many as there are elements at least.
    pub(crate) fn fragment_to(
        &self,
        lines: &mut [u32],
        list: &[Slot; 8],
        matrix: Matrix,
        rows: usize,
        depth: usize,
    ) {
        // Single bits stay together, 32 of them an element.
        let (bits, depth) =
            if matrix == Matrix::B1 { (32, depth / 32) } else { (matrix.bits(), depth) };
        match bits {
            4 => self.spread::<4>(list, matrix, rows, depth, lines),
            8 => self.spread::<8>(list, matrix, rows, depth, lines),
            16 => self.spread::<16>(list, matrix, rows, depth, lines),
            _ => self.spread::<32>(list, matrix, rows, depth, lines),
        }
    }

    fn spread<const BITS: usize>(
        &self,
        list: &[Slot; 8],
        matrix: Matrix,
        rows: usize,
        depth: usize,
        lines: &mut [u32],
    ) {
        let (count, groups) = (32 / BITS, rows / 8);
        let registers = groups * depth / (4 * count);
        for (register, &slot) in list.iter().enumerate().take(registers) {
            let words = self.lanes32(slot);
            let first = 8 * (register % groups) * depth + register / groups * 4 * count;
            for (row, words) in words.chunks_exact(4).enumerate() {
                let line = &mut lines[first + row * depth..][..4 * count];
                for (place, &word) in line.chunks_exact_mut(count).zip(words) {
                    for (index, element) in place.iter_mut().enumerate() {
                        let bits = word >> (index * BITS) & (u32::MAX >> (32 - BITS));
                        *element = matrix.element(bits);
                    }
                }
            }
        }
    }

    /// C, row by row, eight columns each.
    pub(crate) fn accumulator(&self, list: &[Slot], matrix: Matrix, rows: usize) -> [u32; 128] {
        let mut elements = [0; 128];
        let halves = matrix == Matrix::F16;
        for group in 0..rows / 8 {
            let [low, high] = if halves {
                let words = self.lanes32(list[group]);
                [words.map(|word| word & 0xffff), words.map(|word| word >> 16)]
            } else {
                [0, 1].map(|part| self.lanes32(list[2 * group + part]))
            };
            let pairs = elements[64 * group..].chunks_exact_mut(2);
            for (pair, (low, high)) in pairs.zip(low.into_iter().zip(high)) {
                pair.copy_from_slice(&[low, high]);
            }
        }
        elements
    }

    /// D, as [`Engine::accumulator`] has C.
    pub(crate) fn write_accumulator(
        &mut self,
        list: &[Slot],
        matrix: Matrix,
        rows: usize,
        from: &[u32; 128],
    ) {
        for group in 0..rows / 8 {
            let mut parts = [[0; LANES]; 2];
            for (lane, pair) in from[64 * group..].chunks_exact(2).enumerate().take(LANES) {
                (parts[0][lane], parts[1][lane]) = (pair[0], pair[1]);
            }
            if matrix == Matrix::F16 {
                let words = std::array::from_fn(|lane| parts[0][lane] | parts[1][lane] << 16);
                self.store_lanes32(list[group], words);
            } else {
                self.store_lanes32(list[2 * group], parts[0]);
                self.store_lanes32(list[2 * group + 1], parts[1]);
            }
        }
    }

    /// Writes all lanes of a register of 32 bits.
    pub(crate) fn store_lanes32(&mut self, slot: Slot, words: [u32; LANES]) {
        // SAFETY: slots of lowered instructions are inside the frame, see `Frame::row`.
        unsafe { self.frame.store32(slot, words, u32::MAX) };
    }
}
