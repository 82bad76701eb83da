//! References and candidates as functions of their inputs.

use assay_num::random::SplitMix64;
use assay_record::Comparison;

use crate::array::Tensor;
use crate::band::{BandOptions, Bands};
use crate::compare::{Options, compare};
use crate::error::CompareError;
use crate::shuffle::Shuffle;

/// A function of its inputs.
pub type Operation<'a> = dyn FnMut(&[Tensor]) -> Result<Tensor, String> + 'a;

/// Inputs, drawn from a generator of random numbers.
pub type Generator<'a> = dyn FnMut(&mut SplitMix64) -> Result<Vec<Tensor>, String> + 'a;

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
    let output = run("candidate", candidate, inputs)?;
    bands.judge(&output.view(), options)
}

/// Draws inputs `trials` times, runs a reference and a candidate on them and compares their
/// outputs. The name of every comparison is its seed and trial: `seed=1/trial=0`.
///
/// ```
/// use assay_compare::{Options, Tensor, compare_generated};
/// use assay_num::Format;
/// use assay_record::Tolerance;
///
/// let mut double = |inputs: &[Tensor]| {
///     let values: Vec<f64> = inputs[0].values().iter().map(|x| 2.0 * x).collect();
///     Tensor::from_values(Format::F32, inputs[0].shape(), &values).map_err(|e| e.to_string())
/// };
/// // The kernel under test would run here.
/// let mut add_to_itself = |inputs: &[Tensor]| {
///     let values: Vec<f64> = inputs[0].values().iter().map(|x| x + x).collect();
///     Tensor::from_values(Format::F32, inputs[0].shape(), &values).map_err(|e| e.to_string())
/// };
/// let mut normal = |random: &mut assay_num::random::SplitMix64| {
///     let values: Vec<f64> = (0..1000).map(|_| random.normal()).collect();
///     let input = Tensor::from_values(Format::F32, &[10, 100], &values);
///     input.map(|input| vec![input]).map_err(|error| error.to_string())
/// };
/// let options = Options { tolerance: Tolerance::ulp(1), ..Options::default() };
/// let trials = (1, 3);
/// let comparisons =
///     compare_generated(&mut double, &mut add_to_itself, &mut normal, trials, &options)?;
/// assert!(comparisons.iter().all(|comparison| comparison.passes()));
/// assert_eq!(comparisons[2].name.as_deref(), Some("seed=1/trial=2"));
/// # Ok::<(), assay_compare::CompareError>(())
/// ```
///
/// # Errors
/// If the generator, the reference or the candidate fails, and as [`compare`].
pub fn compare_generated(
    reference: &mut Operation<'_>,
    candidate: &mut Operation<'_>,
    generate: &mut Generator<'_>,
    (seed, trials): (u64, u32),
    options: &Options,
) -> Result<Vec<Comparison>, CompareError> {
    let random = SplitMix64::new(seed);
    let mut comparisons = Vec::new();
    for trial in 0..trials {
        let inputs = generate(&mut random.fork(&trial.to_string()))
            .map_err(|reason| CompareError::Operation { what: "generator", reason })?;
        let expected = run("reference", reference, &inputs)?;
        let output = run("candidate", candidate, &inputs)?;
        let mut comparison = compare(&expected.view(), &output.view(), options)?;
        comparison.name = Some(format!("seed={seed}/trial={trial}"));
        comparisons.push(comparison);
    }
    Ok(comparisons)
}

pub(crate) fn run(
    what: &'static str,
    operation: &mut Operation<'_>,
    inputs: &[Tensor],
) -> Result<Tensor, CompareError> {
    operation(inputs).map_err(|reason| CompareError::Operation { what, reason })
}
