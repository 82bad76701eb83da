//! The samples of a measurement as a histogram.

use crate::canvas::{Anchor, Canvas, fitted, text_width};
use crate::scale::{Axis, fine_time as time, short, time_ticks};

/// Samples to draw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Histogram {
    /// What was measured, and where.
    pub title: String,
    /// The accepted samples, in nanoseconds.
    pub accepted_ns: Vec<f64>,
    /// Those of the accepted that were taken while something held the clocks down.
    pub throttled_ns: Vec<f64>,
    /// The rejected ones, in nanoseconds.
    pub rejected_ns: Vec<f64>,
    /// The interval of the median, in nanoseconds, where it is known.
    pub median_interval_ns: Option<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 836.0;
const TOP: f64 = 96.0;
const BOTTOM: f64 = 310.0;

/// The histogram as SVG.
pub fn histogram(record: &Histogram) -> String {
    let accepted = usable(&record.accepted_ns);
    let rejected = usable(&record.rejected_ns);
    let summary = said(&accepted, &rejected, record.median_interval_ns);
    let mut canvas = Canvas::new(WIDTH, HEIGHT, &record.title, &summary);
    canvas.text("f-ink b", 18.0, Anchor::Start, (24.0, 32.0), &fitted(18.0, &record.title, 812.0));
    canvas.text("f-soft", 13.0, Anchor::Start, (24.0, 54.0), &fitted(13.0, &summary, 812.0));
    let all: Vec<f64> = accepted.iter().chain(&rejected).copied().collect();
    let (Some(low), Some(high)) = (least(&all), most(&all)) else {
        canvas.text("f-bad", 14.0, Anchor::Start, (LEFT, 120.0), "no samples");
        return canvas.finish();
    };
    let bins = Bins::around(&accepted, low, high);
    let throttled = usable(&record.throttled_ns);
    let (kept, lost) = (bins.counts(&accepted), bins.counts(&rejected));
    let down = bins.counts(&throttled);
    let tallest = kept.iter().zip(&lost).map(|(a, b)| a + b).max().unwrap_or(1);
    let x = Axis::linear(bins.low, bins.high, LEFT, RIGHT);
    let y = Axis::linear(0.0, tallest as f64, BOTTOM, TOP);
    frame(&mut canvas, &x, &y, bins.high);
    bars(&mut canvas, &bins, (&x, &y), (&kept, &down, &lost));
    band(&mut canvas, &x, record.median_interval_ns);
    middle(&mut canvas, &x, &accepted);
    let interval = record.median_interval_ns.is_some();
    legend(&mut canvas, interval, !throttled.is_empty(), !rejected.is_empty());
    canvas.finish()
}

pub(crate) fn usable(samples: &[f64]) -> Vec<f64> {
    let mut usable: Vec<f64> = samples.iter().copied().filter(|ns| ns.is_finite()).collect();
    usable.sort_by(f64::total_cmp);
    usable
}

fn least(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().reduce(f64::min)
}

fn most(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().reduce(f64::max)
}

/// A quantile of sorted samples.
pub(crate) fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let place = part * (sorted.len().checked_sub(1)?) as f64;
    let (low, high) = (sorted.get(place.floor() as usize)?, sorted.get(place.ceil() as usize)?);
    Some(low + (high - low) * place.fract())
}

fn said(accepted: &[f64], rejected: &[f64], interval: Option<(f64, f64)>) -> String {
    let mut words = vec![format!("n = {}", accepted.len())];
    if !rejected.is_empty() {
        words.push(format!("{} rejected", rejected.len()));
    }
    if let Some(median) = quantile(accepted, 0.5) {
        let around = interval.map_or(String::new(), |(low, high)| {
            format!(" (interval {} to {})", time(low), time(high))
        });
        words.push(format!("median {}{around}", time(median)));
    }
    if let (Some(low), Some(high)) = (quantile(accepted, 0.05), quantile(accepted, 0.95)) {
        words.push(format!("p5 {}, p95 {}", time(low), time(high)));
    }
    words.join(", ")
}

/// Equal bins over all samples.
pub(crate) struct Bins {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) count: usize,
}

impl Bins {
    /// As many bins as Freedman and Diaconis give the accepted samples, within 8 and 80.
    pub(crate) fn around(accepted: &[f64], low: f64, high: f64) -> Bins {
        let spread = match (quantile(accepted, 0.25), quantile(accepted, 0.75)) {
            (Some(low), Some(high)) => high - low,
            _ => 0.0,
        };
        let width = 2.0 * spread / (accepted.len().max(1) as f64).cbrt();
        let wanted = if width > 0.0 { ((high - low) / width).ceil() } else { 20.0 };
        let margin = if high > low { 0.0 } else { low.abs().max(1.0) * 0.01 };
        Bins { low: low - margin, high: high + margin, count: wanted.clamp(8.0, 80.0) as usize }
    }

