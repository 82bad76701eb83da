//! Bands of reduction order: what a reordering explains passes, what it does not is found.

use assay_compare::{
    BandOptions, Bands, Options, Shuffle, Source, Tensor, compare_operations, shuffled_map,
};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::{Comparison, FindingKind, Outcome};

const SEED: u64 = 31;
const ROWS: usize = 512;
const COLS: usize = 257;

fn normal(count: usize) -> Vec<f32> {
    let mut random = SplitMix64::new(SEED);
    (0..count).map(|_| random.normal() as f32).collect()
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.values().iter().map(|&value| value as f32).collect()
}

/// The sums of rows, each by a function of the row.
fn row_sums(inputs: &[Tensor], sum: impl Fn(&[f32]) -> f32) -> Result<Tensor, String> {
    let sums: Vec<f32> = floats(&inputs[0]).chunks(COLS).map(sum).collect();
    Tensor::from_f32(&[sums.len() as u64], &sums).map_err(|error| error.to_string())
}

fn in_order(row: &[f32]) -> f32 {
    row.iter().fold(0.0, |sum, x| sum + x)
}

fn inputs() -> Vec<Tensor> {
    let shape = [ROWS as u64, COLS as u64];
    vec![Tensor::from_f32(&shape, &normal(ROWS * COLS)).expect("a tensor")]
}

fn bands() -> Bands {
    let mut reference = |inputs: &[Tensor]| row_sums(inputs, in_order);
    Bands::measure(&mut reference, &inputs(), &Shuffle::last_dim(), &BandOptions::default())
        .expect("measured")
}

fn judged(sums: &[f32]) -> Comparison {
    let candidate = Tensor::from_f32(&[ROWS as u64], sums).expect("a tensor");
    bands().judge(&candidate.view(), &Options::default()).expect("judged")
}

fn candidate(sum: impl Fn(&[f32]) -> f32) -> Comparison {
    judged(&floats(&row_sums(&inputs(), sum).expect("summed")))
}

#[test]
fn a_reordered_a_pairwise_and_a_split_sum_pass() {
    let backwards = candidate(|row| row.iter().rev().fold(0.0, |sum, x| sum + x));
    let split = candidate(|row| row.chunks(64).map(in_order).fold(0.0, |sum, part| sum + part));
    let strided = candidate(|row| {
        let part = |lane: usize| row.iter().skip(lane).step_by(32).fold(0.0f32, |sum, x| sum + x);
        (0..32).map(part).fold(0.0, |sum, part| sum + part)
    });
    let exact = candidate(|row| row.iter().map(|&x| f64::from(x)).sum::<f64>() as f32);
    for comparison in [backwards, split, strided, exact] {
        assert_eq!(comparison.outcome, Outcome::Pass, "{:?}", comparison.findings);
        assert!(comparison.outside > 0, "it is not bitwise the reference");
    }
}

#[test]
fn an_order_that_wanders_far_passes_among_many_sums_though_a_normal_error_would_not_go_so_far() {
    const MANY: u64 = 1 << 15;
    const TERMS: usize = 128;
    let inputs = [Tensor::from_f32(&[MANY, TERMS as u64], &normal(MANY as usize * TERMS)).unwrap()];
    let mut reference = |inputs: &[Tensor]| {
        let sums: Vec<f32> = floats(&inputs[0]).chunks(TERMS).map(in_order).collect();
        Tensor::from_f32(&[MANY], &sums).map_err(|error| error.to_string())
    };
    let options = BandOptions { seed: 3, ..BandOptions::default() };
    let bands = Bands::measure(&mut reference, &inputs, &Shuffle::last_dim(), &options).unwrap();
    let comparison = bands.judge(&bands.plain().view(), &Options::default()).unwrap();
    assert_eq!(comparison.outcome, Outcome::Pass, "{:?}", comparison.findings);
    let band = comparison.band.unwrap();
    // What is identical to the reference passes in any case.
    assert_eq!(band.outside, 0);
    // Of as many shuffles and elements Student's t alone says 7.696.
    let deviations = band.z * band.max_bands.unwrap().0;
    assert!(band.z > 16.0 && deviations > 7.7, "{} of {}", deviations, band.z);
}

