//! Where a manifest's files come from: a folder on disk, or the program itself.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use assay_limits::Records;

use crate::limits::{Compiled, RecordedModule};
use crate::triton::{TritonBuilds, TritonFailure, TritonSource};

/// Finds the files that a manifest names.
pub trait Files {
    /// The bytes of `path`, a path relative to the manifest.
    ///
    /// # Errors
    /// As reading a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// What is recorded of the compiles of a CUDA source, a path relative to the manifest.
    fn recorded(&self, _source: &Path) -> Compiled {
        Compiled::Unknown
    }

    /// Compiles a kernel of a Triton source for each of its targets.
    fn triton(&self, source: &TritonSource) -> TritonBuilds {
        let what = "sources are not compiled here".to_owned();
        let missing = |target: &u32| (*target, Err(TritonFailure::Missing { what: what.clone() }));
        source.targets.iter().map(missing).collect()
    }

    /// How `path` is shown to people.
    fn shown(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// Files below a folder.
#[derive(Debug, Clone)]
pub struct DiskFiles {
    root: PathBuf,
}

impl DiskFiles {
    /// Files below `root`, the manifest's folder.
    pub fn new(root: impl Into<PathBuf>) -> DiskFiles {
        DiskFiles { root: root.into() }
    }
}

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(self.root.join(path))
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }
}

/// Files built into the program: pairs of a relative path and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedFiles<'a>(pub &'a [(&'a str, &'a [u8])]);

impl Files for EmbeddedFiles<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = without_parents(path);
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        let missing = || io::Error::new(io::ErrorKind::NotFound, "not built into the program");
        found.map(|(_, bytes)| bytes.to_vec()).ok_or_else(missing)
    }
}

/// `a/../b` as `b`: files in a program have one path each.
fn without_parents(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Files with records of what compilers made of the CUDA sources among them.
#[derive(Debug, Clone)]
pub struct RecordedFiles<F> {
    files: F,
    records: Arc<Records>,
}

impl<F: Files> RecordedFiles<F> {
    /// Files whose sources are those of the records, or the records are stale.
    pub fn new(files: F, records: Arc<Records>) -> RecordedFiles<F> {
        RecordedFiles { files, records }
    }
}

impl<F: Files> Files for RecordedFiles<F> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.files.shown(path)
    }

    fn recorded(&self, source: &Path) -> Compiled {
        recorded(&self.records, source, self)
    }
}

/// What records hold of a source, and whether they are of the source as it is now.
pub(super) fn recorded(records: &Arc<Records>, source: &Path, files: &dyn Files) -> Compiled {
    if records.cuda.is_empty() && records.hip.is_empty() {
        return Compiled::Unknown;
    }
    RecordedModule::of(Arc::clone(records), source, &|path| files.read(Path::new(path)).ok())
}
