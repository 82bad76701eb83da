//! The roofline of a device with kernels on it.

use crate::canvas::{Anchor, Canvas, fitted};
use crate::scale::{Axis, short, with_unit};
use crate::style::series;

/// How far over its roof a point may lie before it counts as a counting error: the roofs are
/// measured too, and a kernel may beat a probe by what both are uncertain by.
pub const COUNTING_TOLERANCE: f64 = 0.05;

/// What a roof limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoofKind {
    /// Bytes per second of a level of memory: a diagonal.
    Memory,
    /// Operations per second of a pipe: a level line.
    Compute,
}

/// Where a roof's figure comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum RoofSource {
    /// A probe, at this SM clock in MHz where it was seen.
    Measured {
        /// The SM clock, in MHz.
        sm_clock_mhz: Option<f64>,
    },
    /// The maker's paper.
    Datasheet,
}

/// One roof.
#[derive(Clone, PartialEq, Debug)]
pub struct Roof {
    /// `dram_read`, `wgmma_bf16`.
    pub name: String,
    /// What it limits.
    pub kind: RoofKind,
    /// Bytes per second, or operations per second.
    pub value: f64,
    /// Where the figure comes from.
    pub source: RoofSource,
}

impl Roof {
    fn said(&self) -> String {
        let unit = match self.kind {
            RoofKind::Memory => "B/s",
            RoofKind::Compute => "FLOP/s",
        };
        let source = match self.source {
            RoofSource::Measured { sm_clock_mhz: Some(clock) } => {
                format!("measured at {} MHz", short(clock.round()))
            }
            RoofSource::Measured { sm_clock_mhz: None } => "measured".to_owned(),
            RoofSource::Datasheet => "datasheet".to_owned(),
        };
        format!("{}, {source}", with_unit(self.value, unit))
    }
}

/// One kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct RooflinePoint {
    /// Its name.
    pub name: String,
    /// Bytes that one run has to move, as its author counts them.
    pub bytes: f64,
    /// Operations of one run, as its author counts them.
    pub flops: f64,
    /// How long one run takes, in seconds.
    pub seconds: f64,
    /// The compute roof it can reach; the highest where none is named.
    pub compute: Option<String>,
    /// The memory roof it can reach; the highest where none is named.
    pub memory: Option<String>,
}

/// Roofs and the kernels under them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Roofline {
    /// The device, driver and date.
    pub title: String,
    /// The roofs.
    pub roofs: Vec<Roof>,
    /// The kernels.
    pub points: Vec<RooflinePoint>,
}

/// Where a kernel is.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// Operations per byte.
    pub flops_per_byte: f64,
    /// Operations per second.
    pub flops_per_second: f64,
    /// The roof over it, by name.
    pub bound_by: String,
    /// What it reaches of that roof: 1 is all.
    pub fraction: f64,
    /// Whether it lies over the roof, which only a wrong count of bytes, operations or time does.
    pub is_counting_error: bool,
}

impl Roofline {
    /// Where a point is; `None` where a figure is missing or no roof is over it.
    pub fn place(&self, point: &RooflinePoint) -> Option<Placement> {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if ![point.bytes, point.flops, point.seconds].into_iter().all(positive) {
            return None;
        }
        let flops_per_byte = point.flops / point.bytes;
        let flops_per_second = point.flops / point.seconds;
        let memory = self.roof(RoofKind::Memory, point.memory.as_deref())?;
        let compute = self.roof(RoofKind::Compute, point.compute.as_deref())?;
        let from_memory = memory.value * flops_per_byte;
        let (limit, roof) = if from_memory <= compute.value {
            (from_memory, memory)
        } else {
            (compute.value, compute)
        };
        let fraction = flops_per_second / limit;
        Some(Placement {
            flops_per_byte,
            flops_per_second,
            bound_by: roof.name.clone(),
            fraction,
            is_counting_error: fraction > 1.0 + COUNTING_TOLERANCE,
        })
    }

