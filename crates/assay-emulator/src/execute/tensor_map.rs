//! `cp.async.bulk.tensor`: copies of boxes of tensors (ISA 9.7.9.27).

use super::access::lanes_of;
use super::bulk::{Bulk, Direction, Reduction, Shape, misaligned};
use super::effect::{AtomicOperation, AtomicType, SpaceKind};
use super::engine::{Engine, Flow, Step, Trouble};
use super::frame::Operands;
use super::tensor_box::Corner;
use crate::fault::FaultKind;
use crate::observer::Observer;
use crate::tensor_map::{MapError, TENSOR_MAP_BYTES, TensorElement, TensorMap};

/// Maps lie at multiples of this.
const MAP_ALIGNMENT: u64 = 64;

/// A copy with a tensor map: shared `d`, map `a`, mbarrier `b`; in list `c` the coordinates and
/// behind them the offsets of `.im2col`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BulkTensor {
    pub(crate) direction: Direction,
    pub(crate) operation: Option<AtomicOperation>,
    /// As the instruction says.
    pub(crate) rank: u8,
    /// `.im2col` or `.im2col_no_offs`
    pub(crate) pixels: bool,
    pub(crate) multicast: bool,
    /// `.tile::gather4` or `.tile::scatter4`: five coordinates of two dimensions.
    pub(crate) four_rows: bool,
}

impl<O: Observer> Engine<'_, O> {
    /// A copy with a tensor map, in each lane.
    pub(crate) fn bulk_tensor(
        &mut self,
        tensor: BulkTensor,
        operands: &Operands,
        mask: u32,
    ) -> Step {
        let shared = self.read_register(operands.d, true);
        let maps = self.read_register(operands.a, true);
        let signals = self.read_register(operands.b, true);
        let list = self.code().lists[operands.c as usize];
        let values = list.map(|slot| self.read_register(slot, false));
        let [blocks, ..] = self.code().lists[operands.c as usize + 1];
        let blocks = self.read_register(blocks, false);
        for lane in lanes_of(mask) {
            let map = self.tensor_map(tensor, maps[lane], lane)?;
            let corner = Corner {
                coordinates: std::array::from_fn(|dimension| values[dimension][lane] as i32),
                offsets: std::array::from_fn(|axis| values[5 + axis][lane] as u16),
                four_rows: tensor.four_rows,
            };
            let used = if tensor.four_rows { 5 } else { map.rank };
            let negative = corner.coordinates[..used].iter().find(|&&at| at < 0);
            if let Some(at) = negative.filter(|_| tensor.direction == Direction::Out) {
                let what = format!("a box that is written from the negative coordinate {at}");
                return Err(misuse(what, lane));
            }
            if let Some(what) = corner_problem(&map, &corner) {
                return Err(misuse(what, lane));
            }
            let reduction = reduction(tensor, &map, lane)?;
            let BulkTensor { direction, multicast, .. } = tensor;
            let bulk = Bulk { direction, reduction, masked: false, multicast };
            let shape = Shape::Box { map: Box::new(map), corner };
            let blocks = multicast.then_some(blocks[lane] as u16);
            self.start_bulk(bulk, shape, (shared[lane], signals[lane], blocks), lane)?;
        }
        Ok(Flow::Next)
    }

    /// The map at a generic address, checked against the instruction.
    fn tensor_map(&mut self, tensor: BulkTensor, at: u64, lane: usize) -> Step<TensorMap> {
        if !at.is_multiple_of(MAP_ALIGNMENT) {
            return Err(misaligned(SpaceKind::Generic, at, MAP_ALIGNMENT, lane));
        }
        let mut bytes = [0; TENSOR_MAP_BYTES];
        for (number, half) in bytes.chunks_mut(MAP_ALIGNMENT as usize).enumerate() {
            let at = at + MAP_ALIGNMENT * number as u64;
            half.copy_from_slice(self.lane_bytes(
                SpaceKind::Generic,
                lane,
                at,
                MAP_ALIGNMENT,
                1 << lane,
            )?);
        }
        let map = TensorMap::decode(&bytes).map_err(|error| match error {
            MapError::Misuse(what) => misuse(what, lane),
            MapError::Unsupported(opcode) => {
                Trouble::new(FaultKind::Unsupported { opcode }, 1 << lane)
            }
        })?;
        if map.rank != usize::from(tensor.rank) {
            let (has, wants) = (map.rank, tensor.rank);
            return Err(misuse(format!("a copy of {wants} dimensions from a map of {has}"), lane));
        }
        if tensor.four_rows && map.box_sizes[1] != 1 {
            let rows = map.box_sizes[1];
            return Err(misuse(format!("four single rows from a map with a box of {rows}"), lane));
        }
        if map.pixels.is_some() != tensor.pixels {
            let what = if tensor.pixels {
                "im2col copy with a tile map"
            } else {
                "tile copy with an im2col map"
            };
            return Err(misuse(format!("an {what}").replace("an tile", "a tile"), lane));
        }
        Ok(map)
    }
}

