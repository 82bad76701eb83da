//! Bands on a device: the outputs lie or are sent there and are judged there, with the counts, the
//! sums and the verdict of the CPU's path.

use assay_device::Device;
use assay_num::Format;
use assay_record::Comparison;

use super::spread::{Totals, width};
use super::stream::{PIECE, break_off, check_all, decoded, fits, name_of};
use super::verdict::{Measured, Seen, Worst};
use super::{BAND_BLOCK, BandOptions, check, outputs};
use crate::array::{Tensor, element_count};
use crate::compare::{Options, Side, complete};
use crate::device::{DeviceArray, DeviceComparer, MOST_WORST, Part, Piece};
use crate::error::CompareError;
use crate::operation::Operation;
use crate::shuffle::Shuffle;
use crate::source::{Source, SourceError};

/// Bytes of values that a piece of arrays of the device may take there.
const MOST_BYTES: u64 = 1 << 29;

/// The most elements of such a piece.
const MOST_ELEMENTS: u64 = 1 << 20;

/// Where the bands come from.
type Origin<'a> = (&'a str, Option<u64>);

/// Why a piece was not judged.
enum Stop {
    Read(String, SourceError),
    Other(CompareError),
}

impl From<CompareError> for Stop {
    fn from(error: CompareError) -> Stop {
        Stop::Other(error)
    }
}

impl Stop {
    /// Where nothing was judged before.
    fn error(self) -> CompareError {
        match self {
            Stop::Read(what, source) => {
                CompareError::Band(format!("{what} cannot be read: {source}"))
            }
            Stop::Other(error) => error,
        }
    }

    fn reason(&self) -> String {
        match self {
            Stop::Read(what, source) => format!("{what} cannot be read further: {source}"),
            Stop::Other(error) => format!("the device could not go on: {error}"),
        }
    }
}

