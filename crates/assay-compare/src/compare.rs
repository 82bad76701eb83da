//! The comparison itself: pieces of both arrays, one after the other, over all cores.

use std::fmt;

use assay_num::Format;
use assay_record::{Comparison, Tolerance};
use rayon::prelude::*;

use crate::ahead::each_piece;
use crate::array::{ArrayView, element_count, storage};
use crate::counts::{BLOCK, Counts, LANES};
use crate::error::CompareError;
use crate::judge::{Seen, judge};
use crate::scan::{BlockResult, Largest, Rules, Scan};
use crate::source::{Source, SourceError};
use crate::tree::Tree;
use crate::worst::Worst;

/// Blocks that are read at a time, at least and at most: so many for each thread between them.
const PIECE_BLOCKS: [usize; 2] = [64, 512];
const PIECE_BLOCKS_A_THREAD: usize = 2 * TASK_BLOCKS;

/// Blocks that one task takes, one after the other.
const TASK_BLOCKS: usize = 4;

/// How to compare.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// What is allowed; by default nothing but equality.
    pub tolerance: Tolerance,
    /// Whether NaN may stand where the reference has NaN.
    pub equal_nan: bool,
    /// Whether zeros of either sign are the same.
    pub equal_zeros: bool,
    /// Whether a reference of another format is rounded to the candidate's first.
    pub round_reference: bool,
    /// How many of the worst elements to name.
    pub worst: usize,
    /// The difference before the rounding of the output for [`assay_record::OutputFloor`], as a
    /// part of the reference's root mean square; by default the unit roundoff of `f32`.
    pub delta: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tolerance: Tolerance::EXACT,
            equal_nan: false,
            equal_zeros: false,
            round_reference: false,
            worst: 8,
            delta: None,
        }
    }
}

/// One of the two arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// What is right.
    Reference,
    /// What is tested.
    Candidate,
}

impl Side {
    /// How many elements of a piece can be read of this side, whose reading has failed.
    pub(crate) fn readable_of(
        self,
        (reference, candidate): (&dyn Source, &dyn Source),
        (first, count): (u64, u64),
    ) -> u64 {
        let source = match self {
            Side::Reference => reference,
            Side::Candidate => candidate,
        };
        source.readable().map_or(0, |end| end.saturating_sub(first).min(count))
    }

    /// Why a comparison ended before the arrays did.
    pub(crate) fn broke_off(self, source: &SourceError) -> String {
        format!("the {self} cannot be read further: {source}")
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Side::Reference => "reference",
            Side::Candidate => "candidate",
        })
    }
}

/// Compares two arrays in memory.
///
/// # Errors
/// If shapes or formats differ, or a tolerance is no number from 0.
pub fn compare(
    reference: &ArrayView<'_>,
    candidate: &ArrayView<'_>,
    options: &Options,
) -> Result<Comparison, CompareError> {
    compare_sources(&mut reference.clone(), &mut candidate.clone(), options)
}

/// Compares two arrays that are read in pieces.
///
/// Where reading breaks off, what was compared until then is the result, which says so.
///
/// # Errors
/// As [`compare`], and if nothing could be read at all.
pub fn compare_sources(
    reference: &mut dyn Source,
    candidate: &mut dyn Source,
    options: &Options,
) -> Result<Comparison, CompareError> {
    compare_with_progress(reference, candidate, options, &mut |_| {})
}

