//! Builds the suite under `kernels/cuda/` into the program: an installed one needs no files.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env_variable("CARGO_MANIFEST_DIR")?);
    let suite = crate_folder.join("../../kernels/cuda").canonicalize()?;
    let mut files = Vec::new();
    collect(&suite, &mut files)?;
    files.sort();

    let mut table = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&suite).map_err(io::Error::other)?;
        let name = name.to_string_lossy().replace('\\', "/");
        let file = file.to_string_lossy();
        writeln!(table, "    ({name:?}, include_bytes!({file:?})),").map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    fs::write(Path::new(&env_variable("OUT_DIR")?).join("suite_files.rs"), table)
}

/// The files of the suite below a folder, telling Cargo to look at the folder again.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(is_embedded) {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    Ok(())
}

/// Manifests, the PTX that they name, what gate 5 reads, and the sources that its records are of.
fn is_embedded(kind: &std::ffi::OsStr) -> bool {
    ["ptx", "toml", "json", "cu", "cuh"].iter().any(|known| kind == *known)
}

fn env_variable(name: &str) -> io::Result<String> {
    std::env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}
