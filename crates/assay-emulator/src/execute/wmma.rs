//! `wmma` (ISA 9.7.14.4): tiles that a warp loads, multiplies and stores.
//!
//! Which lane holds which element is nobody's business but the hardware's. Here it is as in `mma`,
//! and under a seed the lanes are permuted, so that a kernel that counts on a layout shows.

use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step, Trouble};
use super::fragment::Matrix;
use super::frame::{LANES, Operands, Slot};
use crate::arithmetic::half::{f16_to_f32, f32_to_f16};
use crate::arithmetic::soft::Rounding;
use crate::arithmetic::tensor::{
    Elements, Path, multiply_add, multiply_add_bits, multiply_add_integers,
};
use crate::arithmetic::tensor_plain::dot_f64;
use crate::fault::FaultKind;
use crate::observer::Observer;

/// The most bytes that are moved at once, and the alignment asked for where fragments are as large:
/// what the ISA and the CUDA guide both ask for.
const RUN: usize = 16;

/// Products of tf32 that are summed at once.
const TF32_STEP: usize = 4;

/// How the registers of a warp hold a matrix: rows of A, C and D, columns of B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fragment {
    pub(crate) matrix: Matrix,
    pub(crate) lines: u8,
    /// Elements of a line.
    pub(crate) length: u8,
    /// C or D, whose lines run over the columns of the product.
    pub(crate) accumulator: bool,
}

impl Fragment {
    /// Bits of what is moved as one: single bits go in words.
    fn bits(self) -> usize {
        if self.matrix == Matrix::B1 { 32 } else { self.matrix.bits() }
    }

    /// Elements of a line, or words of one of single bits.
    fn units(self) -> usize {
        usize::from(self.length) * self.matrix.bits() / self.bits()
    }

    fn wide(self) -> bool {
        self.matrix == Matrix::F64
    }

    /// Registers that hold it, each element once.
    fn registers(self) -> usize {
        let per_register = self.matrix.register_bits() as usize / self.bits();
        usize::from(self.lines) * self.units() / (per_register * LANES)
    }

    /// Register, lane and lowest bit of an element.
    fn place(self, line: usize, index: usize) -> (usize, usize, usize) {
        let (upper, groups) = (line / 8, usize::from(self.lines) / 8);
        let count = self.matrix.register_bits() as usize / self.bits();
        if self.accumulator {
            let pair = index / 8 * groups + upper;
            let lane = line % 8 * 4 + index % 8 / 2;
            return if count == 2 {
                (pair, lane, 16 * (index % 2))
            } else {
                (2 * pair + index % 2, lane, 0)
            };
        }
        let register = index / (4 * count) * groups + upper;
        (register, line % 8 * 4 + index / count % 4, index % count * self.bits())
    }
}

/// `wmma.load` or `wmma.store`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TileAccess {
    pub(crate) fragment: Fragment,
    /// Memory runs across the lines: column-major but for B, where it is row-major.
    pub(crate) across: bool,
    pub(crate) space: SpaceKind,
    pub(crate) wide_address: bool,
    /// The stride is an operand.
    pub(crate) strided: bool,
}

/// `wmma.mma` of `rows` by `depth` times `depth` by `columns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TileMultiply {
    pub(crate) rows: u8,
    pub(crate) columns: u8,
    pub(crate) depth: u8,
    /// Of A and B.
    pub(crate) input: Matrix,
    pub(crate) c: Matrix,
    pub(crate) d: Matrix,
    /// `.satfinite`
    pub(crate) saturates: bool,
    /// `.and` of single bits, rather than `.xor`
    pub(crate) conjunction: bool,
    /// The rounding of f64.
    pub(crate) rounding: Rounding,
}

impl TileMultiply {
    /// A, B, C and D.
    fn fragments(self) -> [Fragment; 4] {
        let input =
            |lines| Fragment { matrix: self.input, lines, length: self.depth, accumulator: false };
        let output =
            |matrix| Fragment { matrix, lines: self.rows, length: self.columns, accumulator: true };
        [input(self.rows), input(self.columns), output(self.c), output(self.d)]
    }
}

