//! The corpus, for the tests that read it.

use std::path::{Path, PathBuf};

/// The PTX files of the corpus, in order of their names.
pub(crate) fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let entries = std::fs::read_dir(folder).expect("the corpus is in the repository");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "ptx")).collect();
    files.sort();
    files
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a corpus file is text")
}
