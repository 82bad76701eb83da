//! `cp.async.bulk` and its relatives: copies that complete as late as they may (ISA 9.7.9.25).
//!
//! A copy into shared memory leaves poison there until somebody waits on its mbarrier and the phase
//! could not complete without it. A copy out of shared memory reads its source when the thread
//! waits for the read, and writes when the thread waits for the write. So a kernel that forgets a
//! wait, or counts bytes wrongly, computes nonsense here.

use super::access::lanes_of;
use super::address;
use super::atomic::combined;
use super::block::Block;
use super::effect::{Atomic, AtomicOperation, AtomicType, SpaceKind};
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::{LANES, Operands};
use super::mbarrier::Place;
use super::tensor_box::{Corner, Row, row_count, rows};
use crate::fault::FaultKind;
use crate::observer::Observer;
use crate::tensor_map::TensorMap;

/// Sizes and addresses of bulk copies are multiples of this.
const UNIT: u64 = 16;
/// Boxes of tensors start at multiples of this in shared memory.
const BOX_ALIGNMENT: u64 = 128;
/// Copies of a block that are under way at most. Beyond, the oldest store completes, and a load is
/// refused: nobody waits for them.
const MOST_PENDING: usize = 1024;

/// What a copy combines its destination with, rather than overwriting it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reduction {
    pub(crate) operation: AtomicOperation,
    pub(crate) ty: AtomicType,
    /// Sums of f32 flush subnormals.
    pub(crate) flushes: bool,
}

/// Which way a copy goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From global to shared memory, signalled to an mbarrier.
    In,
    /// From shared to global memory, in a bulk group.
    Out,
    /// From shared memory to shared memory of the cluster, signalled to an mbarrier.
    Across,
}

/// A copy without a tensor map: to `d` from `a`; mbarrier `b`; size, masks in list `c`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bulk {
    pub(crate) direction: Direction,
    pub(crate) reduction: Option<Reduction>,
    /// `.cp_mask`: which bytes of each 16 are copied.
    pub(crate) masked: bool,
    /// `.multicast::cluster`: to the same place in each block of a mask.
    pub(crate) multicast: bool,
}

/// The global side of a copy.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// Bytes at an address; of each 16 those in the mask.
    Line { address: u64, bytes: u64, mask: u16 },
    /// A box of a tensor.
    Box { map: Box<TensorMap>, corner: Corner },
    /// Bytes that were read when the copy started.
    Taken(Vec<u8>),
}

/// A copy that has started and not completed.
#[derive(Clone, Debug)]
pub(crate) struct BulkCopy {
    /// The thread that started it, in the block.
    pub(crate) thread: u32,
    pub(crate) direction: Direction,
    pub(crate) reduction: Option<Reduction>,
    /// The thread's bulk group that it is in.
    pub(crate) group: u32,
    /// The mbarrier that is told, in the block's shared memory.
    pub(crate) signal: u64,
    pub(crate) shape: Shape,
    /// The shared side.
    pub(crate) shared: u64,
    pub(crate) bytes: u64,
    /// What a copy out of shared memory has read.
    pub(crate) taken: Option<Vec<u8>>,
}

impl Shape {
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Shape::Line { bytes, .. } => *bytes,
            Shape::Box { map, corner } => row_count(map, corner) * map.row_bytes(),
            Shape::Taken(bytes) => bytes.len() as u64,
        }
    }

    /// Bytes of shared memory from its start to its end.
    fn extent(&self) -> u64 {
        match self {
            Shape::Box { map, corner } => row_count(map, corner) * map.pitch(),
            _ => self.bytes(),
        }
    }

    fn rows(&self, mut visit: impl FnMut(Row)) {
        match self {
            Shape::Line { address, bytes, .. } => {
                visit(Row { inside: *bytes, address: *address, ..Row::default() });
            }
            Shape::Box { map, corner } => rows(map, corner, visit),
            Shape::Taken(_) => {}
        }
    }

    /// Where byte `offset` of the box lies in shared memory.
    fn place(&self, start: u64, offset: u64) -> usize {
        let address = match self {
            Shape::Box { map, .. } => {
                let (row, column) = (offset / map.row_bytes(), offset % map.row_bytes());
                map.swizzled(start + row * map.pitch() + column)
            }
            _ => start + offset,
        };
        address as usize
    }

    fn is_swizzled(&self) -> bool {
        matches!(self, Shape::Box { map, .. } if map.swizzle.span() != 0)
    }
}

impl Block {
    /// Writes the bytes of a box to where they belong.
    fn scatter(&mut self, copy: &BulkCopy, bytes: &[u8]) {
        if !copy.shape.is_swizzled() {
            return self.write_async(copy.shared as usize, bytes);
        }
        for (number, part) in bytes.chunks(UNIT as usize).enumerate() {
            let at = copy.shape.place(copy.shared, UNIT * number as u64);
            self.write_async(at, part);
        }
    }

