//! `wgmma` (ISA 9.7.15): products that four warps start together and wait for later.
//!
//! Each warp owns sixteen rows of the result, so each computes its own: at the commit of the
//! product's group, or, under adversarial schedules, as late as allowed, at the wait. Until then
//! the accumulators keep what they held, and a kernel that reads them early reads that. Matrices in
//! shared memory are read when the product is computed; a kernel that overwrites them early
//! multiplies what it wrote. A wait takes until all four warps have started the product.

mod descriptor;
mod numerics;

use std::collections::VecDeque;

use super::effect::SpaceKind;
use super::engine::{Engine, Flow, Step, Trouble};
use super::fragment::Matrix;
use super::frame::{LANES, NEGATE_R, Operands, Slot};
use super::multiply::places;
use super::warp::{Group, Wait};
use crate::fault::FaultKind;
use crate::observer::Observer;
use descriptor::{Descriptor, RUN};

/// Warps of a warpgroup.
const WARPS: usize = 4;
/// Rows of the result that a warp owns.
const ROWS: usize = 16;
/// Bytes of a row of A, whatever its type: of a sparse one, of what it keeps.
const LINE: usize = 32;

/// A `wgmma.mma_async` of 64 by `columns` by `depth`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WarpgroupMultiply {
    pub(crate) columns: u16,
    pub(crate) depth: u16,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    pub(crate) d: Matrix,
    /// A comes from registers, and not from shared memory.
    pub(crate) in_registers: bool,
    /// A is M-major.
    pub(crate) a_turned: bool,
    /// B is N-major.
    pub(crate) b_turned: bool,
    pub(crate) a_negated: bool,
    pub(crate) b_negated: bool,
    /// `.satfinite`
    pub(crate) saturates: bool,
    /// `.sp`: half of A is zero, and metadata of the lanes that this picks say which.
    pub(crate) selector: Option<u8>,
}

impl WarpgroupMultiply {
    /// Registers of a thread that hold its part of the result.
    pub(crate) fn accumulators(self) -> usize {
        let pairs = usize::from(self.columns) / 4;
        if self.d == Matrix::F16 { pairs } else { 2 * pairs }
    }

    /// Lists of the operands: those of the accumulators, then one of A's registers.
    pub(crate) fn lists(self) -> usize {
        self.accumulators().div_ceil(8) + 1
    }

    /// Elements along the depth, or words of single bits.
    fn units(self, matrix: Matrix) -> usize {
        let depth = usize::from(self.depth);
        if matrix == Matrix::B1 { depth / 32 } else { depth }
    }
}

/// A product that a warp has started and not waited for.
#[derive(Clone, Debug)]
struct Product {
    /// Its place among the products of the warp.
    number: u64,
    /// The commit group that it is in.
    group: u32,
    pc: u32,
    multiply: WarpgroupMultiply,
    /// The first list of the operands.
    list: Slot,
    /// The descriptors of A and B; A's is 0 when A is in registers.
    descriptors: [u64; 2],
    /// The result is added to what the accumulators hold.
    accumulates: bool,
    /// A's registers as they were at the start.
    registers: [[u32; LANES]; 4],
    metadata: [u32; LANES],
    /// It waits for the wait; others are computed at the commit.
    late: bool,
    done: bool,
}

/// What a warp has going on.
#[derive(Debug, Default)]
pub(crate) struct WarpgroupState {
    products: VecDeque<Product>,
    /// Products started so far.
    started: u64,
    /// Groups committed so far: the number of the open one.
    group: u32,
    /// `wgmma.fence` has been executed.
    fenced: bool,
}