    /// The roof of a name, or the highest of its kind where none is named.
    fn roof(&self, kind: RoofKind, name: Option<&str>) -> Option<&Roof> {
        let of_kind = self.of_kind(kind);
        match name {
            Some(name) => of_kind.into_iter().find(|roof| roof.name == name),
            None => of_kind.into_iter().next(),
        }
    }

    /// The usable roofs of a kind, the highest first.
    fn of_kind(&self, kind: RoofKind) -> Vec<&Roof> {
        let usable = |roof: &&Roof| roof.kind == kind && roof.value.is_finite() && roof.value > 0.0;
        let mut roofs: Vec<&Roof> = self.roofs.iter().filter(usable).collect();
        roofs.sort_by(|a, b| b.value.total_cmp(&a.value));
        roofs
    }
}

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 680.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = 440.0;
const LINE: f64 = 20.0;
/// More kernels than this are counted and not drawn.
const MOST_POINTS: usize = 40;
/// More roofs of one kind than this are left out, the lowest first.
const MOST_ROOFS: usize = 16;

/// The roofline as SVG.
pub fn roofline(record: &Roofline) -> String {
    let memory: Vec<&Roof> = shortened(record.of_kind(RoofKind::Memory));
    let compute: Vec<&Roof> = shortened(record.of_kind(RoofKind::Compute));
    let rows = memory.len() + record.points.len().min(MOST_POINTS) + 3;
    let height = BOTTOM + 62.0 + LINE * rows as f64;
    let summary = format!("Roofline of {}: {} kernels", record.title, record.points.len());
    let mut canvas = Canvas::new(WIDTH, height, &summary, &described(record));
    canvas.text("f-ink b", 18.0, Anchor::Start, (24.0, 32.0), &fitted(18.0, &record.title, 940.0));
    let axes = axes(record, &memory, &compute);
    frame(&mut canvas, &axes);
    if memory.is_empty() || compute.is_empty() {
        let text = "no roofs: the dossier has no memory or no compute entry";
        canvas.text("f-bad", 14.0, Anchor::Start, (LEFT + 20.0, TOP + 40.0), text);
        return canvas.finish();
    }
    compute_roofs(&mut canvas, &axes, &memory, &compute);
    memory_roofs(&mut canvas, &axes, &memory, &compute);
    points(&mut canvas, &axes, record);
    table(&mut canvas, record, &memory);
    canvas.finish()
}

fn shortened(mut roofs: Vec<&Roof>) -> Vec<&Roof> {
    roofs.truncate(MOST_ROOFS);
    roofs
}

fn described(record: &Roofline) -> String {
    let roof = |roof: &Roof| format!("{} {}", roof.name, roof.said());
    record.roofs.iter().map(roof).collect::<Vec<_>>().join("; ")
}

struct Axes {
    x: Axis,
    y: Axis,
    /// The intensities at both ends.
    ends: (f64, f64),
}

/// Axes around all roofs' ridges and all points, whole decades upwards.
fn axes(record: &Roofline, memory: &[&Roof], compute: &[&Roof]) -> Axes {
    let placed: Vec<Placement> = record.points.iter().filter_map(|p| record.place(p)).collect();
    let mut xs: Vec<f64> = placed.iter().map(|place| place.flops_per_byte).collect();
    let mut ys: Vec<f64> = placed.iter().map(|place| place.flops_per_second).collect();
    for roof in compute {
        ys.push(roof.value);
        xs.extend(memory.iter().map(|memory| roof.value / memory.value));
    }
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let ends = (least(&xs).min(1.0) / 4.0, most(&xs).max(1.0) * 4.0);
    let slowest = memory.iter().map(|roof| roof.value).fold(f64::INFINITY, f64::min);
    let floor = (slowest * ends.0).min(least(&ys) / 2.0);
    Axes {
        x: Axis::log(ends.0, ends.1, LEFT, RIGHT),
        y: Axis::log(floor, most(&ys) * 2.5, BOTTOM, TOP),
        ends,
    }
}