    /// Reads the bytes of a box from where they lie.
    fn gather(&self, copy: &BulkCopy) -> Vec<u8> {
        let start = copy.shared as usize;
        if !copy.shape.is_swizzled() {
            return self.async_bytes(start..start + copy.bytes as usize).to_vec();
        }
        let parts = copy.bytes / UNIT;
        let mut all = Vec::with_capacity(copy.bytes as usize);
        for number in 0..parts {
            let at = copy.shape.place(copy.shared, UNIT * number);
            all.extend_from_slice(self.async_bytes(at..at + UNIT as usize));
        }
        all
    }
}

impl<O: Observer> Engine<'_, O> {
    /// A copy without a tensor map, in each lane.
    pub(crate) fn bulk(&mut self, bulk: Bulk, operands: &Operands, mask: u32) -> Step {
        if bulk.direction == Direction::Across && self.cluster_size() == 1 {
            // An H200 calls it an illegal instruction.
            let what = "a bulk copy within shared memory in a launch without clusters".to_owned();
            return Err(Trouble::new(FaultKind::CopyMisuse { what }, mask));
        }
        let to = self.read_register(operands.d, true);
        let from = self.read_register(operands.a, true);
        let signals = self.read_register(operands.b, true);
        let [size, mask_slot, ..] = self.code().lists[operands.c as usize];
        let sizes = self.read_register(size, false);
        let masks = self.read_register(mask_slot, false);
        for lane in lanes_of(mask) {
            let bytes = sizes[lane];
            if !bytes.is_multiple_of(UNIT) {
                let what = format!("a bulk copy of {bytes} bytes; sizes are multiples of 16");
                return Err(Trouble::new(FaultKind::CopyMisuse { what }, 1 << lane));
            }
            let (global, shared) = match bulk.direction {
                Direction::Out => (to[lane], from[lane]),
                Direction::In | Direction::Across => (from[lane], to[lane]),
            };
            let mask = if bulk.masked { masks[lane] as u16 } else { u16::MAX };
            let shape = match bulk.direction {
                Direction::Across => {
                    let (_, start) = self.own_place(global, bytes, UNIT, lane)?;
                    let taken = self.block.async_bytes(start as usize..(start + bytes) as usize);
                    Shape::Taken(taken.to_vec())
                }
                _ => Shape::Line { address: global, bytes, mask },
            };
            let blocks = bulk.multicast.then_some(masks[lane] as u16);
            self.start_bulk(bulk, shape, (shared, signals[lane], blocks), lane)?;
        }
        Ok(Flow::Next)
    }

    /// Checks a copy and puts it among those under way. Its shared side, its mbarrier, and for
    /// `.multicast` the blocks that get it.
    pub(crate) fn start_bulk(
        &mut self,
        bulk: Bulk,
        shape: Shape,
        (shared, signal, blocks): (u64, u64, Option<u16>),
        lane: usize,
    ) -> Step<()> {
        let out = bulk.direction == Direction::Out;
        let bytes = shape.bytes();
        let alignment = if matches!(shape, Shape::Box { .. }) { BOX_ALIGNMENT } else { UNIT };
        self.check_global(&shape, out, lane)?;
        let copy = BulkCopy {
            thread: (self.warp * LANES + lane) as u32,
            direction: bulk.direction,
            reduction: bulk.reduction,
            group: self.block.warps[self.warp].bulk_group[lane],
            signal: 0,
            shape,
            shared: 0,
            bytes,
            taken: None,
        };
        if out {
            let (_, shared) = self.own_place(shared, copy.shape.extent(), alignment, lane)?;
            if self.block.bulk.len() >= MOST_PENDING {
                self.finish_bulk(|_| true, false, 1);
            }
            self.block.bulk.push(BulkCopy { shared, ..copy });
            return Ok(());
        }
        let Some(blocks) = blocks else {
            return self.bulk_into(copy, (shared, signal), alignment, lane);
        };
        let at = |rank, at| address::mapped(rank, address::unmapped(at).1);
        for rank in (0..16).filter(|rank| blocks >> rank & 1 == 1) {
            let to = (at(rank, shared), at(rank, signal));
            self.bulk_into(copy.clone(), to, alignment, lane)?;
        }
        Ok(())
    }

    /// Starts a copy into the shared memory of a block of the cluster, which has the mbarrier too.
    fn bulk_into(
        &mut self,
        mut copy: BulkCopy,
        (shared, signal): (u64, u64),
        alignment: u64,
        lane: usize,
    ) -> Step<()> {
        let place = self.bulk_place(shared, copy.shape.extent(), alignment, lane)?;
        let barrier = self.bulk_place(signal, 8, 8, lane)?;
        self.object(barrier, lane)?;
        let rank = |(_, at): Place| address::unmapped(at).0;
        if rank(place) != rank(barrier) {
            let what = "a bulk copy to one block with its mbarrier in another".to_owned();
            return Err(Trouble::new(FaultKind::CopyMisuse { what }, 1 << lane));
        }
        copy.shared = address::unmapped(place.1).1;
        copy.signal = address::unmapped(barrier.1).1;
        let poison = (copy.reduction.is_none()).then_some(!self.launch.poison);
        let block = self.block_at(place);
        if block.bulk.len() >= MOST_PENDING {
            let what = format!("more than {MOST_PENDING} bulk copies into one block under way");
            return Err(Trouble::new(FaultKind::CopyMisuse { what }, 1 << lane));
        }
        if let Some(poison) = poison {
            block.scatter(&copy, &vec![poison; copy.bytes as usize]);
        }
        block.bulk.push(copy);
        Ok(())
    }

    /// The place of a shared address in the running block.
    fn own_place(&mut self, at: u64, bytes: u64, alignment: u64, lane: usize) -> Step<Place> {
        let (space, at) = self.resolved(SpaceKind::Shared, lane, at)?;
        self.check_place((space, at), bytes, alignment, lane, false)
    }

    /// The place of a shared address in any block of the cluster.
    fn bulk_place(&mut self, at: u64, bytes: u64, alignment: u64, lane: usize) -> Step<Place> {
        let place = self.resolved(SpaceKind::Cluster, lane, at)?;
        self.check_place(place, bytes, alignment, lane, true)
    }

    fn check_place(
        &mut self,
        place: Place,
        bytes: u64,
        alignment: u64,
        lane: usize,
        write: bool,
    ) -> Step<Place> {
        let (space, at) = place;
        if !at.is_multiple_of(alignment) {
            return Err(misaligned(space, at, alignment, lane));
        }
        let offset = if space == SpaceKind::Cluster { address::unmapped(at).1 } else { at };
        if self.shared_range(offset, bytes).is_none() {
            return Err(self.out_of_bounds(space, lane, at, bytes, write));
        }
        Ok(place)
    }

    /// Every byte of the global side lies in an allocation.
    fn check_global(&mut self, shape: &Shape, write: bool, lane: usize) -> Step<()> {
        if let Shape::Line { address, .. } = shape
            && !address.is_multiple_of(UNIT)
        {
            return Err(misaligned(SpaceKind::Global, *address, UNIT, lane));
        }
        let mut bad = None;
        shape.rows(|row| {
            let Row { address, inside, .. } = row;
            let there = inside == 0
                || if write {
                    self.global_mut(address, inside).is_some()
                } else {
                    self.global(address, inside).is_some()
                };
            if !there {
                bad = bad.or(Some(row));
            }
        });
        bad.map_or(Ok(()), |row| {
            Err(self.out_of_bounds(SpaceKind::Global, lane, row.address, row.inside, write))
        })
    }

    /// The box as it lies in global memory, filled where it is outside the tensor.
    fn read_box(&mut self, shape: &Shape) -> Vec<u8> {
        if let Shape::Taken(bytes) = shape {
            return bytes.clone();
        }
        let mut all = vec![0; shape.bytes() as usize];
        if let Shape::Box { map, .. } = shape {
            let filler = map.filler().to_le_bytes();
            all.chunks_exact_mut(2).for_each(|part| part.copy_from_slice(&filler));
        }
        shape.rows(|row| {
            let start = (row.start + row.before) as usize;
            // What a kernel has freed since reads as filler.
            if row.inside > 0
                && let Some(from) = self.global(row.address, row.inside)
            {
                let target = &mut all[start..start + from.len()];
                target.copy_from_slice(from);
                if let Shape::Box { map, .. } = shape {
                    super::tensor_map::convert(map.element, target);
                }
            }
        });
        all
    }

    /// Writes a box to global memory, without what lies outside the tensor.
    fn write_box(&mut self, copy: &BulkCopy, bytes: &[u8]) {
        let kept = if let Shape::Line { mask, .. } = copy.shape { mask } else { u16::MAX };
        copy.shape.rows(|row| {
            let start = (row.start + row.before) as usize;
            let from = &bytes[start..start + row.inside as usize];
            let Some(target) = self.global_mut(row.address, row.inside) else { return };
            match copy.reduction {
                Some(reduction) => reduce(reduction, target, from),
                None if kept == u16::MAX => target.copy_from_slice(from),
                None => {
                    let pairs = target.iter_mut().zip(from).enumerate();
                    pairs
                        .filter(|(place, _)| kept >> (place % 16) & 1 == 1)
                        .for_each(|(_, (to, from))| *to = *from);
                }
            }
        });
    }

    /// Completes the next copy that tells the mbarrier at `signal`, if there is one, and gives its
    /// bytes. Which of several comes first, the schedule says.
    pub(crate) fn next_bulk(&mut self, signal: u64) -> Option<u64> {
        let due = |copy: &BulkCopy| copy.direction != Direction::Out && copy.signal == signal;
        let ready: Vec<bool> = self.block.bulk.iter().map(due).collect();
        if !ready.contains(&true) {
            return None;
        }
        let chosen = self.chooser.among(&ready)?;
        let copy = self.block.bulk.remove(chosen);
        self.arrive_bulk(&copy);
        Some(copy.bytes)
    }

    /// Puts what a copy brings into shared memory.
    fn arrive_bulk(&mut self, copy: &BulkCopy) {
        let bytes = self.read_box(&copy.shape);
        let Some(reduction) = copy.reduction else {
            return self.block.scatter(copy, &bytes);
        };
        let mut sum = self.block.gather(copy);
        reduce(reduction, &mut sum, &bytes);
        self.block.scatter(copy, &sum);
    }

    /// Completes up to `most` copies out of shared memory that a condition picks, oldest first, or
    /// with `read_only` reads their sources.
    pub(crate) fn finish_bulk(
        &mut self,
        done: impl Fn(&BulkCopy) -> bool,
        read_only: bool,
        most: usize,
    ) {
        let mut all = std::mem::take(&mut self.block.bulk);
        let mut left = most;
        all.retain_mut(|copy| {
            if left == 0 || copy.direction != Direction::Out || !done(copy) {
                return true;
            }
            left -= 1;
            let taken = copy.taken.take().unwrap_or_else(|| self.block.gather(copy));
            if read_only {
                copy.taken = Some(taken);
            } else {
                self.write_box(copy, &taken);
            }
            read_only
        });
        all.append(&mut self.block.bulk);
        self.block.bulk = all;
    }

    /// `cp.async.bulk.commit_group`
    pub(crate) fn commit_bulk(&mut self, mask: u32) -> Step {
        let warp = &mut self.block.warps[self.warp];
        for lane in lanes_of(mask) {
            warp.bulk_group[lane] += 1;
        }
        Ok(Flow::Next)
    }

    /// `cp.async.bulk.wait_group`: all but the `groups` youngest committed groups complete, or with
    /// `read` have been read.
    pub(crate) fn wait_bulk(&mut self, groups: u32, read: bool, mask: u32) -> Step {
        if self.block.bulk.is_empty() {
            return Ok(Flow::Next);
        }
        let open = self.block.warps[self.warp].bulk_group;
        let first = (self.warp * LANES) as u32;
        let done = |copy: &BulkCopy| {
            let lane = copy.thread.wrapping_sub(first) as usize;
            lane < LANES && mask >> lane & 1 == 1 && copy.group < open[lane].saturating_sub(groups)
        };
        self.finish_bulk(done, read, usize::MAX);
        Ok(Flow::Next)
    }

    /// The block is over: what nobody waited for happens now. Shared memory may be gone by then,
    /// so that in schedules that look for trouble a source that was not waited for is lost.
    pub(crate) fn end_bulk(&mut self) {
        if self.block.bulk.is_empty() {
            return;
        }
        if !self.chooser.is_in_order() {
            let lost = !self.launch.poison;
            for copy in &mut self.block.bulk {
                copy.taken.get_or_insert_with(|| vec![lost; copy.bytes as usize]);
            }
        }
        self.finish_bulk(|_| true, false, usize::MAX);
        self.block.bulk.clear();
    }
}

