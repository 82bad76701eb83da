//! Bands of reduction order: how far each element moves when the reference's own sums are taken in
//! another order, and whether a candidate stays within.

use assay_num::Class;
use assay_num::random::SplitMix64;
use assay_record::{
    BandEvidence, Comparison, Finding, FindingKind, Number, Outcome, Tolerance, WorstElement,
};

use crate::array::{ArrayView, Tensor, coordinates, storage};
use crate::compare::{Options, compare};
use crate::counts::class_index;
use crate::error::CompareError;
use crate::judge::{outcome, ulp_at};
use crate::shuffle::Shuffle;
use crate::student;

/// Elements that are decoded at a time.
const CHUNK: u64 = 4096;

/// A reference as a function of its inputs.
pub type Operation<'a> = dyn FnMut(&[Tensor]) -> Result<Tensor, String> + 'a;

/// How bands are measured.
#[derive(Clone, PartialEq, Debug)]
pub struct BandOptions {
    /// How many times the inputs are shuffled, at least 4.
    pub shuffles: u32,
    /// The seed of the permutations.
    pub seed: u64,
    /// How often a right candidate may fail for want of luck, over all its elements together.
    pub false_alarm: f64,
}

impl Default for BandOptions {
    fn default() -> Self {
        BandOptions { shuffles: 32, seed: 1, false_alarm: 1e-3 }
    }
}

/// The band of every element of a reference's output.
#[derive(Clone, Debug)]
pub struct Bands {
    options: BandOptions,
    shuffle: String,
    /// The output of the inputs as they are.
    plain: Tensor,
    mean: Vec<f64>,
    /// The larger of the standard deviation and half a step of the format.
    spread: Vec<f64>,
    /// The classes seen at each element, a bit each.
    classes: Vec<u8>,
    z: f64,
    bias_mean: f64,
    bias_limit: f64,
    widest_ulp: f64,
}

impl Bands {
    /// Runs the reference on its inputs as they are and on every shuffle of them.
    ///
    /// # Errors
    /// If the reference or the shuffle fails, an output has another shape or format than the
    /// first, or the options make no sense.
    pub fn measure(
        reference: &mut Operation<'_>,
        inputs: &[Tensor],
        shuffle: &Shuffle<'_>,
        options: &BandOptions,
    ) -> Result<Bands, CompareError> {
        check(options)?;
        let mut run = |inputs: &[Tensor]| {
            reference(inputs)
                .map_err(|reason| CompareError::Operation { what: "reference", reason })
        };
        let plain = run(inputs)?;
        let random = SplitMix64::new(options.seed);
        let mut outputs = Vec::new();
        for index in 0..options.shuffles {
            let mut random = random.fork(&index.to_string());
            let output = run(&shuffle.apply(inputs, &mut random)?)?;
            if output.shape() != plain.shape() || output.format() != plain.format() {
                return Err(CompareError::Band(format!(
                    "the reference gave {} {:?} for its inputs, and {} {:?} for shuffle {index}",
                    plain.format(),
                    plain.shape(),
                    output.format(),
                    output.shape()
                )));
            }
            outputs.push(output);
        }
        Ok(Bands::of(plain, &outputs, shuffle.name(), options))
    }

    fn of(plain: Tensor, outputs: &[Tensor], shuffle: &str, options: &BandOptions) -> Bands {
        let elements = plain.view().elements();
        let count = outputs.len() as u32;
        let prediction = (1.0 + 1.0 / f64::from(count)).sqrt();
        let tail = options.false_alarm / (4.0 * elements.max(1) as f64);
        let mut bands = Bands {
            options: options.clone(),
            shuffle: shuffle.to_owned(),
            mean: Vec::new(),
            spread: Vec::new(),
            classes: Vec::new(),
            z: student::quantile(count - 1, tail) * prediction,
            bias_mean: 0.0,
            bias_limit: 0.0,
            widest_ulp: 0.0,
            plain,
        };
        let mut leans = vec![0.0; outputs.len()];
        for first in (0..elements).step_by(CHUNK as usize) {
            bands.add_chunk(outputs, (first, CHUNK.min(elements - first)), &mut leans);
        }
        bands.set_bias(&leans, prediction);
        bands
    }

    /// The bands of some elements, and what they add to each shuffle's lean.
    fn add_chunk(&mut self, outputs: &[Tensor], (first, count): (u64, u64), leans: &mut [f64]) {
        let format = self.plain.format();
        let mut bytes = Vec::new();
        let values: Vec<Vec<f64>> = outputs
            .iter()
            .map(|output| {
                output.view().gather(first, count, &mut bytes);
                format.decode_slice(&bytes)
            })
            .collect();
        let shuffles = values.len() as f64;
        for at in 0..count as usize {
            let all = || values.iter().map(|output| output[at]);
            let classes = all().fold(0u8, |seen, value| seen | 1 << class_index(value));
            let mean = all().sum::<f64>() / shuffles;
            let square = all().map(|value| (value - mean) * (value - mean)).sum::<f64>();
            let deviation = (square / (shuffles - 1.0)).sqrt();
            let ulp = ulp_at(format, mean);
            let spread = if format.is_float() { deviation.max(0.5 * ulp) } else { deviation };
            if classes == 1 && spread > 0.0 {
                for (lean, value) in leans.iter_mut().zip(all()) {
                    *lean += (value - mean) / spread;
                }
                self.widest_ulp = self.widest_ulp.max(spread / ulp);
            }
            self.mean.push(mean);
            self.spread.push(spread);
            self.classes.push(classes);
        }
    }

