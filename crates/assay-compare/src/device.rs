//! Arrays in a device's memory, compared where they lie.
//!
//! The kernel reads both arrays once and gives the counts and the sums of the CPU's path, bit for
//! bit. Formats that it does not know, and arrays that are not aligned for it, are read back and
//! compared here.

use assay_device::{Argument, BufferId, Device, Image, Launch, ModuleId, StreamId};
use assay_num::Format;
use assay_record::Comparison;

use crate::array::{element_count, storage};
use crate::compare::{Options, Plan, compare_sources};
use crate::counts::{BLOCK, Counts, HALVES};
use crate::error::CompareError;
use crate::judge::{Seen, judge};
use crate::scan::{BlockResult, Rules};
use crate::source::{Source, SourceError};

const PTX: &str = include_str!("../../../kernels/compare/compare.ptx");

/// Threads of a block of the kernel.
const GROUP: u32 = 128;

/// Bytes of one block's result: three sums, a distance, an error.
const RESULT_BYTES: usize = 40;

/// Where the counts lie; the kernel has the same list.
mod place {
    use crate::counts::HALVES;

    pub(super) const CLASSES: usize = 0;
    pub(super) const HISTOGRAM: usize = 16;
    pub(super) const HALF: usize = HISTOGRAM + 65;
    pub(super) const ABOVE: usize = HALF + HALVES;
    pub(super) const MAX_STEPS: usize = ABOVE + 9;
    pub(super) const FIRST_DIFFERENT: usize = MAX_STEPS + 1;
    pub(super) const FIRST_OUTSIDE: usize = MAX_STEPS + 2;
    pub(super) const ALL: usize = MAX_STEPS + 3;
}

/// An array in a device's buffer, in row-major order without gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceArray {
    /// The buffer.
    pub buffer: BufferId,
    /// Where in it the array starts, in bytes.
    pub offset: u64,
    /// The format of the elements.
    pub format: Format,
    /// The size of every axis.
    pub shape: Vec<u64>,
}

/// The comparison, loaded on one device.
#[derive(Debug)]
pub struct DeviceComparer {
    module: ModuleId,
    totals: BufferId,
    /// Room for the results of blocks, and how many fit.
    results: Option<(BufferId, u64)>,
}

impl DeviceComparer {
    /// Loads the kernel.
    ///
    /// # Errors
    /// Whatever the device says.
    pub fn new(device: &mut dyn Device) -> Result<DeviceComparer, CompareError> {
        let module = device.load(&Image::ptx("compare.ptx", PTX))?;
        let totals = device.allocate_bytes(place::ALL as u64 * 8)?;
        Ok(DeviceComparer { module, totals, results: None })
    }

    /// Compares two arrays of the device.
    ///
    /// # Errors
    /// As [`crate::compare`], and whatever the device says.
    pub fn compare(
        &mut self,
        device: &mut dyn Device,
        reference: &DeviceArray,
        candidate: &DeviceArray,
        options: &Options,
    ) -> Result<Comparison, CompareError> {
        let mut one = DeviceSource { device: None, array: reference };
        let other = DeviceSource { device: None, array: candidate };
        let plan = Plan::new(&one, &other, options)?;
        let aligned = [reference, candidate].into_iter().try_fold(true, |all, array| {
            let address = device.address(array.buffer)? + array.offset;
            Ok::<bool, CompareError>(all && address.is_multiple_of(16))
        })?;
        // So near to 1 the kernel's one comparison with `no_zero` may be wrong.
        let plain = !(0.999..1.0).contains(&options.tolerance.rtol);
        let symbol =
            symbol(plan.rules.format).filter(|_| aligned && plain && plan.rounded_from.is_none());
        let Some(symbol) = symbol.filter(|_| plan.elements > 0) else {
            let bytes = read_all(device, candidate)?;
            one.device = Some(device);
            let view = crate::ArrayView::new(candidate.format, &bytes, &candidate.shape)?;
            return compare_sources(&mut one, &mut view.clone(), options);
        };
        let mut seen = Seen::new(options.worst);
        let arrays = (reference, candidate);
        self.launch(device, symbol, arrays, &plan)?;
        self.collect(device, arrays, &plan, &mut seen)?;
        Ok(judge(&plan, options, &seen))
    }

