//! Exercises everything of a device that measuring needs, and prints what it finds, one finding a
//! line: `cargo run -p assay-device --example measuring -- cuda`. On `emulator` the clock is made
//! up.

mod kernels;
mod report;

use std::time::Instant;

use assay_device::cupti::Activity;
use assay_device::emulator::{EmulatedClock, EmulatorDevice, EmulatorOptions};
use assay_device::nvml::Telemetry;
use assay_device::{Device, DeviceError, HostKind, StreamId, open};
use kernels::{Kernels, Spinner};
use report::{Outcome, gib_per_s, quantiles};

const DEFAULT: StreamId = StreamId::DEFAULT;

/// A step's title and what it does.
type Step = (&'static str, fn(&mut dyn Device) -> Outcome);

fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "emulator".to_string());
    let device = if name == "emulator" { Ok(emulated()) } else { open(&name) };
    let mut device = match device {
        Ok(device) => device,
        Err(error) => return report::say("device", &format!("{error}; {:?}", error.hint())),
    };
    let steps: [Step; 13] = [
        ("facts", facts),
        ("telemetry", telemetry),
        ("event step", event_step),
        ("empty bracket", empty_bracket),
        ("fills and copies", fills_and_copies),
        ("host transfers", host_transfers),
        ("spin released by the host", spin),
        ("events in a graph", captured_events),
        ("large allocations", large_allocations),
        ("launch cost", launch_cost),
        ("activity records", activity),
        ("persisting lines", persisting),
        ("telemetry settings", settings),
    ];
    for (title, step) in steps {
        let start = Instant::now();
        let outcome = step(&mut *device);
        report::step(title, start.elapsed(), outcome);
    }
}

fn emulated() -> Box<dyn Device> {
    let clock = Some(EmulatedClock::default());
    let options = EmulatorOptions { architecture: 90, clock, ..EmulatorOptions::default() };
    Box::new(EmulatorDevice::new(options))
}

#[expect(clippy::unnecessary_wraps, reason = "one of the steps")]
fn facts(device: &mut dyn Device) -> Outcome {
    let facts = device.facts().clone();
    let timing = device.timing_facts();
    let limit = timing.map(|timing| timing.memory_bytes_per_s_max() / 1e12);
    Ok(vec![format!("{facts:?}"), format!("{timing:?}"), format!("DRAM at most {limit:?} TB/s")])
}

#[expect(clippy::unnecessary_wraps, reason = "one of the steps")]
fn telemetry(device: &mut dyn Device) -> Outcome {
    let telemetry = match Telemetry::open(device) {
        Ok(telemetry) => telemetry,
        Err(error) => return Ok(vec![format!("{error}; hint: {:?}", error.hint)]),
    };
    let start = Instant::now();
    let sample = telemetry.sample();
    let first = start.elapsed();
    let start = Instant::now();
    for _ in 0..20 {
        let _ = telemetry.sample();
    }
    let each = start.elapsed() / 20;
    Ok(vec![format!("{sample:?}"), format!("first sample {first:?}, then {each:?} each")])
}

/// How the GPU is set up, last, since it asks the library the rarest questions.
#[expect(clippy::unnecessary_wraps, reason = "one of the steps")]
fn settings(device: &mut dyn Device) -> Outcome {
    let version = format!("library version {:?}", Telemetry::library_version());
    Ok(match Telemetry::open(device) {
        Ok(telemetry) => vec![version, format!("{:?}", telemetry.settings())],
        Err(error) => vec![version, error.to_string()],
    })
}

/// The smallest difference between the times that pairs of events tell.
fn event_step(device: &mut dyn Device) -> Outcome {
    let kernels = Kernels::load(device)?;
    let mut times = Vec::new();
    let (start, end) = (device.create_event()?, device.create_event()?);
    for n in 0..400 {
        device.record_event(start, DEFAULT)?;
        kernels.work(device, DEFAULT, 1 + n % 37, 32)?;
        device.record_event(end, DEFAULT)?;
        times.push(device.elapsed_ns(start, end)?);
    }
    times.sort_unstable();
    times.dedup();
    let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut told =
        vec![format!("{} different times, {:?} ... ns", times.len(), &times[..times.len().min(8)])];
    let mut counts = std::collections::BTreeMap::new();
    for step in steps {
        *counts.entry(step).or_insert(0) += 1;
    }
    told.push(format!("steps (ns: how often): {:?}", counts.iter().take(12).collect::<Vec<_>>()));
    Ok(told)
}

