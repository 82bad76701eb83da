//! The phases of a kernel's warps or blocks over time.

use assay_record::{StampLane, StampRecord};

use crate::canvas::{Anchor, Canvas, fitted};
use crate::scale::{Axis, short, time_unit};
use crate::style::series;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 976.0;
/// More lanes than this are counted and not drawn.
const MOST_LANES: usize = 64;
/// More spans of one lane than this are not drawn.
const MOST_SPANS: usize = 512;

/// One phase of one lane, in nanoseconds from the first mark of all.
struct Span {
    phase: usize,
    from: f64,
    to: f64,
}

/// The timeline as SVG. Lanes are placed by the device's clock and their phases measured by their
/// own cycle counters, which are finer.
pub fn timeline(record: &StampRecord) -> String {
    let lanes: Vec<&StampLane> =
        record.lanes.iter().filter(|lane| lane.marks.len() > 1).take(MOST_LANES).collect();
    let row = if lanes.len() > 24 { 11.0 } else { 20.0 };
    let top = 92.0 + 22.0 * record.statistics.len().div_ceil(2) as f64;
    let bottom = top + row * lanes.len() as f64;
    let title = format!("{} on {}", record.kernel, record.device);
    let said = said(record, lanes.len());
    let mut canvas = Canvas::new(WIDTH, bottom + 56.0, &title, &said);
    canvas.text("f-ink b", 18.0, Anchor::Start, (24.0, 32.0), &fitted(18.0, &title, 952.0));
    canvas.text("f-soft", 13.0, Anchor::Start, (24.0, 54.0), &fitted(13.0, &said, 952.0));
    legend(&mut canvas, record);
    let spans: Vec<Vec<Span>> = lanes.iter().map(|lane| spans(record, lane)).collect();
    let end = spans.iter().flatten().map(|span| span.to).fold(0.0, f64::max);
    if end <= 0.0 {
        canvas.text("f-bad", 14.0, Anchor::Start, (LEFT, top + 20.0), "no phase was stamped");
        return canvas.finish();
    }
    let x = Axis::linear(0.0, end, LEFT, RIGHT);
    frame(&mut canvas, &x, end, (top, bottom));
    for (index, (lane, spans)) in lanes.iter().zip(&spans).enumerate() {
        let y = top + row * index as f64;
        name(&mut canvas, lane, y + row / 2.0);
        for span in spans {
            let (from, to) = (x.at(span.from), x.at(span.to));
            canvas.rect(&fill(span.phase), (from, y + 1.5), (to - from).max(0.4), row - 3.0);
        }
    }
    canvas.finish()
}

fn said(record: &StampRecord, shown: usize) -> String {
    let stamped = record.lanes.len();
    let mut words = vec![format!("{stamped} lanes")];
    if shown < stamped {
        words.push(format!("{shown} drawn"));
    }
    if let Some(clock) = record.sm_clock_mhz {
        words.push(format!("SM clock {} MHz", short(clock.round())));
    }
    if let Some(overhead) = record.overhead {
        words.push(format!("one stamp costs {} cycles", short(overhead.cycles_median)));
    }
    if record.dropped > 0 {
        words.push(format!("{} stamps did not fit", record.dropped));
    }
    words.join(", ")
}

/// The class of a phase's bars; past the colours there are, the same ones paler.
fn fill(phase: usize) -> String {
    let pale = if phase >= 6 { " half" } else { "" };
    format!("f-{}{pale}", series(phase))
}

fn legend(canvas: &mut Canvas, record: &StampRecord) {
    for (index, phase) in record.statistics.iter().enumerate() {
        let x = 24.0 + 480.0 * (index % 2) as f64;
        let y = 78.0 + 22.0 * (index / 2) as f64;
        let number = record.phases.iter().position(|name| *name == phase.phase).unwrap_or(index);
        canvas.rect(&fill(number), (x, y - 11.0), 14.0, 14.0);
        let text = format!(
            "{}: {} cycles a span (p5 {}, p95 {}), {} % of all",
            phase.phase,
            short(phase.cycles_median),
            short(phase.cycles_p5),
            short(phase.cycles_p95),
            short((phase.share * 1000.0).round() / 10.0)
        );
        canvas.text("f-ink", 12.0, Anchor::Start, (x + 22.0, y), &fitted(12.0, &text, 450.0));
    }
}

/// A lane's phases. Without a clock rate, cycles are drawn as if each took a nanosecond.
fn spans(record: &StampRecord, lane: &StampLane) -> Vec<Span> {
    let all = record.lanes.iter().filter_map(|lane| lane.marks.first());
    let origin = all.map(|mark| mark.time_ns).min().unwrap_or(0);
    let Some(first) = lane.marks.first() else { return Vec::new() };
    let start = first.time_ns.saturating_sub(origin) as f64;
    let usable = |clock: &f64| clock.is_finite() && *clock > 0.0;
    let per_cycle = record.sm_clock_mhz.filter(usable).map_or(1.0, |mhz| 1e3 / mhz);
    let at = |cycles: u64| start + cycles.saturating_sub(first.cycles) as f64 * per_cycle;
    let phase = |pair: &[assay_record::Mark]| {
        let (from, to) = (pair.first()?, pair.get(1)?);
        Some(Span { phase: from.phase? as usize, from: at(from.cycles), to: at(to.cycles) })
    };
    lane.marks.windows(2).take(MOST_SPANS).filter_map(phase).collect()
}

fn frame(canvas: &mut Canvas, x: &Axis, end: f64, (top, bottom): (f64, f64)) {
    let (unit, size) = time_unit(end);
    for tick in x.ticks(8) {
        let at = x.at(tick);
        canvas.line("l-grid", 1.0, (at, top), (at, bottom));
        canvas.text("f-soft", 12.0, Anchor::Middle, (at, bottom + 18.0), &short(tick / size));
    }
    let label = format!("{unit} from the first stamp");
    canvas.text("f-soft", 12.0, Anchor::Middle, (LEFT.midpoint(RIGHT), bottom + 40.0), &label);
}

/// A lane's name, left out where lanes lie too close for it.
fn name(canvas: &mut Canvas, lane: &StampLane, middle: f64) {
    let text = format!("{} · SM {}", lane.lane, lane.multiprocessor);
    let place = (Anchor::End, (LEFT - 8.0, middle + 3.5));
    canvas.text_where_free("f-soft", 11.0, &[place], &text);
}