#[test]
fn what_is_identical_to_the_reference_passes_though_its_order_is_none_like_any_other() {
    let mut sorted = normal(ROWS * COLS);
    sorted.chunks_mut(COLS).for_each(|row| row.sort_by(f32::total_cmp));
    let inputs = [Tensor::from_f32(&[ROWS as u64, COLS as u64], &sorted).expect("a tensor")];
    let mut reference = |inputs: &[Tensor]| row_sums(inputs, in_order);
    let bands =
        Bands::measure(&mut reference, &inputs, &Shuffle::last_dim(), &BandOptions::default())
            .expect("measured");
    let judged = |sums: &[f32]| {
        let candidate = Tensor::from_f32(&[ROWS as u64], sums).expect("a tensor");
        bands.judge(&candidate.view(), &Options::default()).expect("judged")
    };
    let mut sums = floats(bands.plain());
    let same = judged(&sums);
    assert_eq!(same.outcome, Outcome::Pass, "{:?}", same.findings);
    assert!(same.notes.iter().any(|note| note.contains("none like any other")), "{:?}", same.notes);
    assert!(same.band.expect("a band").outside > 0);
    sums[3] += 1e-3;
    assert!(judged(&sums).finds(FindingKind::Band), "one that is not identical is judged");
}

#[test]
fn one_wrong_sum_is_found_and_so_are_dropped_terms() {
    let mut sums = floats(bands().plain());
    sums[300] += 1e-3;
    let comparison = judged(&sums);
    assert!(comparison.finds(FindingKind::Band), "{:?}", comparison.findings);
    let band = comparison.band.expect("a band");
    assert_eq!((band.outside, band.first_outside), (1, Some(vec![300])));
    assert_eq!(band.worst[0].coordinates, [300]);
    let dropped = candidate(|row| in_order(&row[..COLS - 1]));
    assert!(dropped.finds(FindingKind::Band));
}

#[test]
fn a_uniform_bias_of_half_an_ulp_is_found_though_every_element_is_within_its_band() {
    let shape = [4096, COLS as u64];
    let inputs = [Tensor::from_f32(&shape, &normal(4096 * COLS)).expect("a tensor")];
    let mut reference = |inputs: &[Tensor]| row_sums(inputs, in_order);
    let options = BandOptions { shuffles: 16, ..BandOptions::default() };
    let bands =
        Bands::measure(&mut reference, &inputs, &Shuffle::last_dim(), &options).expect("measured");
    for toward in [0, 1, -1] {
        let mut sums = floats(bands.plain());
        for (at, sum) in sums.iter_mut().enumerate() {
            // Half an ulp on the average: one at every other element.
            let step = if *sum > 0.0 { toward } else { -toward };
            *sum = f32::from_bits(sum.to_bits().wrapping_add_signed(step * (at as i32 % 2)));
        }
        let candidate = Tensor::from_f32(&shape[..1], &sums).expect("a tensor");
        let comparison = bands.judge(&candidate.view(), &Options::default()).expect("judged");
        assert!(!comparison.finds(FindingKind::Band), "{:?}", comparison.findings);
        let band = &comparison.band;
        assert_eq!(comparison.finds(FindingKind::Bias), toward != 0, "{toward}: {band:?}");
    }
}

#[test]
fn sums_that_are_rounded_toward_zero_are_found_though_their_signs_cancel() {
    let shape = [4096, COLS as u64];
    let inputs = [Tensor::from_f32(&shape, &normal(4096 * COLS)).expect("a tensor")];
    let mut reference = |inputs: &[Tensor]| row_sums(inputs, in_order);
    let bands =
        Bands::measure(&mut reference, &inputs, &Shuffle::last_dim(), &BandOptions::default())
            .expect("measured");
    let exact = |row: &[f32]| row.iter().map(|&x| f64::from(x)).sum::<f64>() as f32;
    for toward_zero in [0, 1, 2] {
        let shrunk = |row: &[f32]| f32::from_bits(exact(row).to_bits() - toward_zero);
        let candidate = row_sums(&inputs, shrunk).expect("summed");
        let comparison = bands.judge(&candidate.view(), &Options::default()).expect("judged");
        let band = comparison.band.as_ref().expect("a band");
        let (lean, limit) = (band.bias.expect("a lean"), band.bias_limit.expect("a limit"));
        assert!(lean.abs() < limit, "their signs cancel: {band:?}");
        assert_eq!(comparison.finds(FindingKind::Bias), toward_zero > 0, "{band:?}");
    }
}