fn frame(canvas: &mut Canvas, axes: &Axes) {
    for tick in axes.x.ticks(9) {
        let x = axes.x.at(tick);
        canvas.line("l-grid", 1.0, (x, TOP), (x, BOTTOM));
        canvas.text("f-soft", 12.0, Anchor::Middle, (x, BOTTOM + 18.0), &short(tick));
    }
    for tick in axes.y.ticks(9) {
        let y = axes.y.at(tick);
        canvas.line("l-grid", 1.0, (LEFT, y), (RIGHT, y));
        canvas.text("f-soft", 12.0, Anchor::End, (LEFT - 8.0, y + 4.0), &with_unit(tick, ""));
    }
    canvas.line("l-axis", 1.0, (LEFT, BOTTOM), (RIGHT, BOTTOM));
    canvas.line("l-axis", 1.0, (LEFT, TOP), (LEFT, BOTTOM));
    let middle = LEFT.midpoint(RIGHT);
    canvas.text("f-soft", 12.0, Anchor::Middle, (middle, BOTTOM + 38.0), "FLOP per byte");
    canvas.text("f-soft", 12.0, Anchor::Start, (24.0, TOP - 14.0), "FLOP/s");
}

/// Level lines from where the fastest memory feeds them, each with its name in the margin.
fn compute_roofs(canvas: &mut Canvas, axes: &Axes, memory: &[&Roof], compute: &[&Roof]) {
    let fastest = memory.first().map_or(1.0, |roof| roof.value);
    let wanted: Vec<f64> = compute.iter().map(|roof| axes.y.at(roof.value)).collect();
    let spread = spread(&wanted, 17.0, TOP, BOTTOM);
    for (roof, (y, label)) in compute.iter().zip(wanted.iter().zip(spread)) {
        let from = axes.x.at(roof.value / fastest);
        canvas.line(&lined("l-ink", roof), 1.5, (from, *y), (RIGHT, *y));
        canvas.line("l-axis", 1.0, (RIGHT, *y), (RIGHT + 16.0, label));
        let text = fitted(12.0, &format!("{}  {}", roof.name, roof.said()), WIDTH - RIGHT - 28.0);
        canvas.text("f-ink", 12.0, Anchor::Start, (RIGHT + 20.0, label + 4.0), &text);
    }
}

/// Places near those wanted, which come in order, at least `gap` apart and inside.
fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    let mut least = top;
    for place in &mut places {
        *place = place.max(least);
        least = *place + gap;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - gap;
    }
    places
}

/// Diagonals up to the highest level line; the table below names them by colour.
fn memory_roofs(canvas: &mut Canvas, axes: &Axes, memory: &[&Roof], compute: &[&Roof]) {
    let highest = compute.first().map_or(1.0, |roof| roof.value);
    for (index, roof) in memory.iter().enumerate() {
        let ridge = highest / roof.value;
        let low = axes.ends.0;
        let from = (axes.x.at(low), axes.y.at(roof.value * low));
        let class = lined(&format!("l-{}", series(index)), roof);
        canvas.line(&class, 2.0, from, (axes.x.at(ridge), axes.y.at(highest)));
    }
}

/// The classes of a roof's line: dashed where the figure is not measured.
fn lined(class: &str, roof: &Roof) -> String {
    match roof.source {
        RoofSource::Measured { .. } => class.to_owned(),
        RoofSource::Datasheet => format!("{class} dash"),
    }
}