impl<O: Observer> Engine<'_, O> {
    /// `wmma.load`: registers of list `c` from `[a + immediate]`, stride `b`.
    pub(crate) fn load_tile(&mut self, tile: TileAccess, operands: &Operands, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let mut elements = vec![0; usize::from(tile.fragment.lines) * tile.fragment.units()];
        for run in self.runs(tile, operands, false)? {
            let bytes = self.lane_bytes(tile.space, 0, run.address, run.bytes, mask)?;
            run.each(tile, |place, byte, shift| {
                let mut word = [0; 8];
                let size = tile.fragment.bits().div_ceil(8);
                word[..size].copy_from_slice(&bytes[byte..byte + size]);
                let bits = u64::from_le_bytes(word) >> shift;
                elements[place] = bits & (u64::MAX >> (64 - tile.fragment.bits()));
            });
        }
        let list = self.code().lists[operands.c as usize];
        self.write_tile(tile.fragment, &list, &elements);
        Ok(Flow::Next)
    }

    /// `wmma.store`: registers of list `c` to `[a + immediate]`, stride `b`.
    pub(crate) fn store_tile(&mut self, tile: TileAccess, operands: &Operands, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let list = self.code().lists[operands.c as usize];
        let elements = self.tile_elements(tile.fragment, &list);
        let size = tile.fragment.bits() / 8;
        for run in self.runs(tile, operands, true)? {
            let bytes = self.lane_bytes_mut(tile.space, 0, run.address, run.bytes)?;
            run.each(tile, |place, byte, _| {
                bytes[byte..byte + size].copy_from_slice(&elements[place].to_le_bytes()[..size]);
            });
        }
        Ok(Flow::Next)
    }

    /// `wmma.mma`: lists A, B, C and D from `c` on.
    pub(crate) fn multiply_tiles(
        &mut self,
        multiply: TileMultiply,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let first = operands.c as usize;
        let lists = [0, 1, 2, 3].map(|list| self.code().lists[first + list]);
        let [a, b, c, d] = multiply.fragments();
        let left = self.tile_elements(a, &lists[0]);
        let right = self.tile_elements(b, &lists[1]);
        let sums = self.tile_elements(c, &lists[2]);
        let depth = a.units();
        let result = if multiply.input == Matrix::F64 {
            doubles(multiply, &left, &right, depth, sums)
        } else {
            let words = |values: Vec<u64>| -> Vec<u32> {
                values.into_iter().map(|word| multiply.input.element(word as u32)).collect()
            };
            let sums = sums.into_iter().map(|bits| converted(multiply, bits as u32)).collect();
            self.narrow_products(multiply, &words(left), &words(right), depth, sums)
        };
        self.write_tile(d, &lists[3], &result);
        Ok(Flow::Next)
    }

    fn narrow_products(
        &self,
        multiply: TileMultiply,
        a: &[u32],
        b: &[u32],
        depth: usize,
        mut sums: Vec<u32>,
    ) -> Vec<u64> {
        if let Some(format) = multiply.input.format() {
            // An H200 sums halves beside an f32, and tf32 in two steps.
            let half = multiply.c == Matrix::F16 && multiply.d == Matrix::F16;
            let rule = self.launch.tensor_model.rule(Path::Mma, format, half);
            let step = if multiply.input == Matrix::Tf32 { TF32_STEP } else { depth };
            for start in (0..depth).step_by(step) {
                let part = |from: &[u32]| -> Vec<u32> {
                    from.chunks_exact(depth)
                        .flat_map(|line| &line[start..start + step])
                        .copied()
                        .collect()
                };
                let [a, b] = [part(a), part(b)];
                let [a, b] = [&a, &b].map(|bits| Elements { format, bits });
                multiply_add(&rule, a, b, step, &mut sums);
            }
            if multiply.d == Matrix::F16 && !half {
                return sums.iter().map(|&sum| f32_to_f16(f32::from_bits(sum)).into()).collect();
            }
        } else if multiply.input == Matrix::B1 {
            multiply_add_bits(a, b, depth, &mut sums, multiply.conjunction);
        } else {
            multiply_add_integers(a, b, depth, &mut sums, multiply.saturates);
        }
        sums.into_iter().map(u64::from).collect()
    }

    /// The elements of a fragment, line by line.
    fn tile_elements(&self, fragment: Fragment, list: &[Slot; 8]) -> Vec<u64> {
        let twist = self.chooser.twist();
        let registers: Vec<[u64; LANES]> = list[..fragment.registers()]
            .iter()
            .map(|&slot| self.read_register(slot, fragment.wide()))
            .collect();
        let units = fragment.units();
        let mask = u64::MAX >> (64 - fragment.bits());
        let places = (0..usize::from(fragment.lines) * units).map(|number| {
            let (register, lane, shift) = fragment.place(number / units, number % units);
            registers[register][lane ^ twist] >> shift & mask
        });
        places.collect()
    }

    /// Writes a fragment. Registers past those that it fills hold its elements once more.
    fn write_tile(&mut self, fragment: Fragment, list: &[Slot; 8], elements: &[u64]) {
        let twist = self.chooser.twist();
        let (units, count) = (fragment.units(), fragment.registers());
        let mut registers = vec![[0; LANES]; count];
        for (number, element) in elements.iter().enumerate() {
            let (register, lane, shift) = fragment.place(number / units, number % units);
            registers[register][lane ^ twist] |= element << shift;
        }
        let doubled = fragment.matrix == Matrix::F16 && !fragment.accumulator;
        for number in 0..if doubled { 8 } else { count } {
            self.write_register(
                list[number],
                fragment.wide(),
                &registers[number % count],
                u32::MAX,
            );
        }
    }

    /// The runs of bytes that a tile has in memory.
    fn runs(&mut self, tile: TileAccess, operands: &Operands, writes: bool) -> Step<Vec<Run>> {
        let addresses = self.addresses(operands.a, tile.wide_address, operands.immediate);
        let strides = self.read_register(operands.b, false);
        let same = |lanes: &[u64; LANES]| lanes.iter().all(|&lane| lane == lanes[0]);
        if !same(&addresses) || tile.strided && !same(&strides) {
            let what = "lanes of a warp give wmma different addresses or strides".to_owned();
            return Err(Trouble::new(FaultKind::WarpMisuse { what }, u32::MAX));
        }
        let fragment = tile.fragment;
        let (lines, units) = (usize::from(fragment.lines), fragment.units());
        let (outer, inner) = if tile.across { (units, lines) } else { (lines, units) };
        let elements = if tile.across { lines } else { usize::from(fragment.length) };
        let stride = if tile.strided { strides[0] } else { elements as u64 };
        let stride = stride * fragment.matrix.bits() as u64 / 8;
        let line = inner * fragment.bits() / 8;
        let step =
            line.min(RUN).min(fragment.registers() * fragment.matrix.register_bits() as usize / 8);
        let mut runs = Vec::new();
        for outer in 0..outer {
            for start in (0..line).step_by(step) {
                let address = addresses[0]
                    .wrapping_add(stride.wrapping_mul(outer as u64))
                    .wrapping_add(start as u64);
                let first = start * 8 / fragment.bits();
                runs.push(Run { address, bytes: step as u64, outer, first });
                self.observe(tile.space, &[address; LANES], step as u32, writes, 1);
            }
        }
        Ok(runs)
    }
}

