//! The kernels against the CPU on a GPU, and how long whole comparisons take there.
//!
//!     ASSAY_COMPARE_OUT=speed.jsonl cargo test -p assay-compare --test device_gpu speed
//!
//! appends one line a format to the file; `benches/compare/torch_equal.py` appends those of torch.

mod arrays;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Instant;

use arrays::shuffled::{a_product_is_as_on_the_cpu, bands_are_as_on_the_cpu};
use arrays::{
    SEED, every_format_is_as_on_the_cpu, held_against_the_cpu, other_ways_are_as_on_the_cpu,
};
use assay_compare::{DeviceArray, DeviceComparer, Options, Tensor};
use assay_device::cupti::Activity;
use assay_device::nvml::Telemetry;
use assay_device::{Device, StreamId};
use assay_num::Format;
use assay_num::random::SplitMix64;
use assay_record::Tolerance;
use serde_json::{Value, json};

/// Elements of the arrays that are timed.
const ELEMENTS: u64 = 1 << 28;

/// Comparisons of each kind.
const TIMES: usize = 31;

/// Writes a line past the test harness.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The first GPU, or a line that says why the test is skipped.
fn gpu(test: &str) -> Option<Box<dyn Device>> {
    match assay_device::open("cuda") {
        Ok(device) => Some(device),
        Err(error) => {
            say(&format!("SKIPPED {test}: {error}"));
            None
        }
    }
}

#[test]
fn the_kernels_give_the_bits_of_the_cpu_gpu() {
    let Some(mut device) = gpu("the_kernels_give_the_bits_of_the_cpu_gpu") else { return };
    let device = &mut *device;
    every_format_is_as_on_the_cpu(device, &[1, 6, 515, 16_384, 33_001, 700_001]);
    other_ways_are_as_on_the_cpu(device);
    // More blocks than one group adds up.
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    for format in [Format::F32, Format::U8] {
        let what = (format, 20_000_003, 0);
        held_against_the_cpu(device, &mut comparer, what, &Options::default());
    }
}

#[test]
fn bands_are_those_of_the_cpu_gpu() {
    let Some(mut device) = gpu("bands_are_those_of_the_cpu_gpu") else { return };
    bands_are_as_on_the_cpu(&mut *device, &Format::ALL, &[1, 9_001]);
    bands_are_as_on_the_cpu(&mut *device, &[Format::F32, Format::Bf16], &[150_001]);
    a_product_is_as_on_the_cpu(&mut *device);
}

/// So many blocks that more groups add them up than a group has threads: whole numbers, whose sums
/// are known.
#[test]
fn four_billion_elements_add_up_gpu() {
    let Some(mut device) = gpu("four_billion_elements_add_up_gpu") else { return };
    let device = &mut *device;
    let elements = (600u64 << 23) + 12_345;
    let buffers = [7u8, 7].map(|value| {
        let buffer = device.allocate_bare(elements).expect("allocated");
        device.fill(StreamId::DEFAULT, buffer, 0, elements, value).expect("filled");
        buffer
    });
    let wrong = [0, 1 << 32, (1 << 32) + 1, elements - 1];
    for (index, value) in wrong.iter().zip([8u8, 3, 0, 255]) {
        device.write(buffers[1], *index, &[value]).expect("written");
    }
    let array = |at: usize| DeviceArray {
        buffer: buffers[at],
        offset: 0,
        format: Format::U8,
        shape: vec![elements],
    };
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    let comparison =
        comparer.compare(device, &array(0), &array(1), &Options::default()).expect("compared");
    let squares = [1.0, 16.0, 49.0, 248.0 * 248.0];
    let rms = (squares.iter().sum::<f64>() / elements as f64).sqrt();
    assert_eq!((comparison.outside, comparison.error.zeroed), (4, 1));
    assert_eq!(comparison.error.rms.0.to_bits(), rms.to_bits());
    assert_eq!(comparison.error.reference_rms.0, 7.0);
    let worst: Vec<u64> = comparison.worst_ulp.iter().map(|element| element.index).collect();
    assert_eq!(worst, [wrong[3], wrong[2], wrong[1], wrong[0]]);
    assert_eq!(comparison.first_outside, Some(vec![0]));
}

/// Values, and the same off by a few of the lowest bits.
fn near_pair(format: Format, count: usize) -> (Tensor, Tensor) {
    let mut random = SplitMix64::new(SEED);
    let values: Vec<f64> = (0..count).map(|_| random.normal() * 4.0).collect();
    let one = format.encode_slice(&values);
    let mut other = one.clone();
    for element in other.chunks_mut((format.bits() as usize / 8).max(1)) {
        element[0] ^= random.below(4) as u8;
    }
    let shape = [count as u64];
    let tensor = |bytes| Tensor::new(format, &shape, bytes).expect("a tensor");
    (tensor(one), tensor(other))
}

fn repeated(device: &mut dyn Device, tile: &Tensor, times: u64) -> DeviceArray {
    let bytes = tile.bytes().len() as u64;
    let buffer = device.allocate_bare(bytes * times).expect("allocated");
    (0..times).for_each(|at| device.write(buffer, at * bytes, tile.bytes()).expect("written"));
    let shape = vec![tile.shape()[0] * times];
    DeviceArray { buffer, offset: 0, format: tile.format(), shape }
}

