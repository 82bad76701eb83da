//! The latencies of a memory hierarchy, from the nearest to the farthest.

use crate::canvas::{Anchor, Canvas, fitted};
use crate::scale::{Axis, short};

/// One latency.
#[derive(Clone, PartialEq, Debug)]
pub struct Rung {
    /// `shared`, `l2_near`.
    pub name: String,
    /// Cycles of one dependent load.
    pub cycles: f64,
    /// The same in nanoseconds, where the clock is known.
    pub nanoseconds: Option<f64>,
    /// The 5th and the 95th percentile, in cycles.
    pub spread: Option<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 200.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 78.0;
const ROW: f64 = 34.0;
/// More rungs than this are counted and not drawn.
const MOST: usize = 40;

/// The ladder as SVG, on a logarithmic axis, in the order given.
pub fn ladder(title: &str, rungs: &[Rung]) -> String {
    let usable = |rung: &&Rung| rung.cycles.is_finite() && rung.cycles > 0.0;
    let shown: Vec<&Rung> = rungs.iter().filter(usable).take(MOST).collect();
    let bottom = TOP + ROW * shown.len() as f64;
    let said: Vec<String> = shown.iter().map(|r| format!("{} {}", r.name, figure(r))).collect();
    let mut canvas = Canvas::new(WIDTH, bottom + 60.0, title, &said.join("; "));
    canvas.text("f-ink b", 18.0, Anchor::Start, (24.0, 32.0), &fitted(18.0, title, 812.0));
    let note = "one dependent load, in SM cycles; the thin line spans p5 to p95";
    canvas.text("f-soft", 13.0, Anchor::Start, (24.0, 54.0), note);
    let most = shown.iter().map(|r| r.spread.map_or(r.cycles, |s| s.1.max(r.cycles)));
    let most = most.fold(10.0, f64::max);
    let x = Axis::log(10f64.min(least(&shown) / 1.5), most * 1.2, LEFT, RIGHT);
    for tick in x.ticks(9) {
        let at = x.at(tick);
        canvas.line("l-grid", 1.0, (at, TOP), (at, bottom));
        canvas.text("f-soft", 12.0, Anchor::Middle, (at, bottom + 18.0), &short(tick));
    }
    canvas.text("f-soft", 12.0, Anchor::Middle, (LEFT.midpoint(RIGHT), bottom + 40.0), "cycles");
    for (index, rung) in shown.iter().enumerate() {
        step(&mut canvas, &x, TOP + ROW * index as f64, rung);
    }
    canvas.finish()
}

fn least(rungs: &[&Rung]) -> f64 {
    rungs.iter().map(|rung| rung.cycles).fold(f64::INFINITY, f64::min)
}

fn figure(rung: &Rung) -> String {
    let nanoseconds = rung.nanoseconds.map(|ns| format!(", {} ns", short(ns)));
    format!("{} cycles{}", short(rung.cycles), nanoseconds.unwrap_or_default())
}

fn step(canvas: &mut Canvas, x: &Axis, top: f64, rung: &Rung) {
    let end = x.at(rung.cycles);
    let middle = top + ROW / 2.0;
    canvas.rect("f-s0", (LEFT, top + 7.0), end - LEFT, ROW - 14.0);
    let mut right = end;
    if let Some((low, high)) = rung.spread {
        canvas.line("l-s1", 2.0, (x.at(low), middle), (x.at(high), middle));
        right = right.max(x.at(high));
    }
    let name = fitted(13.0, &rung.name, LEFT - 36.0);
    canvas.text("f-ink", 13.0, Anchor::End, (LEFT - 10.0, middle + 4.5), &name);
    canvas.text("f-ink", 13.0, Anchor::Start, (right + 10.0, middle + 4.5), &figure(rung));
}
