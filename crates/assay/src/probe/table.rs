//! A dossier as a person reads it.

use std::fmt::Write as _;

use assay_measure::probe::Quantity;
use assay_record::{Conditions, Dossier, Entry, EntryStatus, PeerStanding};
use comfy_table::CellAlignment;

use crate::render::{table, table_text};

/// The device, a line for each entry, and a line for each that has no value.
pub(super) fn dossier(dossier: &Dossier) -> String {
    let mut header =
        vec!["entry", "value", "unit", "p5", "p95", "n", "SM MHz", "of limit", "confidence"];
    let peers = !dossier.peers.is_empty();
    if peers {
        header.push("of best peer");
    }
    let mut table = table(&header.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
    for entry in &dossier.entries {
        let mut row = row(entry);
        if peers {
            row.push(of_peer(dossier, entry));
        }
        table.add_row(row);
    }
    // The last one, of peers, is text.
    for column in 1..9 {
        if let Some(column) = table.column_mut(column).filter(|_| column != 2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = heading(dossier) + "\n\n" + &table_text(&table) + "\n";
    for entry in dossier.entries.iter().filter(|entry| entry.reason.is_some()) {
        let word = word(entry.status);
        let reason = entry.reason.as_deref().unwrap_or_default();
        let _ = write!(text, "\n{word} {}: {reason}", entry.name);
    }
    for line in dossier.entries.iter().filter_map(|entry| below(dossier, entry)) {
        let _ = write!(text, "\n{line}");
    }
    for why in &dossier.peers_missing {
        let _ = write!(text, "\nNO PEER {why}");
    }
    let unsettled = |entry: &&Entry| entry.confidence_reason.contains("clock never settled");
    for entry in dossier.entries.iter().filter(unsettled) {
        let _ = write!(text, "\nUNSTABLE {}: {}", entry.name, entry.confidence_reason);
    }
    text.push_str("\n\n");
    text + &summary(dossier) + "\n"
}

/// How many times the best peer's figure the entry's is, and whose that is.
fn of_peer(dossier: &Dossier, entry: &Entry) -> String {
    let Some(standing) = dossier.standing(entry) else { return "-".to_owned() };
    let below = if standing.below { ", below its peer" } else { "" };
    format!("{:.3} {}{below}", standing.times, standing.peer.name)
}

/// The line of an entry that is worse than a peer of its by more than the peer's spread: the
/// device can do better than the probe shows.
fn below(dossier: &Dossier, entry: &Entry) -> Option<String> {
    let PeerStanding { peer, .. } = dossier.standing(entry).filter(|standing| standing.below)?;
    let (scale, unit) = scaled(entry);
    let number = |value: f64| format!("{:.4}", assay_record::Number(value / scale));
    Some(format!(
        "BELOW ITS PEER {}: {} {unit}, and {} {} has {} (spread {}, n = {})",
        entry.name,
        number(entry.value?),
        peer.name,
        peer.version,
        number(peer.value),
        number(peer.spread),
        peer.n
    ))
}

/// A line for each quantity.
pub(super) fn quantities(quantities: &[&Quantity]) -> String {
    let mut table = table(&["quantity", "unit", "method"].map(str::to_owned));
    for quantity in quantities {
        table.add_row([quantity.name, quantity.unit, quantity.method]);
    }
    table_text(&table) + "\n"
}

fn word(status: EntryStatus) -> &'static str {
    match status {
        EntryStatus::Measured => "PASS",
        EntryStatus::Unsupported => "UNSUPPORTED",
        EntryStatus::Failed => "FAIL",
    }
}

fn row(entry: &Entry) -> Vec<String> {
    let (scale, unit) = scaled(entry);
    let number = |value: Option<f64>| match value {
        Some(value) => format!("{:.4}", assay_record::Number(value / scale)),
        None => "-".to_owned(),
    };
    let value = match entry.status {
        EntryStatus::Measured => number(entry.value),
        status => word(status).to_owned(),
    };
    let part =
        entry.part_of_limit().map_or("-".to_owned(), |part| format!("{:.1} %", 100.0 * part));
    let measured = entry.status == EntryStatus::Measured;
    vec![
        entry.name.clone(),
        value,
        unit,
        number(entry.p5),
        number(entry.p95),
        if measured { entry.samples.to_string() } else { "-".to_owned() },
        entry.sm_clock_mhz.map_or("-".to_owned(), |clock| format!("{clock:.0}")),
        part,
        if measured { format!("{:.2}", entry.confidence) } else { "-".to_owned() },
    ]
}

/// What to divide a value by for reading, and the unit that it then has.
fn scaled(entry: &Entry) -> (f64, String) {
    let unit = entry.unit.as_str();
    let large = entry.value.unwrap_or(0.0).abs();
    if unit == "bytes" && large >= 1024.0 {
        return (1024.0 * 1024.0, "MiB".to_owned());
    }
    if !unit.ends_with("/s") {
        return (1.0, unit.to_owned());
    }
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let found = prefixes.into_iter().find(|(scale, _)| large >= *scale);
    let (scale, prefix) = found.unwrap_or((1.0, ""));
    (scale, format!("{prefix}{unit}"))
}

fn heading(dossier: &Dossier) -> String {
    let device = &dossier.device;
    let driver = device.driver.as_ref().map(|driver| format!(", {driver}")).unwrap_or_default();
    let mut text = format!(
        "assay {} probe{} of {} ({}{driver}), {} multiprocessors, {} GiB",
        dossier.assay_version,
        if dossier.quick { " --quick" } else { "" },
        device.name,
        device.architecture,
        device.multiprocessors,
        device.memory_bytes >> 30,
    );
    for (when, state) in [("before", &dossier.before), ("after", &dossier.after)] {
        if let Some(state) = state {
            let _ = write!(text, "\n{when}: {}", conditions(state));
        }
    }
    text
}

fn conditions(state: &Conditions) -> String {
    let number = |value: Option<f64>, unit: &str| value.map(|value| format!("{value:.0} {unit}"));
    let limit = match (state.power_limit_w, state.power_limit_default_w) {
        (Some(limit), Some(default)) if limit < default - 1.0 => {
            Some(format!("limit {limit:.0} W, LOWER than its default of {default:.0} W"))
        }
        (Some(limit), _) => Some(format!("limit {limit:.0} W")),
        _ => None,
    };
    let reasons = (!state.throttle.is_empty())
        .then(|| format!("clocks held down by: {}", state.throttle.join(", ")));
    let missing =
        (!state.missing.is_empty()).then(|| format!("not known: {}", state.missing.join(", ")));
    let parts = [
        number(state.sm_clock_mhz, "MHz"),
        number(state.memory_clock_mhz, "MHz memory"),
        number(state.power_w, "W"),
        limit,
        number(state.temperature_c, "C"),
        reasons,
        missing,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn summary(dossier: &Dossier) -> String {
    let count = |status| dossier.entries.iter().filter(|entry| entry.status == status).count();
    let mut text = format!(
        "SUMMARY {} measured, {} unsupported, {} failed, in {:.1} s",
        count(EntryStatus::Measured),
        count(EntryStatus::Unsupported),
        count(EntryStatus::Failed),
        dossier.seconds
    );
    let standings = dossier.entries.iter().filter_map(|entry| dossier.standing(entry));
    let (with, below) = standings
        .fold((0, 0), |(with, below), standing| (with + 1, below + usize::from(standing.below)));
    if with > 0 {
        let _ = write!(text, "; of {with} entries with peers {below} are below theirs");
    }
    text
}

#[cfg(test)]
mod tests {
    use assay_measure::certify::model;
    use assay_record::Peer;

    #[test]
    fn an_entry_below_its_peer_is_named_and_not_failed() {
        let mut shown = model();
        assert!(!super::dossier(&shown).contains("peer"), "no column where there are none");
        let value = shown.value("dram_read").expect("a model's value");
        let peer = |name: &str, entry: &str, value: f64| Peer {
            entry: entry.to_owned(),
            name: name.to_owned(),
            version: "2.11".to_owned(),
            value,
            unit: "B/s".to_owned(),
            n: 30,
            spread: 1e9,
        };
        shown.peers.push(peer("torch sum", "dram_read", value / 2.0));
        let text = super::dossier(&shown);
        assert!(text.contains("2.000 torch sum") && !text.contains("BELOW"), "{text}");
        shown.peers.push(peer("Triton sum", "dram_read", value * 1.25));
        shown.peers_missing.push("no figure of cupy: it is not there".to_owned());
        let text = super::dossier(&shown);
        assert!(text.contains("0.800 Triton sum, below its peer"), "{text}");
        assert!(
            text.contains("BELOW ITS PEER dram_read: ") && text.contains(", n = 30)"),
            "{text}"
        );
        assert!(text.contains("NO PEER no figure of cupy: it is not there"), "{text}");
        assert!(text.contains("0 failed") && text.contains("1 entries with peers 1 are below"));
    }
}
