//! Copies between host and device both ways, from pinned and pageable memory, and within the
//! device, by its copy engines. Each copy moves words that look random and is compared byte by
//! byte afterwards.

use std::time::Instant;

use assay_device::nvml::Telemetry;
use assay_device::{BufferId, Device, EventId, HostBufferId, HostKind, StreamId};
use assay_record::Entry;

use super::compute::measure_clock;
use super::context::figure;
use super::{Probe, ProbeContext, ProbeError, Quantity};
use crate::statistics::{quantile, sorted};

const PINNED: &str = "copies from or to pinned host memory on one stream, each between two events; \
                      the median at the largest size; every byte compared";
const PAGEABLE: &str = "copies from or to pageable host memory, each timed by the host's clock \
                        until the device is idle; the median at the largest size; every byte \
                        compared";

/// The ways between host and device.
const WAYS: &[Quantity] = &[
    Quantity { name: "host_to_device_pinned", unit: "B/s", method: PINNED },
    Quantity { name: "device_to_host_pinned", unit: "B/s", method: PINNED },
    Quantity { name: "host_to_device_pageable", unit: "B/s", method: PAGEABLE },
    Quantity { name: "device_to_host_pageable", unit: "B/s", method: PAGEABLE },
];

/// Within the device.
const WITHIN: &[Quantity] = &[Quantity {
    name: "device_to_device",
    unit: "B/s",
    method: "the driver's own copies from one buffer to another, each between two events; bytes \
             read and bytes written both count; the median at the largest size; the copy compared",
}];

/// The probes of this module.
pub const PROBES: &[Probe] = &[
    Probe { title: "host transfers", quantities: WAYS, run: transfers },
    Probe { title: "device copies", quantities: WITHIN, run: within },
];

/// One way of [`WAYS`].
#[derive(Clone, Copy)]
struct Way {
    kind: HostKind,
    to_device: bool,
}

fn transfers(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    let limit = link_limit(context.device);
    let plan = sizes(context, if context.quick { 1 << 26 } else { 1 << 28 });
    let words = random_words(plan.0.last().copied().unwrap_or(1 << 12), context.seed);
    let ways = [(HostKind::Pinned, true), (HostKind::Pinned, false), (HostKind::Pageable, true)];
    let ways = ways.into_iter().chain([(HostKind::Pageable, false)]);
    let ways = ways.map(|(kind, to_device)| Way { kind, to_device });
    WAYS.iter()
        .zip(ways)
        .map(|(quantity, way)| {
            let entry = context.attempt(quantity, |context| {
                let curve = transfer(context, way, &plan, &words)?;
                Ok(curve.entry(quantity, "one host thread; the host's other traffic is not seen"))
            });
            entry.within(limit, "the PCI Express link's generation and width")
        })
        .collect()
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

    fn entry(&self, quantity: &Quantity, doubt: &str) -> Entry {
        let figure = figure(&self.largest, self.sm_clock_mhz);
        quantity.measured(figure).along("bytes", self.points.clone()).trusted(0.9, doubt)
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

/// The buffers of one way, given back whatever happens.
fn transfer(
    context: &mut ProbeContext<'_>,
    way: Way,
    (sizes, samples): &(Vec<u64>, usize),
    words: &[u8],
) -> Result<Curve, ProbeError> {
    let (bytes, device) = (words.len() as u64, &mut *context.device);
    let events = [device.create_event()?, device.create_event()?];
    let host = device.allocate_host(bytes, way.kind)?;
    let buffer = device.allocate_bare(bytes)?;
    let ends = Ends { host, buffer, events, way, words };
    let curve = ends.curve(device, sizes, *samples);
    device.free_host(host)?;
    device.free(buffer)?;
    events.into_iter().try_for_each(|event| device.destroy_event(event))?;
    curve
}

/// Both ends of a way.
struct Ends<'a> {
    host: HostBufferId,
    buffer: BufferId,
    events: [EventId; 2],
    way: Way,
    /// What is copied: as much as the largest copy.
    words: &'a [u8],
}

impl Ends<'_> {
    fn curve(
        &self,
        device: &mut dyn Device,
        sizes: &[u64],
        samples: usize,
    ) -> Result<Curve, ProbeError> {
        let mut curve = Curve::new();
        for &bytes in sizes {
            self.prepare(device, bytes)?;
            // The first copy may load code and touch pages.
            self.copy_timed(device, bytes)?;
            self.compare(device, bytes)?;
            let mut rates = Vec::with_capacity(samples);
            for _ in 0..samples {
                rates.push(rate(bytes, self.copy_timed(device, bytes)?)?);
            }
            curve.points.push((bytes as f64, quantile(&sorted(&rates), 0.5)));
            curve.largest = rates;
        }
        curve.sm_clock_mhz = clock_now(device);
        Ok(curve)
    }

    /// Puts the words at one end and nothing at the other.
    fn prepare(&self, device: &mut dyn Device, bytes: u64) -> Result<(), ProbeError> {
        let words = &self.words[..bytes as usize];
        if self.way.to_device {
            device.host_bytes(self.host)?[..words.len()].copy_from_slice(words);
            device.fill(StreamId::DEFAULT, self.buffer, 0, bytes, 0)?;
        } else {
            device.write(self.buffer, 0, words)?;
            device.host_bytes(self.host)?[..words.len()].fill(0);
        }
        Ok(device.synchronize()?)
    }

    fn copy(&self, device: &mut dyn Device, bytes: u64) -> Result<(), ProbeError> {
        let (host, buffer) = ((self.host, 0), (self.buffer, 0));
        let copied = if self.way.to_device {
            device.copy_to_device(StreamId::DEFAULT, host, buffer, bytes)
        } else {
            device.copy_to_host(StreamId::DEFAULT, buffer, host, bytes)
        };
        Ok(copied?)
    }

    /// Copies once and says how long it took, in nanoseconds.
    fn copy_timed(&self, device: &mut dyn Device, bytes: u64) -> Result<f64, ProbeError> {
        if self.way.kind == HostKind::Pageable {
            // The driver copies in pieces through a buffer of its own, which its events do not
            // wholly cover.
            let start = Instant::now();
            self.copy(device, bytes)?;
            device.synchronize()?;
            return Ok(start.elapsed().as_secs_f64() * 1e9);
        }
        let [start, end] = self.events;
        device.record_event(start, StreamId::DEFAULT)?;
        self.copy(device, bytes)?;
        device.record_event(end, StreamId::DEFAULT)?;
        Ok(device.elapsed_ns(start, end)? as f64)
    }

    fn compare(&self, device: &mut dyn Device, bytes: u64) -> Result<(), ProbeError> {
        let expected = &self.words[..bytes as usize];
        if self.way.to_device {
            let mut found = vec![0; expected.len()];
            device.read(self.buffer, 0, &mut found)?;
            return equal(&found, expected);
        }
        equal(&device.host_bytes(self.host)?[..expected.len()], expected)
    }
}