/// Combines `target` with `from`, element by element. Unlike `red.global`, sums of f32 keep
/// subnormals, but for elements of type `.f32.ftz` in a map: settled on an H200.
fn reduce(reduction: Reduction, target: &mut [u8], from: &[u8]) {
    let Reduction { operation, ty, flushes } = reduction;
    let space = SpaceKind::Shared;
    let atomic = Atomic { space, operation, ty, returns: false, wide_address: true, count: 1 };
    let size = ty.bytes() as usize;
    for (to, from) in target.chunks_exact_mut(size).zip(from.chunks_exact(size)) {
        let (old, value) =
            (super::access::read_value(to, size), super::access::read_value(from, size));
        let first_nan = [old, value].into_iter().find(|&bits| f64::from_bits(bits).is_nan());
        let new = match first_nan {
            // As it was: not even made quiet.
            Some(nan) if ty == AtomicType::F64 => nan,
            _ => combined(atomic, old, value, 0, flushes),
        };
        to.copy_from_slice(&new.to_le_bytes()[..size]);
    }
}

pub(crate) fn misaligned(space: SpaceKind, at: u64, bytes: u64, lane: usize) -> Box<Trouble> {
    let space = super::access::fault_space(space);
    let kind = FaultKind::Misaligned { space, address: at, bytes: bytes as u32 };
    Trouble::new(kind, 1 << lane)
}
