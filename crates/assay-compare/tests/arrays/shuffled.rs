//! Outputs for shuffled inputs on a device, and what holds their bands against the CPU's.

use assay_compare::{
    BandOptions, DeviceComparer, Options, Source, Tensor, compare_shuffled, matmul,
};
use assay_device::Device;
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::{Comparison, Outcome, Tolerance};

use super::{SEED, upload};

/// Outputs of a reference: the same values but for rounding, and some that are none or infinite.
pub(crate) fn outputs(format: Format, elements: usize, shuffles: usize) -> Vec<Tensor> {
    let mut random = SplitMix64::new(SEED + elements as u64);
    let steps = if format.is_float() { 8.0 * format.unit_roundoff() } else { 0.0 };
    let values: Vec<f64> = (0..elements).map(|_| random.normal() * 3.0).collect();
    let output = |_: usize| {
        let mut moved: Vec<f64> = Vec::with_capacity(elements);
        for (at, value) in values.iter().enumerate() {
            moved.push(match (at % 101, format.is_float()) {
                (7, true) => f64::NAN,
                (9, true) if random.below(2) == 0 => f64::NEG_INFINITY,
                (11, _) => 0.0,
                _ => value * (1.0 + steps * random.normal()),
            });
        }
        Tensor::from_values(format, &[elements as u64], &moved).expect("a tensor")
    };
    (0..shuffles).map(output).collect()
}

/// Candidates: one of the outputs, one with some wrong elements, and one that leans.
pub(crate) fn candidates(output: &Tensor) -> Vec<Tensor> {
    let change = |change: &dyn Fn(usize, f64) -> f64| {
        let values = output.values();
        let values: Vec<f64> = values.iter().enumerate().map(|(at, x)| change(at, *x)).collect();
        Tensor::from_values(output.format(), output.shape(), &values).expect("a tensor")
    };
    vec![
        output.clone(),
        change(&|at, x| if at % 1009 == 13 { 3.0 * x + at as f64 * 1e-3 } else { x }),
        change(&|at, x| if at % 1501 == 17 { f64::INFINITY } else { x * (1.0 + 1e-3) }),
    ]
}

fn boxed(outputs: &[Tensor]) -> Vec<Box<dyn Source>> {
    outputs.iter().map(|output| Box::new(output.clone()) as Box<dyn Source>).collect()
}

/// The CPU's judgement of a candidate.
pub(crate) fn here(
    outputs: &[Tensor],
    candidate: &Tensor,
    both: (&Options, &BandOptions),
) -> Comparison {
    let [plain, shuffled @ ..] = outputs else { panic!("no output") };
    let (mut plain, mut candidate) = (plain.view(), candidate.view());
    let shuffled = &mut boxed(shuffled);
    compare_shuffled(&mut plain, &mut candidate, shuffled, both, &mut |_| {}).expect("judged")
}

/// The device's, of what is sent to it and of what lies there already.
pub(crate) fn there(
    (device, comparer): (&mut dyn Device, &mut DeviceComparer),
    outputs: &[Tensor],
    candidate: &Tensor,
    both: (&Options, &BandOptions),
) -> [Comparison; 2] {
    let [plain, shuffled @ ..] = outputs else { panic!("no output") };
    let (mut one, mut other) = (plain.view(), candidate.view());
    let pair: (&mut dyn Source, &mut dyn Source) = (&mut one, &mut other);
    let sent = comparer.compare_shuffled(device, pair, &mut boxed(shuffled), both, &mut |_| {});
    // Of the arrays there one is not aligned to its own elements.
    let arrays: Vec<_> = shuffled
        .iter()
        .enumerate()
        .map(|(at, output)| upload(device, output, at as u64 / 3))
        .collect();
    let pair = [plain, candidate].map(|tensor| upload(device, tensor, 0));
    let lain = comparer.compare_shuffled_arrays(device, (&pair[0], &pair[1]), &arrays, both);
    for array in arrays.iter().chain(&pair) {
        device.free(array.buffer).expect("freed");
    }
    [sent.expect("judged"), lain.expect("judged")]
}

/// Every figure of the bands, to the bit, in each format.
pub(crate) fn bands_are_as_on_the_cpu(
    device: &mut dyn Device,
    formats: &[Format],
    counts: &[usize],
) {
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    let bands = BandOptions { false_alarm: 1e-2, ..BandOptions::default() };
    let mut outcomes = Vec::new();
    for &format in formats {
        for &count in counts {
            let outputs = outputs(format, count, 7);
            for (at, candidate) in candidates(&outputs[3]).iter().enumerate() {
                let tolerance = Tolerance::new(1e-4, 1e-4);
                let options = Options {
                    tolerance,
                    equal_nan: at == 0,
                    worst: 5 + at,
                    delta: None,
                    ..Options::default()
                };
                let both = (&options, &bands);
                let here = here(&outputs, candidate, both);
                for there in there((device, &mut comparer), &outputs, candidate, both) {
                    assert_eq!(there, here, "{format}, {count} elements, seed {SEED}");
                }
                outcomes.push(here.outcome);
            }
        }
    }
    assert!(outcomes.contains(&Outcome::Pass) && outcomes.contains(&Outcome::Fail), "{outcomes:?}");
}

/// A product with its shuffles along K, judged on the device as here.
pub(crate) fn a_product_is_as_on_the_cpu(device: &mut dyn Device) {
    use assay_compare::{Bands, Shuffle};
    let mut random = SplitMix64::new(SEED);
    let mut matrix = |shape: [u64; 2]| {
        let values: Vec<f64> = (0..shape[0] * shape[1]).map(|_| random.normal()).collect();
        Tensor::from_values(Format::Bf16, &shape, &values).expect("a tensor")
    };
    let inputs = [matrix([37, 61]), matrix([61, 29])];
    let mut reference =
        |inputs: &[Tensor]| matmul((&inputs[0], &inputs[1]), Format::F32, Format::Bf16);
    let mut candidate = matmul((&inputs[0], &inputs[1]), Format::F64, Format::Bf16).expect("made");
    let (options, bands) =
        (Options::default(), BandOptions { shuffles: 9, ..BandOptions::default() });
    let shuffle = Shuffle::matmul_k();
    let measured = Bands::measure(&mut reference, &inputs, &shuffle, &bands).expect("measured");
    let here = measured.judge(&candidate.view(), &options).expect("judged");
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    let reference = (&mut reference as &mut assay_compare::Operation<'_>, &inputs[..]);
    let there = comparer
        .compare_with_shuffles_of(device, reference, &mut candidate, &shuffle, (&options, &bands))
        .expect("judged");
    assert_eq!(there, here);
    assert_eq!(there.outcome, Outcome::Pass, "{:?}", there.findings);
    let band = there.band.expect("bands");
    assert_eq!((band.shuffles, band.seed), (9, Some(bands.seed)));
}
