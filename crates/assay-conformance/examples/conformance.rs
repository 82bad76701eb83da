//! Measures a device against the emulator and writes the record.
//!
//!     cargo run -p assay-conformance --example conformance -- cuda:0 h200-conformance.jsonl
//!
//! A third argument keeps the programs whose names contain it.

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_conformance::{Head, Record, measure, programs};

/// The seed of every record; the emulator's test uses the record's.
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, path, rest @ ..] = arguments.as_slice() else {
        return Err("usage: conformance DEVICE FILE [TEXT]".into());
    };
    let mut device = assay_device::open(name)?;
    let mut emulator = assay_device::open("emulator:sm_90")?;
    let (mut programs, _) = programs();
    programs.retain(|program| rest.iter().all(|text| program.name.contains(text.as_str())));
    let command = format!("conformance {}", arguments.join(" "));
    let head = Head::of(&*device, &now(), &command, SEED);
    let entries = measure(&mut *device, &mut *emulator, &programs, SEED)?;
    std::fs::write(path, Record { head, entries }.write()?)?;
    Ok(())
}

/// The time in UTC, as records have it.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, seconds) = (since / 86_400, since % 86_400);
    // The civil calendar from days since 1970-01-01 (Howard Hinnant's algorithm).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + 400 * era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
