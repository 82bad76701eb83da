//! Small random integers as matrices of tensor cores: how they lie in fragments and in shared
//! memory, and what their products must come to. Every sum on the way is an integer that the
//! accumulators hold exactly, so that the host's integers are the one right answer.

use assay_num::random::SplitMix64;
use assay_num::{Format, Overflow, Rounding};

/// Bytes of a row of A in one instruction, whatever the type; of a sparse A, of what it keeps.
pub(crate) const ROW_BYTES: usize = 32;

/// What A and B are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    /// IEEE double, in registers of two words.
    F64,
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// tf32, in 32 bits.
    Tf32,
    /// Signed bytes.
    S8,
    /// OFP8 e4m3.
    E4m3,
}

impl Element {
    /// Those of up to 32 bits, which come dense and 2:4 sparse.
    pub(crate) const NARROW: [Element; 5] =
        [Element::F16, Element::Bf16, Element::Tf32, Element::S8, Element::E4m3];

    /// As kernels' names spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Element::F64 => "f64",
            Element::F16 => "f16",
            Element::Bf16 => "bf16",
            Element::Tf32 => "tf32",
            Element::S8 => "s8",
            Element::E4m3 => "e4m3",
        }
    }

    fn format(self) -> Format {
        match self {
            Element::F64 => Format::F64,
            Element::F16 => Format::F16,
            Element::Bf16 => Format::Bf16,
            Element::Tf32 => Format::Tf32,
            Element::S8 => Format::I8,
            Element::E4m3 => Format::E4m3,
        }
    }

    /// Bytes of one element.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::F64 => 8,
            Element::F16 | Element::Bf16 => 2,
            Element::Tf32 => 4,
            Element::S8 | Element::E4m3 => 1,
        }
    }

    /// Elements of a row of A in one instruction.
    pub(crate) fn depth(self) -> usize {
        if self == Element::F64 { 16 } else { ROW_BYTES / self.bytes() }
    }

    /// Words of 32 bits of one register.
    pub(crate) fn words(self) -> usize {
        self.bytes().div_ceil(4)
    }

    /// Elements of one register.
    fn per_register(self) -> usize {
        (4 / self.bytes()).max(1)
    }

    /// The largest magnitude of an input: sums of products stay exact in the accumulators, which
    /// for e4m3 keep no more than 13 bits of a sum on `sm_90`.
    fn magnitude(self) -> i64 {
        match self {
            Element::F64 => (1 << 20) - 1,
            Element::F16 | Element::Tf32 => 511,
            Element::Bf16 => 255,
            Element::S8 => 127,
            Element::E4m3 => 7,
        }
    }

    /// What an accumulator's magnitude must stay below on the way.
    pub(crate) fn accumulator_limit(self) -> i64 {
        match self {
            Element::S8 => i64::MAX,
            Element::F64 => 1 << 53,
            Element::E4m3 => 1 << 13,
            _ => 1 << 24,
        }
    }

    /// A random input, never zero.
    fn random(self, random: &mut SplitMix64) -> i32 {
        let magnitude = random.below(self.magnitude() as u64) as i32 + 1;
        if random.next_u64() & 1 == 0 { magnitude } else { -magnitude }
    }

    /// The element's bits, little endian.
    fn encode(self, value: i32) -> [u8; 8] {
        let bits =
            self.format().encode(f64::from(value), Rounding::NearestEven, Overflow::Infinity);
        bits.to_le_bytes()
    }

    /// An accumulator's register as the number in it.
    pub(crate) fn accumulated(self, register: u64) -> f64 {
        match self {
            Element::F64 => f64::from_bits(register),
            Element::S8 => f64::from(register as i32),
            _ => f64::from(f32::from_bits(register as u32)),
        }
    }

    /// An exact sum as an accumulator's register. Integers wrap.
    pub(crate) fn register(self, sum: i64) -> u64 {
        match self {
            Element::F64 => (sum as f64).to_bits(),
            Element::S8 => u64::from(sum as u32),
            _ => u64::from((sum as f32).to_bits()),
        }
    }
}

/// Which elements of a row of B those of A meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Density {
    /// All.
    Dense,
    /// Half of them: the second and the fourth of four, of tf32 the second of two.
    Sparse,
}

impl Density {
    /// How many elements of B there are for one of A.
    pub(crate) fn times(self) -> usize {
        match self {
            Density::Dense => 1,
            Density::Sparse => 2,
        }
    }

    /// The place in B's row of the element that A's element meets.
    fn place(self, depth: usize) -> usize {
        match self {
            Density::Dense => depth,
            Density::Sparse => 2 * depth + 1,
        }
    }
}

/// Rows of integers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Matrix {
    pub element: Element,
    pub rows: usize,
    pub depth: usize,
    values: Vec<i32>,
}

