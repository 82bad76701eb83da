//! The samples of several kernels above each other on one axis, and below them how far apart they
//! are held to be.

use assay_record::Effect;

use crate::canvas::{Anchor, Canvas, fitted};
use crate::histogram::{Bins, quantile, usable};
use crate::scale::{Axis, fine_time as time, short, time_ticks};
use crate::style::series;

/// Samples of one kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Distribution {
    /// Its name.
    pub name: String,
    /// The samples kept, in nanoseconds.
    pub accepted_ns: Vec<f64>,
    /// The samples rejected, in nanoseconds.
    pub rejected_ns: Vec<f64>,
}

/// Relative differences with their intervals.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Effects {
    /// Each with what it is the difference of.
    pub bars: Vec<(String, Effect)>,
    /// The smallest difference that counts.
    pub threshold_rel: f64,
}

/// Kernels side by side.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Distributions {
    /// What is compared, and the verdict.
    pub title: String,
    /// Why.
    pub said: String,
    /// The kernels, from above.
    pub rows: Vec<Distribution>,
    /// How far apart they are.
    pub effects: Effects,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 836.0;
const TOP: f64 = 92.0;
/// The height of a kernel's panel, and of its bars.
const PANEL: f64 = 136.0;
const BARS: f64 = 80.0;
const EFFECT: f64 = 40.0;
/// How many times the range between the quartiles the axis reaches beyond them.
const REACH: f64 = 4.0;

/// The distributions as SVG.
pub fn distributions(record: &Distributions) -> String {
    let rows: Vec<Row> = record.rows.iter().map(Row::of).collect();
    let bottom = TOP + PANEL * rows.len() as f64;
    let effects = record.effects.bars.len() as f64;
    let height = bottom + 56.0 + if effects > 0.0 { 64.0 + EFFECT * effects } else { 0.0 };
    let mut canvas = Canvas::new(WIDTH, height, &record.title, &record.said);
    canvas.text("f-ink b", 18.0, Anchor::Start, (24.0, 32.0), &fitted(18.0, &record.title, 812.0));
    for (y, line) in [54.0, 72.0].into_iter().zip(record.said.splitn(2, "; ")) {
        canvas.text("f-soft", 13.0, Anchor::Start, (24.0, y), &fitted(13.0, line, 812.0));
    }
    let Some((low, high)) = range(&rows) else {
        canvas.text("f-bad", 14.0, Anchor::Start, (LEFT, TOP + 20.0), "no samples");
        return canvas.finish();
    };
    let x = Axis::linear(low, high, LEFT, RIGHT);
    for (index, row) in rows.iter().enumerate() {
        row.draw(&mut canvas, &x, (low, high), index);
    }
    ticks(&mut canvas, &x, high, bottom);
    draw_effects(&mut canvas, &record.effects, bottom + 76.0);
    canvas.finish()
}

/// One kernel's samples, sorted.
struct Row {
    name: String,
    accepted: Vec<f64>,
    rejected: Vec<f64>,
}

impl Row {
    fn of(record: &Distribution) -> Row {
        Row {
            name: record.name.clone(),
            accepted: usable(&record.accepted_ns),
            rejected: usable(&record.rejected_ns),
        }
    }

    fn draw(&self, canvas: &mut Canvas, x: &Axis, (low, high): (f64, f64), index: usize) {
        let base = TOP + PANEL * (index + 1) as f64 - 8.0;
        let inside = |samples: &[f64]| -> Vec<f64> {
            samples.iter().copied().filter(|ns| (low..=high).contains(ns)).collect()
        };
        let (kept, lost) = (inside(&self.accepted), inside(&self.rejected));
        let bins = Bins { low, high, count: Bins::around(&kept, low, high).count.max(40) };
        let (kept_counts, lost_counts) = (bins.counts(&kept), bins.counts(&lost));
        let both = || kept_counts.iter().zip(&lost_counts);
        for tick in x.ticks(7) {
            canvas.line("l-grid", 1.0, (x.at(tick), base - BARS), (x.at(tick), base));
        }
        let tallest = both().map(|(a, b)| a + b).max().unwrap_or(1).max(1);
        let y = Axis::linear(0.0, tallest as f64, base, base - BARS);
        for (bin, (&kept, &lost)) in both().enumerate() {
            let (left, right) = (x.at(bins.edge(bin)), x.at(bins.edge(bin + 1)));
            let width = (right - left - 1.0).max(0.5);
            let (middle, top) = (y.at(kept as f64), y.at((kept + lost) as f64));
            if kept > 0 {
                canvas.rect(&format!("f-{}", series(index)), (left, middle), width, base - middle);
            }
            if lost > 0 {
                canvas.rect("f-bad half", (left, top), width, middle - top);
            }
        }
        canvas.line("l-axis", 1.0, (LEFT, base), (RIGHT, base));
        if let Some(median) = quantile(&self.accepted, 0.5) {
            canvas.line("l-ink", 2.0, (x.at(median), base - BARS - 4.0), (x.at(median), base));
        }
        let beyond = (self.accepted.len() - kept.len(), self.rejected.len() - lost.len());
        let name = fitted(13.0, &self.name, RIGHT - 24.0);
        canvas.text("f-ink b", 13.0, Anchor::Start, (24.0, base - BARS - 28.0), &name);
        let text = fitted(12.0, &self.said(beyond), RIGHT - 24.0);
        canvas.text("f-soft", 12.0, Anchor::Start, (24.0, base - BARS - 11.0), &text);
    }

