//! How a dossier differs from an earlier one of the same kind of device.

use assay_record::{Dossier, Drift, DriftStanding, Entry, EntryDrift};

use crate::probe::HOST_CLOCK;

/// Which way an entry's figure is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
    Neither,
}

/// Holds `current` against `pinned`, entry by entry.
///
/// An entry has drifted when its value, or any point of its curve at the same x, has changed by
/// more than `rel_tol` of the pinned one. Rates are better when higher and times when lower; of
/// sizes and clocks only the change is told, and of what the host's clock timed when it is worse,
/// since that may be the host.
pub fn dossier_drift(current: &Dossier, pinned: &Dossier, rel_tol: f64) -> Drift {
    let of_both = pinned.entries.iter().map(|was| compared(current.entry(&was.name), was, rel_tol));
    let added = current.entries.iter().filter(|now| pinned.entry(&now.name).is_none()).map(added);
    Drift {
        pinned: named(pinned),
        current: named(current),
        caveats: caveats(current, pinned),
        rel_tol,
        entries: of_both.chain(added).collect(),
    }
}

fn named(dossier: &Dossier) -> String {
    let driver = dossier.device.driver.as_deref().unwrap_or("no driver");
    format!("{}, {driver}, {}", dossier.device.name, dossier.date)
}

/// What makes two dossiers hardly comparable.
fn caveats(current: &Dossier, pinned: &Dossier) -> Vec<String> {
    let mut caveats = Vec::new();
    let (now, was) = (&current.device, &pinned.device);
    if now.name != was.name || now.multiprocessors != was.multiprocessors {
        caveats.push(format!(
            "other devices: {} with {} multiprocessors, pinned {} with {}",
            now.name, now.multiprocessors, was.name, was.multiprocessors
        ));
    }
    if now.driver != was.driver {
        let driver = |driver: &Option<String>| driver.clone().unwrap_or_else(|| "none".into());
        let (now, was) = (driver(&now.driver), driver(&was.driver));
        caveats.push(format!("other drivers: {now}, pinned {was}"));
    }
    if current.quick != pinned.quick {
        let kind = |quick: bool| if quick { "a quick run" } else { "a full run" };
        caveats.push(format!("{} against {}", kind(current.quick), kind(pinned.quick)));
    }
    let limit = |dossier: &Dossier| dossier.before.as_ref().and_then(|now| now.power_limit_w);
    if let (Some(now), Some(was)) = (limit(current), limit(pinned))
        && now != was
    {
        caveats.push(format!("a power limit of {now} W, pinned {was} W"));
    }
    caveats
}

fn compared(now: Option<&Entry>, was: &Entry, rel_tol: f64) -> EntryDrift {
    let current = now.and_then(|entry| entry.value);
    let change = relative(current, was.value);
    let in_cycles = now.and_then(|now| change_in_cycles(now, was));
    let curve = now.and_then(|now| curve_change(now, was));
    let (standing, reason) = match (current, was.value) {
        (None, Some(_)) => (DriftStanding::Lost, why_lost(now)),
        (Some(_), None) => (DriftStanding::New, was.reason.clone()),
        (None, None) => (DriftStanding::Absent, now.and_then(|now| now.reason.clone())),
        (Some(_), Some(_)) => spared(was, judged(&was.unit, change, curve, rel_tol)),
    };
    EntryDrift {
        name: was.name.clone(),
        unit: was.unit.clone(),
        pinned: was.value,
        current,
        change,
        change_in_cycles: in_cycles,
        standing,
        reason,
    }
}

/// A figure of the host's clock is no evidence against the device.
fn spared(
    was: &Entry,
    (standing, told): (DriftStanding, Option<String>),
) -> (DriftStanding, Option<String>) {
    if standing != DriftStanding::Worse || !was.confidence_reason.starts_with(HOST_CLOCK) {
        return (standing, told);
    }
    let told = told.map_or(String::new(), |told| format!("{told}: "));
    (
        DriftStanding::Changed,
        Some(format!("{told}by {HOST_CLOCK}, it may be another host or a busier one")),
    )
}

