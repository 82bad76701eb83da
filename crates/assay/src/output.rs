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
    let json = report.to_json().map_err(|error| {
        Failure::new(ExitCode::Internal, "the report has no JSON form").caused_by(&error)
    })?;
    if let Some(path) = files.matrix {
        save(path, &render::matrix(report))?;
    }
    match files.json {
        Some(path) if path == Path::new("-") => {
            Console::out_plain(&json);
            return Ok(());
        }
        Some(path) => save(path, &json)?,
        None => {}
    }
    console.out(&render::report(report, view));
    Ok(())
}

/// Writes a file that was asked for.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        Failure::request(format!("cannot write {}", path.display())).caused_by(&error)
    })
}
