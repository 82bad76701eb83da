//! `mma`: products of small matrices, dense, sparse and scaled (ISA 9.7.14.5.14, 9.7.14.6.3).
//!
//! How floats are summed is the business of [`crate::arithmetic::tensor`].

use super::engine::{Engine, Flow, Step, Trouble};
use super::fragment::{Lines, Matrix};
use super::frame::{LANES, Operands, Slot};
use crate::arithmetic::half::f16_to_f32;
use crate::arithmetic::soft::Rounding;
use crate::arithmetic::tensor::{Elements, Format, Path, Rule, TensorModel, multiply_add};
use crate::arithmetic::tensor::{multiply_add_bits, multiply_add_integers};
use crate::arithmetic::tensor_plain::dot_f64;
use crate::arithmetic::tensor_scaled::{Scale, scaled};
use crate::fault::FaultKind;
use crate::observer::Observer;

/// A `mma` of `rows` by `depth` times `depth` by 8.
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
    pub(crate) variant: Variant,
}

/// What kinds of `mma` there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    Dense,
    /// Four products of 8 by 4 by 8 at once: `m8n8k4` of f16.
    Quad {
        a_by_columns: bool,
        b_by_rows: bool,
    },
    /// Half of A is zero, and metadata say which; lanes that have it are picked by the selector.
    Sparse {
        selector: u8,
    },
    /// Elements come with scales, so many to a row of A and a column of B.
    Scaled {
        vectors: u8,
        scale: Scale,
    },
}

impl Multiply {
    /// How its products are summed by a chip.
    fn rule(&self, model: TensorModel) -> Option<Rule> {
        let quad = matches!(self.variant, Variant::Quad { .. });
        let path = if quad { Path::Quad } else { Path::Mma };
        Some(model.rule(path, self.a.format()?, self.d == Matrix::F16))
    }
}