/// Compares as [`compare_sources`] and says after every piece how many elements are done.
///
/// # Errors
/// As [`compare_sources`].
pub fn compare_with_progress(
    reference: &mut dyn Source,
    candidate: &mut dyn Source,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<Comparison, CompareError> {
    let plan = Plan::new(reference, candidate, options)?;
    let mut seen = Seen::new(options.worst);
    let stopped = each_piece(&plan, reference, candidate, &mut |pair, (first, count)| {
        scan_piece(&plan.rules, pair, first, count, &mut seen);
        progress(seen.counts.elements);
    });
    if let Some((side, source)) = stopped {
        let first = seen.counts.elements;
        let piece = plan.pieces().next().map_or(0, |piece| piece.1);
        let rest = side.readable_of((&*reference, &*candidate), (first, piece));
        let mut buffers = (Vec::new(), Vec::new());
        // What there is of the piece.
        if rest > 0
            && let Ok(pair) = plan.read(reference, candidate, (first, rest), &mut buffers)
        {
            scan_piece(&plan.rules, pair, first, rest, &mut seen);
        }
        if seen.counts.elements == 0 {
            return Err(CompareError::Read { side, source });
        }
        seen.broke_off = Some(side.broke_off(&source));
    }
    Ok(judge(&plan, options, &seen))
}

/// What is known before anything is read.
pub(crate) struct Plan {
    pub(crate) rules: Rules,
    pub(crate) shape: Vec<u64>,
    pub(crate) elements: u64,
    /// The reference's format, where it is rounded.
    pub(crate) rounded_from: Option<Format>,
}

impl Plan {
    pub(crate) fn new(
        reference: &dyn Source,
        candidate: &dyn Source,
        options: &Options,
    ) -> Result<Plan, CompareError> {
        check(&options.tolerance)?;
        if reference.shape() != candidate.shape() {
            return Err(CompareError::Shapes {
                reference: reference.shape().to_vec(),
                candidate: candidate.shape().to_vec(),
            });
        }
        let (from, format) = (reference.format(), candidate.format());
        if from != format && !options.round_reference {
            return Err(CompareError::Formats { reference: from, candidate: format });
        }
        let shape = candidate.shape().to_vec();
        let elements = element_count(&shape)?;
        let Options { tolerance, equal_nan, .. } = *options;
        let rules = Rules { format, tolerance, equal_nan };
        Ok(Plan { rules, shape, elements, rounded_from: (from != format).then_some(from) })
    }

    /// The first element of every piece, and how many it has.
    pub(crate) fn pieces(
        &self,
    ) -> impl ExactSizeIterator<Item = (u64, u64)> + Clone + Send + use<> {
        let [least, most] = PIECE_BLOCKS;
        let blocks = (PIECE_BLOCKS_A_THREAD * rayon::current_num_threads()).clamp(least, most);
        let (elements, piece) = (self.elements, (blocks * BLOCK) as u64);
        let pieces = usize::try_from(elements.div_ceil(piece)).unwrap_or(usize::MAX);
        (0..pieces).map(move |at| {
            let first = at as u64 * piece;
            (first, piece.min(elements - first))
        })
    }

    /// Whether the elements of a side are rounded before they are compared.
    pub(crate) fn rounds(&self, side: Side) -> bool {
        side == Side::Reference && self.rounded_from.is_some()
    }

    /// Reads a piece of one side into a buffer, in the format in which it is compared.
    pub(crate) fn fetch(
        &self,
        side: Side,
        source: &mut dyn Source,
        (first, count): (u64, u64),
        buffer: &mut Vec<u8>,
    ) -> Result<(), SourceError> {
        let format = self.rules.format;
        let from = self.rounded_from.filter(|_| self.rounds(side)).unwrap_or(format);
        source.read(first, count, buffer)?;
        complete(from, count, buffer)?;
        if self.rounds(side) {
            *buffer = rounded(from, format, count, buffer);
        }
        Ok(())
    }

    /// Both pieces, read into the buffers unless they lie in memory.
    pub(crate) fn read<'a>(
        &self,
        reference: &'a mut dyn Source,
        candidate: &'a mut dyn Source,
        (first, count): (u64, u64),
        (one, other): &'a mut (Vec<u8>, Vec<u8>),
    ) -> Result<Pair<'a>, (Side, SourceError)> {
        let format = self.rules.format;
        let from = self.rounded_from.unwrap_or(format);
        let mut one = piece(reference, from, (first, count), one)
            .map_err(|error| (Side::Reference, error))?;
        if self.rounded_from.is_some() {
            *one.1 = rounded(from, format, count, one.0.unwrap_or(one.1));
            one.0 = None;
        }
        let other = piece(candidate, format, (first, count), other)
            .map_err(|error| (Side::Candidate, error))?;
        Ok((one.0.unwrap_or(one.1), other.0.unwrap_or(other.1)))
    }
}

/// The bytes of both sides.
pub(crate) type Pair<'a> = (&'a [u8], &'a [u8]);

/// A piece of one source: where it lies in memory, else in the buffer.
type Piece<'a> = (Option<&'a [u8]>, &'a mut Vec<u8>);

