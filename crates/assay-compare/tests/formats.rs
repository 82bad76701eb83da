//! Every format against a plain second way of counting, on special values, strides and pieces.

use assay_compare::{ArrayView, Options, Tensor, compare};
use assay_num::random::SplitMix64;
use assay_num::{Class, Format};
use assay_record::{Comparison, Outcome, Tolerance};

const SEED: u64 = 7_001;

/// Random bits, with all kinds of special values among them.
fn bits(format: Format, count: usize, random: &mut SplitMix64) -> Vec<u64> {
    let mask = if format.bits() == 64 { u64::MAX } else { (1 << format.bits()) - 1 };
    let mut specials: Vec<u64> = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
        .map(|value| {
            let bytes = format.encode_slice(&[value]);
            bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
        })
        .to_vec();
    specials.extend([1, mask, mask >> 1, mask >> 1 ^ 1, 1 << (format.bits() - 1)]);
    (0..count)
        .map(|_| match random.below(4) {
            0 => specials[random.below(specials.len() as u64) as usize],
            _ => random.next_u64() & mask,
        })
        .collect()
}

/// The bits as packed bytes.
fn pack(format: Format, bits: &[u64]) -> Vec<u8> {
    let width = format.bits() as usize;
    let mut bytes = vec![0u8; (bits.len() * width).div_ceil(8)];
    for (at, word) in bits.iter().enumerate() {
        for bit in 0..width {
            let to = at * width + bit;
            bytes[to / 8] |= ((word >> bit & 1) as u8) << (to % 8);
        }
    }
    bytes
}

/// The place of a value in the order of all values of its format.
fn rank(format: Format, bits: u64) -> i128 {
    let bits = if format == Format::Tf32 { bits >> 13 } else { bits };
    let width = if format == Format::Tf32 { 19 } else { format.bits() };
    if format == Format::E8m0 || format.name().starts_with('u') {
        return i128::from(bits);
    }
    let sign = 1u128 << (width - 1);
    if format.is_float() {
        let magnitude = (u128::from(bits) & (sign - 1)) as i128;
        return if u128::from(bits) & sign == 0 { magnitude } else { -magnitude };
    }
    if u128::from(bits) & sign == 0 {
        i128::from(bits)
    } else {
        i128::from(bits) - 2 * sign as i128
    }
}

struct Plain {
    histogram: Vec<u64>,
    ulp_sum: u128,
    signed: i128,
    max: u64,
    mismatches: u64,
    zero_signs: u64,
    first: Option<u64>,
    finite: u64,
}

fn plain(format: Format, reference: &[u64], candidate: &[u64]) -> Plain {
    let mut plain = Plain {
        histogram: vec![0; 65],
        ulp_sum: 0,
        signed: 0,
        max: 0,
        mismatches: 0,
        zero_signs: 0,
        first: None,
        finite: 0,
    };
    for (at, (&one, &other)) in reference.iter().zip(candidate).enumerate() {
        let (r, c) = (format.decode(one), format.decode(other));
        let same_class = Class::of(r) == Class::of(c);
        let mut different = !same_class || r.is_nan();
        plain.mismatches += u64::from(!same_class);
        if r.is_finite() && c.is_finite() {
            let steps = rank(format, other) - rank(format, one);
            plain.finite += 1;
            plain.histogram[(128 - steps.unsigned_abs().leading_zeros()) as usize] += 1;
            plain.ulp_sum += steps.unsigned_abs();
            plain.signed += steps;
            plain.max = plain.max.max(steps.unsigned_abs() as u64);
            let flip = r == 0.0 && c == 0.0 && r.is_sign_negative() != c.is_sign_negative();
            plain.zero_signs += u64::from(flip);
            different |= steps != 0 || flip;
        }
        if different && plain.first.is_none() {
            plain.first = Some(at as u64);
        }
    }
    plain
}

fn assert_same(format: Format, comparison: &Comparison, plain: &Plain) {
    let mut histogram = comparison.ulp.histogram.clone();
    histogram.resize(65, 0);
    assert_eq!(histogram, plain.histogram, "{format}");
    let mean = |sum: f64| (plain.finite > 0).then(|| sum / plain.finite as f64);
    assert_eq!(comparison.ulp.mean, mean(plain.ulp_sum as f64), "{format}");
    assert_eq!(comparison.ulp.mean_signed, mean(plain.signed as f64), "{format}");
    assert_eq!(comparison.ulp.max, plain.max, "{format}");
    assert_eq!(comparison.zero_signs, plain.zero_signs, "{format}");
    assert_eq!(comparison.first_different, plain.first.map(|at| vec![at]), "{format}");
    let pairs = comparison.census.iter().filter(|pair| pair.reference != pair.candidate);
    assert_eq!(pairs.map(|pair| pair.count).sum::<u64>(), plain.mismatches, "{format}");
}