impl<O: Observer> Engine<'_, O> {
    /// `mma`
    pub(crate) fn multiply(&mut self, multiply: Multiply, operands: &Operands, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let first = operands.c as usize;
        let lists: [[Slot; 8]; 5] = std::array::from_fn(|list| self.code().lists[first + list]);
        match (multiply.variant, multiply.a) {
            (_, Matrix::F64) => self.multiply_doubles(multiply, &lists),
            (Variant::Quad { .. }, _) => self.multiply_quads(multiply, &lists),
            (Variant::Sparse { selector }, _) => {
                self.multiply_sparse(multiply, usize::from(selector), &lists)?;
            }
            (Variant::Scaled { vectors, scale }, _) => {
                self.multiply_scaled(multiply, usize::from(vectors), scale, &lists);
            }
            (Variant::Dense, _) => self.multiply_dense(multiply, &lists),
        }
        Ok(Flow::Next)
    }

    fn multiply_dense(&mut self, multiply: Multiply, lists: &[[Slot; 8]; 5]) {
        let (rows, depth) = (usize::from(multiply.rows), usize::from(multiply.depth));
        if rows * depth <= 256 && multiply.a != Matrix::B1 {
            // The most common shapes need no long lines.
            let (mut a, mut b) = ([0; 256], [0; 256]);
            self.fragment_to(&mut a, &lists[0], multiply.a, rows, depth);
            self.fragment_to(&mut b, &lists[1], multiply.b, 8, depth);
            return self.multiply_lines(multiply, lists, &a[..rows * depth], &b[..8 * depth]);
        }
        let a = self.fragment(&lists[0], multiply.a, rows, depth);
        let b = self.fragment(&lists[1], multiply.b, 8, depth);
        let depth = if multiply.a == Matrix::B1 { depth / 32 } else { depth };
        self.multiply_lines(multiply, lists, &a[..rows * depth], &b[..8 * depth]);
    }

    fn multiply_lines(&mut self, multiply: Multiply, lists: &[[Slot; 8]; 5], a: &[u32], b: &[u32]) {
        let (rows, depth) = (usize::from(multiply.rows), b.len() / 8);
        let mut c = self.accumulator(&lists[2], multiply.c, rows);
        let rule = multiply.rule(self.launch.tensor_model);
        products(multiply, rule, a, b, depth, &mut c[..8 * rows]);
        self.write_accumulator(&lists[3], multiply.d, rows, &c);
    }

    /// Elements of A that are zero are not multiplied, whatever B has there.
    fn multiply_sparse(
        &mut self,
        multiply: Multiply,
        selector: usize,
        lists: &[[Slot; 8]; 5],
    ) -> Step<()> {
        let (rows, depth) = (usize::from(multiply.rows), usize::from(multiply.depth));
        let kept = depth / 2;
        let a = self.fragment(&lists[0], multiply.a, rows, kept);
        let b = self.fragment(&lists[1], multiply.b, 8, depth);
        let mut c = self.accumulator(&lists[2], multiply.c, rows);
        let metadata = self.lanes32(lists[4][0]);
        let rule = multiply.rule(self.launch.tensor_model);
        let mut beside: Lines = [0; 1024];
        for row in 0..rows {
            let places = places(multiply.a, row, kept, selector, &metadata);
            let places = places.map_err(|what| Trouble::new(FaultKind::WarpMisuse { what }, 1))?;
            for (line, b) in beside.chunks_exact_mut(kept).zip(b.chunks_exact(depth)).take(8) {
                for (element, &place) in line.iter_mut().zip(&places) {
                    *element = b[usize::from(place)];
                }
            }
            let a = &a[row * kept..][..kept];
            products(multiply, rule, a, &beside[..8 * kept], kept, &mut c[8 * row..][..8]);
        }
        self.write_accumulator(&lists[3], multiply.d, rows, &c);
        Ok(())
    }

    /// `mma` with `.block_scale` (ISA 9.7.14.3). Model only, unverified: no chip here has it.
    fn multiply_scaled(
        &mut self,
        multiply: Multiply,
        vectors: usize,
        scale: Scale,
        lists: &[[Slot; 8]; 5],
    ) {
        let (rows, depth) = (usize::from(multiply.rows), usize::from(multiply.depth));
        let a = self.fragment(&lists[0], multiply.a, rows, depth);
        let b = self.fragment(&lists[1], multiply.b, 8, depth);
        let mut c = self.accumulator(&lists[2], multiply.c, rows);
        let [data_a, byte_a, thread_a, data_b, byte_b, thread_b] =
            std::array::from_fn(|index| self.lanes32(lists[4][index]));
        let (Some(format_a), Some(format_b)) = (multiply.a.format(), multiply.b.format()) else {
            return;
        };
        let exact = self.launch.tensor_model == TensorModel::Exact;
        for (index, c) in c.iter_mut().enumerate().take(8 * rows) {
            let (row, column) = (index / 8, index % 8);
            // Of a pair of lanes the first has the scales of the upper rows.
            let lane_a = 4 * (row % 8) + 2 * (thread_a[0] as usize & 1) + row / 8;
            let lane_b = 4 * column + (thread_b[0] as usize & 3);
            let scales = |data: u32, byte: u32| {
                data.to_le_bytes()
                    .map(u32::from)
                    .into_iter()
                    .cycle()
                    .skip(byte as usize & 3)
                    .take(vectors)
                    .collect::<Vec<u32>>()
            };
            let scales = [scales(data_a[lane_a], byte_a[0]), scales(data_b[lane_b], byte_b[0])];
            let a = Elements { format: format_a, bits: &a[row * depth..][..depth] };
            let b = Elements { format: format_b, bits: &b[column * depth..][..depth] };
            *c = scaled(exact, scale, a, b, &scales, *c);
        }
        self.write_accumulator(&lists[3], multiply.d, rows, &c);
    }

    /// Four products, each of eight lanes: four of the lower and four of the upper half.
    fn multiply_quads(&mut self, multiply: Multiply, lists: &[[Slot; 8]; 5]) {
        let Variant::Quad { a_by_columns, b_by_rows } = multiply.variant else { return };
        let Some(rule) = multiply.rule(self.launch.tensor_model) else { return };
        let mut results = [[0_u32; LANES]; 8];
        let a = [0, 1].map(|index| self.lanes32(lists[0][index]));
        let b = [0, 1].map(|index| self.lanes32(lists[1][index]));
        let c: [[u32; LANES]; 8] = std::array::from_fn(|index| self.lanes32(lists[2][index]));
        for quad in 0..4 {
            let lines = [quad_lines(&a, quad, a_by_columns), quad_lines(&b, quad, b_by_rows)];
            let [a, b] = lines.each_ref().map(|bits| Elements { format: Format::F16, bits });
            let mut sums = [0; 64];
            quad_places(multiply.c, quad, |lane, register, shift, index| {
                sums[index] = c[register][lane] >> shift;
                if multiply.c == Matrix::F16 {
                    sums[index] &= 0xffff;
                }
            });
            if multiply.c == Matrix::F16 && multiply.d == Matrix::F32 {
                sums = sums.map(|half| f16_to_f32(half as u16).to_bits());
            }
            multiply_add(&rule, a, b, 4, &mut sums);
            quad_places(multiply.d, quad, |lane, register, shift, index| {
                results[register][lane] |= sums[index] << shift;
            });
        }
        let registers = if multiply.d == Matrix::F16 { 4 } else { 8 };
        for (&slot, words) in lists[3].iter().zip(results).take(registers) {
            self.store_lanes32(slot, words);
        }
    }

    /// Fused multiply-adds along the depth.
    fn multiply_doubles(&mut self, multiply: Multiply, lists: &[[Slot; 8]; 5]) {
        let (rows, depth) = (usize::from(multiply.rows), usize::from(multiply.depth));
        let groups = rows / 8;
        let words = |list: &[Slot; 8], index: usize| self.read_register(list[index], true);
        let a: [[u64; LANES]; 8] = std::array::from_fn(|index| words(&lists[0], index));
        let b: [[u64; LANES]; 8] = std::array::from_fn(|index| words(&lists[1], index));
        let mut results = [[0; LANES]; 4];
        for (register, results) in results.iter_mut().enumerate().take(2 * groups) {
            let old = words(&lists[2], register);
            for (lane, result) in results.iter_mut().enumerate() {
                let (row, column) = (lane / 4, 2 * (lane % 4) + register % 2);
                let pairs = (0..depth).map(|k| {
                    let a = a[k / 4 * groups + register / 2][4 * row + k % 4];
                    (a, b[k / 4][4 * column + k % 4])
                });
                *result = dot_f64(pairs, old[lane], multiply.rounding);
            }
        }
        for (&slot, words) in lists[3].iter().zip(&results).take(2 * groups) {
            self.write_register(slot, true, words, u32::MAX);
        }
    }
}

