//! The tables of a benchmark.

use std::fmt::Write as _;

use assay_record::{
    BenchRecord, Conditions, Effect, Series, Spread, Standing, Timing, Versus, Watched,
};
use comfy_table::CellAlignment;

use crate::render::tables::{table, text};

/// Everything as text.
pub(super) fn render(record: &BenchRecord) -> String {
    let mut out = format!("{}\n", device(record));
    if !record.timings.is_empty() {
        let _ = write!(out, "\n{}\n", timings(&record.timings));
        notes(&mut out, &record.timings);
    }
    if !record.versus.is_empty() {
        let _ = write!(out, "\n{}\n", versus(&record.versus));
        for one in &record.versus {
            let _ = writeln!(out, "{}: {}", one.candidate, one.reason);
            for line in one.watched.iter().flat_map(through) {
                let _ = writeln!(out, "{}: {line}", one.candidate);
            }
        }
    }
    if let Some(why) = &record.incomplete {
        let _ = writeln!(out, "\nINCOMPLETE: {why}");
    }
    out
}

fn device(record: &BenchRecord) -> String {
    let device = &record.device;
    let driver = device.driver.as_ref().map(|driver| format!(", {driver}")).unwrap_or_default();
    let mut text =
        format!("{}, {}{driver}, seed {}", device.name, device.architecture, record.seed);
    if let Some(after) = &record.after {
        text.push_str(&conditions(after));
    }
    if let Some(reason) = &record.conditions_reason {
        let _ = write!(text, "\npower and temperature are not known: {reason}");
    }
    text
}

fn conditions(after: &Conditions) -> String {
    let mut text = String::new();
    if let (Some(power), Some(limit)) = (after.power_w, after.power_limit_w) {
        let _ = write!(text, "\n{power:.0} W of {limit:.0} W");
        if let Some(temperature) = after.temperature_c {
            let _ = write!(text, ", {temperature:.0} °C");
        }
        if !after.throttle.is_empty() {
            let _ = write!(text, ", clocks held down: {}", after.throttle.join(", "));
        }
    }
    text
}

fn timings(timings: &[Timing]) -> String {
    let header = [
        "kernel", "cache", "duration", "interval", "IQR", "n", "rejected", "MHz", "cycles",
        "period", "rate", "roof",
    ];
    let mut table = table(&header.map(str::to_owned));
    for timing in timings {
        let series = timing.duration.as_ref();
        let of = |show: &dyn Fn(&Series) -> String| series.map_or("-".to_owned(), show);
        table.add_row(vec![
            timing.name.clone(),
            timing.cache.clone(),
            of(&|series| time(series.median_ns)),
            of(&|series| interval(series)),
            of(&|series| percent(series.iqr_ns / series.median_ns)),
            of(&|series| series.n.to_string()),
            of(&|series| series.rejected.len().to_string()),
            of(&|series| series.sm_clock_mhz_median.map_or("-".into(), |c| format!("{c:.0}"))),
            of(&|series| series.cycles.map_or("-".into(), |cycles| format!("{cycles:.0}"))),
            timing.period.as_ref().map_or("-".to_owned(), |series| time(series.median_ns)),
            rates(timing),
            roof(timing),
        ]);
    }
    for column in 2..10 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text(&table)
}

/// What the table has no room for.
fn notes(out: &mut String, timings: &[Timing]) {
    for timing in timings {
        if let Standing::Unchecked { reason } = &timing.checked {
            let _ = writeln!(out, "{}: UNCHECKED, {reason}: it may compute nothing", timing.name);
        }
        for (what, reason) in [
            ("duration", &timing.duration_reason),
            ("period", &timing.period_reason),
            ("activity records", &timing.recorded_reason),
        ] {
            if let Some(reason) = reason {
                let _ = writeln!(out, "{}: no {what}: {reason}", timing.name);
            }
        }
        if let Some(recorded) = &timing.recorded {
            let median = time(recorded.median_ns);
            let _ = writeln!(out, "{}: {median} by the device's own records", timing.name);
        }
        let watched = timing.duration.as_ref().and_then(|series| series.watched.as_ref());
        for line in watched.into_iter().flat_map(through) {
            let _ = writeln!(out, "{}: {line}", timing.name);
        }
        if let Some(line) = operations(timing) {
            let _ = writeln!(out, "{}: {line}", timing.name);
        }
        for doubt in &timing.doubts {
            let _ = writeln!(out, "{}: UNSTABLE: {doubt}", timing.name);
        }
        if timing.roofline.as_ref().is_some_and(|placed| placed.above) {
            let _ = writeln!(
                out,
                "{}: above its roof: bytes or operations are counted wrong, or a cache served them",
                timing.name
            );
        }
    }
}