#[test]
fn every_format_counts_as_a_plain_loop_does() {
    let mut random = SplitMix64::new(SEED);
    for format in Format::ALL {
        for count in [1usize, 511, 512, 513, 16_384, 70_001] {
            let reference = bits(format, count, &mut random);
            let mut candidate = bits(format, count, &mut random);
            for (at, word) in candidate.iter_mut().enumerate() {
                if random.below(3) != 0 || at < count / 2 {
                    *word = reference[at];
                }
            }
            let pack = |bits| Tensor::new(format, &[count as u64], pack(format, bits));
            let one = pack(&reference).expect("a tensor");
            let other = pack(&candidate).expect("a tensor");
            let options = Options { tolerance: Tolerance::ulp(3), ..Options::default() };
            let comparison = compare(&one.view(), &other.view(), &options).expect("compared");
            assert_same(format, &comparison, &plain(format, &reference, &candidate));
        }
    }
}

#[test]
fn an_integer_past_2_to_the_53_differs_from_its_neighbour() {
    for (format, one) in [(Format::I64, 1u64 << 60), (Format::U64, u64::MAX - 1)] {
        let tensor = |value: u64| Tensor::new(format, &[1], value.to_le_bytes().to_vec());
        let (one, other) = (tensor(one).expect("a tensor"), tensor(one + 1).expect("a tensor"));
        let options = Options::default();
        let comparison = compare(&one.view(), &other.view(), &options).expect("compared");
        assert_eq!(comparison.outcome, Outcome::Fail);
        assert_eq!((comparison.ulp.max, comparison.outside), (1, 1));
    }
}

/// A shape, strides and an offset, and the values that they show.
type Case<'a> = (&'a [u64], &'a [i64], u64, Vec<f32>);

#[test]
fn a_transposed_a_reversed_a_broadcast_and_a_sliced_view_are_compared_by_coordinates() {
    let values: Vec<f32> = (0..12).map(|at| at as f32).collect();
    let whole = Tensor::from_f32(&[3, 4], &values).expect("a tensor");
    let view = |shape: &[u64], strides: &[i64], offset| {
        ArrayView::strided(Format::F32, whole.bytes(), shape, strides, offset)
    };
    let transposed: Vec<f32> = (0..12).map(|at| values[at % 3 * 4 + at / 3]).collect();
    let reversed: Vec<f32> = values.iter().rev().copied().collect();
    let cases: [Case<'_>; 4] = [
        (&[4, 3], &[1, 4], 0, transposed),
        (&[3, 4], &[-4, -1], 11, reversed),
        (&[2, 3], &[0, 4], 1, vec![1.0, 5.0, 9.0, 1.0, 5.0, 9.0]),
        (&[2, 2], &[4, 2], 5, vec![5.0, 7.0, 9.0, 11.0]),
    ];
    for (shape, strides, offset, expected) in cases {
        let expected = Tensor::from_f32(shape, &expected).expect("a tensor");
        let view = view(shape, strides, offset).expect("a view");
        let comparison = compare(&expected.view(), &view, &Options::default()).expect("compared");
        assert_eq!(comparison.outcome, Outcome::Pass, "{strides:?}: {:?}", comparison.worst_ulp);
    }
    for (shape, strides, offset) in
        [(&[4, 3][..], &[1, 4][..], 1), (&[2], &[-1], 0), (&[1 << 40], &[1], 0), (&[3], &[1, 1], 0)]
    {
        view(shape, strides, offset).expect_err("refused");
    }
    ArrayView::new(Format::F32, whole.bytes(), &[u64::MAX, 4]).expect_err("refused");
    ArrayView::new(Format::F32, whole.bytes(), &[13]).expect_err("refused");
}

#[test]
fn packed_codes_are_sliced_bit_by_bit() {
    let values: Vec<f64> = (0..40).map(|at| f64::from(at % 8)).collect();
    let whole = Tensor::from_values(Format::U3, &[40], &values).expect("a tensor");
    let sliced = Tensor::from_values(Format::U3, &[9], &values[5..14]).expect("a tensor");
    let view = ArrayView::strided(Format::U3, whole.bytes(), &[9], &[1], 5).expect("a view");
    let comparison = compare(&sliced.view(), &view, &Options::default()).expect("compared");
    assert_eq!(comparison.outcome, Outcome::Pass, "{:?}", comparison.worst_ulp);
}

#[test]
fn the_sums_do_not_depend_on_how_many_threads_take_them() {
    let mut random = SplitMix64::new(SEED);
    let mut values = |count: usize| (0..count).map(|_| random.normal() as f32).collect::<Vec<_>>();
    let count = 3_000_017;
    let (reference, candidate) = (values(count), values(count));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let one = Tensor::from_f32(&[count as u64], &reference).expect("a tensor");
        let other = Tensor::from_f32(&[count as u64], &candidate).expect("a tensor");
        pool.install(|| compare(&one.view(), &other.view(), &Options::default()).expect("compared"))
    };
    let once = run(1);
    assert_eq!(once, run(2));
    assert_eq!(once, run(5));
}