fn empty_bracket(device: &mut dyn Device) -> Outcome {
    let (start, end) = (device.create_event()?, device.create_event()?);
    let mut empty = Vec::new();
    for _ in 0..200 {
        device.record_event(start, DEFAULT)?;
        device.record_event(end, DEFAULT)?;
        empty.push(device.elapsed_ns(start, end)? as f64);
    }
    let mut spun = Vec::new();
    let spinner = Spinner::new(device);
    if let Ok(spinner) = &spinner {
        for _ in 0..200 {
            spinner.hold(device)?;
            device.record_event(start, DEFAULT)?;
            device.record_event(end, DEFAULT)?;
            spinner.release(device)?;
            spun.push(device.elapsed_ns(start, end)? as f64);
        }
    }
    Ok(vec![
        format!("idle stream: {}", quantiles(&mut empty, "ns")),
        format!("behind a spinning kernel: {}", quantiles(&mut spun, "ns")),
    ])
}

fn fills_and_copies(device: &mut dyn Device) -> Outcome {
    let bytes: u64 = if device.facts().backend == "emulator" { 1 << 20 } else { 1 << 30 };
    let (from, to) = (device.allocate_bare(bytes)?, device.allocate_bare(bytes)?);
    let (start, end) = (device.create_event()?, device.create_event()?);
    let (mut fills, mut copies) = (Vec::new(), Vec::new());
    for n in 0..10 {
        device.record_event(start, DEFAULT)?;
        device.fill(DEFAULT, from, 0, bytes, n)?;
        device.record_event(end, DEFAULT)?;
        fills.push(gib_per_s(bytes, device.elapsed_ns(start, end)?));
        device.record_event(start, DEFAULT)?;
        device.copy(DEFAULT, (from, 0), (to, 0), bytes)?;
        device.record_event(end, DEFAULT)?;
        copies.push(gib_per_s(2 * bytes, device.elapsed_ns(start, end)?));
    }
    let mut last = [0; 16];
    device.read(to, bytes - 16, &mut last)?;
    device.free(from)?;
    device.free(to)?;
    Ok(vec![
        format!("fill {bytes} bytes: {}", quantiles(&mut fills, "GiB/s")),
        format!("copy (read + written): {}", quantiles(&mut copies, "GiB/s")),
        format!("the copy arrived: {}", last == [9; 16]),
    ])
}

fn host_transfers(device: &mut dyn Device) -> Outcome {
    let bytes: u64 = if device.facts().backend == "emulator" { 1 << 20 } else { 256 << 20 };
    let buffer = device.allocate_bare(bytes)?;
    let mut told = Vec::new();
    for kind in [HostKind::Pinned, HostKind::Mapped, HostKind::Pageable] {
        let begun = Instant::now();
        let (up, down) = (device.allocate_host(bytes, kind)?, device.allocate_host(bytes, kind)?);
        let allocated = begun.elapsed();
        let view = device.host_bytes(up)?;
        view.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i / 7) as u8);
        let (mut ups, mut downs) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let begun = Instant::now();
            device.copy_to_device(DEFAULT, (up, 0), (buffer, 0), bytes)?;
            device.synchronize()?;
            ups.push(bytes as f64 / begun.elapsed().as_secs_f64() / 1e9);
            let begun = Instant::now();
            device.copy_to_host(DEFAULT, (buffer, 0), (down, 0), bytes)?;
            device.synchronize()?;
            downs.push(bytes as f64 / begun.elapsed().as_secs_f64() / 1e9);
        }
        let view = device.host_bytes(down)?;
        let right = (0..view.len()).step_by(4093).all(|i| view[i] == (i / 7) as u8);
        told.push(format!(
            "{}: up {}, down {}, allocation {allocated:?}, right: {right}",
            kind.name(),
            quantiles(&mut ups, "GB/s"),
            quantiles(&mut downs, "GB/s")
        ));
        device.free_host(up)?;
        device.free_host(down)?;
    }
    device.free(buffer)?;
    Ok(told)
}

fn spin(device: &mut dyn Device) -> Outcome {
    let spinner = Spinner::new(device)?;
    let event = device.create_event()?;
    let mut released = Vec::new();
    let mut states = Vec::new();
    for _ in 0..50 {
        spinner.hold(device)?;
        device.record_event(event, DEFAULT)?;
        std::thread::sleep(std::time::Duration::from_micros(200));
        let before = device.query(event)?;
        let begun = Instant::now();
        spinner.release(device)?;
        device.synchronize()?;
        released.push(begun.elapsed().as_secs_f64() * 1e6);
        states.push((before, device.query(event)?));
    }
    let right = states.iter().all(|&state| state == (false, true));
    Ok(vec![
        format!("held until released: {right}"),
        format!("release to idle: {}", quantiles(&mut released, "us")),
    ])
}