/// Where the number of operations is from, unless it was stated.
fn operations(timing: &Timing) -> Option<String> {
    let counted = timing.flop.zip(timing.flop_counted.as_ref());
    let Some((flop, of)) = counted else {
        let reason = timing.flop_reason.as_ref()?;
        return Some(format!("operations are not counted: {reason} (--flop states them)"));
    };
    let parts = [
        (of.additions, "additions"),
        (of.multiplications, "multiplications"),
        (of.divisions, "divisions"),
        (of.functions, "functions"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0.0);
    let parts: Vec<String> = parts.map(|(count, kind)| format!("{count} {kind}")).collect();
    Some(format!("{flop} FLOP counted from the formula: {}", parts.join(", ")))
}

/// What the board told of itself through the samples, in a line, and which samples it held down.
fn through(watched: &Watched) -> Vec<String> {
    let of = |spread: &Option<Spread>, unit: &str| {
        spread.map(|of| {
            let Spread { median, p5, p95, max, .. } = of;
            format!("{median:.0} {unit} ({p5:.0} to {p95:.0}, most {max:.0})")
        })
    };
    let told: Vec<String> = [of(&watched.power_w, "W"), of(&watched.temperature_c, "°C")]
        .into_iter()
        .flatten()
        .collect();
    let mut lines = Vec::new();
    if !told.is_empty() {
        lines.push(format!("{} in {} readings", told.join(", "), watched.readings));
    }
    let reasons: Vec<String> = watched
        .throttling()
        .map(|seen| format!("{} in {} readings", seen.reason, seen.readings))
        .collect();
    if !reasons.is_empty() {
        let (marked, all) = (watched.throttled.len(), watched.samples);
        let reasons = reasons.join(", ");
        lines.push(format!("clocks held down next to {marked} of {all} samples: {reasons}"));
    }
    lines
}

fn versus(all: &[Versus]) -> String {
    let header = ["baseline", "candidate", "verdict", "time", "cycles", "control", "rounds"];
    let mut table = table(&header.map(str::to_owned));
    for one in all {
        let effect = |effect: &Option<Effect>| effect.as_ref().map_or("-".to_owned(), shown);
        table.add_row(vec![
            one.baseline.clone(),
            one.candidate.clone(),
            one.verdict.to_string(),
            shown(&one.time),
            effect(&one.cycles),
            effect(&one.control),
            one.rounds.to_string(),
        ]);
    }
    text(&table)
}

fn shown(effect: &Effect) -> String {
    let Effect { rel, lower, upper } = effect;
    format!("{:+.2} % ({:+.2} to {:+.2})", rel * 100.0, lower * 100.0, upper * 100.0)
}

/// A time in the unit that suits it.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.3} ms", ns / 1e6),
        ns => format!("{:.3} s", ns / 1e9),
    }
}

fn interval(series: &Series) -> String {
    let half = (series.upper_ns - series.lower_ns) / 2.0 / series.median_ns;
    format!("±{}", percent(half))
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.2} %", share * 100.0) } else { "-".to_owned() }
}

fn rates(timing: &Timing) -> String {
    let scaled = |value: f64, unit: &str| {
        let steps = [(1e12, "T"), (1e9, "G"), (1e6, "M")];
        let (scale, letter) =
            steps.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, ""));
        format!("{:.2} {letter}{unit}", value / scale)
    };
    let bytes = timing.bytes_per_s.map(|rate| scaled(rate, "B/s"));
    let flop = timing.flop_per_s.map(|rate| scaled(rate, "FLOP/s"));
    let both: Vec<String> = bytes.into_iter().chain(flop).collect();
    if both.is_empty() { "-".to_owned() } else { both.join(", ") }
}

fn roof(timing: &Timing) -> String {
    timing
        .roofline
        .as_ref()
        .map_or("-".to_owned(), |placed| format!("{:.1} % of {}", placed.part * 100.0, placed.roof))
}
