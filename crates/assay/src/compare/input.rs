//! Files of arrays as they are named on the command line.

use std::path::{Path, PathBuf};

use assay_compare::{ArrayFile, EntryError, FileEntry, FileError, Source};
use assay_num::Format;

use super::table::plain;
use crate::failure::Failure;

/// A file of arrays, or one array of it.
pub(super) struct Input {
    pub(super) file: ArrayFile,
    /// The array, where `FILE:NAME` names one.
    only: Option<String>,
    /// What was typed.
    pub(super) shown: String,
}

impl Input {
    /// Opens `FILE`, or `FILE:NAME`.
    pub(super) fn open(typed: &Path) -> Result<Input, Failure> {
        let (path, only) = split(typed);
        let file = ArrayFile::open(&path).map_err(|error| {
            Failure::request(format!("cannot read arrays from {}", path.display()))
                .caused_by(&error)
                .hint(hint(&error).map(str::to_owned))
        })?;
        if let Some(name) = &only
            && file.entry(name).is_none()
        {
            let message = format!("{} has no array `{name}`", path.display());
            return Err(Failure::request(message).hint(holds(&all(&file))));
        }
        Ok(Input { file, only, shown: typed.display().to_string() })
    }

    /// The arrays that are meant.
    pub(super) fn entries(&self) -> Vec<&FileEntry> {
        let meant = |entry: &&FileEntry| self.only.as_ref().is_none_or(|only| entry.name == *only);
        self.file.entries().iter().filter(meant).collect()
    }

    /// The array of that name, where it is meant.
    pub(super) fn entry(&self, name: &str) -> Option<&FileEntry> {
        let is_meant = self.only.as_ref().is_none_or(|only| only == name);
        self.file.entry(name).filter(|_| is_meant)
    }

    /// The elements of an array that is meant.
    pub(super) fn source(
        &self,
        name: &str,
        format: Option<Format>,
    ) -> Result<Box<dyn Source>, EntryError> {
        if self.entry(name).is_none() {
            return Err(EntryError::Missing(name.to_owned()));
        }
        self.file.source(name, format)
    }

    /// The only array, or the only one of `named`.
    pub(super) fn single(&self, named: &[&String]) -> Result<&FileEntry, Failure> {
        let entries = self.entries();
        match (&entries[..], named) {
            ([], _) => Err(Failure::request(format!("{} holds no array", self.shown))),
            ([entry], []) => Ok(entry),
            (all, [name]) => self.entry(name).ok_or_else(|| {
                Failure::request(format!("{} has no array `{name}`", self.shown)).hint(holds(all))
            }),
            (all, _) => {
                let message = format!("{} holds {} arrays", self.shown, all.len());
                let hint = format!("say which as {}:NAME; {}", self.shown, holds(all));
                Err(Failure::request(message).hint(hint))
            }
        }
    }

    /// The format for bits of that name: what was asked for where it fits, else the file's own.
    pub(super) fn format_of(&self, name: &str, asked: Option<Format>) -> Option<Format> {
        let held = self.entry(name)?.layout().ok()?.0.bits();
        asked.filter(|format| format.bits() == held)
    }
}

/// What to do about a file that cannot be read.
fn hint(error: &FileError) -> Option<&'static str> {
    match error {
        FileError::Unknown => Some(
            "`assay compare` reads .npy, .npz and .safetensors files; `numpy.save` and \
             `safetensors.torch.save_file` write them",
        ),
        FileError::Folder => Some("name a file in it"),
        FileError::Stream => Some("write it to a file first: arrays are read more than once"),
        _ => None,
    }
}

fn all(file: &ArrayFile) -> Vec<&FileEntry> {
    file.entries().iter().collect()
}

/// The names in a file, in a line.
pub(super) fn holds(entries: &[&FileEntry]) -> String {
    const SHOWN: usize = 12;
    let shown = entries.iter().take(SHOWN);
    let names: Vec<_> = shown.map(|entry| plain(&entry.name)).collect();
    match entries.len() {
        0 => "it holds no array".to_owned(),
        1 if names[0].is_empty() => "it holds one array, which has no name".to_owned(),
        count if count > SHOWN => {
            format!("it has {} and {} more", names.join(", "), count - SHOWN)
        }
        _ => format!("it has {}", names.join(", ")),
    }
}

/// A path, and the name after its last colon where the whole is no file.
pub(super) fn split(typed: &Path) -> (PathBuf, Option<String>) {
    if let Some((path, name)) = typed.to_str().and_then(|text| text.rsplit_once(':'))
        && !typed.exists()
        && Path::new(path).is_file()
    {
        return (PathBuf::from(path), Some(name.to_owned()));
    }
    (typed.to_owned(), None)
}

/// What is wrong with an array of a file.
pub(super) fn unreadable(input: &Input, name: &str, error: &EntryError) -> String {
    let array = if name.is_empty() { String::new() } else { format!("`{name}` of ") };
    format!("{array}{}: {error}", input.shown)
}