    /// How far a candidate may lean, from how far each shuffle leans against all others.
    fn set_bias(&mut self, leans: &[f64], prediction: f64) {
        let count = leans.len() as f64;
        let root = self.finite().max(1.0).sqrt();
        // Against the mean of the others a shuffle lies farther out than against that of all.
        let scale = count / (count - 1.0) / root;
        let leans: Vec<f64> = leans.iter().map(|lean| lean * scale).collect();
        let mean = leans.iter().sum::<f64>() / count;
        let square: f64 = leans.iter().map(|lean| (lean - mean) * (lean - mean)).sum();
        let deviation = (square / (count - 1.0)).sqrt();
        let tail = self.options.false_alarm / 4.0;
        let quantile = student::quantile(leans.len() as u32 - 1, tail);
        self.bias_mean = mean;
        // Elements whose rounding alone moves them lean by up to 1, though no shuffle shows it.
        self.bias_limit = quantile * prediction * deviation.max(1.0);
    }

    /// Elements with a band.
    fn finite(&self) -> f64 {
        self.classes.iter().map(|&classes| f64::from(u8::from(classes == 1))).sum()
    }

    /// The output for the inputs as they are.
    #[must_use]
    pub fn plain(&self) -> &Tensor {
        &self.plain
    }

    /// How far a right candidate may be from an element's mean.
    #[must_use]
    pub fn half_width(&self, element: usize) -> Option<f64> {
        self.spread.get(element).map(|spread| spread * self.z)
    }

    /// Judges a candidate: each element against its band, and all together for a lean.
    ///
    /// The tolerance of the options is evidence only: it decides nothing here.
    ///
    /// # Errors
    /// As [`compare`].
    pub fn judge(
        &self,
        candidate: &ArrayView<'_>,
        options: &Options,
    ) -> Result<Comparison, CompareError> {
        let mut comparison = compare(&self.plain.view(), candidate, options)?;
        let seen = self.look(candidate, options.worst);
        let shape = self.plain.shape();
        // What the bands decide, the plain comparison does not.
        let decided = [FindingKind::Tolerance, FindingKind::Vacuous, FindingKind::Class];
        comparison.findings.retain(|finding| !decided.contains(&finding.kind));
        comparison.findings.extend(self.findings(&seen, shape));
        comparison.outcome = outcome(&comparison.findings);
        if options.tolerance != Tolerance::EXACT {
            let note = "the bands decide; the tolerance is evidence only".to_owned();
            comparison.notes.push(note);
        }
        comparison.band = Some(self.evidence(&seen, shape));
        Ok(comparison)
    }

    fn look(&self, candidate: &ArrayView<'_>, room: usize) -> Seen {
        let mut seen = Seen::default();
        let mut bytes = Vec::new();
        let elements = self.mean.len() as u64;
        for first in (0..elements).step_by(CHUNK as usize) {
            candidate.gather(first, CHUNK.min(elements - first), &mut bytes);
            let values = candidate.format().decode_slice(&bytes);
            for (at, &value) in values.iter().enumerate().take((elements - first) as usize) {
                self.look_at(first as usize + at, value, room, &mut seen);
            }
        }
        seen.lean /= self.finite().max(1.0).sqrt();
        seen
    }

    fn look_at(&self, at: usize, value: f64, room: usize, seen: &mut Seen) {
        let index = at as u64;
        if self.classes[at] & 1 << class_index(value) == 0 {
            seen.other_class += 1;
            seen.first_other_class.get_or_insert(index);
            return;
        }
        if self.classes[at] != 1 || Class::of(value) != Class::Finite {
            return;
        }
        let (error, spread) = (value - self.mean[at], self.spread[at]);
        // A spread of zero, of integers that no order moves, allows nothing.
        let ratio = match (error == 0.0, spread > 0.0) {
            (true, _) => 0.0,
            (false, true) => error.abs() / (self.z * spread),
            (false, false) => f64::INFINITY,
        };
        seen.lean += if spread > 0.0 { error / spread } else { 0.0 };
        if ratio > 1.0 {
            seen.outside += 1;
            seen.first_outside.get_or_insert(index);
        }
        seen.max_ratio = seen.max_ratio.max(ratio);
        let place = seen.worst.partition_point(|&(other, _, _)| other >= ratio);
        if ratio > 0.0 && place < room {
            seen.worst.insert(place, (ratio, index, value));
            seen.worst.truncate(room);
        }
    }

