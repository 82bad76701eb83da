//! Where a manifest's files come from: a folder on disk, or the program itself.

use std::io;
use std::path::{Path, PathBuf};

/// Finds the files that a manifest names.
pub trait Files {
    /// The bytes of `path`, a path relative to the manifest.
    ///
    /// # Errors
    /// As reading a file.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

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
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        let missing = || io::Error::new(io::ErrorKind::NotFound, "not built into the program");
        found.map(|(_, bytes)| bytes.to_vec()).ok_or_else(missing)
    }
}