fn added(now: &Entry) -> EntryDrift {
    let standing = if now.value.is_some() { DriftStanding::New } else { DriftStanding::Absent };
    EntryDrift {
        name: now.name.clone(),
        unit: now.unit.clone(),
        pinned: None,
        current: now.value,
        change: None,
        change_in_cycles: None,
        standing,
        reason: Some("the pinned dossier has no such entry".into()),
    }
}

fn why_lost(now: Option<&Entry>) -> Option<String> {
    match now {
        None => Some("the entry is not there".into()),
        Some(entry) => entry.reason.clone(),
    }
}

/// The later over the earlier, less 1. From 0 to 0 nothing has changed; from 0 there is no ratio.
fn relative(now: Option<f64>, was: Option<f64>) -> Option<f64> {
    match (now?, was?) {
        (now, was) if now == was => Some(0.0),
        (now, was) => Some(now / was - 1.0).filter(|change| change.is_finite()),
    }
}

fn change_in_cycles(now: &Entry, was: &Entry) -> Option<f64> {
    let clocks = relative(now.sm_clock_mhz, was.sm_clock_mhz)? + 1.0;
    let change = relative(now.value, was.value)? + 1.0;
    let left = match way(&was.unit) {
        Better::Higher if was.unit.ends_with("/s") => change / clocks,
        Better::Lower if was.unit == "ns" => change * clocks,
        _ => return None,
    };
    Some(left - 1.0).filter(|left| left.is_finite())
}

/// The largest change of two curves at the same x, with its x and the unit of x.
fn curve_change(now: &Entry, was: &Entry) -> Option<(f64, f64, String)> {
    let at = |x: f64| now.points.iter().find(|point| point.0 == x).map(|point| point.1);
    let changes = was.points.iter().filter_map(|&(x, y)| Some((relative(at(x), Some(y))?, x)));
    let (change, x) = changes.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    Some((change, x, was.x_unit.clone().unwrap_or_default()))
}

fn judged(
    unit: &str,
    change: Option<f64>,
    curve: Option<(f64, f64, String)>,
    rel_tol: f64,
) -> (DriftStanding, Option<String>) {
    let standing = |change: f64| match way(unit) {
        _ if change.abs() <= rel_tol => DriftStanding::Steady,
        Better::Neither => DriftStanding::Changed,
        Better::Higher if change > 0.0 => DriftStanding::Better,
        Better::Lower if change < 0.0 => DriftStanding::Better,
        _ => DriftStanding::Worse,
    };
    let Some(change) = change else {
        return (DriftStanding::Changed, Some("from 0".into()));
    };
    match (standing(change), curve) {
        (DriftStanding::Steady, Some((change, x, x_unit))) => {
            let of_curve = standing(change);
            let percent = 100.0 * change;
            let told = format!("its curve by {percent:+.1} % at {x} {x_unit}");
            (of_curve, (of_curve != DriftStanding::Steady).then_some(told))
        }
        (of_value, _) => (of_value, None),
    }
}