impl Matrix {
    /// Random integers.
    pub(crate) fn random(
        element: Element,
        rows: usize,
        depth: usize,
        random: &mut SplitMix64,
    ) -> Matrix {
        let values = (0..rows * depth).map(|_| element.random(random)).collect();
        Matrix { element, rows, depth, values }
    }

    /// A matrix that leaves only a little of this one when it is added: of every row one element
    /// more or less by one. Integers, whose accumulators wrap, get another random matrix.
    pub(crate) fn counterpart(&self, random: &mut SplitMix64) -> Matrix {
        if self.element == Element::S8 {
            return Matrix::random(self.element, self.rows, self.depth, random);
        }
        let mut values: Vec<i32> = self.values.iter().map(|value| -value).collect();
        for row in values.chunks_exact_mut(self.depth) {
            let index = random.below(self.depth as u64) as usize;
            row[index] += if random.next_u64() & 1 == 0 { 1 } else { -1 };
        }
        Matrix { values, ..self.clone() }
    }

    pub(crate) fn at(&self, row: usize, depth: usize) -> i32 {
        self.values[row * self.depth + depth]
    }

    /// The product of a row of this matrix, A, with a row of B.
    pub(crate) fn dot(&self, row: usize, b: &Matrix, column: usize, density: Density) -> i64 {
        let term = |depth: usize| {
            let other = b.at(column, density.place(depth));
            i64::from(self.at(row, depth)) * i64::from(other)
        };
        (0..self.depth).map(term).sum()
    }

    /// The bytes of an element.
    pub(crate) fn bytes_at(&self, row: usize, depth: usize) -> ([u8; 8], usize) {
        (self.element.encode(self.at(row, depth)), self.element.bytes())
    }

    /// One register of a fragment: the elements of a row from `depth` on, as many as fit.
    fn register(&self, row: usize, depth: usize) -> u64 {
        let mut register = [0; 8];
        for index in 0..self.element.per_register() {
            let (bytes, size) = self.bytes_at(row, depth + index);
            register[index * size..][..size].copy_from_slice(&bytes[..size]);
        }
        u64::from_le_bytes(register)
    }

    /// A fragment of so many registers: word by word of each register, lane by lane.
    fn fragment(
        &self,
        registers: usize,
        place: impl Fn(usize, usize) -> (usize, usize),
    ) -> Vec<u32> {
        let mut words = Vec::new();
        for r in 0..registers {
            for word in 0..self.element.words() {
                words.extend((0..32).map(|lane| {
                    let (row, depth) = place(r, lane);
                    (self.register(row, depth) >> (32 * word)) as u32
                }));
            }
        }
        words
    }

    /// Fragment of A of the 16 rows from `first`, register by register, lane by lane.
    pub(crate) fn fragment_a(&self, first: usize) -> Vec<u32> {
        let per = self.element.per_register();
        self.fragment(self.depth / (2 * per), |r, lane| {
            (first + lane / 4 + r % 2 * 8, (lane % 4 + r / 2 * 4) * per)
        })
    }

    /// Fragment of B of all 8 rows, register by register, lane by lane.
    pub(crate) fn fragment_b(&self) -> Vec<u32> {
        let per = self.element.per_register();
        self.fragment(self.depth / (4 * per), |r, lane| (lane / 4, (lane % 4 + 4 * r) * per))
    }
}

/// The row and column of a lane's register of an accumulator of 16 x 8.
pub(crate) fn accumulator_place(lane: usize, register: usize) -> (usize, usize) {
    (lane / 4 + register / 2 * 8, lane % 4 * 2 + register % 2)
}

/// What a kernel takes its registers into, one after another.
pub(crate) fn checksum(sum: u32, registers: &[u32]) -> u32 {
    registers.iter().fold(sum, |sum, register| sum.wrapping_mul(31).wrapping_add(*register))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Element; 6] =
        [Element::F64, Element::F16, Element::Bf16, Element::Tf32, Element::S8, Element::E4m3];

    #[test]
    fn a_counterpart_cancels_all_but_one_element_of_a_row() {
        let mut random = SplitMix64::new(3);
        for element in ALL.into_iter().filter(|e| *e != Element::S8) {
            let a = Matrix::random(element, 16, element.depth(), &mut random);
            let other = a.counterpart(&mut random);
            for row in 0..16 {
                let left = (0..a.depth).map(|k| (a.at(row, k) + other.at(row, k)).abs());
                assert_eq!(left.sum::<i32>(), 1, "{element:?}");
            }
        }
    }

    #[test]
    fn every_input_is_exact_in_its_format() {
        for element in ALL {
            let edge = element.magnitude() as i32 + 1;
            let format = element.format();
            for value in [-edge, -edge + 1, -1, 1, edge - 1, edge] {
                if element == Element::S8 && value == edge {
                    continue;
                }
                let bits = u64::from_le_bytes(element.encode(value));
                assert_eq!(format.decode(bits), f64::from(value), "{element:?}");
            }
        }
    }
}
