//! What the examples that measure a GPU share: records grow line by line, and have a date.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Appends a line of a record to its file, which is made where it is missing.
pub(crate) fn append(path: &str, line: &impl Serialize) -> Result<(), Box<dyn Error>> {
    let line = serde_json::to_string(line)? + "\n";
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    Ok(file.write_all(line.as_bytes())?)
}

/// The time in UTC, as records have it.
pub(crate) fn now() -> String {
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
