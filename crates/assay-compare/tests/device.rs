//! The kernel against the CPU: every count, every sum and every worst element, bit for bit.

use std::io::Write as _;
use std::time::Instant;

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

/// The medians of the times of whole comparisons of `2^28` elements, in milliseconds, printed: the
/// launch, the reading of the results and the worst elements are in them.
#[test]
fn a_quarter_of_a_billion_elements_take_a_millisecond_or_two_gpu() {
    let test = "a_quarter_of_a_billion_elements_take_a_millisecond_or_two_gpu";
    let mut device = match assay_device::open("cuda") {
        Ok(device) => device,
        Err(error) => {
            say(&format!("SKIPPED {test}: {error}"));
            return;
        }
    };
    let device = &mut *device;
    let options = Options { tolerance: Tolerance::new(1e-4, 1e-4), ..Options::default() };
    for format in [Format::F32, Format::Bf16, Format::F16, Format::F64] {
        let tile = near_pair(format, 1 << 20);
        let arrays = [&tile.0, &tile.1].map(|tile| repeated(device, tile, 256));
        let [reference, candidate] = &arrays;
        let mut comparer = DeviceComparer::new(device).expect("loaded");
        let mut times: Vec<f64> = (0..11)
            .map(|_| {
                let start = Instant::now();
                let comparison =
                    comparer.compare(device, reference, candidate, &options).expect("compared");
                assert_eq!(comparison.elements, 1 << 28);
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let (median, least) = (times[5], times[0]);
        say(&format!("{format} 2^28 on the device: median {median:.3} ms, least {least:.3}"));
        let start = Instant::now();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool");
        let run = || compare(&tile.0.view(), &tile.1.view(), &options).expect("compared");
        let rounds = 40;
        pool.install(|| (0..rounds).for_each(|_| assert!(run().elements > 0)));
        let bytes = rounds * 2 * tile.0.bytes().len();
        let rate = bytes as f64 / start.elapsed().as_secs_f64() / 1e9;
        say(&format!("{format} 2^20 on one core: {rate:.2} GB/s of both arrays"));
        for array in arrays {
            device.free(array.buffer).expect("freed");
        }
    }
}

/// Writes a line past the test harness.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Values, and the same off by a few ulp.
fn near_pair(format: Format, count: usize) -> (Tensor, Tensor) {
    let mut random = SplitMix64::new(SEED);
    let values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
    let one = format.encode_slice(&values);
    let mut other = one.clone();
    for element in other.chunks_mut(format.bits() as usize / 8) {
        element[0] ^= random.below(4) as u8;
    }
    let shape = [count as u64];
    let tensor = |bytes| Tensor::new(format, &shape, bytes).expect("a tensor");
    (tensor(one), tensor(other))
}

fn repeated(device: &mut dyn Device, tile: &Tensor, times: u64) -> DeviceArray {
    let bytes = tile.bytes().len() as u64;
    let buffer = device.allocate(&Allocation::new(bytes * times)).expect("allocated");
    (0..times).for_each(|at| device.write(buffer, at * bytes, tile.bytes()).expect("written"));
    let shape = vec![tile.shape()[0] * times];
    DeviceArray { buffer, offset: 0, format: tile.format(), shape }
}

#[test]
fn the_kernel_gives_the_bits_of_the_cpu_gpu() {
    let mut device = match assay_device::open("cuda") {
        Ok(device) => device,
        Err(error) => {
            say(&format!("SKIPPED the_kernel_gives_the_bits_of_the_cpu_gpu: {error}"));
            return;
        }
    };
    every_format_is_as_on_the_cpu(&mut *device, &[1, 6, 515, 16_384, 33_001, 40_000_003]);
}
