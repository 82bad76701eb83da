//! Where Triton is: in a folder that `cargo xtask toolchain` fills, or in the Python on the path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What to do where Triton is missing.
pub(crate) const HINT: &str = "`pip install triton==3.6.0`, or in Assay's repository \
                               `cargo xtask toolchain --triton`, installs it";

/// A Triton that can be asked to compile.
#[derive(Clone, Debug)]
pub(crate) struct Triton {
    /// The folder to put on Python's path, if it is not there already.
    pub(crate) folder: Option<PathBuf>,
    /// Its release: `3.6.0`.
    pub(crate) release: String,
}

impl Triton {
    /// The Triton of this machine, looked for once; or that there is none, and what to do.
    pub(crate) fn find() -> Result<&'static Triton, String> {
        static FOUND: OnceLock<Option<Triton>> = OnceLock::new();
        let found = FOUND.get_or_init(|| in_toolchain().or_else(of_python));
        found.as_ref().ok_or_else(|| format!("Triton is not installed; {HINT}"))
    }

    /// Python, set up to import this Triton and to see nothing else of the environment that would
    /// change what it makes.
    pub(crate) fn python(&self) -> Command {
        const KEPT: [&str; 9] = [
            "PATH",
            "HOME",
            "LANG",
            "TMPDIR",
            "LD_LIBRARY_PATH",
            "PYTHONPATH",
            "PYTHONHOME",
            "VIRTUAL_ENV",
            "PYENV_VERSION",
        ];
        let mut command = Command::new("python3");
        command.env_clear().env("PYTHONDONTWRITEBYTECODE", "1");
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(folder) = &self.folder {
            let paths = std::env::var_os("PYTHONPATH");
            let paths = paths.iter().flat_map(std::env::split_paths);
            let paths = std::iter::once(folder.clone()).chain(paths);
            if let Ok(paths) = std::env::join_paths(paths) {
                command.env("PYTHONPATH", paths);
            }
        }
        command
    }
}

/// The folders of toolchains: the one that is named, or `.toolchain` here or above.
fn toolchains() -> Vec<PathBuf> {
    if let Some(root) = std::env::var_os("ASSAY_TOOLCHAIN") {
        return vec![PathBuf::from(root)];
    }
    let here = std::env::current_dir().unwrap_or_default();
    here.ancestors().map(|folder| folder.join(".toolchain")).filter(|root| root.is_dir()).collect()
}

/// The newest complete installation in a toolchain folder.
fn in_toolchain() -> Option<Triton> {
    let entries = toolchains().into_iter().filter_map(|root| std::fs::read_dir(root).ok());
    let mut folders: Vec<PathBuf> = entries.flatten().flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders.into_iter().rev().find_map(|folder| {
        let release = release(&folder)?;
        folder.join("triton").is_dir().then_some(Triton { folder: Some(folder), release })
    })
}

/// `3.6.0` of `.toolchain/triton-3.6.0`.
fn release(folder: &Path) -> Option<String> {
    folder.file_name()?.to_str()?.strip_prefix("triton-").map(str::to_owned)
}

/// The Triton that `python3` imports.
fn of_python() -> Option<Triton> {
    let ask = "from importlib.metadata import version; print(version('triton'))";
    let output = Command::new("python3").args(["-c", ask]).stdin(Stdio::null()).output().ok()?;
    let release = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !release.is_empty()).then_some(Triton { folder: None, release })
}
