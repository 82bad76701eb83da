//! The board's own gauges, read between samples: power, temperature, and why its clocks are what
//! they are.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use assay_device::nvml::{Telemetry, holds_clocks_down, throttle_words};
use assay_record::{ReasonSeen, Spread, Watched};

use crate::statistics::{quantile, sorted};

/// What a gauge tells at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reading {
    /// The power drawn, in watts.
    pub power_w: Option<f64>,
    /// The temperature, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// The reasons for which clocks are what they are, as NVML's bits.
    pub throttle_bits: Option<u64>,
    /// What could not be told, and why.
    pub missing: Vec<String>,
}

/// Something that tells a board's state.
pub trait Gauge {
    /// The state now. It may take some milliseconds; nothing is timed meanwhile.
    fn read(&mut self) -> Reading;
}

impl Gauge for Telemetry {
    fn read(&mut self) -> Reading {
        let sample = self.vitals();
        Reading {
            power_w: sample.power_w,
            temperature_c: sample.temperature_c,
            throttle_bits: sample.throttle_bits,
            missing: sample.missing,
        }
    }
}

/// How much of a measurement readings may take: after one, nine times as long passes without.
const REST: u32 = 9;

/// A gauge, and what it has told since the measurement began.
pub(crate) struct Watch {
    gauge: Box<dyn Gauge>,
    /// Between two readings at least.
    every: Duration,
    /// When the next may be made.
    due: Option<Instant>,
    readings: Vec<Placed>,
}

/// A reading, and how many samples had been taken.
struct Placed {
    place: u64,
    took: Duration,
    reading: Reading,
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watch")
            .field("readings", &self.readings.len())
            .finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn new(gauge: Box<dyn Gauge>, every: Duration) -> Watch {
        Watch { gauge, every, due: None, readings: Vec::new() }
    }

    /// Forgets what was told, and reads once.
    pub(crate) fn begin(&mut self) {
        self.readings.clear();
        self.read(0);
    }

    /// Reads if it is time, between two samples of which so many were taken.
    pub(crate) fn look(&mut self, place: usize) {
        if self.due.is_none_or(|due| Instant::now() >= due) {
            self.read(place);
        }
    }

    fn read(&mut self, place: usize) {
        let began = Instant::now();
        let reading = self.gauge.read();
        let took = began.elapsed();
        self.due = Some(began + took + self.every.max(took * REST));
        // With no least time between readings there is one for every sample.
        if self.every.is_zero() {
            self.due = None;
        }
        self.readings.push(Placed { place: place as u64, took, reading });
    }

    /// Reads after the last of so many samples, and sums up.
    pub(crate) fn end(&mut self, samples: usize) -> Watched {
        if self.readings.last().is_none_or(|last| last.place < samples as u64) {
            self.read(samples);
        }
        let readings = std::mem::take(&mut self.readings);
        let of = |read: fn(&Placed) -> Option<f64>| spread(readings.iter().filter_map(read));
        let mut missing: Vec<String> =
            readings.iter().flat_map(|placed| placed.reading.missing.clone()).collect();
        missing.sort();
        missing.dedup();
        Watched {
            readings: readings.len() as u64,
            power_w: of(|placed| placed.reading.power_w),
            temperature_c: of(|placed| placed.reading.temperature_c),
            reading_us: of(|placed| Some(placed.took.as_secs_f64() * 1e6)),
            reasons: reasons(&readings),
            throttled: throttled(&readings, samples as u64),
            samples: samples as u64,
            missing,
        }
    }
}

fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let ascending = sorted(&values.collect::<Vec<f64>>());
    let max = *ascending.last()?;
    let at = |part| quantile(&ascending, part);
    Some(Spread { median: at(0.5), p5: at(0.05), p95: at(0.95), max, n: ascending.len() as u64 })
}

/// How often each reason was told, the most frequent first.
fn reasons(readings: &[Placed]) -> Vec<ReasonSeen> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for bits in readings.iter().filter_map(|placed| placed.reading.throttle_bits) {
        for bit in (0..u64::BITS).filter(|bit| bits >> bit & 1 == 1) {
            *counts.entry(bit).or_default() += 1;
        }
    }
    let seen = |(bit, readings): (u32, u64)| ReasonSeen {
        reason: throttle_words(1 << bit).concat(),
        throttles: holds_clocks_down(1 << bit),
        readings,
    };
    let mut seen: Vec<ReasonSeen> = counts.into_iter().map(seen).collect();
    seen.sort_by_key(|seen| std::cmp::Reverse(seen.readings));
    seen
}

/// The samples between two readings of which one tells that clocks are held down.
fn throttled(readings: &[Placed], samples: u64) -> Vec<u64> {
    let down = |placed: &Placed| placed.reading.throttle_bits.is_some_and(holds_clocks_down);
    let between = readings.windows(2).filter(|pair| pair.iter().any(down));
    let places = between.flat_map(|pair| pair[0].place..pair[1].place.min(samples));
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board that is throttled in some of its readings.
    struct Board {
        read: u64,
        down: std::ops::Range<u64>,
    }

    impl Gauge for Board {
        fn read(&mut self) -> Reading {
            let bits = if self.down.contains(&self.read) { 0x4 | 0x40 } else { 0x1 };
            self.read += 1;
            let power_w = Some(100.0 + self.read as f64);
            Reading { power_w, throttle_bits: Some(bits), ..Reading::default() }
        }
    }

    fn watched(down: std::ops::Range<u64>, every: u64) -> Watched {
        let mut watch = Watch::new(Box::new(Board { read: 0, down }), Duration::from_millis(every));
        watch.begin();
        for place in 1..=40 {
            watch.look(place);
        }
        watch.end(40)
    }

    #[test]
    fn samples_next_to_a_throttled_reading_are_marked_and_no_others() {
        let watched = watched(10..12, 0);
        assert_eq!((watched.readings, watched.samples), (41, 40));
        // Reading 10 lies after sample 9 and before sample 10, reading 11 before sample 11.
        assert_eq!(watched.throttled, [9, 10, 11]);
        let seen: Vec<(&str, bool, u64)> = watched
            .reasons
            .iter()
            .map(|seen| (seen.reason.as_str(), seen.throttles, seen.readings))
            .collect();
        let cap = ("software power cap", true, 2);
        assert_eq!(seen, [("idle", false, 39), cap, ("hardware thermal slowdown", true, 2)]);
        let power = watched.power_w.expect("power");
        assert_eq!((power.n, power.max), (41, 141.0));
        assert!(power.p5 < power.median && power.median < power.p95);
    }

    #[test]
    fn a_board_that_is_only_idle_marks_nothing() {
        let watched = watched(0..0, 0);
        assert!(watched.throttled.is_empty() && watched.throttling().next().is_none());
        assert_eq!(watched.reasons.len(), 1);
    }

    #[test]
    fn readings_keep_their_distance_and_one_ends_the_measurement() {
        let watched = watched(0..0, 60_000);
        assert_eq!(watched.readings, 2, "one before the first sample and one after the last");
        // All forty lie between the two.
        let mut watch =
            Watch::new(Box::new(Board { read: 0, down: 1..2 }), Duration::from_secs(60));
        watch.begin();
        assert_eq!(watch.end(40).throttled.len(), 40);
    }
}
