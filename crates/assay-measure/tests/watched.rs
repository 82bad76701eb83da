//! A board's gauges through a measurement, on a simulated device: what is read is in the record,
//! what was taken under a throttle is marked, and no reading is inside a span or changes one.

#[allow(dead_code, reason = "other tests use the rest of it")]
mod simulated;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use assay_measure::{Plan, Samples, Stopwatch, VersusPlan, series};
use assay_record::{Versus, Watched};
use simulated::{Board, Noise, Simulated, kernel};

/// A stopwatch with a gauge that is read at every sample, and how often it was read inside a span.
fn watched(device: &mut Simulated, throttled_ns: Range<u64>) -> (Stopwatch, Arc<AtomicU32>) {
    let inside = Arc::new(AtomicU32::new(0));
    let mut stopwatch = Stopwatch::new(device).expect("a stopwatch");
    let board = Board { seen: device.seen.clone(), throttled_ns, inside: inside.clone() };
    stopwatch.watch(Box::new(board), Duration::ZERO);
    (stopwatch, inside)
}

fn measured(throttled_ns: Range<u64>) -> Samples {
    let mut device = Simulated::new(Noise::QUIET, 5);
    let (mut stopwatch, inside) = watched(&mut device, throttled_ns);
    let plan = Plan { least_samples: 60, most_samples: 60, ..Plan::default() };
    let samples = stopwatch.measure(&mut device, &plan, &mut kernel(20_000)).expect("samples");
    assert_eq!(inside.load(Ordering::Relaxed), 0, "a gauge was read inside a span");
    samples
}

/// The device's time at the first sample and at the last.
fn stretch() -> (u64, u64) {
    let mut device = Simulated::new(Noise::QUIET, 5);
    let (mut stopwatch, _) = watched(&mut device, 0..0);
    let began = device.seen.now_ns();
    let plan = Plan { least_samples: 60, most_samples: 60, ..Plan::default() };
    stopwatch.measure(&mut device, &plan, &mut kernel(20_000)).expect("samples");
    (began, device.seen.now_ns())
}

#[test]
fn a_board_that_throttles_in_the_middle_shows_in_the_record() {
    let (from, to) = stretch();
    let third = (to - from) / 3;
    let samples = measured(from + third..from + 2 * third);
    let found = series(&samples).watched.expect("a board was watched");
    assert_eq!((found.readings, found.samples), (61, 60));
    let reasons: Vec<&str> = found.throttling().map(|seen| seen.reason.as_str()).collect();
    assert_eq!(reasons, ["software power cap"]);
    let marked = &found.throttled;
    assert!((18..=24).contains(&marked.len()), "a third of 60 and its edges: {marked:?}");
    assert!(marked.windows(2).all(|pair| pair[1] == pair[0] + 1), "one stretch: {marked:?}");
    assert!(marked[0] > 10 && marked[marked.len() - 1] < 50, "in the middle: {marked:?}");
    let power = found.power_w.expect("power");
    assert_eq!(
        (power.median, power.p5, power.p95, power.max, power.n),
        (400., 400., 690., 690., 61)
    );
    assert_eq!(found.temperature_c.map(|spread| spread.max), Some(80.0));
}

#[test]
fn a_board_that_is_only_idle_between_spans_marks_no_sample() {
    let found = measured(0..0).watched.expect("a board was watched");
    assert!(found.throttled.is_empty() && found.throttling().next().is_none(), "{found:?}");
    assert_eq!(found.power_w.map(|spread| (spread.median, spread.max)), Some((400.0, 400.0)));
    assert_eq!(found.reasons.len(), 1);
}

#[test]
fn readings_change_no_sample() {
    let plan = Plan { least_samples: 60, most_samples: 60, ..Plan::default() };
    let mut device = Simulated::new(Noise::QUIET, 5);
    let mut stopwatch = Stopwatch::new(&mut device).expect("a stopwatch");
    let alone = stopwatch.measure(&mut device, &plan, &mut kernel(20_000)).expect("samples");
    assert_eq!(alone.watched, None);
    assert_eq!(alone.duration_ns, measured(0..0).duration_ns);
}

fn compared(throttled_ns: Range<u64>) -> (Versus, Watched) {
    let mut device = Simulated::new(Noise::QUIET, 7);
    let (mut stopwatch, inside) = watched(&mut device, throttled_ns);
    let asked = VersusPlan::default();
    let (mut a, mut b) = (kernel(20_000), kernel(20_600));
    let found = stopwatch.versus(&mut device, &asked, ("a", &mut a), ("b", &mut b));
    assert_eq!(inside.load(Ordering::Relaxed), 0, "a gauge was read inside a span");
    let found = found.expect("a comparison");
    let watched = found.watched.clone().expect("a board was watched");
    (found, watched)
}

#[test]
fn a_comparison_is_watched_span_by_span_and_keeps_its_rounds() {
    let (versus, free) = compared(0..0);
    let rounds = versus.samples.as_ref().expect("rounds");
    let taken = versus.rounds + versus.rejected_rounds;
    for column in [&rounds.baseline_ns, &rounds.candidate_ns, &rounds.again_ns] {
        assert_eq!(column.len() as u64, taken);
    }
    assert_eq!(rounds.rejected.len() as u64, versus.rejected_rounds);
    assert_eq!((free.samples, free.readings), (3 * taken, 3 * taken + 1));
    assert!(free.throttled.is_empty());
    let (_, always) = compared(0..u64::MAX);
    assert_eq!(always.throttled.len() as u64, always.samples, "every span is marked");
}
