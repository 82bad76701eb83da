//! Arrays in a device's memory, compared where they lie.
//!
//! The kernels read both arrays once, add up the counts and the sums of the CPU's path, bit for
//! bit, and find the worst elements; one short report comes back. Only a reference that must be
//! rounded first, and arrays that are not aligned to their own elements, are read back and compared
//! here.

mod bands;
mod bounds;
mod kernels;
mod report;

use assay_device::{BufferId, Device, DeviceError};
use assay_num::Format;
use assay_record::Comparison;

use crate::array::{element_count, storage};
use crate::compare::{Options, Plan, compare_sources};
use crate::counts::BLOCK;
use crate::error::CompareError;
use crate::judge::{Seen, judge};
use crate::source::{Source, SourceError};
use bands::BandKernels;
pub(crate) use bands::{MOST_WORST, Part, Piece};
use kernels::{Kept, Kernels, Pair};

/// Blocks of a piece that is sent to the device, 2^23 elements.
const PIECE_BLOCKS: u64 = 512;

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

/// The comparison, loaded on one device. It keeps what it needs there from call to call; all of it
/// goes with the device.
#[derive(Debug)]
pub struct DeviceComparer {
    kernels: Kernels,
    /// Blocks of a piece: a power of two, so that the sums of whole pieces are nodes of the tree.
    piece_blocks: u64,
    /// Room for a piece of each array.
    pieces: [Kept; 2],
    bands: BandKernels,
}

impl DeviceComparer {
    /// Loads the kernels of the formats that are compared most; others follow when they are
    /// needed.
    ///
    /// # Errors
    /// Whatever the device says.
    pub fn new(device: &mut dyn Device) -> Result<DeviceComparer, CompareError> {
        let kernels = Kernels::new(device)?;
        Ok(DeviceComparer {
            kernels,
            piece_blocks: PIECE_BLOCKS,
            pieces: Default::default(),
            bands: BandKernels::default(),
        })
    }

    /// Sends at least so many blocks of [`crate::BLOCK`] elements at a time: the next power of two.
    /// By default 512.
    #[must_use]
    pub fn with_pieces_of(self, blocks: u32) -> DeviceComparer {
        DeviceComparer { piece_blocks: u64::from(blocks).next_power_of_two(), ..self }
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
        let one = DeviceSource { device: None, array: reference };
        let other = DeviceSource { device: None, array: candidate };
        let plan = Plan::new(&one, &other, options)?;
        let bytes = u64::from(plan.rules.format.bits() / 8).max(1);
        let mut aligned = true;
        for array in [reference, candidate] {
            aligned &= (device.address(array.buffer)? + array.offset).is_multiple_of(bytes);
        }
        if !aligned || plan.rounded_from.is_some() || plan.elements == 0 {
            return on_the_host(device, reference, candidate, options);
        }
        let mut seen = Seen::new(options.worst);
        let place = |array: &DeviceArray| (array.buffer, array.offset);
        let pair = Pair {
            reference: place(reference),
            candidate: place(candidate),
            elements: plan.elements,
        };
        self.kernels.compare(device, &plan.rules, &pair, options.worst)?;
        self.kernels.collect(device, &plan.rules, (&pair, 0), options.worst, &mut seen)?;
        Ok(judge(&plan, options, &seen))
    }

    /// Compares two arrays that are read in pieces, each of them on the device; the result is that
    /// of [`crate::compare_sources`]. `progress` is told how many elements are done.
    ///
    /// Where reading breaks off, or the device is lost, what was compared until then is the
    /// result, which says so.
    ///
    /// # Errors
    /// As [`crate::compare_sources`], and whatever the device says before anything is compared.
    pub fn compare_sources(
        &mut self,
        device: &mut dyn Device,
        (reference, candidate): (&mut dyn Source, &mut dyn Source),
        options: &Options,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Comparison, CompareError> {
        let plan = Plan::new(reference, candidate, options)?;
        let mut seen = Seen::new(options.worst);
        let mut buffers = (Vec::new(), Vec::new());
        while seen.counts.elements < plan.elements {
            let first = seen.counts.elements;
            let mut count = (self.piece_blocks * BLOCK as u64).min(plan.elements - first);
            let mut read = plan.read(reference, candidate, (first, count), &mut buffers);
            let mut stopped = None;
            if let Err((side, source)) = read {
                // What there is of the piece.
                count = side.readable_of((&*reference, &*candidate), (first, count));
                stopped = Some(CompareError::Read { side, source });
                read = plan.read(reference, candidate, (first, count), &mut buffers);
            }
            if let (Ok(bytes), true) = (read, count > 0) {
                let done = self.piece(device, &plan, bytes, (first, count), options, &mut seen);
                stopped = stopped.or(done.err());
            }
            match stopped {
                None => progress(seen.counts.elements),
                Some(error) if seen.counts.elements == 0 => return Err(error),
                Some(error) => {
                    seen.broke_off = Some(broke_off(&error));
                    break;
                }
            }
        }
        Ok(judge(&plan, options, &seen))
    }

    fn piece(
        &mut self,
        device: &mut dyn Device,
        plan: &Plan,
        (one, other): (&[u8], &[u8]),
        (first, count): (u64, u64),
        options: &Options,
        seen: &mut Seen,
    ) -> Result<(), CompareError> {
        let elements = (self.piece_blocks * BLOCK as u64).min(plan.elements);
        let bytes = storage(plan.rules.format, elements);
        let [reference, candidate] = &mut self.pieces;
        let (reference, candidate) = (reference.of(device, bytes)?, candidate.of(device, bytes)?);
        device.write(reference, 0, one)?;
        device.write(candidate, 0, other)?;
        let pair = Pair { reference: (reference, 0), candidate: (candidate, 0), elements: count };
        self.kernels.compare(device, &plan.rules, &pair, options.worst)?;
        self.kernels.collect(device, &plan.rules, (&pair, first), options.worst, seen)
    }
}

/// Why a comparison ended before the arrays did.
fn broke_off(error: &CompareError) -> String {
    match error {
        CompareError::Read { side, source } => side.broke_off(source),
        other => format!("the device could not go on: {other}"),
    }
}

/// Reads arrays back and compares them here.
fn on_the_host(
    device: &mut dyn Device,
    reference: &DeviceArray,
    candidate: &DeviceArray,
    options: &Options,
) -> Result<Comparison, CompareError> {
    let mut bytes = Vec::new();
    let elements = element_count(&candidate.shape)?;
    read_part(device, candidate, (0, elements), &mut bytes)?;
    let mut view = crate::ArrayView::new(candidate.format, &bytes, &candidate.shape)?;
    let mut one = DeviceSource { device: Some(device), array: reference };
    compare_sources(&mut one, &mut view, options)
}

fn read_part(
    device: &mut dyn Device,
    array: &DeviceArray,
    (first, count): (u64, u64),
    out: &mut Vec<u8>,
) -> Result<(), DeviceError> {
    out.resize(storage(array.format, count) as usize, 0);
    device.read(array.buffer, array.offset + storage(array.format, first), out)
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
        match self.device.as_deref_mut() {
            Some(device) => Ok(read_part(device, self.array, (first, count), out)?),
            None => Err(SourceError::Broken("no device was given".to_owned())),
        }
    }
}