#[test]
fn a_uniformly_wrong_candidate_does_not_hide_behind_one_sensitive_element() {
    // One row of huge terms that cancel moves by thousands when it is reordered.
    let mut values = normal(ROWS * COLS);
    values[..COLS - 1].iter_mut().enumerate().for_each(|(at, x)| {
        *x = if at % 2 == 0 { 1e9 } else { -1e9 } * (1.0 + at as f32 * 1e-3);
    });
    let shape = [ROWS as u64, COLS as u64];
    let inputs = vec![Tensor::from_f32(&shape, &values).expect("a tensor")];
    let mut reference = |inputs: &[Tensor]| row_sums(inputs, in_order);
    let mut wrong = |inputs: &[Tensor]| row_sums(inputs, |row| in_order(row) * 1.000_1);
    let shuffle = Shuffle::last_dim();
    let settings = (&Options::default(), &BandOptions::default());
    let comparison =
        compare_operations(&mut reference, &mut wrong, &inputs, &shuffle, settings).expect("run");
    let band = comparison.band.as_ref().expect("a band");
    assert!(band.outside > 200, "{}", band.outside);
    assert!(comparison.finds(FindingKind::Band));
}

fn matmul(inputs: &[Tensor], dot: impl Fn(&[f32], &[f32]) -> f32) -> Result<Tensor, String> {
    let (a, b) = (floats(&inputs[0]), floats(&inputs[1]));
    let (m, k) = (inputs[0].shape()[0] as usize, inputs[0].shape()[1] as usize);
    let n = inputs[1].shape()[1] as usize;
    let column = |j: usize| (0..k).map(|at| b[at * n + j]).collect::<Vec<f32>>();
    let columns: Vec<Vec<f32>> = (0..n).map(column).collect();
    let value = |at: usize| dot(&a[at / n * k..at / n * k + k], &columns[at % n]);
    let values: Vec<f32> = (0..m * n).map(value).collect();
    Tensor::from_f32(&[m as u64, n as u64], &values).map_err(|error| error.to_string())
}

fn plain_dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (x, y)| sum + x * y)
}

fn product(candidate: impl Fn(&[f32], &[f32]) -> f32 + Copy) -> Comparison {
    let (m, k, n) = (48, 96, 40);
    let tensor = |rows: usize, cols: usize, seed: u64| {
        let mut random = SplitMix64::new(seed);
        let values: Vec<f32> = (0..rows * cols).map(|_| random.normal() as f32).collect();
        Tensor::from_f32(&[rows as u64, cols as u64], &values).expect("a tensor")
    };
    let inputs = [tensor(m, k, SEED), tensor(k, n, SEED + 1)];
    let mut reference = |inputs: &[Tensor]| matmul(inputs, plain_dot);
    let mut candidate = |inputs: &[Tensor]| matmul(inputs, candidate);
    let settings = (&Options::default(), &BandOptions::default());
    compare_operations(&mut reference, &mut candidate, &inputs, &Shuffle::matmul_k(), settings)
        .expect("run")
}

#[test]
fn contraction_to_fma_and_a_split_of_k_pass_and_a_lost_k_does_not() {
    let fused = product(|a, b| a.iter().zip(b).fold(0.0, |sum: f32, (x, y)| x.mul_add(*y, sum)));
    let split = product(|a, b| {
        let parts = a.chunks(24).zip(b.chunks(24)).map(|(a, b)| plain_dot(a, b));
        parts.fold(0.0, |sum, part| sum + part)
    });
    for comparison in [fused, split] {
        assert_eq!(comparison.outcome, Outcome::Pass, "{:?}", comparison.findings);
        assert!(comparison.outside > 0);
    }
    let lost = product(|a, b| plain_dot(&a[1..], &b[1..]));
    assert!(lost.finds(FindingKind::Band));
    let narrow = product(|a, b| Format::F16.round(f64::from(plain_dot(a, b))) as f32);
    assert!(narrow.finds(FindingKind::Band));
}