/// What is wrong with where a box starts. An H200 calls each of these, and a box written from a
/// negative coordinate, an illegal instruction.
fn corner_problem(map: &TensorMap, corner: &Corner) -> Option<String> {
    let (first, size) = (i64::from(corner.coordinates[0]), i64::from(map.element.bytes()));
    if first * size % 16 != 0 {
        return Some(format!(
            "a box that starts at element {first} of {size} bytes; rows start at multiples of 16"
        ));
    }
    let pixels = map.pixels?;
    (1..map.rank - 1).find_map(|dimension| {
        let (lower, upper) = (pixels.lower[dimension - 1], pixels.upper[dimension - 1]);
        let range = i64::from(lower)..i64::from(map.sizes[dimension]) + i64::from(upper);
        let at = i64::from(corner.coordinates[dimension]);
        (!range.contains(&at)).then(|| {
            format!(
                "an im2col copy that starts at {at} along dimension {dimension}, outside its box"
            )
        })
    })
}

/// The reduction that a copy makes on elements of its map.
fn reduction(tensor: BulkTensor, map: &TensorMap, lane: usize) -> Step<Option<Reduction>> {
    let Some(operation) = tensor.operation else {
        return Ok(None);
    };
    let ty = match map.element {
        TensorElement::U32 => AtomicType::U32,
        TensorElement::S32 => AtomicType::S32,
        TensorElement::U64 => AtomicType::U64,
        TensorElement::S64 => AtomicType::S64,
        TensorElement::F16 => AtomicType::F16,
        TensorElement::Bf16 => AtomicType::Bf16,
        TensorElement::F32 | TensorElement::F32Ftz => AtomicType::F32,
        TensorElement::F64 => AtomicType::F64,
        other => return Err(misuse(format!("a reduction of elements of type {other:?}"), lane)),
    };
    if operation == AtomicOperation::Add && ty == AtomicType::S64 {
        return Err(misuse("a sum of elements of type .s64".to_owned(), lane));
    }
    let flushes = map.element == TensorElement::F32Ftz;
    Ok(Some(Reduction { operation, ty, flushes }))
}

/// What a load does to elements: `.tf32` rounds to 10 bits of fraction, to nearest even, and has
/// one NaN. `.ftz` flushes nothing. Settled on an H200.
pub(super) fn convert(element: TensorElement, bytes: &mut [u8]) {
    if !matches!(element, TensorElement::Tf32 | TensorElement::Tf32Ftz) {
        return;
    }
    for part in bytes.chunks_exact_mut(4) {
        let bits = super::access::read_value(part, 4) as u32;
        let odd = bits >> 13 & 1;
        let rounded = match bits & 0x7fff_ffff {
            0x7f80_0000 => bits,
            0x7f80_0001.. => 0x7fff_e000,
            _ => (bits + 0xfff + odd) & !0x1fff,
        };
        part.copy_from_slice(&rounded.to_le_bytes());
    }
}

fn misuse(what: String, lane: usize) -> Box<Trouble> {
    Trouble::new(FaultKind::CopyMisuse { what }, 1 << lane)
}