/// A dot for each kernel with its number beside it.
fn points(canvas: &mut Canvas, axes: &Axes, record: &Roofline) {
    let placed = record.points.iter().take(MOST_POINTS).map(|point| record.place(point));
    let placed: Vec<Option<Placement>> = placed.collect();
    let center =
        |place: &Placement| (axes.x.at(place.flops_per_byte), axes.y.at(place.flops_per_second));
    for place in placed.iter().flatten() {
        let (x, y) = center(place);
        let class = if place.is_counting_error { "f-bad l-paper" } else { "f-ink l-paper" };
        canvas.circle(class, (x, y), 5.0);
        canvas.keep_clear((x - 5.0, y - 5.0), 10.0, 10.0);
        if place.is_counting_error {
            canvas.circle("n l-bad", (x, y), 9.0);
        }
    }
    for (index, place) in placed.iter().enumerate() {
        let Some(place) = place else { continue };
        let (x, y) = center(place);
        let class = if place.is_counting_error { "f-bad b" } else { "f-ink b" };
        canvas.text_where_free(class, 12.0, &around(x, y), &(index + 1).to_string());
    }
}

/// Places for a number near a dot, the nearest first.
fn around(x: f64, y: f64) -> Vec<(Anchor, (f64, f64))> {
    [11.0, 22.0]
        .into_iter()
        .flat_map(|gap| {
            [
                (Anchor::Start, (x + gap, y + 4.0)),
                (Anchor::End, (x - gap, y + 4.0)),
                (Anchor::Middle, (x, y - gap)),
                (Anchor::Middle, (x, y + gap + 9.0)),
            ]
        })
        .collect()
}

/// The memory roofs by colour, then every kernel by number.
fn table(canvas: &mut Canvas, record: &Roofline, memory: &[&Roof]) {
    let mut y = BOTTOM + 66.0;
    for (index, roof) in memory.iter().enumerate() {
        let class = lined(&format!("l-{}", series(index)), roof);
        canvas.line(&class, 3.0, (24.0, y - 4.0), (58.0, y - 4.0));
        let text = format!("{}  {}", roof.name, roof.said());
        canvas.text("f-ink", 13.0, Anchor::Start, (70.0, y), &fitted(13.0, &text, 860.0));
        y += LINE;
    }
    let note = "A dashed roof is the datasheet's, not measured.";
    canvas.text("f-soft", 12.0, Anchor::Start, (24.0, y), note);
    y += LINE + 4.0;
    for (index, point) in record.points.iter().take(MOST_POINTS).enumerate() {
        row(canvas, record, index, point, y);
        y += LINE;
    }
    if record.points.len() > MOST_POINTS {
        let more = format!("and {} more kernels", record.points.len() - MOST_POINTS);
        canvas.text("f-soft", 12.0, Anchor::Start, (24.0, y), &more);
    }
}

fn row(canvas: &mut Canvas, record: &Roofline, index: usize, point: &RooflinePoint, y: f64) {
    let place = record.place(point);
    let bad = place.as_ref().is_some_and(|place| place.is_counting_error);
    let class = if bad { "f-bad" } else { "f-ink" };
    let number = (index + 1).to_string();
    canvas.text(&format!("{class} b"), 13.0, Anchor::End, (52.0, y), &number);
    let name = fitted(13.0, &point.name, 240.0);
    canvas.text(class, 13.0, Anchor::Start, (70.0, y), &name);
    let said = match place {
        None => "not placed: bytes, operations or its roof are missing".to_owned(),
        Some(place) => {
            let Placement { flops_per_byte, flops_per_second, bound_by, fraction, .. } = place;
            let rate = with_unit(flops_per_second, "FLOP/s");
            let percent = short(fraction * 100.0);
            let error = if bad { ": over the roof, a counting error" } else { "" };
            format!("{} FLOP/B, {rate}, {percent} % of {bound_by}{error}", short(flops_per_byte))
        }
    };
    canvas.text(class, 13.0, Anchor::Start, (320.0, y), &fitted(13.0, &said, 740.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_crowd_are_spread_and_stay_inside() {
        let spread = spread(&[10.0, 11.0, 12.0, 95.0, 99.0], 10.0, 0.0, 100.0);
        assert_eq!(spread, [10.0, 20.0, 30.0, 90.0, 100.0]);
    }
}