fn within(context: &mut ProbeContext<'_>) -> Vec<Entry> {
    let quantity = &WITHIN[0];
    let limit = context.timing().map(|facts| facts.memory_bytes_per_s_max());
    let entry = context.attempt(quantity, |context| {
        let (sizes, samples) = sizes(context, if context.quick { 1 << 28 } else { 1 << 30 });
        let bytes = sizes.last().copied().unwrap_or(1 << 12);
        let (seed, device) = (context.seed, &mut *context.device);
        let events = [device.create_event()?, device.create_event()?];
        let (from, to) = (device.allocate_bare(bytes)?, device.allocate_bare(bytes)?);
        let curve = copies(device, (from, to), events, (&sizes, samples), seed);
        device.free(from)?;
        device.free(to)?;
        events.into_iter().try_for_each(|event| device.destroy_event(event))?;
        Ok(curve?.entry(quantity, "a direct measurement, of one stream"))
    });
    vec![entry.within(limit, "memory clock and bus width")]
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

fn equal(found: &[u8], expected: &[u8]) -> Result<(), ProbeError> {
    if found == expected {
        return Ok(());
    }
    let place = found.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
    let (is, was) = (found.get(place).copied(), expected.get(place).copied());
    Err(ProbeError::Wrong(format!(
        "byte {place} of {} arrived as {:#04x} and not as {:#04x}",
        expected.len(),
        is.unwrap_or(0),
        was.unwrap_or(0)
    )))
}

/// Words that look random: the finaliser of Steele, Lea and Flood's `SplitMix64` over a counter.
fn random_words(bytes: u64, seed: u64) -> Vec<u8> {
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
    fn a_byte_that_differs_is_named_with_its_place() {
        let words = random_words(100, 3);
        assert_eq!(equal(&words, &words), Ok(()));
        let mut other = words.clone();
        other[77] ^= 4;
        let error = equal(&other, &words).expect_err("one differs");
        assert!(error.to_string().starts_with("byte 77 of 100 arrived"), "{error}");
    }

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