/// Times of whole calls in milliseconds: by the host's clock, and between two events of the device.
fn calls(
    device: &mut dyn Device,
    comparer: &mut DeviceComparer,
    (reference, candidate): (&DeviceArray, &DeviceArray),
    options: &Options,
) -> (Vec<f64>, Vec<f64>) {
    let start_event = device.create_event().expect("an event");
    let end_event = device.create_event().expect("an event");
    let (mut whole, mut there) = (Vec::new(), Vec::new());
    for round in 0..TIMES + 3 {
        device.synchronize().expect("idle");
        let start = Instant::now();
        let comparison = comparer.compare(device, reference, candidate, options).expect("compared");
        let took = start.elapsed().as_secs_f64() * 1e3;
        assert_eq!(comparison.compared, ELEMENTS);
        device.record_event(start_event, StreamId::DEFAULT).expect("recorded");
        comparer.compare(device, reference, candidate, options).expect("compared");
        device.record_event(end_event, StreamId::DEFAULT).expect("recorded");
        let between = device.elapsed_ns(start_event, end_event).expect("measured") as f64 / 1e6;
        if round >= 3 {
            whole.push(took);
            there.push(between);
        }
    }
    (whole, there)
}

/// The median, the least and the most.
fn summary(mut times: Vec<f64>) -> Value {
    times.sort_by(f64::total_cmp);
    let rounded = |at: usize| (times[at] * 1e6).round() / 1e6;
    let last = times.len() - 1;
    let (least, median, most) = (rounded(0), rounded(last / 2), rounded(last));
    json!({ "median": median, "least": least, "most": most, "n": last + 1 })
}

/// Durations of each kernel by itself, from activity records, in milliseconds; or why there are
/// none.
fn kernels(
    device: &mut dyn Device,
    comparer: &mut DeviceComparer,
    (reference, candidate): (&DeviceArray, &DeviceArray),
    options: &Options,
) -> Value {
    device.synchronize().expect("idle");
    let mut activity = match Activity::start() {
        Ok(activity) => activity,
        Err(error) => return json!({ "reason": error.to_string() }),
    };
    for _ in 0..TIMES {
        comparer.compare(device, reference, candidate, options).expect("compared");
    }
    device.synchronize().expect("idle");
    let records = match activity.take() {
        Ok(records) => records,
        Err(error) => return json!({ "reason": error.to_string() }),
    };
    let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for record in records {
        let took = (record.end_ns - record.start_ns) as f64 / 1e6;
        by_name.entry(record.name).or_default().push(took);
    }
    json!(
        by_name.into_iter().map(|(name, times)| (name, summary(times))).collect::<BTreeMap<_, _>>()
    )
}

/// A line of the record.
fn line_of(device: &mut dyn Device, format: Format, tolerance: Tolerance) -> Value {
    let tile = near_pair(format, 1 << 20);
    let arrays = [&tile.0, &tile.1].map(|tile| repeated(device, tile, ELEMENTS >> 20));
    let both = (&arrays[0], &arrays[1]);
    let mut comparer = DeviceComparer::new(device).expect("loaded");
    let options = Options { tolerance, ..Options::default() };
    let (whole, there) = calls(device, &mut comparer, both, &options);
    let clock = Telemetry::open(device).ok().and_then(|gpu| gpu.sample().sm_clock_mhz);
    let kernels = kernels(device, &mut comparer, both, &options);
    let comparison = comparer.compare(device, both.0, both.1, &options).expect("compared");
    for array in arrays {
        device.free(array.buffer).expect("freed");
    }
    let facts = device.facts();
    json!({
        "what": "assay", "device": facts.name, "driver": facts.driver, "format": format.name(),
        "elements": ELEMENTS, "atol": tolerance.atol,
        "rtol": tolerance.rtol, "call_ms": summary(whole), "device_ms": summary(there),
        "kernel_ms": kernels, "sm_clock_mhz": clock, "outside": comparison.outside,
        "identical": comparison.identical, "debug": cfg!(debug_assertions),
    })
}

#[test]
fn the_speed_of_whole_comparisons_gpu() {
    let Some(mut device) = gpu("the_speed_of_whole_comparisons_gpu") else { return };
    let device = &mut *device;
    let near = Tolerance::new(1e-4, 1e-4);
    let cases = [
        (Format::F32, near),
        (Format::F32, Tolerance::EXACT),
        (Format::Bf16, near),
        (Format::F16, near),
        (Format::F64, near),
        (Format::Tf32, near),
        (Format::E4m3, near),
        (Format::I8, near),
        (Format::I32, near),
        (Format::I64, near),
        (Format::U4, near),
    ];
    let out = std::env::var_os("ASSAY_COMPARE_OUT");
    for (format, tolerance) in cases {
        let line = line_of(device, format, tolerance).to_string();
        say(&line);
        if let Some(path) = &out {
            let file = OpenOptions::new().create(true).append(true).open(path);
            writeln!(file.expect("opened"), "{line}").expect("written");
        }
    }
}