#[test]
fn a_shuffle_of_ones_own_serves_and_a_class_that_no_order_gives_is_found() {
    let reverse = Shuffle::own("rotate", |inputs, random| {
        let mut values = inputs[0].values();
        for row in values.chunks_mut(COLS) {
            row.rotate_left(random.below(COLS as u64) as usize);
        }
        Tensor::from_values(Format::F32, inputs[0].shape(), &values)
            .map(|tensor| vec![tensor])
            .map_err(|error| error.to_string())
    });
    let mut reference = |inputs: &[Tensor]| row_sums(inputs, in_order);
    let bands = Bands::measure(&mut reference, &inputs(), &reverse, &BandOptions::default())
        .expect("measured");
    let mut sums = floats(bands.plain());
    let judge = |sums: &[f32]| {
        let tensor = Tensor::from_f32(&[ROWS as u64], sums).expect("a tensor");
        bands.judge(&tensor.view(), &Options::default()).expect("judged")
    };
    assert_eq!(judge(&sums).outcome, Outcome::Pass);
    sums[7] = f32::NAN;
    assert!(judge(&sums).finds(FindingKind::Class));
}

#[test]
fn too_few_shuffles_and_inputs_that_do_not_fit_are_refused() {
    let mut reference = |inputs: &[Tensor]| row_sums(inputs, in_order);
    let few = BandOptions { shuffles: 1, ..BandOptions::default() };
    Bands::measure(&mut reference, &inputs(), &Shuffle::last_dim(), &few).expect_err("refused");
    let options = BandOptions::default();
    let error = Bands::measure(&mut reference, &inputs(), &Shuffle::matmul_k(), &options);
    assert!(error.expect_err("refused").to_string().contains("[.., M, K]"));
    let mut fails = |_: &[Tensor]| Err("out of luck".to_owned());
    let error = Bands::measure(&mut fails, &inputs(), &Shuffle::last_dim(), &options);
    assert!(error.expect_err("refused").to_string().contains("out of luck"));
}

#[test]
fn the_map_of_bands_shows_distances_over_what_is_allowed_and_agrees_with_the_verdict() {
    let bands = bands();
    let mut sums = floats(bands.plain());
    sums[77] += 3.0 * bands.half_width(77).expect("a band") as f32;
    sums[300] = f32::NAN;
    let candidate = Tensor::from_f32(&[ROWS as u64], &sums).expect("a tensor");
    let judged = bands.judge(&candidate.view(), &Options::default()).expect("judged");
    let map = bands.map("sums", &candidate.view());
    assert_eq!((map.rows, map.cols, map.limit), (1, ROWS as u64, Some(1.0)));
    assert_eq!(map.unit, "half widths");
    let worst = map.cells.iter().flatten().copied().fold(0.0, f64::max);
    let band = judged.band.expect("bands");
    assert_eq!(band.max_bands.expect("a distance").0, worst);
    assert!((2.0..4.0).contains(&worst), "{worst}");
    let over = map.cells.iter().flatten().filter(|cell| **cell > 1.0).count();
    assert_eq!((over as u64, band.outside), (1, 1));
    assert_eq!(map.cell(0, 77).and_then(|cell| map.cells[cell]), Some(worst));
    let broken = map.cell(0, 300).expect("a cell");
    assert_eq!((map.nonfinite[broken], map.nonfinite.iter().sum::<u64>()), (1, 1));
    // The same from outputs that lie in files: those of the shuffles alone are needed.
    let rotated = |by: usize| {
        row_sums(&inputs(), |row| in_order(&[&row[by..], &row[..by]].concat())).expect("sums")
    };
    let mut shuffled: Vec<Box<dyn Source>> =
        (1..=32).map(|by| Box::new(rotated(by * 8)) as Box<dyn Source>).collect();
    let options = (&Options::default(), &BandOptions::default());
    let streamed = shuffled_map("sums", &mut candidate.clone(), &mut shuffled, options);
    let streamed = streamed.expect("drawn");
    let over = streamed.cells.iter().flatten().filter(|cell| **cell > 1.0).count();
    assert_eq!(
        (streamed.cells.len(), over, streamed.nonfinite),
        (map.cells.len(), 1, map.nonfinite)
    );
    let few = shuffled_map("sums", &mut candidate.clone(), &mut shuffled[..3], options);
    assert!(few.is_err());
}
