//! The kernel against the CPU: every count, every sum and every worst element, bit for bit.

use assay_compare::{DeviceArray, DeviceComparer, Options, Tensor, compare};
use assay_device::{Allocation, Device};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::Tolerance;

const SEED: u64 = 40_961;

/// A tensor of ordinary values, and one that differs from it in all sorts of ways.
fn pair(format: Format, count: usize, random: &mut SplitMix64) -> (Tensor, Tensor) {
    let bytes = format.bits() as usize / 8;
    let specials = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-45, -3e38];
    let values: Vec<f64> = (0..count)
        .map(|_| match random.below(16) {
            0 => specials[random.below(8) as usize],
            1 => random.normal() * 1e-30,
            _ => random.normal(),
        })
        .collect();
    let one = format.encode_slice(&values);
    let mut other = one.clone();
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
    let shape = [count as u64];
    let tensor = |bytes| Tensor::new(format, &shape, bytes).expect("a tensor");
    (tensor(one), tensor(other))
}

fn upload(device: &mut dyn Device, tensor: &Tensor, offset: u64) -> DeviceArray {
    let bytes = tensor.bytes().len() as u64 + offset;
    let buffer = device.allocate(&Allocation::new(bytes)).expect("allocated");
    device.write(buffer, offset, tensor.bytes()).expect("written");
    DeviceArray { buffer, offset, format: tensor.format(), shape: tensor.shape().to_vec() }
}

fn held_against_the_cpu(device: &mut dyn Device, format: Format, count: usize, offset: u64) {
    let mut random = SplitMix64::new(SEED + count as u64);
    let (one, other) = pair(format, count, &mut random);
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    let (reference, candidate) = (upload(device, &one, offset), upload(device, &other, offset));
    for (tolerance, equal_nan) in [
        (Tolerance::EXACT, false),
        (Tolerance { zero_atol: 1e-3, ..Tolerance::new(1e-6, 1e-5) }, true),
        (Tolerance { max_ulp: 2, ..Tolerance::new(1e-20, 0.0) }, false),
    ] {
        let options = Options { tolerance, equal_nan, ..Options::default() };
        let there = comparer.compare(device, &reference, &candidate, &options).expect("compared");
        let here = compare(&one.view(), &other.view(), &options).expect("compared");
        assert_eq!(there, here, "{format}, {count} elements, seed {SEED}");
        assert!(count < 10_000 || there.outside > 0 && there.zero_signs > 0);
    }
}

fn every_format_is_as_on_the_cpu(device: &mut dyn Device, counts: &[usize]) {
    for format in [Format::F32, Format::F16, Format::Bf16, Format::F64] {
        for &count in counts {
            held_against_the_cpu(device, format, count, 16);
        }
    }
    // No kernel, or no alignment for it: read back and compared all the same.
    held_against_the_cpu(device, Format::E5m2, 700, 0);
    held_against_the_cpu(device, Format::F32, 700, 4);
}

#[test]
fn the_emulated_kernel_gives_the_bits_of_the_cpu() {
    let mut device = assay_device::open("emulator:sm_90").expect("opened");
    every_format_is_as_on_the_cpu(&mut *device, &[1, 6, 515, 16_384, 33_001]);
}

#[test]
fn the_kernel_gives_the_bits_of_the_cpu_gpu() {
    let mut device = match assay_device::open("cuda") {
        Ok(device) => device,
        Err(error) => {
            eprintln!("SKIPPED the_kernel_gives_the_bits_of_the_cpu_gpu: {error}");
            return;
        }
    };
    every_format_is_as_on_the_cpu(&mut *device, &[1, 6, 515, 16_384, 33_001, 40_000_003]);
}
