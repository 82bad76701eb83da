//! The files of records in the repository.

use std::fs;
use std::path::PathBuf;

use assay_limits::{RecordSet, Records};

use crate::toolchain::repository;

/// The folder and what is in it.
pub(super) struct Store {
    folder: PathBuf,
    pub(super) records: Records,
}

impl Store {
    /// Reads every set.
    pub(super) fn open() -> Result<Store, String> {
        let folder = repository().join("records/limits");
        let files = files(&folder)?;
        let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        let records = Records::read(texts).map_err(|error| error.to_string())?;
        Ok(Store { folder, records })
    }

    /// Reads every set, or starts anew where they cannot be read: what is derived replaces them.
    pub(super) fn open_to_replace() -> Store {
        Store::open().unwrap_or_else(|error| {
            eprintln!("starting anew: {error}");
            Store { folder: repository().join("records/limits"), records: Records::default() }
        })
    }

    /// Writes every set, and reads the folder again: what was left there must still fit.
    pub(super) fn write(&self) -> Result<(), String> {
        let cannot = |error| format!("cannot write {}: {error}", self.folder.display());
        fs::create_dir_all(&self.folder).map_err(cannot)?;
        for (name, text) in self.records.write() {
            fs::write(self.folder.join(&name), text).map_err(cannot)?;
        }
        let again = Store::open()?;
        if again.records != self.records {
            return Err(format!(
                "{} holds sets of other releases, which do not complete these: install their \
                 compilers, or delete their files",
                self.folder.display()
            ));
        }
        Ok(())
    }
}

/// Every file of the folder, in order of the names; none where there is no folder yet.
fn files(folder: &PathBuf) -> Result<Vec<(String, String)>, String> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let cannot = |error| format!("cannot read {}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path).map_err(cannot)?));
        }
    }
    found.sort();
    Ok(found)
}

/// Puts a set in the place of the one of its release, or between its neighbours.
pub(super) fn put<K>(sets: &mut Vec<RecordSet<K>>, set: RecordSet<K>) {
    sets.retain(|other| other.release != set.release);
    sets.push(set);
    sets.sort_by_key(|set| set.release);
}