fn captured_events(device: &mut dyn Device) -> Outcome {
    let kernels = Kernels::load(device)?;
    let flush = device.allocate_bare(1 << 20)?;
    let (start, end) = (device.create_event()?, device.create_event()?);
    device.begin_capture(DEFAULT)?;
    let captured = (|| {
        device.fill(DEFAULT, flush, 0, 1 << 20, 7)?;
        device.record_event(start, DEFAULT)?;
        kernels.work(device, DEFAULT, 100, 32)?;
        device.record_event(end, DEFAULT)
    })();
    let graph = device.end_capture(DEFAULT)?;
    captured?;
    let mut inside = Vec::new();
    for _ in 0..50 {
        device.launch_graph(graph, DEFAULT)?;
        device.synchronize()?;
        inside.push(device.elapsed_ns(start, end)? as f64);
    }
    let mut outside = Vec::new();
    for _ in 0..50 {
        device.record_event(start, DEFAULT)?;
        kernels.work(device, DEFAULT, 100, 32)?;
        device.record_event(end, DEFAULT)?;
        outside.push(device.elapsed_ns(start, end)? as f64);
    }
    Ok(vec![
        format!("in the graph: {}", quantiles(&mut inside, "ns")),
        format!("in a stream: {}", quantiles(&mut outside, "ns")),
    ])
}

fn large_allocations(device: &mut dyn Device) -> Outcome {
    let mut told = Vec::new();
    let memory = device.facts().memory_bytes;
    for bytes in [memory / 64, memory / 4, memory / 10 * 9] {
        let begun = Instant::now();
        let bare = device.allocate_bare(bytes);
        let took = begun.elapsed();
        let begun = Instant::now();
        let well = bare.clone().and_then(|buffer| device.free(buffer));
        told.push(format!("bare {bytes} bytes: {took:?}, free {:?}, {well:?}", begun.elapsed()));
    }
    let bytes = if device.facts().backend == "emulator" { 1 << 20 } else { memory / 2 };
    let begun = Instant::now();
    let guarded = device.allocate(&assay_device::Allocation::new(bytes))?;
    told.push(format!("guarded and poisoned {bytes} bytes: {:?}", begun.elapsed()));
    device.free(guarded)?;
    Ok(told)
}

fn launch_cost(device: &mut dyn Device) -> Outcome {
    let kernels = Kernels::load(device)?;
    let mut told = Vec::new();
    for train in [1_u32, 10, 100, 1000] {
        let (mut issue, mut all) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            device.synchronize()?;
            let begun = Instant::now();
            for _ in 0..train {
                kernels.work(device, DEFAULT, 1, 1)?;
            }
            issue.push(begun.elapsed().as_secs_f64() * 1e6 / f64::from(train));
            device.synchronize()?;
            all.push(begun.elapsed().as_secs_f64() * 1e6 / f64::from(train));
        }
        told.push(format!(
            "train of {train}: issue {}, until idle {}",
            quantiles(&mut issue, "us each"),
            quantiles(&mut all, "us each")
        ));
    }
    Ok(told)
}

fn activity(device: &mut dyn Device) -> Outcome {
    let kernels = Kernels::load(device)?;
    let begun = Instant::now();
    let mut activity = match Activity::start() {
        Ok(activity) => activity,
        Err(error) => return Ok(vec![format!("{error}; hint: {:?}", error.hint)]),
    };
    let mut told = vec![format!("{} in {:?}", activity.library(), begun.elapsed())];
    let (start, end) = (device.create_event()?, device.create_event()?);
    for rounds in [1_u32, 100, 1000, 10_000, 100_000] {
        let mut bracket = Vec::new();
        for _ in 0..20 {
            device.record_event(start, DEFAULT)?;
            kernels.work(device, DEFAULT, rounds, 32)?;
            device.record_event(end, DEFAULT)?;
            bracket.push(device.elapsed_ns(start, end)? as f64);
        }
        device.synchronize()?;
        let records = activity.take().map_err(|error| other(&error.to_string()))?;
        let mut taken: Vec<f64> = records.iter().map(|r| r.duration_ns() as f64).collect();
        let names: std::collections::BTreeSet<_> = records.iter().map(|r| &r.name).collect();
        told.push(format!(
            "{rounds} rounds: {} records of {names:?}: {}; event bracket {}",
            records.len(),
            quantiles(&mut taken, "ns"),
            quantiles(&mut bracket, "ns")
        ));
    }
    drop(activity);
    let mut after = Vec::new();
    for _ in 0..20 {
        device.record_event(start, DEFAULT)?;
        kernels.work(device, DEFAULT, 1000, 32)?;
        device.record_event(end, DEFAULT)?;
        after.push(device.elapsed_ns(start, end)? as f64);
    }
    told.push(format!("1000 rounds without records: bracket {}", quantiles(&mut after, "ns")));
    Ok(told)
}

fn persisting(device: &mut dyn Device) -> Outcome {
    let begun = Instant::now();
    device.reset_persisting_l2()?;
    Ok(vec![format!("reset in {:?}", begun.elapsed())])
}

fn other(text: &str) -> DeviceError {
    DeviceError::InvalidRequest { reason: text.to_string(), hint: String::new() }
}