/// Rates end in `/s` or count per clock; times are cycles and seconds.
fn way(unit: &str) -> Better {
    match unit {
        "cycles" | "ns" | "us" | "ms" | "s" => Better::Lower,
        unit if unit.ends_with("/s") || unit.contains("/clk") => Better::Higher,
        _ => Better::Neither,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certify::model;

    fn standing(drift: &Drift, name: &str) -> Option<DriftStanding> {
        drift.entries.iter().find(|entry| entry.name == name).map(|entry| entry.standing)
    }

    #[test]
    fn a_dossier_has_not_drifted_from_itself() {
        let dossier = model();
        let drift = dossier_drift(&dossier, &dossier, 0.0);
        assert!(drift.entries.len() > 10 && drift.caveats.is_empty());
        assert!(drift.entries.iter().all(|entry| entry.standing == DriftStanding::Steady));
    }

    #[test]
    fn what_the_hosts_clock_timed_is_told_and_is_no_evidence_against_the_device() {
        let (mut pinned, mut now) = (model(), model());
        let name = "dram_read";
        let entry = now.entries.iter_mut().find(|entry| entry.name == name).expect("an entry");
        entry.value = entry.value.map(|value| value / 2.0);
        let drift = dossier_drift(&now, &pinned, 0.1);
        assert_eq!(standing(&drift, name), Some(DriftStanding::Worse), "the control");
        let entry = pinned.entries.iter_mut().find(|entry| entry.name == name).expect("an entry");
        entry.confidence_reason = format!("{HOST_CLOCK}: it depends on the host");
        let drift = dossier_drift(&now, &pinned, 0.1);
        let entry = drift.entries.iter().find(|entry| entry.name == name).expect("an entry");
        assert_eq!(entry.standing, DriftStanding::Changed);
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("another host")));
        let better = dossier_drift(&pinned, &now, 0.1);
        assert_eq!(standing(&better, name), Some(DriftStanding::Better));
    }

    #[test]
    fn each_way_of_drifting_has_its_word() {
        let (pinned, mut now) = (model(), model());
        let set = |now: &mut Dossier, name: &str, factor: f64| {
            let entry = now.entries.iter_mut().find(|entry| entry.name == name).expect("an entry");
            entry.value = entry.value.map(|value| value * factor);
        };
        set(&mut now, "dram_read", 0.9);
        set(&mut now, "l2_read", 1.1);
        set(&mut now, "latency_dram_cycles", 1.1);
        set(&mut now, "latency_l1_cycles", 0.9);
        set(&mut now, "fma_f32", 0.96);
        now.entries.retain(|entry| entry.name != "dram_gather");
        let drift = dossier_drift(&now, &pinned, 0.05);
        let words = [
            ("dram_read", DriftStanding::Worse),
            ("l2_read", DriftStanding::Better),
            ("latency_dram_cycles", DriftStanding::Worse),
            ("latency_l1_cycles", DriftStanding::Better),
            ("fma_f32", DriftStanding::Steady),
            ("dram_gather", DriftStanding::Lost),
        ];
        for (name, word) in words {
            assert_eq!(standing(&drift, name), Some(word), "{name}");
        }
        assert_eq!(drift.worse().count(), 3);
        let back = dossier_drift(&pinned, &now, 0.05);
        assert_eq!(standing(&back, "dram_gather"), Some(DriftStanding::New));
    }

    #[test]
    fn a_point_of_a_curve_can_drift_while_the_value_stands() {
        let (mut pinned, mut now) = (model(), model());
        let curve = |dossier: &mut Dossier, at_one: f64| {
            let entry = dossier.entries.iter_mut().find(|e| e.name == "atomic_add_f32");
            let entry = entry.expect("an entry");
            entry.points = vec![(1.0, at_one), (1024.0, 5e11)];
            entry.x_unit = Some("addresses".into());
        };
        curve(&mut pinned, 1e9);
        curve(&mut now, 5e8);
        let drift = dossier_drift(&now, &pinned, 0.05);
        let entry = drift.entries.iter().find(|entry| entry.name == "atomic_add_f32");
        let entry = entry.expect("an entry");
        assert_eq!(entry.standing, DriftStanding::Worse);
        assert_eq!(entry.reason.as_deref(), Some("its curve by -50.0 % at 1 addresses"));
    }

    #[test]
    fn a_change_that_the_clocks_explain_is_none_in_cycles() {
        let (pinned, mut now) = (model(), model());
        let entry = now.entries.iter_mut().find(|entry| entry.name == "fma_f32").expect("an entry");
        entry.value = entry.value.map(|value| value * 0.8);
        entry.sm_clock_mhz = entry.sm_clock_mhz.map(|clock| clock * 0.8);
        let drift = dossier_drift(&now, &pinned, 0.05);
        let entry = drift.entries.iter().find(|entry| entry.name == "fma_f32").expect("an entry");
        assert_eq!(entry.standing, DriftStanding::Worse);
        assert!(entry.change_in_cycles.is_some_and(|change| change.abs() < 1e-9), "{entry:?}");
    }

    #[test]
    fn other_devices_drivers_and_lengths_are_told() {
        let (pinned, mut now) = (model(), model());
        now.device.name = "another".into();
        now.device.driver = None;
        now.quick = true;
        assert_eq!(dossier_drift(&now, &pinned, 0.1).caveats.len(), 3);
    }
}
