//! Where two outputs differ, as a map over their last two dimensions.

use std::fmt::Write as _;

use assay_record::ErrorMap;

use crate::canvas::{Anchor, Canvas, fitted};
use crate::scale::short;
use crate::style::HEAT_STEPS;

const LEFT: f64 = 84.0;
const TOP: f64 = 84.0;
/// The longer side of the map.
const SIDE: f64 = 512.0;
const WIDTH: f64 = 860.0;
/// Differences so many times smaller than the worst are drawn as the smallest.
const DEPTH: f64 = 1e6;
/// The palest colour of all could be taken for paper.
const STEPS: usize = HEAT_STEPS - 1;

/// The map as SVG: darker is worse, a red frame is over the limit, a red cell is not finite.
pub fn heat_map(map: &ErrorMap) -> String {
    let side = |cells: usize| SIDE * cells as f64 / map.cell_rows.max(map.cell_cols).max(1) as f64;
    let (width, height) = (side(map.cell_cols), side(map.cell_rows).max(12.0));
    let steps = Steps::of(map);
    let bottom = (TOP + height + 60.0).max(TOP + 24.0 * (entries(map, &steps) + 1) as f64);
    let said = said(map, &steps);
    let mut canvas = Canvas::new(WIDTH, bottom, &map.title, &said);
    canvas.text("f-ink b", 18.0, Anchor::Start, (24.0, 32.0), &fitted(18.0, &map.title, 812.0));
    canvas.text("f-soft", 13.0, Anchor::Start, (24.0, 54.0), &fitted(13.0, &said, 812.0));
    let cells = map.cell_rows.checked_mul(map.cell_cols);
    if cells != Some(map.cells.len()) || map.cells.is_empty() {
        canvas.text("f-bad", 14.0, Anchor::Start, (LEFT, TOP + 30.0), "nothing was compared");
        return canvas.finish();
    }
    let size = (width / map.cell_cols as f64, height / map.cell_rows as f64);
    for (index, cell) in map.cells.iter().enumerate() {
        let (row, col) = (index / map.cell_cols, index % map.cell_cols);
        let corner = (LEFT + size.0 * col as f64, TOP + size.1 * row as f64);
        let broken = map.nonfinite.get(index).is_some_and(|count| *count > 0);
        draw(&mut canvas, corner, size, &steps.class(*cell, broken));
    }
    failures(&mut canvas, map, size);
    canvas.rect("n l-axis", (LEFT, TOP), width, height);
    names(&mut canvas, map, height);
    legend(&mut canvas, &steps, map);
    canvas.finish()
}

/// One cell; those where all is equal stay paper.
fn draw(canvas: &mut Canvas, corner: (f64, f64), size: (f64, f64), class: &str) {
    if class != "f-paper" {
        // A little overlap hides the seams that antialiasing leaves between cells.
        canvas.rect(class, corner, size.0 + 0.3, size.1 + 0.3);
    }
}

/// Which differences get which colour: steps of equal ratio down from the worst.
struct Steps {
    /// The lower end of each step.
    from: Vec<f64>,
    worst: f64,
}

impl Steps {
    fn of(map: &ErrorMap) -> Steps {
        let sizes = || map.cells.iter().flatten().copied().filter(|cell| *cell > 0.0);
        let worst = sizes().fold(0.0, f64::max);
        let least = sizes().fold(f64::INFINITY, f64::min).max(worst / DEPTH);
        let ratio = (worst / least).max(1.0);
        let step = |index: usize| least * ratio.powf(index as f64 / STEPS as f64);
        Steps { from: (0..STEPS).map(step).collect(), worst }
    }

    fn class(&self, cell: Option<f64>, broken: bool) -> String {
        match cell {
            _ if broken => "f-bad".to_owned(),
            None => "f-grid".to_owned(),
            Some(size) if size > 0.0 => {
                let step = self.from.iter().rposition(|from| size >= *from).unwrap_or(0);
                Steps::color(step)
            }
            Some(_) => "f-paper".to_owned(),
        }
    }

    fn color(step: usize) -> String {
        format!("f-h{}", step + HEAT_STEPS - STEPS)
    }

