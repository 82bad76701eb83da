//! Bands of reduction order on the device: the kernels and what they find of a piece.

use assay_device::{Argument, BufferId, Device, DeviceError, Image, Launch, ModuleId, StreamId};
use assay_num::Format;

use super::kernels::{Kept, Kernels};
use super::{DeviceArray, DeviceComparer};
use crate::array::storage;
use crate::band::BAND_BLOCK;
use crate::error::CompareError;

const SOURCE: (&str, &str) = ("bands.ptx", include_str!("../../../../kernels/compare/bands.ptx"));

/// Threads of a group.
const GROUP: u32 = 128;

/// Groups that widen an array.
const WIDENERS: u32 = 512;

/// The most of the worst elements of a block that a group can list.
pub(crate) const MOST_WORST: usize = GROUP as usize;

/// Words of the totals, and bytes of an element's band.
const TOTALS: usize = 9;
const BAND_BYTES: u64 = 24;

/// What the kernels find of a piece.
pub(crate) struct Part {
    pub(crate) finite: u64,
    pub(crate) widest_ulp: f64,
    pub(crate) outside: u64,
    pub(crate) first_outside: Option<u64>,
    pub(crate) other_class: u64,
    pub(crate) first_other_class: Option<u64>,
    pub(crate) zero_would_fail: u64,
    pub(crate) nonzero: u64,
    pub(crate) max_ratio: f64,
    /// In values and in magnitudes, of every output and then the candidate, block by block.
    pub(crate) leans: Vec<Vec<[f64; 2]>>,
    /// Of every block the worst, first ones first: the distance in half widths, the index, the
    /// value and the mean.
    pub(crate) worst: Vec<(f64, u64, f64, f64)>,
}

/// A piece of all outputs on the device, each `stride` values of `f64` behind the one before, the
/// candidate last.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) shuffles: u64,
    pub(crate) stride: u64,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// The module and the buffers of bands.
#[derive(Debug, Default)]
pub(super) struct BandKernels {
    module: Option<ModuleId>,
    words: Kept,
    values: Kept,
    bands: Kept,
    ratios: Kept,
    sums: Kept,
    lists: Kept,
    totals: Kept,
}

impl DeviceComparer {
    /// Sends a piece of an array, the `at`-th one, to where [`DeviceComparer::widen_sent`] finds
    /// it.
    pub(crate) fn send(
        &mut self,
        device: &mut dyn Device,
        format: Format,
        (at, bytes): (u64, &[u8]),
        piece: &Piece,
    ) -> Result<(), CompareError> {
        let apart = apart(format, piece.stride);
        let words = self.bands.words(device, (piece.shuffles + 1) * apart)?;
        Ok(device.write(words, at * apart, bytes)?)
    }

    /// Takes the values of all arrays that were sent.
    pub(crate) fn widen_sent(
        &mut self,
        device: &mut dyn Device,
        format: Format,
        piece: &Piece,
    ) -> Result<(), CompareError> {
        let apart = apart(format, piece.stride);
        let words = self.bands.words(device, (piece.shuffles + 1) * apart)?;
        let all = (piece.shuffles + 1, 0, piece);
        self.bands.widen(device, &mut self.kernels, format, (words, 0, apart), all)
    }

    /// Takes the values of an array of the device, the `at`-th one.
    pub(crate) fn widen_array(
        &mut self,
        device: &mut dyn Device,
        array: &DeviceArray,
        at: u64,
        piece: &Piece,
    ) -> Result<(), CompareError> {
        let format = array.format;
        let mut offset = array.offset + storage(format, piece.first);
        let mut buffer = array.buffer;
        let element = u64::from(format.bits() / 8).max(1);
        if !(device.address(buffer)? + offset).is_multiple_of(element) {
            let words = self.bands.words(device, apart(format, piece.stride))?;
            let bytes = storage(format, piece.count);
            device.copy(StreamId::DEFAULT, (buffer, offset), (words, 0), bytes)?;
            (buffer, offset) = (words, 0);
        }
        let one = (1, at, piece);
        self.bands.widen(device, &mut self.kernels, format, (buffer, offset, 0), one)
    }

    /// Judges a piece, all of whose values were taken.
    pub(crate) fn judge_bands(
        &mut self,
        device: &mut dyn Device,
        format: Format,
        (z, worst): (f64, usize),
        piece: &Piece,
    ) -> Result<Part, CompareError> {
        self.bands.judge(device, format, (z, worst), piece)
    }
}

impl BandKernels {
    /// Room for the words of a piece of all arrays, as they are read.
    fn words(&mut self, device: &mut dyn Device, bytes: u64) -> Result<BufferId, CompareError> {
        Ok(self.words.of(device, bytes)?)
    }

    /// Puts the values of some arrays, `bytes` apart, behind the first `done` outputs of a piece.
    fn widen(
        &mut self,
        device: &mut dyn Device,
        kernels: &mut Kernels,
        format: Format,
        (words, offset, bytes): (BufferId, u64, u64),
        (arrays, done, piece): (u64, u64, &Piece),
    ) -> Result<(), CompareError> {
        let values = self.values.of(device, (piece.shuffles + 1) * piece.stride * 8)?;
        let (module, symbol) = kernels.widener(device, format)?;
        let [table, layout] = kernels.layout(device, format)?;
        let arguments = vec![
            Argument::BufferOffset(words, offset),
            Argument::u64(bytes),
            table,
            layout,
            Argument::u64(piece.count),
            Argument::BufferOffset(values, done * piece.stride * 8),
            Argument::u64(piece.stride),
        ];
        let groups = piece.count.div_ceil(u64::from(GROUP)).clamp(1, u64::from(WIDENERS)) as u32;
        launch(device, (module, symbol), [groups, arrays as u32], arguments)?;
        Ok(())
    }

