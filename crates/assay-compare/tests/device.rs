//! The kernels against the CPU on the emulator: every count, every sum and every worst element, bit
//! for bit.

mod arrays;

use arrays::shuffled::{a_product_is_as_on_the_cpu, bands_are_as_on_the_cpu};
use arrays::{
    SEED, every_format_is_as_on_the_cpu, held_against_the_cpu, other_ways_are_as_on_the_cpu, pair,
};
use assay_compare::{
    BLOCK, CompareError, DeviceComparer, Options, Source, SourceError, Tensor, compare,
    compare_sources,
};
use assay_device::Device;
use assay_device::fault::{FaultInjecting, FaultPlan};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::{Comparison, Tolerance};

#[test]
fn the_emulated_kernel_gives_the_bits_of_the_cpu() {
    let mut device = assay_device::open("emulator:sm_90").expect("opened");
    every_format_is_as_on_the_cpu(&mut *device, &[1, 6, 515, 33_001]);
}

#[test]
fn other_ways_through_the_emulated_kernels_give_the_bits_of_the_cpu() {
    let mut device = assay_device::open("emulator:sm_90").expect("opened");
    other_ways_are_as_on_the_cpu(&mut *device);
}

#[test]
fn bands_on_the_emulator_are_those_of_the_cpu() {
    let mut device = assay_device::open("emulator:sm_90").expect("opened");
    bands_are_as_on_the_cpu(&mut *device, &Format::ALL, &[1, 700]);
    bands_are_as_on_the_cpu(&mut *device, &[Format::F32, Format::U4], &[9_001]);
    a_product_is_as_on_the_cpu(&mut *device);
}

/// Two tensors of a format, and the device's comparison of them in pieces of two blocks.
fn in_pieces(
    device: &mut dyn Device,
    (one, other): (&Tensor, &Tensor),
    options: &Options,
) -> Result<Comparison, CompareError> {
    let mut comparer = DeviceComparer::new(device)?.with_pieces_of(2);
    let mut done = Vec::new();
    let (mut one, mut other) = (one.view(), other.view());
    let result = comparer.compare_sources(device, (&mut one, &mut other), options, &mut |all| {
        done.push(all);
    });
    assert!(done.is_sorted());
    result
}

#[test]
fn pieces_give_the_same_as_the_whole() {
    let mut device = assay_device::open("emulator:sm_90").expect("opened");
    let mut random = SplitMix64::new(SEED);
    let options = Options { tolerance: Tolerance::new(1e-6, 1e-5), ..Options::default() };
    for (format, count) in [(Format::F32, 7 * BLOCK + 77), (Format::U3, 4 * BLOCK), (Format::U8, 0)]
    {
        let (one, other) = pair(format, count, &mut random);
        let there = in_pieces(&mut *device, (&one, &other), &options).expect("compared");
        assert_eq!(there, compare(&one.view(), &other.view(), &options).expect("compared"));
    }
    // A reference of another format is rounded on its way.
    let (one, _) = pair(Format::F64, 40_000, &mut random);
    let (_, other) = pair(Format::Bf16, 40_000, &mut random);
    let options = Options { round_reference: true, ..options };
    let there = in_pieces(&mut *device, (&one, &other), &options).expect("compared");
    assert_eq!(there, compare(&one.view(), &other.view(), &options).expect("compared"));
}

#[test]
fn a_device_that_is_lost_leaves_what_it_compared_until_then() {
    let mut random = SplitMix64::new(SEED);
    let (one, _) = pair(Format::F32, 5 * BLOCK, &mut random);
    let options = Options { equal_nan: true, ..Options::default() };
    let with = |plan| {
        let emulator = assay_device::open("emulator:sm_90").expect("opened");
        let mut device = FaultInjecting::new(emulator, plan);
        in_pieces(&mut device, (&one, &one), &options)
    };
    let whole = with(FaultPlan::default()).expect("compared");
    assert!(whole.passes() && whole.broke_off.is_none());
    // Each piece takes three launches.
    let part = with(FaultPlan { lose_at_launch: Some(5), ..FaultPlan::default() });
    let part = part.expect("a part");
    assert_eq!((part.compared, part.elements), (2 * BLOCK as u64, 5 * BLOCK as u64));
    assert!(!part.passes());
    assert!(part.broke_off.is_some_and(|why| why.contains("lost on plan")));
    let nothing = with(FaultPlan { lose_at_launch: Some(2), ..FaultPlan::default() });
    assert!(matches!(nothing, Err(CompareError::Device(_))), "{nothing:?}");
    let no_room = with(FaultPlan { fail_allocation: Some(1), ..FaultPlan::default() });
    assert!(matches!(no_room, Err(CompareError::Device(_))), "{no_room:?}");
}

/// A tensor that can be read only so far.
struct Short {
    tensor: Tensor,
    readable: u64,
}

impl Source for Short {
    fn format(&self) -> Format {
        self.tensor.format()
    }

    fn shape(&self) -> &[u64] {
        self.tensor.shape()
    }

    fn read(&mut self, first: u64, count: u64, out: &mut Vec<u8>) -> Result<(), SourceError> {
        if first + count > self.readable {
            return Err(SourceError::Broken("it ends".to_owned()));
        }
        self.tensor.view().read(first, count, out)
    }

    fn readable(&self) -> Option<u64> {
        Some(self.readable)
    }
}

#[test]
fn an_array_that_ends_early_is_compared_as_far_as_on_the_cpu() {
    let mut device = assay_device::open("emulator:sm_90").expect("opened");
    let mut random = SplitMix64::new(SEED);
    let (one, other) = pair(Format::F16, 5 * BLOCK, &mut random);
    let options = Options::default();
    for readable in [0, 100, 4 * BLOCK as u64, 4 * BLOCK as u64 + 777] {
        let mut comparer = DeviceComparer::new(&mut *device).expect("loaded").with_pieces_of(2);
        let short = || Short { tensor: other.clone(), readable };
        let (mut here, mut there) = (one.view(), short());
        let pair = (&mut here as &mut dyn Source, &mut there as &mut dyn Source);
        let on_device = comparer.compare_sources(&mut *device, pair, &options, &mut |_| {});
        let on_cpu = compare_sources(&mut one.view(), &mut short(), &options);
        match (on_device, on_cpu) {
            (Ok(there), Ok(here)) => assert!(there == here && here.compared == readable),
            (Err(_), Err(_)) => assert_eq!(readable, 0),
            (there, here) => panic!("{there:?} {here:?}"),
        }
    }
}

#[test]
fn a_comparer_serves_arrays_that_grow_and_shrink() {
    let mut device = assay_device::open("emulator:sm_90").expect("opened");
    let mut comparer = DeviceComparer::new(&mut *device).expect("loaded");
    for (worst, count) in [(3, 100), (20, 60_000), (0, 5), (32, 17_000), (2, 60_000)] {
        let options = Options { worst, ..Options::default() };
        let what = (Format::E5m2, count, 0);
        held_against_the_cpu(&mut *device, &mut comparer, what, &options);
    }
}