    /// The steps that are told apart: where all differences are of one size, the darkest.
    fn shown(&self) -> std::ops::Range<usize> {
        let is_one_size = self.from[STEPS - 1] < self.from[0] * 1.001;
        if self.worst > 0.0 { if is_one_size { STEPS - 1..STEPS } else { 0..STEPS } } else { 0..0 }
    }
}

fn said(map: &ErrorMap, steps: &Steps) -> String {
    let broken: u64 = map.nonfinite.iter().copied().fold(0, u64::saturating_add);
    let over = |limit: f64| map.cells.iter().flatten().filter(|cell| **cell > limit).count();
    let mut said = format!("worst {} {}", short(steps.worst), map.unit);
    let tile = |size: u64, cells: usize| size.div_ceil(cells.max(1) as u64);
    let tile = (tile(map.rows, map.cell_rows), tile(map.cols, map.cell_cols));
    if tile.0 > 1 || tile.1 > 1 {
        let _ = write!(said, ", each cell the worst of up to {} x {}", tile.0, tile.1);
    }
    if let Some(limit) = map.limit {
        let (over, all) = (over(limit), map.cells.len());
        let _ = write!(said, ", {over} of {all} cells over {}", short(limit));
    }
    if broken > 0 {
        let _ = write!(said, ", {broken} elements not finite on one side only");
    }
    said
}

fn failures(canvas: &mut Canvas, map: &ErrorMap, size: (f64, f64)) {
    let Some(limit) = map.limit else { return };
    for (index, cell) in map.cells.iter().enumerate() {
        if cell.is_some_and(|cell| cell > limit) {
            let (row, col) = (index / map.cell_cols, index % map.cell_cols);
            let corner = (LEFT + size.0 * col as f64, TOP + size.1 * row as f64);
            canvas.rect("n l-bad", corner, size.0, size.1);
        }
    }
}

fn names(canvas: &mut Canvas, map: &ErrorMap, height: f64) {
    let col = format!("{} (0 to {})", map.col_name, map.cols.saturating_sub(1));
    let at = (LEFT, TOP + height + 20.0);
    canvas.text("f-soft", 12.0, Anchor::Start, at, &fitted(12.0, &col, SIDE));
    canvas.text("f-soft", 12.0, Anchor::End, (LEFT - 8.0, TOP + 10.0), "0");
    let row = fitted(12.0, &map.row_name, LEFT - 20.0);
    if height > 48.0 {
        let last = map.rows.saturating_sub(1).to_string();
        canvas.text("f-soft", 12.0, Anchor::End, (LEFT - 8.0, TOP + height), &last);
        canvas.text("f-soft", 12.0, Anchor::End, (LEFT - 8.0, TOP + height / 2.0), &row);
    } else {
        canvas.text("f-soft", 12.0, Anchor::End, (LEFT - 8.0, TOP - 10.0), &row);
    }
}

/// Lines of the legend.
fn entries(map: &ErrorMap, steps: &Steps) -> usize {
    let others = [
        map.cells.iter().any(Option::is_none),
        map.nonfinite.iter().any(|count| *count > 0),
        map.limit.is_some(),
    ];
    1 + steps.shown().len() + others.iter().filter(|other| **other).count()
}

fn legend(canvas: &mut Canvas, steps: &Steps, map: &ErrorMap) {
    let x = LEFT + SIDE + 40.0;
    let mut y = TOP;
    let mut entry = |class: &str, text: &str| {
        canvas.rect(class, (x, y), 18.0, 16.0);
        canvas.text("f-ink", 12.0, Anchor::Start, (x + 28.0, y + 12.5), text);
        y += 24.0;
    };
    for step in steps.shown().rev() {
        let text = format!("from {} {}", short(steps.from[step]), map.unit);
        entry(&Steps::color(step), &fitted(12.0, &text, 180.0));
    }
    entry("f-paper l-grid", "equal");
    if map.cells.iter().any(Option::is_none) {
        entry("f-grid", "not compared");
    }
    if map.nonfinite.iter().any(|count| *count > 0) {
        entry("f-bad", "not finite on one side");
    }
    if map.limit.is_some() {
        entry("n l-bad", "over the limit");
    }
}