fn piece<'a>(
    source: &'a mut dyn Source,
    format: Format,
    (first, count): (u64, u64),
    buffer: &'a mut Vec<u8>,
) -> Result<Piece<'a>, SourceError> {
    if source.in_memory(first, count).is_none() {
        source.read(first, count, buffer)?;
        complete(format, count, buffer)?;
    }
    let source: &'a dyn Source = source;
    Ok((source.in_memory(first, count), buffer))
}

/// A source that gives other than what was asked for must not shift everything after it.
pub(crate) fn complete(format: Format, count: u64, bytes: &[u8]) -> Result<(), SourceError> {
    let (needed, found) = (storage(format, count), bytes.len() as u64);
    if needed == found {
        return Ok(());
    }
    Err(SourceError::Broken(format!("{needed} bytes were asked for and {found} came")))
}

fn check(tolerance: &Tolerance) -> Result<(), CompareError> {
    let Tolerance { atol, rtol, zero_atol, .. } = *tolerance;
    for (name, value) in [("atol", atol), ("rtol", rtol), ("zero_atol", zero_atol)] {
        if !(value >= 0.0 && value.is_finite()) {
            return Err(CompareError::Tolerance { name, value });
        }
    }
    Ok(())
}

/// A reference in the candidate's format, rounded to nearest even.
fn rounded(from: Format, format: Format, count: u64, bytes: &[u8]) -> Vec<u8> {
    let mut values = from.decode_slice(bytes);
    values.truncate(count as usize);
    format.encode_slice(&values)
}

/// Counts and sums a piece that starts at a multiple of [`BLOCK`].
pub(crate) fn scan_piece(
    rules: &Rules,
    (reference, candidate): (&[u8], &[u8]),
    first: u64,
    count: u64,
    seen: &mut Seen,
) {
    let task_bytes = storage(rules.format, (TASK_BLOCKS * BLOCK) as u64) as usize;
    let tasks = reference.par_chunks(task_bytes).zip(candidate.par_chunks(task_bytes));
    let done: Vec<Scanned> = tasks
        .enumerate()
        .map(|(task, pair)| {
            let from = (task * TASK_BLOCKS * BLOCK) as u64;
            let elements = ((TASK_BLOCKS * BLOCK) as u64).min(count - from);
            scan_task(rules, pair, first + from, elements as usize)
        })
        .collect();
    let mut rows = Vec::new();
    for Scanned { counts, blocks, largest } in done {
        seen.counts.merge(&counts);
        for block in blocks {
            seen.sums.push(block.sums);
            seen.max_error = seen.max_error.max(block.largest.error);
        }
        rows.extend(largest);
    }
    let row_bytes = storage(rules.format, LANES as u64) as usize;
    for row in seen.worst.choose(&rows) {
        let [one, other] = [reference, candidate].map(|bytes| {
            let rest = &bytes[row * row_bytes..];
            &rest[..row_bytes.min(rest.len())]
        });
        let elements = LANES.min(count as usize - row * LANES);
        seen.worst.look(rules, (one, other), (first + (row * LANES) as u64, elements));
    }
}

/// What a task makes of its blocks.
struct Scanned {
    counts: Counts,
    blocks: Vec<BlockResult>,
    /// Of every row.
    largest: Vec<Largest>,
}

fn scan_task(
    rules: &Rules,
    (reference, candidate): (&[u8], &[u8]),
    first: u64,
    elements: usize,
) -> Scanned {
    let mut scan = Scan::new(rules);
    let bytes = storage(rules.format, BLOCK as u64) as usize;
    let blocks = reference.chunks(bytes).zip(candidate.chunks(bytes));
    let blocks = blocks.enumerate().map(|(at, pair)| {
        let from = at * BLOCK;
        let present = BLOCK.min(elements - from);
        scan.block(pair, (first + from as u64, present))
    });
    let blocks = blocks.collect();
    let (counts, largest) = scan.finish();
    Scanned { counts, blocks, largest }
}

impl Seen {
    pub(crate) fn new(worst: usize) -> Seen {
        Seen {
            counts: Counts::default(),
            sums: Tree::default(),
            max_error: 0.0,
            worst: Worst::new(worst),
            broke_off: None,
        }
    }
}
