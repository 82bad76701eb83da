//! Copies between host and device both ways, from pinned and pageable memory, and within the
//! device, by its copy engines. Each copy moves words that look random and is compared byte by
//! byte afterwards.

use std::time::Instant;

use assay_device::nvml::Telemetry;
use assay_device::{BufferId, Device, EventId, HostKind, StreamId};
use assay_record::Entry;

use super::compute::measure_clock;
use super::context::figure;
use super::ends::{Ends, Way, equal};
use super::memory;
use super::stream::{Motion, Streams};
use super::{HOST_CLOCK, Probe, ProbeContext, ProbeError, Quantity};
use crate::statistics::{median, quantile, sorted};

const PINNED: &str = "copies from or to pinned host memory on one stream, each between two events; \
                      the median at the largest size; every byte compared";
const PAGEABLE: &str = "copies from or to pageable host memory, the fastest of several ways, each \
                        timed by the host's clock until the device is idle; the median at the \
                        largest size; every byte compared";

/// The ways between host and device.
const WAYS: &[Quantity] = &[
    Quantity { name: "host_to_device_pinned", unit: "B/s", method: PINNED },
    Quantity { name: "device_to_host_pinned", unit: "B/s", method: PINNED },
    Quantity { name: "host_to_device_pageable", unit: "B/s", method: PAGEABLE },
    Quantity { name: "device_to_host_pageable", unit: "B/s", method: PAGEABLE },
];

/// Bytes of the copies in which every way is tried first.
const TRIED_BYTES: usize = 1 << 26;

/// Within the device.
const WITHIN: &[Quantity] = &[Quantity {
    name: "device_to_device",
    unit: "B/s",
    method: "copies from one buffer to another, the driver's own or the fastest of several \
             kernels; bytes read and bytes written both count; the copy compared; the curve is \
             the driver's own over sizes",
}];

/// The probes of this module.
pub const PROBES: &[Probe] = &[
    Probe { title: "host transfers", quantities: WAYS, run: transfers },
    Probe { title: "device copies", quantities: WITHIN, run: within },
];

fn transfers(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    let limit = link_limit(context.device);
    let plan = sizes(context, if context.quick { 1 << 26 } else { 1 << 28 });
    let words = random_words(plan.0.last().copied().unwrap_or(1 << 12), context.seed);
    let mut entries = Vec::new();
    for (index, quantity) in WAYS.iter().enumerate() {
        let (pinned, to_device) = (index < 2, index % 2 == 0);
        if !context.wants(quantity) || context.lost().is_some() {
            continue;
        }
        let entry = context.attempt(quantity, |context| {
            if pinned {
                let way = Way::plain(HostKind::Pinned, to_device);
                let curve = transfer(context.device, way, &plan, &words)?;
                let doubt = "one host thread; the host's other traffic is not seen";
                return Ok(curve.entry(quantity).trusted(0.9, doubt));
            }
            pageable(context, quantity, to_device, &plan, &words)
        });
        entries.push(entry.within(limit, "the PCI Express link's generation and width"));
    }
    entries
}

/// The entry of the fastest way from or to memory that is not pinned.
fn pageable(
    context: &mut ProbeContext<'_>,
    quantity: &Quantity,
    to_device: bool,
    plan: &(Vec<u64>, usize),
    words: &[u8],
) -> Result<Entry, ProbeError> {
    let (ways, samples) = (Way::pageable(to_device, context.quick), plan.1);
    let plain = Way::plain(HostKind::Pageable, to_device);
    let few = &words[..words.len().min(TRIED_BYTES)];
    let tried = try_ways(context.device, &ways, few, samples.div_ceil(4))?;
    // A few copies do not tell neighbours apart; the best ones are looked at again, beside the
    // plain one.
    let mut again = best_first(&tried);
    again.truncate(3);
    again.retain(|way| *way != plain);
    again.push(plain);
    let tried = try_ways(context.device, &again, words, samples.div_ceil(2))?;
    let best = *best_first(&tried).first().unwrap_or(&plain);
    let curve = transfer(context.device, best, plan, words)?;
    let mut entry = curve.entry(quantity);
    let plain = tried.iter().find(|(way, _)| *way == plain);
    let plain = plain.map_or("none".to_owned(), |(_, rate)| format!("{:.1} GB/s", rate / 1e9));
    entry.method =
        format!("{}: {best} (the driver's one copy in a stream: {plain})", quantity.method);
    let doubt =
        format!("{HOST_CLOCK}, processor and threads: it depends on what else the host does");
    Ok(entry.trusted(0.8, doubt))
}

/// Ways by what they copied, the fastest first.
fn best_first(tried: &[(Way, f64)]) -> Vec<Way> {
    let mut tried = tried.to_vec();
    tried.sort_by(|a, b| b.1.total_cmp(&a.1));
    tried.into_iter().map(|(way, _)| way).collect()
}

