//! Where a report goes: tables on stdout, and files.

use std::fs;
use std::path::Path;

use assay_record::{ExitCode, Report};

use crate::console::Console;
use crate::failure::Failure;
use crate::render::{self, View};

/// The files that were asked for.
pub(crate) struct Files<'a> {
    /// Every measurement as JSON; `-` is stdout, in place of the tables.
    pub(crate) json: Option<&'a Path>,
    /// The matrix of faults and gates.
    pub(crate) matrix: Option<&'a Path>,
}

/// Writes a report wherever it was asked for.
pub(crate) fn write(
    report: &Report,
    view: &View<'_>,
    files: &Files<'_>,
    console: Console,
) -> Result<(), Failure> {
    let json = formed("the report has", report.to_json())?;
    if let Some(path) = files.matrix {
        save(path, &render::matrix(report))?;
    }
    json_or_tables(&json, files.json, console, || render::report(report, view))
}

/// Writes a record of `assay` wherever it was asked for: as JSON to a file beside the tables, or to
/// stdout (`-`) in place of them. `what` is what messages call it.
pub(crate) fn record(
    (what, json): (&str, Result<String, serde_json::Error>),
    path: Option<&Path>,
    console: Console,
    tables: impl FnOnce() -> String,
) -> Result<(), Failure> {
    json_or_tables(&formed(what, json)?, path, console, tables)
}

fn formed(what: &str, json: Result<String, serde_json::Error>) -> Result<String, Failure> {
    json.map_err(|error| {
        Failure::new(ExitCode::Internal, format!("{what} no JSON form")).caused_by(&error)
    })
}

fn json_or_tables(
    json: &str,
    path: Option<&Path>,
    console: Console,
    tables: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match path {
        Some(path) if path == Path::new("-") => {
            Console::out_plain(json);
            return Ok(());
        }
        Some(path) => save(path, json)?,
        None => {}
    }
    console.out(&tables());
    Ok(())
}

/// Writes a file that was asked for.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        Failure::request(format!("cannot write {}", path.display())).caused_by(&error)
    })
}
