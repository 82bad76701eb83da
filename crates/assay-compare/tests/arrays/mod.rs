//! Arrays on a device, and what holds their comparison against the CPU's.

#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod shuffled;

use assay_compare::{DeviceArray, DeviceComparer, Options, Tensor, compare};
use assay_device::{Allocation, Device};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::Tolerance;

/// What every test's numbers come from.
pub(crate) const SEED: u64 = 40_961;

/// A tensor of ordinary values, and one that differs from it in all sorts of ways.
pub(crate) fn pair(format: Format, count: usize, random: &mut SplitMix64) -> (Tensor, Tensor) {
    let specials = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-45, -3e38];
    let values: Vec<f64> = (0..count)
        .map(|_| match random.below(16) {
            0 => specials[random.below(8) as usize],
            1 => random.normal() * 1e-30,
            _ => random.normal(),
        })
        .collect();
    let mut one = format.encode_slice(&values);
    if !format.is_float() {
        // Of every magnitude, and some next to the largest.
        let width = format.bits() as usize / 8;
        one.chunks_mut(width.max(1)).for_each(|word| match random.below(4) {
            0 => word.fill(random.below(2) as u8 * 255),
            1 => word[0] = random.next_u64() as u8,
            _ => word.fill_with(|| random.next_u64() as u8),
        });
    }
    let other = changed(format, &one, random);
    let shape = [count as u64];
    let tensor = |bytes| Tensor::new(format, &shape, bytes).expect("a tensor");
    (tensor(one), tensor(other))
}

/// The same with some elements near, some far, some of the other sign and some zero.
pub(crate) fn changed(format: Format, one: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut other = one.to_vec();
    let bytes = format.bits() as usize / 8;
    if bytes == 0 {
        for byte in &mut other {
            let word = random.next_u64();
            *byte = if word.is_multiple_of(3) { (word >> 8) as u8 } else { *byte };
        }
        return other;
    }
    for element in other.chunks_mut(bytes) {
        let mut word = element.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
        word = match random.below(24) {
            0 => random.next_u64(),
            1 => word ^ 1 << (format.bits() - 1),
            2 => 0,
            3..8 => word.wrapping_add(random.below(4)),
            8..12 => word.wrapping_sub(random.below(3)),
            _ => word,
        };
        element.copy_from_slice(&word.to_le_bytes()[..bytes]);
    }
    other
}

pub(crate) fn upload(device: &mut dyn Device, tensor: &Tensor, offset: u64) -> DeviceArray {
    let bytes = tensor.bytes().len() as u64 + offset;
    let buffer = device.allocate(&Allocation::new(bytes)).expect("allocated");
    device.write(buffer, offset, tensor.bytes()).expect("written");
    DeviceArray { buffer, offset, format: tensor.format(), shape: tensor.shape().to_vec() }
}

/// Tolerances that ask different questions of an element.
pub(crate) fn tolerances() -> [(Tolerance, bool); 3] {
    [
        (Tolerance::EXACT, false),
        (Tolerance { zero_atol: 1e-3, ..Tolerance::new(1e-6, 1e-5) }, true),
        (Tolerance { max_ulp: 2, ..Tolerance::new(1e-20, 0.0) }, false),
    ]
}

pub(crate) fn held_against_the_cpu(
    device: &mut dyn Device,
    comparer: &mut DeviceComparer,
    (format, count, offset): (Format, usize, u64),
    options: &Options,
) {
    let mut random = SplitMix64::new(SEED + count as u64);
    let (one, other) = pair(format, count, &mut random);
    let (reference, candidate) = (upload(device, &one, offset), upload(device, &other, offset));
    for (tolerance, equal_nan) in tolerances() {
        let options = Options { tolerance, equal_nan, ..options.clone() };
        let there = comparer.compare(device, &reference, &candidate, &options).expect("compared");
        let here = compare(&one.view(), &other.view(), &options).expect("compared");
        assert_eq!(there, here, "{format}, {count} elements, seed {SEED}");
        assert!(count < 10_000 || there.outside > 0);
    }
    for array in [reference, candidate] {
        device.free(array.buffer).expect("freed");
    }
}

pub(crate) fn every_format_is_as_on_the_cpu(device: &mut dyn Device, counts: &[usize]) {
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    for format in Format::ALL {
        for &count in counts {
            let what = (format, count, 16);
            held_against_the_cpu(device, &mut comparer, what, &Options::default());
        }
    }
}

/// Arrays and options for which the kernels go other ways, with the same results.
pub(crate) fn other_ways_are_as_on_the_cpu(device: &mut dyn Device) {
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    let plain = Options::default();
    // Aligned to an element only, and not even that.
    held_against_the_cpu(device, &mut comparer, (Format::F32, 17_001, 4), &plain);
    held_against_the_cpu(device, &mut comparer, (Format::F16, 700, 1), &plain);
    held_against_the_cpu(device, &mut comparer, (Format::E2m1, 17_001, 3), &plain);
    // None of the worst, one, and more than the device looks for.
    for worst in [0, 1, 32, 33, 200] {
        let options = Options { worst, ..Options::default() };
        held_against_the_cpu(device, &mut comparer, (Format::F32, 50_000, 0), &options);
    }
    // Where one comparison with the least magnitude that a zero cannot stand for may be wrong.
    let mut random = SplitMix64::new(SEED);
    let (one, other) = pair(Format::F32, 17_000, &mut random);
    let (reference, candidate) = (upload(device, &one, 0), upload(device, &other, 0));
    let options = Options { tolerance: Tolerance::new(1e-7, 0.999_999_9), ..plain };
    let there = comparer.compare(device, &reference, &candidate, &options).expect("compared");
    assert_eq!(there, compare(&one.view(), &other.view(), &options).expect("compared"));
}
