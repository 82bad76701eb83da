//! Bands of outputs that exist already, in files larger than memory: every array is read once more,
//! a piece at a time.

use assay_num::Format;
use assay_record::{Comparison, Finding, FindingKind, Outcome};

use super::spread::{Spread, Totals, width};
use super::verdict::{Measured, Seen};
use super::{BandOptions, check};
use crate::compare::{Options, Side, compare_with_progress};
use crate::error::CompareError;
use crate::judge::outcome;
use crate::source::{Source, SourceError};

/// Elements that are read at a time.
pub(super) const PIECE: u64 = 1 << 16;

/// Holds a candidate against a reference and against the outputs of the reference for shuffled
/// inputs: each element against its own band, as [`super::Bands::judge`] does.
///
/// Of the options of bands only the false alarm rate counts. Where an array ends early, what was
/// read until then is judged, and the comparison says so.
///
/// # Errors
/// As [`crate::compare_sources`], and if there are fewer than 4 shuffled outputs or one has another
/// shape or format than the candidate.
pub fn compare_shuffled(
    reference: &mut dyn Source,
    candidate: &mut dyn Source,
    shuffled: &mut [Box<dyn Source>],
    (options, bands): (&Options, &BandOptions),
    progress: &mut dyn FnMut(u64),
) -> Result<Comparison, CompareError> {
    check_all(candidate, shuffled, (options, bands))?;
    let mut comparison = compare_with_progress(reference, candidate, options, &mut |done| {
        progress(done / 2);
    })?;
    let elements = comparison.compared;
    let z = width(shuffled.len(), comparison.elements, bands.false_alarm);
    let mut pass = Pass { seen: Seen::new(z, options.worst), totals: Totals::new(shuffled.len()) };
    let mut first = 0;
    while first < elements {
        let count = PIECE.min(elements - first);
        if let Err((what, source)) = pass.piece(candidate, shuffled, (first, count)) {
            if first == 0 {
                return Err(CompareError::Band(format!("{what} cannot be read: {source}")));
            }
            break_off(&mut comparison, &format!("{what} cannot be read further: {source}"), first);
            break;
        }
        first += count;
        progress(elements.midpoint(first));
    }
    let measured = Measured {
        shuffle: "given",
        shuffles: shuffled.len() as u32,
        seed: None,
        leans: pass.totals.leans(bands.false_alarm),
        finite: pass.totals.finite,
        widest_ulp: pass.totals.widest_ulp,
    };
    Ok(pass.seen.decide(comparison, &measured))
}

/// Refuses options and outputs of which there are no bands.
pub(super) fn check_all(
    candidate: &dyn Source,
    shuffled: &[Box<dyn Source>],
    (options, bands): (&Options, &BandOptions),
) -> Result<(), CompareError> {
    check(&BandOptions { shuffles: shuffled.len() as u32, ..bands.clone() })?;
    let (ours, format) = (candidate.shape(), candidate.format());
    let mut all = shuffled.iter().enumerate();
    all.try_for_each(|(at, source)| {
        let theirs = (source.shape(), source.format());
        fits(at, theirs, (ours, format), options.round_reference)
    })
}

/// The bands of a piece.
pub(super) fn spread_of(
    shuffled: &mut [Box<dyn Source>],
    format: Format,
    piece: (u64, u64),
    totals: &mut Totals,
) -> Result<Spread, (String, SourceError)> {
    let mut values = Vec::with_capacity(shuffled.len());
    for (at, source) in shuffled.iter_mut().enumerate() {
        let read = decoded(&mut **source, format, piece);
        values.push(read.map_err(|error| (name_of(at), error))?);
    }
    let mut spread = Spread::default();
    spread.add(format, &values, totals);
    Ok(spread)
}

/// One look at all arrays.
struct Pass {
    seen: Seen,
    totals: Totals,
}

impl Pass {
    fn piece(
        &mut self,
        candidate: &mut dyn Source,
        shuffled: &mut [Box<dyn Source>],
        piece: (u64, u64),
    ) -> Result<(), (String, SourceError)> {
        let format = candidate.format();
        let spread = spread_of(shuffled, format, piece, &mut self.totals)?;
        let read = decoded(candidate, format, piece);
        let read = read.map_err(|error| (format!("the {}", Side::Candidate), error))?;
        self.seen.look(&read, &spread, 0);
        Ok(())
    }
}

/// Values of a source, rounded to a format.
pub(super) fn decoded(
    source: &mut dyn Source,
    format: Format,
    (first, count): (u64, u64),
) -> Result<Vec<f64>, SourceError> {
    let mut bytes = Vec::new();
    source.read(first, count, &mut bytes)?;
    let mut values = source.format().decode_slice(&bytes);
    if (values.len() as u64) < count {
        let found = values.len();
        return Err(SourceError::Broken(format!("{count} elements were asked for, {found} came")));
    }
    values.truncate(count as usize);
    if source.format() != format {
        values = format.decode_slice(&format.encode_slice(&values));
        values.truncate(count as usize);
    }
    Ok(values)
}

pub(super) fn name_of(at: usize) -> String {
    format!("the shuffled output {}", at + 1)
}

/// Whether an output is of the candidate's shape, and of its format unless it is rounded to that.
pub(super) fn fits(
    at: usize,
    (theirs, format): (&[u64], Format),
    (ours, candidate): (&[u64], Format),
    is_rounded: bool,
) -> Result<(), CompareError> {
    if theirs != ours {
        let name = name_of(at);
        let reason = format!("{name} has the shape {theirs:?} and the candidate {ours:?}");
        return Err(CompareError::Band(reason));
    }
    if format != candidate && !is_rounded {
        return Err(CompareError::Formats { reference: format, candidate });
    }
    Ok(())
}

pub(super) fn break_off(comparison: &mut Comparison, why: &str, seen: u64) {
    let reason = format!("only {seen} of {} held against their bands", comparison.elements);
    comparison.broke_off.get_or_insert(why.to_owned());
    comparison.findings.push(Finding {
        kind: FindingKind::Nothing,
        outcome: Outcome::Unproven,
        reason,
        elements: comparison.elements,
        first: None,
    });
    comparison.outcome = outcome(&comparison.findings);
}
