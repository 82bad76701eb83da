//! Bands of reduction order: how far each element moves when the reference's own sums are taken in
//! another order, and whether a candidate stays within.

mod lanes;
mod map;
mod spread;
mod stream;
mod there;
mod verdict;

use assay_num::random::SplitMix64;
use assay_record::Comparison;

use crate::array::{ArrayView, Tensor};
use crate::compare::{Options, compare};
use crate::error::CompareError;
use crate::operation::{Operation, run};
use crate::shuffle::Shuffle;
pub(crate) use lanes::BLOCK as BAND_BLOCK;
pub use map::shuffled_map;
use spread::{Lean, Spread, Totals, width};
pub use stream::compare_shuffled;
use verdict::{Measured, Seen};

/// Elements that are decoded at a time.
const CHUNK: u64 = 4096;

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
    spread: Spread,
    totals: Totals,
    z: f64,
    leans: [Lean; 2],
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
        let (plain, outputs) = outputs(reference, inputs, shuffle, options)?;
        Ok(Bands::of(plain, &outputs, shuffle.name(), options))
    }

    fn of(plain: Tensor, outputs: &[Tensor], shuffle: &str, options: &BandOptions) -> Bands {
        let elements = plain.view().elements();
        let (mut spread, mut totals) = (Spread::default(), Totals::new(outputs.len()));
        for first in (0..elements).step_by(CHUNK as usize) {
            let chunk = (first, CHUNK.min(elements - first));
            let values: Vec<Vec<f64>> =
                outputs.iter().map(|output| decoded(&output.view(), chunk)).collect();
            spread.add(plain.format(), &values, &mut totals);
        }
        Bands {
            options: options.clone(),
            shuffle: shuffle.to_owned(),
            z: width(outputs.len(), elements, options.false_alarm),
            leans: totals.leans(options.false_alarm),
            plain,
            spread,
            totals,
        }
    }

    /// The output for the inputs as they are.
    #[must_use]
    pub fn plain(&self) -> &Tensor {
        &self.plain
    }

    /// How far a right candidate may be from an element's mean.
    #[must_use]
    pub fn half_width(&self, element: usize) -> Option<f64> {
        self.spread.deviation.get(element).map(|deviation| deviation * self.z)
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
        let comparison = compare(&self.plain.view(), candidate, options)?;
        let mut seen = Seen::new(self.z, options.worst);
        let elements = candidate.elements();
        for first in (0..elements).step_by(CHUNK as usize) {
            let values = decoded(candidate, (first, CHUNK.min(elements - first)));
            seen.look(&values, &self.spread, first as usize);
        }
        let measured = Measured {
            shuffle: &self.shuffle,
            shuffles: self.options.shuffles,
            seed: Some(self.options.seed),
            leans: self.leans,
            finite: self.totals.finite,
            widest_ulp: self.totals.widest_ulp,
        };
        Ok(seen.decide(comparison, &measured))
    }
}

/// The outputs for the inputs as they are and for every shuffle of them.
fn outputs(
    reference: &mut Operation<'_>,
    inputs: &[Tensor],
    shuffle: &Shuffle<'_>,
    options: &BandOptions,
) -> Result<(Tensor, Vec<Tensor>), CompareError> {
    check(options)?;
    let mut run = |inputs: &[Tensor]| run("reference", reference, inputs);
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
    Ok((plain, outputs))
}

fn decoded(view: &ArrayView<'_>, (first, count): (u64, u64)) -> Vec<f64> {
    let mut bytes = Vec::new();
    view.gather(first, count, &mut bytes);
    let mut values = view.format().decode_slice(&bytes);
    values.truncate(count as usize);
    values
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