    /// Judges a piece whose values are all there.
    fn judge(
        &mut self,
        device: &mut dyn Device,
        format: Format,
        (z, worst): (f64, usize),
        piece: &Piece,
    ) -> Result<Part, CompareError> {
        let worst = worst.min(MOST_WORST) as u64;
        let blocks = piece.count.div_ceil(BAND_BLOCK);
        let outputs = piece.shuffles + 1;
        let module = self.module(device)?;
        let values = self.values.of(device, outputs * piece.stride * 8)?;
        let bands = self.bands.of(device, piece.count * BAND_BYTES)?;
        let ratios = self.ratios.of(device, piece.count * 8)?;
        let sums = self.sums.of(device, outputs * blocks * 16)?;
        let lists = self.lists.of(device, (blocks * worst * 32).max(1))?;
        let totals = self.totals.of(device, TOTALS as u64 * 8)?;
        device.fill(StreamId::DEFAULT, totals, 0, TOTALS as u64 * 8, 0)?;
        let all = [
            Argument::Buffer(values),
            Argument::u64(piece.stride),
            Argument::u32(piece.shuffles as u32),
            Argument::u64(piece.count),
        ];
        let mut arguments = all.to_vec();
        arguments.extend(steps(format));
        arguments.extend([Argument::Buffer(bands), Argument::Buffer(totals)]);
        let groups = piece.count.div_ceil(u64::from(GROUP)) as u32;
        launch(device, (module, "band_spread"), [groups, 1], arguments)?;
        let mut arguments = all.to_vec();
        arguments.extend([
            Argument::f64(z),
            Argument::u64(piece.first),
            Argument::u32(worst as u32),
        ]);
        arguments.extend([bands, ratios, sums, lists, totals].map(Argument::Buffer));
        launch(device, (module, "band_judge"), [blocks as u32, outputs as u32], arguments)?;
        let read = |device: &mut dyn Device, buffer, words: u64| -> Result<Vec<u64>, DeviceError> {
            let mut bytes = vec![0; words as usize * 8];
            device.read(buffer, 0, &mut bytes)?;
            Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
        };
        let totals = read(device, totals, TOTALS as u64)?;
        let sums = read(device, sums, outputs * blocks * 2)?;
        let lists = read(device, lists, blocks * worst * 4)?;
        Ok(part(&totals, (&sums, blocks as usize), &lists))
    }

    fn module(&mut self, device: &mut dyn Device) -> Result<ModuleId, DeviceError> {
        if let Some(module) = self.module {
            return Ok(module);
        }
        let module = device.load(&Image::ptx(SOURCE.0, SOURCE.1))?;
        self.module = Some(module);
        Ok(module)
    }
}

fn part(totals: &[u64], (sums, blocks): (&[u64], usize), lists: &[u64]) -> Part {
    let word = |at: usize| totals.get(at).copied().unwrap_or_default();
    // Indices are kept as complements, of which 0 is none.
    let index = |at: usize| Some(!word(at)).filter(|&index| index != u64::MAX);
    let pairs: Vec<[f64; 2]> =
        sums.as_chunks::<2>().0.iter().map(|pair| pair.map(f64::from_bits)).collect();
    let worst = lists.as_chunks::<4>().0.iter().filter(|entry| entry[0] > 0);
    let entry = |&[ratio, index, value, mean]: &[u64; 4]| {
        (f64::from_bits(ratio), index, f64::from_bits(value), f64::from_bits(mean))
    };
    Part {
        finite: word(0),
        widest_ulp: f64::from_bits(word(1)),
        outside: word(2),
        first_outside: index(3),
        other_class: word(4),
        first_other_class: index(5),
        zero_would_fail: word(6),
        nonzero: word(7),
        max_ratio: f64::from_bits(word(8)),
        leans: pairs.chunks(blocks.max(1)).map(<[_]>::to_vec).collect(),
        worst: worst.map(entry).collect(),
    }
}

/// What the steps of a format are made of.
fn steps(format: Format) -> [Argument; 5] {
    if !format.is_float() {
        return [
            Argument::u32(0),
            Argument::f64(0.0),
            Argument::f64(0.0),
            Argument::f64(0.0),
            Argument::f64(0.0),
        ];
    }
    [
        Argument::u32(1),
        Argument::f64(format.min_normal()),
        Argument::f64(format.max_finite()),
        Argument::f64(format.unit_roundoff()),
        Argument::f64(format.min_subnormal()),
    ]
}

fn launch(
    device: &mut dyn Device,
    (module, symbol): (ModuleId, &str),
    [x, y]: [u32; 2],
    arguments: Vec<Argument>,
) -> Result<(), DeviceError> {
    let launch =
        Launch { grid: [x, y, 1], block: [GROUP, 1, 1], arguments, ..Launch::new(module, symbol) };
    device.launch(StreamId::DEFAULT, &launch).map(drop)
}

/// Bytes from one array's piece to the next one's, so that each starts at a multiple of 16.
fn apart(format: Format, elements: u64) -> u64 {
    storage(format, elements).next_multiple_of(16)
}