    /// Starts the kernel over all elements; returns at once where the device does.
    fn launch(
        &mut self,
        device: &mut dyn Device,
        symbol: &str,
        (reference, candidate): (&DeviceArray, &DeviceArray),
        plan: &Plan,
    ) -> Result<(), CompareError> {
        let blocks = plan.elements.div_ceil(BLOCK as u64);
        let results = self.room(device, blocks)?;
        device.write(self.totals, 0, &empty_totals())?;
        let resident = device.occupancy(self.module, symbol, GROUP, 0)?.unwrap_or(4);
        let multiprocessors = u64::from(device.facts().multiprocessors.max(1));
        let grid = blocks.min(multiprocessors * u64::from(resident.max(1)));
        let tolerance = &plan.rules.tolerance;
        let float = |value: f64| Argument::Bytes(value.to_le_bytes().to_vec());
        let arguments = vec![
            Argument::BufferOffset(reference.buffer, reference.offset),
            Argument::BufferOffset(candidate.buffer, candidate.offset),
            Argument::u64(plan.elements),
            float(tolerance.atol),
            float(tolerance.rtol),
            float(tolerance.zero_atol),
            Argument::u64(tolerance.max_ulp),
            Argument::u32(u32::from(plan.rules.equal_nan)),
            Argument::f32(below(tolerance.atol.min(tolerance.zero_atol))),
            Argument::f32(below(tolerance.rtol)),
            Argument::f32(no_zero(&plan.rules)),
            Argument::Buffer(self.totals),
            Argument::Buffer(results),
        ];
        let launch = Launch {
            grid: [grid as u32, 1, 1],
            block: [GROUP, 1, 1],
            arguments,
            ..Launch::new(self.module, symbol)
        };
        device.launch(StreamId::DEFAULT, &launch)?;
        Ok(())
    }

    fn room(&mut self, device: &mut dyn Device, blocks: u64) -> Result<BufferId, CompareError> {
        if let Some((buffer, room)) = self.results {
            if room >= blocks {
                return Ok(buffer);
            }
            device.free(buffer)?;
            self.results = None;
        }
        let buffer = device.allocate_bytes(blocks * RESULT_BYTES as u64)?;
        self.results = Some((buffer, blocks));
        Ok(buffer)
    }

    fn collect(
        &self,
        device: &mut dyn Device,
        (reference, candidate): (&DeviceArray, &DeviceArray),
        plan: &Plan,
        seen: &mut Seen,
    ) -> Result<(), CompareError> {
        let mut totals = vec![0; place::ALL * 8];
        device.read(self.totals, 0, &mut totals)?;
        seen.counts = counts_of(&totals, plan.elements);
        let blocks = plan.elements.div_ceil(BLOCK as u64) as usize;
        let mut bytes = vec![0; blocks * RESULT_BYTES];
        if let Some((results, _)) = self.results {
            device.read(results, 0, &mut bytes)?;
        }
        let results: Vec<BlockResult> = bytes.as_chunks().0.iter().map(result_of).collect();
        for result in &results {
            seen.sums.push(result.sums);
            seen.max_error = seen.max_error.max(result.max_error);
        }
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for block in seen.worst.choose(&results) {
            let first = (block * BLOCK) as u64;
            let count = (plan.elements - first).min(BLOCK as u64);
            read_part(device, reference, (first, count), &mut one)?;
            read_part(device, candidate, (first, count), &mut other)?;
            seen.worst.look(&plan.rules, (&one, &other), (first, count as usize));
        }
        Ok(())
    }
}

/// A buffer without a need for poison.
trait AllocateBytes {
    fn allocate_bytes(&mut self, bytes: u64) -> Result<BufferId, CompareError>;
}

impl AllocateBytes for dyn Device + '_ {
    fn allocate_bytes(&mut self, bytes: u64) -> Result<BufferId, CompareError> {
        Ok(self.allocate(&assay_device::Allocation {
            poison: 0,
            ..assay_device::Allocation::new(bytes)
        })?)
    }
}

/// The kernel of a format, where there is one.
fn symbol(format: Format) -> Option<&'static str> {
    match format {
        Format::F32 => Some("compare_f32"),
        Format::F16 => Some("compare_f16"),
        Format::Bf16 => Some("compare_bf16"),
        Format::F64 => Some("compare_f64"),
        _ => None,
    }
}