impl<O: Observer> Engine<'_, O> {
    /// `wgmma.fence`
    pub(crate) fn warpgroup_fence(&mut self, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        self.block.warps[self.warp].wgmma.fenced = true;
        Ok(Flow::Next)
    }

    /// `wgmma.mma_async`
    pub(crate) fn warpgroup_multiply(
        &mut self,
        multiply: WarpgroupMultiply,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        self.check_warpgroup()?;
        let product = self.started_product(multiply, operands)?;
        self.check_agreement(&product)?;
        let state = &mut self.block.warps[self.warp].wgmma;
        state.started += 1;
        state.products.push_back(product);
        self.wake_warpgroup();
        Ok(Flow::Next)
    }

    /// `wgmma.commit_group`
    pub(crate) fn warpgroup_commit(&mut self, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let state = &mut self.block.warps[self.warp].wgmma;
        state.group += 1;
        let early = state.products.iter().rposition(|product| !product.late && !product.done);
        self.compute_products(early.map_or(0, |last| last + 1))?;
        Ok(Flow::Next)
    }

    /// `wgmma.wait_group`: all but the `groups` youngest committed groups are done.
    pub(crate) fn warpgroup_wait(&mut self, groups: u32, mask: u32) -> Step {
        if let Some(flow) = self.whole_warp(mask)? {
            return Ok(flow);
        }
        let state = &self.block.warps[self.warp].wgmma;
        let due = state.group.saturating_sub(groups);
        let count = state.products.iter().take_while(|product| product.group < due).count();
        let Some(last) = count.checked_sub(1).map(|last| state.products[last].number) else {
            return Ok(Flow::Next);
        };
        if !self.all_started(last, mask)? {
            let here = Group { mask, wait: Wait::Warpgroup, ..self.group };
            self.block.warps[self.warp].groups.push(here);
            return Ok(Flow::Reschedule);
        }
        self.compute_products(count)?;
        self.block.warps[self.warp].wgmma.products.drain(..count);
        Ok(Flow::Next)
    }

    /// The warps of this warpgroup.
    fn warpgroup(&self) -> std::ops::Range<usize> {
        let first = self.warp / WARPS * WARPS;
        first..first + WARPS
    }

    /// Whether every warp of the warpgroup has started product `number`. One that has exited never
    /// will.
    fn all_started(&self, number: u64, mask: u32) -> Step<bool> {
        let mut all = true;
        for index in self.warpgroup() {
            let warp = &self.block.warps[index];
            if warp.wgmma.started > number {
                continue;
            }
            if warp.alive == 0 {
                let what = format!(
                    "warp {index} has exited without the product that its warpgroup waits for"
                );
                return Err(misuse(what, mask));
            }
            all = false;
        }
        Ok(all)
    }

    /// Lets warps that wait for this one's products look again.
    fn wake_warpgroup(&mut self) {
        for index in self.warpgroup() {
            for group in &mut self.block.warps[index].groups {
                if group.wait == Wait::Warpgroup {
                    group.wait = Wait::Ready;
                }
            }
        }
    }

    fn check_warpgroup(&self) -> Step<()> {
        let missing = self
            .warpgroup()
            .find(|&index| self.block.warps.get(index).is_none_or(|warp| warp.exists != u32::MAX));
        if let Some(index) = missing {
            let what = format!(
                "wgmma takes four whole warps; the block of {} threads has no whole warp {index}",
                self.launch.threads
            );
            return Err(misuse(what, u32::MAX));
        }
        if !self.block.warps[self.warp].wgmma.fenced {
            let what = "wgmma.mma_async without a wgmma.fence before it".to_owned();
            return Err(misuse(what, u32::MAX));
        }
        Ok(())
    }

    /// What a product's operands say now.
    fn started_product(
        &mut self,
        multiply: WarpgroupMultiply,
        operands: &Operands,
    ) -> Step<Product> {
        let mut registers = [[0; LANES]; 4];
        let mut first = 0;
        if multiply.in_registers {
            let list = self.code().lists[operands.c as usize + multiply.lists() - 1];
            for (words, &slot) in registers.iter_mut().zip(&list) {
                *words = self.lanes32(slot);
            }
        } else {
            first = self.same_in_all_lanes(operands.a)?;
        }
        let second = self.same_in_all_lanes(operands.b)?;
        let flip = if operands.flags & NEGATE_R == 0 { 0 } else { u32::MAX };
        // SAFETY: predicates of lowered instructions are inside the frame.
        let scale = unsafe { self.frame.predicate(operands.r) } ^ flip;
        if scale != 0 && scale != u32::MAX {
            return Err(misuse("scale-d of wgmma.mma_async differs between lanes".into(), scale));
        }
        let late = self.chooser.is_late();
        let state = &self.block.warps[self.warp].wgmma;
        Ok(Product {
            number: state.started,
            group: state.group,
            pc: self.group.pc,
            multiply,
            list: operands.c,
            descriptors: [first, second],
            accumulates: scale != 0,
            registers,
            metadata: self.lanes32(operands.d),
            late,
            done: false,
        })
    }

    fn same_in_all_lanes(&self, slot: Slot) -> Step<u64> {
        let lanes = self.read_register(slot, true);
        if lanes.iter().all(|&lane| lane == lanes[0]) {
            return Ok(lanes[0]);
        }
        Err(misuse("a matrix descriptor of wgmma differs between lanes".into(), u32::MAX))
    }

    /// All four warps must start the same product: instruction, descriptors, scale.
    fn check_agreement(&self, product: &Product) -> Step<()> {
        for index in self.warpgroup() {
            let others = &self.block.warps[index].wgmma.products;
            let Some(other) = others.iter().find(|other| other.number == product.number) else {
                continue;
            };
            let what = if other.pc != product.pc {
                format!("is at line {}", self.line(other.pc))
            } else if other.descriptors != product.descriptors {
                "has other matrix descriptors".to_owned()
            } else if other.accumulates != product.accumulates {
                "has another scale-d".to_owned()
            } else {
                continue;
            };
            let number = product.number;
            let text = format!("wgmma.mma_async number {number} of warp {index} {what}");
            return Err(misuse(format!("warps of a warpgroup disagree: {text}"), u32::MAX));
        }
        Ok(())
    }

    /// Computes the first `count` products that are pending, in their order.
    fn compute_products(&mut self, count: usize) -> Step<()> {
        let here = self.group.pc;
        for index in 0..count {
            let product = &mut self.block.warps[self.warp].wgmma.products[index];
            if std::mem::replace(&mut product.done, true) {
                continue;
            }
            let product = product.clone();
            // What goes wrong is the product's fault.
            self.group.pc = product.pc;
            self.compute_product(&product)?;
        }
        self.group.pc = here;
        Ok(())
    }

    fn compute_product(&mut self, product: &Product) -> Step<()> {
        let multiply = product.multiply;
        let a = self.left_matrix(product)?;
        let b = self.right_matrix(product)?;
        let mut sums = self.sums(product);
        let model = self.launch.tensor_model;
        let depth = multiply.units(multiply.b);
        let Some(selector) = multiply.selector else {
            numerics::products(multiply, model, (&a, &b), depth, &mut sums);
            self.write_sums(product, &sums);
            return Ok(());
        };
        let (kept, columns) = (depth / 2, usize::from(multiply.columns));
        for (row, sums) in sums.chunks_exact_mut(columns).enumerate() {
            let places = places(multiply.a, row, kept, selector.into(), &product.metadata);
            let places = places.map_err(|what| misuse(what, u32::MAX))?;
            let beside = b
                .chunks_exact(depth)
                .flat_map(|column| places.iter().map(|&place| column[usize::from(place)]));
            let (a, beside) = (&a[row * kept..][..kept], beside.collect::<Vec<u32>>());
            numerics::products(multiply, model, (a, &beside), kept, sums);
        }
        self.write_sums(product, &sums);
        Ok(())
    }

    /// What the warp's rows are added to.
    fn sums(&self, product: &Product) -> Vec<u32> {
        let multiply = product.multiply;
        let columns = usize::from(multiply.columns);
        let mut sums = vec![0; ROWS * columns];
        if !product.accumulates {
            return sums;
        }
        for (register, slot) in self.accumulators(product).into_iter().enumerate() {
            let words = self.lanes32(slot);
            for (lane, word) in words.into_iter().enumerate() {
                if multiply.d == Matrix::F16 {
                    let at = place(columns, register, lane);
                    (sums[at], sums[at + 1]) = (word & 0xffff, word >> 16);
                } else {
                    sums[place(columns, register / 2, lane) + register % 2] = word;
                }
            }
        }
        sums
    }

    fn write_sums(&mut self, product: &Product, sums: &[u32]) {
        let columns = usize::from(product.multiply.columns);
        let half = product.multiply.d == Matrix::F16;
        for (register, slot) in self.accumulators(product).into_iter().enumerate() {
            let words = std::array::from_fn(|lane| {
                if half {
                    let at = place(columns, register, lane);
                    sums[at] | sums[at + 1] << 16
                } else {
                    sums[place(columns, register / 2, lane) + register % 2]
                }
            });
            self.store_lanes32(slot, words);
        }
    }

    fn accumulators(&self, product: &Product) -> Vec<Slot> {
        let lists = &self.code().lists[product.list as usize..];
        lists.iter().flatten().copied().take(product.multiply.accumulators()).collect()
    }

    /// The warp's rows of A.
    fn left_matrix(&mut self, product: &Product) -> Step<Vec<u32>> {
        let multiply = product.multiply;
        let bytes = if multiply.in_registers {
            fragment_rows(&product.registers)
        } else {
            let place = Descriptor::open(product.descriptors[0]);
            let first = ROWS * (self.warp % WARPS);
            self.matrix_rows(place, multiply.a_turned, first..first + ROWS, LINE)?
        };
        Ok(numerics::elements(&bytes, multiply.a, multiply.a_negated))
    }

    /// The columns of B.
    fn right_matrix(&mut self, product: &Product) -> Step<Vec<u32>> {
        let multiply = product.multiply;
        let place = Descriptor::open(product.descriptors[1]);
        let width = if multiply.selector.is_some() { 2 * LINE } else { LINE };
        let columns = usize::from(multiply.columns);
        let bytes = self.matrix_rows(place, multiply.b_turned, 0..columns, width)?;
        Ok(numerics::elements(&bytes, multiply.b, multiply.b_negated))
    }

    /// Rows of a matrix in shared memory, each of `width` bytes along the depth.
    fn matrix_rows(
        &mut self,
        place: Descriptor,
        turned: bool,
        rows: std::ops::Range<usize>,
        width: usize,
    ) -> Step<Vec<u8>> {
        let mut bytes = vec![0; rows.len() * width];
        let run = RUN as usize;
        if !turned {
            for (row, line) in rows.zip(bytes.chunks_exact_mut(width)) {
                for (number, to) in line.chunks_exact_mut(run).enumerate() {
                    let at = place.along_depth(row as u32, number as u32);
                    to.copy_from_slice(self.run_of_shared(at)?);
                }
            }
            return Ok(bytes);
        }
        // Elements of 16 bits, eight rows in a run.
        for first in (0..rows.len()).step_by(8) {
            for depth in 0..width / 2 {
                let eight = (rows.start + first) / 8;
                let from = self.run_of_shared(place.along_rows(eight as u32, depth as u32))?;
                for (row, element) in from.chunks_exact(2).enumerate() {
                    let to = (first + row) * width + 2 * depth;
                    bytes[to..to + 2].copy_from_slice(element);
                }
            }
        }
        Ok(bytes)
    }

    fn run_of_shared(&mut self, at: u32) -> Step<&[u8]> {
        let mut addresses = [0; LANES];
        addresses[0] = u64::from(at);
        self.observe(SpaceKind::Shared, &addresses, RUN, false, 1);
        self.lane_bytes(SpaceKind::Shared, 0, u64::from(at), u64::from(RUN), 1)?;
        Ok(self.block.async_bytes(at as usize..(at + RUN) as usize))
    }
}

/// Rows of A from its four registers: lanes of four share a row, a register holds four bytes of it,
/// and registers alternate between the upper and lower eight rows.
fn fragment_rows(registers: &[[u32; LANES]; 4]) -> Vec<u8> {
    let mut bytes = vec![0; ROWS * LINE];
    for (number, words) in registers.iter().enumerate() {
        for (lane, word) in words.iter().enumerate() {
            let row = lane / 4 + 8 * (number % 2);
            let at = row * LINE + 4 * (lane % 4) + 16 * (number / 2);
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
    }
    bytes
}

/// Where the first of a lane's two neighbours in the given pair of a row lies among the sums.
fn place(columns: usize, pair: usize, lane: usize) -> usize {
    let row = lane / 4 + pair % 2 * 8;
    row * columns + pair / 2 * 8 + lane % 4 * 2
}

fn misuse(what: String, mask: u32) -> Box<Trouble> {
    Trouble::new(FaultKind::WarpMisuse { what }, mask)
}