/// What each way copies in a second, of a few copies of all the words; ways that the device has
/// not are left out.
///
/// # Errors
/// The device's, where it is lost, and [`ProbeError::Wrong`] for bytes that did not arrive.
pub fn try_ways(
    device: &mut dyn Device,
    ways: &[Way],
    words: &[u8],
    samples: usize,
) -> Result<Vec<(Way, f64)>, ProbeError> {
    let (bytes, mut tried) = (words.len() as u64, Vec::new());
    let mut refused = None;
    for way in ways {
        match transfer(device, *way, &(vec![bytes], samples), words) {
            Ok(curve) => tried.push((*way, median(&curve.largest))),
            Err(ProbeError::Device(error)) if !error.poisons_device() => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(error) if tried.is_empty() => Err(error.into()),
        _ => Ok(tried),
    }
}

/// What the link to the host carries at most, where the host has no other link to the device.
fn link_limit(device: &dyn Device) -> Option<f64> {
    if cfg!(target_arch = "aarch64") {
        // Hosts of this kind may have a link that is not PCI Express, which NVML does not tell.
        return None;
    }
    let settings = Telemetry::open(device).ok()?.settings();
    settings.pcie_bytes_per_s_max.map(|limit| limit as f64)
}

/// Rates by size.
struct Curve {
    points: Vec<(f64, f64)>,
    /// The rates at the largest size, in bytes a second.
    largest: Vec<f64>,
    /// The clock right after them, in MHz.
    sm_clock_mhz: Option<f64>,
}

impl Curve {
    fn new() -> Curve {
        Curve { points: Vec::new(), largest: Vec::new(), sm_clock_mhz: None }
    }

    fn entry(&self, quantity: &Quantity) -> Entry {
        let figure = figure(&self.largest, self.sm_clock_mhz);
        quantity.measured(figure).along("bytes", self.points.clone())
    }
}

/// Sizes of copies, in bytes, ascending, and samples of each.
fn sizes(context: &ProbeContext<'_>, largest: u64) -> (Vec<u64>, usize) {
    let memory = context.device.facts().memory_bytes / 16;
    let emulated = context.timing().is_some_and(|facts| !facts.asynchronous);
    let largest = if emulated { 1 << 16 } else { largest.min(memory.max(1 << 12)) };
    let all = [1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26, 1 << 28, 1 << 30_u64];
    let few = |size: &&u64| !context.quick || **size == largest || **size == 1 << 20;
    let sizes = all.iter().filter(|size| **size <= largest).filter(few).copied().collect();
    (sizes, if context.quick { 5 } else { 15 })
}

/// The curve of one way, whose memory is given back whatever happens.
fn transfer(
    device: &mut dyn Device,
    way: Way,
    (sizes, samples): &(Vec<u64>, usize),
    words: &[u8],
) -> Result<Curve, ProbeError> {
    let events = [device.create_event()?, device.create_event()?];
    let mut ends = Ends::new(device, way, words.len() as u64)?;
    let mut timed = Timed { ends: &mut ends, events, by_events: way.kind == HostKind::Pinned };
    let curve = timed.curve(device, sizes, *samples, words);
    ends.free(device)?;
    events.into_iter().try_for_each(|event| device.destroy_event(event))?;
    curve
}

/// Copies that are timed.
struct Timed<'a> {
    ends: &'a mut Ends,
    events: [EventId; 2],
    /// By the device's events. For memory that is not pinned the driver copies in pieces through a
    /// buffer of its own, which events do not wholly cover.
    by_events: bool,
}

impl Timed<'_> {
    fn curve(
        &mut self,
        device: &mut dyn Device,
        sizes: &[u64],
        samples: usize,
        words: &[u8],
    ) -> Result<Curve, ProbeError> {
        let mut curve = Curve::new();
        for &bytes in sizes {
            let words = &words[..bytes as usize];
            self.ends.prepare(device, words)?;
            // The first copy may load code and touch pages.
            self.copy(device, bytes)?;
            self.ends.compare(device, words)?;
            let mut rates = Vec::with_capacity(samples);
            for _ in 0..samples {
                rates.push(rate(bytes, self.copy(device, bytes)?)?);
            }
            curve.points.push((bytes as f64, quantile(&sorted(&rates), 0.5)));
            curve.largest = rates;
        }
        curve.sm_clock_mhz = clock_now(device);
        Ok(curve)
    }

    /// Copies once and says how long it took, in nanoseconds.
    fn copy(&mut self, device: &mut dyn Device, bytes: u64) -> Result<f64, ProbeError> {
        if !self.by_events {
            let start = Instant::now();
            self.ends.copy(device, bytes)?;
            device.synchronize()?;
            return Ok(start.elapsed().as_secs_f64() * 1e9);
        }
        let [start, end] = self.events;
        device.record_event(start, StreamId::DEFAULT)?;
        self.ends.copy(device, bytes)?;
        device.record_event(end, StreamId::DEFAULT)?;
        Ok(device.elapsed_ns(start, end)? as f64)
    }
}