impl DeviceComparer {
    /// As [`crate::compare_shuffled`], on a device, with the same result.
    ///
    /// Where an array ends early or the device is lost, what was judged until then is the result,
    /// which says so.
    ///
    /// # Errors
    /// As [`crate::compare_shuffled`], whatever the device says before anything is judged, and if
    /// more than 128 of the worst elements are asked for.
    pub fn compare_shuffled(
        &mut self,
        device: &mut dyn Device,
        (reference, candidate): (&mut dyn Source, &mut dyn Source),
        shuffled: &mut [Box<dyn Source>],
        (options, bands): (&Options, &BandOptions),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Comparison, CompareError> {
        let pair = (reference, candidate);
        let origin = ("given", None);
        self.judge_sources(device, pair, (shuffled, origin), (options, bands), progress)
    }

    /// Runs a reference here on its inputs as they are and on every shuffle of them, and judges a
    /// candidate on a device, as [`super::Bands::judge`] does.
    ///
    /// # Errors
    /// As [`super::Bands::measure`] and [`DeviceComparer::compare_shuffled`].
    pub fn compare_with_shuffles_of(
        &mut self,
        device: &mut dyn Device,
        (reference, inputs): (&mut Operation<'_>, &[Tensor]),
        candidate: &mut dyn Source,
        shuffle: &Shuffle<'_>,
        (options, bands): (&Options, &BandOptions),
    ) -> Result<Comparison, CompareError> {
        let (mut plain, outputs) = outputs(reference, inputs, shuffle, bands)?;
        let boxed = outputs.into_iter().map(|output| Box::new(output) as Box<dyn Source>);
        let mut shuffled: Vec<Box<dyn Source>> = boxed.collect();
        let origin = (shuffle.name(), Some(bands.seed));
        let pair: (&mut dyn Source, &mut dyn Source) = (&mut plain, candidate);
        self.judge_sources(device, pair, (&mut shuffled, origin), (options, bands), &mut |_| {})
    }

    /// As [`DeviceComparer::compare_shuffled`] of arrays that are on the device.
    ///
    /// # Errors
    /// As [`DeviceComparer::compare`], if there are fewer than 4 shuffled outputs or one has
    /// another shape or format than the candidate, and if more than 128 of the worst elements are
    /// asked for.
    pub fn compare_shuffled_arrays(
        &mut self,
        device: &mut dyn Device,
        (reference, candidate): (&DeviceArray, &DeviceArray),
        shuffled: &[DeviceArray],
        (options, bands): (&Options, &BandOptions),
    ) -> Result<Comparison, CompareError> {
        check_worst(options)?;
        check(&BandOptions { shuffles: shuffled.len() as u32, ..bands.clone() })?;
        for (at, array) in shuffled.iter().enumerate() {
            fits(at, (&array.shape, array.format), (&candidate.shape, candidate.format), false)?;
        }
        let mut comparison = self.compare(device, reference, candidate, options)?;
        let most = MOST_BYTES / 8 / (shuffled.len() as u64 + 1);
        let most = (most - most % BAND_BLOCK).clamp(BAND_BLOCK, MOST_ELEMENTS);
        let format = candidate.format;
        let mut judging = Judging::new(shuffled.len(), &comparison, (options, bands));
        let elements = element_count(&candidate.shape)?;
        judging.pieces(elements, most, &mut comparison, &mut |piece, rule| {
            for (at, array) in shuffled.iter().chain([candidate]).enumerate() {
                self.widen_array(device, array, at as u64, piece)?;
            }
            Ok(self.judge_bands(device, format, rule, piece)?)
        })?;
        Ok(judging.decide(comparison, ("given", None), bands))
    }

    fn judge_sources(
        &mut self,
        device: &mut dyn Device,
        (reference, candidate): (&mut dyn Source, &mut dyn Source),
        (shuffled, origin): (&mut [Box<dyn Source>], Origin<'_>),
        (options, bands): (&Options, &BandOptions),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Comparison, CompareError> {
        check_worst(options)?;
        check_all(candidate, shuffled, (options, bands))?;
        let pair: (&mut dyn Source, &mut dyn Source) = (reference, &mut *candidate);
        let mut comparison =
            self.compare_sources(device, pair, options, &mut |done| progress(done / 2))?;
        let elements = comparison.compared;
        let mut judging = Judging::new(shuffled.len(), &comparison, (options, bands));
        judging.pieces(elements, PIECE, &mut comparison, &mut |piece, rule| {
            let part = self.sent(device, candidate, shuffled, (piece, rule))?;
            progress(elements.midpoint(piece.first + piece.count));
            Ok(part)
        })?;
        Ok(judging.decide(comparison, origin, bands))
    }

    /// Sends a piece of all arrays and judges it.
    fn sent(
        &mut self,
        device: &mut dyn Device,
        candidate: &mut dyn Source,
        shuffled: &mut [Box<dyn Source>],
        (piece, rule): (&Piece, (f64, usize)),
    ) -> Result<Part, Stop> {
        let format = candidate.format();
        for (at, source) in shuffled.iter_mut().enumerate() {
            let read = words(&mut **source, format, piece);
            let bytes = read.map_err(|error| Stop::Read(name_of(at), error))?;
            self.send(device, format, (at as u64, &bytes), piece)?;
        }
        let read = words(candidate, format, piece);
        let bytes = read.map_err(|error| Stop::Read(format!("the {}", Side::Candidate), error))?;
        self.send(device, format, (piece.shuffles, &bytes), piece)?;
        self.widen_sent(device, format, piece)?;
        Ok(self.judge_bands(device, format, rule, piece)?)
    }
}

/// What all pieces give together.
struct Judging {
    seen: Seen,
    totals: Totals,
    shuffles: usize,
    rule: (f64, usize),
}

/// Judges a piece by the half widths of its bands, and lists so many of the worst.
type JudgePiece<'a> = dyn FnMut(&Piece, (f64, usize)) -> Result<Part, Stop> + 'a;

impl Judging {
    fn new(
        shuffles: usize,
        comparison: &Comparison,
        (options, bands): (&Options, &BandOptions),
    ) -> Judging {
        let z = width(shuffles, comparison.elements, bands.false_alarm);
        Judging {
            seen: Seen::new(z, options.worst),
            totals: Totals::new(shuffles),
            shuffles,
            rule: (z, options.worst),
        }
    }

    fn pieces(
        &mut self,
        elements: u64,
        stride: u64,
        comparison: &mut Comparison,
        judge: &mut JudgePiece<'_>,
    ) -> Result<(), CompareError> {
        for first in (0..elements).step_by(stride as usize) {
            let count = stride.min(elements - first);
            let piece = Piece { shuffles: self.shuffles as u64, stride, first, count };
            match judge(&piece, self.rule) {
                Ok(part) => self.add(&part, count),
                Err(stop) if first == 0 => return Err(stop.error()),
                Err(stop) => {
                    break_off(comparison, &stop.reason(), first);
                    break;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, part: &Part, count: u64) {
        let Judging { seen, totals, shuffles, .. } = self;
        totals.finite += part.finite;
        totals.widest_ulp = totals.widest_ulp.max(part.widest_ulp);
        for (at, blocks) in part.leans.iter().enumerate() {
            let is_shuffle = at < *shuffles;
            let lean = if is_shuffle { &mut totals.leans[at] } else { &mut seen.lean };
            lean.add_blocks(blocks.iter().map(|sums| sums[0]));
            let outward = if is_shuffle { &mut totals.outward[at] } else { &mut seen.outward };
            outward.add_blocks(blocks.iter().map(|sums| sums[1]));
        }
        seen.elements += count;
        seen.outside += part.outside;
        seen.first_outside = seen.first_outside.or(part.first_outside);
        seen.other_class += part.other_class;
        seen.first_other_class = seen.first_other_class.or(part.first_other_class);
        seen.zero_would_fail += part.zero_would_fail;
        seen.nonzero += part.nonzero;
        seen.max_ratio = seen.max_ratio.max(part.max_ratio);
        for &(ratio, index, value, mean) in &part.worst {
            seen.keep(Worst { ratio, index, value, mean });
        }
    }

    fn decide(
        &self,
        comparison: Comparison,
        origin: Origin<'_>,
        bands: &BandOptions,
    ) -> Comparison {
        let measured = Measured {
            shuffle: origin.0,
            shuffles: self.shuffles as u32,
            seed: origin.1,
            leans: self.totals.leans(bands.false_alarm),
            finite: self.totals.finite,
            widest_ulp: self.totals.widest_ulp,
        };
        self.seen.decide(comparison, &measured)
    }
}

/// Words of a source, rounded to a format.
fn words(source: &mut dyn Source, format: Format, piece: &Piece) -> Result<Vec<u8>, SourceError> {
    let place = (piece.first, piece.count);
    if source.format() != format {
        return Ok(format.encode_slice(&decoded(source, format, place)?));
    }
    let mut bytes = Vec::new();
    source.read(place.0, place.1, &mut bytes)?;
    complete(format, place.1, &bytes)?;
    Ok(bytes)
}

fn check_worst(options: &Options) -> Result<(), CompareError> {
    if options.worst <= MOST_WORST {
        return Ok(());
    }
    let reason = format!(
        "a device names at most {MOST_WORST} of the worst elements by their bands; ask for no \
             more, or compare on the CPU"
    );
    Err(CompareError::Band(reason))
}
