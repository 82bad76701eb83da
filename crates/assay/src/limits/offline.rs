//! `assay limits --offline DIR`: records of Metal pipelines, made by Xcode's compilers on a Mac.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use assay_limits::{Chips, Mac, MetalRecords, offline};
use assay_record::ExitCode;

use crate::console::Console;
use crate::failure::Failure;

/// The file of records in the folder.
const RECORDS: &str = "limits.metal.json";

/// Compiles the folder's pipelines and writes their records beside them.
pub(crate) fn record(folder: &Path, console: Console) -> Result<ExitCode, Failure> {
    let file = folder.join(RECORDS);
    let before = before(&file)?;
    let made = offline(&mut Mac::new(folder), &Chips::built_in(), before).map_err(|error| {
        let hint = "this step runs `xcrun` on a Mac with Xcode; the records it writes are read \
                    anywhere";
        Failure::request(format!("cannot record the pipelines of {}", folder.display()))
            .caused_by(&error)
            .hint(hint.to_owned())
    })?;
    let text = made.records.write().map_err(|error| {
        Failure::new(ExitCode::Internal, "the records have no JSON form").caused_by(&error)
    })?;
    fs::write(&file, text).map_err(|error| {
        Failure::request(format!("cannot write {}", file.display())).caused_by(&error)
    })?;
    let mut report = format!("wrote {}\n", file.display());
    for sentence in &made.left_out {
        let _ = writeln!(report, "no record: {sentence}");
    }
    report.push_str("unverified on hardware: no chip has confirmed these records\n");
    console.out(&report);
    Ok(ExitCode::Holds)
}

/// The records that are there already.
fn before(file: &Path) -> Result<MetalRecords, Failure> {
    let wrong = || format!("cannot read the records of {}", file.display());
    match fs::read_to_string(file) {
        Ok(text) => MetalRecords::parse(&text, &file.display().to_string())
            .map_err(|error| Failure::request(wrong()).caused_by(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(MetalRecords::new(String::new(), BTreeMap::new()))
        }
        Err(error) => Err(Failure::request(wrong()).caused_by(&error)),
    }
}