fn within(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    let quantity = &WITHIN[0];
    let entry = context.attempt(quantity, |context| {
        // Before the curve: in memory that smaller buffers were taken from and given back to,
        // copies of an H200 are half a hundredth slower.
        let streams = Streams::new(context, memory::buffer_bytes(context))?;
        let entry = memory::entry(context, &streams, quantity, Motion::Copy);
        if context.lost().is_none() {
            streams.free(context.device)?;
        }
        let entry = entry?;
        Ok(entry.along("bytes", driver_copies(context)?.points))
    });
    vec![entry]
}

/// The driver's own copies over sizes.
fn driver_copies(context: &mut ProbeContext<'_>) -> Result<Curve, ProbeError> {
    let (sizes, samples) = sizes(context, if context.quick { 1 << 28 } else { 1 << 30 });
    let bytes = sizes.last().copied().unwrap_or(1 << 12);
    let (seed, device) = (context.seed, &mut *context.device);
    let events = [device.create_event()?, device.create_event()?];
    let (from, to) = (device.allocate_bare(bytes)?, device.allocate_bare(bytes)?);
    let curve = copies(device, (from, to), events, (&sizes, samples), seed);
    device.free(from)?;
    device.free(to)?;
    events.into_iter().try_for_each(|event| device.destroy_event(event))?;
    curve
}

fn copies(
    device: &mut dyn Device,
    (from, to): (BufferId, BufferId),
    [start, end]: [EventId; 2],
    (sizes, samples): (&[u64], usize),
    seed: u64,
) -> Result<Curve, ProbeError> {
    // More than this is not compared, since the host would have to make it.
    const COMPARED: u64 = 1 << 26;
    let mut curve = Curve::new();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let all = random_words(largest.min(COMPARED), seed);
    for &bytes in sizes {
        let compared = bytes.min(COMPARED);
        let words = &all[..compared as usize];
        device.fill(StreamId::DEFAULT, from, 0, bytes, 0x5a)?;
        // Its end, since a copy that stops short stops there.
        device.write(from, bytes - compared, words)?;
        device.fill(StreamId::DEFAULT, to, 0, bytes, 0)?;
        device.synchronize()?;
        let mut rates = Vec::with_capacity(samples);
        for _ in 0..=samples {
            device.record_event(start, StreamId::DEFAULT)?;
            device.copy(StreamId::DEFAULT, (from, 0), (to, 0), bytes)?;
            device.record_event(end, StreamId::DEFAULT)?;
            rates.push(rate(2 * bytes, device.elapsed_ns(start, end)? as f64)?);
        }
        let mut found = vec![0; compared as usize];
        device.read(to, bytes - compared, &mut found)?;
        equal(&found, words)?;
        // The first copy may load code.
        rates.remove(0);
        curve.points.push((bytes as f64, quantile(&sorted(&rates), 0.5)));
        curve.largest = rates;
    }
    curve.sm_clock_mhz = clock_now(device);
    Ok(curve)
}

/// The multiprocessors' clock, in MHz, on a device where time passes beside the host. A device that
/// fails here says so at the next call.
pub(super) fn clock_now(device: &mut dyn Device) -> Option<f64> {
    const WINDOW_NS: u64 = 200_000;
    let passes = device.timing_facts().is_some_and(|facts| facts.asynchronous);
    if passes { measure_clock(device, WINDOW_NS).ok() } else { None }
}

/// Bytes a second.
fn rate(bytes: u64, ns: f64) -> Result<f64, ProbeError> {
    if ns > 0.0 {
        return Ok(bytes as f64 * 1e9 / ns);
    }
    Err(ProbeError::Wrong(format!("no time passed while {bytes} bytes were copied")))
}

/// Words that look random, of so many bytes: the finaliser of Steele, Lea and Flood's `SplitMix64`
/// over a counter.
pub fn random_words(bytes: u64, seed: u64) -> Vec<u8> {
    let mut words = vec![0; bytes as usize];
    for (index, word) in words.chunks_mut(8).enumerate() {
        let mut z = seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let value = (z ^ (z >> 31)).to_le_bytes();
        let length = word.len();
        word.copy_from_slice(&value[..length]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_seeds_give_different_words() {
        let (one, two) = (random_words(64, 1), random_words(64, 2));
        assert!(one.iter().zip(&two).filter(|(a, b)| a != b).count() > 50);
    }

    #[test]
    fn a_copy_in_no_time_is_no_rate() {
        assert!(rate(8, 0.0).is_err());
        assert_eq!(rate(8, 2.0), Ok(4e9));
    }
}
