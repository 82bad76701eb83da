//! Builds the pinned dossiers under `records/dossiers/` into the library.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env_variable("CARGO_MANIFEST_DIR")?);
    let folder = crate_folder.join("../../records/dossiers");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).into_iter().flatten() {
        let path = entry?.path().canonicalize()?;
        if path.extension().is_some_and(|kind| kind == "json") {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let file = file.to_string_lossy();
        writeln!(table, "    ({name:?}, include_str!({file:?})),").map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    fs::write(Path::new(&env_variable("OUT_DIR")?).join("dossiers.rs"), table)
}

fn env_variable(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}
