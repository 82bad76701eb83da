//! A certificate as a person reads it.

use std::fmt::Write as _;

use assay_record::{
    Certificate, Drift, DriftStanding, EntryDrift, InvariantResult, InvariantStanding, Number,
};

use crate::render::{table, table_text};

/// The invariants with their controls, the drift, and a last line with what holds.
pub(super) fn certificate(certificate: &Certificate) -> String {
    let mut text = heading(certificate);
    for note in &certificate.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text.push('\n');
    text.push_str(&invariants(&certificate.invariants));
    for result in &certificate.invariants {
        let InvariantResult { name, claim, found, control, .. } = result;
        let word = word(result.standing);
        let color = if control.red { "red" } else { "GREEN" };
        let _ = write!(
            text,
            "\n{word} {name}: {claim}\n  found: {found}\n  control {color}: {}: {}",
            control.doctored, control.found
        );
    }
    text.push_str("\n\n");
    if let Some(drift) = &certificate.drift {
        text.push_str(&drifted(drift));
    } else {
        text.push_str("drift: no dossier of such a device is pinned\n\n");
    }
    text + &summary(certificate)
}

fn heading(certificate: &Certificate) -> String {
    let driver = certificate.driver.as_deref().map(|driver| format!(", {driver}"));
    format!(
        "assay {} certify: {}{}, dossier of {}\n",
        certificate.assay_version,
        certificate.device,
        driver.unwrap_or_default(),
        certificate.dossier_date
    )
}

fn word(standing: InvariantStanding) -> &'static str {
    match standing {
        InvariantStanding::Holds => "PASS",
        InvariantStanding::Broken => "FAIL",
        InvariantStanding::Unproven => "UNPROVEN",
        InvariantStanding::Inapplicable => "n/a",
    }
}

fn invariants(results: &[InvariantResult]) -> String {
    let mut table = table(&["invariant", "result", "control"].map(str::to_owned));
    for result in results {
        let control = if result.control.red { "red" } else { "GREEN" };
        table.add_row([result.name.as_str(), word(result.standing), control]);
    }
    table_text(&table) + "\n"
}

/// The entries that drifted, and how many did not.
fn drifted(drift: &Drift) -> String {
    let mut text = format!("drift from {}, beyond {} %\n", drift.pinned, 100.0 * drift.rel_tol);
    for caveat in &drift.caveats {
        let _ = writeln!(text, "caveat: {caveat}");
    }
    let moved = |entry: &&EntryDrift| {
        !matches!(entry.standing, DriftStanding::Steady | DriftStanding::Absent)
    };
    let header = ["entry", "pinned", "now", "unit", "change", "in cycles", "drift"];
    let mut table = table(&header.map(str::to_owned));
    let moved: Vec<&EntryDrift> = drift.entries.iter().filter(moved).collect();
    for entry in &moved {
        table.add_row(row(entry));
    }
    if !moved.is_empty() {
        text.push_str(&table_text(&table));
        text.push('\n');
    }
    for entry in moved {
        if let Some(reason) = &entry.reason {
            let _ = writeln!(text, "{}: {reason}", entry.name);
        }
    }
    let steady = |entry: &&EntryDrift| entry.standing == DriftStanding::Steady;
    let steady = drift.entries.iter().filter(steady).count();
    let _ = writeln!(text, "{steady} of {} entries are steady\n", drift.entries.len());
    text
}

fn row(entry: &EntryDrift) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{:.4}", Number(v)));
    let percent =
        |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:+.1} %", 100.0 * part));
    let word = match entry.standing {
        DriftStanding::Steady => "steady",
        DriftStanding::Better => "better",
        DriftStanding::Worse => "WORSE",
        DriftStanding::Changed => "changed",
        DriftStanding::Lost => "LOST",
        DriftStanding::New => "new",
        DriftStanding::Absent => "-",
    };
    vec![
        entry.name.clone(),
        number(entry.pinned),
        number(entry.current),
        entry.unit.clone(),
        percent(entry.change),
        percent(entry.change_in_cycles),
        word.to_owned(),
    ]
}

fn summary(certificate: &Certificate) -> String {
    let count = |standing| {
        certificate.invariants.iter().filter(|result| result.standing == standing).count()
    };
    let green = certificate.invariants.iter().filter(|result| !result.control.red).count();
    let worse = certificate.drift.as_ref().map_or(0, |drift| drift.worse().count());
    format!(
        "SUMMARY {} hold, {} broken, {} unproven, {} not applicable; {green} controls GREEN; \
         {worse} entries drifted for the worse\n",
        count(InvariantStanding::Holds),
        count(InvariantStanding::Broken),
        count(InvariantStanding::Unproven),
        count(InvariantStanding::Inapplicable),
    )
}
