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
    if path == Some(Path::new("-")) {
        Console::out_plain(json);
        return Ok(());
    }
    // What was found is shown even where the file cannot be written.
    let saved = path.map_or(Ok(()), |path| save(path, json));
    console.out(&tables());
    saved
}

/// Refuses a file that cannot be written before there is anything to lose.
pub(crate) fn expect_to_write(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(()) };
    let cannot = |why: &str| {
        Err(Failure::request(format!("cannot write {}", path.display())).hint(why.to_owned()))
    };
    if path.is_dir() {
        return cannot("it is a folder");
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return cannot("its folder is not there");
    }
    Ok(())
}

/// Writes a file that was asked for.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        Failure::request(format!("cannot write {}", path.display())).caused_by(&error)
    })
}