/// `c += a * b` of any type but f64.
fn products(
    multiply: Multiply,
    rule: Option<Rule>,
    a: &[u32],
    b: &[u32],
    depth: usize,
    c: &mut [u32],
) {
    match (rule, multiply.a.format(), multiply.b.format()) {
        (Some(rule), Some(format), Some(other)) => {
            let b = Elements { format: other, bits: b };
            multiply_add(&rule, Elements { format, bits: a }, b, depth, c);
        }
        _ if multiply.a == Matrix::B1 => multiply_add_bits(a, b, depth, c, multiply.conjunction),
        _ => multiply_add_integers(a, b, depth, c, multiply.saturates),
    }
}

/// Where in a row of the full A the elements that are kept lie (ISA 9.7.14.6.1), as an H200 reads
/// the metadata.
///
/// Of four lanes that share two rows, so many have metadata, four bits for each chunk. A lane with
/// elements of 16 or 32 bits has four chunks of the upper row and four of the lower one; with
/// shorter ones it has eight chunks of one row, and the next lane has those of the other.
pub(crate) fn places(
    matrix: Matrix,
    row: usize,
    kept: usize,
    selector: usize,
    metadata: &[u32; LANES],
) -> Result<Vec<u8>, String> {
    // Elements of a chunk, and how many neighbours are kept together.
    let (whole, together) = match matrix.bits() {
        32 => (2, 1),
        4 => (8, 2),
        _ => (4, 1),
    };
    let chunks = kept / (whole / 2);
    let first = 4 * (row % 8) + selector * (chunks / 4);
    let mut places = Vec::with_capacity(kept);
    for chunk in 0..chunks {
        let (lane, shift) = if matrix.bits() >= 16 {
            (first + chunk / 4, 16 * (row / 8) + 4 * (chunk % 4))
        } else {
            (first + 2 * (chunk / 8) + row / 8, 4 * (chunk % 8))
        };
        let field = metadata[lane] >> shift & 15;
        let start = chunk * whole;
        let kept = kept_places(whole, field)
            .ok_or_else(|| format!("sparsity metadata of row {row} are {field:#06b}"))?;
        for place in kept.into_iter().take(whole.min(4) / 2) {
            places.extend((0..together).map(|index| (start + together * place + index) as u8));
        }
    }
    Ok(places)
}

/// The places that four bits of metadata name: one of two, or two of four.
fn kept_places(whole: usize, field: u32) -> Option<[usize; 2]> {
    let (first, second) = (field & 3, field >> 2);
    let pair = [first as usize, second as usize];
    match whole {
        2 => [4, 14].contains(&field).then_some([pair[0] / 2, 0]),
        _ => (first != second).then_some(pair),
    }
}

/// The rows of A, or columns of B, of one product of four.
fn quad_lines(registers: &[[u32; LANES]; 2], quad: usize, across: bool) -> [u32; 32] {
    let mut lines = [0; 32];
    for half in 0..2 {
        for thread in 0..4 {
            for index in 0..4 {
                let word = registers[index / 2][16 * half + 4 * quad + thread];
                let element = word >> (16 * (index % 2)) & 0xffff;
                let (line, k) = if across { (index, thread) } else { (thread, index) };
                lines[4 * (4 * half + line) + k] = element;
            }
        }
    }
    lines
}

/// Lane, register, shift and index of each element of C or D of one product of four.
fn quad_places(matrix: Matrix, quad: usize, mut each: impl FnMut(usize, usize, usize, usize)) {
    for half in 0..2 {
        for thread in 0..4 {
            let lane = 16 * half + 4 * quad + thread;
            for index in 0..8 {
                if matrix == Matrix::F16 {
                    each(lane, index / 2, 16 * (index % 2), 8 * (4 * half + thread) + index);
                } else {
                    let row = (lane & 1) + (index & 2) + 4 * half;
                    let column = (index & 4) + (lane & 2) + (index & 1);
                    each(lane, index, 0, 8 * row + column);
                }
            }
        }
    }
}