/// Bytes of a tile that lie together.
struct Run {
    address: u64,
    bytes: u64,
    /// The line, or where memory runs across, the place in all lines.
    outer: usize,
    /// The first element along it.
    first: usize,
}

impl Run {
    /// Calls back with the number of each element, its byte in the run and its lowest bit there.
    fn each(&self, tile: TileAccess, mut see: impl FnMut(usize, usize, usize)) {
        let bits = tile.fragment.bits();
        for index in 0..self.bytes as usize * 8 / bits {
            let (line, unit) = if tile.across {
                (self.first + index, self.outer)
            } else {
                (self.outer, self.first + index)
            };
            see(line * tile.fragment.units() + unit, index * bits / 8, index * bits % 8);
        }
    }
}

/// An element of C in the type that is summed in.
fn converted(multiply: TileMultiply, bits: u32) -> u32 {
    match (multiply.c, multiply.d) {
        (Matrix::F16, Matrix::F32) => f16_to_f32(bits as u16).to_bits(),
        _ => bits,
    }
}

/// Fused multiply-adds along the depth.
fn doubles(
    multiply: TileMultiply,
    a: &[u64],
    b: &[u64],
    depth: usize,
    mut sums: Vec<u64>,
) -> Vec<u64> {
    let columns = usize::from(multiply.columns);
    for (index, sum) in sums.iter_mut().enumerate() {
        let a = &a[index / columns * depth..][..depth];
        let b = &b[index % columns * depth..][..depth];
        let pairs = a.iter().copied().zip(b.iter().copied());
        *sum = dot_f64(pairs, *sum, multiply.rounding);
    }
    sums
}