    pub(crate) fn counts(&self, samples: &[f64]) -> Vec<usize> {
        let mut counts = vec![0; self.count];
        for sample in samples {
            let part = (sample - self.low) / (self.high - self.low);
            let index = ((part * self.count as f64) as usize).min(self.count - 1);
            counts[index] += 1;
        }
        counts
    }

    pub(crate) fn edge(&self, index: usize) -> f64 {
        self.low + (self.high - self.low) * index as f64 / self.count as f64
    }
}

fn frame(canvas: &mut Canvas, x: &Axis, y: &Axis, high: f64) {
    for tick in y.ticks(4).into_iter().filter(|tick| tick.fract() == 0.0) {
        let at = y.at(tick);
        canvas.line("l-grid", 1.0, (LEFT, at), (RIGHT, at));
        canvas.text("f-soft", 12.0, Anchor::End, (LEFT - 8.0, at + 4.0), &short(tick));
    }
    let (unit, ticks) = time_ticks(x, high);
    for (at, text) in ticks {
        canvas.line("l-axis", 1.0, (at, BOTTOM), (at, BOTTOM + 5.0));
        canvas.text_where_free("f-soft", 12.0, &[(Anchor::Middle, (at, BOTTOM + 20.0))], &text);
    }
    canvas.line("l-axis", 1.0, (LEFT, BOTTOM), (RIGHT, BOTTOM));
    let label = format!("time of one run, {unit}");
    canvas.text("f-soft", 12.0, Anchor::Middle, (LEFT.midpoint(RIGHT), BOTTOM + 42.0), &label);
}

/// A bar for each bin: those kept, of these last those taken under a throttle, those rejected.
fn bars(
    canvas: &mut Canvas,
    bins: &Bins,
    (x, y): (&Axis, &Axis),
    (kept, down, lost): (&[usize], &[usize], &[usize]),
) {
    for (index, ((&kept, &down), &lost)) in kept.iter().zip(down).zip(lost).enumerate() {
        let (left, right) = (x.at(bins.edge(index)), x.at(bins.edge(index + 1)));
        let width = (right - left - 1.0).max(0.5);
        let mut from = 0;
        let free = kept.saturating_sub(down);
        for (class, count) in [("f-s0", free), ("f-s3", kept - free), ("f-bad half", lost)] {
            let (low, high) = (y.at(from as f64), y.at((from + count) as f64));
            if count > 0 {
                canvas.rect(class, (left, high), width, low - high);
            }
            from += count;
        }
    }
}

fn band(canvas: &mut Canvas, x: &Axis, interval: Option<(f64, f64)>) {
    if let Some((low, high)) = interval {
        let (left, right) = (x.at(low), x.at(high));
        canvas.rect("f-s1 half", (left, TOP), (right - left).max(1.0), BOTTOM - TOP);
    }
}

fn middle(canvas: &mut Canvas, x: &Axis, accepted: &[f64]) {
    let Some(median) = quantile(accepted, 0.5) else { return };
    let at = x.at(median);
    canvas.line("l-s1", 2.0, (at, TOP - 6.0), (at, BOTTOM));
    let text = format!("median {}", time(median));
    let places = [
        (Anchor::Middle, (at, TOP - 12.0)),
        (Anchor::End, (RIGHT, TOP - 12.0)),
        (Anchor::Start, (LEFT, TOP - 12.0)),
    ];
    canvas.text_where_free("f-s1 b", 12.0, &places, &text);
}

fn legend(canvas: &mut Canvas, interval: bool, throttled: bool, rejected: bool) {
    let mut x = 24.0;
    let y = HEIGHT - 12.0;
    let entries = [
        (true, "f-s0", "accepted"),
        (throttled, "f-s3", "clocks held down next to it"),
        (interval, "f-s1 half", "interval of the median"),
        (rejected, "f-bad half", "rejected: its clock sagged"),
    ];
    for (_, class, text) in entries.into_iter().filter(|(shown, ..)| *shown) {
        canvas.rect(class, (x, y - 10.0), 12.0, 12.0);
        canvas.text("f-soft", 12.0, Anchor::Start, (x + 18.0, y), text);
        x += 50.0 + text_width(12.0, text);
    }
}