/// An `f32` that lies so far below a part of a tolerance that one rounded comparison with it is
/// never wrong.
fn below(value: f64) -> f32 {
    let lower = value * (1.0 - assay_num::power_of_two(-20));
    let rounded = lower as f32;
    if f64::from(rounded) > lower { rounded.next_down().min(f32::MAX) } else { rounded }
}

/// The least positive `f32` in whose place a zero is outside the tolerance; infinity if none is.
///
/// With an `rtol` well below 1, what is left of a magnitude grows with it, so there is one border.
fn no_zero(rules: &Rules) -> f32 {
    let fails = |bits: u32| {
        let reference = f64::from(f32::from_bits(bits));
        reference > rules.allowed(reference)
    };
    let (mut low, mut high) = (0, f32::MAX.to_bits());
    if !fails(high) {
        return f32::INFINITY;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fails(middle) { high = middle } else { low = middle }
    }
    f32::from_bits(high)
}

fn empty_totals() -> Vec<u8> {
    let mut words = vec![0u64; place::ALL];
    words[place::FIRST_DIFFERENT] = u64::MAX;
    words[place::FIRST_OUTSIDE] = u64::MAX;
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn counts_of(bytes: &[u8], elements: u64) -> Counts {
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let wide = |low: usize| u128::from(words[low]) + (u128::from(words[low + 1]) << 32);
    let index = |at: usize| (words[at] != u64::MAX).then_some(words[at]);
    let mut counts = Counts {
        elements,
        above: words[place::ABOVE],
        zero_signs: words[place::ABOVE + 1],
        zeroed: words[place::ABOVE + 2],
        outside: words[place::ABOVE + 3],
        zero_would_fail: words[place::ABOVE + 4],
        ulp_sum: wide(place::ABOVE + 5),
        ulp_sum_above: wide(place::ABOVE + 7),
        max_ulp: words[place::MAX_STEPS],
        first_different: index(place::FIRST_DIFFERENT),
        first_outside: index(place::FIRST_OUTSIDE),
        ..Counts::default()
    };
    for (at, class) in counts.classes.iter_mut().flatten().enumerate() {
        *class = words[place::CLASSES + at];
    }
    counts.histogram.copy_from_slice(&words[place::HISTOGRAM..place::HALF]);
    counts.halves.copy_from_slice(&words[place::HALF..place::HALF + HALVES]);
    // The kernel counts errors of zero among the smallest.
    counts.halves[0] = counts.halves[0].saturating_sub(counts.histogram[0]);
    counts
}

fn result_of(bytes: &[u8; RESULT_BYTES]) -> BlockResult {
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
        word
    };
    BlockResult {
        sums: [0, 1, 2].map(|at| f64::from_le_bytes(word(at))),
        max_key: u64::from_le_bytes(word(3)),
        max_error: f64::from_le_bytes(word(4)),
    }
}

fn read_part(
    device: &mut dyn Device,
    array: &DeviceArray,
    (first, count): (u64, u64),
    out: &mut Vec<u8>,
) -> Result<(), CompareError> {
    out.resize(storage(array.format, count) as usize, 0);
    device.read(array.buffer, array.offset + storage(array.format, first), out)?;
    Ok(())
}

fn read_all(device: &mut dyn Device, array: &DeviceArray) -> Result<Vec<u8>, CompareError> {
    let elements = element_count(&array.shape)?;
    let mut bytes = Vec::new();
    read_part(device, array, (0, elements), &mut bytes)?;
    Ok(bytes)
}

/// A device's array as a source; without a device only its shape and format can be asked for.
struct DeviceSource<'a> {
    device: Option<&'a mut dyn Device>,
    array: &'a DeviceArray,
}

impl Source for DeviceSource<'_> {
    fn format(&self) -> Format {
        self.array.format
    }

    fn shape(&self) -> &[u64] {
        &self.array.shape
    }

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        let Some(device) = self.device.as_deref_mut() else {
            return Err(SourceError::Broken("no device was given".to_owned()));
        };
        out.resize(storage(self.array.format, count) as usize, 0);
        let offset = self.array.offset + storage(self.array.format, first);
        Ok(device.read(self.array.buffer, offset, out)?)
    }
}
