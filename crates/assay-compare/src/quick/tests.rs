//! The quick way against the general one, at every width of vectors: the same bits.

use assay_device::Vectors;
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::Tolerance;

use super::Quick;
use crate::array::storage;
use crate::counts::{BLOCK, Counts, LANES};
use crate::scan::{BlockResult, Largest, Rules, Scan, Totals};

const SEED: u64 = 90_210;

/// All but integers of 64 bits, whose rows all go the general way.
fn formats() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|format| !matches!(format, Format::I64 | Format::U64))
}

/// How rare everything but a change of the last bits is: one of so many elements.
type Rarity = u64;

fn bytes(format: Format, rarity: Rarity, random: &mut SplitMix64) -> (Vec<u8>, Vec<u8>) {
    // A byte holds several elements of fewer bits.
    let width = format.bits().div_ceil(8) as usize;
    let specials = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-45, -3e38, 6e-8];
    let values: Vec<f64> = (0..BLOCK)
        .map(|_| match random.below(rarity) {
            0 => specials[random.below(8) as usize],
            1 => random.normal() * 1e-30,
            // This one has no negative numbers.
            _ if format == Format::E8m0 => random.normal().abs(),
            _ => random.normal(),
        })
        .collect();
    let one = format.encode_slice(&values);
    let mut other = one.clone();
    for (at, element) in other.chunks_mut(width).enumerate() {
        // Some rows stay as they are.
        if (at * 8 * width / format.bits() as usize / LANES).is_multiple_of(3) {
            continue;
        }
        let word = element.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
        let word = match random.below(2 * rarity) {
            0 => random.next_u64(),
            1 => word ^ 1 << (format.bits() - 1),
            2 => 0,
            _ => word ^ (random.below(8) * random.below(2)),
        };
        element.copy_from_slice(&word.to_le_bytes()[..width]);
    }
    (one, other)
}

fn rules(format: Format) -> impl Iterator<Item = Rules> {
    let tolerances = [
        Tolerance::EXACT,
        Tolerance::ulp(2),
        Tolerance::new(0.0, 2e-7),
        Tolerance::new(1e-2, 1e-2),
        Tolerance { zero_atol: 1e-3, max_ulp: 3, ..Tolerance::new(1e-7, 1e-7) },
        // No border below which all zeros are inside; products below what `f32` holds.
        Tolerance::new(1e-3, 1.5),
        Tolerance::new(1e300, 0.0),
        Tolerance::new(0.0, 1e-40),
        Tolerance::new(1e-44, 1e-5),
    ];
    tolerances.into_iter().map(move |tolerance| Rules { format, tolerance, equal_nan: false })
}

fn result(
    mut scan: Scan<'_>,
    pair: (&[u8], &[u8]),
    elements: usize,
) -> (BlockResult, (Counts, Vec<Largest>)) {
    let result = scan.block(pair, (7 * BLOCK as u64, elements));
    (result, scan.finish())
}

#[test]
fn quick_rows_count_as_general_ones_and_as_without_wide_vectors() {
    let mut random = SplitMix64::new(SEED);
    for format in formats() {
        for rarity in [4, 64, 4096, 1 << 40] {
            let (one, other) = bytes(format, rarity, &mut random);
            for rules in rules(format) {
                let held = |elements: usize| {
                    let size = storage(format, elements as u64) as usize;
                    let run = |scan| result(scan, (&one[..size], &other[..size]), elements);
                    let general = run(Scan::with(&rules, Vectors::Baseline, false));
                    let words = format!("{rules:?}, rarity {rarity}, seed {SEED}");
                    for vectors in [Vectors::Baseline, Vectors::widest()] {
                        let quick = run(Scan::with(&rules, vectors, true));
                        assert_eq!(quick, general, "{vectors:?}, {elements}, {words}");
                    }
                };
                held(BLOCK);
                held(3 * LANES + 5);
            }
        }
    }
}

#[test]
fn rows_of_finite_numbers_go_the_quick_way_and_others_do_not() {
    let mut random = SplitMix64::new(SEED);
    for format in formats() {
        let (mut one, other) = bytes(format, 1 << 40, &mut random);
        let rules = Rules { format, tolerance: Tolerance::new(1e-5, 1e-5), equal_nan: false };
        let row = storage(format, LANES as u64) as usize;
        let takes = |one: &[u8], at: usize| {
            let pair = (&one[at * row..][..row], &other[at * row..][..row]);
            let mut quick = Quick::new(&rules);
            quick.row(&rules, pair, 0, &mut Totals::new()).is_some()
        };
        assert!(takes(&one, 0) && takes(&one, 1), "{format}");
        let special = format.encode_slice(&[f64::NAN]);
        if format.decode_slice(&special)[0].is_nan() {
            one[..special.len()].copy_from_slice(&special);
            assert!(!takes(&one, 0), "{format}");
        }
    }
}