    fn findings(&self, seen: &Seen, shape: &[u64]) -> Vec<Finding> {
        let place = |index: Option<u64>| index.map(|index| coordinates(shape, index));
        let mut findings = Vec::new();
        let mut add = |kind, elements, first, reason| {
            let outcome = Outcome::Fail;
            findings.push(Finding { kind, outcome, reason, elements, first });
        };
        if seen.other_class > 0 {
            let reason = format!(
                "{} elements are of a class (finite, NaN, an infinity) that no order gives",
                seen.other_class
            );
            add(FindingKind::Class, seen.other_class, place(seen.first_other_class), reason);
        }
        if seen.outside > 0 {
            let reason = format!(
                "{} of {} outside their band of reduction order, by up to {} half widths",
                seen.outside,
                self.mean.len(),
                Number(seen.max_ratio)
            );
            add(FindingKind::Band, seen.outside, place(seen.first_outside), reason);
        }
        if (seen.lean - self.bias_mean).abs() > self.bias_limit {
            let side = if seen.lean > self.bias_mean { "above" } else { "below" };
            let reason = format!(
                "the tensor leans {side} the reference by {}, where its orders stay within {}",
                Number((seen.lean - self.bias_mean).abs()),
                Number(self.bias_limit)
            );
            add(FindingKind::Bias, self.finite() as u64, None, reason);
        }
        findings
    }

    fn evidence(&self, seen: &Seen, shape: &[u64]) -> BandEvidence {
        let any = !self.mean.is_empty();
        BandEvidence {
            shuffle: self.shuffle.clone(),
            shuffles: self.options.shuffles,
            seed: self.options.seed,
            z: self.z,
            outside: seen.outside,
            first_outside: seen.first_outside.map(|index| coordinates(shape, index)),
            max_bands: any.then_some(Number(seen.max_ratio)),
            widest_ulp: any.then_some(self.widest_ulp),
            bias: any.then_some(seen.lean),
            bias_mean: any.then_some(self.bias_mean),
            bias_limit: any.then_some(self.bias_limit),
            worst: seen.worst.iter().map(|entry| self.element(*entry, shape)).collect(),
        }
    }

    fn element(&self, (ratio, index, value): (f64, u64, f64), shape: &[u64]) -> WorstElement {
        let mean = self.mean[index as usize];
        WorstElement {
            index,
            coordinates: coordinates(shape, index),
            reference: Number(mean),
            candidate: Number(value),
            ulp: None,
            error: Number(value - mean),
            margin: Some(Number(ratio)),
        }
    }
}

/// What a candidate shows against its bands.
#[derive(Default)]
struct Seen {
    outside: u64,
    first_outside: Option<u64>,
    other_class: u64,
    first_other_class: Option<u64>,
    max_ratio: f64,
    lean: f64,
    /// Ratio, index and value of the elements farthest out.
    worst: Vec<(f64, u64, f64)>,
}

fn check(options: &BandOptions) -> Result<(), CompareError> {
    if options.shuffles < 4 {
        let reason = format!("{} shuffles are too few; take at least 4", options.shuffles);
        return Err(CompareError::Band(reason));
    }
    if !(options.false_alarm > 0.0 && options.false_alarm < 1.0) {
        let reason = format!("a false alarm rate of {} is none", options.false_alarm);
        return Err(CompareError::Band(reason));
    }
    Ok(())
}

/// Runs a reference and a candidate on the same inputs and holds the candidate against the bands
/// of the reference's shuffles.
///
/// # Errors
/// As [`Bands::measure`] and [`Bands::judge`], and if the candidate fails.
pub fn compare_operations(
    reference: &mut Operation<'_>,
    candidate: &mut Operation<'_>,
    inputs: &[Tensor],
    shuffle: &Shuffle<'_>,
    (options, bands): (&Options, &BandOptions),
) -> Result<Comparison, CompareError> {
    let bands = Bands::measure(reference, inputs, shuffle, bands)?;
    let failed = |reason| CompareError::Operation { what: "candidate", reason };
    let output = candidate(inputs).map_err(failed)?;
    bands.judge(&output.view(), options)
}

impl Tensor {
    /// The tensor with one axis in another order: place `i` holds what was at `order[i]`.
    pub(crate) fn permuted(&self, axis: usize, order: &[u64]) -> Tensor {
        let shape = self.shape();
        let inner: u64 = shape[axis + 1..].iter().product();
        let outer: u64 = shape[..axis].iter().product();
        let size = order.len() as u64;
        let mut bytes = Vec::with_capacity(self.bytes().len());
        if self.format().is_packed() {
            let values = self.values();
            let mut moved = Vec::with_capacity(values.len());
            for row in 0..outer {
                for &from in order {
                    let start = ((row * size + from) * inner) as usize;
                    moved.extend_from_slice(&values[start..start + inner as usize]);
                }
            }
            bytes = self.format().encode_slice(&moved);
        } else {
            let width = storage(self.format(), inner) as usize;
            for row in 0..outer {
                for &from in order {
                    let start = (row * size + from) as usize * width;
                    bytes.extend_from_slice(&self.bytes()[start..start + width]);
                }
            }
        }
        Tensor::new(self.format(), shape, bytes).unwrap_or_else(|_| self.clone())
    }
}
