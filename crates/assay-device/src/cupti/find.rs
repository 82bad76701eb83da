//! Where CUPTI may lie: the loader's own places, the CUDA toolkit, and Python's packages.

use std::path::{Path, PathBuf};

/// Names by falling major version: a newer CUPTI knows older drivers' devices, not the other way.
const NAMES: &[&str] = if cfg!(windows) {
    &["cupti64_2025.3.1.dll", "cupti64.dll"]
} else {
    &["libcupti.so.13", "libcupti.so.12", "libcupti.so"]
};

/// Names a library that is to be tried first.
pub(super) const VARIABLE: &str = "ASSAY_CUPTI";

/// The paths to try, in order; bare names are the loader's to find.
pub(super) fn candidates() -> Vec<String> {
    let mut paths: Vec<PathBuf> =
        std::env::var_os(VARIABLE).map(PathBuf::from).into_iter().collect();
    paths.extend(NAMES.iter().map(PathBuf::from));
    let named = |folder: PathBuf| NAMES.iter().map(move |name| folder.join(name));
    paths.extend(folders().into_iter().flat_map(named).filter(|path| path.is_file()));
    paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os);
    for toolkit in toolkits.map(PathBuf::from).chain([PathBuf::from("/usr/local/cuda")]) {
        folders.push(toolkit.join("extras/CUPTI/lib64"));
        folders.push(toolkit.join("lib64"));
    }
    for packages in python_packages() {
        folders.push(packages.join("nvidia/cu13/lib"));
        folders.push(packages.join("nvidia/cuda_cupti/lib"));
        folders.push(packages.join("triton/backends/nvidia/lib/cupti"));
    }
    folders
}

/// Folders of Python packages of the environments whose programs are in `PATH`.
fn python_packages() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path);
    let prefixes = programs.filter_map(|folder| folder.parent().map(Path::to_path_buf));
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let mut found: Vec<PathBuf> = Vec::new();
    for prefix in prefixes.chain(home) {
        for python in pythons(&prefix.join("lib")) {
            for packages in ["site-packages", "dist-packages"] {
                let packages = python.join(packages);
                if packages.is_dir() && !found.contains(&packages) {
                    found.push(packages);
                }
            }
        }
    }
    found
}

/// `python3.12` and the like, in order of name.
fn pythons(library: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(library).into_iter().flatten().flatten();
    let is_python = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_python).collect();
    found.sort();
    found
}
