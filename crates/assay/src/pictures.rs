//! Pictures as files.

use std::fs;
use std::path::Path;

use assay_picture::{Roofline, dossier_ladder, roofline};
use assay_record::Dossier;

use crate::failure::Failure;

/// Draws a dossier's roofline and latency ladder into a folder, which is made if need be.
pub(crate) fn of_dossier(dossier: &Dossier, folder: &Path) -> Result<(), Failure> {
    save(&folder.join("roofline.svg"), &roofline(&Roofline::of(dossier)))?;
    save(&folder.join("latencies.svg"), &dossier_ladder(dossier))
}

/// Writes a picture, and the folder around it if there is none yet.
pub(crate) fn save(path: &Path, svg: &str) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, svg)).map_err(|error| {
        Failure::request(format!("cannot write {}", path.display())).caused_by(&error)
    })
}