    /// Where most of its samples lie.
    fn ends(&self) -> Option<(f64, f64)> {
        let samples = if self.accepted.is_empty() { &self.rejected } else { &self.accepted };
        let (first, last) = (*samples.first()?, *samples.last()?);
        let (low, high) = (quantile(samples, 0.25)?, quantile(samples, 0.75)?);
        let reach = REACH * (high - low);
        Some((first.max(low - reach), last.min(high + reach)))
    }

    /// The numbers; `beyond` are the samples kept and rejected that the axis does not reach.
    fn said(&self, beyond: (usize, usize)) -> String {
        let mut words = vec![format!("n = {}", self.accepted.len())];
        if let Some(median) = quantile(&self.accepted, 0.5) {
            words.push(format!("median {}", time(median)));
        }
        if let (Some(low), Some(high)) =
            (quantile(&self.accepted, 0.05), quantile(&self.accepted, 0.95))
        {
            words.push(format!("p5 {}, p95 {}", time(low), time(high)));
        }
        if !self.rejected.is_empty() {
            words.push(format!("{} rejected (red)", self.rejected.len()));
        }
        match beyond {
            (0, 0) => {}
            (kept, 0) => words.push(format!("beyond the picture: {kept}")),
            (0, lost) => words.push(format!("beyond the picture: {lost} rejected")),
            (kept, lost) => words.push(format!("beyond the picture: {kept}, and {lost} rejected")),
        }
        words.join(", ")
    }
}

/// What the axis spans: the samples kept of every kernel, but for those that lie far from its
/// quartiles, with a margin. Rejected samples do not stretch it, unless there are no others.
fn range(rows: &[Row]) -> Option<(f64, f64)> {
    let ends = rows.iter().filter_map(Row::ends);
    let (low, high) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let margin = ((high - low) * 0.08).max(high.abs() * 1e-3).max(1e-3);
    Some((low - margin, high + margin))
}

fn ticks(canvas: &mut Canvas, x: &Axis, high: f64, bottom: f64) {
    let (unit, ticks) = time_ticks(x, high);
    for (at, text) in ticks {
        canvas.text_where_free("f-soft", 12.0, &[(Anchor::Middle, (at, bottom + 10.0))], &text);
    }
    let label = format!("time of one run, {unit}");
    canvas.text("f-soft", 12.0, Anchor::Middle, (LEFT.midpoint(RIGHT), bottom + 32.0), &label);
}

/// A line for each difference, from the lower to the upper end of its interval.
fn draw_effects(canvas: &mut Canvas, effects: &Effects, top: f64) {
    let usable =
        |effect: &Effect| [effect.rel, effect.lower, effect.upper].iter().all(|v| v.is_finite());
    let bars: Vec<&(String, Effect)> =
        effects.bars.iter().filter(|(_, effect)| usable(effect)).collect();
    if bars.is_empty() {
        return;
    }
    let threshold =
        if effects.threshold_rel.is_finite() { effects.threshold_rel.abs() } else { 0.0 };
    let ends = bars.iter().flat_map(|(_, effect)| [effect.lower.abs(), effect.upper.abs()]);
    let most = ends.fold(threshold, f64::max).max(1e-6) * 1.15;
    let x = Axis::linear(-most, most, LEFT, RIGHT);
    let bottom = top + EFFECT * bars.len() as f64;
    let (left, right) = (x.at(-threshold), x.at(threshold));
    canvas.rect("f-grid", (left, top - 8.0), right - left, bottom - top + 8.0);
    canvas.line("l-axis", 1.0, (x.at(0.0), top - 8.0), (x.at(0.0), bottom));
    for (index, (name, effect)) in bars.iter().enumerate() {
        let y = top + EFFECT * index as f64 + 24.0;
        let class = series(index + 1);
        canvas.line(&format!("l-{class}"), 4.0, (x.at(effect.lower), y), (x.at(effect.upper), y));
        canvas.circle(&format!("f-{class} l-paper"), (x.at(effect.rel), y), 5.0);
        let Effect { rel, lower, upper } = effect;
        let text = format!(
            "{name}: {:+.2} % ({:+.2} to {:+.2})",
            rel * 100.0,
            lower * 100.0,
            upper * 100.0
        );
        canvas.text("f-ink", 12.0, Anchor::Start, (LEFT, y - 10.0), &text);
    }
    for tick in x.ticks(9) {
        let at = (x.at(tick), bottom + 16.0);
        let text = short((tick * 1e4).round() / 1e2);
        canvas.text_where_free("f-soft", 12.0, &[(Anchor::Middle, at)], &text);
    }
    let label =
        format!("difference, %; grey: what does not count, within {} %", short(threshold * 100.0));
    canvas.text("f-soft", 12.0, Anchor::Middle, (LEFT.midpoint(RIGHT), bottom + 36.0), &label);
}
